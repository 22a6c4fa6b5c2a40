//! What was denied in a run, and the line that would allow exactly that.

use super::receipt;
use crate::visible;
use belljar_types::{Denial, Receipt, ToolErrorKind, ToolResult};

/// Characters of the line of one denial.
const LINE: usize = 300;

/// The denials of a run so far, each once.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    lines: Vec<String>,
}

impl Denials {
    /// Takes the end of a call. `answered` says that a person decided about it.
    pub(crate) fn add(&mut self, result: &ToolResult, receipt: Option<&Receipt>, answered: bool) {
        let Err(error) = &result.outcome else { return };
        if error.kind != ToolErrorKind::Denied {
            return;
        }
        let tool = &result.tool;
        let said_no = format!("`{tool}`: you said no");
        let line = match (receipt, &error.remedy) {
            _ if answered => said_no,
            // Refused again on the strength of that answer.
            (None, _) if self.lines.contains(&said_no) => said_no,
            (Some(receipt), _) if !receipt.denied.is_empty() => {
                let denied: Vec<_> = receipt.denied.iter().map(denial).collect();
                format!("`{tool}`: {}", denied.join(", "))
            }
            (_, Some(remedy)) => format!("`{tool}`: `{remedy}` allows it"),
            (_, None) => format!("`{tool}`: {}", receipt::failure(error)),
        };
        let line = visible::short(&line, LINE);
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    /// All of them, for the end of a run.
    pub(crate) fn summary(&self) -> Option<String> {
        if self.lines.is_empty() {
            return None;
        }
        let lines: String = self.lines.iter().map(|line| format!("\n  {line}")).collect();
        Some(format!("denied in this run:{lines}"))
    }
}

/// One thing that was refused, and what would grant it.
pub(crate) fn denial(denial: &Denial) -> String {
    let Denial { operation, target, reason, grant } = denial;
    let what = format!("{operation} `{target}` ({reason})");
    match grant {
        Some(grant) => format!("{what}; `--grant '{grant}'` allows it"),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::receipt::tests::receipt;
    use belljar_types::{Origin, ToolError};

    fn denied(tool: &str, remedy: Option<&str>) -> ToolResult {
        let error = ToolError::new(ToolErrorKind::Denied, "no");
        ToolResult {
            call_id: "1".to_owned(),
            tool: tool.to_owned(),
            outcome: Err(ToolError { remedy: remedy.map(str::to_owned), ..error }),
            origin: Origin::Host,
        }
    }

    #[test]
    fn each_denial_is_summed_up_once_with_what_would_allow_it() {
        let mut denials = Denials::default();
        assert_eq!(denials.summary(), None);
        let allow = Some("--allow files/edit_file");
        for (tool, remedy) in [("edit_file", allow), ("edit_file", allow), ("delete_path", None)] {
            denials.add(&denied(tool, remedy), None, false);
        }
        denials.add(&denied("read_file", None), Some(&receipt()), false);
        denials.add(&denied("move_path", None), None, true);
        let mut granted = receipt();
        granted.denied[0].grant = Some("weather.read=data".to_owned());
        denials.add(&denied("weather__now", None), Some(&granted), false);
        assert_eq!(
            denials.summary().unwrap(),
            "denied in this run:\n  `edit_file`: `--allow files/edit_file` allows it\n  \
             `delete_path`: denied: no\n  `read_file`: read `/etc/passwd` (outside)\n  \
             `move_path`: you said no\n  `weather__now`: read `/etc/passwd` (outside); \
             `--grant 'weather.read=data'` allows it"
        );
    }
}
