//! Content that a protocol has no form for, as text that says what it was.

use crate::history::{CallResult, NO_RESULT, is_blank};
use base64::{Engine, engine::general_purpose::STANDARD};
use belljar_types::{Blob, Content, SystemPrompt};

/// What the model reads for a tool that returned nothing at all: an empty text is refused.
const NO_OUTPUT: &str = "(no output)";

/// What a result gives the model to read.
pub(crate) enum ResultContent<'a> {
    Failure(String),
    Output(Vec<OutputPart<'a>>),
}

pub(crate) enum OutputPart<'a> {
    Text(String),
    Image(&'a Blob),
}

/// The content of a result, never empty.
pub(crate) fn of_result<'a>(result: &CallResult<'a>) -> ResultContent<'a> {
    let output = match result.result.map(|result| &result.outcome) {
        None => return ResultContent::Failure(NO_RESULT.to_owned()),
        Some(Err(error)) => return ResultContent::Failure(error.to_string()),
        Some(Ok(output)) => output,
    };
    let mut parts: Vec<_> = output.content.iter().filter_map(part).collect();
    if parts.is_empty() {
        let text = match &output.structured {
            Some(value) => value.to_string(),
            None => NO_OUTPUT.to_owned(),
        };
        parts.push(OutputPart::Text(text));
    }
    ResultContent::Output(parts)
}

/// One piece of content as text or as an image that every vision model takes; nothing for a blank
/// text.
pub(crate) fn part(content: &Content) -> Option<OutputPart<'_>> {
    Some(match content {
        Content::Text { text } if text.trim().is_empty() => return None,
        Content::Text { text } => OutputPart::Text(text.clone()),
        Content::Image(blob) if is_image(blob) => OutputPart::Image(blob),
        Content::Image(blob) | Content::Audio(blob) => OutputPart::Text(left_out(blob)),
        Content::File(blob) => OutputPart::Text(file(blob)),
        Content::Link { uri, title, .. } => OutputPart::Text(match title {
            Some(title) => format!("{title}: {uri}"),
            None => uri.clone(),
        }),
    })
}

/// Both parts of the prompt as one text, the stable one first.
pub(crate) fn system(prompt: &SystemPrompt) -> Option<String> {
    let parts: Vec<&str> =
        [&*prompt.stable, &prompt.environment].into_iter().filter(|text| !is_blank(text)).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// A result where only a text can stand: its images are added to `said`, which the user says after
/// the results, named by their call.
pub(crate) fn result_text<'a>(result: &CallResult<'a>, said: &mut Vec<OutputPart<'a>>) -> String {
    let parts = match of_result(result) {
        ResultContent::Failure(message) => return format!("error: {message}"),
        ResultContent::Output(parts) => parts,
    };
    let mut texts = Vec::new();
    let mut images = 0_usize;
    for part in parts {
        match part {
            OutputPart::Text(text) => texts.push(text),
            OutputPart::Image(blob) => {
                images += 1;
                said.push(OutputPart::Text(format!(
                    "Image {images} of the result of `{}` ({}):",
                    result.name, result.id
                )));
                said.push(OutputPart::Image(blob));
                texts.push(format!("[image {images}: shown after the results]"));
            }
        }
    }
    texts.join("\n")
}

/// What a user says as one text, or nothing where an image is part of it.
pub(crate) fn plain_text(parts: &[OutputPart<'_>]) -> Option<String> {
    let texts = parts.iter().map(|part| match part {
        OutputPart::Text(text) => Some(text.as_str()),
        OutputPart::Image(_) => None,
    });
    Some(texts.collect::<Option<Vec<_>>>()?.join("\n\n"))
}

pub(crate) fn data_url(blob: &Blob) -> String {
    format!("data:{};base64,{}", blob.media_type, base64(blob))
}

pub(crate) fn base64(blob: &Blob) -> String {
    STANDARD.encode(&blob.data)
}

/// Another type, or no bytes, would make the provider refuse this and every later request.
fn is_image(blob: &Blob) -> bool {
    !blob.data.is_empty()
        && matches!(
            blob.media_type.as_str(),
            "image/png" | "image/jpeg" | "image/gif" | "image/webp"
        )
}

fn file(blob: &Blob) -> String {
    match std::str::from_utf8(&blob.data) {
        Ok(text) if !text.contains('\0') && !text.trim().is_empty() => match &blob.name {
            Some(name) => format!("{name}:\n{text}"),
            None => text.to_owned(),
        },
        _ => left_out(blob),
    }
}

fn left_out(blob: &Blob) -> String {
    let Blob { media_type, name, data } = blob;
    let name = name.as_deref().map(|name| format!(" `{name}`")).unwrap_or_default();
    format!("[{media_type}{name} of {} bytes, which cannot be shown to this model]", data.len())
}
