use serde_json::{Value, json};

use super::{HELLO, Place};

fn refused(name: &str) -> String {
    format!("{}/tests/fixtures/refused/{name}.json", env!("CARGO_MANIFEST_DIR"))
}

fn request(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(refused(name)).unwrap()).unwrap()
}

/// Repairs a file, and checks that it was refused and is accepted.
fn repaired(place: &Place, name: &str, rule: &str) -> (Value, String) {
    let (file, target) = (refused(name), ["--for", name]);
    let found = place.run(&[&["check", &file], &target[..]].concat());
    let hard: Vec<Value> = found.json().into_iter().filter(|finding| finding["level"] == "hard").collect();
    assert_eq!((found.exit, &hard[0]["rule"]), (1, &json!(rule)), "{}", found.stdout);
    let run = place.run(&[&["repair", &file], &target[..]].concat());
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let check = place.run_with(&["check", "--for", name], run.stdout.as_str());
    assert_eq!(check.exit, 0, "{}", check.stderr);
    (serde_json::from_str(&run.stdout).unwrap(), run.stderr)
}

/// "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
#[test]
fn openais_error_is_repaired_and_the_other_fields_stay() {
    let place = Place::new();
    let (mut wanted, (made, report)) = (request("openai-chat"), repaired(&place, "openai-chat", "OC-08"));
    let orphan = wanted["messages"].as_array_mut().unwrap().remove(3);
    assert_eq!((orphan["role"].as_str(), &made), (Some("tool"), &wanted));
    assert_eq!(
        report,
        "report: 1 lost\n  lost     messages[3]: tool result removed: no matching tool call (orphan_result_removed)\n"
    );
    assert!(!place.path("convo.db").exists());
}

/// "`tool_use` ids were found without `tool_result` blocks immediately after".
#[test]
fn anthropics_error_is_repaired_and_the_other_fields_stay() {
    let place = Place::new();
    let (mut wanted, (mut made, report)) = (request("anthropic"), repaired(&place, "anthropic", "AN-10"));
    let results: Vec<Value> = made["messages"][2]["content"].as_array().unwrap().clone();
    let ids: Vec<&str> = results.iter().filter_map(|block| block["tool_use_id"].as_str()).collect();
    let calls = wanted["messages"][1]["content"].as_array().unwrap();
    let called: Vec<&str> = calls.iter().filter_map(|block| block["id"].as_str()).collect();
    assert_eq!(ids, called);
    assert_eq!(results[1]["content"], "error: cannot find module 'vite'");
    let rules: Vec<&str> = report.lines().filter_map(|line| line.rsplit_once('(').map(|(_, rule)| rule)).collect();
    assert_eq!(rules, ["result_moved)", "outcome_unknown)"], "{report}");
    assert!(report.starts_with("report: 1 moved, 1 added\n  moved    messages[4].content[0]: "), "{report}");
    for request in [&mut wanted, &mut made] {
        request.as_object_mut().unwrap().retain(|name, _| name != "messages");
    }
    assert_eq!(made, wanted);
}

#[test]
fn what_is_accepted_comes_out_as_it_went_in() {
    let place = Place::new();
    let request =
        "{ \"messages\" :[\n {\"content\":\"a\", \"name\":null,\"role\":\"user\",\"new\":{}}],\r\n \"stop\": null}";
    let run = place.run_with(&["repair", "--for", "openai-chat"], format!("\n{request}\n\n"));
    assert_eq!((run.exit, run.stdout.as_str(), run.stderr.as_str()), (0, format!("{request}\n").as_str(), ""));
}

#[test]
fn a_request_of_another_wire_is_refused() {
    let place = Place::new();
    let anthropic = r#"{"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "1"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "u", "name": "f", "input": {}}]}]}"#;
    let gemini = r#"{"contents": [{"role": "user", "parts": [{"text": "a"}]}]}"#;
    // What it would be repaired to is not what was meant. The command to type is there.
    let run = place.run_with(&["repair", "--for", "openai-chat"], anthropic);
    assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    assert!(run.stderr.contains("it looks like a request of anthropic, not of openai-chat"), "{}", run.stderr);
    let command = "convo repair - --from anthropic --for openai-chat";
    assert!(run.stderr.contains(&format!("`{command}`")), "{}", run.stderr);
    let run = place.run_with(&command.split(' ').skip(1).collect::<Vec<_>>(), anthropic);
    assert_eq!((run.exit, run.stdout.is_empty()), (0, false), "{}", run.stderr);
    // One in which no message is found.
    for target in ["openai-chat", "anthropic"] {
        let run = place.run_with(&["repair", "--for", target], gemini);
        assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        assert!(run.stderr.contains("it looks like a request of gemini: say so with --from"), "{}", run.stderr);
    }
}

