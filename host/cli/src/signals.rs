//! Ctrl-C and SIGTERM: the first one cancels, a second one within two seconds ends the program.

use crate::exit;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Within this time a second signal means that the first was not enough.
const TWICE: Duration = Duration::from_secs(2);

/// A canceled command that has not ended by then waits for something that does not come, such as
/// a reader of standard output.
const PATIENCE: Duration = Duration::from_secs(10);

/// A token that the next signal cancels.
pub(crate) fn cancel_on_signals() -> anyhow::Result<CancellationToken> {
    let token = CancellationToken::new();
    let mut signals = Signals::listen()?;
    let canceled = token.clone();
    tokio::spawn(async move {
        signals.next().await;
        canceled.cancel();
        let mut last = Instant::now();
        loop {
            if tokio::time::timeout(PATIENCE, signals.next()).await.is_err() {
                std::process::exit(exit::CANCELED.into());
            }
            if last.elapsed() <= TWICE {
                std::process::exit(exit::CANCELED.into());
            }
            last = Instant::now();
        }
    });
    Ok(token)
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
