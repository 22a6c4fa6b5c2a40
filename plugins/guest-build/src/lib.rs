//! Builds guest components from a build script, with nested runs of cargo, for a crate that embeds
//! their bytes. It owns the nested build's command, environment and profile, and knows when it has
//! to run again. It never installs anything, and never touches the outer build's target folder.
//!
//! A build script is `fn main() -> ExitCode { belljar_guest_build::embed(&[…]) }`, and the crate
//! includes `guests.rs` from its `OUT_DIR`: an array of the crate's own `Embedded`.

mod cargo;
mod sources;

use sha2::{Digest, Sha256};
use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// A guest to build and embed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guest {
    /// The name under which it is embedded.
    pub name: &'static str,
    /// Its package in the workspace.
    pub package: &'static str,
}

/// Why the guests could not be embedded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{0}` is not set: this runs in a build script, under cargo")]
    NoVariable(&'static str),
    #[error("cannot start `{program}`")]
    Start { program: String, source: io::Error },
    #[error("`{program}` failed: {message}")]
    Failed { program: String, message: String },
    #[error("the target `{target}` is missing: run `{command}`", target = cargo::TARGET)]
    NoTarget { command: String },
    #[error("the guest `{0}` does not build: see the errors above")]
    Build(String),
    #[error("cannot read or write `{path}`")]
    File { path: PathBuf, source: io::Error },
}

/// Builds the guests and writes `guests.rs` into `OUT_DIR`. For a build script's `main`: an error
/// is printed, with its causes, and fails the build.
#[expect(clippy::print_stderr, reason = "cargo shows a failed build script's stderr")]
pub fn embed(guests: &[Guest]) -> ExitCode {
    match build(guests) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = format!("error: {error}");
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                text.push_str(": ");
                text.push_str(&cause.to_string());
                source = cause.source();
            }
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn build(guests: &[Guest]) -> Result<(), Error> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let build = cargo::Build::new(target_dir(&out))?;
    build.check_target()?;

    let mut sources = sources::Sources::new(build.workspace());
    let mut items = String::from("[\n");
    for guest in guests {
        build.run(guest.package)?;
        let component = build.component(guest.package);
        let bytes = read(&component)?;
        sources.add(&component.with_extension("d"))?;
        // Another build script may build the guest anew: what is embedded is this script's own.
        let component = out.join(guest.name).with_extension("wasm");
        write(&component, &bytes)?;
        let _ = writeln!(
            items,
            "    Embedded {{ name: {name:?}, digest: {digest:?}, bytes: include_bytes!({path:?}) }},",
            name = guest.name,
            digest = digest(&bytes),
            path = component,
        );
    }
    items.push_str("]\n");
    write(&out.join("guests.rs"), items.as_bytes())?;
    sources.watch();
    Ok(())
}

/// Where the guests are built. `OUT_DIR` is `<outer target>/<profile>/build/<package>/out`, another
/// one for each package, and for each tool such as clippy; beside `build`, one folder serves all,
/// and what guests share is compiled once. Cargo's lock keeps concurrent builds apart.
fn target_dir(out: &Path) -> PathBuf {
    let build = out.ancestors().nth(2).filter(|folder| folder.ends_with("build"));
    build.and_then(Path::parent).unwrap_or(out).join("guests")
}

/// `sha256:` and 64 hexadecimal digits.
fn digest(bytes: &[u8]) -> String {
    let mut text = String::from("sha256:");
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn variable(name: &'static str) -> Result<String, Error> {
    env::var(name).map_err(|_| Error::NoVariable(name))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(|source| Error::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guests_of_a_profile_share_a_target_folder() {
        let folder = |out| target_dir(Path::new(out));
        assert_eq!(folder("/target/debug/build/a-1/out"), Path::new("/target/debug/guests"));
        assert_eq!(folder("/elsewhere"), Path::new("/elsewhere/guests"));
    }

    #[test]
    fn a_digest_is_written_as_the_host_writes_it() {
        assert_eq!(
            digest(b"abc"),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
