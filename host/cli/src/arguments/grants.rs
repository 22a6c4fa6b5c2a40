//! The arguments of the commands with which a person says yes, and takes it back.

use super::WorldArguments;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Without SPEC it says yes to the plugin's file as it is now, and to what it was
granted before. A file that changes loses both until you look at it again.

SPEC is KEY=VALUE, as often as need be:
  read=FOLDER, write=FOLDER   a folder of the workspace, or HOST:GUEST
  deny=GLOB                   what stays closed in all folders
  net=https://HOST            or `public`, with methods and a path where wanted
  env=NAME, env=NAME=VALUE    a variable, your own or with this value
  limits.NAME=VALUE           such as limits.memory=512MiB

What is granted is written into your configuration.")]
pub(crate) struct GrantArguments {
    /// The plugin: its file's name without `.wasm`
    pub(crate) name: String,

    /// What it is granted
    #[arg(value_name = "SPEC")]
    pub(crate) specs: Vec<String>,

    /// Say yes to whatever lies at this path, while you work on it
    #[arg(long, value_name = "PATH")]
    pub(crate) dev: Option<PathBuf>,

    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) world: WorldArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without SPEC it takes back everything, the yes to the plugin's file included.

SPEC is a key such as `net` or `limits.memory` for all of a kind, KEY=VALUE for
one thing of it, `secrets` or `secrets=NAME`.")]
pub(crate) struct RevokeArguments {
    /// The plugin
    pub(crate) name: String,

    /// What is taken back
    #[arg(value_name = "SPEC")]
    pub(crate) specs: Vec<String>,

    /// The configuration to change instead of your own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A folder may bring a `belljar.toml` and plugins in `.belljar/plugins`. Neither
counts before you trusted the folder, nor after its `belljar.toml` changed. The
file can choose one of your models, narrow what may be done, and ask for grants;
each plugin still needs a yes of its own (`belljar plugin grant`).")]
pub(crate) struct TrustArguments {
    /// The folder (default: the current one)
    pub(crate) folder: Option<PathBuf>,

    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,

    /// Take the trust back
    #[arg(long, conflicts_with = "yes")]
    pub(crate) remove: bool,

    /// The configuration to change instead of your own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
