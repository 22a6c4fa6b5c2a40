//! This program and this machine: the engine, the kernel, the limits of the process, the terminal.

use super::finding::Finding;
use belljar_capability::Limits;
use belljar_sandbox::{EngineSettings, Memories};
use std::{env, io::IsTerminal as _};

pub(super) fn version() -> Finding {
    let (version, system, architecture) =
        (env!("CARGO_PKG_VERSION"), env::consts::OS, env::consts::ARCH);
    Finding::ok("version", format!("belljar {version} on {system}, {architecture}"))
}

pub(super) async fn findings() -> Vec<Finding> {
    let mut findings = vec![engine().await];
    findings.extend(system());
    findings.push(terminal());
    findings
}

async fn engine() -> Finding {
    const ABOUT: &str = "sandbox";
    // Laying out the pool takes a moment, and a broken machine longer.
    let tried = tokio::task::spawn_blocking(|| {
        belljar_sandbox::try_engine(EngineSettings::default(), &Limits::default())
    });
    match tried.await {
        Ok(Ok(Memories::Pooled)) => {
            Finding::ok(ABOUT, "the engine starts, and memories come from a pool")
        }
        Ok(Ok(Memories::OnDemand)) => Finding::note(
            ABOUT,
            "the engine starts, and memories are made on demand, which is slower and as safe: the \
             address space for a pool cannot be had",
        )
        .mended_by("ulimit -v unlimited"),
        Ok(Err(error)) => {
            Finding::problem(ABOUT, crate::setup::error_chain(&error)).mended_by("belljar selftest")
        }
        Err(_) => Finding::problem(ABOUT, "the engine fails on this machine"),
    }
}

#[cfg(target_os = "linux")]
fn system() -> Vec<Finding> {
    use rustix::process::{Resource, getrlimit};
    let openat2 = match openat2() {
        Ok(()) => Finding::ok(
            "kernel",
            "`openat2` is there: folders are opened by the kernel's own rules",
        ),
        Err(error) => Finding::note(
            "kernel",
            format!(
                "`openat2` is not there ({error}): folders are opened step by step, slower and as safe"
            ),
        ),
    };
    let space = match getrlimit(Resource::As).current {
        None => Finding::ok("address space", "not limited"),
        Some(bytes) => Finding::note("address space", format!("limited to {} MiB", bytes >> 20))
            .mended_by("ulimit -v unlimited"),
    };
    let files = getrlimit(Resource::Nofile);
    let (now, most) = (files.current, files.maximum);
    let places = belljar_sandbox::places_for(now, &Limits::default());
    let wanted = EngineSettings::default().calls_in_flight;
    let shown = now.map_or("not limited".to_owned(), |now| now.to_string());
    let handles = if places >= wanted {
        Finding::ok("open files", format!("{shown}: enough for {wanted} calls at a time"))
    } else {
        let most = most.map_or("unlimited".to_owned(), |most| most.to_string());
        Finding::note(
            "open files",
            format!(
                "{shown}, and at most {most}: {places} calls run at a time instead of {wanted}"
            ),
        )
        .mended_by(format!(
            "ulimit -Hn {}",
            belljar_sandbox::handles_for(wanted, &Limits::default())
        ))
    };
    vec![openat2, space, handles, inotify()]
}

#[cfg(not(target_os = "linux"))]
fn system() -> Vec<Finding> {
    vec![Finding::note("kernel", "what differs on this system from Linux is said in SECURITY.md")]
}

#[cfg(target_os = "linux")]
fn openat2() -> rustix::io::Result<()> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(CWD, ".", flags, Mode::empty(), ResolveFlags::BENEATH).map(drop)
}

/// Watching the folders of plugins takes one.
#[cfg(target_os = "linux")]
fn inotify() -> Finding {
    use rustix::fs::inotify::{CreateFlags, init};
    match init(CreateFlags::CLOEXEC) {
        Ok(_) => Finding::ok("watching", "the folders of plugins can be watched"),
        Err(error) => Finding::note(
            "watching",
            format!("the folders of plugins cannot be watched ({error}): changes are seen at the next start"),
        )
        .mended_by("sysctl fs.inotify.max_user_instances=1024"),
    }
}

fn terminal() -> Finding {
    let is = |yes: bool| if yes { "a terminal" } else { "no terminal" };
    let (input, output, error) = (
        std::io::stdin().is_terminal(),
        std::io::stdout().is_terminal(),
        std::io::stderr().is_terminal(),
    );
    let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let colour = match (error, set("NO_COLOR"), env::var("TERM").as_deref()) {
        (false, ..) => "no colour",
        (_, true, _) => "no colour, since NO_COLOR is set",
        (.., Ok("dumb")) => "no colour, since TERM is `dumb`",
        _ => "colour",
    };
    let asked = if input && error { "you can be asked" } else { "nobody can be asked here" };
    Finding::ok(
        "terminal",
        format!(
            "standard input is {}, output {}, error {}: {asked}, {colour}",
            is(input),
            is(output),
            is(error)
        ),
    )
}
