//! What a call says, without its plugin's secrets: the last look, over everything that a model or
//! a person may read. A guest is never given a secret; this holds where it came by one all the
//! same, out of a file or from its server in a form of the server's own.

use crate::{
    bindings::types::{Blob, Content, Failure, Link, Output, Unavailable},
    call::CallOutcome,
    http::Redactor,
};
use belljar_types::{CallObserver, CallUpdate, Denial, ToolError, ToolOutput};
use std::sync::Arc;

/// An observer that is told nothing secret.
pub(crate) fn observer(redactor: &Arc<Redactor>, observer: CallObserver) -> CallObserver {
    let redactor = Arc::clone(redactor);
    Arc::new(move |update| {
        observer(match update {
            CallUpdate::Progress { done, total, message } => {
                CallUpdate::Progress { done, total, message: redactor.text(&message) }
            }
            CallUpdate::Output { text } => CallUpdate::Output { text: redactor.text(&text) },
        });
    })
}

/// The guest's answer, before it is cut to what is shown: half of a secret is not found.
pub(crate) fn answer(
    redactor: &Redactor,
    answer: Result<Output, Failure>,
) -> Result<Output, Failure> {
    let text = |text: String| redactor.text(&text);
    let blob = |blob: Blob| Blob {
        media_type: text(blob.media_type),
        name: blob.name.map(text),
        data: redactor.bytes(&blob.data),
    };
    let content = |content: Content| match content {
        Content::Text(shown) => Content::Text(text(shown)),
        Content::Image(image) => Content::Image(blob(image)),
        Content::Audio(audio) => Content::Audio(blob(audio)),
        Content::File(file) => Content::File(blob(file)),
        Content::Link(link) => Content::Link(Link {
            uri: text(link.uri),
            title: link.title.map(text),
            media_type: link.media_type.map(text),
        }),
    };
    match answer {
        Ok(output) => Ok(Output {
            content: output.content.into_iter().map(content).collect(),
            // JSON stays JSON: what is put in has nothing to escape.
            structured: output.structured.map(text),
        }),
        Err(failure) => Err(match failure {
            Failure::UnknownTool => Failure::UnknownTool,
            Failure::InvalidArguments(message) => Failure::InvalidArguments(text(message)),
            Failure::Denied(message) => Failure::Denied(text(message)),
            Failure::Failed(message) => Failure::Failed(text(message)),
            Failure::Unavailable(Unavailable { message, retry_after_ms }) => {
                Failure::Unavailable(Unavailable { message: text(message), retry_after_ms })
            }
        }),
    }
}

/// An outcome whose record tells nothing secret, either.
pub(crate) fn outcome(
    redactor: &Redactor,
    mut outcome: CallOutcome<Result<ToolOutput, ToolError>>,
) -> CallOutcome<Result<ToolOutput, ToolError>> {
    if let Err(error) | Ok(Err(error)) = &mut outcome.result {
        error.message = redactor.text(&error.message);
    }
    for names in [&mut outcome.read, &mut outcome.written, &mut outcome.hosts] {
        names.iter_mut().for_each(|name| *name = redactor.text(name));
    }
    for Denial { target, reason, .. } in &mut outcome.denied {
        *target = redactor.text(target);
        *reason = redactor.text(reason);
    }
    outcome.log = redactor.text(&outcome.log);
    outcome
}
