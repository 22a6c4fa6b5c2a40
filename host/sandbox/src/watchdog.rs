//! The watchdog: notices that a call's thread does not come back, since the kernel holds it.
//!
//! All calls share one beat. A timer for each would wake the runtime's driver at every call, which
//! costs more than a small call itself.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// How late a stuck call may be noticed.
const BEAT: Duration = Duration::from_millis(250);
/// Beats without a call after which the watchdog rests.
const PATIENCE: u32 = 8;

#[derive(Clone, Debug, Default)]
pub(crate) struct Watchdog(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    beat: Notify,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_awake: bool,
    waiting: u32,
}

impl Watchdog {
    /// Ends once the time has passed, up to a beat late.
    pub(crate) async fn wait_until(&self, time: Instant) {
        let _waiting = self.enter();
        loop {
            self.0.beat.notified().await;
            if Instant::now() >= time {
                return;
            }
        }
    }

    fn enter(&self) -> Waiting {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        if !state.is_awake {
            state.is_awake = true;
            tokio::spawn(beat(Arc::clone(&self.0)));
        }
        Waiting(Arc::clone(&self.0))
    }
}

/// A call that is watched; dropping it ends that.
struct Waiting(Arc<Shared>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).waiting -= 1;
    }
}

async fn beat(shared: Arc<Shared>) {
    let mut idle = 0;
    loop {
        tokio::time::sleep(BEAT).await;
        shared.beat.notify_waiters();
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        idle = if state.waiting == 0 { idle + 1 } else { 0 };
        if idle >= PATIENCE {
            state.is_awake = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_on_the_first_beat_after_its_time_and_others_go_on() {
        let watchdog = Watchdog::default();
        let now = Instant::now();
        let mut long = Box::pin(watchdog.wait_until(now + Duration::from_secs(3_600)));
        tokio::select! {
            () = watchdog.wait_until(now) => {}
            () = &mut long => panic!("an hour has not passed"),
        }
        assert!(futures::poll!(&mut long).is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn it_rests_when_nobody_waits_and_wakes_again() {
        let watchdog = Watchdog::default();
        let is_awake = || watchdog.0.state.lock().unwrap().is_awake;
        watchdog.wait_until(Instant::now()).await;
        assert!(is_awake());
        tokio::time::sleep(BEAT * (PATIENCE + 2)).await;
        assert!(!is_awake());
        watchdog.wait_until(Instant::now()).await;
        assert!(is_awake());
    }
}
