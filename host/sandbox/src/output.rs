//! What a guest returned, as the host's own values, bounded.

use crate::{
    bindings::types,
    limits::{met, size as limit_size},
};
use belljar_capability::{Limit, Limits};
use belljar_types::{Blob, Content, ToolError, ToolErrorKind, ToolOutput};

/// The longest failure text that is passed on, in bytes.
const FAILURE_TEXT: usize = 16 << 10;

/// Converts an output. Text past the limit is cut, and said; data past the limit and structured
/// content that is not JSON are failures, since a part of either would be worth nothing.
pub(crate) fn convert(output: types::Output, limits: &Limits) -> Result<ToolOutput, ToolError> {
    let structured = match output.structured {
        None => None,
        Some(text) if text.len() > limit_size(limits.result) => {
            return Err(too_large("structured content", Limit::Result, text.len(), limits));
        }
        Some(text) => Some(serde_json::from_str(&text).map_err(|error| {
            ToolError::new(
                ToolErrorKind::Trap,
                format!("it returned structured content that is not JSON: {error}"),
            )
        })?),
    };
    let pieces = output.content.len();
    let mut room =
        Room { text: limit_size(limits.result), data: limit_size(limits.result_data), cut: 0 };
    let mut content = output
        .content
        .into_iter()
        .take(PIECES)
        .map(|content| room.take(content, limits))
        .collect::<Result<Vec<_>, _>>()?;
    // A text of nothing says nothing, and model servers refuse it.
    content.retain(|content| !matches!(content, Content::Text { text } if text.is_empty()));
    let mut left_out = Vec::new();
    let mut why = String::new();
    if room.cut > 0 {
        left_out.push(format!("{} bytes of text", room.cut));
        why = format!(", since {}", limits.met(Limit::Result, None));
    }
    if pieces > PIECES {
        left_out.push(format!("{} of {pieces} pieces", pieces - PIECES));
    }
    if !left_out.is_empty() {
        let text = format!(
            "[cut here: {} left out{why}; ask for a part of it to see the rest]",
            left_out.join(" and ")
        );
        content.push(Content::Text { text });
    }
    Ok(ToolOutput { content, structured })
}

/// Pieces of content in one result.
const PIECES: usize = 100;

/// What a result may still hold.
struct Room {
    text: usize,
    data: usize,
    /// Bytes of text that found no room.
    cut: usize,
}

impl Room {
    fn take(&mut self, content: types::Content, limits: &Limits) -> Result<Content, ToolError> {
        Ok(match content {
            types::Content::Text(text) => Content::Text { text: self.text(text) },
            types::Content::Image(blob) => Content::Image(self.blob(blob, limits)?),
            types::Content::Audio(blob) => Content::Audio(self.blob(blob, limits)?),
            types::Content::File(blob) => Content::File(self.blob(blob, limits)?),
            types::Content::Link(link) => Content::Link {
                uri: self.text(shorten(&link.uri, 2_000)),
                title: link.title.map(|title| self.text(shorten(&title, 200))),
                media_type: link.media_type.map(|kind| self.text(shorten(&kind, 100))),
            },
        })
    }

    /// Cuts a text on a character boundary to what there is room for.
    fn text(&mut self, mut text: String) -> String {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(self.text));
        self.text -= text.len();
        self.cut += whole - text.len();
        if text.len() < whole {
            // What follows a cut is left out, even where it would fit.
            self.text = 0;
        }
        text
    }

    fn blob(&mut self, blob: types::Blob, limits: &Limits) -> Result<Blob, ToolError> {
        let size = blob.data.len();
        self.data = self
            .data
            .checked_sub(size)
            .ok_or_else(|| too_large("data", Limit::ResultData, size, limits))?;
        Ok(Blob {
            media_type: shorten(&blob.media_type, 100),
            name: blob.name.map(|name| shorten(&name, 200)),
            data: blob.data.into(),
        })
    }
}

fn too_large(what: &str, limit: Limit, size: usize, limits: &Limits) -> ToolError {
    met(ToolErrorKind::OutputLimit, limits, (limit, Some(size as u64)), |met| {
        format!("it returned more {what} than a result holds: {met}; ask for less")
    })
}

