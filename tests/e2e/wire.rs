//! Runs against a model server on loopback, in both wire protocols: what the host sent as well as
//! what it showed.

use crate::support::{Ended, Machine, of_type};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread::JoinHandle,
};

/// A request that the server got.
#[derive(Debug)]
struct Request {
    path: String,
    headers: Vec<(String, String)>,
    body: Value,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A server that answers each request with the next of its answers, whole, and then closes.
struct Server {
    url: String,
    served: JoinHandle<Vec<Request>>,
}

impl Server {
    fn start(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            answers
                .into_iter()
                .map(|answer| {
                    let (stream, _) = listener.accept().unwrap();
                    serve(stream, &answer)
                })
                .collect()
        });
        Self { url, served }
    }

    fn requests(self) -> Vec<Request> {
        self.served.join().unwrap()
    }
}

/// The loop's own tools and those of the bundled plugins that only read, sorted, and one that a rule
/// allows.
const OFFERED: [&str; 7] = [
    "delegate",
    "edit_file",
    "find_files",
    "list_directory",
    "note_plan",
    "read_file",
    "search_text",
];

fn serve(stream: TcpStream, answer: &str) -> Request {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let path = line.split(' ').nth(1).unwrap().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").unwrap().1.parse();
    let mut body = vec![0; length.unwrap()];
    reader.read_exact(&mut body).unwrap();
    // The host may have gone away, where a test wants that.
    let _ = reader.into_inner().write_all(answer.as_bytes());
    Request { path, headers, body: serde_json::from_slice(&body).unwrap() }
}

fn http(status: &str, content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}

fn events(events: &[Value]) -> String {
    let body: String = events
        .iter()
        .map(|event| match event["type"].as_str() {
            Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        })
        .collect();
    http("200 OK", "text/event-stream", &body)
}

/// A call that a server makes: id, tool and arguments.
type Call<'a> = (&'a str, &'a str, Value);

