//! The session on a real terminal: keys, events and answers go into the state, and what comes of
//! them is done and drawn.

use crate::{
    approvals::{Asked, Questions},
    backend::{Backend, Reply, Turn},
    guard::{Guard, take_panics},
    signals::{Signal, Signals},
    state::{Effect, Input, Session, Size},
    surface::Surface,
};
use belljar_types::{Event, EventKind};
use crossterm::event::{self as terminal, EventStream, KeyCode, KeyEvent, KeyModifiers};
use futures::{
    FutureExt as _, Stream, StreamExt as _,
    future::BoxFuture,
    stream::{BoxStream, FuturesUnordered},
};
use std::{
    collections::HashMap,
    io::{self, Write},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// The least time between two drawings that no key asked for.
const FRAME: Duration = Duration::from_millis(33);
/// How often what moves by itself is drawn.
const BEAT: Duration = Duration::from_millis(100);
/// How long a run that was canceled is waited for before the session is left.
const PATIENCE: Duration = Duration::from_secs(2);
/// The narrowest terminal that is drawn for.
const NARROWEST: usize = 20;

/// What the session is told about its surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether colours may be used: not with `NO_COLOR`, nor on a dumb terminal.
    pub colour: bool,
}

/// How the session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The session of the last run, to be resumed; nothing where none was started.
    pub session: Option<String>,
    pub why: Why,
}

/// Why the session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The person left.
    Person,
    /// A signal asked for the end.
    Signal,
    /// The terminal is gone.
    TerminalGone,
}

/// Shows a session on the terminal of this process until the person leaves. It takes standard
/// output, and the keys; the terminal is as it was when this returns, is dropped or panics. It is to
/// be awaited by the thread that blocks on it, not spawned: panics of other threads are taken for
/// those of calls, and shown in the session.
///
/// # Errors
///
/// There is no terminal, or signals cannot be listened to.
pub async fn run(
    backend: Arc<dyn Backend>,
    questions: Questions,
    settings: Settings,
) -> io::Result<Left> {
    let (columns, rows) = crossterm::terminal::size()?;
    let signals = Signals::listen()?;
    let _guard = Guard::take()?;
    let driver = Driver::new(backend, questions, io::stdout(), size(columns, rows), settings);
    Ok(driver.drive(EventStream::new(), signals).await)
}

fn size(columns: u16, rows: u16) -> Size {
    let (columns, rows) = (usize::from(columns), usize::from(rows));
    if columns < NARROWEST {
        // What is drawn is cut off or broken by the terminal: nothing can be approved there.
        return Size { columns: NARROWEST, rows: 1 };
    }
    Size { columns, rows: rows.max(1) }
}

/// What the driver woke up for.
enum Woken {
    Signal(Signal),
    Key(Option<io::Result<terminal::Event>>),
    Event(Option<Event>),
    Asked(Option<Asked>),
    Replied(Reply),
    Files(u64, Vec<String>),
    Time,
}

struct Driver<W> {
    backend: Arc<dyn Backend>,
    questions: Option<Questions>,
    surface: Surface<W>,
    session: Session,
    start: Instant,
    drawn_at: Option<Instant>,
    is_changed: bool,
    events: Option<BoxStream<'static, Event>>,
    /// A turn that begins once the events of the last one have ended.
    next: Option<Turn>,
    asked: HashMap<String, Asked>,
    commands: FuturesUnordered<BoxFuture<'static, Reply>>,
    files: FuturesUnordered<BoxFuture<'static, (u64, Vec<String>)>>,
    why: Option<Why>,
}

impl<W: Write> Driver<W> {
    fn new(
        backend: Arc<dyn Backend>,
        questions: Questions,
        out: W,
        size: Size,
        settings: Settings,
    ) -> Self {
        let session = Session::new(size, backend.status(), &backend.history());
        Self {
            backend,
            questions: Some(questions),
            surface: Surface::new(out, settings.colour),
            session,
            start: Instant::now(),
            drawn_at: None,
            is_changed: true,
            events: None,
            next: None,
            asked: HashMap::new(),
            commands: FuturesUnordered::new(),
            files: FuturesUnordered::new(),
            why: None,
        }
    }

