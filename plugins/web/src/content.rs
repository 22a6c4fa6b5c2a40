//! What a body is, and its text where it is one.

use belljar_sdk::http::Response;

/// What a body is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Html(String),
    Text(String),
    /// Of this media type, or of none that the server names.
    Binary(Option<String>),
}

/// Reads a body by what the server says of it and, where it says nothing, by what it looks like.
pub(crate) fn read(response: &Response) -> Content {
    let header = response.header("content-type").unwrap_or_default();
    let media_type = header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let body = response.body.as_slice();
    let text = || decode(body, &charset(header));
    match media_type.as_str() {
        "text/html" | "application/xhtml+xml" => Content::Html(text()),
        "" if looks_like_html(body) => Content::Html(text()),
        "" if !body.contains(&0) => Content::Text(text()),
        "" => Content::Binary(None),
        kind if is_text(kind) => Content::Text(text()),
        _ => Content::Binary(Some(media_type)),
    }
}

fn is_text(media_type: &str) -> bool {
    const TEXTS: [&str; 13] = [
        "application/json",
        "application/ld+json",
        "application/xml",
        "application/javascript",
        "application/ecmascript",
        "application/x-ndjson",
        "application/jsonl",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/sql",
        "application/x-sh",
        "application/x-www-form-urlencoded",
    ];
    media_type.starts_with("text/")
        || TEXTS.contains(&media_type)
        || media_type.ends_with("+json")
        || media_type.ends_with("+xml")
        || media_type.ends_with("+yaml")
}

fn looks_like_html(body: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&body[..body.len().min(1_000)]).to_ascii_lowercase();
    let start = start.trim_start_matches('\u{feff}').trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// The character set that a header names, in lower case.
fn charset(header: &str) -> String {
    header
        .split(';')
        .skip(1)
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .map(|(_, value)| value.trim().trim_matches('"').to_ascii_lowercase())
        .unwrap_or_default()
}

/// Reads UTF-8, UTF-16 and the sets that most of the old web is in. Of any other, what is ASCII
/// comes through.
fn decode(body: &[u8], charset: &str) -> String {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|two| unit([two[0], two[1]]));
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match body {
        [0xef, 0xbb, 0xbf, rest @ ..] => return String::from_utf8_lossy(rest).into_owned(),
        [0xff, 0xfe, rest @ ..] => return utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return utf16(rest, u16::from_be_bytes),
        _ => {}
    }
    match charset {
        "utf-16" | "utf-16le" => utf16(body, u16::from_le_bytes),
        "utf-16be" => utf16(body, u16::from_be_bytes),
        "iso-8859-1" | "latin1" | "windows-1252" | "cp1252" | "us-ascii" | "ascii" => {
            body.iter().map(|byte| windows_1252(*byte)).collect()
        }
        _ => String::from_utf8_lossy(body).into_owned(),
    }
}

/// The one that stands for both: servers that say `iso-8859-1` send this.
fn windows_1252(byte: u8) -> char {
    const UPPER: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => UPPER[usize::from(byte - 0x80)],
        byte => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(content_type: Option<&str>, body: &[u8]) -> Response {
        let headers = content_type
            .map(|value| ("content-type".to_owned(), value.to_owned()))
            .into_iter()
            .collect();
        Response { status: 200, headers, body: body.to_vec(), is_cut: false }
    }

    #[test]
    fn a_body_is_what_the_server_says_and_else_what_it_looks_like() {
        let html = |text: &str| Content::Html(text.to_owned());
        let text = |text: &str| Content::Text(text.to_owned());
        let binary = |kind: Option<&str>| Content::Binary(kind.map(str::to_owned));
        for (content_type, body, expected) in [
            (Some("text/html"), &b"x"[..], html("x")),
            (Some("Text/HTML; charset=utf-8"), "ä".as_bytes(), html("ä")),
            (Some("application/xhtml+xml"), b"x", html("x")),
            (Some("text/plain"), b"<html>", text("<html>")),
            (Some("text/plain; charset=\"ISO-8859-1\""), b"\xe4\x80", text("ä€")),
            (Some("text/plain; charset=utf-16le"), b"a\0b\0", text("ab")),
            (Some("text/plain"), b"\xff\xfea\0", text("a")),
            (Some("text/plain"), b"\xef\xbb\xbfa", text("a")),
            (Some("text/plain; charset=koi8-r"), b"a\xc1", text("a\u{fffd}")),
            (Some("application/json"), b"{}", text("{}")),
            (Some("application/problem+json"), b"{}", text("{}")),
            (Some("image/svg+xml"), b"<svg/>", text("<svg/>")),
            (Some("image/png"), b"x", binary(Some("image/png"))),
            (Some("application/octet-stream"), b"x", binary(Some("application/octet-stream"))),
            (None, b" <!DOCTYPE html><p>", html(" <!DOCTYPE html><p>")),
            (None, b"<HTML>", html("<HTML>")),
            (None, b"plain", text("plain")),
            (None, b"\0", binary(None)),
        ] {
            assert_eq!(read(&response(content_type, body)), expected, "{content_type:?} {body:?}");
        }
    }
}
