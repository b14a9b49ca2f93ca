//! `convo import` and `convo export`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{ANSWER, HELLO, Place, STORE};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/transfer").join(name)
}

#[test]
fn a_line_for_each_conversation_then_a_sum() {
    let place = Place::new();
    let file = sample("chatgpt-conversations.json");
    let run = place.run(&["import", file.to_str().unwrap(), "--json"]);
    let lines = run.json();
    assert_eq!((run.exit, run.stderr.as_str(), lines.len()), (1, "", 3));
    let key = "chatgpt:00000000-0000-4000-8000-00000000c001";
    let wanted = json!({
        "source_id": "00000000-0000-4000-8000-00000000c001", "conversation": lines[0]["conversation"], "key": key,
        "title": "Picnic", "messages": 4, "branches": 1, "skipped": {"empty_message": 1},
    });
    assert_eq!(lines[0], wanted);
    assert_eq!(lines[1]["error"], "it has no mapping, so no messages");
    assert_eq!(
        (&lines[2]["conversations"], &lines[2]["failed"], &lines[2]["added"]),
        (&json!(1), &json!(1), &json!(9))
    );
    assert_eq!(place.ok(&["show", key]).json().len(), 4);
    assert_eq!(place.ok(&["list"]).json().len(), 2);
    let again = place.run(&["import", file.to_str().unwrap(), "--json"]);
    assert_eq!(again.json()[2]["added"], 0);
}

#[test]
fn stdin_owners_limits_and_branches() {
    let place = Place::new();
    let text = std::fs::read(sample("openai-finetune.jsonl")).unwrap();
    let run = place.run_with(&["import", "-", "--owner", "ada", "--limit", "2"], text);
    assert_eq!((run.exit, run.json().len()), (0, 3));
    assert_eq!(place.ok(&["list", "--owner", "ada"]).json().len(), 2);
    assert_eq!(place.ok(&["list"]).json().len(), 0);
    let file = sample("open-webui-export.json");
    let run = place.ok(&["import", file.to_str().unwrap(), "--branches", "current"]);
    assert_eq!(run.json()[0]["skipped"], json!({"message_of_another_branch": 1}));
}

#[test]
fn what_is_not_recognised_is_named() {
    let place = Place::new();
    place.write("x.json", "[{\"apples\": 1}]");
    let run = place.run(&["import", "x.json"]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.contains("a list of objects with the fields apples"), "{}", run.stderr);
    assert_eq!(place.run(&["import", "nowhere.json"]).exit, 2);
    let run = place.run(&["import", "x.json", "--format", "pears"]);
    assert!(run.exit == 2 && run.stderr.contains("chatgpt"), "{}", run.stderr);
}

#[test]
fn what_is_exported_is_imported_elsewhere() {
    let (place, other) = (Place::new(), Place::new());
    place.ok(&["import", sample("ai-sdk-uimessages.json").to_str().unwrap()]);
    let key = "ai-sdk:ai-sdk-uimessages";
    let all = place.path("all.jsonl");
    place.ok(&["export", "--all", "--format", "transcript", "--out", all.to_str().unwrap()]);
    other.ok(&["import", all.to_str().unwrap()]);
    let said = |place: &Place| -> Vec<_> {
        place
            .ok(&["show", "--raw", key])
            .json()
            .into_iter()
            .map(|mut line| {
                let fields = line.as_object_mut().unwrap();
                ["first_seq", "last_seq"].iter().for_each(|name| _ = fields.remove(*name));
                line
            })
            .collect()
    };
    assert_eq!(said(&place), said(&other));
    for format in
        ["markdown", "html", "openai-items", "openai-finetune", "sharegpt", "open-webui", "ai-sdk", "langchain"]
    {
        let run = place.run(&["export", key, "--format", format]);
        assert!(run.exit == 0 && run.stdout.contains('3'), "{format}: {}{}", run.stdout, run.stderr);
    }
    // A file that is there is not written over.
    let run = place.run(&["export", key, "--format", "html", "--out", all.to_str().unwrap()]);
    assert!(run.exit == 2 && run.stderr.contains("give another name with --out"), "{}", run.stderr);
    assert_eq!(place.run(&["export", key, "--format", "pears"]).exit, 2);
}