/// A field that a server or a store adds to its messages is no block of another wire.
#[test]
fn a_broken_chat_with_fields_of_its_servers_is_one() {
    let place = Place::new();
    let call = r#""content": null, "tool_calls": [{"id": "call00001", "type": "function", "function": {"name": "f", "arguments": "{}"}}]"#;
    let fields = [
        ("openai-chat", r#""provider_specific_fields": {"refusal": null}"#),
        ("openai-chat", r#""annotations": [{"type": "url_citation"}]"#),
        ("openai-chat", r#""timestamp": 1722470400"#),
        ("openai-chat/mistral", r#""prefix": false"#),
    ];
    for (target, field) in fields {
        for said in [call, r#""content": "a""#] {
            let request = format!(
                r#"{{"messages": [{{"role": "user", "content": "q"}}, {{"role": "assistant", {said}, {field}}}, {{"role": "user", "content": null}},
                {{"role": "user", "content": "b"}}]}}"#
            );
            for command in ["check", "repair"] {
                let run = place.run_with(&[command, "--for", target], request.as_str());
                assert!(!run.stderr.contains("looks like"), "{target}, {field}: {}", run.stderr);
                assert!(!run.stdout.is_empty(), "{target}, {field}: {}", run.stderr);
            }
        }
    }
}

#[test]
fn a_request_that_another_wire_reads_better_is_noted() {
    let place = Place::new();
    // Most of it reads as openai-chat, too.
    let anthropic = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "u", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u", "content": "1"}]}]}"#;
    let looks_like = "stdin: it looks like a request of anthropic, not of openai-chat: say so with";
    let run = place.run_with(&["check", "--for", "openai-chat"], anthropic);
    assert!(run.stderr.contains(&format!("{looks_like} --for anthropic\n")), "{}", run.stderr);
    assert_eq!(place.run_with(&["repair", "--for", "openai-chat"], anthropic).exit, 2);
    for command in ["check", "repair"] {
        let run = place.run_with(&[command, "--for", "anthropic"], anthropic);
        assert!(!run.stderr.contains("looks like"), "{}", run.stderr);
    }
    // Who says what it is, is believed.
    let run = place.run_with(&["repair", "--from", "openai-chat", "--for", "openai-chat"], anthropic);
    assert_eq!(run.exit, 0, "{}", run.stderr);
    let run = place.run_with(&["repair", "--from", "anthropic", "--for", "openai-chat"], anthropic);
    assert!(run.exit == 0 && !run.stderr.contains("looks like"), "{}", run.stderr);
}

#[test]
fn the_envelope_holds_request_and_report() {
    let place = Place::new();
    let run = place.run(&["repair", &refused("openai-chat"), "--for", "openai-chat", "--json"]);
    assert_eq!((run.exit, run.stderr.as_str()), (0, ""));
    let [envelope] = run.json().try_into().unwrap();
    assert_eq!(envelope.as_object().unwrap().keys().collect::<Vec<_>>(), ["report", "request"]);
    assert_eq!(envelope["report"][0]["rule"], "orphan_result_removed");
    assert_eq!(envelope["report"][0]["place"], "messages[3]");
    let alone = place.run(&["repair", &refused("openai-chat"), "--for", "openai-chat", "--report"]);
    assert_eq!((alone.exit, alone.json()), (0, envelope["report"].as_array().unwrap().clone()));
    let plain = place.run_with(&["repair", "--for", "openai-chat"], std::fs::read(refused("openai-chat")).unwrap());
    assert_eq!(serde_json::from_str::<Value>(&plain.stdout).unwrap(), envelope["request"]);
}

#[test]
fn from_one_wire_to_another_the_tools_go_along() {
    let place = Place::new();
    let file = refused("openai-chat");
    let run = place.run(&["repair", &file, "--from", "openai-chat", "--for", "anthropic"]);
    let made: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(made["system"][0]["text"], "You are a helpful assistant.");
    let function = &request("openai-chat")["tools"][0]["function"];
    let tool =
        json!({"name": "get_weather", "description": function["description"], "input_schema": function["parameters"]});
    assert_eq!(made["tools"], json!([tool]));
    let request = request("openai-chat");
    assert_eq!((&made["temperature"], made["max_tokens"].is_u64()), (&request["temperature"], true));
    assert!(run.stderr.contains("cure: name it with `--model`") && made.get("model").is_none(), "{}", run.stderr);
    let run =
        place.run(&["repair", &file, "--from", "openai-chat", "--for", "anthropic", "--model", "claude-sonnet-4-5"]);
    let made: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(made["model"], "claude-sonnet-4-5");
    assert!(!run.stderr.contains("--model"), "{}", run.stderr);

    place.write("request.json", r#"{"messages": [{"role": "user", "content": "a"}], "tools": [
        {"name": "clock", "input_schema": {"type": "object"}}, {"type": "web_search_20250305", "name": "web_search"}]}"#);
    let run = place.run(&["repair", "request.json", "--from", "anthropic", "--for", "openai-responses"]);
    assert!(run.stdout.contains(r#""name":"clock""#) && !run.stdout.contains("web_search"), "{}", run.stdout);
    let lost = "report: 1 lost, 1 note\n  lost     tools[1]: `tools[1]` removed: it cannot be declared on another wire: it has no \
                JSON Schema (left_out)\n             cure: `--tools` declares other tools\n  note     model: a model is missing: \
                openai-responses requires the name of a model that it has (still_refused)\n             cure: name it with `--model`\n";
    assert_eq!((run.exit, run.stderr.as_str()), (0, lost));
    place.write("tools.json", r#"[{"name": "other", "parameters": {"type": "object"}}]"#);
    let args = ["repair", "request.json", "--from", "anthropic", "--for", "gemini", "--tools", "tools.json"];
    let run = place.run(&args);
    assert!(run.stdout.contains(r#""name":"other""#) && !run.stdout.contains("clock"), "{}", run.stdout);
    assert!(
        run.stderr.starts_with("report: 1 lost\n  lost     tools: `tools` removed: it is a field of anthropic; "),
        "{}",
        run.stderr
    );
}

#[test]
fn where_there_is_nothing_to_send_it_says_so() {
    let place = Place::new();
    let orphan = r#"[{"role": "tool", "tool_call_id": "c", "content": "42"}]"#;
    let run = place.run_with(&["repair", "--for", "openai-chat"], orphan);
    assert_eq!((run.exit, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.starts_with("error: stdin: there is nothing to send: "), "{}", run.stderr);
    // There is no store: nothing is said of one.
    assert!(
        run.stderr.ends_with("\n  cure: add what the user says: a message of the role `user` with a text\n"),
        "{}",
        run.stderr
    );
    let run = place.run_with(&["repair", "--for", "openai-chat", "--json"], orphan);
    let [envelope] = run.json().try_into().unwrap();
    assert_eq!((run.exit, envelope.get("request"), envelope["error"]["kind"] == "nothing_to_send"), (2, None, true));
}

#[test]
fn what_is_no_request_is_told_with_its_place() {
    let place = Place::new();
    let table = [
        ("", "stdin: it is empty; expected a request as JSON"),
        ("{\"messages\": [\n ,]}", "stdin:2:2: not JSON: expected value"),
        ("{\"messages\": [", "stdin:1:14: not JSON: EOF while parsing a list"),
        ("[] []", "stdin:1:4: not JSON: trailing characters"),
        ("42", "stdin: no request: expected an object with an array `messages`, or that array"),
        (HELLO, "stdin: no request: expected an object with an array `messages`, or that array"),
    ];
    for (text, wanted) in table {
        let run = place.run_with(&["repair", "--for", "openai-chat"], text);
        assert_eq!((run.exit, run.stdout.as_str(), run.stderr), (2, "", format!("error: {wanted}\n")), "{text}");
    }
    let run = place.run_with(&["repair", "--for", "openai-chat", "--from", "chat"], "[]");
    assert_eq!(run.exit, 2);
    assert!(run.stderr.contains("unknown wire `chat`; known are "), "{}", run.stderr);
}

/// One repair is one line, and no line is about a store where there is none.
#[test]
fn reports_count_each_repair_once_and_name_no_store() {
    let place = Place::new();
    let request = r#"{"model": "m", "messages": [{"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "user", "content": "and?"}, {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "x", "content": "1"}, {"role": "assistant", "content": ""}]}"#;
    let run = place.run_with(&["repair", "--for", "openai-chat"], request);
    assert_eq!(run.exit, 0);
    assert!(run.stderr.starts_with("report: 1 lost, 1 moved, 1 added, 1 note\n"), "{}", run.stderr);
    let words = [" store", "stored", "append", "convo "];
    assert!(!words.iter().any(|word| run.stderr.contains(word)), "{}", run.stderr);
    // A message that failed, and has nothing else, is one line too.
    let failed = r#"{"role": "assistant", "chunks": [{"type": "error", "message": "overloaded"}]}"#;
    place.append("c", &[super::HELLO, failed, super::HELLO]);
    let run = place.run(&["prompt", "c", "--for", "openai-chat"]);
    assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
    assert!(run.stderr.starts_with("report: 1 lost\n"), "{}", run.stderr);
}
