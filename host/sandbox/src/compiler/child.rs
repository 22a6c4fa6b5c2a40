//! The compiler as a process of its own: what the parent does with it, and what it does itself.
//!
//! The component goes in on standard input, the compiled one comes out on standard output, and on
//! standard error one line that says why not. The child inherits no environment, so that it knows
//! no key and no token.

use super::CompileLimits;
use crate::{
    engine::{self, EngineSettings},
    load_error::LoadError,
    plugin::one_line,
    plugin_file::COMPONENT_SIZE,
};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use std::{
    ffi::OsString,
    io::{self, Read, Write},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

/// The largest compiled component, and the longest text of a child that failed.
const COMPILED: u64 = 1 << 30;
const COMPLAINT: u64 = 64 << 10;
/// How long a child may take to end once it has answered.
const GRACE: Duration = Duration::from_secs(2);

/// How the child is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompilerChild {
    pub program: PathBuf,
    /// Before what [`compile_in_child`] takes.
    pub arguments: Vec<OsString>,
    pub limits: CompileLimits,
}

/// How a child ended.
enum Ended {
    InTime { status: ExitStatus, output: io::Result<Vec<u8>>, complaint: String },
    TooLate,
}

impl CompilerChild {
    pub(super) fn compile(
        &self,
        key: &str,
        concurrency: bool,
        component: &[u8],
    ) -> Result<Vec<u8>, LoadError> {
        let time = self.limits.time_for(component.len());
        let child = self.start(key, concurrency, time).map_err(LoadError::CompilerStart)?;
        match talk(child, component, time) {
            Err(error) => Err(LoadError::CompilerStart(error)),
            Ok(Ended::TooLate) => Err(LoadError::CompileTime(time)),
            Ok(Ended::InTime { status, output, .. }) if status.success() => match output {
                Ok(compiled) if compiled.len() as u64 <= COMPILED => Ok(compiled),
                Ok(_) => Err(LoadError::CompilerDied("what it makes is too large".to_owned())),
                Err(error) => Err(LoadError::CompilerStart(error)),
            },
            Ok(Ended::InTime { status, complaint, .. }) => {
                Err(failure(status, &complaint, time, self.limits.memory))
            }
        }
    }

    fn start(&self, key: &str, concurrency: bool, time: Duration) -> io::Result<Child> {
        let CompileLimits { memory, threads, .. } = self.limits;
        // All threads together.
        let seconds = time.as_secs().max(1).saturating_mul(threads.into());
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .args([key, if concurrency { "async" } else { "sync" }])
            .args([memory.to_string(), seconds.to_string()])
            .current_dir("/")
            .env_clear()
            .env("RAYON_NUM_THREADS", threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // An interrupt typed at the terminal is for the parent, which then ends the child.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn()
    }
}

/// Hands over the component and waits for the answer, and no longer than that.
fn talk(mut child: Child, component: &[u8], time: Duration) -> io::Result<Ended> {
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("it has no standard streams"));
    };
    let started = Instant::now();
    thread::scope(|scope| {
        // A child that ends early takes no more of it: why is in its complaint.
        scope.spawn(move || drop(stdin.write_all(component)));
        let complaint = scope.spawn(move || read(stderr, COMPLAINT).unwrap_or_default());
        let (answered, answer) = mpsc::channel();
        scope.spawn(move || drop(answered.send(read(stdout, COMPILED + 1))));
        let output = match answer.recv_timeout(time) {
            Ok(output) => output,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                kill(&mut child)?;
                return Ok(Ended::TooLate);
            }
        };
        let left = time.saturating_sub(started.elapsed()).min(GRACE);
        let Some(status) = wait(&mut child, left)? else {
            kill(&mut child)?;
            return Ok(Ended::TooLate);
        };
        let complaint = complaint.join().unwrap_or_default();
        let complaint = String::from_utf8_lossy(&complaint).into_owned();
        Ok(Ended::InTime { status, output, complaint })
    })
}

