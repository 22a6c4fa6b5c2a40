//! The folders of a plugin: opened once, shared by its calls, and what has which rights in them.
//! It decides by place alone; whether a call may do something is decided in `rules`.

use super::place::{self, Identity, below, join, rest};
use belljar_capability::{Access, DenyGlobs, Granted, GuestPath};
use cap_primitives::fs as cap;
use std::{
    borrow::Cow,
    fs, io,
    path::{Path, PathBuf},
};
use wasmtime_wasi::filesystem::{Dir, FsPerms, OpenMode};

/// Guests run on threads that may block, so file operations run in place: a hop to another thread
/// for each costs more than most of them.
pub(super) const IN_PLACE: bool = true;

/// The folders that a plugin is granted, open.
#[derive(Default)]
pub(crate) struct Mounts {
    list: Vec<Mount>,
    deny: DenyGlobs,
    /// Our own folders, as far as they are there.
    own: Vec<Identity>,
}

pub(super) struct Mount {
    pub(super) guest: GuestPath,
    pub(super) host: PathBuf,
    pub(super) access: Access,
    folder: Dir,
    identity: Identity,
    /// What in it has rules of its own.
    inner: Vec<Inner>,
    /// The granted folders that this one lies in, and where.
    outer: Vec<(usize, String)>,
    /// Other disks or folders are mounted inside, so that a path alone does not tell whether it
    /// leads into a folder of ours.
    crossed: bool,
}

struct Inner {
    place: String,
    /// The same, case aside: what is refused is refused in every spelling.
    folded: String,
    kind: InnerKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum InnerKind {
    /// A folder of our own, there or not: guests do not see it.
    Own,
    /// A name on the way to one: it stays what it is.
    Way,
    /// Another granted folder.
    Mount(usize),
}

/// A folder that cannot be granted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    #[error("the folder `{path}` cannot be opened")]
    Open {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error(
        "`{path}` shows the system's own state and holds no files, so it cannot be granted: grant \
         a folder of a disk"
    )]
    SystemState { path: String },
    #[error("`{path}` is one of Belljar's own folders, which no plugin gets: grant another")]
    Own { path: String },
}

/// Whether a folder can be granted at all. For the moment at which a person makes the grant: it is
/// asked again whenever the folder is opened.
///
/// # Errors
///
/// It is not there, shows the system's own state, or is one of our `own` folders.
pub fn check_grantable(folder: &Path, own: &[PathBuf]) -> Result<(), MountError> {
    open_folder(folder, own).map(drop)
}

/// A folder, and where it really lies.
struct Opened {
    folder: fs::File,
    identity: Identity,
    real: PathBuf,
}

fn open_folder(path: &Path, own: &[PathBuf]) -> Result<Opened, MountError> {
    const STATE: [&str; 3] = ["/proc", "/sys", "/dev"];
    let text = || path.display().to_string();
    let failed = |source| MountError::Open { path: text(), source };
    let folder =
        cap::open_ambient_dir(path, cap_primitives::ambient_authority()).map_err(failed)?;
    let real = fs::canonicalize(path).map_err(failed)?;
    let is_state = place::is_system_state(&folder).map_err(failed)?;
    if is_state || STATE.iter().any(|state| real.starts_with(state)) {
        return Err(MountError::SystemState { path: text() });
    }
    let identity = place::identity(&folder.metadata().map_err(failed)?);
    let is_own =
        |own: &PathBuf| real.starts_with(settled(own)) || identity_of(own) == Some(identity);
    if own.iter().any(is_own) {
        return Err(MountError::Own { path: text() });
    }
    Ok(Opened { folder, identity, real })
}

/// Where a path that may not be there yet leads to: its nearest ancestor that is there, resolved,
/// and the rest.
fn settled(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|ancestor| {
        let rest = path.strip_prefix(ancestor).ok()?;
        Some(ancestor.canonicalize().ok()?.join(rest))
    });
    // Collected again, a path that was joined with nothing loses its `/` at the end.
    found.unwrap_or_else(|| path.to_owned()).components().collect()
}

fn identity_of(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().as_ref().map(place::identity)
}

/// Where all the names lie that lead to a folder of ours, links included; the folder itself last.
fn way_to(own: &Path) -> Vec<PathBuf> {
    let mut way: Vec<PathBuf> = own
        .ancestors()
        .filter_map(|ancestor| Some(settled(ancestor.parent()?).join(ancestor.file_name()?)))
        .collect();
    way.reverse();
    way
}

