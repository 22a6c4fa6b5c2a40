//! The bundled plugin for the web: reading a page, and sending a request.
//!
//! It decides nothing about what may be reached: the host looks at every request, redirects
//! included, and what it refuses arrives here as an error that is put into words for the model.
//! Whatever a server sends is text to show, never something to obey.

mod content;
mod exchange;
mod fetch;
mod page;
mod request;
mod wire;

belljar_sdk::plugin!(fetch::fetch_url, request::http_request);
