//! Requests of clients, and the whole request of the model that comes of each, on every wire.

use std::fs;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::table::{Does, TABLE};
use super::{Rendered, echo, rendered};
use crate::history::{Conversation, MessageState, StoredMessage};
use crate::json::object::merged;
use crate::model::Message;
use crate::provider::parameters::{ANTHROPIC, CHAT, GEMINI, RESPONSES, WIRES, at};
use crate::provider::{PromptOptions, Target, check, render, repair};
use crate::server::refusal::Refusal;
use crate::server::responses::tools::HostedTools;

pub(in crate::server::responses) const MODELS: [&str; 5] =
    ["gpt-5.1", "gpt-5.1", "claude-opus-4-8", "gemini-3-pro", "us.anthropic.claude-opus-4-8-v1:0"];

fn target(name: &str) -> Target {
    name.parse().unwrap()
}

pub(in crate::server::responses) fn asked(
    name: &str,
    model: &str,
    request: &Value,
    hosted: HostedTools,
) -> Result<Rendered, Refusal> {
    rendered(request.as_object().unwrap(), &request.to_string(), target(name), model, hosted, Some(1000))
}

pub(in crate::server::responses) fn messages(messages: impl IntoIterator<Item = Message>) -> Conversation {
    let stored = (0..).zip(messages).map(|(at, message)| StoredMessage::new(at, MessageState::Complete, message));
    Conversation::new(stored.collect())
}

/// The request of the model, which its own wire finds nothing wrong with.
pub(in crate::server::responses) fn whole(name: &str, rendered: Rendered, conversation: Conversation) -> Value {
    let conversation = rendered.tools.sent_in(conversation);
    let prompt = render(target(name), &conversation, &rendered.options).unwrap();
    let body = String::from_utf8(merged(&prompt.request, rendered.fields).unwrap()).unwrap();
    let found = check(target(name), &body).unwrap();
    assert!(!found.iter().any(|finding| finding.level.is_refused()), "{name}: {found:?}\n{body}");
    serde_json::from_str(&body).unwrap()
}

pub(in crate::server::responses) fn body(name: &str, model: &str, request: &Value) -> Value {
    let rendered =
        asked(name, model, request, HostedTools::Refuse).unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"));
    whole(name, rendered, messages([Message::user("hello")]))
}

pub(in crate::server::responses) fn refusal(name: &str, model: &str, request: &Value) -> (String, &'static str) {
    let refusal = asked(name, model, request, HostedTools::Refuse).unwrap_err();
    assert_eq!(refusal.status, 400, "{refusal:?}");
    (refusal.param.unwrap_or_default(), refusal.code.unwrap_or_default())
}

fn tools() -> Value {
    let city = json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"], "additionalProperties": false });
    json!([
        { "type": "function", "name": "weather", "description": "The weather.", "strict": true, "parameters": city },
        { "type": "function", "name": "clock", "parameters": { "type": "object", "properties": {} } },
    ])
}

/// Parameters whose values are the same on every wire that has them.
fn any_common() -> impl Strategy<Value = Value> {
    let choices = [json!("auto"), json!("none"), json!("required"), json!({ "type": "function", "name": "clock" })];
    let schema = json!({ "type": "object", "properties": { "z": { "type": "string" }, "a": { "type": "string" } } });
    let forms = [
        json!({ "format": { "type": "text" } }),
        json!({ "format": { "type": "json_object" } }),
        json!({ "format": { "type": "json_schema", "name": "answer", "schema": schema } }),
        json!({ "format": { "type": "json_schema", "name": "answer", "strict": true, "description": "An answer.", "schema": schema } }),
    ];
    let fields = (
        proptest::option::of(1..100_000_u64),
        proptest::option::of((0..=100_u8).prop_map(|number| f64::from(number) / 100.0)),
        proptest::option::of(proptest::sample::select(choices.to_vec())),
        proptest::option::of(any::<bool>()),
        proptest::option::of(proptest::sample::select(forms.to_vec())),
        any::<bool>(),
    );
    fields.prop_map(|(tokens, number, choice, parallel, text, has_tools)| {
        let choice = choice.filter(|choice| has_tools || choice == "auto" || choice == "none");
        json!({
            "max_output_tokens": tokens, "temperature": number, "top_p": number, "user": tokens.map(|_| "u-1"),
            "tool_choice": choice, "parallel_tool_calls": parallel, "text": text,
            "tools": if has_tools { tools() } else { Value::Null },
        })
    })
}