fn read(stream: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn kill(child: &mut Child) -> io::Result<()> {
    // One that ended meanwhile cannot be killed any more, and is none the less waited for.
    let _ = child.kill();
    child.wait().map(drop)
}

fn wait(child: &mut Child, time: Duration) -> io::Result<Option<ExitStatus>> {
    const LOOK: Duration = Duration::from_millis(1);
    let until = Instant::now() + time;
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= until {
            return Ok(status);
        }
        thread::sleep(LOOK);
    }
}

/// Puts a name to how a child failed.
fn failure(status: ExitStatus, complaint: &str, time: Duration, memory: u64) -> LoadError {
    let line = complaint.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let short: String = line.chars().take(600).collect();
    if status.code() == Some(REFUSED) {
        return if is_about_memory(complaint) {
            LoadError::CompileMemory(memory)
        } else {
            LoadError::Invalid(short)
        };
    }
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let is = |other: Signal| signal == Some(other.as_raw());
    if is(Signal::XCPU) {
        return LoadError::CompileTime(time);
    }
    if is_about_memory(complaint) || is(Signal::KILL) {
        // Killed by another than us, it is the system that had no memory left.
        return LoadError::CompileMemory(memory);
    }
    if complaint.contains("overflowed its stack") {
        return LoadError::CompilerDied("it nests too deeply".to_owned());
    }
    LoadError::CompilerDied(match signal {
        Some(signal) => format!("signal {signal}"),
        None if short.is_empty() => format!("{status}"),
        None => short,
    })
}

fn is_about_memory(complaint: &str) -> bool {
    ["memory allocation of", "annot allocate memory", "out of memory", "Resource temporarily"]
        .iter()
        .any(|words| complaint.contains(words))
}

/// The exit code of a child that looked at its component and will not have it.
const REFUSED: i32 = 3;

/// What the child does: limits itself, reads a component from standard input and writes it compiled
/// to standard output. Returns the exit code of the process, which has nothing else to do.
pub fn compile_in_child(arguments: &[String]) -> u8 {
    match compile(arguments) {
        Ok(()) => 0,
        Err(message) => {
            let _ = io::stderr().write_all(message.as_bytes());
            u8::try_from(REFUSED).unwrap_or(1)
        }
    }
}

fn compile(arguments: &[String]) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let for_the_program =
        || "this is for the program itself, which compiles plugins with it".to_owned();
    let [key, concurrency, memory, seconds] = arguments else { return Err(for_the_program()) };
    let (Ok(memory), Ok(seconds)) = (memory.parse(), seconds.parse()) else {
        return Err(for_the_program());
    };
    limit_this_process(memory, seconds).map_err(text)?;
    let mut component = Vec::new();
    io::stdin().take(COMPONENT_SIZE + 1).read_to_end(&mut component).map_err(text)?;
    if component.len() as u64 > COMPONENT_SIZE {
        return Err(format!("it is longer than {COMPONENT_SIZE} bytes"));
    }
    let settings = EngineSettings {
        concurrency: concurrency == "async",
        pooling: false,
        ..EngineSettings::default()
    };
    let engine = engine::compiling(settings).map_err(|error| error.to_string())?;
    if *key != engine::compatibility_key(&engine) {
        return Err("the compiler is of another build than the program: start it again".to_owned());
    }
    let compiled = engine.precompile_component(&component).map_err(|error| one_line(&error))?;
    io::stdout().write_all(&compiled).map_err(text)
}

/// Before anything of the component is read.
fn limit_this_process(memory: u64, seconds: u64) -> io::Result<()> {
    let set = |resource, most, hard| {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(hard) })
    };
    set(Resource::As, memory, memory)?;
    // A second more, so that it ends by the signal that says why.
    set(Resource::Cpu, seconds, seconds.saturating_add(1))?;
    set(Resource::Core, 0, 0)?;
    // It writes to no file.
    set(Resource::Fsize, 0, 0)?;
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}
