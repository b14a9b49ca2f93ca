//! Requests of clients, and the whole request of the model that comes of each, on every wire.

use std::fs;

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::table::{Does, TABLE, WIRES};
use super::{Rendered, echo, rendered};
use crate::history::{Conversation, MessageState, StoredMessage};
use crate::json::merged::merged;
use crate::json::object::Object;
use crate::model::{Body, Message};
use crate::provider::{Target, check, parse, render};
use crate::server::refusal::Refusal;
use crate::server::responses::tools::{Declared, HostedTools, custom_arguments, custom_input};

const MODELS: [&str; 5] =
    ["gpt-5.1", "gpt-5.1", "claude-opus-4-8", "gemini-3-pro", "us.anthropic.claude-opus-4-8-v1:0"];

fn target(name: &str) -> Target {
    name.parse().unwrap()
}

fn asked(name: &str, model: &str, request: &Value, hosted: HostedTools) -> Result<Rendered, Refusal> {
    rendered(request.as_object().unwrap(), &request.to_string(), target(name), model, hosted, Some(1000))
}

fn messages(messages: impl IntoIterator<Item = Message>) -> Conversation {
    let stored = (0..).zip(messages).map(|(at, message)| StoredMessage::new(at, MessageState::Complete, message));
    Conversation::new(stored.collect())
}

/// The request of the model, which its own wire finds nothing wrong with.
fn whole(name: &str, rendered: Rendered, conversation: Conversation) -> Value {
    let conversation = rendered.tools.sent_in(conversation);
    let prompt = render(target(name), &conversation, &rendered.options).unwrap();
    let body = String::from_utf8(merged(&prompt.request, rendered.fields).unwrap()).unwrap();
    let found = check(target(name), &body).unwrap();
    assert!(!found.iter().any(|finding| finding.level.is_refused()), "{name}: {found:?}\n{body}");
    serde_json::from_str(&body).unwrap()
}

fn body(name: &str, model: &str, request: &Value) -> Value {
    let rendered =
        asked(name, model, request, HostedTools::Refuse).unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"));
    whole(name, rendered, messages([Message::user("hello")]))
}

fn refusal(name: &str, model: &str, request: &Value) -> (String, &'static str) {
    let refusal = asked(name, model, request, HostedTools::Refuse).unwrap_err();
    assert_eq!(refusal.status, 400, "{refusal:?}");
    (refusal.param.unwrap_or_default(), refusal.code.unwrap_or_default())
}

/// What every wire can say.
fn common() -> Value {
    json!({
        "model": "m", "input": "hello", "stream": false, "store": true, "metadata": { "a": "b" },
        "max_output_tokens": 4000, "temperature": 0.5, "top_p": 0.9, "max_tool_calls": 3,
        "tools": [
            {
                "type": "function", "name": "weather", "description": "The weather.", "strict": true,
                "parameters": { "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"], "additionalProperties": false },
            },
            { "type": "function", "name": "clock", "parameters": null },
        ],
        "tool_choice": { "type": "function", "name": "clock" },
        "text": { "format": {
            "type": "json_schema", "name": "answer", "strict": true, "description": "An answer.",
            "schema": { "type": "object", "properties": { "z": { "type": "string" }, "a": { "type": "string" } } },
        } },
        "reasoning": { "effort": "low", "summary": "auto" },
        "service_tier": "default",
    })
}

fn weather() -> Value {
    json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"], "additionalProperties": false })
}

fn schema() -> Value {
    json!({ "type": "object", "properties": { "z": { "type": "string" }, "a": { "type": "string" } } })
}

fn nothing() -> Value {
    json!({ "type": "object", "properties": {} })
}

