//! What errors mean.

use serde_json::json;

use super::Place;

#[test]
fn an_error_is_explained_by_the_rules_that_lead_to_it() {
    let place = Place::new();
    let explained = |text: &str| {
        let found = place.ok(&["explain", text]).json();
        found.iter().map(|found| found["rule"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // As the providers word them, quoted and cut as people copy them.
    let table = [
        (
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
            "OC-08",
        ),
        (
            "{\"type\":\"error\",\"error\":{\"message\":\"messages.1: `tool_use` ids were found without `tool_result`\n blocks immediately after\"}}",
            "AN-10",
        ),
        ("No tool output found for function call call_abc.", "OR-04"),
        ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", "OR-08"),
        (
            "400 Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
            "GM-07",
        ),
        ("Expected toolResult blocks at messages.2.content for the following Ids: tooluse_1", "BC-09"),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", "DS-03"),
        ("Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.", "MI-01"),
        ("Conversation roles must alternate user/assistant/user/assistant/...", "VL-01"),
        ("Found AIMessages with tool_calls that do not have a corresponding ToolMessage.", "OC-07"),
        ("AI_MissingToolResultsError: Tool result is missing for tool call call_1.", "OC-07"),
        ("an-10", "AN-10"),
    ];
    for (text, rule) in table {
        assert_eq!(explained(text)[0], rule, "{text}");
    }
    // `check` names a rule; `explain` takes the line.
    assert_eq!(explained("the target refuses it (OC-12: `tool_calls` is empty)"), ["OC-12"]);
    let found = place.ok(&["explain", "AN-10"]).json();
    assert_eq!((&found[0]["level"], &found[0]["target"]), (&json!("hard"), &json!("anthropic")));
    for key in ["cause", "cure", "source"] {
        assert!(found[0][key].as_str().unwrap().len() > 20, "{found:?}");
    }
    let shown = place.ok(&["explain", "AN-10", "--text"]).stdout;
    assert!(shown.starts_with("AN-10  hard  anthropic\n    cause: "), "{shown}");
    assert!(shown.contains("\n    cure: ") && shown.contains("gh:anthropics/claude-code#8210"), "{shown}");
    // A line of a report names its rule.
    let line = "moved: tool result moved directly after its call: results follow their calls (result_moved)";
    for text in [line, "result_moved"] {
        let found = place.ok(&["explain", text]).json();
        assert_eq!((found.len(), &found[0]["rule"]), (1, &json!("result_moved")));
        assert!(found[0]["about"].as_str().unwrap().starts_with("A tool result was moved to the place"), "{found:?}");
    }
    let shown = place.ok(&["explain", "call_as_text", "--text"]).stdout;
    assert!(shown.starts_with("call_as_text  of reports\n    what it does: A text or thinking was sent"), "{shown}");
    // The command to type next is there, and it is one.
    assert_eq!(
        place.ok(&["explain", "DS-03"]).json()[0]["next"],
        "convo repair FILE --for openai-chat/deepseek > accepted.json"
    );
    assert!(place.ok(&["explain", "AN-10", "--text"]).stdout.contains("\n    next: convo repair FILE --for anthropic"));
    let next = found_next(&place, "result_moved");
    place.append("c", &[super::HELLO]);
    let next = next.replace("CONVERSATION", "c").replace("TARGET", "anthropic");
    place.ok(&next.split(' ').skip(1).collect::<Vec<_>>());
    place.write("FILE", r#"{"messages": [{"role": "user", "content": "hi"}]}"#);
    let next = found_next(&place, "AN-10");
    assert_eq!(place.run(&next.split(' ').skip(1).take(4).collect::<Vec<_>>()).exit, 0, "{next}");
    let unknown = place.run(&["explain", "the", "dog", "ate", "it"]);
    assert_eq!((unknown.exit, unknown.stdout.as_str()), (1, ""));
    assert!(unknown.stderr.contains("convo check"), "{}", unknown.stderr);
}

fn found_next(place: &Place, text: &str) -> String {
    place.ok(&["explain", text]).json()[0]["next"].as_str().unwrap().to_owned()
}

/// What would have been sent at a seq, in JSON and as a report.
#[test]
fn a_prompt_is_of_the_past_if_asked() {
    let place = Place::new();
    place.append("c", &[super::HELLO, super::ANSWER, super::HELLO]);
    let messages = |at: &[&str]| {
        let prompt = place.ok(&[&["prompt", "c", "--for", "openai-chat", "--json"], at].concat()).json().remove(0);
        prompt["request"]["messages"].as_array().unwrap().len()
    };
    place.ok(&["rewind", "c", "1", "--quiet"]);
    assert_eq!((messages(&[]), messages(&["--at", "1"]), messages(&["--at", "3"])), (1, 1, 3));
    let beyond = place.run(&["prompt", "c", "--for", "openai-chat", "--at", "99"]);
    assert_eq!(beyond.exit, 2, "{}", beyond.stderr);
}