    async fn drive(
        mut self,
        keys: impl Stream<Item = io::Result<terminal::Event>>,
        mut signals: Signals,
    ) -> Left {
        let mut keys = pin!(keys);
        self.draw();
        while self.why.is_none() {
            let due = self.due();
            let woken = tokio::select! {
                biased;
                signal = signals.next() => Woken::Signal(signal),
                key = keys.next() => Woken::Key(key),
                () = wait_until(due) => Woken::Time,
                asked = next_question(&mut self.questions) => Woken::Asked(asked),
                event = next_event(&mut self.events) => Woken::Event(event),
                Some(reply) = self.commands.next() => Woken::Replied(reply),
                Some((number, names)) = self.files.next() => Woken::Files(number, names),
            };
            self.woken(woken);
            // Keys are answered at once.
            if self.is_changed && self.drawn_at.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
                self.draw();
            }
        }
        self.leave().await
    }

    /// When there is something to draw, if nothing else happens.
    fn due(&self) -> Option<Instant> {
        let drawn = self.drawn_at?;
        if self.is_changed {
            Some(drawn + FRAME)
        } else {
            self.session.is_busy().then(|| drawn + BEAT)
        }
    }

    fn woken(&mut self, woken: Woken) {
        self.is_changed = true;
        match woken {
            Woken::Time => {}
            Woken::Signal(Signal::Interrupt) => {
                let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
                self.take(Input::Key(key));
            }
            Woken::Signal(Signal::End) => {
                self.backend.cancel();
                self.why = Some(Why::Signal);
            }
            Woken::Key(None | Some(Err(_))) => {
                self.backend.cancel();
                self.why = Some(Why::TerminalGone);
            }
            Woken::Key(Some(Ok(event))) => {
                self.terminal(event);
                self.drawn_at = self.drawn_at.filter(|_| self.session.is_busy());
            }
            Woken::Event(Some(event)) => {
                let may_change_status = matches!(
                    event.kind,
                    EventKind::Stop { .. } | EventKind::Usage { .. } | EventKind::RoundStart
                );
                self.take(Input::Event(event));
                if may_change_status {
                    self.take(Input::Status(self.backend.status()));
                }
            }
            Woken::Event(None) => {
                self.events = None;
                self.asked.clear();
                match self.next.take() {
                    Some(turn) => self.events = Some(self.backend.start(turn)),
                    None => self.take(Input::EventsEnded),
                }
            }
            Woken::Asked(None) => self.questions = None,
            Woken::Asked(Some(asked)) => {
                let question = asked.question.clone();
                let always = self.backend.always(&question);
                self.asked.insert(question.call.id.clone(), asked);
                self.take(Input::Asked(question, always));
            }
            Woken::Replied(reply) => {
                self.take(Input::Replied(reply));
                self.take(Input::Status(self.backend.status()));
            }
            Woken::Files(number, names) => self.take(Input::Files(number, names)),
        }
    }

    fn terminal(&mut self, event: terminal::Event) {
        match event {
            terminal::Event::Key(key) if key.kind != terminal::KeyEventKind::Release => {
                self.take(Input::Key(key));
            }
            terminal::Event::Paste(text) => self.take(Input::Paste(text)),
            terminal::Event::Resize(columns, rows) => {
                self.take(Input::Resized(size(columns, rows)));
            }
            _ => {}
        }
    }

    fn take(&mut self, input: Input) {
        let effects = self.session.take(input, self.start.elapsed());
        for effect in effects {
            self.act(effect);
        }
    }

    fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Start(turn) if self.events.is_some() => self.next = Some(turn),
            Effect::Start(turn) => self.events = Some(self.backend.start(turn)),
            Effect::Steer(text) => {
                let steered = self.backend.steer(&text);
                self.take(Input::Steered(text, steered));
            }
            Effect::Cancel => self.backend.cancel(),
            Effect::SetMode(mode) => match self.backend.set_permission_mode(mode) {
                Ok(()) => self.take(Input::Status(self.backend.status())),
                Err(why) => self.take(Input::ModeRefused(why)),
            },
            Effect::Answer(call_id, answer) => {
                if let Some(asked) = self.asked.remove(&call_id) {
                    // Nobody waits any more where the run was canceled meanwhile.
                    let _ = asked.answer.send(answer);
                }
            }
            Effect::Dismiss => self.asked.clear(),
            Effect::WriteAlways(call_id) => {
                if let Some(asked) = self.asked.get(&call_id) {
                    let written = self.backend.write_always(&asked.question);
                    self.take(Input::Written(call_id, written));
                }
            }
            Effect::Command(command) => {
                let backend = self.backend.clone();
                self.commands.push(async move { backend.command(command).await }.boxed());
            }
            Effect::CallOff => self.commands.clear(),
            Effect::Files(number, prefix) => {
                let backend = self.backend.clone();
                let files = async move { (number, backend.files(&prefix).await) };
                self.files.push(files.boxed());
            }
            Effect::Remember(line) => self.backend.remember(&line),
            Effect::Redraw => self.tell(Surface::clear),
            Effect::Leave => self.why = Some(Why::Person),
        }
    }

    fn draw(&mut self) {
        for panic in take_panics() {
            self.take(Input::Panicked(panic));
        }
        let finished = self.session.take_finished();
        let live = self.session.live(self.start.elapsed());
        let size = self.session.size();
        self.tell(|surface| surface.draw(&finished, &live, size));
        self.drawn_at = Some(Instant::now());
        self.take(Input::Drawn);
        self.is_changed = false;
    }

    fn tell(&mut self, draw: impl FnOnce(&mut Surface<W>) -> io::Result<()>) {
        if draw(&mut self.surface).is_err() && self.why.is_none() {
            self.backend.cancel();
            self.why = Some(Why::TerminalGone);
        }
    }

    /// Waits a moment for the end of a canceled run, so that its session is whole.
    async fn leave(mut self) -> Left {
        // Nobody is there to ask any more.
        self.questions = None;
        self.asked.clear();
        self.next = None;
        if self.events.is_some() {
            let _ = tokio::time::timeout(PATIENCE, self.rest()).await;
        }
        let finished = self.session.take_finished();
        let _ = self.surface.finish(&finished, self.session.size());
        Left {
            session: self.session.session_id().map(str::to_owned),
            why: self.why.unwrap_or(Why::Person),
        }
    }

    async fn rest(&mut self) {
        while let Some(event) = next_event(&mut self.events).await {
            self.session.take(Input::Event(event), self.start.elapsed());
        }
    }
}

/// The next event; never, where there is no run.
async fn next_event(events: &mut Option<BoxStream<'static, Event>>) -> Option<Event> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

async fn next_question(questions: &mut Option<Questions>) -> Option<Asked> {
    match questions {
        Some(questions) => questions.next().await,
        None => std::future::pending().await,
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A session on these keys, and what it wrote.
    pub(crate) async fn drive(
        backend: Arc<dyn Backend>,
        questions: Questions,
        keys: impl Stream<Item = io::Result<terminal::Event>>,
        size: Size,
        settings: Settings,
    ) -> (Left, Vec<u8>) {
        let mut out = Vec::new();
        let driver = Driver::new(backend, questions, &mut out, size, settings);
        let left = driver.drive(keys, Signals::listen().unwrap()).await;
        (left, out)
    }
}
