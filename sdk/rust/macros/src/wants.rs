//! The wants in `plugin!`, and the manifest that they become. What a want means is the host's to
//! check; here it only has to be written as one.

use proc_macro2::Span;
use std::fmt::Write as _;
use syn::{
    Error, Ident, LitStr, Result, Token, braced, bracketed,
    ext::IdentExt,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

const CAPABILITIES: [&str; 5] = ["files", "net", "env", "secrets", "limits"];
/// Bytes of a text, as the host takes it.
const TEXT: usize = 300;
const VERSION: usize = 64;

mod word {
    syn::custom_keyword!(because);
    syn::custom_keyword!(read);
    syn::custom_keyword!(write);
}

/// What a plugin asks for, as pieces of JSON, one list for each capability.
#[derive(Debug, Default)]
pub(crate) struct Wants {
    files: Vec<String>,
    net: Vec<String>,
    env: Vec<String>,
    secrets: Vec<String>,
    limits: Vec<String>,
}

impl Wants {
    /// The manifest of the crate that is being compiled.
    pub(crate) fn manifest(&self) -> Vec<u8> {
        let package = |name: &str| std::env::var(name).unwrap_or_default();
        let version = cut(&package("CARGO_PKG_VERSION"), VERSION).to_owned();
        let description = package("CARGO_PKG_DESCRIPTION");
        let description = cut(description.lines().next().unwrap_or_default(), TEXT);
        let list = |name: &str, wants: &[String]| format!("{}:[{}]", json(name), wants.join(","));
        let wants = [
            list("files", &self.files),
            list("net", &self.net),
            list("env", &self.env),
            list("secrets", &self.secrets),
            format!("{}:{{{}}}", json("limits"), self.limits.join(",")),
        ];
        let manifest = format!(
            r#"{{"manifest":1,"version":{},"description":{},"wants":{{{}}}}}"#,
            json(&version),
            json(description),
            wants.join(",")
        );
        manifest.into_bytes()
    }
}

impl Parse for Wants {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let content;
        braced!(content in input);
        let mut wants = Self::default();
        let mut given: Vec<Ident> = Vec::new();
        while !content.is_empty() {
            let capability = Ident::parse_any(&content)?;
            if given.contains(&capability) {
                return Err(Error::new(
                    capability.span(),
                    format!("`{capability}` is given twice"),
                ));
            }
            content.parse::<Token![:]>()?;
            match capability.to_string().as_str() {
                "files" => wants.files = list(&content, files)?,
                "net" => wants.net = list(&content, net)?,
                "env" => wants.env = list(&content, env)?,
                "secrets" => wants.secrets = list(&content, secret)?,
                "limits" => wants.limits = list(&content, limit)?,
                unknown => {
                    return Err(Error::new(
                        capability.span(),
                        format!(
                            "a plugin cannot want `{unknown}`: expected one of {}",
                            CAPABILITIES.map(|name| format!("`{name}`")).join(", ")
                        ),
                    ));
                }
            }
            given.push(capability);
            if !content.is_empty() {
                content.parse::<Token![,]>()?;
            }
        }
        Ok(wants)
    }
}

fn list(input: ParseStream<'_>, one: fn(ParseStream<'_>) -> Result<String>) -> Result<Vec<String>> {
    let content;
    bracketed!(content in input);
    let wants = Punctuated::<String, Token![,]>::parse_terminated_with(&content, one)?;
    Ok(wants.into_iter().collect())
}

