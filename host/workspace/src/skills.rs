//! Skills: folders with a `SKILL.md` in the agentskills format, from the user's data folder and
//! from a trusted workspace.
//!
//! A skill is text for the model and nothing more: nothing in it is run, and what it says about
//! tools is shown and never applied. What cannot be taken is named and left out; a run does not
//! fail over it. Whether the workspace is trusted is decided elsewhere.

mod front_matter;

use crate::{
    owner::Ownership,
    places::Places,
    text_file::{self, Text},
};
use async_trait::async_trait;
use belljar_types::{LoadedSkill, Origin};
use cap_fs_ext::DirExt;
use cap_std::{ambient_authority, fs::Dir};
use front_matter::FrontMatter;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

const FILE: &str = "SKILL.md";
/// The longest `SKILL.md`, in bytes.
const MAX_FILE: usize = 64 << 10;
/// Skills in one folder.
const MAX_SKILLS: usize = 100;

/// What the model reads of a skill before it loads it, and what people are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// One line.
    pub description: String,
    pub source: SkillSource,
    /// What the skill says it may use. Shown, and never applied.
    pub allowed_tools: Vec<String>,
    pub license: Option<String>,
    pub compatibility: Option<String>,
}

/// Where a skill lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillSource {
    /// The user's data folder.
    User,
    /// The trusted folder; the path of the file inside it, with `/`.
    Workspace { path: String },
}

impl SkillSource {
    /// Where its text comes from: a person put the user's own skills there.
    pub fn origin(&self) -> Origin {
        match self {
            Self::User => Origin::Person,
            Self::Workspace { path } => Origin::Workspace { path: path.clone() },
        }
    }
}

/// A skill that cannot be loaded. For the model: it names no host path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    #[error("there is no skill `{name}`: {hint}")]
    Unknown { name: String, hint: String },
    #[error("the skill `{name}` is not loaded: {reason}")]
    Unreadable { name: String, reason: String },
}

/// The skills that were found, by name.
#[derive(Debug, Default)]
pub struct Skills {
    found: BTreeMap<String, Found>,
    folders: Vec<Dir>,
    notices: Vec<String>,
}

#[derive(Debug)]
struct Found {
    skill: Skill,
    /// The folder that it was found in.
    folder: usize,
}

#[async_trait]
impl belljar_types::Skills for Skills {
    async fn load(&self, name: &str) -> Result<LoadedSkill, String> {
        // One small file of the user's own disk.
        self.load(name).map_err(|error| error.to_string())
    }
}

/// A folder of skills.
struct Place {
    path: PathBuf,
    is_users: bool,
}

impl Skills {
    /// Looks at what is there now. `workspace` is the folder of skills of a trusted workspace. Of
    /// two skills with one name the user's own counts.
    pub fn read(places: &Places, workspace: Option<&Path>) -> Self {
        let own = Place { path: places.skills(), is_users: true };
        let workspace = workspace.map(|path| Place { path: path.to_owned(), is_users: false });
        let mut skills = Self::default();
        for place in [Some(own), workspace].into_iter().flatten() {
            if let Err(reason) = skills.read_folder(&place) {
                skills
                    .notices
                    .push(format!("no skill is read in `{}`: {reason}", place.path.display()));
            }
        }
        skills
    }

    /// All of them, sorted by name.
    pub fn catalog(&self) -> impl Iterator<Item = &Skill> {
        self.found.values().map(|found| &found.skill)
    }

    /// What a person should know: what was left out and why.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Reads a skill's text as it is now.
    ///
    /// # Errors
    ///
    /// There is no such skill, or its file cannot be taken any more.
    pub fn load(&self, name: &str) -> Result<LoadedSkill, SkillError> {
        let Some(found) = self.found.get(name) else {
            return Err(SkillError::Unknown { name: name.to_owned(), hint: self.hint(name) });
        };
        let unreadable = |reason| SkillError::Unreadable { name: name.to_owned(), reason };
        let folder = self.folders.get(found.folder).ok_or_else(|| unreadable(gone()))?;
        let read = read_skill(folder, name).map_err(unreadable)?;
        let (front_matter, text) = read.ok_or_else(|| unreadable(gone()))?;
        let Skill { name, source, allowed_tools, .. } =
            skill(name, front_matter, found.skill.source.clone());
        Ok(LoadedSkill { name, text, allowed_tools, origin: source.origin() })
    }

