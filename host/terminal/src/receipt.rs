//! Receipts and results in words and numbers that people read: times and sizes, not fuel.

use belljar_types::{Content, Receipt, ToolError};

/// Paths that are named before the rest is counted.
const NAMED: usize = 3;

/// A receipt in one line.
pub fn line(receipt: &Receipt) -> String {
    let times = receipt.times;
    let total = times.waiting_us.saturating_add(times.instantiate_us).saturating_add(times.run_us);
    let mut said = vec![milliseconds(total)];
    if receipt.read_only {
        said.push("read-only".to_owned());
    }
    said.extend(paths("read", &receipt.files_read));
    said.extend(paths("wrote", &receipt.files_written));
    said.extend(paths("contacted", &receipt.hosts));
    if receipt.bytes_out > 0 {
        said.push(format!("{} out", size(receipt.bytes_out)));
    }
    if receipt.peak_memory_bytes > 0 {
        said.push(format!("{} memory", size(receipt.peak_memory_bytes)));
    }
    said.extend(receipt.denied.iter().take(NAMED).map(|denial| {
        format!("refused: {} `{}` ({})", denial.operation, denial.target, denial.reason)
    }));
    if receipt.denied.len() > NAMED {
        said.push(format!("{} more refused", receipt.denied.len() - NAMED));
    }
    said.join(" · ")
}

/// How far a call is.
pub fn progress(done: u64, total: Option<u64>, message: &str) -> String {
    let of = total.map(|total| format!("/{total}")).unwrap_or_default();
    format!("{done}{of} {message}").trim_end().to_owned()
}

/// Content that is no text, by what it is.
pub fn content(content: &Content) -> String {
    let (kind, blob) = match content {
        Content::Text { text } => return format!("text, {}", size(text.len() as u64)),
        Content::Link { uri, .. } => return format!("link to {uri}"),
        Content::Image(blob) => ("image", blob),
        Content::Audio(blob) => ("audio", blob),
        Content::File(blob) => ("file", blob),
    };
    format!("{kind}, {}, {}", blob.media_type, size(blob.data.len() as u64))
}

/// The kind of a failure and what it says, once: the texts of refusals begin with the kind.
pub fn failure(error: &ToolError) -> String {
    let kind = error.kind.name();
    if error.message.starts_with(kind) { error.message.clone() } else { error.to_string() }
}

fn paths(verb: &str, paths: &[String]) -> Option<String> {
    let named = paths.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match paths.len() {
        0 => None,
        count if count > NAMED => Some(format!("{verb} {named} and {} more", count - NAMED)),
        _ => Some(format!("{verb} {named}")),
    }
}

pub fn milliseconds(micros: u64) -> String {
    match micros {
        0..10_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        10_000..10_000_000 => format!("{} ms", micros / 1000),
        _ => format!("{} s", micros / 1_000_000),
    }
}

pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{} MiB", bytes.div_ceil(1_048_576)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_types::{
        Action, CallTimes, DecidedBy, Decision, Denial, PermissionMode, ToolErrorKind, ToolSource,
    };

    fn receipt() -> Receipt {
        Receipt {
            source: ToolSource { plugin: "files".into(), digest: "sha256:0".into() },
            tool: "read_file".to_owned(),
            decision: Decision {
                action: Action::Allow,
                by: DecidedBy::Mode { mode: PermissionMode::Default },
            },
            read_only: true,
            fuel_used: 1,
            fuel_limit: 2,
            peak_memory_bytes: 3 << 20,
            times: CallTimes { waiting_us: 100, instantiate_us: 200, run_us: 3_050, host_us: 0 },
            bytes_in: 10,
            bytes_out: 1025,
            files_read: vec!["a".to_owned(), "b".to_owned(), "c".to_owned(), "d".to_owned()],
            files_written: Vec::new(),
            hosts: Vec::new(),
            denied: vec![Denial {
                operation: "read".to_owned(),
                target: "/etc/passwd".to_owned(),
                reason: "outside".to_owned(),
                grant: None,
            }],
            error: None,
            log: String::new(),
        }
    }

    #[test]
    fn a_receipt_says_time_reach_and_size() {
        assert_eq!(
            line(&receipt()),
            "3.3 ms · read-only · read a, b, c and 1 more · 2 KiB out · 3 MiB memory · refused: \
             read `/etc/passwd` (outside)"
        );
    }

    #[test]
    fn times_and_sizes_are_for_people() {
        assert_eq!([99, 10_000, 12_345_678].map(milliseconds), ["0.0 ms", "10 ms", "12 s"]);
        assert_eq!([0, 1023, 1024, 2 << 20].map(size), ["0 B", "1023 B", "1 KiB", "2 MiB"]);
    }

    #[test]
    fn a_failure_names_its_kind_once() {
        let denied = |message| ToolError::new(ToolErrorKind::Denied, message);
        assert_eq!(failure(&denied("denied: no")), "denied: no");
        assert_eq!(failure(&denied("no")), "denied: no");
    }
}
