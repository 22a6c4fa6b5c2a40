//! `http_request`: one request, as it is asked for.

use crate::{
    content::{self, Content},
    exchange, fetch,
    page::{self, Range},
    wire::{self, Send},
};
use belljar_sdk::{http::Request, prelude::*};
use belljar_workspace_path::bytes;
use std::{collections::BTreeMap, fmt::Write as _};

#[arguments]
pub(crate) struct HttpRequest {
    /// The method, such as `GET` or `POST`. Default: `GET`.
    method: Option<String>,
    /// The whole URL, such as `https://api.example.com/items`.
    url: String,
    /// Header fields. `content-type` is not guessed from the body.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body, as text.
    body: Option<String>,
}

/// Sends one HTTP request and returns status, headers and the body's text. Redirects are not
/// followed. Any status is a result, not a failure. To read a page, `fetch_url` is better. Secrets
/// that the user bound to a host are added by themselves: never ask for one.
#[tool(open_world, title = "Send an HTTP request")]
pub(crate) fn http_request(arguments: HttpRequest) -> Result<Output, Failure> {
    answer(arguments, &mut wire::send)
}

fn answer(arguments: HttpRequest, send: Send<'_>) -> Result<Output, Failure> {
    let HttpRequest { method, url, headers, body } = arguments;
    let url = exchange::url(&url)?;
    let method = method.unwrap_or_else(|| "GET".to_owned()).to_ascii_uppercase();
    let mut request = Request::new(&method, exchange::without_fragment(&url));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(body) = body {
        request = request.body(body);
    }
    let response = send(&request).map_err(|error| exchange::failure(&url, &error))?;

    let mut head = format!("{}\n", exchange::status(response.status));
    for (name, value) in &response.headers {
        // Writing to a string cannot fail.
        let _ = writeln!(head, "{name}: {value}");
    }
    let mut notes = Vec::new();
    if response.is_cut {
        notes.push(format!("only the first {} were read", bytes(wire::BODY_BYTES as u64)));
    }
    let mut output = Output::text(head);
    match content::read(&response) {
        _ if response.body.is_empty() => notes.push("there is no body".to_owned()),
        Content::Html(text) | Content::Text(text) => {
            let page = page::show(&text, Range::from_start())?;
            output = output.with_text(page.text);
            if let Some(note) = page.note {
                // Nothing can read on in what was an answer to this one request.
                notes.push(note.split("; read on").next().unwrap_or_default().to_owned());
            }
        }
        Content::Binary(kind) => {
            return Ok(output.with_text(fetch::binary(&url, kind.as_deref(), response.body.len())));
        }
    }
    Ok(if notes.is_empty() { output } else { output.with_text(format!("[{}]", notes.join("; "))) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_sdk::{
        Content as Piece,
        http::{Error, Response},
    };

    fn arguments(json: &str) -> HttpRequest {
        belljar_sdk::serde_json::from_str(json).unwrap()
    }

    fn texts(output: &Output) -> Vec<&str> {
        output
            .content
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn response(status: u16, kind: &str, body: &[u8]) -> Response {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        Response { status, headers, body: body.to_vec(), is_cut: false }
    }

    #[test]
    fn a_request_is_sent_as_it_is_asked_for_and_any_status_is_an_answer() {
        let mut sent = Vec::new();
        let output = answer(
            arguments(
                r#"{"method": "post", "url": "https://a.test/x?y#z",
                    "headers": {"x-a": "1"}, "body": "b"}"#,
            ),
            &mut |request| {
                sent.push(request.clone());
                Ok(response(404, "application/json", b"{\"no\": true}"))
            },
        )
        .unwrap();
        let expected = Request::new("POST", "https://a.test/x?y").header("x-a", "1").body("b");
        assert_eq!(sent, [expected]);
        assert_eq!(
            texts(&output),
            ["404 Not Found\ncontent-type: application/json\n", "{\"no\": true}\n"]
        );
    }

    #[test]
    fn what_is_no_text_is_told_by_kind_and_size() {
        let get = arguments(r#"{"url": "https://a.test/"}"#);
        let output = answer(get, &mut |_| Ok(response(200, "image/png", &[0; 2_048]))).unwrap();
        assert_eq!(
            texts(&output)[1],
            format!("[`https://a.test/` is not text: image/png, {}]", bytes(2_048))
        );
        let get = arguments(r#"{"url": "https://a.test/"}"#);
        let output = answer(get, &mut |_| Ok(response(204, "text/plain", b""))).unwrap();
        assert_eq!(texts(&output)[1], "[there is no body]");
    }

    #[test]
    fn a_failure_says_what_it_was() {
        for (error, expected) in [
            (Error::Denied, Failure::denied("the request to `https://a.test/` was refused")),
            (Error::NoName, Failure::failed("there is no host `a.test`")),
            (Error::NoConnection, Failure::unavailable("`a.test` cannot be reached")),
            (Error::TimedOut, Failure::unavailable("`a.test` did not answer in time")),
        ] {
            let get = arguments(r#"{"url": "https://a.test/"}"#);
            let mut error = Some(error);
            let failed = answer(get, &mut |_| Err(error.take().unwrap())).unwrap_err();
            assert_eq!(failed, expected);
        }
        for url in ["", "a.test", "ftp://a.test/", "https://"] {
            let get = arguments(&format!(r#"{{"url": "{url}"}}"#));
            let failed = answer(get, &mut |_| panic!("nothing is sent")).unwrap_err();
            assert!(matches!(failed, Failure::InvalidArguments(_)), "{url}: {failed:?}");
        }
    }
}
