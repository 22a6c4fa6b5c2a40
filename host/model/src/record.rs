//! Recording: a model's turns written down as a script while it answers, so that the scripted
//! model can play the run again.
//!
//! Never writes over a file, never leaves half a line behind by itself, and never lets a run go on
//! that it cannot record.

use crate::script;
use belljar_types::{Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream};
use futures::{Stream, StreamExt, stream};
use std::{
    collections::BTreeMap,
    fmt,
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

const HEAD: &str = "// The model's turns of one run, to be played as `script/FILE`.\n";

/// Said in place of the end of an answer that nobody waited for.
const LEFT: &str = "the recorded run was canceled here";

/// A recording in the making. A clone writes to the same one.
#[derive(Clone)]
pub struct Recorder {
    tape: Arc<Mutex<Tape>>,
}

/// Why a run cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    #[error("`{}` exists already: name another file, or remove it", .path.display())]
    Exists { path: PathBuf },
    #[error("cannot create the recording `{}`", .path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error(
        "cannot write to the recording `{}`: {problem}; it holds the run up to turn {turns}",
        .path.display()
    )]
    Write { path: PathBuf, turns: usize, problem: String },
}

impl Recorder {
    /// Begins a recording in a file that is not there yet and that only its owner may read.
    ///
    /// # Errors
    ///
    /// There is such a file, or it cannot be written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, RecordError> {
        let path = path.as_ref();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => RecordError::Exists { path: path.to_owned() },
            _ => RecordError::Create { path: path.to_owned(), source },
        })?;
        Self::onto(file, path)
    }

    fn onto(paper: impl Paper + 'static, path: &Path) -> Result<Self, RecordError> {
        let mut tape = Tape {
            paper: Box::new(paper),
            path: path.to_owned(),
            length: 0,
            begun: 0,
            written: 0,
            waiting: BTreeMap::new(),
            problem: None,
        };
        tape.append(HEAD);
        tape.check()?;
        Ok(Self { tape: Arc::new(Mutex::new(tape)) })
    }

    /// The same model; what it says is recorded. Several may be recorded into one script, which
    /// then has their turns in the order in which they were asked for.
    pub fn record(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(RecordedModel { model, recorder: self.clone() })
    }

    /// How many turns were recorded.
    ///
    /// # Errors
    ///
    /// One could not be written, and with it none of those after it.
    pub fn turns(&self) -> Result<usize, RecordError> {
        let tape = self.lock();
        tape.check()?;
        Ok(tape.written)
    }

    fn lock(&self) -> MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("path", &self.lock().path).finish_non_exhaustive()
    }
}

/// What a recording is written on.
trait Paper: Write + Send {
    /// Takes away what stands after the first `length` bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Paper for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}

struct Tape {
    paper: Box<dyn Paper>,
    path: PathBuf,
    /// Of all whole lines.
    length: u64,
    /// How many turns were asked for.
    begun: usize,
    /// How many of them, from the first one on, are written.
    written: usize,
    /// Turns that ended before one that was asked for earlier.
    waiting: BTreeMap<usize, String>,
    /// Why nothing more can be written.
    problem: Option<String>,
}

impl Tape {
    fn check(&self) -> Result<(), RecordError> {
        match &self.problem {
            None => Ok(()),
            Some(problem) => Err(RecordError::Write {
                path: self.path.clone(),
                turns: self.written,
                problem: problem.clone(),
            }),
        }
    }

    /// Takes a turn that ended, and writes all whose time has come.
    fn take(&mut self, number: usize, line: String) {
        self.waiting.insert(number, line);
        while self.problem.is_none()
            && let Some(line) = self.waiting.remove(&self.written)
        {
            self.append(&(line + "\n"));
            if self.problem.is_none() {
                self.written += 1;
            }
        }
    }

    /// Writes a line whole or not at all.
    fn append(&mut self, line: &str) {
        let written = self.paper.write_all(line.as_bytes()).and_then(|()| self.paper.flush());
        match written {
            Ok(()) => self.length += line.len() as u64,
            Err(error) => {
                let mut problem = error.to_string();
                if let Err(error) = self.paper.cut(self.length) {
                    problem = format!("{problem}, and its last line is torn: {error}");
                }
                self.problem = Some(problem);
            }
        }
    }
}

#[derive(Debug)]
struct RecordedModel {
    model: Arc<dyn Model>,
    recorder: Recorder,
}

impl Model for RecordedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn provider(&self) -> &str {
        self.model.provider()
    }

    fn context_window(&self) -> Option<u64> {
        self.model.context_window()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let number = {
            let mut tape = self.recorder.lock();
            if let Err(error) = tape.check() {
                return Box::pin(stream::iter([Err(unrecorded(&error))]));
            }
            tape.begun += 1;
            tape.begun - 1
        };
        // Made before the stream is asked for: a model that panics then has taken its turn too.
        let mut listening = Listening {
            stream: Box::pin(stream::empty()),
            items: Vec::new(),
            number,
            recorder: self.recorder.clone(),
            ended: false,
        };
        listening.stream = self.model.stream(request);
        Box::pin(listening)
    }
}

/// An answer that is recorded once it has ended, and before its reader learns of its end.
struct Listening {
    stream: ModelStream,
    items: Vec<Result<ModelEvent, ModelError>>,
    number: usize,
    recorder: Recorder,
    ended: bool,
}

impl Listening {
    fn end(&mut self) -> Result<(), RecordError> {
        self.ended = true;
        let line = script::line(&std::mem::take(&mut self.items));
        let mut tape = self.recorder.lock();
        tape.take(self.number, line);
        tape.check()
    }
}

impl Stream for Listening {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        let Poll::Ready(item) = this.stream.poll_next_unpin(context) else { return Poll::Pending };
        let item = item.unwrap_or_else(|| {
            Err(ModelError::new(
                ModelErrorKind::Cut,
                "the model's stream ended before its answer did",
            ))
        });
        this.items.push(item.clone());
        if matches!(item, Ok(ModelEvent::Done(_)) | Err(_))
            && let Err(error) = this.end()
        {
            return Poll::Ready(Some(Err(unrecorded(&error))));
        }
        Poll::Ready(Some(item))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if !self.ended {
            self.items.push(Err(ModelError::new(ModelErrorKind::Request, LEFT)));
            // Said when the next turn is asked for, and by `Recorder::turns`.
            let _ = self.end();
        }
    }
}

fn unrecorded(error: &RecordError) -> ModelError {
    ModelError::new(
        ModelErrorKind::Configuration,
        format!("{error}; make room there, or run without a recording"),
    )
}

#[cfg(test)]
mod tests;
