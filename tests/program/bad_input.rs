//! What can be wrong with a command, its input and its store, and what is said then: word for word.

use conversation_store::provider::WIRES;

use super::{ANSWER, HELLO, INCIDENT, Place, incident};

const LINE_CURE: &str = "\n  cure: a line is a message as JSON: {\"role\": \"user\", \"chunks\": [{\"type\": \"text\", \"text\": \"hello\"}]}";
const FIND_HINT: &str = "\n  cure: `convo list` shows the conversations, `convo show CONVERSATION` the messages";
const HELP: &str = "\n\nFor more information, try '--help'.";

/// Runs a command that fails, and compares what it says.
fn fails(place: &Place, args: &[&str], stdin: impl Into<Vec<u8>>, exit: i32, error: &str) {
    let run = place.run_with(args, stdin);
    assert_eq!((run.exit, run.stderr), (exit, format!("error: {error}\n")), "{args:?}");
}

#[test]
fn stores_that_are_none() {
    let place = Place::new();
    place.write("file", "text");
    std::fs::create_dir(place.path("other")).unwrap();
    place.write("other/notes.txt", "text");
    let list = |url: &str, exit, error: &str| fails(&place, &["list", "--store", url], "", exit, error);
    let none = "cure: `convo append` creates one; --store URL or CONVO_STORE names another";
    list("sled:nothing", 2, &format!("there is no store at sled:nothing\n  {none}"));
    std::fs::create_dir(place.path("empty")).unwrap();
    list("sled:empty", 2, &format!("there is no store at sled:empty\n  {none}"));
    list("backup:nothing", 2, "there is no backup at backup:nothing");
    list("sled:file", 2, "file is a file, not a conversation store: a store is a directory");
    list(
        "sled:other",
        2,
        "other is not a conversation store: it holds \"notes.txt\" and no file CONVERSATION-STORE; \
         name a new or empty directory",
    );
    let fjall = if cfg!(feature = "fjall") { "fjall:PATH, " } else { "" };
    for (url, problem) in
        [("convo.db", "no engine is named"), ("pg:x", "this engine is not known"), ("sled:", "the path is missing")]
    {
        let expected = format!("expected sled:PATH, {fjall}backup:PATH, or memory:");
        list(url, 2, &format!("store URL {url:?}: {problem}; {expected}"));
    }
    for (name, content) in [("nothing", None), ("empty", Some(0)), ("other", Some(1))] {
        let found = std::fs::read_dir(place.path(name)).ok().map(Iterator::count);
        assert_eq!(found, content, "{name} was changed");
    }
}