/// An Anthropic answer: content blocks of text and calls.
fn anthropic(text: &str, calls: &[Call<'_>]) -> String {
    let mut stream = vec![json!({"type": "message_start", "message": {
        "id": "msg", "role": "assistant", "content": [], "model": "m",
        "usage": {"input_tokens": 10, "output_tokens": 1}}})];
    let mut index = 0;
    if !text.is_empty() {
        stream.push(json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""}}));
        stream.push(json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": text}}));
        stream.push(json!({"type": "content_block_stop", "index": 0}));
        index = 1;
    }
    for (id, name, input) in calls {
        stream.push(json!({"type": "content_block_start", "index": index,
            "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}));
        stream.push(json!({"type": "content_block_delta", "index": index,
            "delta": {"type": "input_json_delta", "partial_json": input.to_string()}}));
        stream.push(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    }
    let reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
    stream.push(json!({"type": "message_delta", "delta": {"stop_reason": reason},
        "usage": {"output_tokens": 5}}));
    stream.push(json!({"type": "message_stop"}));
    events(&stream)
}

/// A chat completion: text and calls.
fn openai(text: &str, calls: &[Call<'_>]) -> String {
    let calls: Vec<_> = calls
        .iter()
        .enumerate()
        .map(|(index, (id, name, arguments))| {
            json!({"index": index, "id": id, "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}})
        })
        .collect();
    let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    let mut delta = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        delta["tool_calls"] = json!(calls);
    }
    let answer = events(&[
        json!({"choices": [{"index": 0, "delta": delta}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}),
    ]);
    // The length in the head no longer fits, so the end of the answer is the end of the stream.
    answer.replace("content-length", "x-length") + "data: [DONE]\n\n"
}

/// A machine whose configuration knows one provider.
fn machine(protocol: &str, url: &str) -> Machine {
    let machine = Machine::new();
    machine.write_at(
        "config/belljar/config.toml",
        format!(
            "model = \"local/test-model\"\n\n[providers.local]\nprotocol = \"{protocol}\"\n\
             base_url = \"{url}\"\napi_key_env = \"LOCAL_KEY\"\n"
        ),
    );
    machine.write("notes/todo.txt", "buy milk\nwater plants\n");
    machine
}

const KEY: &str = "test-key-of-forty-two-letters";

fn run(machine: &Machine, options: &[&str]) -> Ended {
    let mut arguments = vec!["run", "-o", "stream-json"];
    arguments.extend(options);
    arguments.push("do the first thing");
    let mut command = machine.command(arguments);
    Ended::of(command.env("LOCAL_KEY", KEY).output().unwrap())
}

/// The five rounds that both protocols play: find, search, read (two at once), edit, read again.
fn rounds(answer: fn(&str, &[Call<'_>]) -> String) -> Vec<String> {
    let read = json!({"path": "notes/todo.txt"});
    vec![
        answer("Looking.", &[("id_1", "find_files", json!({"pattern": "*.txt"}))]),
        answer("", &[("id_2", "search_text", json!({"pattern": "milk"}))]),
        answer(
            "",
            &[
                ("id_3", "read_file", read.clone()),
                ("id_4", "read_file", json!({"path": "../outside"})),
            ],
        ),
        answer(
            "",
            &[(
                "id_5",
                "edit_file",
                json!({"path": "notes/todo.txt", "old_text": "buy milk", "new_text": "milk: done"}),
            )],
        ),
        answer("", &[("id_6", "read_file", read)]),
        answer("Done.", &[]),
    ]
}

/// What was shown, the same for both protocols.
fn check_shown(machine: &Machine, ended: &Ended) {
    assert_eq!(ended.code, 0, "{ended:#?}");
    let events = ended.events();
    let results = of_type(&events, "tool_result");
    let ok: Vec<_> = results.iter().map(|result| result["ok"].as_bool().unwrap()).collect();
    assert_eq!(ok, [true, true, true, false, true, true], "{results:#?}");
    assert!(results[5]["content"][0]["text"].as_str().unwrap().contains("milk: done"));
    let stop = events.last().unwrap();
    assert_eq!((&stop["reason"], &stop["result"]), (&json!("completed"), &json!("Done.")));
    assert_eq!(stop["usage"]["output_tokens"], 30, "{stop}");
    assert_eq!(stop["denials"], 1);
    assert_eq!(machine.read("notes/todo.txt"), "milk: done\nwater plants\n");
    assert!(!format!("{ended:?}{:?}", machine.session()).contains(KEY), "the key stays unseen");
}

#[test]
fn a_run_over_the_anthropic_protocol() {
    let server = Server::start(rounds(anthropic));
    let machine = machine("anthropic", &server.url);
    let ended = run(&machine, &["--allow", "edit_file"]);
    check_shown(&machine, &ended);
    let requests = server.requests();
    assert_eq!(requests.len(), 6);
    for request in &requests {
        assert_eq!(request.path, "/v1/messages");
        assert_eq!(request.header("x-api-key"), Some(KEY));
        let body = &request.body;
        assert_eq!((&body["model"], &body["stream"]), (&json!("test-model"), &json!(true)));
        assert_eq!(body["system"], requests[0].body["system"], "stable while nothing changes");
        assert_eq!(body["tools"], requests[0].body["tools"]);
        assert!(body["system"][0]["text"].as_str().unwrap().contains("relative to the workspace"));
        assert_eq!(body["system"][0]["cache_control"], json!({"type": "ephemeral"}));
    }
    let names: Vec<_> = requests[0].body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, OFFERED, "what the mode denies is not offered");
    // Calls and results are paired and in order: one user message for the results of a round.
    let last = requests[5].body["messages"].as_array().unwrap();
    let shape: Vec<_> = last
        .iter()
        .map(|message| {
            let parts = message["content"].as_array().unwrap();
            let parts: Vec<_> = parts
                .iter()
                .map(|part| match part["type"].as_str().unwrap() {
                    "tool_use" => format!("call {}", part["id"].as_str().unwrap()),
                    "tool_result" => format!("result {}", part["tool_use_id"].as_str().unwrap()),
                    kind => kind.to_owned(),
                })
                .collect();
            format!("{}: {}", message["role"].as_str().unwrap(), parts.join(", "))
        })
        .collect();
    assert_eq!(
        shape,
        [
            "user: text",
            "assistant: text, call id_1",
            "user: result id_1",
            "assistant: call id_2",
            "user: result id_2",
            "assistant: call id_3, call id_4",
            "user: result id_3, result id_4",
            "assistant: call id_5",
            "user: result id_5",
            "assistant: call id_6",
            "user: result id_6",
        ]
    );
    assert_eq!(last[6]["content"][1]["is_error"], true);
    assert_ne!(last[6]["content"][0]["is_error"], true);
}

#[test]
fn a_run_over_the_openai_protocol() {
    let server = Server::start(rounds(openai));
    let machine = machine("openai", &format!("{}/v1", server.url));
    let ended = run(&machine, &["--allow", "edit_file"]);
    check_shown(&machine, &ended);
    let requests = server.requests();
    assert_eq!(requests.len(), 6);
    for request in &requests {
        assert_eq!(request.path, "/v1/chat/completions");
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!(request.body["tools"], requests[0].body["tools"]);
        assert_eq!(request.body["messages"][0]["role"], "system");
    }
    let names: Vec<_> = requests[0].body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, OFFERED);
    let shape: Vec<_> = requests[5].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            let role = message["role"].as_str().unwrap();
            match (role, message["tool_calls"].as_array()) {
                ("tool", _) => format!("tool {}", message["tool_call_id"].as_str().unwrap()),
                (role, Some(calls)) => {
                    let ids: Vec<_> =
                        calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
                    format!("{role} {}", ids.join(" "))
                }
                (role, None) => role.to_owned(),
            }
        })
        .collect();
    assert_eq!(
        shape,
        [
            "system",
            "user",
            "assistant id_1",
            "tool id_1",
            "assistant id_2",
            "tool id_2",
            "assistant id_3 id_4",
            "tool id_3",
            "tool id_4",
            "assistant id_5",
            "tool id_5",
            "assistant id_6",
            "tool id_6",
        ]
    );
}

#[test]
fn a_server_that_is_busy_is_asked_again() {
    let busy = http(
        "529 Overloaded",
        "application/json",
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    );
    let server = Server::start(vec![busy, anthropic("Here.", &[])]);
    let machine = machine("anthropic", &server.url);
    let ended = run(&machine, &[]);
    let events = ended.events();
    assert_eq!(ended.code, 0, "{events:#?}");
    let retries = of_type(&events, "retry");
    assert_eq!(retries.len(), 1);
    assert_eq!((&retries[0]["what"], &retries[0]["attempt"]), (&json!("model"), &json!(2)));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn what_no_retry_mends_ends_the_run_at_once_and_says_what_to_check() {
    let cases = [
        (
            "401 Unauthorized",
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            ["invalid x-api-key", "LOCAL_KEY"],
        ),
        (
            "404 Not Found",
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: test-model"}}"#,
            ["model: test-model", "404"],
        ),
        (
            "400 Bad Request",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"tools: too many"}}"#,
            ["tools: too many", "400"],
        ),
    ];
    for (status, body, says) in cases {
        let server = Server::start(vec![http(status, "application/json", body)]);
        let machine = machine("anthropic", &server.url);
        let ended = run(&machine, &[]);
        let events = ended.events();
        assert_eq!(ended.code, 1, "{status}: {events:#?}");
        assert_eq!(events.last().unwrap()["reason"], "stream_error");
        let message = of_type(&events, "error")[0]["message"].as_str().unwrap();
        for word in says {
            assert!(message.contains(word), "{status}: {word} in {message}");
        }
        assert!(!message.contains(KEY), "{message}");
        assert_eq!(server.requests().len(), 1, "{status}");
        assert_eq!(machine.session().last().unwrap()["record"], "stopped");
    }
}

#[test]
fn garbage_is_an_error_that_names_the_server() {
    let garbage = http("200 OK", "text/html", "<html>Welcome to nginx</html>");
    let server = Server::start(vec![garbage]);
    let machine = machine("openai", &server.url);
    let ended = run(&machine, &[]);
    assert_eq!(ended.code, 1, "{ended:#?}");
    let events = ended.events();
    let message = of_type(&events, "error")[0]["message"].as_str().unwrap();
    assert!(message.contains("base_url"), "{message}");
}