/// What of a request's field is on the wire, as Responses says it.
fn said(wire: usize, name: &str, request: &Value) -> Value {
    let has_tools = request["tools"].is_array();
    let value = request[name].clone();
    match name {
        "tool_choice" | "parallel_tool_calls" if !has_tools && wire != RESPONSES => Value::Null,
        // Several at once is what models do without a word.
        "parallel_tool_calls" if value == true && wire != RESPONSES => Value::Null,
        "parallel_tool_calls" if wire == ANTHROPIC && request["tool_choice"] == "none" => Value::Null,
        // It holds the word that no two are called at once.
        "tool_choice"
            if wire == ANTHROPIC && value.is_null() && request["parallel_tool_calls"] == false && has_tools =>
        {
            json!("auto")
        }
        "text" if value["format"]["type"] == "text" && wire != RESPONSES => Value::Null,
        // There a schema has neither name nor description, and always counts.
        "text" if wire == ANTHROPIC || wire == GEMINI => match value["format"].get("schema") {
            Some(schema) => json!({ "format": { "name": "answer", "type": "json_schema", "schema": schema } }),
            None => value,
        },
        "text" if wire != CHAT && wire != RESPONSES => {
            let mut value = value;
            value.get_mut("format").and_then(Value::as_object_mut).map(|format| format.remove("strict"));
            value
        }
        "user" if wire != CHAT && wire != RESPONSES && wire != ANTHROPIC => Value::Null,
        _ => value,
    }
}

proptest! {
    /// A request of the model, taken for one of its own wire, is the request that the client sent.
    #[test]
    fn what_is_sent_crosses_back_to_what_was_asked(request in any_common()) {
        for (wire, (name, model)) in WIRES.into_iter().zip(MODELS).enumerate() {
            let found = match asked(name, model, &request, HostedTools::Refuse) {
                Ok(found) => whole(name, found, messages([Message::user("hello")])),
                Err(refusal) => {
                    let is_unsaid = match refusal.param.as_deref() {
                        Some("text.format") => wire != CHAT && wire != GEMINI,
                        Some("tool_choice") => request["tool_choice"] == "none",
                        Some("parallel_tool_calls") => request["parallel_tool_calls"] == false,
                        _ => false,
                    };
                    prop_assert!(is_unsaid && wire > RESPONSES, "{name}: {refusal:?}");
                    continue;
                }
            };
            let back = repair(target(name), Target::OPENAI_RESPONSES, &found.to_string(), &PromptOptions::new()).unwrap();
            let back: Value = serde_json::from_str(back.request.get()).unwrap();
            for field in ["max_output_tokens", "temperature", "top_p", "user", "tool_choice", "parallel_tool_calls", "text"] {
                let (found, wanted) = (&back[field], said(wire, field, &request));
                let is_default = field == "max_output_tokens" && request[field].is_null() && wire == ANTHROPIC;
                prop_assert!(is_default || *found == wanted, "{name} {field}: {found} is not {wanted}\n{back}");
            }
            let names = |request: &Value| -> Vec<Value> {
                request["tools"].as_array().into_iter().flatten().map(|tool| tool["name"].clone()).collect()
            };
            prop_assert_eq!(names(&back), names(&request));
        }
    }
}

/// What only some models take, and each in its own words.
#[test]
fn reasoning_and_tiers_are_in_the_words_of_the_model() {
    let effort = |word: &str| json!({ "reasoning": { "effort": word } });
    let shown = json!({ "reasoning": { "effort": "low", "summary": "auto" } });
    let tier = json!({ "service_tier": "default" });
    let table = [
        ("openai-chat", "gpt-5.1", shown.clone(), json!({ "reasoning_effort": "low" })),
        ("openai-chat/groq", "m", tier.clone(), json!({ "service_tier": "default" })),
        ("openai-chat/ollama", "qwen3", tier.clone(), json!({})),
        (
            "anthropic",
            "claude-opus-4-8",
            shown.clone(),
            json!({
                "thinking": { "type": "adaptive", "display": "summarized" }, "output_config": { "effort": "low" },
            }),
        ),
        (
            "anthropic",
            "claude-opus-4-1",
            effort("low"),
            json!({ "thinking": { "type": "enabled", "budget_tokens": 4096 } }),
        ),
        ("anthropic", "claude-opus-4-8", tier.clone(), json!({ "service_tier": "standard_only" })),
        (
            "gemini",
            "gemini-3-pro",
            shown.clone(),
            json!({
                "generationConfig": { "thinkingConfig": { "thinkingLevel": "low", "includeThoughts": true } },
            }),
        ),
        (
            "gemini",
            "gemini-2.5-flash",
            effort("none"),
            json!({ "generationConfig": { "thinkingConfig": { "thinkingBudget": 0 } } }),
        ),
        ("gemini", "gemini-3-pro", tier.clone(), json!({ "serviceTier": "standard" })),
        (
            "bedrock-converse",
            "us.anthropic.claude-opus-4-8-v1:0",
            shown,
            json!({
                "additionalModelRequestFields": { "thinking": { "type": "adaptive", "display": "summarized" } },
                "outputConfig": { "effort": "low" },
            }),
        ),
        (
            "bedrock-converse",
            "us.amazon.nova-2-lite-v1:0",
            effort("high"),
            json!({
                "additionalModelRequestFields": { "reasoningConfig": { "type": "enabled", "maxReasoningEffort": "high" } },
            }),
        ),
        ("bedrock-converse", "x", tier, json!({ "serviceTier": { "type": "default" } })),
    ];
    for (name, model, request, more) in table {
        let mut expected = body(name, model, &json!({}));
        expected.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(body(name, model, &request), expected, "{name} {model} {request}");
    }
    // A budget is at most the half of the answer.
    let short = json!({ "reasoning": { "effort": "low" }, "max_output_tokens": 4000 });
    assert_eq!(body("anthropic", "claude-opus-4-1", &short)["thinking"]["budget_tokens"], 2000);
}