impl Mounts {
    /// Opens what is granted. A folder that cannot be is left out, and said.
    pub(crate) fn open(granted: &Granted, own: &[PathBuf]) -> (Self, Vec<MountError>) {
        let mut problems = Vec::new();
        let mut opened = Vec::new();
        for mount in &granted.mounts {
            match open_folder(&mount.host, own) {
                Ok(folder) => opened.push((mount, folder)),
                Err(error) => problems.push(error),
            }
        }
        let reals: Vec<PathBuf> = opened.iter().map(|(_, opened)| opened.real.clone()).collect();
        let own_there: Vec<Identity> = own.iter().filter_map(|own| identity_of(own)).collect();
        let mut list = Vec::new();
        for (number, (mount, opened)) in opened.into_iter().enumerate() {
            let Opened { folder, identity, real } = opened;
            let others = || reals.iter().enumerate().filter(|(other, _)| *other != number);
            let mut inner: Vec<Inner> = others()
                .filter_map(|(other, path)| {
                    let place = below(path, &real).filter(|place| !place.is_empty())?;
                    Some(Inner::new(place, InnerKind::Mount(other)))
                })
                .collect();
            inner.extend(own.iter().flat_map(|own| own_inside(own, &real)));
            let outer = others()
                .filter_map(|(other, path)| Some((other, below(&real, path)?)))
                .filter(|(_, place)| !place.is_empty())
                .collect();
            let crossed = has_mounts_inside(&real, &own_there);
            list.push(Mount {
                guest: mount.guest.clone(),
                host: mount.host.clone(),
                access: mount.access,
                folder: Dir::new(folder, FsPerms::ReadOnly, OpenMode::READ, IN_PLACE),
                identity,
                inner,
                outer,
                crossed,
            });
        }
        (Self { list, deny: granted.deny.clone(), own: own_there }, problems)
    }

    pub(super) fn list(&self) -> &[Mount] {
        &self.list
    }

    pub(super) fn get(&self, mount: usize) -> &Mount {
        &self.list[mount]
    }

    /// Whether everything in a folder has the same rights, so that nobody has to know where in it
    /// something lies to read it.
    pub(super) fn is_plain(&self, door: usize) -> bool {
        let mount = &self.list[door];
        self.deny.is_empty() && mount.inner.is_empty() && !mount.crossed
    }

    /// Whether where something lies has to be asked of the kernel: on a disk that ignores case, a
    /// name as it was typed is not the name that rights hang on.
    pub(super) fn asks_the_kernel(&self, door: usize) -> bool {
        let mount = &self.list[door];
        !mount.inner.is_empty() || mount.crossed
    }

    /// Whether something in a folder may be open for writing, wherever it lies.
    pub(super) fn has_writable(&self, door: usize) -> bool {
        let mount = &self.list[door];
        let writable = |inner: &Inner| match inner.kind {
            InnerKind::Mount(mount) => self.list[mount].access == Access::ReadWrite,
            InnerKind::Own | InnerKind::Way => false,
        };
        mount.access == Access::ReadWrite || mount.inner.iter().any(writable)
    }

    /// What is known of a place in the folder that a descriptor came from.
    pub(super) fn place(&self, door: usize, inside: String) -> Place {
        let mount = &self.list[door];
        let mut place = Place { door, mount: door, own: false, fixed: false, inside };
        if mount.inner.is_empty() {
            return place;
        }
        let folded = fold(&place.inside);
        let mut deepest = (0, Access::ReadWrite);
        for inner in &mount.inner {
            match inner.kind {
                InnerKind::Own => place.own |= rest(&folded, &inner.folded).is_some(),
                InnerKind::Way => {}
                InnerKind::Mount(number) if rest(&place.inside, &inner.place).is_some() => {
                    // Of one folder granted twice, the narrower grant holds from outside.
                    let access = self.list[number].access;
                    let (depth, so_far) = deepest;
                    let here = inner.place.len();
                    if here > depth || here == depth && access < so_far {
                        deepest = (here, access);
                        place.mount = number;
                    }
                }
                InnerKind::Mount(_) => {}
            }
            place.fixed |= rest(&inner.folded, &folded).is_some();
        }
        place
    }

    /// Whether a folder is one of ours, under whatever name it was reached.
    pub(super) fn is_own(&self, metadata: &fs::Metadata) -> bool {
        !self.own.is_empty() && self.own.contains(&place::identity(metadata))
    }

    /// Whether a place of the host lies in a folder of ours that is mounted elsewhere, too.
    pub(super) fn is_below_own(&self, door: usize, real: &Path) -> bool {
        let below =
            |path: &Path| fs::symlink_metadata(path).is_ok_and(|metadata| self.is_own(&metadata));
        self.list[door].crossed && real.ancestors().any(below)
    }

    /// Whether any name is closed.
    pub(super) fn denies(&self) -> bool {
        !self.deny.is_empty()
    }

    /// The glob that closes a place.
    pub(super) fn closed_by(&self, place: &Place) -> Option<&str> {
        if self.deny.is_empty() {
            return None;
        }
        self.views(place).find_map(|(_, inside)| self.deny.closes(&inside))
    }

    /// The glob that a folder's name at a place is part of.
    pub(super) fn glob_begun_by(&self, place: &Place) -> Option<&str> {
        if self.deny.is_empty() {
            return None;
        }
        self.views(place).find_map(|(_, inside)| self.deny.begins_at(&inside))
    }

