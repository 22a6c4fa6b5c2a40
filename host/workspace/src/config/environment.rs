//! The variables that set something.

use super::{
    Config, ConfigError, Setting, Source, at_least_one, list, nearest, parse_model,
    parse_permission_mode,
};
use std::ffi::{OsStr, OsString};

const MODEL: &str = "BELLJAR_MODEL";
const PERMISSION_MODE: &str = "BELLJAR_PERMISSION_MODE";
const MAX_TURNS: &str = "BELLJAR_MAX_TURNS";
const MAX_OUTPUT_TOKENS: &str = "BELLJAR_MAX_OUTPUT_TOKENS";
const CONTEXT_WINDOW: &str = "BELLJAR_CONTEXT_WINDOW";
const KNOWN: [&str; 5] = [MODEL, PERMISSION_MODE, MAX_TURNS, MAX_OUTPUT_TOKENS, CONTEXT_WINDOW];

/// Reads the variables. An unknown one is a notice and no error: it may have been set for another
/// version, or for a program of the user's own. An empty one counts as absent.
pub(super) fn parse(
    environment: Vec<(OsString, OsString)>,
) -> Result<(Config, Vec<String>), ConfigError> {
    let mut config = Config::default();
    let mut notices = Vec::new();
    for (name, value) in environment {
        let name = name.to_string_lossy();
        if !name.starts_with("BELLJAR_") || value.is_empty() {
            continue;
        }
        match name.as_ref() {
            MODEL => config.model = Some(read(MODEL, &value, parse_model)?),
            PERMISSION_MODE => {
                config.permission_mode =
                    Some(read(PERMISSION_MODE, &value, parse_permission_mode)?);
            }
            MAX_TURNS => config.max_turns = Some(read(MAX_TURNS, &value, number)?),
            MAX_OUTPUT_TOKENS => {
                config.max_output_tokens = Some(read(MAX_OUTPUT_TOKENS, &value, number)?);
            }
            CONTEXT_WINDOW => {
                config.context_window = Some(read(CONTEXT_WINDOW, &value, number)?);
            }
            unknown => notices.push(unknown_notice(unknown)),
        }
    }
    notices.sort();
    Ok((config, notices))
}

fn read<T>(
    name: &'static str,
    value: &OsStr,
    check: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Setting<T>, ConfigError> {
    let source = Source::Environment(name);
    match value.to_str().ok_or_else(|| "the value is not UTF-8".to_owned()).and_then(check) {
        Ok(value) => Ok(Setting { value, source }),
        Err(problem) => Err(ConfigError::Value { at: source, problem }),
    }
}

fn number(text: &str) -> Result<u32, String> {
    let number = text
        .parse()
        .map_err(|_| format!("`{text}` is not a whole number from 1 to {}", u32::MAX))?;
    at_least_one(number)
}

fn unknown_notice(name: &str) -> String {
    match nearest(name, &KNOWN) {
        Some(near) => {
            format!("the environment variable `{name}` sets nothing: did you mean `{near}`?")
        }
        None => format!(
            "the environment variable `{name}` sets nothing: the known ones are {}",
            list(KNOWN)
        ),
    }
}
