//! The `[[hooks.POINT]]` tables: commands that are run at points of a session.
//!
//! ```toml
//! [[hooks.pre_tool]]
//! command = ["/home/me/bin/check", "--strict"]   # an argument list, never given to a shell
//! env = ["PATH"]              # what it gets of the environment; or { TZ = "UTC", LANG = true }
//! timeout = "10s"             # 30s where it is not said
//! on_failure = "block"        # or "warn", which is the default
//! ```

use super::{
    ConfigError,
    document::{Located, Section},
    list,
    plugins::{self, Role},
};
use crate::hooks::{DEFAULT_TIMEOUT, HookCommand, HookCommands, OnFailure};
use belljar_capability::Limit;
use belljar_types::HookPoint;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use toml::de::DeValue;

/// Hooks at one point.
const MAX_HOOKS: usize = 20;

pub(super) fn read(
    section: &Section<'_>,
    home: Option<&Path>,
) -> Result<HookCommands, ConfigError> {
    section.only(&HookPoint::ALL.map(HookPoint::name))?;
    let mut commands = HookCommands::new();
    for point in HookPoint::ALL {
        let hooks = hooks(section, point, home)?;
        if !hooks.is_empty() {
            commands.insert(point, hooks);
        }
    }
    Ok(commands)
}

fn hooks(
    section: &Section<'_>,
    point: HookPoint,
    home: Option<&Path>,
) -> Result<Vec<HookCommand>, ConfigError> {
    const EXPECTED: &str = "an array of tables, each with a `command`";
    let read = |Located { value, at }: Located<&DeValue<'_>>| {
        let DeValue::Table(table) = value else {
            return Err(section.wrong_type(at, point.name(), EXPECTED, value));
        };
        let table = section.element(point.name(), table);
        table.only(&["command", "env", "timeout", "on_failure"])?;
        let wrong = |problem: String| ConfigError::Value { at: at.clone(), problem };
        let mut words = table.strings("command")?.into_iter();
        let Some(program) = words.next() else {
            let problem = format!(
                "a hook of `{}` has no `command`: write an array, the program's path first",
                table.name
            );
            return Err(wrong(problem));
        };
        let arguments: Vec<_> = words.map(|word| word.value.to_owned()).collect();
        if program.value.contains('\0') || arguments.iter().any(|word| word.contains('\0')) {
            return Err(wrong(format!("`{}` holds a zero byte", table.dotted("command"))));
        }
        Ok(HookCommand {
            program: path(program, &table, home)?,
            arguments,
            environment: plugins::env(&table, Role::Granted)?,
            timeout: timeout(&table)?,
            on_failure: on_failure(&table, point)?,
            source: at,
        })
    };
    let items = section.items(point.name(), EXPECTED)?;
    if let Some(extra) = items.get(MAX_HOOKS) {
        return Err(ConfigError::Value {
            at: extra.at.clone(),
            problem: format!("`{}` has more than {MAX_HOOKS} hooks", section.dotted(point.name())),
        });
    }
    items.into_iter().map(read).collect()
}

/// The program is named by its place: it has no `PATH` to be looked for in, and what the workspace
/// holds must never be what is started.
fn path(
    program: Located<&str>,
    table: &Section<'_>,
    home: Option<&Path>,
) -> Result<PathBuf, ConfigError> {
    let path = match (program.value.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(program.value),
    };
    if path.is_absolute() {
        return Ok(path);
    }
    Err(ConfigError::Value {
        at: program.at,
        problem: format!(
            "`{}` begins with `{}`, which is not an absolute path: write the program's place, as \
             `command -v` shows it",
            table.dotted("command"),
            program.value
        ),
    })
}

fn timeout(table: &Section<'_>) -> Result<Duration, ConfigError> {
    let Some(Located { value, at }) = table.string("timeout")? else { return Ok(DEFAULT_TIMEOUT) };
    // Written and bounded as a call's deadline is.
    match Limit::Deadline.parse(value) {
        Ok(milliseconds) => Ok(Duration::from_millis(milliseconds)),
        Err(error) => Err(ConfigError::Value {
            at,
            problem: format!("`{}`: {error}", table.dotted("timeout")),
        }),
    }
}

fn on_failure(table: &Section<'_>, point: HookPoint) -> Result<OnFailure, ConfigError> {
    let Some(Located { value, at }) = table.string("on_failure")? else {
        return Ok(OnFailure::default());
    };
    let problem = match value {
        "warn" => return Ok(OnFailure::Warn),
        "block" if point.can_block() => return Ok(OnFailure::Block),
        "block" => {
            let points = HookPoint::ALL.into_iter().filter(|point| point.can_block());
            format!(
                "`{}` is `block`, and there is nothing to block at `{point}`: that is possible at \
                 {}",
                table.dotted("on_failure"),
                list(points.map(HookPoint::name))
            )
        }
        _ => format!(
            "`{}` is `{value}`: choose one of {}",
            table.dotted("on_failure"),
            list(["warn", "block"])
        ),
    };
    Err(ConfigError::Value { at, problem })
}
