//! Trying many inputs on a target: those that failed in the past, then new ones.

use crate::{Target, Verdict};
use fastrand::Rng;
use sha2::{Digest, Sha256};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    Cases(u64),
    Time(Duration),
}

/// How many inputs held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    pub inputs: u64,
    /// How many of them were not refused: a target that refuses all has not been tried at all.
    pub taken: u64,
}

/// An input for which a promise does not hold.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{target}` {fault} with case {case}, which is kept as `{}`: once it is mended, copy that file \
     to `tests/fuzz/corpus/{target}/`", kept.display()
)]
pub struct Failing {
    pub target: &'static str,
    pub fault: Fault,
    /// The name of a file of the corpus, or what to give to make this input again.
    pub case: String,
    /// Where the input was written to.
    pub kept: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("panics")]
    Panics,
    #[error("does not end within {TOO_LONG:?}")]
    Hangs,
}

/// What takes longer never ends.
const TOO_LONG: Duration = Duration::from_secs(120);

/// Tries all of the target's corpus, then new inputs until the budget is used up. What fails is written into the folder `failures`.
///
/// # Errors
///
/// An input fails. The first one ends the run.
///
/// # Panics
///
/// The corpus cannot be read, or what fails cannot be kept.
pub fn run(
    target: &'static Target,
    seed: u64,
    budget: Budget,
    failures: &Path,
) -> Result<Tried, Failing> {
    let worker = Worker::start(target);
    let started = Instant::now();
    let mut tried = Tried::default();
    for (name, input) in corpus(target.name) {
        let verdict = worker.attempt(&input);
        tried.add(verdict.map_err(|fault| Failing::keep(target, fault, name, &input, failures))?);
    }
    for number in 0.. {
        let is_over = match budget {
            Budget::Cases(cases) => number >= cases,
            Budget::Time(time) => started.elapsed() >= time,
        };
        if is_over {
            break;
        }
        // Each case has a seed of its own, so that it can be made again without those before it.
        let mut rng = Rng::with_seed(seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let input = (target.generate)(&mut rng);
        let case = || format!("{number} of seed {seed}");
        let verdict = worker.attempt(&input);
        tried.add(verdict.map_err(|fault| Failing::keep(target, fault, case(), &input, failures))?);
    }
    Ok(tried)
}

impl Tried {
    fn add(&mut self, verdict: Verdict) {
        self.inputs += 1;
        self.taken += u64::from(verdict == Verdict::Taken);
    }
}

impl Failing {
    #[expect(clippy::expect_used, reason = "a fuzzer that cannot keep what it found is of no use")]
    fn keep(target: &Target, fault: Fault, case: String, input: &[u8], failures: &Path) -> Self {
        let digest: String =
            Sha256::digest(input).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let folder = failures.join(target.name);
        let kept = folder.join(digest);
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&kept, input))
            .expect("the failing input can be written");
        Self { target: target.name, fault, case, kept }
    }
}

/// The inputs that failed in the past, by name.
#[expect(
    clippy::panic,
    reason = "a corpus that is there and cannot be read must not be passed over"
)]
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let read = || -> io::Result<_> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            files.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
        }
        files.sort();
        Ok(files)
    };
    match read() {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => panic!("the corpus `{}` cannot be read: {error}", folder.display()),
    }
}

/// A thread that tries inputs, so that one that never ends can be told.
struct Worker {
    inputs: mpsc::Sender<Vec<u8>>,
    held: mpsc::Receiver<thread::Result<Verdict>>,
}

impl Worker {
    fn start(target: &'static Target) -> Self {
        let (inputs, given) = mpsc::channel::<Vec<u8>>();
        let (report, held) = mpsc::channel();
        thread::spawn(move || {
            for input in given {
                let result = std::panic::catch_unwind(|| (target.check)(&input));
                // Nobody listens any more once an input was given up.
                let _ = report.send(result);
            }
        });
        Self { inputs, held }
    }

    fn attempt(&self, input: &[u8]) -> Result<Verdict, Fault> {
        // A worker that is gone has panicked in a way that cannot be caught.
        let _ = self.inputs.send(input.to_owned());
        match self.held.recv_timeout(TOO_LONG) {
            Ok(Ok(verdict)) => Ok(verdict),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Err(Fault::Panics),
            Err(RecvTimeoutError::Timeout) => Err(Fault::Hangs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, sync::Mutex};

    static SEEN: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

    /// Refuses even bytes and panics at one byte in 256.
    const TARGET: Target = Target {
        name: "for-the-tests",
        check: |input| {
            SEEN.lock().unwrap().push(input.to_owned());
            assert_ne!(input, [7], "this is the one");
            if input[0].is_multiple_of(2) { Verdict::Refused } else { Verdict::Taken }
        },
        generate: |rng| vec![rng.u8(..)],
    };

    #[test]
    fn an_input_that_fails_is_kept_and_can_be_made_again() {
        static KEPT: Target = TARGET;
        let folder = tempfile::tempdir().unwrap();
        let attempt = || run(&KEPT, 3, Budget::Cases(10_000), folder.path()).unwrap_err();
        let failing = attempt();
        assert_eq!((failing.target, failing.fault), ("for-the-tests", Fault::Panics));
        assert_eq!(fs::read(&failing.kept).unwrap(), [7]);
        assert!(failing.kept.starts_with(folder.path().join("for-the-tests")));

        let first = std::mem::take(&mut *SEEN.lock().unwrap());
        assert_eq!(first.last(), Some(&vec![7]));
        assert!(first.iter().collect::<BTreeSet<_>>().len() > 50, "the inputs differ: {first:?}");
        let again = attempt();
        assert_eq!((again.case, again.kept), (failing.case, failing.kept));
        assert_eq!(*SEEN.lock().unwrap(), first, "the same seed makes the same inputs");
    }

    #[test]
    fn what_holds_is_counted() {
        static HOLDS: Target = Target {
            name: "holds",
            check: |input| if input[0] < 128 { Verdict::Taken } else { Verdict::Refused },
            ..TARGET
        };
        let folder = tempfile::tempdir().unwrap();
        let Tried { inputs, taken } = run(&HOLDS, 1, Budget::Cases(1_000), folder.path()).unwrap();
        assert_eq!(inputs, 1_000);
        assert!((400..600).contains(&taken), "{taken}");
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is kept");
    }
}
