//! `belljar doctor`: what is set up, what is missing, and the line that mends it.
//!
//! It looks and changes nothing, starts no plugin, shows no key, and goes on past whatever is
//! broken, since that is what it is there to tell.

mod finding;
mod folders;
mod machine;
mod plugins;
mod settings;

use crate::{arguments::DoctorArguments, exit, screen::SharedScreen, visible};
use belljar_workspace::Places;
use finding::{Finding, Status};
use serde::Serialize;

/// Everything, for `--json`.
#[derive(Serialize)]
struct Report<'a> {
    /// Nothing is a problem.
    ok: bool,
    findings: &'a [Finding],
}

pub(crate) async fn doctor(arguments: DoctorArguments, screen: SharedScreen) -> anyhow::Result<u8> {
    let mut findings = vec![machine::version()];
    match Places::from_env() {
        Ok(places) => {
            let settings = settings::read(&places, &arguments).await;
            findings.extend(folders::findings(&places));
            findings.extend(plugins::findings(&places, &arguments.plugins.folders, &settings));
            findings.splice(1..1, settings.findings);
        }
        Err(error) => findings.push(Finding::problem("folders", error.to_string())),
    }
    findings.extend(machine::findings().await);
    let ok = findings.iter().all(|finding| finding.status != Status::Problem);
    let shown = if arguments.json {
        screen.lock().json(&Report { ok, findings: &findings })
    } else {
        let text: String = findings.iter().map(shown).collect();
        screen.lock().product(&text)
    };
    match shown {
        Err(error) => exit::of_write_error(error),
        Ok(()) => Ok(if ok { exit::COMPLETED } else { exit::FAILED }),
    }
}

/// What stands on several lines elsewhere.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn shown(finding: &Finding) -> String {
    let Finding { status, about, text, mend } = finding;
    let mut lines =
        format!("{:<8} {about:<14} {}\n", status.name(), visible::line(&one_line(text)));
    if let Some(mend) = mend {
        lines.push_str(&format!("{:24}mend: {}\n", "", visible::line(mend)));
    }
    lines
}