/// The first characters of a text.
pub(crate) fn shorten(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Converts a failure that the tool itself reported.
pub(crate) fn failure(failure: types::Failure, limits: &Limits) -> ToolError {
    let limit = FAILURE_TEXT.min(limit_size(limits.result));
    let (kind, message, retry_after_ms) = match failure {
        types::Failure::UnknownTool => (
            ToolErrorKind::Failed,
            "the plugin does not know its own tool; tell the user".to_owned(),
            None,
        ),
        types::Failure::InvalidArguments(message) => {
            (ToolErrorKind::InvalidArguments, message, None)
        }
        types::Failure::Denied(message) => (ToolErrorKind::Denied, message, None),
        types::Failure::Failed(message) => (ToolErrorKind::Failed, message, None),
        types::Failure::Unavailable(types::Unavailable { message, retry_after_ms }) => {
            (ToolErrorKind::Unavailable, message, retry_after_ms)
        }
    };
    let message = if message.trim().is_empty() {
        format!("the tool failed ({kind}) and did not say why")
    } else {
        let end = message.floor_char_boundary(limit);
        if end < message.len() { format!("{}…", &message[..end]) } else { message }
    };
    ToolError { retry_after_ms, ..ToolError::new(kind, message) }
}

/// Bytes that an answer carried to the host, whatever becomes of them.
pub(crate) fn carried(answer: &Result<types::Output, types::Failure>) -> usize {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    match answer {
        Ok(output) => {
            let pieces = output.content.iter().map(|content| match content {
                types::Content::Text(text) => text.len(),
                types::Content::Image(blob)
                | types::Content::Audio(blob)
                | types::Content::File(blob) => {
                    blob.data.len() + blob.media_type.len() + length(&blob.name)
                }
                types::Content::Link(link) => {
                    link.uri.len() + length(&link.title) + length(&link.media_type)
                }
            });
            pieces.sum::<usize>() + length(&output.structured)
        }
        Err(types::Failure::UnknownTool) => 0,
        Err(
            types::Failure::InvalidArguments(message)
            | types::Failure::Denied(message)
            | types::Failure::Failed(message)
            | types::Failure::Unavailable(types::Unavailable { message, .. }),
        ) => message.len(),
    }
}

/// Bytes of content.
pub(crate) fn size(output: &ToolOutput) -> usize {
    output
        .content
        .iter()
        .map(|content| match content {
            Content::Text { text } => text.len(),
            Content::Image(blob) | Content::Audio(blob) | Content::File(blob) => blob.data.len(),
            Content::Link { uri, title, media_type } => {
                let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
                uri.len() + length(title) + length(media_type)
            }
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> types::Output {
        types::Output { content: vec![types::Content::Text(text.to_owned())], structured: None }
    }

    fn texts(output: &ToolOutput) -> Vec<&str> {
        let mut texts = Vec::new();
        for content in &output.content {
            texts.push(match content {
                Content::Text { text } => text.as_str(),
                _ => "not a text",
            });
        }
        texts
    }

    #[test]
    fn long_text_is_cut_on_a_character_boundary_and_says_so() {
        let limits = Limits { result: 5, ..Limits::default() };
        assert_eq!(
            texts(&convert(text("ääää"), &limits).unwrap()),
            [
                "ää",
                "[cut here: 4 bytes of text left out, since the setting `limits.result` allows 5B; \
                 ask for a part of it to see the rest]"
            ]
        );
    }

    #[test]
    fn the_limit_holds_over_all_texts_together() {
        let limits = Limits { result: 4, ..Limits::default() };
        let content = ["abc", "def", "g"].map(|text| types::Content::Text(text.into()));
        let output = types::Output { content: content.into(), structured: None };
        assert_eq!(
            texts(&convert(output, &limits).unwrap()),
            [
                "abc",
                "d",
                "[cut here: 3 bytes of text left out, since the setting `limits.result` allows 4B; \
                 ask for a part of it to see the rest]"
            ]
        );
    }

    #[test]
    fn pieces_and_links_are_bounded_too() {
        let link = types::Content::Link(types::Link {
            uri: "x".repeat(2_000),
            title: None,
            media_type: None,
        });
        let output = types::Output { content: vec![link; 100_000], structured: None };
        let output = convert(output, &Limits::default()).unwrap();
        assert_eq!(output.content.len(), PIECES + 1);
        assert!(size(&output) < (64 << 10) + 200, "{}", size(&output));
        assert!(texts(&output)[PIECES].contains("99900 of 100000 pieces"), "{:?}", texts(&output));
    }

    #[test]
    fn structured_content_must_be_json() {
        let output = types::Output { content: vec![], structured: Some("{".into()) };
        assert_eq!(convert(output, &Limits::default()).unwrap_err().kind, ToolErrorKind::Trap);
    }

    #[test]
    fn empty_texts_are_left_out() {
        assert_eq!(convert(text(""), &Limits::default()).unwrap(), ToolOutput::default());
    }

    #[test]
    fn a_failure_without_words_gets_some() {
        let error = failure(types::Failure::Failed(" ".into()), &Limits::default());
        assert_eq!(
            error,
            ToolError::new(ToolErrorKind::Failed, "the tool failed (failed) and did not say why")
        );
    }
}
