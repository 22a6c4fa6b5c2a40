use super::*;
use crate::{
    arguments::TalkArguments,
    screen::testing::{Written, screen},
    show::ResultLines,
};
use async_trait::async_trait;
use belljar_agent::Settings;
use belljar_model::Script;
use belljar_types::{
    ApprovalAnswer, ApprovalQuestion, Approver, Journal, JournalError, Origin, Part, PreparedCall,
    Record, ToolCall, ToolDefinition, ToolError, ToolErrorKind, Toolbox,
};
use std::{io, sync::Arc};

/// No tools, nobody to ask, and a session that keeps nothing.
#[derive(Debug)]
struct Nothing;

impl Toolbox for Nothing {
    fn tools(&self) -> Arc<[ToolDefinition]> {
        Arc::new([])
    }

    fn prepare(&self, _: &ToolCall) -> Result<Box<dyn PreparedCall>, ToolError> {
        Err(ToolError::new(ToolErrorKind::UnknownTool, "there are none"))
    }
}

#[async_trait]
impl Approver for Nothing {
    async fn ask(&self, _: &ApprovalQuestion) -> Option<ApprovalAnswer> {
        None
    }
}

#[async_trait]
impl Journal for Nothing {
    fn session(&self) -> &str {
        "s"
    }

    async fn append(&self, _: &Record) -> Result<(), JournalError> {
        Ok(())
    }
}

const SCRIPT: &str = r#"{"text": "I look.", "calls": [{"tool": "look"}]}
{"text": "Done."}"#;

fn output(format: OutputFormat) -> OutputArguments {
    OutputArguments { output_format: format, talk: TalkArguments::default() }
}

fn prepared(screen: SharedScreen, format: OutputFormat) -> Prepared {
    let model = Script::parse(SCRIPT).unwrap().into_model("x");
    Prepared {
        agent: Agent {
            model: Some(Arc::new(model)),
            toolbox: Arc::new(Nothing),
            approver: Arc::new(Nothing),
            journal: Arc::new(Nothing),
            settings: Settings::default(),
        },
        request: RunRequest::new(vec![Part::text("look", Origin::Person)]),
        notices: vec!["first".to_owned(), "second".to_owned()],
        sink: Sink::new(screen, &output(format), ResultLines(3)),
        shown: watch::channel(String::new()).0,
        control: None,
    }
}

fn events(out: &Written) -> Vec<(u64, String)> {
    out.text()
        .lines()
        .map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            (event["seq"].as_u64().unwrap(), event["type"].as_str().unwrap().to_owned())
        })
        .collect()
}

#[tokio::test]
async fn notices_follow_the_start_and_numbers_have_no_gaps() {
    let (screen, out, err) = screen(false);
    let code = drive(prepared(screen, OutputFormat::StreamJson)).await.unwrap();
    let want = [
        "start",
        "notice",
        "notice",
        "round_start",
        "text_delta",
        "text_delta",
        "assistant_text",
        "tool_call_start",
        "tool_result",
        "tool_call_done",
        "round_start",
        "text_delta",
        "assistant_text",
        "stop",
    ];
    let want: Vec<_> = (0..).zip(want.map(str::to_owned)).collect();
    assert_eq!((code, events(&out), err.text()), (exit::COMPLETED, want, String::new()));
}

#[tokio::test]
async fn json_is_the_stop_event_alone() {
    let (screen, out, _) = screen(false);
    drive(prepared(screen, OutputFormat::Json)).await.unwrap();
    assert_eq!(events(&out), [(13, "stop".to_owned())]);
}

#[test]
fn a_run_that_never_began_ends_its_stream_all_the_same() {
    let (screen, out, _) = screen(false);
    let error = anyhow::anyhow!("no such file").context("cannot begin");
    failed_early(&screen, &output(OutputFormat::StreamJson), &error);
    assert_eq!(events(&out), [(0, "error".to_owned()), (1, "stop".to_owned())]);
    assert!(out.text().contains("cannot begin: no such file"), "{}", out.text());
}

/// A standard output that fails.
#[derive(Debug)]
struct Failing(io::ErrorKind);

impl io::Write for Failing {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_reader_that_went_away_ends_the_run_and_a_full_disk_is_said() {
    for (kind, want) in [
        (io::ErrorKind::BrokenPipe, Ok(exit::CANCELED)),
        (
            io::ErrorKind::StorageFull,
            Err("cannot write to standard output: no storage space".to_owned()),
        ),
    ] {
        let is_terminal = false;
        let screen = SharedScreen::new(
            Box::new(Failing(kind)),
            Box::new(io::sink()),
            is_terminal,
            is_terminal,
            is_terminal,
        );
        let ended = drive(prepared(screen, OutputFormat::StreamJson)).await;
        assert_eq!(ended.map_err(|error| format!("{error:#}")), want);
    }
}