#[test]
fn the_whole_request_of_chat_completions() {
    let expected = json!({
        "model": "gpt-5.1", "stream": true, "stream_options": { "include_usage": true },
        "messages": [{ "role": "user", "content": "hello" }],
        "tools": [
            { "type": "function", "function": { "name": "weather", "description": "The weather.", "parameters": weather(), "strict": true } },
            { "type": "function", "function": { "name": "clock", "parameters": nothing() } },
        ],
        "tool_choice": { "type": "function", "function": { "name": "clock" } },
        "max_completion_tokens": 4000, "temperature": 0.5, "top_p": 0.9,
        "response_format": { "type": "json_schema", "json_schema": {
            "name": "answer", "strict": true, "description": "An answer.", "schema": schema(),
        } },
        "reasoning_effort": "low", "service_tier": "default",
    });
    assert_eq!(body("openai-chat", "gpt-5.1", &common()), expected);

    let mut others = expected;
    let fields = others.as_object_mut().unwrap();
    fields.remove("service_tier");
    let most = fields.remove("max_completion_tokens").unwrap();
    fields.insert("max_tokens".to_owned(), most);
    fields.insert("model".to_owned(), "qwen3".into());
    assert_eq!(body("openai-chat/ollama", "qwen3", &common()), others);
    assert_eq!(body("openai-chat/compatible", "qwen3", &common()), others);
    let fields = others.as_object_mut().unwrap();
    fields.remove("stream_options");
    assert_eq!(body("openai-chat/mistral", "qwen3", &common()), others);
}

