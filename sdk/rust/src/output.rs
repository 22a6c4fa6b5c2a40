//! What a tool returns: pieces of content for the model and people, and a value that fits the
//! tool's output schema.

use crate::{Failure, schema};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What a tool returns. Built piece by piece:
///
/// ```
/// # use belljar_sdk::Output;
/// let output = Output::text("two files").with_link("https://example.org/a", "the second");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    pub content: Vec<Content>,
    /// JSON that fits the tool's output schema. [`Json`] sets it together with the schema.
    pub structured: Option<Value>,
}

/// One piece of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    Image(Blob),
    Audio(Blob),
    File(Blob),
    Link(Link),
}

/// Bytes with an IANA media type, such as `image/png`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    pub media_type: String,
    pub name: Option<String>,
    pub data: Vec<u8>,
}

/// A link to something that is not part of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub uri: String,
    pub title: Option<String>,
    pub media_type: Option<String>,
}

impl Output {
    /// An output without content.
    pub fn new() -> Self {
        Self::default()
    }

    /// An output of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().with_text(text)
    }

    /// An output of one image, such as of the media type `image/png`.
    pub fn image(media_type: impl Into<String>, data: Vec<u8>) -> Self {
        Self::new().with_image(media_type, data)
    }

    /// An output of one file.
    pub fn file(name: impl Into<String>, media_type: impl Into<String>, data: Vec<u8>) -> Self {
        Self::new().with_file(name, media_type, data)
    }

    /// An output of one link.
    pub fn link(uri: impl Into<String>, title: impl Into<String>) -> Self {
        Self::new().with_link(uri, title)
    }

    /// Adds a text.
    #[must_use]
    pub fn with_text(self, text: impl Into<String>) -> Self {
        self.with(Content::Text(text.into()))
    }

    /// Adds an image.
    #[must_use]
    pub fn with_image(self, media_type: impl Into<String>, data: Vec<u8>) -> Self {
        self.with(Content::Image(Blob { media_type: media_type.into(), name: None, data }))
    }

    /// Adds a file.
    #[must_use]
    pub fn with_file(
        self,
        name: impl Into<String>,
        media_type: impl Into<String>,
        data: Vec<u8>,
    ) -> Self {
        self.with(Content::File(Blob {
            media_type: media_type.into(),
            name: Some(name.into()),
            data,
        }))
    }

    /// Adds a link.
    #[must_use]
    pub fn with_link(self, uri: impl Into<String>, title: impl Into<String>) -> Self {
        self.with(Content::Link(Link {
            uri: uri.into(),
            title: Some(title.into()),
            media_type: None,
        }))
    }

    /// Adds any piece of content.
    #[must_use]
    pub fn with(mut self, content: Content) -> Self {
        self.content.push(content);
        self
    }
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Content> for Output {
    fn from(content: Content) -> Self {
        Self::new().with(content)
    }
}

/// A structured result: gives the tool an output schema, and each output the value, as JSON text
/// too for models that read text only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// What a tool may return besides an [`Output`].
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not an output",
    note = "return `Output`, a string, or `Json<T>` where `T` is `Serialize` and `JsonSchema`; \
            where the tool can fail, `Result<_, Failure>`"
)]
pub trait IntoOutput {
    /// The schema of what this puts into [`Output::structured`], where it does.
    fn output_schema() -> Option<Value> {
        None
    }

    /// # Errors
    ///
    /// [`Failure::Failed`] where the value has no JSON form.
    fn into_output(self) -> Result<Output, Failure>;
}

impl IntoOutput for Output {
    fn into_output(self) -> Result<Output, Failure> {
        Ok(self)
    }
}

impl IntoOutput for String {
    fn into_output(self) -> Result<Output, Failure> {
        Ok(self.into())
    }
}

impl IntoOutput for &str {
    fn into_output(self) -> Result<Output, Failure> {
        Ok(self.into())
    }
}

impl IntoOutput for Content {
    fn into_output(self) -> Result<Output, Failure> {
        Ok(self.into())
    }
}

impl<T: Serialize + JsonSchema> IntoOutput for Json<T> {
    fn output_schema() -> Option<Value> {
        Some(schema::output_schema::<T>())
    }

    fn into_output(self) -> Result<Output, Failure> {
        let value = serde_json::to_value(self.0)?;
        Ok(Output { structured: Some(value.clone()), ..Output::text(value.to_string()) })
    }
}

/// What a tool's function may return: an output, or a result with one.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not what a tool returns",
    note = "return `Output`, a string, or `Json<T>` where `T` is `Serialize` and `JsonSchema`; \
            where the tool can fail, `Result<_, Failure>`"
)]
pub trait IntoOutcome {
    fn output_schema() -> Option<Value>;

    /// # Errors
    ///
    /// What the tool itself returned, and what [`IntoOutput::into_output`] fails with.
    fn into_outcome(self) -> Result<Output, Failure>;
}

impl<T: IntoOutput> IntoOutcome for T {
    fn output_schema() -> Option<Value> {
        T::output_schema()
    }

    fn into_outcome(self) -> Result<Output, Failure> {
        self.into_output()
    }
}

impl<T: IntoOutput, E: Into<Failure>> IntoOutcome for Result<T, E> {
    fn output_schema() -> Option<Value> {
        T::output_schema()
    }

    fn into_outcome(self) -> Result<Output, Failure> {
        self.map_err(E::into)?.into_output()
    }
}
