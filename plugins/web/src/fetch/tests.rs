use super::*;
use belljar_sdk::{
    Content as Piece,
    http::{Error, Request, Response},
};
use std::time::Duration;

fn arguments(url: &str) -> FetchUrl {
    FetchUrl { url: url.to_owned(), offset: None, limit: None, html: false }
}

fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
    let headers =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Response { status, headers, body: body.as_bytes().to_vec(), is_cut: false }
}

fn html(body: &str) -> Response {
    response(200, &[("content-type", "text/html; charset=utf-8")], body)
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

/// Fetches from a table of what is where.
fn fetch_from(
    arguments: &FetchUrl,
    web: &[(&str, Response)],
) -> (Result<Output, Failure>, Vec<String>) {
    let mut asked = Vec::new();
    let result = fetch(arguments, &mut |request: &Request| {
        asked.push(request.url().to_owned());
        let found = web.iter().find(|(url, _)| *url == request.url());
        found.map(|(_, response)| response.clone()).ok_or(Error::NoName)
    });
    (result, asked)
}

#[test]
fn a_page_comes_as_markdown() {
    let page = html(
        "<!doctype html><html><head><title>A &amp; B</title><style>p{}</style></head><body>\
         <script>no()</script><h2>Things</h2><p>One <b>bold</b> <a href=\"/x\">link</a>.</p>\
         <ul><li>first<li>second</ul><pre><code>let x;\n</code></pre></body></html>",
    );
    let (output, asked) =
        fetch_from(&arguments("https://a.test/p#part"), &[("https://a.test/p", page)]);
    assert_eq!(asked, ["https://a.test/p"]);
    assert_eq!(
        texts(&output.unwrap()),
        [
            "# A & B\n\n## Things\n\nOne **bold** [link](/x).\n\n- first\n- second\n\n```\nlet x;\n```\n"
        ]
    );
}

#[test]
fn html_and_other_texts_come_as_they_are_where_asked_for() {
    let source = "<p>x</p>";
    let web = [
        ("https://a.test/", html(source)),
        ("https://a.test/j", response(200, &[("content-type", "application/json")], "{\"a\":1}")),
        ("https://a.test/b", response(200, &[("content-type", "application/zip")], "PK")),
        ("https://a.test/e", html("")),
    ];
    let whole = FetchUrl { html: true, ..arguments("https://a.test/") };
    assert_eq!(texts(&fetch_from(&whole, &web).0.unwrap()), ["<p>x</p>\n"]);
    let json = fetch_from(&arguments("https://a.test/j"), &web).0.unwrap();
    assert_eq!(texts(&json), ["{\"a\":1}\n"]);
    let zip = fetch_from(&arguments("https://a.test/b"), &web).0.unwrap();
    assert_eq!(
        texts(&zip),
        [format!("[`https://a.test/b` is not text: application/zip, {}]", bytes(2))]
    );
    let empty = fetch_from(&arguments("https://a.test/e"), &web).0.unwrap();
    assert_eq!(texts(&empty), ["[there is no text]"]);
}

#[test]
fn redirects_are_followed_one_request_each_and_not_for_ever() {
    let to = |location: &str| response(302, &[("location", location)], "");
    let web = [
        ("https://a.test/1", to("/2?q")),
        ("https://a.test/2?q", to("//b.test/3")),
        ("https://b.test/3", to("4#part")),
        ("https://b.test/4", response(200, &[("content-type", "text/plain")], "there")),
        ("https://a.test/loop", to("loop")),
        ("https://a.test/out", to("file:///etc/passwd")),
        ("https://a.test/none", response(304, &[], "")),
    ];
    let (output, asked) = fetch_from(&arguments("https://a.test/1"), &web);
    assert_eq!(
        asked,
        ["https://a.test/1", "https://a.test/2?q", "https://b.test/3", "https://b.test/4"]
    );
    assert_eq!(texts(&output.unwrap()), ["there\n", "[from `https://b.test/4#part`]"]);

    let (output, asked) = fetch_from(&arguments("https://a.test/loop"), &web);
    assert_eq!(asked.len(), 6);
    assert!(output.unwrap_err().to_string().contains("more than 5 redirects"));
    let (output, asked) = fetch_from(&arguments("https://a.test/out"), &web);
    assert_eq!(asked.len(), 1);
    assert!(output.unwrap_err().to_string().contains("neither http nor https"));
    let (output, _) = fetch_from(&arguments("https://a.test/none"), &web);
    assert_eq!(
        output.unwrap_err(),
        Failure::failed("`https://a.test/none` answered 304 Not Modified")
    );
}

#[test]
fn a_status_that_is_no_success_is_a_failure_with_what_the_page_says() {
    let web = [
        ("https://a.test/1", {
            let mut page = html("<h1>Gone</h1>");
            page.status = 404;
            page
        }),
        ("https://a.test/2", response(503, &[("retry-after", "7")], "busy")),
    ];
    assert_eq!(
        fetch_from(&arguments("https://a.test/1"), &web).0.unwrap_err(),
        Failure::failed("`https://a.test/1` answered 404 Not Found:\n# Gone")
    );
    assert_eq!(
        fetch_from(&arguments("https://a.test/2"), &web).0.unwrap_err(),
        Failure::unavailable_for(
            "`https://a.test/2` answered 503 Service Unavailable:\nbusy",
            Duration::from_secs(7)
        )
    );
}

#[test]
fn a_long_page_is_read_in_pages() {
    let body: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    let web = [("https://a.test/", response(200, &[("content-type", "text/plain")], &body))];
    let part = FetchUrl { offset: Some(11), limit: Some(2), ..arguments("https://a.test/") };
    assert_eq!(
        texts(&fetch_from(&part, &web).0.unwrap()),
        ["line 11\nline 12\n", "[lines 11 to 12 of 30; read on with `offset` 13]"]
    );
}

#[test]
fn a_page_made_to_break_the_reader_is_still_read() {
    let nested = format!("{}deep{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
    assert_eq!(markdown(&nested), "deep\n");
    let tables = format!("{}deep", "<table><tr><td>".repeat(50_000));
    assert_eq!(markdown(&tables), "deep\n");
    // Deep, but a page.
    let page = format!("{}deep{}", "<div>".repeat(DEPTH), "</div>".repeat(DEPTH));
    assert_eq!(markdown(&page), "deep");
    for rows in ["<p>x", "<li>x", "<tr><td>x<td>y", "<dt>x<dd>y", "<br>x", "<b>x</b>"] {
        assert!(!is_deep(&rows.repeat(1_000)), "{rows}");
    }
    let paragraphs = "<p>x".repeat(1_000);
    assert_eq!(markdown(&paragraphs).lines().filter(|line| *line == "x").count(), 1_000);
}
