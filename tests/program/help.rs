//! What the help texts teach: every example runs as it is written.

use std::io::Write;
use std::process::{Command, Stdio};

#[cfg(feature = "server")]
use serde_json::Value;

use super::{ANSWER, HELLO, Place};

/// All commands, as `convo help` lists them.
fn commands(place: &Place) -> Vec<String> {
    let help = place.ok(&["--help"]).stdout;
    let (_, list) = help.split_once("\nCommands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).filter(|name| name != "help").collect()
}

/// The examples of a help text.
fn examples(help: &str) -> Vec<String> {
    let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_else(|| panic!("no examples: {help}"));
    let lines = examples.lines().take_while(|line| !line.is_empty());
    lines.map(|line| line.trim().to_owned()).filter(|line| !line.starts_with('#')).collect()
}

/// A place in which every example of a help text has what it names.
fn furnished() -> Place {
    let place = Place::new();
    let fixture = |path: &str| std::fs::read(format!("{}/tests/fixtures/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    place.append("chat-42", &[HELLO, ANSWER, HELLO, ANSWER]);
    place.run_with(&["append", "chat-42", "--owner", "ada"], HELLO);
    let item = |id: &str| ANSWER.replace(r#""text": "Hi!""#, &format!(r#""text": "Hi!", "id": "{id}""#));
    let ids = ["msg_01XFDUDYJgAACzvnptvVoYEL", "rs_68af4030baa48193b0b43b4c2a176a1a"];
    place.append("chat-42", &ids.map(item).each_ref().map(String::as_str));
    let notes = HELLO.replace("hello", "the cache hit rate");
    place.append("notes", &[&notes]);
    place.run_with(&["append", "notes", "--owner", "ada"], notes);
    let call =
        r#"{"type": "tool_call", "id": "call_1", "name": "read_file", "arguments": "{\"path\": \"Cargo.toml\"}"}"#;
    place.append("notes", &[&format!("{{\"role\": \"assistant\", \"chunks\": [{call}]}}")]);
    place.ok(&["tag", "chat-42", "later"]);
    place.ok(&["backup", "chats.backup"]);
    place.write("messages.jsonl", format!("{HELLO}\n{ANSWER}\n"));
    place.write("incident.jsonl", fixture("incident.jsonl"));
    place.write("request.json", r#"{"model": "m", "messages": [{"role": "user", "content": "hi"}]}"#);
    place.write("refused.json", fixture("refused/openai-chat.json"));
    place.write("response.json", fixture("providers/anthropic/plain_text/response.json"));
    place.write("stream.txt", fixture("providers/openai_chat/plain_text/stream.txt"));
    place.write("tools.json", r#"[{"name": "ls", "parameters": {"type": "object"}}]"#);
    place.write("summary.txt", "They greeted each other.");
    place.write("acks.txt", "");
    place.write("prices.json", r#"{"m-1": {"input": 3, "output": 15}}"#);
    place.write("rows.jsonl", fixture("transfer/rows.jsonl"));
    place.write("conversations.json", fixture("transfer/claude-ai-conversations.json"));
    let mut zip = zip::ZipWriter::new(std::fs::File::create(place.path("chatgpt-export.zip")).unwrap());
    zip.start_file("conversations.json", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(&fixture("transfer/chatgpt-conversations.json")).unwrap();
    zip.finish().unwrap();
    std::fs::create_dir_all(place.path(".claude/projects")).unwrap();
    place.write(".claude/projects/session.jsonl", fixture("transfer/claude-code-session.jsonl"));
    #[cfg(feature = "server")]
    {
        place.ok(&["keys", "create", "--keys", "keys.json", "--owner", "ada", "--quiet"]);
        let keys: Value = serde_json::from_slice(&std::fs::read(place.path("keys.json")).unwrap()).unwrap();
        let id = keys["keys"][0]["id"].as_str().unwrap();
        place.write("keys.json", keys.to_string().replace(id, "key_0123456789ab"));
    }
    place.write("convo.toml", "[server]\nlisten = \"127.0.0.1:8080\"\n");
    std::fs::create_dir(place.path("man1")).unwrap();
    place.write("man1/convo-prompt.1", "");
    // The programs of others that examples name.
    std::fs::create_dir(place.path("bin")).unwrap();
    for (name, script) in [
        ("agent", "cat ../messages.jsonl || cat messages.jsonl"),
        ("claude", "test \"$1\" = mcp || test \"$ANTHROPIC_BASE_URL\" = http://127.0.0.1:8080/proxy/anthropic"),
        ("summarizer", "cat summary.txt"),
        ("jq", "cat"),
        ("man", "test -f \"$1\""),
        ("curl", "case \"$*\" in *request.json) cat refused.json;; *) cat stream.txt;; esac"),
    ] {
        let path = place.path(&format!("bin/{name}"));
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin!("convo"), place.path("bin/convo")).unwrap();
    place
}

/// Runs an example as a person does, but for what asks and what never ends.
fn run(place: &Place, example: &str) -> (i32, String) {
    let mut script = example.replace("--seconds 10", "--seconds 0.2");
    for asking in ["convo delete", "convo redact", "convo prune"] {
        if script.starts_with(asking) && !script.contains("--yes") {
            script.push_str(" --yes");
        }
    }
    if script.contains("convo live-check") {
        // It asks a provider: tests/program/live_check.rs runs it against a server of its own.
        return (0, String::new());
    }
    if script.contains("--follow") {
        script = format!("timeout 2 {script}; test $? = 124");
    }
    if script.contains("convo verify --store sled:bench.db") {
        script = format!("convo bench --seconds 0.1 --store sled:bench.db && {script}");
    }
    if script.contains("--acks acks.txt") && script.contains("convo bench --store") {
        std::fs::remove_file(place.path("acks.txt")).unwrap();
    }
    if script.starts_with("convo serve") {
        let address = if script.contains("--listen") { "" } else { " --listen 127.0.0.1:0" };
        script = format!("timeout 2 {}{address}; test $? = 124", script.replace(":8080", ":0"));
    }
    if script.starts_with("convo proxy") {
        let address = if script.contains("--listen") { "" } else { " --listen 127.0.0.1:0" };
        script = format!("timeout 2 {}{address}; test $? = 124", script.replace(":9000", ":0"));
    }
    if script.starts_with("convo healthcheck") {
        script = format!(
            "convo --json serve --listen 127.0.0.1:0 >listening & until [ -s listening ]; do sleep 0.1; done; \
             {script} --listen $(grep -o '127[0-9.:]*' listening); found=$?; kill $!; exit $found"
        );
    }
    #[cfg(feature = "postgres")]
    if script.contains("postgres://") {
        let Ok(server) = crate::common::postgres::server() else { return (0, String::new()) };
        script = script.replace("postgres://convo_owner@localhost/chats", &format!("'{}'", server.url()));
    }
    #[cfg(feature = "postgres")]
    if script.contains("shards:clusters") {
        let Ok(server) = crate::common::postgres::server() else { return (0, String::new()) };
        std::fs::write(place.path("clusters"), [server.url(), server.url()].join("\n")).unwrap();
        if script.starts_with("convo shards") {
            script = format!("convo migrate --store shards:clusters && {script}");
        }
    }
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(place.path(""))
        .env("PATH", path)
        .env("HOME", place.path(""))
        .env("CONVO_STORE", super::STORE)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Whether an example runs until it is ended.
fn waits(example: &str) -> bool {
    example.contains("--follow") || example.starts_with("convo serve") || example.starts_with("convo proxy")
}

/// An example of a command runs, in a copy of a place.
fn assert_runs(furnished: &Place, command: &str, example: &str) {
    let place = Place::new();
    let copied = Command::new("cp").arg("-a").args([furnished.path("."), place.path(".")]).status();
    assert!(copied.unwrap().success());
    // A backup goes to a new file.
    if example.starts_with("convo backup") {
        std::fs::remove_file(place.path("chats.backup")).unwrap();
    }
    let (exit, stderr) = run(&place, example);
    // One conversation of the sample is damaged.
    let may_find = example.contains("convo check") || example.contains("convo import chatgpt");
    let findings = may_find && exit == 1;
    assert!(exit == 0 || findings, "`{example}` of {command}: exit {exit}: {stderr}");
}

#[test]
fn every_command_has_help_with_examples_that_run() {
    let place = Place::new();
    let (commands, furnished) = (commands(&place), furnished());
    let furnished = &furnished;
    assert!(commands.len() > 25, "{commands:?}");
    // Those that wait do so beside the others.
    std::thread::scope(|waiting| {
        for command in &commands {
            let help = place.ok(&["help", command]).stdout;
            assert_eq!(place.ok(&[command, "--help"]).stdout, help);
            let examples = examples(&help);
            assert!(
                examples.iter().any(|example| example.contains(&format!("convo {command}"))),
                "{command}: {examples:?}"
            );
            for example in examples {
                if waits(&example) {
                    waiting.spawn(move || assert_runs(furnished, command, &example));
                } else {
                    assert_runs(furnished, command, &example);
                }
            }
        }
    });
}

/// A field that no message has is kept, and means nothing to a provider: no help text may show one.
#[test]
fn the_messages_that_help_shows_reach_the_provider() {
    let place = Place::new();
    let help = place.ok(&["help", "append"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = help.match_indices("{\"role\"").map(|(at, _)| help.split_at(at).1);
    let read = |text| serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>().next()?.ok();
    let messages: Vec<String> = shown.filter_map(read).map(|message| message.to_string()).collect();
    assert_eq!(messages.len(), 3, "{help}");
    place.append("shown", &messages.iter().map(String::as_str).collect::<Vec<_>>());
    let prompt = place.ok(&["prompt", "shown", "--for", "openai-chat"]).stdout;
    assert!(prompt.contains(r#""tool_call_id":"call_1","content":"...""#), "{prompt}");
}

#[test]
fn the_examples_of_the_program_itself_run() {
    let place = furnished();
    for example in examples(&place.ok(&["help"]).stdout) {
        let (exit, stderr) = run(&place, &example);
        assert_eq!(exit, 0, "`{example}`: {stderr}");
    }
}

/// No line of a help text is broken where it should go on: on a narrow terminal and on a wide one, a line is full, or the
/// end of its paragraph.
#[test]
fn help_is_whole_whatever_the_width() {
    let place = Place::new();
    for command in commands(&place) {
        for width in [80, 100] {
            let help = Command::new(assert_cmd::cargo::cargo_bin!("convo"))
                .args(["help", &command])
                .env("COLUMNS", width.to_string())
                .output()
                .unwrap();
            let help = String::from_utf8(help.stdout).unwrap();
            let (_, epilogue) = help.split_once("\nExamples:\n").unwrap();
            let lines: Vec<&str> = epilogue.lines().collect();
            for pair in lines.windows(2) {
                assert!(pair[0].chars().count() <= width, "{command} at {width}: {}", pair[0]);
                let is_paragraph = |line: &str| !line.is_empty() && !line.starts_with(' ');
                let word = pair[1].split(' ').next().unwrap().chars().count();
                let is_broken = is_paragraph(pair[0])
                    && is_paragraph(pair[1])
                    && !pair[0].ends_with(':')
                    && pair[0].chars().count() + 1 + word <= width;
                assert!(!is_broken, "{command} at {width}: {:?} goes on with {:?}", pair[0], pair[1]);
            }
        }
    }
}

#[test]
fn completions_and_the_manual_know_every_command() {
    let place = Place::new();
    let commands = commands(&place);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = place.ok(&["completions", shell]).stdout;
        for command in &commands {
            assert!(script.contains(command.as_str()), "{shell}: {command}");
        }
        assert!(!script.contains("compact"), "{shell} offers a name that is gone");
    }
    place.ok(&["man", "pages/man1", "--quiet"]);
    let pages: Vec<String> = std::fs::read_dir(place.path("pages/man1"))
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    for command in &commands {
        assert!(pages.contains(&format!("convo-{command}.1")), "{command}: {pages:?}");
    }
    let page = std::fs::read_to_string(place.path("pages/man1/convo-show.1")).unwrap();
    assert!(page.contains("convo show chat\\-42"), "{page}");
    assert!(pages.contains(&"convo.1".to_owned()) && !pages.iter().any(|page| page.contains("compact")), "{pages:?}");
}

/// Without a name of a store: the project's, where there is one, else the user's own.
#[test]
fn the_store_is_the_users_own_unless_the_project_has_one() {
    let place = Place::new();
    let home = place.path("home");
    std::fs::create_dir(&home).unwrap();
    let run = |args: &[&str], environment: &[(&str, &str)]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("convo"));
        command.args(args).current_dir(place.path("")).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child =
            command.env("HOME", &home).envs(environment.iter().copied()).stderr(Stdio::piped()).spawn().unwrap();
        // Not every command reads.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), HELLO.as_bytes());
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap().lines().count())
    };
    let own = home.join(".local/share/convo/store.db");
    assert_eq!(run(&["list"], &[]), (2, 0));
    assert!(!home.join(".local").exists(), "reading made something");
    assert_eq!(run(&["append", "mine"], &[]), (0, 1));
    assert!(own.join("CONVERSATION-STORE").is_file());
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(home.join(".local/share/convo")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o700);
    let elsewhere = place.path("elsewhere");
    let xdg = [("XDG_DATA_HOME", elsewhere.to_str().unwrap())];
    assert_eq!(run(&["append", "other"], &xdg), (0, 1));
    assert!(elsewhere.join("convo/store.db/CONVERSATION-STORE").is_file());
    // A relative path is none, and a name that is empty is none.
    assert_eq!(run(&["list"], &[("XDG_DATA_HOME", "relative"), ("CONVO_STORE", "")]), (0, 1));
    place.append("of the project", &[HELLO]);
    place.append("of the project, too", &[HELLO]);
    assert_eq!(run(&["list"], &[]), (0, 2));
    assert_eq!(run(&["list"], &[("CONVO_STORE", &format!("sled:{}", own.display()))]), (0, 1));
    assert_eq!(run(&["bench", "--seconds", "0.1"], &[]), (2, 0), "bench writes to no store that it was not given");
}
