//! `belljar call`: one tool, by the same way through the sandbox as a model's call.

use crate::{
    arguments::{CallArguments, CallFormat, TalkArguments},
    exit,
    prompt::{self, Input},
    screen::{SharedScreen, Tone},
    setup::{self, Grants, Opening},
    show::receipt,
    signals,
};
use belljar_sandbox::{Sandbox, Watching};
use belljar_types::{
    ApprovalAnswer, Arguments, CallObserver, CallReport, CallUpdate, Content, Origin,
    PermissionMode, Receipt, ToolCall, ToolError, ToolErrorKind, ToolOutput, ToolResult,
    Toolbox as _,
};
use belljar_workspace::Places;
use serde::Serialize;
use std::{io, sync::Arc};
use tokio_util::sync::CancellationToken;

/// The result in the shape of the `tool_result` event, with the receipt beside it.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    result: &'a ToolResult,
    receipt: Option<&'a Receipt>,
}

pub(crate) async fn call(arguments: CallArguments, screen: SharedScreen) -> anyhow::Result<u8> {
    let CallArguments { tool, arguments, world, policy, output_format, talk } = arguments;
    let cancel = signals::cancel_on_signals()?;
    let text = match arguments.as_deref() {
        None => String::new(),
        Some("-") => match prompt::read_all(&cancel).await? {
            Input::Text(text) => text,
            Input::Canceled => return Ok(exit::CANCELED),
        },
        Some(text) => text.to_owned(),
    };
    let places = Places::from_env()?;
    let workspace = setup::workspace(world.workspace.as_deref())?;
    let file = world.plugins.config.as_deref();
    let loaded = setup::configuration(&places, file, &workspace, setup::flags(&policy))?;
    let own_plugins = loaded.workspace_plugins.as_deref();
    let folders = setup::plugin_folders(&places, &world.plugins, own_plugins)?;
    let grants = Grants::new(&loaded.config, &policy.grants, &workspace)?;
    let mode = policy.permission_mode.unwrap_or(PermissionMode::Default);
    let opening = setup::sandbox(Opening {
        places: &places,
        workspace: &workspace,
        folders,
        mode,
        rules: loaded.config.rules,
        grants,
        watch: Watching::No,
        screen: &screen,
    });
    let opened = tokio::select! {
        opened = opening => opened?,
        () = cancel.cancelled() => return Ok(exit::CANCELED),
    };
    if !talk.quiet {
        setup::show_notices(&screen, &loaded.notices);
        setup::show_notices(&screen, &opened.notices);
    }

    let call = ToolCall { id: "call".to_owned(), tool, arguments: Arguments::parse(&text) };
    let report = perform(&opened.sandbox, &call, &screen, talk, cancel).await;
    let CallReport { outcome, origin, receipt } = report;
    let result = ToolResult { call_id: call.id.clone(), tool: call.tool.clone(), outcome, origin };
    let shown = match output_format {
        CallFormat::Json => {
            screen.lock().json(&Answer { result: &result, receipt: receipt.as_ref() })
        }
        CallFormat::Text => match &result.outcome {
            Ok(output) => show_output(&screen, output),
            Err(_) => Ok(()),
        },
    };
    if let Err(error) = &result.outcome {
        screen.lock().error(&receipt::failure(error));
    }
    if let (true, Some(receipt)) = (talk.verbose, &receipt) {
        screen.lock().toned(Tone::Faint, &receipt::line(receipt));
    }
    match (&result.outcome, shown) {
        (Err(error), _) => Ok(code(error, &call, &opened.sandbox)),
        (Ok(_), Ok(())) => Ok(exit::COMPLETED),
        (Ok(_), Err(error)) => exit::of_write_error(error),
    }
}

/// Typing the command was the approval.
async fn perform(
    sandbox: &Sandbox,
    call: &ToolCall,
    screen: &SharedScreen,
    talk: TalkArguments,
    cancel: CancellationToken,
) -> CallReport {
    match sandbox.prepare(call) {
        Ok(prepared) => {
            let observer = observer(screen.clone(), talk);
            prepared.run(Some(ApprovalAnswer::Once), observer, cancel).await
        }
        Err(error) => CallReport { outcome: Err(error), origin: Origin::Host, receipt: None },
    }
}

fn observer(screen: SharedScreen, talk: TalkArguments) -> CallObserver {
    Arc::new(move |update| {
        if talk.quiet {
            return;
        }
        let text = match update {
            CallUpdate::Output { text } => text,
            CallUpdate::Progress { done, total, message } => {
                receipt::progress(done, total, &message)
            }
        };
        screen.lock().toned(Tone::Faint, &text);
    })
}

/// What the tool returned: texts as they are, one after the other, else the structured value.
fn show_output(screen: &SharedScreen, output: &ToolOutput) -> io::Result<()> {
    let mut screen = screen.lock();
    let mut has_text = false;
    for content in &output.content {
        match content {
            Content::Text { text } => {
                let newline = if text.ends_with('\n') { "" } else { "\n" };
                screen.product(&format!("{text}{newline}"))?;
                has_text = true;
            }
            other => screen.note(&format!("note: not shown: {}", receipt::content(other))),
        }
    }
    match &output.structured {
        Some(value) if !has_text => screen.json(value),
        _ => Ok(()),
    }
}

fn code(error: &ToolError, call: &ToolCall, sandbox: &Sandbox) -> u8 {
    match error.kind {
        // Nothing was called: what was typed is not a call.
        ToolErrorKind::InvalidArguments if call.arguments.object().is_err() => exit::USAGE,
        ToolErrorKind::UnknownTool if is_of_skipped_plugin(&call.tool, sandbox) => exit::FAILED,
        kind => exit::of_tool_error(kind),
    }
}

/// Whether the tool is asked of a plugin whose file was found and not taken.
fn is_of_skipped_plugin(tool: &str, sandbox: &Sandbox) -> bool {
    sandbox.skipped().iter().any(|skipped| {
        let name = skipped.path.file_stem().map(|stem| stem.to_string_lossy());
        name.is_some_and(|name| {
            tool.strip_prefix(&*name).is_some_and(|rest| rest.starts_with("__"))
        })
    })
}
