//! What a guest returned, as the host's own values, bounded.

use crate::{bindings::types, limits::Limits};
use belljar_types::{Blob, Content, ToolError, ToolErrorKind, ToolOutput};

/// The longest failure text that is passed on, in bytes.
const FAILURE_TEXT: usize = 16 << 10;

/// Converts an output. Text past the limit is cut, and said; data past the limit and structured
/// content that is not JSON are failures, since a part of either would be worth nothing.
pub(crate) fn convert(output: types::Output, limits: &Limits) -> Result<ToolOutput, ToolError> {
    let structured = match output.structured {
        None => None,
        Some(text) if text.len() > limits.result_text => {
            return Err(too_large("structured content", text.len(), limits.result_text));
        }
        Some(text) => Some(serde_json::from_str(&text).map_err(|error| {
            ToolError::new(
                ToolErrorKind::Trap,
                format!("it returned structured content that is not JSON: {error}"),
            )
        })?),
    };
    let mut left = Room { text: limits.result_text, data: limits.result_data };
    let content = output
        .content
        .into_iter()
        .map(|content| left.take(content, limits))
        .collect::<Result<Vec<_>, _>>()?;
    // A text of nothing says nothing, and model servers refuse it.
    let content = content
        .into_iter()
        .filter(|content| !matches!(content, Content::Text { text } if text.is_empty()))
        .collect();
    Ok(ToolOutput { content, structured })
}

/// What a result may still hold.
struct Room {
    text: usize,
    data: usize,
}

impl Room {
    fn take(&mut self, content: types::Content, limits: &Limits) -> Result<Content, ToolError> {
        Ok(match content {
            types::Content::Text(text) => {
                let text = cut(text, self.text);
                self.text = self.text.saturating_sub(text.len());
                Content::Text { text }
            }
            types::Content::Image(blob) => Content::Image(self.blob(blob, limits)?),
            types::Content::Audio(blob) => Content::Audio(self.blob(blob, limits)?),
            types::Content::File(blob) => Content::File(self.blob(blob, limits)?),
            types::Content::Link(link) => Content::Link {
                uri: shorten(&link.uri, 2_000),
                title: link.title.map(|title| shorten(&title, 200)),
                media_type: link.media_type.map(|media_type| shorten(&media_type, 100)),
            },
        })
    }

    fn blob(&mut self, blob: types::Blob, limits: &Limits) -> Result<Blob, ToolError> {
        let size = blob.data.len();
        self.data = self
            .data
            .checked_sub(size)
            .ok_or_else(|| too_large("data", size, limits.result_data))?;
        Ok(Blob {
            media_type: shorten(&blob.media_type, 100),
            name: blob.name.map(|name| shorten(&name, 200)),
            data: blob.data.into(),
        })
    }
}

fn too_large(what: &str, size: usize, limit: usize) -> ToolError {
    ToolError::new(
        ToolErrorKind::OutputLimit,
        format!("it returned {size} bytes of {what}, and a result holds {limit}; ask for less"),
    )
}

/// Cuts a text on a character boundary and says so.
fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(limit));
        let left_out = whole - text.len();
        text.push_str(&format!(
            "\n[{left_out} of {whole} bytes were cut here: ask for a part of it to see the rest]"
        ));
    }
    text
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
    let limit = FAILURE_TEXT.min(limits.result_text);
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
        cut(message, limit)
    };
    ToolError { kind, message, retry_after_ms }
}

/// Bytes of content.
pub(crate) fn size(output: &ToolOutput) -> usize {
    output
        .content
        .iter()
        .map(|content| match content {
            Content::Text { text } => text.len(),
            Content::Image(blob) | Content::Audio(blob) | Content::File(blob) => blob.data.len(),
            Content::Link { uri, .. } => uri.len(),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> types::Output {
        types::Output { content: vec![types::Content::Text(text.to_owned())], structured: None }
    }

    #[test]
    fn long_text_is_cut_on_a_character_boundary_and_says_so() {
        let limits = Limits { result_text: 5, ..Limits::default() };
        let output = convert(text("ääää"), &limits).unwrap();
        assert_eq!(
            output,
            ToolOutput::text(
                "ää\n[4 of 8 bytes were cut here: ask for a part of it to see the rest]"
            )
        );
    }

    #[test]
    fn the_limit_holds_over_all_texts_together() {
        let limits = Limits { result_text: 4, ..Limits::default() };
        let content = vec![types::Content::Text("abc".into()), types::Content::Text("def".into())];
        let output = convert(types::Output { content, structured: None }, &limits).unwrap();
        let texts: Vec<_> = output
            .content
            .iter()
            .map(|content| match content {
                Content::Text { text } => text.lines().next().unwrap_or_default(),
                _ => "",
            })
            .collect();
        assert_eq!(texts, ["abc", "d"]);
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