/// `read "data" because "…"`
fn files(input: ParseStream<'_>) -> Result<String> {
    let write = if input.peek(word::write) {
        input.parse::<word::write>()?;
        true
    } else if input.peek(word::read) {
        input.parse::<word::read>()?;
        false
    } else {
        return Err(input.error("a folder is wanted to `read` or to `write`: `read \"data\"`"));
    };
    let path = text(input)?;
    Ok(format!(r#"{{"path":{path},"write":{write},"why":{}}}"#, why(input)?))
}

/// `"https://api.example.com" because "…"`
fn net(input: ParseStream<'_>) -> Result<String> {
    let host = text(input)?;
    Ok(format!(r#"{{"host":{host},"why":{}}}"#, why(input)?))
}

/// `"TZ" because "…"`
fn env(input: ParseStream<'_>) -> Result<String> {
    let name = text(input)?;
    Ok(format!(r#"{{"name":{name},"why":{}}}"#, why(input)?))
}

/// `"API_KEY" for "api.example.com" in "authorization" because "…"`
fn secret(input: ParseStream<'_>) -> Result<String> {
    let name = text(input)?;
    input.parse::<Token![for]>()?;
    let host = text(input)?;
    input.parse::<Token![in]>()?;
    let header = text(input)?;
    let why = why(input)?;
    Ok(format!(r#"{{"name":{name},"host":{host},"header":{header},"why":{why}}}"#))
}

/// `deadline "60s" because "…"`
fn limit(input: ParseStream<'_>) -> Result<String> {
    let name = Ident::parse_any(input)?.to_string();
    let value = text(input)?;
    Ok(format!(r#"{}:{{"value":{value},"why":{}}}"#, json(&name), why(input)?))
}

/// Every want has its reason: it is what a person decides by.
fn why(input: ParseStream<'_>) -> Result<String> {
    if !input.peek(word::because) {
        return Err(input.error("a want has a reason, for the person who decides: `because \"…\"`"));
    }
    input.parse::<word::because>()?;
    text(input)
}

fn text(input: ParseStream<'_>) -> Result<String> {
    let literal: LitStr = input.parse()?;
    let text = literal.value();
    let wrong = |message: String, span: Span| Err(Error::new(span, message));
    if text.trim().is_empty() || text.contains(['\n', '\r']) {
        return wrong("write one line of text".to_owned(), literal.span());
    }
    if text.len() > TEXT {
        return wrong(format!("a text has at most {TEXT} bytes"), literal.span());
    }
    Ok(json(&text))
}

/// A string of JSON.
fn json(text: &str) -> String {
    let mut string = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => string.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(string, "\\u{:04x}", u32::from(c));
            }
            c => string.push(c),
        }
    }
    string.push('"');
    string
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> std::result::Result<String, String> {
        let wants: Wants = syn::parse_str(text).map_err(|error| error.to_string())?;
        let manifest = String::from_utf8(wants.manifest()).unwrap();
        Ok(manifest.split_once(r#""wants":"#).unwrap().1.to_owned())
    }

    #[test]
    fn wants_become_the_manifest() {
        let text = r#"{
            files: [read "data" because "the \"sets\"", write "." because "results"],
            net: ["https://api.example.com" because "forecasts"],
            env: ["TZ" because "times"],
            secrets: ["KEY" for "api.example.com" in "authorization" because "to log in"],
            limits: [deadline "60s" because "slow"],
        }"#;
        let expected = concat!(
            r#"{"files":[{"path":"data","write":false,"why":"the \"sets\""},"#,
            r#"{"path":".","write":true,"why":"results"}],"#,
            r#""net":[{"host":"https://api.example.com","why":"forecasts"}],"#,
            r#""env":[{"name":"TZ","why":"times"}],"#,
            r#""secrets":[{"name":"KEY","host":"api.example.com","header":"authorization","#,
            r#""why":"to log in"}],"limits":{"deadline":{"value":"60s","why":"slow"}}}}"#,
        );
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(
            parse("{}").unwrap(),
            r#"{"files":[],"net":[],"env":[],"secrets":[],"limits":{}}}"#
        );
    }

    #[test]
    fn what_is_no_want_is_said() {
        for (text, says) in [
            (r#"{ disk: [] }"#, "cannot want `disk`"),
            (r#"{ files: ["data" because "x"] }"#, "to `read` or to `write`"),
            (r#"{ files: [read "data"] }"#, "a want has a reason"),
            (r#"{ net: ["x" because ""] }"#, "one line of text"),
            (r#"{ env: [], env: [] }"#, "given twice"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
