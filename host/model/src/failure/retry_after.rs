//! How long a server asks to wait.

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
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
}