    /// All guest paths of a place: the one of the folder that it was reached through, and those of
    /// the folders around and inside that it lies in.
    pub(super) fn guest_paths<'a>(
        &'a self,
        place: &'a Place,
    ) -> impl Iterator<Item = String> + use<'a> {
        self.views(place).map(|(mount, inside)| join(self.list[mount].guest.as_str(), &inside))
    }

    /// The guest path of a place, by the folder whose rights it has.
    pub(super) fn shown(&self, place: &Place) -> String {
        let mut views = self.views(place);
        let view = views.find(|(mount, _)| *mount == place.mount);
        let (mount, inside) = view.unwrap_or((place.door, Cow::Borrowed(&place.inside)));
        join(self.list[mount].guest.as_str(), &inside)
    }

    fn views<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = (usize, Cow<'a, str>)> {
        let mount = &self.list[place.door];
        let inside = place.inside.as_str();
        let outer = mount.outer.iter().map(|(outer, at)| (*outer, Cow::Owned(join(at, inside))));
        let inner = mount.inner.iter().filter_map(|inner| match inner.kind {
            InnerKind::Mount(mount) => Some((mount, Cow::Borrowed(rest(inside, &inner.place)?))),
            InnerKind::Own | InnerKind::Way => None,
        });
        std::iter::once((place.door, Cow::Borrowed(inside))).chain(outer).chain(inner)
    }
}

impl Mount {
    /// The folder as a call gets it, on the handle that all calls share.
    pub(super) fn preopen(&self, access: Access) -> Dir {
        let mut folder = self.folder.clone();
        if access == Access::ReadWrite {
            folder.perms = FsPerms::ReadWrite;
            folder.open_mode |= OpenMode::WRITE;
        }
        folder
    }

    pub(super) fn root(&self) -> &fs::File {
        &self.folder.dir
    }

    /// Whether what was opened shows the system's own state. Only asked of the system where
    /// something else is mounted inside.
    pub(super) fn is_system_state(
        &self,
        opened: &fs::File,
        identity: Identity,
    ) -> io::Result<bool> {
        Ok(identity.0 != self.identity.0 && place::is_system_state(opened)?)
    }
}

/// A place in a granted folder, and what rights hang on it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The granted folder that it was reached through.
    pub(super) door: usize,
    /// From that folder's root.
    pub(super) inside: String,
    /// The granted folder whose rights hold: the deepest.
    pub(super) mount: usize,
    /// It lies in a folder of ours.
    pub(super) own: bool,
    /// Something with rules of its own lies here or below: what is here stays here.
    pub(super) fixed: bool,
}

impl Inner {
    fn new(place: String, kind: InnerKind) -> Self {
        Self { folded: fold(&place), place, kind }
    }
}

/// What of the way to a folder of ours lies in a granted folder.
fn own_inside(own: &Path, real: &Path) -> Vec<Inner> {
    let inner = |path: &Path, kind| {
        let place = below(path, real).filter(|place| !place.is_empty())?;
        Some(Inner::new(place, kind))
    };
    let mut way = way_to(own);
    let last = way.pop();
    let links = way.iter().filter_map(|name| inner(name, InnerKind::Way));
    let itself = [last, Some(settled(own))];
    let folders = itself.iter().flatten().filter_map(|name| inner(name, InnerKind::Own));
    links.chain(folders).collect()
}

fn fold(text: &str) -> String {
    text.to_lowercase()
}

/// Whether something is mounted below a folder that may be a folder of ours, or lie around one.
#[cfg(target_os = "linux")]
fn has_mounts_inside(real: &Path, own: &[Identity]) -> bool {
    use std::os::unix::ffi::OsStringExt;
    if own.is_empty() {
        return false;
    }
    // What cannot be read must be expected.
    let Ok(table) = fs::read("/proc/self/mountinfo") else { return true };
    table.split(|byte| *byte == b'\n').any(|line| {
        let Some(point) = line.split(|byte| *byte == b' ').nth(4) else { return false };
        let point = PathBuf::from(std::ffi::OsString::from_vec(unescape(point)));
        let is_below = point != real && point.starts_with(real);
        let disk = |(disk, _): Identity| own.iter().any(|own| own.0 == disk);
        is_below && identity_of(&point).is_none_or(disk)
    })
}

#[cfg(not(target_os = "linux"))]
fn has_mounts_inside(_: &Path, own: &[Identity]) -> bool {
    !own.is_empty()
}

/// The kernel writes blanks in paths as `\040`.
#[cfg(target_os = "linux")]
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'\\').then(|| after.get(..3)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(str::from_utf8(code).ok()?, 8).ok());
        match code {
            Some(byte) => {
                plain.push(byte);
                rest = &after[3..];
            }
            None => {
                plain.push(first);
                rest = after;
            }
        }
    }
    plain
}
