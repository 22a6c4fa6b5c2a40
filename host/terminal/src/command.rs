//! The commands that begin with a slash: their names, what they say of themselves, and how a line
//! is read.

use std::fmt;

/// A command that the backend carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Status,
    Tools,
    Plugins,
    Grants,
    Clear,
    /// A model's name, or empty to list them.
    Model(String),
    /// A session's id, or empty to list them.
    Resume(String),
    /// A session's id, or empty for this one.
    Audit(String),
    Cost,
}

impl fmt::Display for Command {
    /// The line that a person types.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, rest) = match self {
            Self::Status => ("/status", ""),
            Self::Tools => ("/tools", ""),
            Self::Plugins => ("/plugins", ""),
            Self::Grants => ("/grants", ""),
            Self::Clear => ("/clear", ""),
            Self::Model(rest) => ("/model", rest.as_str()),
            Self::Resume(rest) => ("/resume", rest.as_str()),
            Self::Audit(rest) => ("/audit", rest.as_str()),
            Self::Cost => ("/cost", ""),
        };
        f.write_str(name)?;
        if rest.is_empty() { Ok(()) } else { write!(f, " {rest}") }
    }
}

impl Command {
    /// Whether it only looks, so that it may be given while a run is busy.
    pub(crate) fn is_looking(&self) -> bool {
        match self {
            Self::Status
            | Self::Tools
            | Self::Plugins
            | Self::Grants
            | Self::Audit(_)
            | Self::Cost => true,
            Self::Model(name) | Self::Resume(name) => name.is_empty(),
            Self::Clear => false,
        }
    }
}

/// What a line that begins with a slash asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Slash {
    Help,
    Exit,
    Plan(String),
    Do(String),
    Backend(Command),
}

/// Every name, with what follows it and what it does.
pub(crate) const COMMANDS: [(&str, &str, &str); 13] = [
    ("/help", "", "keys and commands"),
    ("/status", "", "model, mode, session, what is loaded"),
    ("/tools", "", "the tools that the model sees"),
    ("/plugins", "", "every plugin file and what became of it"),
    ("/grants", "", "what each plugin may reach"),
    ("/plan", "[TASK]", "look only, and end in a plan; without a task: the mode alone"),
    ("/do", "[TEXT]", "carry out the last plan"),
    ("/clear", "", "begin a new conversation"),
    ("/model", "[NAME]", "change the model, or list them"),
    ("/resume", "[ID]", "go on with an earlier session, or list them"),
    ("/audit", "[ID]", "receipts: what ran, what it touched, what was refused"),
    ("/cost", "", "tokens, and what they cost where that is known"),
    ("/exit", "", "leave"),
];

/// Reads a line that begins with a slash.
///
/// # Errors
///
/// What is wrong with it, in words for the person.
pub(crate) fn parse(line: &str) -> Result<Slash, String> {
    let line = line.trim();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let Some((_, takes, _)) = COMMANDS.iter().find(|(known, ..)| *known == name) else {
        return Err(unknown(name));
    };
    if takes.is_empty() && !rest.is_empty() {
        return Err(format!("`{name}` takes nothing after it"));
    }
    let rest = rest.to_owned();
    Ok(match name {
        "/help" => Slash::Help,
        "/exit" => Slash::Exit,
        "/plan" => Slash::Plan(rest),
        "/do" => Slash::Do(rest),
        "/status" => Slash::Backend(Command::Status),
        "/tools" => Slash::Backend(Command::Tools),
        "/plugins" => Slash::Backend(Command::Plugins),
        "/grants" => Slash::Backend(Command::Grants),
        "/clear" => Slash::Backend(Command::Clear),
        "/model" => Slash::Backend(Command::Model(rest)),
        "/resume" => Slash::Backend(Command::Resume(rest)),
        "/audit" => Slash::Backend(Command::Audit(rest)),
        "/cost" => Slash::Backend(Command::Cost),
        _ => return Err(unknown(name)),
    })
}

fn unknown(name: &str) -> String {
    let near = COMMANDS
        .iter()
        .map(|(known, ..)| (strsim::damerau_levenshtein(known, name), *known))
        .min()
        .filter(|(distance, _)| *distance <= 2);
    match near {
        Some((_, near)) => format!("there is no `{name}`; did you mean `{near}`?"),
        None => format!("there is no `{name}`; `/help` lists the commands"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_read_as_itself() {
        for (name, takes, _) in COMMANDS {
            let plain = parse(name).unwrap();
            if let Slash::Backend(command) = plain {
                assert_eq!(command.to_string(), name);
            }
            assert_eq!(parse(&format!("{name} x y")).is_ok(), !takes.is_empty(), "{name}");
        }
        assert_eq!(
            parse(" /model  openai/x ").unwrap(),
            Slash::Backend(Command::Model("openai/x".to_owned()))
        );
    }

    #[test]
    fn a_wrong_name_gets_the_nearest() {
        assert_eq!(parse("/toosl").unwrap_err(), "there is no `/toosl`; did you mean `/tools`?");
        assert_eq!(
            parse("/frobnicate").unwrap_err(),
            "there is no `/frobnicate`; `/help` lists the commands"
        );
        assert_eq!(parse("/clear all").unwrap_err(), "`/clear` takes nothing after it");
    }
}