    fn hint(&self, name: &str) -> String {
        let near = self
            .found
            .keys()
            .map(|known| (strsim::osa_distance(name, known), known))
            .min()
            .filter(|(distance, _)| *distance <= 3);
        match near {
            Some((_, near)) => format!("did you mean `{near}`?"),
            None if self.found.is_empty() => "none is installed".to_owned(),
            None => {
                let names: Vec<_> = self.found.keys().map(|name| format!("`{name}`")).collect();
                format!("the known ones are {}", names.join(", "))
            }
        }
    }

    fn read_folder(&mut self, place: &Place) -> Result<(), String> {
        let dir = match Dir::open_ambient_dir(&place.path, ambient_authority()) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let metadata = dir.dir_metadata().map_err(|error| error.to_string())?;
        Ownership::from(&metadata).guarded().map_err(|fault| format!("it {fault}"))?;
        let mut names = Vec::new();
        for entry in dir.entries().map_err(|error| error.to_string())? {
            let entry = entry.map_err(|error| error.to_string())?;
            // Files beside the skills, a README say, are nobody's mistake.
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            let name = entry.file_name().to_string_lossy().into_owned();
            if !is_file && !name.starts_with('.') {
                names.push(name);
            }
        }
        names.sort();
        let folder = self.folders.len();
        let mut taken = 0;
        for name in &names {
            let shown = place.path.join(name);
            let note = |reason: &str| format!("no skill: `{}`: {reason}", shown.display());
            match read_skill(&dir, name) {
                Err(reason) => self.notices.push(note(&reason)),
                Ok(None) => self.notices.push(note(&format!("it has no `{FILE}`"))),
                Ok(Some(_)) if taken == MAX_SKILLS => {
                    self.notices.push(note(&format!("a folder holds at most {MAX_SKILLS}")));
                }
                Ok(Some(_)) if self.found.contains_key(name) => {
                    self.notices.push(note("your own skill of that name counts"));
                }
                Ok(Some((front_matter, _))) => {
                    let source = match place.is_users {
                        true => SkillSource::User,
                        false => SkillSource::Workspace {
                            path: format!(".belljar/skills/{name}/{FILE}"),
                        },
                    };
                    taken += 1;
                    let skill = skill(name, front_matter, source);
                    self.found.insert(name.clone(), Found { skill, folder });
                }
            }
        }
        self.folders.push(dir);
        Ok(())
    }
}

fn skill(name: &str, front_matter: FrontMatter, source: SkillSource) -> Skill {
    let FrontMatter { description, allowed_tools, license, compatibility, .. } = front_matter;
    let name = name.to_owned();
    Skill { name, description, source, allowed_tools, license, compatibility }
}

fn gone() -> String {
    "it is not there any more".to_owned()
}

/// Reads the skill in the folder of that name; nothing where that has no `SKILL.md`.
fn read_skill(folder: &Dir, name: &str) -> Result<Option<(FrontMatter, String)>, String> {
    let dir = match folder.open_dir_nofollow(name) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) => return Err("it is a link or cannot be opened".to_owned()),
    };
    let metadata = dir.dir_metadata().map_err(|error| error.to_string())?;
    Ownership::from(&metadata).guarded().map_err(|fault| format!("it {fault}"))?;
    let about_file = |reason: String| format!("its `{FILE}` is not read: {reason}");
    let file = text_file::open(&dir, FILE, Ownership::guarded).map_err(about_file)?;
    let Some(file) = file else { return Ok(None) };
    let Text { text, left_out } = text_file::read(file, MAX_FILE).map_err(about_file)?;
    if left_out > 0 {
        return Err(about_file(format!(
            "it is longer than {MAX_FILE} bytes: move what is not always needed into files beside \
             it"
        )));
    }
    let (front_matter, rest) = front_matter::split(&text).map_err(about_file)?;
    if front_matter.name != name {
        return Err(about_file(format!(
            "its `name` is `{}`, and its folder's is `{name}`: they must be the same",
            front_matter.name
        )));
    }
    Ok(Some((front_matter, rest.to_owned())))
}

#[cfg(test)]
mod tests;
