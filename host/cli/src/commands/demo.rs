//! `belljar demo`: the loop, the sandbox, the approval and the receipts as they are, on a sample
//! folder; only the model's turns are written down.
//!
//! Reads no configuration and leaves nothing behind: the folder and the session are temporary.

mod model;

use super::{
    drive::{self, Prepared},
    run::{System, has_person, request, sink, terminal},
};
use crate::{
    approver::TerminalApprover,
    arguments::{DemoArguments, OutputFormat},
    exit,
    screen::{SharedScreen, Tone},
    setup::{self, Grants, Opened, Opening},
    show::ResultLines,
    signals,
};
use anyhow::Context as _;
use belljar_agent::{Agent, Settings};
use belljar_capability::{Rule, Rules};
use belljar_sandbox::Watching;
use belljar_types::{Origin, Part, PermissionMode};
use belljar_workspace::{
    Clock, Instructions, Places, PromptSource, SessionStore, Workspace, private_dir,
};
use model::DemoModel;
use std::{path::Path, sync::Arc};
use tokio::sync::watch;

const SAMPLE: [(&str, &str); 4] = [
    ("README.md", include_str!("../../demo/workspace/README.md")),
    ("prices.csv", include_str!("../../demo/workspace/prices.csv")),
    ("notes/2026-03.md", include_str!("../../demo/workspace/notes/2026-03.md")),
    ("recipes/rye.md", include_str!("../../demo/workspace/recipes/rye.md")),
];

const TASK: &str = "A customer says that the price of the rye loaf is wrong. Find out, and correct \
                    the price list if it is.";

const SCRIPTED: &str = "The model of this demo is scripted: its turns are read from a file. All \
                        else is real: the loop, the sandbox, the files and the receipts.";

const REAL_MODEL: &str = "\
The folder was a temporary copy and is gone. To work in a folder of yours with a real model:
  set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama or llama.cpp's server on this machine;
  then: belljar run \"what is in this folder?\"";

/// What the demo changes.
const EDIT: &str = "files/edit_file";

pub(crate) async fn demo(arguments: DemoArguments, screen: SharedScreen) -> anyhow::Result<u8> {
    let cancel = signals::cancel_on_signals()?;
    let output = arguments.output;
    let is_text = output.output_format == OutputFormat::Text;
    if is_text {
        screen.lock().toned(Tone::Question, SCRIPTED);
    }

    let folder = tempfile::tempdir().context("cannot make a temporary folder: set `TMPDIR`")?;
    let inside = folder.path().join("bakery");
    copy_sample(&inside).context("cannot write the sample folder: check `TMPDIR`")?;
    let workspace = Workspace::open(&inside)?;
    // The compiled plugins may stay where every other command looks for them.
    let own = Places::below(&folder.path().join("belljar"));
    let places = match Places::from_env() {
        Ok(places) if private_dir(&places.cache).is_ok() => Places { cache: places.cache, ..own },
        _ => own,
    };

    let mut notices = Vec::new();
    if !is_text {
        notices.push(SCRIPTED.to_owned());
    }
    let mut rules = Rules::default();
    let mode = if has_person(&screen) {
        PermissionMode::Default
    } else {
        rules.allow.push(EDIT.parse::<Rule>()?);
        notices.push(format!(
            "nobody is there to ask, so the demo's own rule `{EDIT}` allows the edit"
        ));
        PermissionMode::DontAsk
    };
    let opening = setup::sandbox(Opening {
        places: &places,
        workspace: &workspace,
        folders: Vec::new(),
        mode,
        rules: rules.clone(),
        grants: Grants::default(),
        watch: Watching::No,
        screen: &screen,
    });
    let Opened { sandbox, notices: about_sandbox } = tokio::select! {
        opened = opening => opened?,
        () = cancel.cancelled() => {
            drive::canceled_early(&screen, &output);
            return Ok(exit::CANCELED);
        }
    };
    notices.extend(about_sandbox);

    let clock = Clock::system();
    let journal = SessionStore::open(&places)?.create(workspace.folder(), &clock)?;
    let instructions = Instructions::default();
    let system = PromptSource::new(workspace.clone(), &instructions, "script/demo", clock);
    let (shown, sees) = watch::channel(String::new());
    let agent = Agent {
        model: Some(Arc::new(DemoModel::new()?)),
        toolbox: Arc::new(sandbox.clone()),
        approver: Arc::new(TerminalApprover::new(terminal(&screen), screen.clone(), sees)),
        journal: Arc::new(journal),
        settings: Settings::default(),
    };
    let prompt = vec![Part::text(TASK, Origin::Person)];
    let request = request(mode, &workspace, prompt, System(system), &cancel);
    let sink = sink(&screen, &output, ResultLines(8));
    if is_text {
        screen.lock().note(&format!("The task: {TASK}"));
    }
    let code =
        drive::drive(Prepared { agent, request, notices, sink, shown, control: None }).await?;
    screen.lock().note(&format!("\n{REAL_MODEL}"));
    Ok(code)
}

fn copy_sample(folder: &Path) -> std::io::Result<()> {
    for (path, text) in SAMPLE {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}
