//! `belljar plugin …`: the command line of each.

use super::{GrantArguments, PluginArguments, RevokeArguments, WorldArguments};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List every plugin and file found, and what became of it
    List(ListArguments),
    /// Show what a plugin says, wants and imports, without running it
    Inspect(InspectArguments),
    /// Copy a plugin into your own folder
    Add(AddArguments),
    /// Remove a plugin from your own folder
    Remove(RemoveArguments),
    /// Say yes to a plugin as it is now, and grant it more
    Grant(GrantArguments),
    /// Take back what a plugin was granted, and the yes to it
    Revoke(RevokeArguments),
    /// Put a manifest into a component
    Pack(PackArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Print an array, one object for each file
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) world: WorldArguments,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// A file, or the name of a plugin in one of the folders
    #[arg(value_name = "FILE|NAME")]
    pub(crate) plugin: String,

    /// Print one object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) plugins: PluginArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Adding allows nothing: look at it with `belljar plugin inspect NAME`, then allow
it with `belljar plugin grant NAME`. A manifest beside FILE comes along.")]
pub(crate) struct AddArguments {
    /// A component, or the https URL of one
    #[arg(value_name = "FILE|URL")]
    pub(crate) source: String,

    /// What the SHA-256 of its bytes must be, as `sha256:…`; required for a URL
    #[arg(long, value_name = "DIGEST", value_parser = parse_digest)]
    pub(crate) digest: Option<String>,

    /// The plugin's name (default: the file's)
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Replace a plugin of the same name
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArguments {
    /// The plugin's name
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct PackArguments {
    /// A component
    pub(crate) file: PathBuf,

    /// The manifest, in TOML
    #[arg(long, value_name = "TOML")]
    pub(crate) manifest: PathBuf,

    /// Where to write it (default: over FILE)
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the manifest that it has
    #[arg(long)]
    pub(crate) replace: bool,
}

/// What the program hands to itself to compile a component in a process of its own.
#[derive(Debug, Args)]
pub(crate) struct CompileArguments {
    pub(crate) arguments: Vec<String>,
}

fn parse_digest(text: &str) -> Result<String, String> {
    let text = text.to_ascii_lowercase();
    let hex = text.strip_prefix("sha256:").unwrap_or(&text);
    if hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(format!("sha256:{hex}"))
    } else {
        Err("write `sha256:` and 64 hexadecimal digits".to_owned())
    }
}
