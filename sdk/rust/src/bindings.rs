//! The component's side of the plugin contract: generated bindings, and the conversions between
//! them and the SDK's own types. Nothing generated leaves this module but the export macro.

use crate::{Content, Failure, Hints, Output, Plugin, Tool};

#[doc(hidden)]
pub mod generated {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "plugin",
        pub_export_macro: true,
        default_bindings_module: "::belljar_sdk::__private::generated",
    });
}

pub use generated::export;

use generated::{belljar::plugin::types as wire, exports::belljar::plugin::tools::Guest};

/// What `plugin!` implements for the type that it exports.
pub trait Component {
    fn plugin() -> &'static Plugin;
}

impl<T: Component> Guest for T {
    fn list_tools() -> Vec<wire::Tool> {
        T::plugin().tools().into_iter().map(wire::Tool::from).collect()
    }

    fn call_tool(name: String, arguments: String) -> Result<wire::Output, wire::Failure> {
        T::plugin().call(&name, &arguments).map(wire::Output::from).map_err(wire::Failure::from)
    }
}

impl From<Tool> for wire::Tool {
    fn from(tool: Tool) -> Self {
        Self {
            name: tool.name.to_owned(),
            title: tool.title.map(str::to_owned),
            description: tool.description.to_owned(),
            input_schema: tool.input_schema.to_string(),
            output_schema: tool.output_schema.map(|schema| schema.to_string()),
            hints: tool.hints.into(),
        }
    }
}

impl From<Hints> for wire::Hints {
    fn from(hints: Hints) -> Self {
        let Hints { read_only, destructive, idempotent, open_world } = hints;
        [
            (read_only, Self::READ_ONLY),
            (destructive, Self::DESTRUCTIVE),
            (idempotent, Self::IDEMPOTENT),
            (open_world, Self::OPEN_WORLD),
        ]
        .into_iter()
        .filter(|(is_set, _)| *is_set)
        .fold(Self::empty(), |hints, (_, hint)| hints | hint)
    }
}

impl From<Output> for wire::Output {
    fn from(output: Output) -> Self {
        Self {
            content: output.content.into_iter().map(wire::Content::from).collect(),
            structured: output.structured.map(|value| value.to_string()),
        }
    }
}

impl From<Content> for wire::Content {
    fn from(content: Content) -> Self {
        match content {
            Content::Text(text) => Self::Text(text),
            Content::Image(blob) => Self::Image(blob.into()),
            Content::Audio(blob) => Self::Audio(blob.into()),
            Content::File(blob) => Self::File(blob.into()),
            Content::Link(link) => Self::Link(wire::Link {
                uri: link.uri,
                title: link.title,
                media_type: link.media_type,
            }),
        }
    }
}

impl From<crate::Blob> for wire::Blob {
    fn from(blob: crate::Blob) -> Self {
        Self { media_type: blob.media_type, name: blob.name, data: blob.data }
    }
}

impl From<Failure> for wire::Failure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::UnknownTool => Self::UnknownTool,
            Failure::InvalidArguments(message) => Self::InvalidArguments(message),
            Failure::Denied(message) => Self::Denied(message),
            Failure::Failed(message) => Self::Failed(message),
            Failure::Unavailable { message, retry_after } => Self::Unavailable(wire::Unavailable {
                message,
                retry_after_ms: retry_after.map(crate::host::milliseconds),
            }),
        }
    }
}
