//! The proxy on one machine: from nothing to a conversation that can be read.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use super::{Place, STORE};
use crate::common::http::received;

/// Answers each request as a model does, until the program has gone; its name moves the cursor of a terminal.
fn model(listener: TcpListener) {
    let answer = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "m-1\u{1b}[2J",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi!"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1234, "completion_tokens": 56, "total_tokens": 1290},
    });
    for stream in listener.incoming() {
        let mut stream = BufReader::new(stream.unwrap());
        while received(&mut stream).is_some() {
            let body = answer.to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
            write!(stream.get_mut(), "{head} {}\r\n\r\n{body}", body.len()).unwrap();
        }
    }
}

fn post(url: &str, messages: &Value) -> Value {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let body = json!({"model": "m-1", "messages": messages}).to_string();
    let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
    let head = format!("POST /{path}/chat/completions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer sk-1\r\n");
    write!(stream.get_mut(), "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    serde_json::from_str(&received(&mut stream).unwrap().1).unwrap()
}

/// A proxy that runs, and the lines of one of its outputs.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_is_said_to_a_model_is_stored_and_shown_while_it_passes() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || model(listener));
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("convo"));
    command.current_dir(place.path("")).env("CONVO_STORE", STORE).env_remove("CONVO_CONFIG");
    command.args(["--text", "proxy", "mine", "--url", &url, "--listen", "127.0.0.1:0"]);
    let mut proxy = Proxy(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(proxy.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut watched = BufReader::new(proxy.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.next().unwrap().starts_with("recording into sled:./convo.db; the pages are at http://127.0.0.1:"));
    let export = said.find(|line| line.contains("export")).unwrap();
    let base = export.trim().strip_prefix("export OPENAI_BASE_URL=").unwrap();

    let mut messages = vec![json!({"role": "user", "content": "hello"})];
    for how in ["new", "continued"] {
        let answer = post(base, &json!(messages));
        let line = watched.next().unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[2..], [how, "complete", "mine", "m-1", "[2J", "1234", "+", "56", "tokens", words[11], "ms"]);
        messages.extend([answer["choices"][0]["message"].clone(), json!({"role": "user", "content": "and now?"})]);
    }
    let status = Command::new("kill").args(["-TERM", &proxy.0.id().to_string()]).status().unwrap();
    assert!(status.success() && proxy.0.wait().unwrap().success());

    // Nobody has it open any more.
    let listed = place.ok(&["list"]).json();
    assert_eq!((listed.len(), &listed[0]["messages"]), (1, &json!(4)));
    let shown = place.ok(&["--text", "show", listed[0]["conversation"].as_str().unwrap()]).stdout;
    assert!(shown.contains("hello") && shown.contains("and now?") && !shown.contains("sk-1"), "{shown}");
}

#[test]
fn where_nothing_can_be_reached_it_says_what_to_do() {
    let place = Place::new();
    for (args, problem) in [
        (&["nobody"][..], "upstream nobody: it needs a url; these need none: anthropic, openai, gemini"),
        (&["llamacpp"], "127.0.0.1:8080 is the address of this server itself: choose another address to listen on"),
        (&["x", "--url", "http://localhost:8080/v1"], "127.0.0.1:8080 is the address of this server itself"),
        (&["x", "--url", "https://key@host"], "keys do not stand in a URL"),
        (&["--url", "http://127.0.0.1:1"], "<NAME>"),
    ] {
        let run = place.run(&[&["proxy"], args].concat());
        assert!(run.exit == 2 && run.stderr.contains(problem), "{args:?}: {} {}", run.exit, run.stderr);
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _taken = TcpListener::bind(taken).unwrap();
    let run = place.run(&["proxy", "openai", "--listen", &taken.to_string()]);
    assert!(
        run.exit == 2 && run.stderr.contains(&taken.to_string()) && run.stderr.contains("--listen (port 0"),
        "{} {}",
        run.exit,
        run.stderr
    );
}
