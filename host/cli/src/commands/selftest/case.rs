//! One attack, what must come of it, and how both are looked at.

use super::{
    levels::Levels,
    stage::{self, Stage, call, words},
};
use anyhow::{bail, ensure};
use belljar_capability::Limits;
use belljar_sandbox::Sandbox;
use belljar_types::{CallReport, ToolErrorKind};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::path::Path;

/// What happened, or what should have.
pub(super) type Outcome = anyhow::Result<String>;

/// A case that is more than one call.
pub(super) type Scene = for<'a> fn(&'a Stage) -> BoxFuture<'a, Outcome>;

/// One attack and what must come of it.
pub(super) struct Case {
    /// The row of the kind.
    pub(super) row: u8,
    /// Unique.
    pub(super) name: &'static str,
    limits: Limits,
    attack: Attack,
}

enum Attack {
    /// A tool of the hostile guest is called.
    Tool {
        tool: &'static str,
        arguments: Value,
        expected: Expected,
    },
    /// A text-format guest is loaded and its tool called.
    Text {
        guest: &'static str,
        expected: Expected,
    },
    /// A file lies in the folder of plugins, and its name and reason are told.
    File {
        file: &'static str,
        bytes: Vec<u8>,
        says: &'static str,
    },
    Scene(Scene),
}

