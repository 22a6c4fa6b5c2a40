//! Receipts and results in words and numbers that people read, as the session at the terminal says
//! them too.

pub(crate) use belljar_terminal::receipt::{content, failure, line, milliseconds, progress, size};

#[cfg(test)]
pub(crate) mod tests {
    use belljar_types::{
        Action, CallTimes, DecidedBy, Decision, Denial, PermissionMode, Receipt, ToolSource,
    };

    pub(crate) fn receipt() -> Receipt {
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
}
