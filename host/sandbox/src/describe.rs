//! A plugin's tools: asked for in an empty world, or read from its manifest; by the same rules.

use crate::{
    bindings::{PluginPre, types},
    call::{self, CallSetup},
    http::{HttpSetup, Outside},
    load_error::{LoadError, TOOLS},
    names,
    state::CallState,
};
use belljar_capability::{DeclaredTool, Limits, World};
use belljar_types::{Hints, ToolError, ToolErrorKind};
use serde_json::Value;
use std::{collections::HashSet, sync::Arc};
use tokio_util::sync::CancellationToken;

/// Bytes of one description and one schema, and characters of a title.
const DESCRIPTION: usize = 16 << 10;
const SCHEMA: usize = 128 << 10;
const TITLE: usize = 200;

/// Asks for the tools in an empty world.
pub(crate) async fn ask(
    pre: &PluginPre<CallState>,
    limits: Limits,
) -> Result<Vec<DeclaredTool>, LoadError> {
    let pre = pre.clone();
    let runtime = tokio::runtime::Handle::current();
    let asked = tokio::task::spawn_blocking(move || {
        let setup = CallSetup {
            limits: &limits,
            world: &World::default(),
            plugin: Arc::from(""),
            mounts: Arc::default(),
            scratch: None,
            http: HttpSetup { plugin: "".into(), outside: Outside::default(), redactor: None },
            observer: Arc::new(|_| {}),
            checks_paths: false,
        };
        runtime.block_on(call::run(
            &pre,
            setup,
            &CancellationToken::new(),
            async |exports, store| exports.belljar_plugin_tools().call_list_tools(store).await,
        ))
    });
    let outcome = asked.await.map_err(|_| {
        LoadError::Describe(ToolError::new(
            ToolErrorKind::Trap,
            "the host failed while it asked; this is a bug in the host",
        ))
    })?;
    let tools = outcome.result.map_err(LoadError::Describe)?;
    check_count(tools.len())?;
    check(tools.into_iter().map(declared).collect::<Result<_, _>>()?)
}

/// Checks a list of tools as a whole.
pub(crate) fn check(tools: Vec<DeclaredTool>) -> Result<Vec<DeclaredTool>, LoadError> {
    check_count(tools.len())?;
    let mut seen = HashSet::new();
    for tool in &tools {
        if !names::is_tool_name(&tool.name) {
            return Err(LoadError::ToolName(tool.name.chars().take(100).collect()));
        }
        if !seen.insert(names::look_alike(&tool.name)) {
            return Err(LoadError::SameToolTwice(tool.name.clone()));
        }
    }
    tools.into_iter().map(check_tool).collect()
}

fn check_count(count: usize) -> Result<(), LoadError> {
    match count {
        0 => Err(LoadError::NoTool),
        count if count > TOOLS => Err(LoadError::TooManyTools(count)),
        _ => Ok(()),
    }
}

fn bad(tool: &str, reason: String) -> LoadError {
    LoadError::Tool { tool: tool.chars().take(100).collect(), reason }
}

fn check_tool(mut tool: DeclaredTool) -> Result<DeclaredTool, LoadError> {
    let wrong = |reason: String| Err(bad(&tool.name, reason));
    if tool.description.trim().is_empty() {
        return wrong("it has no description".to_owned());
    }
    if tool.description.len() > DESCRIPTION {
        return wrong(format!("its description is longer than {DESCRIPTION} bytes"));
    }
    let schemas = [(Some(&tool.input_schema), "input"), (tool.output_schema.as_ref(), "output")];
    for (schema, which) in schemas {
        let Some(schema) = schema else { continue };
        if !schema.is_object() {
            return wrong(format!("its {which} schema is not a JSON object"));
        }
        if serde_json::to_string(schema).map_or(usize::MAX, |text| text.len()) > SCHEMA {
            return wrong(format!("its {which} schema is longer than {SCHEMA} bytes"));
        }
    }
    if tool.input_schema.get("type") != Some(&Value::from("object")) {
        return wrong("the type of its input schema is not `object`".to_owned());
    }
    tool.title = tool.title.map(|title| title.chars().take(TITLE).collect());
    Ok(tool)
}

/// A tool in the plugin's own words, its schemas read.
fn declared(tool: types::Tool) -> Result<DeclaredTool, LoadError> {
    // Before anything is read into a tree, which is larger than its text.
    let read = |text: &str, which: &str| {
        if text.len() > SCHEMA {
            let reason = format!("its {which} schema is longer than {SCHEMA} bytes");
            return Err(bad(&tool.name, reason));
        }
        serde_json::from_str::<Value>(text)
            .map_err(|error| bad(&tool.name, format!("its {which} schema is not JSON: {error}")))
    };
    let has = |hint| tool.hints.contains(hint);
    Ok(DeclaredTool {
        input_schema: read(&tool.input_schema, "input")?,
        output_schema: tool
            .output_schema
            .as_deref()
            .map(|text| read(text, "output"))
            .transpose()?,
        hints: Hints {
            read_only: has(types::Hints::READ_ONLY),
            destructive: has(types::Hints::DESTRUCTIVE),
            idempotent: has(types::Hints::IDEMPOTENT),
            open_world: has(types::Hints::OPEN_WORLD),
        },
        name: tool.name,
        title: tool.title,
        description: tool.description,
    })
}