#[test]
fn the_whole_request_of_responses() {
    let mut given = common();
    given["tools"].as_array_mut().unwrap().push(json!({ "type": "web_search" }));
    given["include"] = json!(["message.output_text.logprobs"]);
    given["previous_response_id"] = json!("resp_1");
    let expected = json!({
        "model": "gpt-5.1", "stream": true, "store": false,
        "include": ["message.output_text.logprobs", "reasoning.encrypted_content"],
        "input": [{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hello" }] }],
        "tools": given["tools"], "tool_choice": given["tool_choice"], "text": given["text"], "reasoning": given["reasoning"],
        "max_output_tokens": 4000, "max_tool_calls": 3, "temperature": 0.5, "top_p": 0.9, "service_tier": "default",
    });
    assert_eq!(body("openai-responses", "gpt-5.1", &given), expected);
    let least = json!({ "input": "hello", "tools": [], "presence_penalty": 0.0 });
    let expected = json!({
        "model": "m", "stream": true, "store": false, "include": ["reasoning.encrypted_content"], "input": expected["input"],
    });
    assert_eq!(body("openai-responses", "m", &least), expected);
}

#[test]
fn the_whole_request_of_messages() {
    let expected = json!({
        "model": "claude-opus-4-8", "stream": true, "max_tokens": 4000,
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hello" }] }],
        "tools": [
            { "name": "weather", "description": "The weather.", "input_schema": weather(), "strict": true },
            { "name": "clock", "input_schema": nothing() },
        ],
        "tool_choice": { "type": "tool", "name": "clock" },
        "temperature": 0.5, "top_p": 0.9,
        "thinking": { "type": "adaptive", "display": "summarized" },
        "output_config": { "format": { "type": "json_schema", "schema": schema() }, "effort": "low" },
        "service_tier": "standard_only",
    });
    assert_eq!(body("anthropic", "claude-opus-4-8", &common()), expected);

    // An older model thinks with a budget, of the half of the answer at most, and has no strict tools.
    let mut older = expected;
    older["model"] = json!("claude-opus-4-1");
    older["thinking"] = json!({ "type": "enabled", "budget_tokens": 2000 });
    older["output_config"].as_object_mut().unwrap().remove("effort");
    older["tools"][0].as_object_mut().unwrap().remove("strict");
    assert_eq!(body("anthropic", "claude-opus-4-1", &common()), older);

    let least = json!({ "tools": common()["tools"], "parallel_tool_calls": false, "safety_identifier": "x" });
    let found = body("anthropic", "claude-sonnet-4-5", &least);
    assert_eq!(found["tool_choice"], json!({ "type": "auto", "disable_parallel_tool_use": true }));
    assert_eq!((&found["max_tokens"], &found["metadata"]), (&json!(64_000), &json!({ "user_id": "x" })));
    assert!(found.get("thinking").is_none());
}

#[test]
fn the_whole_request_of_gemini() {
    let expected = json!({
        "contents": [{ "role": "user", "parts": [{ "text": "hello" }] }],
        "tools": [{ "functionDeclarations": [
            { "name": "weather", "description": "The weather.", "parametersJsonSchema": weather() },
            { "name": "clock", "parametersJsonSchema": nothing() },
        ] }],
        "toolConfig": { "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["clock"] } },
        "generationConfig": {
            "maxOutputTokens": 4000, "temperature": 0.5, "topP": 0.9,
            "responseMimeType": "application/json", "responseJsonSchema": schema(),
            "thinkingConfig": { "thinkingLevel": "low", "includeThoughts": true },
        },
        "serviceTier": "standard",
    });
    assert_eq!(body("gemini", "gemini-3-pro", &common()), expected);
    let older = body("gemini", "gemini-2.5-flash", &json!({ "reasoning": { "effort": "none" } }));
    assert_eq!(older["generationConfig"], json!({ "thinkingConfig": { "thinkingBudget": 0 } }));
}

#[test]
fn the_whole_request_of_converse() {
    let expected = json!({
        "messages": [{ "role": "user", "content": [{ "text": "hello" }] }],
        "toolConfig": {
            "tools": [
                { "toolSpec": { "name": "weather", "description": "The weather.", "inputSchema": { "json": weather() }, "strict": true } },
                { "toolSpec": { "name": "clock", "inputSchema": { "json": nothing() } } },
            ],
            "toolChoice": { "tool": { "name": "clock" } },
        },
        "inferenceConfig": { "maxTokens": 4000, "temperature": 0.5, "topP": 0.9 },
        "outputConfig": {
            "textFormat": { "type": "json_schema", "structure": { "jsonSchema": {
                "name": "answer", "description": "An answer.", "schema": schema().to_string(),
            } } },
            "effort": "low",
        },
        "additionalModelRequestFields": { "thinking": { "type": "adaptive", "display": "summarized" } },
        "serviceTier": { "type": "default" },
    });
    assert_eq!(body("bedrock-converse", "us.anthropic.claude-opus-4-8-v1:0", &common()), expected);
    let nova = body("bedrock-converse", "us.amazon.nova-2-lite-v1:0", &json!({ "reasoning": { "effort": "high" } }));
    let reasoning = json!({ "reasoningConfig": { "type": "enabled", "maxReasoningEffort": "high" } });
    assert_eq!(nova["additionalModelRequestFields"], reasoning);
}

#[test]
fn a_schema_keeps_the_order_of_its_keys() {
    let text = r#"{"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"z":{},"a":{}}}}],
        "text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object","properties":{"z":{},"a":{}}}}}}"#;
    let request: Map<String, Value> = serde_json::from_str(text).unwrap();
    for (name, model) in WIRES.into_iter().zip(MODELS) {
        let rendered = rendered(&request, text, target(name), model, HostedTools::Refuse, None).unwrap();
        let prompt = render(target(name), &messages([Message::user("hello")]), &rendered.options).unwrap();
        let body = String::from_utf8(merged(&prompt.request, rendered.fields).unwrap()).unwrap().replace('\\', "");
        assert_eq!(body.matches(r#""properties":{"z":{},"a":{}}"#).count(), 2, "{name}: {body}");
    }
}

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

#[test]
fn what_a_wire_cannot_say_is_refused_by_name() {
    let tools = json!([{ "type": "function", "name": "f" }]);
    let with = |more: Value| {
        let mut request = json!({ "tools": tools });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let effort = |word: &str| json!({ "reasoning": { "effort": word } });
    let unsupported = [
        ("openai-chat", "m", json!({ "top_logprobs": 2 }), "top_logprobs"),
        ("openai-chat", "m", json!({ "include": ["message.output_text.logprobs"] }), "include[0]"),
        ("openai-chat/vllm", "m", json!({ "text": { "verbosity": "low" } }), "text.verbosity"),
        ("openai-chat/vllm", "m", json!({ "service_tier": "flex" }), "service_tier"),
        ("openai-chat", "m", json!({ "context_management": [{ "type": "compaction" }] }), "context_management"),
        ("openai-responses", "m", json!({ "prompt": { "id": "x" } }), "prompt"),
        ("anthropic", "claude-opus-5", json!({ "presence_penalty": 1 }), "presence_penalty"),
        ("anthropic", "claude-opus-5", json!({ "text": { "format": { "type": "json_object" } } }), "text.format"),
        ("anthropic", "claude-opus-5-5", effort("none"), "reasoning.effort"),
        ("anthropic", "claude-3-5-haiku", effort("low"), "reasoning.effort"),
        ("anthropic", "claude-opus-5", json!({ "service_tier": "flex" }), "service_tier"),
        ("gemini", "gemini-3-pro", effort("none"), "reasoning.effort"),
        ("gemini", "gemini-2.5-pro", effort("none"), "reasoning.effort"),
        ("gemini", "gemini-2.0-flash", effort("low"), "reasoning.effort"),
        ("gemini", "gemini-3-pro", with(json!({ "parallel_tool_calls": false })), "parallel_tool_calls"),
        ("bedrock-converse", "x", with(json!({ "parallel_tool_calls": false })), "parallel_tool_calls"),
        ("bedrock-converse", "x", with(json!({ "tool_choice": "none" })), "tool_choice"),
        ("bedrock-converse", "meta.llama4", effort("low"), "reasoning.effort"),
        ("openai-chat", "m", with(json!({ "tool_choice": { "type": "file_search" } })), "tool_choice"),
        ("openai-chat", "m", json!({ "reasoning": { "mode": "pro" } }), "reasoning.mode"),
    ];
    for (name, model, request, param) in unsupported {
        assert_eq!(refusal(name, model, &request), (param.to_owned(), "unsupported_parameter"), "{name} {request}");
        let refused = asked(name, model, &request, HostedTools::Refuse).unwrap_err();
        assert!(refused.message.contains(name) || param == "tool_choice", "{}", refused.message);
    }
    let wrong = [
        (json!({ "temprature": 1 }), "temprature", "unknown_parameter"),
        (json!({ "temperature": "1" }), "temperature", "invalid_type"),
        (json!({ "temperature": 3 }), "temperature", "invalid_value"),
        (json!({ "max_output_tokens": 0 }), "max_output_tokens", "invalid_value"),
        (json!({ "max_output_tokens": 1.5 }), "max_output_tokens", "invalid_type"),
        (json!({ "metadata": { "a": 1 } }), "metadata.a", "invalid_type"),
        (json!({ "tools": [1] }), "tools[0]", "invalid_type"),
        (json!({ "tools": [{ "name": "f" }] }), "tools[0].type", "missing_required_parameter"),
        (json!({ "tools": [{ "type": "function" }] }), "tools[0].name", "missing_required_parameter"),
        (
            json!({ "tools": [{ "type": "function", "name": "f", "parameters": [] }] }),
            "tools[0].parameters",
            "invalid_type",
        ),
        (
            json!({ "tools": [{ "type": "function", "name": "f" }, { "type": "function", "name": "f" }] }),
            "tools[1]",
            "invalid_value",
        ),
        (with(json!({ "tool_choice": "any" })), "tool_choice", "invalid_value"),
        (with(json!({ "tool_choice": { "type": "function", "name": "g" } })), "tool_choice", "invalid_value"),
        (json!({ "tool_choice": "required" }), "tool_choice", "invalid_value"),
        (
            json!({ "text": { "format": { "type": "json_schema", "name": "x" } } }),
            "text.format.schema",
            "missing_required_parameter",
        ),
        (json!({ "text": { "format": { "type": "xml" } } }), "text.format.type", "invalid_value"),
        (json!({ "text": { "size": 1 } }), "text.size", "unknown_parameter"),
        (effort("much"), "reasoning.effort", "invalid_value"),
        (json!({ "truncation": "some" }), "truncation", "invalid_value"),
        (json!({ "include": ["all"] }), "include[0]", "invalid_value"),
    ];
    for (request, param, code) in wrong {
        assert_eq!(refusal("openai-chat", "m", &request), (param.to_owned(), code), "{request}");
    }
    let too_short = json!({ "max_output_tokens": 1000, "reasoning": { "effort": "low" } });
    assert_eq!(
        refusal("anthropic", "claude-sonnet-4-5", &too_short),
        ("max_output_tokens".to_owned(), "invalid_value")
    );
    assert_eq!(refusal("openai-chat", "", &json!({})), ("model".to_owned(), "missing_required_parameter"));
}

#[test]
fn a_window_leaves_room_for_the_answer() {
    let request = json!({ "truncation": "auto", "max_output_tokens": 300 });
    let found = asked("openai-chat", "m", &request, HostedTools::Refuse).unwrap();
    assert_eq!((found.options.max_tokens, found.report.len()), (Some(700), 0));
    let of = |name: &str, tokens| {
        let request = json!({ "truncation": "auto" });
        rendered(request.as_object().unwrap(), "", target(name), "m", HostedTools::Refuse, tokens).unwrap()
    };
    let unknown = of("openai-chat", None);
    assert_eq!((unknown.options.max_tokens, unknown.report.len()), (None, 1));
    let there = of("openai-responses", None);
    assert!(there.fields.has(&["truncation"]) && there.report.is_empty());
    assert!(!of("openai-responses", Some(10)).fields.has(&["truncation"]));
}

/// A value of each parameter that asks for something.
fn sample(name: &str) -> Value {
    match name {
        "tools" => json!([{ "type": "function", "name": "f" }]),
        "tool_choice" => json!("auto"),
        "parallel_tool_calls" => json!(false),
        "text" => json!({ "format": { "type": "json_schema", "name": "n", "schema": { "type": "object" } } }),
        "reasoning" => json!({ "effort": "high" }),
        "truncation" => json!("auto"),
        "service_tier" => json!("default"),
        "include" => json!(["message.output_text.logprobs"]),
        "metadata" => json!({ "a": "b" }),
        "context_management" => json!([{ "type": "compaction" }]),
        "max_output_tokens" | "max_tool_calls" | "top_logprobs" => json!(7),
        "temperature" | "top_p" | "presence_penalty" | "frequency_penalty" => json!(0.5),
        "store" | "stream" | "background" => json!(true),
        "stream_options" | "prompt_cache_options" | "moderation" | "image" | "access_programs" | "prompt" => {
            json!({ "x": 1 })
        }
        _ => json!("some"),
    }
}

/// What the table says of a parameter is what becomes of it.
#[test]
fn every_parameter_is_mapped_kept_or_refused() {
    for (name, model) in WIRES.into_iter().zip(MODELS) {
        for row in TABLE {
            let base = if row.name == "tools" { json!({}) } else { json!({ "tools": sample("tools") }) };
            let mut request = base.clone();
            request[row.name] = sample(row.name);
            let of = |request: &Value| {
                let found = asked(name, model, request, HostedTools::Refuse)?;
                let prompt = render(target(name), &messages([Message::user("hello")]), &found.options).unwrap();
                let body = String::from_utf8(merged(&prompt.request, found.fields).unwrap()).unwrap();
                Ok::<_, Refusal>((body, found.options, found.report))
            };
            let (without, with) = (of(&base).unwrap(), of(&request));
            let place = format!("{name} {}", row.name);
            match row.on(target(name)) {
                Does::Refused => assert_eq!(with.unwrap_err().code, Some("unsupported_parameter"), "{place}"),
                Does::Kept => {
                    assert_eq!(with.unwrap(), without, "{place}");
                    let given = echo(request.as_object().unwrap());
                    assert!(row.name == "stream_options" || given.get(row.name) == Some(&request[row.name]), "{place}");
                }
                Does::Here => assert_eq!(with.unwrap(), without, "{place}"),
                Does::At(_) | Does::Mapped(..) => match with {
                    Ok(with) => assert_ne!(with, without, "{place}"),
                    Err(refusal) => assert_eq!(refusal.code, Some("unsupported_parameter"), "{place}"),
                },
            }
        }
        // What the client keeps for itself goes nowhere.
        let own = asked(name, model, &json!({ "client_metadata": { "a": 1 } }), HostedTools::Refuse).unwrap();
        assert_eq!(whole(name, own, messages([Message::user("hello")])), body(name, model, &json!({})));
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    const WORDS: &[&str] = &[
        "function",
        "custom",
        "namespace",
        "allowed_tools",
        "web_search",
        "json_schema",
        "text",
        "auto",
        "none",
        "required",
        "low",
        "high",
        "f",
        "crm",
        "",
        "ä\n\"",
        "lark",
    ];
    const KEYS: &[&str] = &[
        "type",
        "name",
        "tools",
        "parameters",
        "format",
        "schema",
        "effort",
        "summary",
        "mode",
        "namespace",
        "strict",
        "description",
        "verbosity",
        "x",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3.0..3.0_f64).prop_map(Value::from),
        proptest::sample::select(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::btree_map(proptest::sample::select(KEYS), inner, 0..5)
                .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

fn any_request() -> impl Strategy<Value = Map<String, Value>> {
    let names: Vec<&'static str> = TABLE.iter().map(|row| row.name).chain(["client_x", "else"]).collect();
    let field = proptest::sample::select(names)
        .prop_flat_map(|name| (Just(name.to_owned()), prop_oneof![Just(sample(name)), any_json()]));
    proptest::collection::vec(field, 0..8).prop_map(|fields| fields.into_iter().collect())
}

proptest! {
    /// Whatever a client asks, it gets a request that its wire takes, or a refusal that names a parameter and why.
    #[test]
    fn no_request_panics(request in any_request(), wire in 0..WIRES.len(), drops in any::<bool>(), tokens in any::<Option<u64>>()) {
        const CODES: &[&str] =
            &["unsupported_parameter", "unknown_parameter", "invalid_type", "invalid_value", "missing_required_parameter"];
        let (name, model) = (WIRES[wire], MODELS[wire]);
        let hosted = if drops { HostedTools::Drop } else { HostedTools::Refuse };
        let text = Value::Object(request.clone()).to_string();
        match rendered(&request, &text, target(name), model, hosted, tokens) {
            Ok(found) => {
                let options = found.options.clone();
                let prompt = render(target(name), &messages([Message::user("hello")]), &options);
                let prompt = prompt.unwrap_or_else(|error| panic!("{error}: {text}"));
                let body = String::from_utf8(merged(&prompt.request, found.fields).unwrap()).unwrap();
                let found = check(target(name), &body).unwrap();
                // The names of tools of Responses itself go as they came.
                let is_refused = found.iter().any(|finding| finding.level.is_refused());
                prop_assert!(!is_refused || name == "openai-responses", "{found:?}\n{body}");
            }
            Err(refusal) => {
                prop_assert_eq!(refusal.status, 400);
                prop_assert!(CODES.contains(&refusal.code.unwrap()), "{refusal:?}");
                prop_assert!(refusal.param.is_some_and(|param| !param.is_empty()));
            }
        }
        echo(&request);
    }
}

#[test]
fn a_response_repeats_its_request_with_defaults() {
    let silent = Value::Object(echo(&Map::new()));
    let expected = json!({
        "tools": [], "tool_choice": "auto", "truncation": "disabled", "parallel_tool_calls": true,
        "text": { "format": { "type": "text" }, "verbosity": "medium" }, "top_p": 1.0, "temperature": 1.0,
        "presence_penalty": 0.0, "frequency_penalty": 0.0, "top_logprobs": 0, "reasoning": { "effort": null, "summary": null },
        "max_output_tokens": null, "max_tool_calls": null, "store": true, "background": false, "service_tier": "auto",
        "metadata": {}, "safety_identifier": null, "prompt_cache_key": null, "prompt_cache_retention": null,
        "instructions": null, "previous_response_id": null, "user": null,
    });
    assert_eq!(silent, expected);
    let given = json!({
        "tools": [{ "type": "function", "name": "f" }, { "type": "web_search" }], "store": false, "temperature": null,
        "tool_choice": { "type": "allowed_tools", "tools": [] }, "reasoning": { "effort": "low" }, "instructions": "Be brief.",
        "text": { "format": { "type": "json_schema", "name": "n", "schema": {} } }, "include": ["x"], "client_x": 1,
    });
    let found = Value::Object(echo(given.as_object().unwrap()));
    let mut expected = expected;
    expected["tools"] = json!([
        { "type": "function", "name": "f", "description": null, "parameters": null, "strict": null }, { "type": "web_search" },
    ]);
    expected["tool_choice"] = json!({ "type": "allowed_tools", "tools": [], "mode": "auto" });
    expected["reasoning"] = json!({ "effort": "low", "summary": null });
    expected["instructions"] = json!("Be brief.");
    expected["store"] = json!(false);
    expected["text"] = json!({
        "format": { "type": "json_schema", "name": "n", "schema": {}, "description": null, "strict": false }, "verbosity": "medium",
    });
    assert_eq!(found, expected);
}

#[test]
fn the_history_is_merged_as_it_is_written() {
    let of = |history: &str, set: &[(&[&str], Value)]| {
        let mut fields = Object::default();
        set.iter().for_each(|(path, value)| fields.set(path, value.clone()));
        let history = RawValue::from_string(history.to_owned()).unwrap();
        String::from_utf8(merged(&history, fields).unwrap()).unwrap()
    };
    let history = r#"{"messages":[ 1e1 ],"toolConfig":{"tools":[{"b":1,"a":2}],"x":{"y":1}},"n":null}"#;
    let set: &[(&[&str], Value)] = &[
        (&["model"], json!("m")),
        (&["toolConfig", "toolChoice"], json!({})),
        (&["toolConfig", "x", "z"], json!(2)),
        (&["n"], json!(3)),
    ];
    let expected = r#"{"model":"m","messages":[ 1e1 ],"toolConfig":{"toolChoice":{},"tools":[{"b":1,"a":2}],"x":{"z":2,"y":1}},"n":3}"#;
    assert_eq!(of(history, set), expected);
    assert_eq!(of("{}", &[]), "{}");
    assert_eq!(of(r#"{"a":1}"#, &[(&["a", "b"], json!(2)), (&["c"], json!({}))]), r#"{"c":{},"a":{"b":2}}"#);
}

/// Where the documentation has the table.
const DOCUMENT: &str = "src/docs/responses.md";
const BEGINS: &str = "<!-- The table below is written by src/server/responses/parameters/tests.rs: UPDATE=1. -->\n";
const ENDS: &str = "<!-- The end of the table. -->\n";

#[test]
fn the_documentation_has_the_table() {
    let mut table = format!("\n| parameter | {} |\n|{}\n", WIRES.join(" | "), "---|".repeat(WIRES.len() + 1));
    for row in TABLE {
        let cells = row.does.map(|does| match does {
            Does::At(path) if path == row.name => "the same".to_owned(),
            Does::At(path) => format!("`{path}`"),
            Does::Mapped(name, _) => name.to_owned(),
            Does::Kept => "kept".to_owned(),
            Does::Refused => "refused".to_owned(),
            Does::Here => "here".to_owned(),
        });
        table += &format!("| `{}` | {} |\n", row.name, cells.join(" | "));
    }
    let document = fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = document.split_once(BEGINS).unwrap();
    let (_, after) = rest.split_once(ENDS).unwrap();
    let found = format!("{before}{BEGINS}{table}\n{ENDS}{after}");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(DOCUMENT, &found).unwrap();
    }
    let known = fs::read_to_string(DOCUMENT).unwrap();
    assert!(known == found, "UPDATE=1 writes the table of {DOCUMENT} again");
}

#[test]
fn the_columns_are_the_wires() {
    assert_eq!(crate::provider::WIRES.iter().map(|wire| wire.name).collect::<Vec<_>>(), WIRES);
}