/// What must come of a call.
enum Expected {
    /// It fails in one of these ways.
    Ends(&'static [ToolErrorKind]),
    /// It answers, with these words among others.
    Answers(&'static str),
    /// The guest is not taken, for this reason.
    NotTaken(&'static str),
}

impl Case {
    /// A call of a tool of the hostile guest that must fail in one of these ways.
    pub(super) fn ends(
        row: u8,
        name: &'static str,
        (tool, arguments): (&'static str, Value),
        kinds: &'static [ToolErrorKind],
    ) -> Self {
        let attack = Attack::Tool { tool, arguments, expected: Expected::Ends(kinds) };
        Self { row, name, limits: limits_for(kinds), attack }
    }

    /// A call of a tool of the hostile guest that must answer, with these words among others.
    pub(super) fn answers(
        row: u8,
        name: &'static str,
        (tool, arguments): (&'static str, Value),
        says: &'static str,
    ) -> Self {
        let attack = Attack::Tool { tool, arguments, expected: Expected::Answers(says) };
        Self { row, name, limits: stage::patient(), attack }
    }

    /// A text-format guest whose call must fail in one of these ways.
    pub(super) fn text_ends(row: u8, guest: &'static str, kinds: &'static [ToolErrorKind]) -> Self {
        let attack = Attack::Text { guest, expected: Expected::Ends(kinds) };
        Self { row, name: guest, limits: limits_for(kinds), attack }
    }

    /// A text-format guest that answers `ok` to both of two calls, if nothing is wrong.
    pub(super) fn text_answers(row: u8, guest: &'static str) -> Self {
        let attack = Attack::Text { guest, expected: Expected::Answers("ok") };
        Self { row, name: guest, limits: stage::patient(), attack }
    }

    /// A text-format guest that is not taken.
    pub(super) fn text_not_taken(row: u8, guest: &'static str, says: &'static str) -> Self {
        let attack = Attack::Text { guest, expected: Expected::NotTaken(says) };
        Self { row, name: guest, limits: stage::patient(), attack }
    }

    /// A file in the folder of plugins that is not taken.
    pub(super) fn file(
        row: u8,
        name: &'static str,
        (file, bytes): (&'static str, impl Into<Vec<u8>>),
        says: &'static str,
    ) -> Self {
        let attack = Attack::File { file, bytes: bytes.into(), says };
        Self { row, name, limits: stage::patient(), attack }
    }

    pub(super) fn scene(row: u8, name: &'static str, scene: Scene) -> Self {
        Self { row, name, limits: stage::patient(), attack: Attack::Scene(scene) }
    }

    /// The same case under other limits.
    pub(super) fn under(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Plays it; what is compiled is kept in the folder given.
    pub(super) async fn run(&self, shared: &Path) -> Outcome {
        let stage = Stage::new(shared, self.limits)?;
        match &self.attack {
            Attack::Tool { tool, arguments, expected } => {
                let sandbox = stage.open().await?;
                // The first call of a plugin loads it.
                call(&sandbox, "hostile__count", json!({})).await;
                let tool = format!("hostile__{tool}");
                let happened = attacked(&sandbox, &tool, arguments, expected, &self.limits).await?;
                let next = words(&call(&sandbox, "hostile__count", json!({})).await);
                ensure!(next == "1", "{happened}; then the guest's own next call: {next}");
                Ok(happened)
            }
            Attack::Text { guest, expected } => {
                stage.add("guest.wasm", belljar_test_guests::text(guest))?;
                let sandbox = stage.open_with(stage.config()).await?;
                if let Expected::NotTaken(says) = expected {
                    return not_taken(&sandbox, "guest.wasm", says).await;
                }
                attacked(&sandbox, "guest__probe", &json!({}), expected, &self.limits).await?;
                // Once more: what the first call did must make no difference.
                attacked(&sandbox, "guest__probe", &json!({}), expected, &self.limits).await
            }
            Attack::File { file, bytes, says } => {
                stage.add(file, bytes)?;
                let config = stage.config();
                let config = belljar_sandbox::SandboxConfig { bundled: stage::bundled(), ..config };
                let sandbox = stage.open_with(config).await?;
                not_taken(&sandbox, file, says).await
            }
            Attack::Scene(scene) => scene(&stage).await,
        }
    }
}

/// A short deadline where the deadline may end it; else time enough for a busy machine, so that it
/// is the expected limit that is met.
fn limits_for(kinds: &[ToolErrorKind]) -> Limits {
    if kinds.contains(&ToolErrorKind::Deadline) { stage::limits() } else { stage::patient() }
}

/// Calls, looks at the answer, then at what the process is left with and at the next call.
async fn attacked(
    sandbox: &Sandbox,
    tool: &str,
    arguments: &Value,
    expected: &Expected,
    limits: &Limits,
) -> Outcome {
    // The first call of a sandbox makes what the later ones share.
    next_call(sandbox).await?;
    let before = Levels::now();
    let report = call(sandbox, tool, arguments.clone()).await;
    let happened = looked_at(&report, expected, limits)?;
    drop(report);
    next_call(sandbox).await?;
    Levels::now().check_back_to(&before)?;
    Ok(happened)
}

fn looked_at(report: &CallReport, expected: &Expected, limits: &Limits) -> Outcome {
    const SHOWN: usize = 160;
    let words = words(report);
    let shown: String = words.chars().take(SHOWN).collect();
    if let Some(receipt) = &report.receipt {
        let (peak, most) = (receipt.peak_memory_bytes, limits.memory);
        ensure!(peak <= most, "it had {peak} bytes of memory, and {most} are allowed");
        let kept = receipt.log.len() as u64;
        ensure!(kept <= 4 * limits.log, "{kept} bytes of its output were kept");
    }
    ensure!(!words.contains("left behind"), "a thread was left behind: {shown}");
    match (expected, &report.outcome) {
        (Expected::Ends(kinds), Err(error)) => {
            ensure!(kinds.contains(&error.kind), "it ended as {shown}, and not as {kinds:?}");
            ensure!(report.receipt.is_some(), "no receipt was left: {shown}");
        }
        (Expected::Ends(kinds), Ok(_)) => bail!("it answered {shown:?} instead of {kinds:?}"),
        (Expected::Answers(says), Ok(_)) => {
            ensure!(words.contains(says), "it answered {shown:?}, without {says:?}");
        }
        (Expected::Answers(_), Err(_)) => bail!("it failed: {shown}"),
        (Expected::NotTaken(_), _) => bail!("it was taken, and answered {shown:?}"),
    }
    Ok(shown)
}

/// The file was refused for the reason given, and the others serve.
async fn not_taken(sandbox: &Sandbox, file: &str, says: &str) -> Outcome {
    let skipped = sandbox.skipped();
    let skipped = skipped.iter().find(|skipped| skipped.path.ends_with(file));
    let Some(skipped) = skipped else { bail!("`{file}` was taken") };
    let reason = crate::setup::error_chain(&*skipped.reason);
    ensure!(reason.contains(says), "`{file}` was not taken, but since it {reason}");
    next_call(sandbox).await?;
    Ok(format!("not taken: it {reason}"))
}

/// An honest plugin is served.
pub(super) async fn next_call(sandbox: &Sandbox) -> anyhow::Result<()> {
    let next = words(&call(sandbox, "noop__noop", json!({})).await);
    ensure!(next == "ok", "the next call of another plugin: {next}");
    Ok(())
}
