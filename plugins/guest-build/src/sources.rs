//! When the guests have to be built again: what cargo's dependency files list, and the manifests
//! that decide what is compiled.

use crate::{Error, read};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// Files of the workspace whose change can change any guest, where they are there.
const SHARED: [&str; 5] =
    ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo/config.toml", "wit"];

/// The files that the guests are made of.
#[derive(Debug)]
pub(crate) struct Sources {
    workspace: PathBuf,
    files: BTreeSet<PathBuf>,
}

impl Sources {
    pub(crate) fn new(workspace: &Path) -> Self {
        let files = SHARED.iter().map(|file| workspace.join(file)).filter(|file| file.exists());
        Self { workspace: workspace.to_owned(), files: files.collect() }
    }

    /// Adds what a dependency file lists, and the manifest of each source's package.
    pub(crate) fn add(&mut self, dependency_file: &Path) -> Result<(), Error> {
        let text = read(dependency_file)?;
        for source in dependencies(&String::from_utf8_lossy(&text)) {
            let source = self.workspace.join(source);
            let folders = source.ancestors().skip(1);
            let manifest =
                folders.map(|folder| folder.join("Cargo.toml")).find(|file| file.exists());
            self.files.extend(manifest);
            self.files.insert(source);
        }
        Ok(())
    }

    /// Tells cargo to run the build script again when any of the files changes.
    #[expect(clippy::print_stdout, reason = "cargo reads a build script's stdout")]
    pub(crate) fn watch(&self) {
        for file in &self.files {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
}

/// The files to the right of the colon, in make's notation: spaces within a name are escaped.
fn dependencies(text: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in text.lines() {
        let Some((_, list)) = line.split_once(": ") else { continue };
        let mut file = String::new();
        let mut characters = list.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' if characters.peek() == Some(&' ') => {
                    file.push(' ');
                    characters.next();
                }
                ' ' if !file.is_empty() => files.push(PathBuf::from(std::mem::take(&mut file))),
                ' ' => {}
                other => file.push(other),
            }
        }
        if !file.is_empty() {
            files.push(PathBuf::from(file));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_file_lists_the_sources_of_its_target() {
        let text = "/out/a.wasm: /src/a.rs /src/with\\ space/b.rs /wit/c.wit\n";
        let files = ["/src/a.rs", "/src/with space/b.rs", "/wit/c.wit"];
        assert_eq!(dependencies(text), files.map(PathBuf::from));
    }

    #[test]
    fn a_dependency_file_without_sources_lists_none() {
        assert_eq!(dependencies("/out/a.wasm:\n\n"), Vec::<PathBuf>::new());
    }
}
