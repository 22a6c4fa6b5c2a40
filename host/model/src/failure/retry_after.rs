//! How long a server asks to wait.

use crate::decode::text;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// Some servers give milliseconds in a header of their own.
const RETRY_AFTER_MS: &str = "retry-after-ms";

/// No wait is longer: a figure that is off the scale would otherwise overflow a clock.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The least wait: seconds, milliseconds, or the time until a date. A date is compared with the
/// server's own clock where it tells, since ours may differ.
pub(crate) fn read(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(wait) = text(RETRY_AFTER_MS).and_then(|text| duration(text, 1e-3)) {
        return Some(wait);
    }
    let value = text(RETRY_AFTER.as_str())?;
    if let Some(milliseconds) = value.strip_suffix("ms") {
        return duration(milliseconds.trim_end(), 1e-3);
    }
    if let Some(wait) = duration(value.trim_end_matches('s').trim_end(), 1.0) {
        return Some(wait);
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let now = text(DATE.as_str())
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .unwrap_or_else(SystemTime::now);
    Some(until.duration_since(now).unwrap_or_default().min(LONGEST))
}

/// Google names the wait in the details of an error: `"retryDelay": "34.5s"`.
pub(crate) fn in_details(error: &Value) -> Option<Duration> {
    let details = error["details"].as_array()?;
    details.iter().find_map(|detail| seconds(text(detail, "retryDelay")))
}

/// OpenAI names it in the message alone where the error comes in the middle of a stream: `Please
/// try again in 1.5s.`
pub(crate) fn in_words(message: &str) -> Option<Duration> {
    let (_, rest) = message.split_once("try again in ")?;
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
    let wait = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
    match wait.strip_suffix("ms") {
        Some(milliseconds) => duration(milliseconds, 1e-3),
        None => match wait.split_once('m') {
            Some((minutes, rest)) => {
                let minutes = duration(minutes, 60.0)?;
                Some(if rest.is_empty() { minutes } else { minutes + seconds(rest)? }.min(LONGEST))
            }
            None => seconds(wait),
        },
    }
}

fn seconds(text: &str) -> Option<Duration> {
    duration(text.strip_suffix('s')?, 1.0)
}

fn duration(text: &str, unit: f64) -> Option<Duration> {
    let seconds = text.parse::<f64>().ok().filter(|number| *number >= 0.0)? * unit;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn wait(headers: &[(&str, &str)]) -> Option<Duration> {
        read(
            &headers
                .iter()
                .map(|(name, value)| {
                    (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
                })
                .collect(),
        )
    }

    #[test]
    fn seconds_milliseconds_and_dates_are_read() {
        let date = ("date", "Tue, 15 Nov 1994 08:12:31 GMT");
        for (headers, want) in [
            (vec![("retry-after", "2")], Some(Duration::from_secs(2))),
            (vec![("retry-after", "0.5")], Some(Duration::from_millis(500))),
            (vec![("retry-after", "7s")], Some(Duration::from_secs(7))),
            (vec![("retry-after", "1500ms")], Some(Duration::from_millis(1500))),
            (
                vec![("retry-after-ms", "120"), ("retry-after", "9")],
                Some(Duration::from_millis(120)),
            ),
            (
                vec![("retry-after", "Tue, 15 Nov 1994 08:12:41 GMT"), date],
                Some(Duration::from_secs(10)),
            ),
            (vec![("retry-after", "Tue, 15 Nov 1994 08:12:11 GMT"), date], Some(Duration::ZERO)),
            (vec![("retry-after", "1e300")], Some(LONGEST)),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "soon")], None),
            (vec![], None),
        ] {
            assert_eq!(wait(&headers), want, "{headers:?}");
        }
    }

    #[test]
    fn a_wait_that_the_error_itself_names_is_read() {
        for (message, want) in [
            ("Rate limit reached. Please try again in 1.5s. Visit", Some(1500)),
            ("Please try again in 20ms.", Some(20)),
            ("Please try again in 6m0s", Some(360_000)),
            ("Please try again in 2m.", Some(120_000)),
            ("Please try again in a while.", None),
            ("Please try again in 12 hours", None),
            ("try again in -1s", None),
            ("try again in ", None),
            ("Please try again later", None),
        ] {
            assert_eq!(in_words(message), want.map(Duration::from_millis), "{message}");
        }
        let error = serde_json::json!({"details": [
            {"@type": "type.googleapis.com/google.rpc.Help"},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},
        ]});
        assert_eq!(in_details(&error), Some(Duration::from_millis(34_500)));
        assert_eq!(in_details(&serde_json::json!({"details": "none"})), None);
    }
}