#[test]
fn an_option_for_several_values_is_given_for_each() {
    let place = Place::new();
    for (args, option, given) in [
        (&["list", "--tag", "a", "b"][..], "--tag", "b"),
        (&["list", "--tag=a", "b"], "--tag", "b"),
        (&["list", "--tag", "a", "--tag", "b", "c"], "--tag", "c"),
        (&["usage", "--by", "day", "model"], "--by", "model"),
    ] {
        let cure = format!("\n  cure: give it for each of them: {option} A {option} B");
        fails(&place, args, "", 2, &format!("{option} takes one value, and `{given}` is another one{cure}"));
    }
    for args in [&["list", "a"][..], &["list", "--limit", "3", "b"], &["list", "--tag", "a", "--nope"]] {
        let run = place.run(args);
        assert!(run.exit == 2 && run.stderr.contains("unexpected argument"), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn reading_commands_make_no_store() {
    let place = Place::new();
    let commands: [&[&str]; 12] = [
        &["prompt", "c", "--for", "openai-chat"],
        &["show", "c"],
        &["entries", "c"],
        &["next", "c"],
        &["list"],
        &["fork", "c"],
        &["rewind", "c", "0"],
        &["delete", "c", "--yes"],
        &["verify"],
        &["redact", "c", "0", "--yes"],
        &["backup", "file"],
        &["show", "c", "--raw"],
    ];
    for args in commands {
        let run = place.run(args);
        assert_eq!((run.exit, run.stderr.lines().next()), (2, Some("error: there is no store at sled:./convo.db")));
    }
    assert!(!place.path("convo.db").exists());
}

#[test]
fn a_store_that_another_process_holds() {
    let place = Place::new();
    let _store = place.store();
    let process = std::process::id();
    let wanted = format!(
        "process {process} holds the store ./convo.db: one process can open a store at a time\
         \n  cure: wait longer with --wait SECONDS, or end that process; for many programs at once, start `convo serve`, and use \
         --store http://127.0.0.1:8080"
    );
    fails(&place, &["list", "--wait", "0"], "", 2, &wanted);
    let begun = std::time::Instant::now();
    fails(&place, &["append", "c", "--wait", "0.3"], HELLO, 2, &wanted);
    assert!(begun.elapsed() >= std::time::Duration::from_millis(300));
}

#[test]
fn a_store_of_a_newer_format() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    let marker = place.path("convo.db/CONVERSATION-STORE");
    let text = std::fs::read_to_string(&marker).unwrap();
    std::fs::write(&marker, text.replace("format 1\n", "format 99\n")).unwrap();
    let wanted = "the store ./convo.db has format version 99, this program reads up to 1: update it";
    fails(&place, &["list"], "", 2, wanted);
}

#[test]
fn conversations_messages_and_seqs_that_are_not_there() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    let not_found = |args: &[&str], what: &str| fails(&place, args, "", 2, &format!("{what} not found{FIND_HINT}"));
    let commands: [&[&str]; 8] = [
        &["prompt", "x", "--for", "openai-chat"],
        &["show", "x"],
        &["show", "x", "--raw"],
        &["entries", "x"],
        &["next", "x"],
        &["fork", "x"],
        &["rewind", "x", "0"],
        &["delete", "x", "--yes"],
    ];
    for args in commands {
        not_found(args, "conversation x");
    }
    not_found(&["show", INCIDENT], &format!("conversation {INCIDENT}"));
    not_found(&["rewind", "c", "7"], "message 7 (the last is 0) in conversation c");
    not_found(&["fork", "c", "--at", "7"], "seq 7 (the last is 1) in conversation c");
    fails(
        &place,
        &["entries", "c", "--since", "7"],
        "",
        2,
        "--since 7 is not a cursor of conversation c: its last seq is 1\
         \n  cure: --since 0 starts from the beginning; is it the same conversation, and the same store?",
    );
}

#[test]
fn conflicts_and_reused_keys() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    let conflict = |args: &[&str], detail: &str, cure: &str| {
        let wanted =
            format!("stdin:1: conversation c {detail}\n  cure: `convo show CONVERSATION` shows what is stored{cure}");
        fails(&place, args, HELLO, 2, &wanted);
    };
    let taken = " under this name; choose another name, or append to it";
    conflict(&["append", "c", "--expect", "0"], "exists already; its last seq is 1", taken);
    conflict(&["append", "c", "--expect", "7"], "ends at seq 1, not at 7", "; look, then decide");
    let run = place.run_with(&["append", "c", "--key", "k"], HELLO);
    assert_eq!(run.exit, 0);
    fails(
        &place,
        &["append", "c", "--key", "k"],
        ANSWER,
        2,
        "stdin:1: idempotency key \"k\" of conversation c was used before with other content\
             \n  cure: a repeated append needs the same content; give new content a new key",
    );
    place.ok(&["fork", "c", "--as", INCIDENT]);
    let run = place.run(&["fork", "c", "--as", INCIDENT]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.starts_with(&format!("error: conversation {INCIDENT} exists already; ")), "{}", run.stderr);
}

