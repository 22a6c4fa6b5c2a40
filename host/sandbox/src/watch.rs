//! Watching the folders of plugins: when something in them changes, they are looked through again.
//!
//! The system is asked to tell; where it cannot (the number of watches is limited), the folders are
//! looked at in each round instead, and that is said. It never reads a file: it only says when.

use crate::toolbox::Inner;
use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode},
};
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use tokio::sync::watch::{self, Receiver, Sender};

/// How long nothing must change before the folders are looked through: programs write files in
/// pieces.
const QUIET: Duration = Duration::from_millis(100);
/// How long that may put it off, where something changes all the time.
const LONGEST: Duration = Duration::from_secs(1);
/// How long a round waits for what has just changed to be taken: compiling a small component takes
/// about a second where the machine is busy.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether the folders of plugins are looked through again while a sandbox is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watching {
    #[default]
    No,
    /// When the system tells that something in them changed.
    Told,
    /// In each round, where the system does not tell: on some network file systems.
    EachRound,
}

pub(crate) struct Watch {
    /// Changes so far; clones count in the same place.
    changes: Arc<Sender<u64>>,
    /// How many of them have been looked at.
    looked: Sender<u64>,
    folders: Mutex<Folders>,
}

struct Folders {
    paths: Vec<PathBuf>,
    /// Absent where the system does not tell.
    watcher: Option<RecommendedWatcher>,
    /// The folders that are watched, each as it was.
    watched: Vec<(PathBuf, (u64, u64))>,
}

impl Watch {
    /// Begins to watch; the text says so where the system does not tell.
    pub(crate) fn start(paths: Vec<PathBuf>, watching: Watching) -> Option<(Self, Option<String>)> {
        let changes = Arc::new(watch::channel(0).0);
        if watching != Watching::Told {
            let folders = Folders { paths, watcher: None, watched: Vec::new() };
            let watch = Self { changes, looked: watch::channel(0).0, folders: Mutex::new(folders) };
            return (watching == Watching::EachRound).then_some((watch, None));
        }
        let counter = Arc::clone(&changes);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Events that were lost are changes too.
            if event.as_ref().map_or(true, is_change) {
                counter.send_modify(|count| *count += 1);
            }
        });
        let (watcher, mut problem) = match watcher {
            Ok(watcher) => (Some(watcher), None),
            Err(error) => (None, Some(error)),
        };
        let mut folders = Folders { paths, watcher, watched: Vec::new() };
        if let Err(error) = folders.adopt() {
            problem.get_or_insert(error);
        }
        let notice = problem.map(|error| {
            format!(
                "the plugin folders are not watched, but looked at in each round: {error}; raise \
                 the limit `fs.inotify.max_user_watches` or `max_user_instances` to have them \
                 watched"
            )
        });
        let watch = Self { changes, looked: watch::channel(0).0, folders: Mutex::new(folders) };
        Some((watch, notice))
    }

    /// A round begins: notes folders that came to be since, and waits a moment for what has just
    /// changed to be taken.
    pub(crate) async fn catch_up(&self) {
        {
            let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
            let adopted = folders.adopt();
            if folders.watcher.is_none() || adopted.is_err() || adopted.is_ok_and(|any| any) {
                self.changes.send_modify(|count| *count += 1);
            }
        }
        let so_far = self.count();
        let mut looked = self.looked.subscribe();
        // What takes longer, such as compiling, is there in a later round.
        let _ = tokio::time::timeout(PATIENCE, looked.wait_for(|count| *count >= so_far)).await;
    }

    pub(crate) fn count(&self) -> u64 {
        *self.changes.borrow()
    }

    /// The folders were looked through after that many changes.
    pub(crate) fn has_looked(&self, count: u64) {
        self.looked.send_replace(count);
    }

    pub(crate) fn changes(&self) -> Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Folders {
    /// Watches the folders that are there and not watched yet; says whether there were any.
    fn adopt(&mut self) -> notify::Result<bool> {
        let Some(watcher) = &mut self.watcher else { return Ok(false) };
        let mut any = false;
        for path in &self.paths {
            let now = place(path).ok();
            let before = self.watched.iter().position(|(watched, _)| watched == path);
            if now == before.map(|at| self.watched[at].1) {
                continue;
            }
            if let Some(at) = before {
                // Another folder lies there now: the watch on the first is of no use.
                let _ = watcher.unwatch(path);
                self.watched.swap_remove(at);
            }
            any = true;
            if let Some(now) = now {
                match watcher.watch(path, RecursiveMode::NonRecursive) {
                    Ok(()) => self.watched.push((path.clone(), now)),
                    // It went away again: that is seen in the next round.
                    Err(_) if !path.exists() => {}
                    Err(error) => {
                        self.watcher = None;
                        return Err(error);
                    }
                }
            }
        }
        Ok(any)
    }
}

fn place(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Reading a folder, which is what follows, is none.
fn is_change(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => event.need_rescan(),
        _ => true,
    }
}

/// Looks through the folders after each change, for as long as the sandbox is there.
pub(crate) async fn keep(sandbox: Weak<Inner>, mut changes: Receiver<u64>) {
    while changes.changed().await.is_ok() {
        let settled = async {
            while tokio::time::timeout(QUIET, changes.changed())
                .await
                .is_ok_and(|next| next.is_ok())
            {}
        };
        let _ = tokio::time::timeout(LONGEST, settled).await;
        let Some(sandbox) = sandbox.upgrade() else { return };
        sandbox.look().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{CreateKind, MetadataKind, ModifyKind, RemoveKind};

    #[test]
    fn reading_is_no_change_and_writing_is() {
        let cases = [
            (EventKind::Access(AccessKind::Open(AccessMode::Any)), false),
            (EventKind::Access(AccessKind::Read), false),
            (EventKind::Access(AccessKind::Close(AccessMode::Read)), false),
            (EventKind::Access(AccessKind::Close(AccessMode::Write)), true),
            (EventKind::Create(CreateKind::File), true),
            (EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)), true),
            (EventKind::Remove(RemoveKind::File), true),
            (EventKind::Other, true),
        ];
        for (kind, expected) in cases {
            assert_eq!(is_change(&Event::new(kind)), expected, "{kind:?}");
        }
    }
}
