//! One process, bounded in time and in what is kept of its output, and ended with all that it
//! started.
//!
//! Never a shell. On Unix the process leads a group of its own, and the group is killed as soon as
//! its leader has ended, at the deadline, or when nobody waits any more. It is killed before the
//! leader is reaped, so that no other process can have taken its number by then.

use std::{fmt, io, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
};

/// What is kept of each stream, in bytes. The rest is read and dropped, so that the process is not
/// held up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) output: usize,
    pub(super) errors: usize,
    /// How long streams are still read when the process has ended: what it left behind, in a group
    /// of its own, may hold them open.
    pub(super) grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { output: 64 << 10, errors: 16 << 10, grace: Duration::from_millis(500) }
    }
}

/// How a process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    /// Nothing where a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) output: String,
    pub(super) output_cut: bool,
    pub(super) errors: String,
    pub(super) errors_cut: bool,
}

/// A hook that did not answer. Continues a sentence that began with the hook.
#[derive(Debug)]
pub(super) enum Failure {
    NotStarted(io::Error),
    InWorkspace,
    Lost(io::Error),
    Deadline { after: Duration },
    TooMuch { most: usize },
    NoDecision(String),
    Code { code: Option<i32>, errors: String },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(error) => {
                write!(f, "could not be started ({error}): check its `command`")
            }
            Self::InWorkspace => f.write_str(
                "was not started, since it lies in the workspace, where tool calls can change it: \
                 put it elsewhere",
            ),
            Self::Lost(error) => write!(f, "could not be waited for ({error})"),
            Self::Deadline { after } => write!(
                f,
                "had not ended after {}s and was killed with all that it started: raise its \
                 `timeout` if it needs longer",
                after.as_secs_f64()
            ),
            Self::TooMuch { most } => write!(
                f,
                "printed more than {most} bytes, which is no decision: print one JSON object, or \
                 nothing"
            ),
            Self::NoDecision(why) => {
                write!(f, "printed what is no decision ({why}): print one JSON object, or nothing")
            }
            Self::Code { code, errors } => {
                match code {
                    Some(code) => write!(f, "ended with exit code {code}")?,
                    None => write!(f, "was ended by a signal")?,
                }
                if errors.is_empty() { Ok(()) } else { write!(f, ": {errors}") }
            }
        }
    }
}

/// Runs a process to its end.
pub(super) async fn run(
    mut command: Command,
    input: String,
    timeout: Duration,
    limits: Limits,
) -> Result<Ended, Failure> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn().map_err(Failure::NotStarted)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut group = Group { child };
    let talk = async {
        let (mut output, mut errors) = (Kept::new(limits.output), Kept::new(limits.errors));
        {
            let write = async {
                if let Some(mut stdin) = stdin {
                    // One that does not read is no mistake.
                    let _ = stdin.write_all(input.as_bytes()).await;
                }
            };
            let streams = async {
                tokio::join!(write, output.read(stdout), errors.read(stderr));
            };
            tokio::pin!(streams);
            let exited = tokio::select! {
                exited = group.exited() => Some(exited),
                // It may close its streams and go on.
                () = &mut streams => None,
            };
            match exited {
                Some(exited) => {
                    exited.map_err(Failure::Lost)?;
                    group.kill();
                    let _ = tokio::time::timeout(limits.grace, streams).await;
                }
                None => group.exited().await.map_err(Failure::Lost)?,
            }
        }
        Ok((output, errors))
    };
    let talked = tokio::time::timeout(timeout, talk).await;
    group.kill();
    let reaped = tokio::time::timeout(limits.grace, group.child.wait()).await;
    let (output, errors) = talked.map_err(|_| Failure::Deadline { after: timeout })??;
    let status = reaped.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let (output_cut, errors_cut) = (output.cut, errors.cut);
    Ok(Ended {
        code: status.map_err(Failure::Lost)?.code(),
        output: output.text(),
        output_cut,
        errors: errors.text(),
        errors_cut,
    })
}

/// The beginning of a stream.
struct Kept {
    bytes: Vec<u8>,
    most: usize,
    cut: bool,
}

impl Kept {
    fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, cut: false }
    }

    async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; 16 << 10];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            let room = self.most - self.bytes.len();
            self.bytes.extend_from_slice(&buffer[..read.min(room)]);
            self.cut |= read > room;
        }
    }

    fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// A process and all that it started in its group.
struct Group {
    child: Child,
}

#[cfg(unix)]
impl Group {
    /// The leader's number, as long as it was not reaped.
    fn leader(&self) -> Option<rustix::process::Pid> {
        let id = i32::try_from(self.child.id()?).ok()?;
        rustix::process::Pid::from_raw(id)
    }

    /// Waits until the leader has ended, and leaves it to be reaped.
    async fn exited(&mut self) -> io::Result<()> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let Some(leader) = self.leader() else { return Ok(()) };
        let wait = move || {
            loop {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                match waitid(WaitId::Pid(leader), options) {
                    Err(rustix::io::Errno::INTR) => {}
                    ended => return ended.map(drop).map_err(io::Error::from),
                }
            }
        };
        tokio::task::spawn_blocking(wait).await.map_err(io::Error::other)?
    }

    fn kill(&self) {
        if let Some(leader) = self.leader() {
            // A group that is gone already is what was wanted.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(not(unix))]
impl Group {
    /// Waits until the process has ended.
    async fn exited(&mut self) -> io::Result<()> {
        self.child.wait().await.map(drop)
    }

    fn kill(&mut self) {
        // One that has ended already is what was wanted.
        let _ = self.child.start_kill();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
