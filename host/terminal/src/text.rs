//! Text as lines of styled cells: wrapping, Markdown, code and changes.
//!
//! Everything here is a function of the text and a width; nothing knows a terminal.

mod change;
mod highlight;
mod markdown;
mod stream;
mod table;
mod wrap;

pub(crate) use change::change;
pub(crate) use stream::MarkdownStream;
pub(crate) use table::{Cells, table};
pub(crate) use wrap::{cut, hard, width, words};
