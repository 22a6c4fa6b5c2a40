//! What the model is asked: the prompt's argument and what is piped in.
//!
//! Never waits for standard input unless `-` says so: an open pipe that holds nothing is left
//! alone after a moment, one that falls silent after a while.

use crate::exit::Usage;
use belljar_types::{Origin, Part};
use sha2::{Digest as _, Sha256};
use std::{
    io::{self, IsTerminal as _, Read as _},
    time::Duration,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long a pipe without data is given: enough for a program that was started at the same time.
const FIRST_BYTE: Duration = Duration::from_millis(300);
/// How long a pipe that has given data may be silent.
const SILENCE: Duration = Duration::from_secs(2);
/// No model reads more, and a program that never stops writing must not fill the memory.
pub(crate) const LARGEST: usize = 8 << 20;

/// What was read to the end.
pub(crate) enum Input {
    Text(String),
    Canceled,
}

/// The parts of the person's message.
pub(crate) enum Prompt {
    Parts { parts: Vec<Part>, notices: Vec<String> },
    Canceled,
}

impl Prompt {
    /// Nothing is said.
    pub(crate) fn nothing() -> Self {
        Self::Parts { parts: Vec::new(), notices: Vec::new() }
    }
}

/// Puts together the prompt of a run.
pub(crate) async fn assemble(
    argument: Option<&str>,
    cancel: &CancellationToken,
) -> anyhow::Result<Prompt> {
    let argument = match argument {
        Some("-") => {
            return Ok(match read_all(cancel).await? {
                Input::Text(text) if text.trim().is_empty() => {
                    return Err(usage("standard input holds no prompt"));
                }
                Input::Text(text) => parts(&text, None, Vec::new()),
                Input::Canceled => Prompt::Canceled,
            });
        }
        Some(text) if !text.trim().is_empty() => text,
        _ => {
            return Err(usage(
                "there is no prompt: write `belljar run \"PROMPT\"`, or `belljar run -` to read \
                 it from standard input",
            ));
        }
    };
    if io::stdin().is_terminal() {
        return Ok(parts(argument, None, Vec::new()));
    }
    let mut pipe = Pipe::open();
    let piped = tokio::select! {
        piped = pipe.take_what_comes(FIRST_BYTE, SILENCE) => piped?,
        () = cancel.cancelled() => return Ok(Prompt::Canceled),
    };
    Ok(parts(argument, Some(&piped.bytes), piped.notice().into_iter().collect()))
}

/// Reads standard input to its end, however long that takes.
pub(crate) async fn read_all(cancel: &CancellationToken) -> anyhow::Result<Input> {
    let mut pipe = Pipe::open();
    let forever = Duration::MAX;
    tokio::select! {
        piped = pipe.take_what_comes(forever, forever) => {
            let text = String::from_utf8(piped?.bytes)
                .map_err(|_| usage("standard input is not UTF-8 text"))?;
            Ok(Input::Text(text))
        }
        () = cancel.cancelled() => Ok(Input::Canceled),
    }
}

fn usage(message: &str) -> anyhow::Error {
    Usage(message.to_owned()).into()
}

fn parts(prompt: &str, piped: Option<&[u8]>, mut notices: Vec<String>) -> Prompt {
    let mut parts = vec![Part::text(prompt, Origin::Person)];
    if let Some(piped) = piped.filter(|piped| !piped.trim_ascii().is_empty()) {
        let text = String::from_utf8_lossy(piped);
        if matches!(text, std::borrow::Cow::Owned(_)) {
            let message = "standard input is not all UTF-8: what is not was replaced by `\u{fffd}`";
            notices.push(message.to_owned());
        }
        parts.push(Part::text(block(&text), Origin::Person));
    }
    Prompt::Parts { parts, notices }
}

/// Puts what was piped in between marks that hold the digest of its text: no text can hold its
/// own, so none can end its block early and go on as the person's words.
fn block(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mark: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    format!("<stdin mark=\"{mark}\">\n{text}{newline}</stdin mark=\"{mark}\">")
}

/// Standard input, read by a thread of its own, since a read cannot be called off.
struct Pipe {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
}

struct Piped {
    bytes: Vec<u8>,
    /// The end was not reached.
    is_open: bool,
}

impl Pipe {
    fn open() -> Self {
        let (sender, chunks) = mpsc::channel(4);
        std::thread::spawn(move || {
            let mut stdin = io::stdin().lock();
            let mut buffer = vec![0; 64 << 10];
            loop {
                let chunk = match stdin.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(length) => Ok(buffer[..length].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = chunk.is_err();
                if sender.blocking_send(chunk).is_err() || failed {
                    return;
                }
            }
        });
        Self { chunks }
    }

    async fn take_what_comes(
        &mut self,
        first_byte: Duration,
        silence: Duration,
    ) -> anyhow::Result<Piped> {
        let mut bytes = Vec::new();
        let mut patience = first_byte;
        loop {
            match tokio::time::timeout(patience, self.chunks.recv()).await {
                Err(_) => return Ok(Piped { bytes, is_open: true }),
                Ok(None) => return Ok(Piped { bytes, is_open: false }),
                // A standard input that is closed or cannot be read holds no data.
                Ok(Some(Err(_))) if bytes.is_empty() => {
                    return Ok(Piped { bytes, is_open: false });
                }
                Ok(Some(Err(error))) => {
                    return Err(anyhow::Error::new(error).context("cannot read standard input"));
                }
                Ok(Some(Ok(chunk))) => bytes.extend_from_slice(&chunk),
            }
            if bytes.len() > LARGEST {
                return Err(usage(
                    "standard input is longer than 8 MiB: put it in a file of the workspace",
                ));
            }
            patience = silence;
        }
    }
}

impl Piped {
    fn notice(&self) -> Option<String> {
        (self.is_open && !self.bytes.is_empty()).then(|| {
            format!(
                "standard input fell silent without ending: only the {} bytes that had come were \
                 taken; to have all of it, write it to a file first",
                self.bytes.len()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_types::Content;

    fn pipe(
        chunks: &[&[u8]],
        stays_open: bool,
    ) -> (Pipe, Option<mpsc::Sender<io::Result<Vec<u8>>>>) {
        let (sender, receiver) = mpsc::channel(chunks.len().max(1));
        for chunk in chunks {
            sender.try_send(Ok(chunk.to_vec())).unwrap();
        }
        (Pipe { chunks: receiver }, stays_open.then_some(sender))
    }

    async fn taken(chunks: &[&[u8]], stays_open: bool) -> (Vec<u8>, Option<String>) {
        let (mut pipe, _sender) = pipe(chunks, stays_open);
        let piped = pipe.take_what_comes(FIRST_BYTE, SILENCE).await.unwrap();
        let notice = piped.notice();
        (piped.bytes, notice)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_piped_is_taken_and_an_open_pipe_holds_up_nothing() {
        assert_eq!(taken(&[b"a ", b"diff"], false).await, (b"a diff".to_vec(), None));
        assert_eq!(taken(&[], false).await, (Vec::new(), None));
        assert_eq!(taken(&[], true).await, (Vec::new(), None));
        let (bytes, notice) = taken(&[b"half"], true).await;
        assert_eq!(bytes, b"half");
        assert_eq!(
            notice.unwrap(),
            "standard input fell silent without ending: only the 4 bytes that had come were \
             taken; to have all of it, write it to a file first"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_pipe_that_never_ends_is_refused() {
        let chunk = vec![b'x'; LARGEST / 2 + 1];
        let (mut pipe, _sender) = pipe(&[&chunk, &chunk], true);
        let error = pipe.take_what_comes(FIRST_BYTE, SILENCE).await.err().unwrap();
        assert_eq!(crate::exit::of_error(&error), crate::exit::USAGE);
    }

    fn texts(prompt: Prompt) -> (Vec<String>, usize) {
        let Prompt::Parts { parts, notices } = prompt else { panic!("canceled") };
        let text = |part: Part| match part.content {
            Content::Text { text } => text,
            other => panic!("{other:?}"),
        };
        (parts.into_iter().map(text).collect(), notices.len())
    }

    #[test]
    fn piped_data_is_a_marked_block_after_the_prompt() {
        let (shown, notices) = texts(parts("review this", Some(b"+ line"), Vec::new()));
        assert_eq!(
            (shown, notices),
            (
                vec![
                    "review this".to_owned(),
                    "<stdin mark=\"d2fe2f9a8d469600\">\n+ line\n</stdin mark=\"d2fe2f9a8d469600\">"
                        .to_owned()
                ],
                0
            )
        );
    }

    #[test]
    fn blank_data_adds_nothing_and_broken_text_is_said() {
        assert_eq!(texts(parts("x", Some(b" \n"), Vec::new())), (vec!["x".to_owned()], 0));
        let (shown, notices) = texts(parts("x", Some(b"\xff"), Vec::new()));
        assert!(shown[1].contains('\u{fffd}'), "{shown:?}");
        assert_eq!(notices, 1);
    }
}