/// What every request says, and what only some servers do not know.
#[test]
fn a_request_begins_as_its_server_wants_it() {
    let hello = json!([{ "role": "user", "content": "hello" }]);
    let expected =
        json!({ "model": "m", "stream": true, "stream_options": { "include_usage": true }, "messages": hello });
    assert_eq!(body("openai-chat", "m", &json!({})), expected);
    let expected = json!({ "model": "m", "stream": true, "messages": hello });
    assert_eq!(body("openai-chat/mistral", "m", &json!({})), expected);
    let given = json!({
        "tools": [{ "type": "web_search" }], "include": ["message.output_text.logprobs"], "previous_response_id": "resp_1",
        "max_tool_calls": 3, "reasoning": { "effort": "low" },
    });
    let expected = json!({
        "model": "m", "stream": true, "store": false,
        "include": ["message.output_text.logprobs", "reasoning.encrypted_content"],
        "input": [{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hello" }] }],
        "tools": given["tools"], "max_tool_calls": 3, "reasoning": given["reasoning"],
    });
    assert_eq!(body("openai-responses", "m", &given), expected);
    let least = json!({ "tools": [], "presence_penalty": 0.0 });
    assert_eq!(body("openai-responses", "m", &least)["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body("openai-responses", "m", &least).as_object().unwrap().len(), 5);
    let strict = |model: &str| body("anthropic", model, &json!({ "tools": tools() }))["tools"][0]["strict"].clone();
    assert_eq!((strict("claude-opus-4-8"), strict("claude-opus-4-1")), (json!(true), Value::Null));
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
    // Tools that no renderer declares count here.
    let long = json!({ "tools": [{ "type": "function", "name": "f", "description": "word ".repeat(300) }] });
    let left = |more: Value| {
        let mut request = json!({ "truncation": "auto", "max_output_tokens": 100 });
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        asked("openai-responses", "m", &request, HostedTools::Refuse).unwrap().options.max_tokens.unwrap()
    };
    assert_eq!(left(json!({})), 900);
    assert!((1..700).contains(&left(long)));
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
                Does::There if at(row.name).unwrap().place(target(name)).is_none() => {
                    assert_eq!(with.unwrap(), without, "{place}");
                }
                Does::There | Does::Mapped(..) => match with {
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

/// Where the documentation has the table.
const DOCUMENT: &str = "src/docs/responses.md";
const BEGINS: &str = "<!-- The table below is written by src/server/responses/parameters/tests.rs: UPDATE=1. -->\n";
const ENDS: &str = "<!-- The end of the table. -->\n";

/// Where a wire has a parameter, in words.
fn there(name: &str, wire: usize) -> String {
    let parameter = at(name).unwrap_or_else(|| panic!("{name} is in no table"));
    match parameter.paths(wire) {
        [] => "kept".to_owned(),
        [path] if path == &name && parameter.is_openais && wire == CHAT => {
            "the same at OpenAI and Azure, else kept".to_owned()
        }
        [path] if path == &name => "the same".to_owned(),
        [path] => format!("`{path}`"),
        [newer, .., older] => format!("`{newer}`; `{older}` of other servers than OpenAI's and Azure's"),
    }
}

#[test]
fn the_documentation_has_the_table() {
    let mut table = format!("\n| parameter | {} |\n|{}\n", WIRES.join(" | "), "---|".repeat(WIRES.len() + 1));
    for row in TABLE {
        let cells = std::array::from_fn::<_, { WIRES.len() }, _>(|wire| match row.does[wire] {
            Does::There => there(row.name, wire),
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