#[test]
fn lines_that_are_no_messages() {
    let table: &[(&[u8], &str)] = &[
        (b"nonsense", "1:2: line: not JSON: expected ident"),
        (b"[]", "1:1: line: expected an object, found an array"),
        (b"{\"role\": \"user\",", "1:16: line: not JSON: EOF while parsing a value"),
        (b"{}", "1:1: role: missing; expected system, user, assistant or tool"),
        (
            b"\n\n{\"role\": \"bot\", \"chunks\": []}",
            "3:10: role: expected system, user, assistant or tool, found \"bot\"",
        ),
        (b"{\"role\": \"user\"}", "1:1: chunks: missing; expected an array of chunks"),
        (
            "{\"é\": 1, \"role\": \"user\", \"chunks\": [{\"type\": \"text\", \"text\": 3}]}".as_bytes(),
            "1:62: chunks[0].text: expected a string, found a number",
        ),
    ];
    let place = Place::new();
    for (line, wanted) in table {
        fails(&place, &["append", "c"], *line, 2, &format!("stdin:{wanted}{LINE_CURE}"));
        let replay = ["replay", "-", "--for", "openai-chat"];
        fails(&place, &replay, *line, 2, &format!("stdin:{wanted}{LINE_CURE}"));
    }
    let other = HELLO.replacen('{', r#"{"conversation": "d", "#, 1);
    let wanted = "stdin:1:1: conversation: expected c, or none; found d\
                  \n  cure: `convo replay` appends each line to the conversation that it names";
    fails(&place, &["append", "c"], other, 2, wanted);
}

#[test]
fn text_that_is_not_utf_8() {
    let place = Place::new();
    let cure = "\n  cure: save the text as UTF-8; `iconv -t UTF-8` converts it";
    let mut lines = format!("\u{feff}{HELLO}\n{{\"é\": \"").into_bytes();
    lines.extend_from_slice(b"\xff\"}\n");
    place.write("latin.jsonl", &lines);
    for args in [["append", "c", "latin.jsonl"].as_slice(), &["check", "--for", "openai-chat", "latin.jsonl"]] {
        let run = place.run(args);
        assert_eq!((run.exit, run.stderr), (2, format!("error: latin.jsonl:2:8: not UTF-8{cure}\n")));
    }
}

#[test]
fn a_line_over_the_limit() {
    let place = Place::new();
    let file = std::fs::File::create(place.path("long.jsonl")).unwrap();
    file.set_len(128 * 1024 * 1024 + 1).unwrap();
    let wanted = "long.jsonl:1:1: the line is longer than 134217728 bytes (128 MiB)\
                  \n  cure: split long content into several chunks or messages, or refer to it by its URL";
    fails(&place, &["append", "c", "long.jsonl"], "", 2, wanted);
    fails(&place, &["replay", "long.jsonl", "--for", "openai-chat"], "", 2, wanted);
    let wanted = "long.jsonl: it is longer than 134217728 bytes (128 MiB)";
    fails(&place, &["check", "--for", "openai-chat", "long.jsonl"], "", 2, wanted);
    let chunk = HELLO.replace("hello", &"x".repeat(64 * 1024 * 1024 + 1));
    let wanted = "stdin:1: a chunk has 67108865 bytes, at most 67108864 bytes are accepted\
                  \n  cure: make it shorter, or split it";
    fails(&place, &["append", "c"], chunk, 2, wanted);
}

#[test]
fn too_much_for_one_append() {
    let place = Place::new();
    let lines = format!("{HELLO}\n").repeat(10_001);
    let wanted = "stdin:10001:1: --atomic takes at most 10000 messages and 134217728 bytes (128 MiB); \
                  nothing was appended\n  cure: leave --atomic out, or split the file";
    fails(&place, &["append", "c", "--atomic"], lines, 2, wanted);
}

#[test]
fn files_that_are_empty_or_none() {
    let place = Place::new();
    for args in [["append", "c"].as_slice(), &["append", "c", "--atomic"], &["replay", "-", "--for", "openai-chat"]] {
        let run = place.run_with(args, "\u{feff}\n \n");
        let wanted = (0, "", "stdin: no messages, nothing was appended\n");
        assert_eq!((run.exit, run.stdout.as_str(), run.stderr.as_str()), wanted);
    }
    fails(&place, &["append", "c", "none"], "", 2, "cannot read none: No such file or directory (os error 2)");
    fails(&place, &["append", "c", "."], "", 2, "cannot read .: it is a directory");
    fails(&place, &["check", "--for", "openai-chat"], "\n", 2, "stdin: it is empty; expected a request as JSON");
    let wanted = "stdin:2:2: not JSON: expected value";
    fails(&place, &["check", "--for", "openai-chat"], "[1,\n ,]", 2, wanted);
}

#[test]
fn a_replay_file_changed_in_its_middle() {
    let place = Place::new();
    let text = std::fs::read_to_string(incident()).unwrap();
    place.write("incident.jsonl", &text);
    let replay = ["replay", "incident.jsonl", "--for", "openai-chat"];
    assert_eq!(place.run(&replay).exit, 0);
    place.write("incident.jsonl", text.replace("Gladly.", "With pleasure."));
    let wanted = format!(
        "{INCIDENT}: conflict: incident.jsonl:4 differs from stored message 3 (seq 5): chunks[1] differs; \
         nothing was appended to it\
         \n  cure: replay into another store (--store URL), or `convo delete {INCIDENT}` first"
    );
    let summary = format!("{INCIDENT}: 0 lines appended, 3 stored already\n");
    let run = place.run(&replay);
    assert_eq!((run.exit, run.stdout.as_str(), run.stderr), (2, "", format!("{summary}error: {wanted}\n")));
}

#[test]
fn arguments_that_are_not_understood() {
    let place = Place::new();
    let invalid = |value: &str| format!("invalid value '{value}' for '--for <TARGET>': ");
    let wires: Vec<&str> = WIRES.iter().map(|wire| wire.name).collect();
    let unknown = format!("unknown wire `chat`; known are {}", wires.join(", "));
    fails(&place, &["check", "--for", "chat"], "", 2, &format!("{}{unknown}{HELP}", invalid("chat")));
    let unknown = "unknown dialect `x` of anthropic; known are bedrock";
    let error = format!("{}{unknown}{HELP}", invalid("anthropic/x"));
    fails(&place, &["prompt", "c", "--for", "anthropic/x"], "", 2, &error);
    let former = "`--dialect` is now `--for WIRE/DIALECT`";
    fails(&place, &["replay", "-", "--for", "anthropic", "--dialect", "bedrock"], "", 2, former);
    fails(&place, &["check", "--for=anthropic", "--dialect=bedrock"], "", 2, former);
    let former = "`--max-tokens` is now `--window-tokens`";
    fails(&place, &["prompt", "c", "--for", "anthropic", "--max-tokens", "9"], "", 2, former);
    let cursor = "invalid value 'x' for '--after <CURSOR>': \"x\" is not a cursor: give the `next` of a page unchanged";
    fails(&place, &["list", "--after", "x"], "", 2, &format!("{cursor}{HELP}"));
    for (args, problem) in [
        (["show", "c", "--last", "x"].as_slice(), "'x' for '--last <N>': expected a whole number, at least 1"),
        (&["show", "c", "--last", "0"], "'0' for '--last <N>': expected a whole number, at least 1"),
        (&["rewind", "c", "x"], "'x' for '<MESSAGE>': expected a whole number"),
        (&["list", "--limit", "1.5"], "'1.5' for '--limit <N>': expected a whole number"),
    ] {
        fails(&place, args, "", 2, &format!("invalid value {problem}{HELP}"));
    }
    for args in [["nonsense"].as_slice(), &["show"], &["rewind", "c", "x"], &["append", "c", "--expect", "-1"], &[]] {
        assert_eq!(place.run(args).exit, 2, "{args:?}");
    }
    assert!(!place.path("convo.db").exists());
}

#[test]
fn messages_that_are_a_mistake_by_all_likelihood() {
    let place = Place::new();
    let kinds = "text, thinking, refusal, tool_call, tool_result, image, audio, file, error, opaque";
    for (typo, meant) in [("txt", "text"), ("Text", "text"), ("toolcall", "tool_call"), ("tool_results", "tool_result")]
    {
        let line = HELLO.replacen(r#""type": "text""#, &format!(r#""type": "{typo}""#), 1);
        let wanted = format!(
            "stdin:1: chunks[0]: the type `{typo}` is not known; did you mean `{meant}`?\n  cure: the types are {kinds}"
        );
        fails(&place, &["append", "c"], line.as_str(), 2, &wanted);
        fails(&place, &["replay", "-", "--for", "openai-chat"], line, 2, &wanted);
    }
    let nameless = HELLO.replacen('{', r#"{"conversation": "", "#, 1);
    let wanted = "stdin:1: conversation: the name is empty\n  cure: leave `conversation` out, or give it a name";
    fails(&place, &["replay", "-", "--for", "openai-chat"], nameless, 2, wanted);
    let run = place.run_with(&["append", ""], HELLO);
    assert!(run.exit == 2 && run.stderr.contains("a value is required for '<CONVERSATION>'"), "{}", run.stderr);
    assert!(place.run(&["list"]).json().is_empty(), "something was stored");

    let warned = |line: &str, wanted: &str| {
        let run = place.run_with(&["append", "c"], line);
        assert_eq!((run.exit, run.json().len(), run.stderr), (0, 1, format!("warning: {wanted}\n")));
    };
    let known_later = HELLO.replacen(r#""type": "text""#, r#""type": "hologram""#, 1);
    warned(
        &known_later,
        "stdin:1: chunks[0]: the type `hologram` is not known: it is stored as it is, but no prompt includes it",
    );
    let wordless = r#"{"role": "user", "chunks": []}"#;
    warned(wordless, "stdin:1: the message has no chunks: it is stored, but no prompt includes it");
}

#[test]
fn lines_that_are_messages_of_a_request() {
    let place = Place::new();
    let line = r#"{"role": "user", "content": "hello"}"#;
    let wanted = "stdin:1:1: chunks: missing; expected an array of chunks\
                  \n  cure: this looks like a message of a provider's request: `convo append CONVERSATION FILE \
                  --from openai-chat` reads those; `convo targets` lists what --from takes";
    fails(&place, &["append", "c"], line, 2, wanted);
    let lines = format!("{line}\n\n{}\n", line.replace("user", "assistant"));
    let run = place.run_with(&["append", "c", "--from", "openai-chat"], lines);
    assert_eq!((run.exit, run.stderr.as_str(), run.json().len()), (0, "", 2));
    let wanted = "stdin:2:1: not JSON: trailing characters";
    fails(&place, &["append", "c", "--from", "openai-chat"], format!("{line}\nnonsense"), 2, wanted);
}

#[test]
fn failures_are_json_where_json_is_asked_for() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    let error = |args: &[&str], stdin: &str| {
        let run = place.run_with(&[args, &["--json"]].concat(), stdin);
        assert_eq!(run.exit, 2, "{args:?}");
        let [line] = run.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{}", run.stderr) };
        let mut error = serde_json::from_str::<serde_json::Value>(line).unwrap();
        error["error"].take()
    };
    let wanted = serde_json::json!({"kind": "not_found", "message": "conversation x not found",
        "cure": "`convo list` shows the conversations, `convo show CONVERSATION` the messages", "exit_code": 2});
    assert_eq!(error(&["show", "x"], ""), wanted);
    assert_eq!(error(&["append", "c", "--expect", "9"], HELLO)["kind"], "stale_head");
    assert_eq!(error(&["append", "c"], "nonsense")["kind"], "invalid_input");
    assert_eq!(error(&["delete", "c"], "")["kind"], "usage");
    let usage = error(&["list", "--nope"], "");
    let wanted = serde_json::json!({"kind": "usage", "message": "unexpected argument '--nope' found",
        "cure": "`convo help COMMAND` describes the arguments", "exit_code": 2});
    assert_eq!(usage, wanted);
    let run = place.run_with(&["append", "c", "--json"], "");
    assert_eq!(run.stderr, "{\"note\":\"stdin: no messages, nothing was appended\"}\n");
    assert_eq!(place.run_with(&["append", "c", "--quiet"], "").stderr, "");
}

#[test]
fn nothing_is_erased_unasked() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    for (args, what) in
        [(&["delete", "c"][..], "deleted"), (&["prune", "--idle", "0s"], "deleted"), (&["redact", "c", "0"], "erased")]
    {
        let wanted = format!(
            "there is no terminal to ask on: nothing was {what}\n  cure: --yes confirms it on the command line"
        );
        fails(&place, args, "y\n", 2, &wanted);
    }
    assert_eq!(place.ok(&["show", "c"]).json()[0]["chunks"][0]["text"], "hello");
}

#[cfg(feature = "server")]
#[test]
fn a_file_that_has_no_keys_says_how_to_make_one() {
    let place = Place::new();
    place.write("keys.json", "[[key]]");
    let cure = "\n  cure: `convo keys create --keys FILE --owner NAME` makes a file of keys where there is none, and prints a key\n";
    for file in ["keys.json", "none.json"] {
        for args in [["serve", "--listen=127.0.0.1:0", "--keys", file], ["keys", "list", "--keys", file]] {
            let run = place.run(&args);
            assert!(run.exit == 2 && run.stderr.ends_with(cure), "{args:?}: {}", run.stderr);
        }
    }
    let run = place.run(&["keys", "create", "--keys", "keys.json", "--owner", "ada"]);
    assert!(run.exit == 2 && run.stderr.ends_with(cure), "{}", run.stderr);
    // An owner that no key may have is another matter.
    let run = place.run(&["keys", "create", "--keys", "new.json", "--owner", "convo:x"]);
    assert!(run.exit == 2 && !run.stderr.contains("cure"), "{}", run.stderr);
}