#[test]
fn exports_for_people_have_names() {
    let place = Place::new();
    place.ok(&["import", sample("ai-sdk-uimessages.json").to_str().unwrap()]);
    let key = "ai-sdk:ai-sdk-uimessages";
    let markdown = place.ok(&["export", key, "--format", "md"]).stdout;
    assert_eq!(place.ok(&["export", key, "--format", "Markdown"]).stdout, markdown);
    place.ok(&["title", key, "Lost & found"]);
    assert!(place.ok(&["export", key, "--format", "md"]).stdout.starts_with("# Lost & found\n"));
    let line = |chunks: &str, role: &str| format!("{{\"role\":\"{role}\",\"chunks\":[{chunks}]}}\n");
    let call = line(r#"{"type":"tool_call","id":"c","name":"clock","arguments":"{}"}"#, "assistant");
    let results = line(r#"{"type":"tool_result","tool_call_id":"c","content":"noon"}"#, "tool")
        + &line(r#"{"type":"tool_result","tool_call_id":"d","content":"x","is_error":true}"#, "tool");
    place.write("tools.jsonl", &(call + &results));
    place.ok(&["append", "tools", "tools.jsonl"]);
    let markdown = place.ok(&["export", "tools", "--format", "md"]).stdout;
    // It has no text that could give it a title.
    assert!(markdown.starts_with("# tools\n"), "{markdown}");
    assert!(place.ok(&["export", "tools", "--format", "html"]).stdout.contains("<h1>tools</h1>"));
    assert!(markdown.contains("**`clock` returned**") && markdown.contains("**a tool failed**"), "{markdown}");
}

#[test]
fn a_format_that_does_not_exist_names_the_one_that_was_meant() {
    let place = Place::new();
    place.write("x.json", "[]");
    for (args, wanted) in [
        (["import", "x.json", "--format", "openai"], "did you mean `openai-finetune` or `openai-items`?"),
        (["import", "x.json", "--format", "Claude"], "did you mean `claude-ai` or `claude-code`?"),
        (["import", "x.json", "--format", "chatgtp"], "did you mean `chatgpt`?"),
        (["import", "x.json", "--format", "html"], "`html` is no import format: `convo export` has it"),
        (["import", "x.json", "--for", "openai"], "'--format'"),
        (["export", "--all", "--format", "chatgpt"], "`chatgpt` is no export format: `convo import` has it"),
        (["export", "--all", "--format", "markdwon"], "did you mean `markdown`?"),
    ] {
        let run = place.run(&args);
        assert!(run.exit == 2 && run.stderr.contains(wanted), "{args:?}: {}", run.stderr);
    }
    let file = sample("sharegpt.json");
    let run = place.run(&["import", file.to_str().unwrap(), "--limit", "0"]);
    assert_eq!((run.exit, run.json().len()), (0, 1));
}

#[test]
fn a_dry_run_stores_nothing() {
    let place = Place::new();
    let file = sample("sharegpt.json");
    let file = file.to_str().unwrap();
    let dry = place.ok(&["import", file, "--dry-run"]).json();
    assert_eq!(place.run(&["list"]).json().len(), 0);
    assert_eq!(place.ok(&["import", file]).json(), dry);
}

#[test]
fn a_conversation_is_handed_over_to_a_program_that_goes_on_with_it() {
    let place = Place::new();
    place.append("c", &[HELLO, ANSWER]);
    for (to, variable, resume, files) in [
        ("claude-code", "CLAUDE_CONFIG_DIR", "claude -r ", "projects"),
        ("codex", "CODEX_HOME", "codex resume ", "sessions"),
    ] {
        let mut command = assert_cmd::Command::cargo_bin("convo").unwrap();
        command.current_dir(place.path("")).env("CONVO_STORE", STORE).env(variable, place.path(to));
        let output = command.args(["export", "c", "--to", to]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let session: Value = serde_json::from_slice(&output.stdout).unwrap();
        let (id, file) = (session["session"].as_str().unwrap(), session["file"].as_str().unwrap());
        assert_eq!(session["command"], format!("{resume}{id}"));
        assert!(std::path::Path::new(file).starts_with(place.path(to).join(files)), "{file}");
        let text = std::fs::read_to_string(file).unwrap();
        let here = place.path("").canonicalize().unwrap();
        assert!(text.contains("Hi!") && text.contains(here.to_str().unwrap()), "{text}");
    }
    assert_eq!(place.run(&["export", "c", "--to", "cursor"]).exit, 2);
    assert_eq!(place.run(&["export", "c"]).exit, 2);
}

#[test]
fn pictures_of_a_markdown_file_are_beside_it() {
    let place = Place::new();
    let picture = r#"{"type":"image","url":"data:image/png;base64,iVBORw0K"}"#;
    let line = |role: &str, chunks: &str| format!("{{\"role\":\"{role}\",\"chunks\":[{chunks}]}}\n");
    let result =
        format!(r#"{{"type":"tool_result","tool_call_id":"c","content":[{{"type":"text","text":"shot"}},{picture}]}}"#);
    let document = r#"{"type":"file","name":"a.pdf","data":"JVBERi0=","mime_type":"application/pdf"}"#;
    let elsewhere =
        r#"{"type":"image","url":"https://example.org/a.png"},{"type":"image","url":"data:image/svg+xml;base64,AAAA"}"#;
    place.write("c.jsonl", line("user", &format!("{picture},{document},{elsewhere}")) + &line("tool", &result));
    place.ok(&["append", "c", "c.jsonl"]);
    let [summary] =
        place.ok(&["export", "c", "--format", "markdown", "--out", "my chat.md"]).json().try_into().unwrap();
    assert_eq!(summary["files"], 2);
    let text = std::fs::read_to_string(place.path("my chat.md")).unwrap();
    assert_eq!(text.matches("![picture](<my%20chat-files/picture-1.png>)").count(), 2, "{text}");
    assert!(
        text.contains("[a.pdf](<my%20chat-files/file-2.pdf>)")
            && text.contains("shot\n[picture my%20chat-files/picture-1.png]\n"),
        "{text}"
    );
    assert!(
        text.contains("<https://example.org/a.png>") && text.contains("<data:image/svg+xml;base64,AAAA>"),
        "{text}"
    );
    assert_eq!(std::fs::read(place.path("my chat-files/picture-1.png")).unwrap(), b"\x89PNG\r\n");
    assert_eq!(std::fs::read(place.path("my chat-files/file-2.pdf")).unwrap(), b"%PDF-");
    std::fs::remove_file(place.path("my chat.md")).unwrap();
    let run = place.run(&["export", "c", "--format", "markdown", "--out", "my chat.md"]);
    assert!(run.exit == 2 && run.stderr.starts_with("error: my chat-files exists already"), "{}", run.stderr);
    assert!(!place.path("my chat.md").exists());
    // Without files there is no folder, and on stdout pictures and documents are in the text.
    place.append("d", &[HELLO]);
    place.ok(&["export", "d", "--format", "markdown", "--out", "d.md"]);
    assert!(!place.path("d-files").exists());
    let text = place.ok(&["export", "c", "--format", "markdown"]).stdout;
    assert!(text.contains("![picture](<data:image/png;base64,"), "{text}");
    assert!(text.contains("[a.pdf](<data:application/pdf;base64,JVBERi0=>)"), "{text}");
}
