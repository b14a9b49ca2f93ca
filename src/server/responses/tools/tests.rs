//! Tools of clients, as each wire has them, and the calls of models as clients have declared their tools.

use serde_json::{Value, json};

use super::{Declared, HostedTools, custom_arguments, custom_input};
use crate::model::{Body, Message};
use crate::provider::parameters::WIRES;
use crate::provider::{Target, parse};
use crate::server::responses::parameters::tests::{MODELS, asked, body, messages, refusal, whole};

#[test]
fn a_custom_tool_and_a_namespace_are_functions_and_come_back() {
    let tools = json!([
        { "type": "namespace", "name": "crm", "description": "Customers.", "tools": [
            { "type": "function", "name": "find", "parameters": { "type": "object" } },
            { "type": "custom", "name": "note", "description": "Writes." },
        ] },
        { "type": "function", "name": "crm__find", "parameters": { "type": "object" } },
        { "type": "namespace", "name": "mcp__shell__", "tools": [{ "type": "function", "name": "run" }] },
        { "type": "custom", "name": "patch", "format": { "type": "grammar", "syntax": "lark", "definition": "start: /x/" } },
        { "type": "function", "name": "a name.with marks" },
    ]);
    let item = |text: &str| {
        let parsed = parse(Target::OPENAI_RESPONSES, &format!("{{\"input\":[{text}]}}")).unwrap();
        parsed.messages.into_iter().next().unwrap()
    };
    let history = messages([
        Message::user("hello"),
        Message {
            chunks: [
                r#"{"type":"function_call","call_id":"1","name":"find","namespace":"crm","arguments":"{\"a\":1}"}"#,
                r#"{"type":"custom_tool_call","call_id":"2","name":"patch","input":"*** Begin\n\"x\""}"#,
                r#"{"type":"custom_tool_call","call_id":"3","name":"note","namespace":"crm","input":"n"}"#,
                r#"{"type":"function_call","call_id":"4","name":"gone","namespace":"crm","arguments":"{}"}"#,
            ]
            .into_iter()
            .flat_map(|text| item(text).chunks)
            .collect(),
            ..Message::assistant([])
        },
        Message::tool("1", "r"),
        Message::tool("2", "r"),
        Message::tool("3", "r"),
        Message::tool("4", "r"),
        Message::user("go on"),
    ]);
    let choice = json!({ "type": "custom", "name": "patch" });
    for (name, model) in WIRES.into_iter().zip(MODELS).filter(|(name, _)| *name != "openai-responses") {
        let rendered =
            asked(name, model, &json!({ "tools": tools, "tool_choice": choice }), HostedTools::Refuse).unwrap();
        let names: Vec<String> = rendered.options.tools.iter().map(|tool| tool.name.clone()).collect();
        let back: Vec<Declared> = names.iter().map(|name| rendered.tools.back(name)).collect();
        let of = |name: &str, namespace: Option<&str>| Declared::Function {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
        };
        let custom = |name: &str, namespace: Option<&str>| Declared::Custom {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
        };
        assert_eq!(
            back,
            [
                of("crm__find", None),
                custom("patch", None),
                of("a name.with marks", None),
                of("find", Some("crm")),
                custom("note", Some("crm")),
                of("run", Some("mcp__shell__")),
            ]
        );
        assert_eq!(
            [&names[0], &names[1], &names[4], &names[5]],
            ["crm__find", "patch", "crm__note", "mcp__shell__run"]
        );
        // The name of the namespace's own tool is free, and no other.
        assert_ne!(names[3], names[0]);
        let all_take =
            |name: &String| name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        assert!(names.iter().all(all_take), "{names:?}");
        assert!(rendered.options.tools[1].parameters.as_str().contains("lark"));
        assert_eq!(rendered.options.tools[3].description.as_deref(), Some("Customers."));

        let sent = rendered.tools.sent_in(history.clone());
        let calls = sent.messages()[1].message.chunks.iter().map(|chunk| match &chunk.body {
            Body::ToolCall { name, arguments, .. } => (name.clone(), arguments.clone()),
            other => panic!("{other:?}"),
        });
        let calls: Vec<_> = calls.collect();
        let wanted = [
            (names[3].clone(), r#"{"a":1}"#.to_owned()),
            ("patch".to_owned(), r#"{"input":"*** Begin\n\"x\""}"#.to_owned()),
            ("crm__note".to_owned(), r#"{"input":"n"}"#.to_owned()),
            ("crm__gone".to_owned(), "{}".to_owned()),
        ];
        assert_eq!(calls, wanted);
        // The renderer keeps these names: the model sees calls of what is declared.
        let body = whole(name, rendered, history.clone()).to_string();
        for name in &names {
            assert!(body.contains(&format!("\"{name}\"")), "{name}: {body}");
        }
        assert!(body.contains("crm__gone") && !body.contains("malformed_arguments"), "{body}");
    }
    assert_eq!(custom_input(&custom_arguments("a\n\"b\"")), "a\n\"b\"");
    for odd in ["", "{}", r#"{"input":1}"#, r#"{"input":"a","more":1}"#, "[1]", "text"] {
        assert_eq!(custom_input(odd), odd);
    }
}

#[test]
fn responses_keep_all_kinds_of_tools() {
    let tools = json!([
        { "type": "namespace", "name": "crm", "description": "", "tools": [{ "type": "function", "name": "find" }] },
        { "type": "custom", "name": "patch" },
        { "type": "function", "name": "find" },
        { "type": "local_shell" },
    ]);
    let rendered = asked("openai-responses", "gpt-5.1", &json!({ "tools": tools }), HostedTools::Refuse).unwrap();
    assert!(rendered.options.tools.is_empty());
    assert_eq!(rendered.tools.back("patch"), Declared::Custom { name: "patch".to_owned(), namespace: None });
    assert_eq!(rendered.tools.back("find"), Declared::Function { name: "find".to_owned(), namespace: None });
    let call = r#"{"type":"custom_tool_call","call_id":"2","name":"patch","input":"x","id":"ctc_1"}"#;
    let parsed = parse(Target::OPENAI_RESPONSES, &format!("{{\"input\":[{call}]}}")).unwrap();
    let history = messages(parsed.messages.into_iter().chain([Message::tool("2", "r")]));
    assert_eq!(rendered.tools.sent_in(history.clone()), history);
    assert_eq!(whole("openai-responses", rendered, history)["tools"], tools);
}

#[test]
fn allowed_tools_are_all_that_is_declared() {
    let tools = json!([
        { "type": "function", "name": "a" },
        { "type": "custom", "name": "b" },
        { "type": "namespace", "name": "n", "tools": [{ "type": "function", "name": "c" }, { "type": "function", "name": "d" }] },
    ]);
    let of = |mode: Value, allowed: Value| {
        let request =
            json!({ "tools": tools, "tool_choice": { "type": "allowed_tools", "mode": mode, "tools": allowed } });
        let found = body("openai-chat", "m", &request);
        let names =
            found["tools"].as_array().map(|tools| tools.iter().map(|tool| tool["function"]["name"].clone()).collect());
        (found["tool_choice"].clone(), Value::Array(names.unwrap_or_default()))
    };
    let (a, b, n) = (
        json!({ "type": "function", "name": "a" }),
        json!({ "type": "custom", "name": "b" }),
        json!({ "type": "namespace", "name": "n" }),
    );
    assert_eq!(of(json!("required"), json!([a])), (json!("required"), json!(["a"])));
    assert_eq!(of(json!(null), json!([b, n])), (json!("auto"), json!(["b", "n__c", "n__d"])));
    let d = json!({ "type": "function", "name": "d", "namespace": "n" });
    assert_eq!(of(json!("auto"), json!([d])), (json!("auto"), json!(["n__d"])));
    assert_eq!(of(json!("auto"), json!([])), (json!(null), json!([])));
}

#[test]
fn hosted_tools_are_refused_or_left_out_and_reported() {
    let request = json!({ "tools": [{ "type": "function", "name": "a" }, { "type": "web_search" }] });
    for (name, model) in WIRES.into_iter().zip(MODELS).filter(|(name, _)| *name != "openai-responses") {
        assert_eq!(refusal(name, model, &request), ("tools[1]".to_owned(), "unsupported_parameter"));
        let rendered = asked(name, model, &request, HostedTools::Drop).unwrap();
        assert_eq!(rendered.report, [format!("tools[1]: {name} has no tool of type web_search: not sent")]);
        assert_eq!(rendered.options.tools.len(), 1);
    }
}
