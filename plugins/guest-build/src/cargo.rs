//! The nested cargo: which one, where it builds, what it inherits and what it must not.

use crate::{Error, variable};
use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

pub(crate) const TARGET: &str = "wasm32-wasip2";

/// Guests want to be small and quick to compile on the host; the host's own release profile has
/// other wishes, so theirs is passed from here. Optimised for speed they are a quarter larger, and
/// spend a twentieth less fuel.
const PROFILE: [(&str, &str); 5] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s"),
    ("CARGO_PROFILE_RELEASE_LTO", "fat"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
    ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
    ("CARGO_PROFILE_RELEASE_STRIP", "symbols"),
];

/// What the outer cargo, its user or a tool around it set for the outer build. Wrappers and flags
/// would be wrong for the guests; the outer target folder is locked while the build script runs.
const OUTER: [&str; 16] = [
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_INCREMENTAL",
    "CARGO_TARGET_DIR",
    "CLIPPY_ARGS",
    "CLIPPY_CONF_DIR",
    "DEBUG",
    "HOST",
    "LLVM_PROFILE_FILE",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTC_LINKER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "TARGET",
];
const OUTER_PREFIXES: [&str; 9] = [
    "CARGO_BUILD_",
    "CARGO_CFG_",
    "CARGO_CRATE_",
    "CARGO_FEATURE_",
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_PROFILE_",
    "CARGO_TARGET_WASM32_",
    "DEP_",
];

/// One build of guests, in a target folder of its own.
#[derive(Debug)]
pub(crate) struct Build {
    cargo: OsString,
    rustc: OsString,
    workspace: PathBuf,
    target_dir: PathBuf,
}

/// The guests' stack in bytes; Rust's own default is 1 MiB.
const STACK: usize = 128 << 10;

impl Build {
    pub(crate) fn new(target_dir: PathBuf) -> Result<Self, Error> {
        let cargo = OsString::from(variable("CARGO")?);
        let rustc = OsString::from(variable("RUSTC")?);
        let member = variable("CARGO_MANIFEST_DIR")?;
        let mut locate = command(&cargo, Path::new(&member));
        locate.args(["locate-project", "--workspace", "--message-format", "plain"]);
        let manifest = PathBuf::from(answer(&mut locate)?);
        let workspace = manifest.parent().unwrap_or(Path::new(&member)).to_owned();
        Ok(Self { cargo, rustc, workspace, target_dir })
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Fails with the command to run where the toolchain lacks the guests' target.
    pub(crate) fn check_target(&self) -> Result<(), Error> {
        let mut ask = command(&self.rustc, &self.workspace);
        ask.args(["--print", "target-libdir", "--target", TARGET]);
        if Path::new(&answer(&mut ask)?).is_dir() {
            return Ok(());
        }
        let mut command = format!("rustup target add {TARGET}");
        if let Ok(toolchain) = env::var("RUSTUP_TOOLCHAIN") {
            command.push_str(" --toolchain ");
            command.push_str(&toolchain);
        }
        Err(Error::NoTarget { command })
    }

    /// Builds one guest. Each has a run of its own, so that none gets the features that another asks
    /// of a dependency, and as a component alone: with a native library beside it, for tests, there
    /// would be no link-time optimisation.
    pub(crate) fn run(&self, package: &str) -> Result<(), Error> {
        let mut build = command(&self.cargo, &self.workspace);
        build.args(["rustc", "--package", package, "--lib", "--crate-type", "cdylib"]);
        // The outer cargo has brought the lock file up to date.
        build.args(["--release", "--locked", "--target", TARGET, "--target-dir"]);
        build.arg(&self.target_dir);
        build.envs(PROFILE);
        // A build folder set in a configuration file may be the outer build's, which is locked.
        build.env("CARGO_BUILD_BUILD_DIR", &self.target_dir);
        build.env("CARGO_ENCODED_RUSTFLAGS", self.flags());
        // A build script's stdout is read by cargo.
        build.stdout(Stdio::from(io::stderr()));
        let status =
            build.status().map_err(|source| Error::Start { program: name(&build), source })?;
        if status.success() { Ok(()) } else { Err(Error::Build(package.to_owned())) }
    }

    /// The component of a package, once built.
    pub(crate) fn component(&self, package: &str) -> PathBuf {
        let file = format!("{}.wasm", package.replace('-', "_"));
        self.target_dir.join(TARGET).join("release").join(file)
    }

    /// A small stack, since the host clears all of a call's memory after it: clearing a little in
    /// place is cheaper than giving it back and faulting it in again.
    ///
    /// Vector instructions, which every runtime of the host has: a text search takes a quarter of
    /// the fuel. And panic messages hold source paths: those of this machine are no business of a
    /// model, and would give each machine its own digest of the same plugin.
    fn flags(&self) -> OsString {
        let mut flags = OsString::from("-Ctarget-feature=+simd128");
        flags.push(format!("\x1f-Clink-arg=-zstack-size={STACK}"));
        let mut remap = |from: &Path, to: &str| {
            flags.push("\x1f--remap-path-prefix=");
            flags.push(from);
            flags.push("=");
            flags.push(to);
        };
        for registry in registries() {
            remap(&registry, "crates");
        }
        remap(&self.workspace, "belljar");
        flags
    }
}

/// The folders into which cargo unpacks crates: one for each registry.
fn registries() -> Vec<PathBuf> {
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let Some(Ok(entries)) = home.map(|home| fs::read_dir(home.join("registry/src"))) else {
        return Vec::new();
    };
    let mut registries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    registries.sort();
    registries
}

/// A command that inherits nothing of the outer build.
fn command(program: &OsString, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null());
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_outer) {
            command.env_remove(&name);
        }
    }
    command
}

fn is_outer(name: &str) -> bool {
    OUTER.contains(&name) || OUTER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// What the command prints, which is one line.
fn answer(command: &mut Command) -> Result<String, Error> {
    let Output { status, stdout, stderr } =
        command.output().map_err(|source| Error::Start { program: name(command), source })?;
    if status.success() {
        Ok(String::from_utf8_lossy(&stdout).trim().to_owned())
    } else {
        let message = String::from_utf8_lossy(&stderr).trim().to_owned();
        Err(Error::Failed { program: name(command), message })
    }
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_build_is_not_inherited() {
        let kept = |name: &&str| !is_outer(name);
        let names = [
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_TARGET_DIR",
            "CARGO_BUILD_TARGET",
            "CARGO_PROFILE_RELEASE_DEBUG",
            "CARGO_PKG_NAME",
            "CARGO_HOME",
            "CARGO_MAKEFLAGS",
            "CARGO_NET_OFFLINE",
            "CARGO_REGISTRIES_MIRROR_INDEX",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
            "PATH",
            "RUSTUP_TOOLCHAIN",
        ];
        assert_eq!(
            names.iter().copied().filter(kept).collect::<Vec<_>>(),
            [
                "CARGO_HOME",
                "CARGO_MAKEFLAGS",
                "CARGO_NET_OFFLINE",
                "CARGO_REGISTRIES_MIRROR_INDEX",
                "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
                "PATH",
                "RUSTUP_TOOLCHAIN",
            ]
        );
    }
}
