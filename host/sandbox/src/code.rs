//! The compiled code of one plugin: there when it is called, given back when it rests.

use crate::{bindings::PluginPre, load_error::LoadError, state::CallState};
use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

/// How long a plugin rests before its code is given back. Getting it from the compile cache again
/// takes a millisecond or two; holding it takes up to some MiB for a plugin with an interpreter.
pub(crate) const REST: Duration = Duration::from_secs(5 * 60);

/// Compiled code that may be there; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Code(Arc<Mutex<Option<Held>>>);

struct Held {
    pre: PluginPre<CallState>,
    used: Instant,
}

impl Code {
    pub(crate) fn compiled(pre: PluginPre<CallState>) -> Self {
        Self(Arc::new(Mutex::new(Some(Held { pre, used: Instant::now() }))))
    }

    /// What is there, for a call. Never blocks: while another call loads, nothing is there.
    pub(crate) fn now(&self) -> Option<PluginPre<CallState>> {
        self.0.try_lock().ok()?.as_mut().map(Held::used)
    }

    /// What is there, else what `load` gets. Blocks while another thread loads it.
    pub(crate) fn get(
        &self,
        load: impl FnOnce() -> Result<PluginPre<CallState>, LoadError>,
    ) -> Result<PluginPre<CallState>, LoadError> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = &mut *held {
            return Ok(held.used());
        }
        let pre = load()?;
        Ok(held.insert(Held { pre, used: Instant::now() }).used())
    }

    /// Gives it back if nobody used it for so long, and says whether it did. Calls that run keep
    /// what they have.
    pub(crate) fn give_back(&self, rested: Duration) -> bool {
        let Ok(mut held) = self.0.try_lock() else { return false };
        held.take_if(|held| held.used.elapsed() >= rested).is_some()
    }
}

impl Held {
    fn used(&mut self) -> PluginPre<CallState> {
        self.used = Instant::now();
        self.pre.clone()
    }
}

/// Gives code back from time to time, as long as the sandbox is there.
pub(crate) async fn keep_small<T>(sandbox: Weak<T>, give_back: impl Fn(&T, Duration) -> usize) {
    loop {
        tokio::time::sleep(REST / 5).await;
        let Some(sandbox) = sandbox.upgrade() else { return };
        give_back(&sandbox, REST);
    }
}
