//! How many handles this process may have open, and how many calls may therefore run at a time.
//!
//! Guests are refused a handle before the process runs out of them: a host that cannot open a
//! socket or a file would fail everybody.

use crate::engine::EngineSettings;
use belljar_capability::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the host itself needs: plugins, caches, sessions, sockets to models, the runtime.
const OF_THE_HOST: u64 = 256;

/// Raises the soft limit of this process's open files to what all calls together may have, as far
/// as the hard limit lets it. For the start of a program; a soft limit that is higher stays.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = handles_for(EngineSettings::default().calls_in_flight, &Limits::default());
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if current.is_some_and(|current| current < raised) {
        // Where it is refused, fewer calls run at a time.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum });
    }
}

/// The limit of this process's open files now; nothing where there is none.
pub fn open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// How many handles the process needs for so many calls at a time.
pub fn handles_for(calls: u32, limits: &Limits) -> u64 {
    u64::from(calls).saturating_mul(limits.open_files.max(1)).saturating_add(OF_THE_HOST)
}

/// How many calls may run at a time where so many handles may be open, at least one.
pub fn places_for(open_files: Option<u64>, limits: &Limits) -> u32 {
    let most = EngineSettings::default().calls_in_flight;
    let Some(open_files) = open_files else { return most };
    let places = open_files.saturating_sub(OF_THE_HOST) / limits.open_files.max(1);
    u32::try_from(places).unwrap_or(most).clamp(1, most)
}

impl EngineSettings {
    /// The usual settings, with no more calls at a time than this process has handles for.
    #[must_use]
    pub fn for_this_process(limits: &Limits) -> Self {
        Self { calls_in_flight: places_for(open_files(), limits), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_never_need_more_handles_than_there_are() {
        let limits = Limits::default();
        let cases = [(0, 1), (256, 1), (1_024, 3), (4_096, 15), (16_640, 64), (1 << 20, 64)];
        for (open_files, places) in cases {
            assert_eq!(places_for(Some(open_files), &limits), places, "{open_files}");
            if open_files > 512 {
                assert!(handles_for(places, &limits) <= open_files);
            }
        }
        assert_eq!(places_for(None, &limits), 64);
        let none = Limits { open_files: 0, ..limits };
        assert_eq!(places_for(Some(1_024), &none), 64);
    }
}
