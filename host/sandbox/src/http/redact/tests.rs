use super::*;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::json;

const SECRET: &str = "s3cr+t/\"Ä& v?lue";

fn redactor() -> Arc<Redactor> {
    Arc::new(Redactor::new([("KEY", SECRET)]).unwrap())
}

/// Every form that a test has of the secret.
fn spellings() -> Vec<String> {
    let bytes = SECRET.as_bytes();
    let mut spellings = vec![
        SECRET.to_owned(),
        "s3cr%2Bt%2F%22%C3%84%26%20v%3Flue".to_owned(),
        "s3cr%2bt%2f%22%c3%84%26%20v%3flue".to_owned(),
        "s3cr%2Bt%2F%22%C3%84%26+v%3Flue".to_owned(),
        "s3cr+t/%22%C3%84&%20v%3Flue".to_owned(),
        "s3cr+t/\\\"Ä& v?lue".to_owned(),
        "s3cr+t\\/\\\"Ä& v?lue".to_owned(),
        "s3cr+t/\\\"Ä\\u0026 v?lue".to_owned(),
        "s3cr\\u002Bt/\\\"Ä\\u0026 v?lue".to_owned(),
        "s3cr+t/&quot;Ä&amp; v?lue".to_owned(),
        "s3cr+t/&#34;Ä&amp; v?lue".to_owned(),
        bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
        bytes.iter().map(|byte| format!("%{byte:02X}")).collect(),
    ];
    for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
        for around in ["", "a", "ab", "abc", "user:"] {
            spellings.push(engine.encode(format!("{around}{SECRET}")));
            spellings.push(engine.encode(format!("{around}{SECRET}{around}")));
        }
    }
    spellings
}

/// Whether anything of a base64 text that depends on the secret alone is left, by decoding it at
/// every place.
fn tells(text: &str) -> bool {
    let plain = text.replace('-', "+").replace('_', "/");
    let whole = (0..plain.len()).any(|start| {
        let rest: String = plain[start..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "+/".contains(*c))
            .collect();
        let rest = &rest[..rest.len() / 4 * 4];
        STANDARD.decode(rest).is_ok_and(|bytes| {
            bytes.windows(6).any(|window| SECRET.as_bytes().windows(6).any(|part| part == window))
        })
    });
    whole || text.contains(SECRET)
}

#[test]
fn every_form_is_found() {
    let redactor = redactor();
    for spelling in spellings() {
        let shown = redactor.text(&format!("before {spelling} after"));
        assert!(shown.contains("[secret KEY]"), "{spelling}: {shown}");
        assert!(!tells(&shown), "{spelling}: {shown}");
        assert!(shown.starts_with("before ") && shown.ends_with(" after"), "{shown}");
    }
    assert_eq!(redactor.text("nothing of it"), "nothing of it");
}

#[test]
fn a_stream_cut_anywhere_shows_what_the_whole_shows() {
    let redactor = redactor();
    for spelling in spellings() {
        let whole = format!("x{spelling}{spelling}y{}z", &spelling[..4]);
        let expected = redactor.bytes(whole.as_bytes());
        for size in 1..whole.len() {
            let mut stream = redactor.stream();
            let mut shown = Vec::new();
            for piece in whole.as_bytes().chunks(size) {
                shown.extend(stream.push(piece));
            }
            shown.extend(stream.finish());
            assert_eq!(shown, expected, "{spelling} in pieces of {size}");
        }
    }
}

#[test]
fn json_is_redacted_in_values_and_names() {
    let mut value = json!({ "a": [SECRET, 1, null], (SECRET): { "b": format!("x{SECRET}") } });
    redactor().json(&mut value);
    assert_eq!(
        value,
        json!({ "a": ["[secret KEY]", 1, null], "[secret KEY]": { "b": "x[secret KEY]" } })
    );
}

#[test]
fn headers_are_redacted_in_values_and_left_out_by_name() {
    let redactor = Redactor::new([("KEY", "secret-value")]).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("x-secret-value", HeaderValue::from_static("1"));
    headers.append("x-echo", HeaderValue::from_static("Bearer secret-value"));
    headers.append("x-echo", HeaderValue::from_static("c2VjcmV0LXZhbHVl"));
    headers.append("x-other", HeaderValue::from_static("plain"));
    redactor.headers(&mut headers);
    let mut shown: Vec<_> =
        headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    shown.sort_unstable();
    assert_eq!(
        shown,
        [("x-echo", "Bearer [secret KEY]"), ("x-echo", "[secret KEY]"), ("x-other", "plain")]
    );
}

#[test]
fn where_there_is_nothing_to_find_there_is_no_redactor() {
    assert!(Redactor::new([]).is_none());
    assert!(Redactor::new([("KEY", "")]).is_none());
}
