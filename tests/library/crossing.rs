//! What crosses from one wire to another: a block that a wire has of its own, and that no other knows, goes back to that
//! wire as it came, and never to another, whoever said it, also where two wires are one vendor's.

use conversation_store::model::Role;
use conversation_store::provider::{PromptOptions, Target, WIRES, check, decode, parse, repair};
use serde_json::{Value, json};

use crate::common::{prompts, stored};

/// Stands in each block. It is in a field that holds no words.
const MARK: &str = "MARK-7";

/// A request of each wire, with blocks of its own under every role that may have them.
const REQUESTS: &[(&str, &str)] = &[
    (
        "openai-chat",
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"hologram","beam":"MARK-7"}]},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}"#,
    ),
    (
        "openai-responses",
        r#"{"input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_video","beam":"MARK-7"}]},
            {"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"MARK-7"}]},
            {"type":"hologram_output","call_id":"h","beam":"MARK-7"},
            {"type":"tool_search_output","execution":"client","call_id":"s","status":"completed","tools":[{"type":"function","name":"MARK-7"}]},
            {"type":"hologram","id":"h","beam":"MARK-7"},{"role":"user","content":"c"}]}"#,
    ),
    (
        "anthropic",
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"hologram","beam":"MARK-7"}]},{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"hologram","beam":"MARK-7"}]},{"role":"user","content":"c"}]}"#,
    ),
    (
        "gemini",
        r#"{"contents":[{"role":"user","parts":[{"text":"a"},{"hologram":{"beam":"MARK-7"}}]},{"role":"model","parts":[{"text":"b"},{"hologram":{"beam":"MARK-7"}}]},{"role":"user","parts":[{"text":"c"}]}]}"#,
    ),
    (
        "bedrock-converse",
        r#"{"messages":[{"role":"user","content":[{"text":"a"},{"hologram":{"beam":"MARK-7"}}]},{"role":"assistant","content":[{"text":"b"},{"hologram":{"beam":"MARK-7"}}]},{"role":"user","content":[{"text":"c"}]}]}"#,
    ),
];

#[test]
fn a_block_of_one_wire_never_goes_to_another() {
    for from in prompts::targets() {
        let name = from.to_string();
        let (wire, request) = REQUESTS.iter().find(|(wire, _)| name.split('/').next() == Some(wire)).unwrap();
        let said = stored::log(parse(from, request).unwrap().messages);
        for to in prompts::targets() {
            let prompt = prompts::prompt(to, &said, &PromptOptions::new()).unwrap();
            let crosses = prompt.request.get().contains(MARK);
            let is_other = to.to_string().split('/').next() != Some(wire);
            assert!(!(crosses && is_other), "{from} to {to}: {}", prompt.request);
            assert!(crosses || !prompt.report.is_empty(), "{from} to {to}: left out, and not in the report");
            assert!(
                crosses || to.to_string() != *wire || name != *wire,
                "{from}: its own block is gone: {}",
                prompt.request
            );
        }
    }
}

/// Blocks of each wire, with a mark: what it is, who says it, and the block. The mark of a signature is in the signature.
const BLOCKS: &[(&str, &str, &str, &str)] = &[
    ("openai-chat", "text of the user", "user", r#"{"type":"text","text":"MARK-7"}"#),
    ("openai-chat", "an image", "user", r#"{"type":"image_url","image_url":{"url":"https://x.test/MARK-7.png"}}"#),
    ("openai-chat", "a part that is not known", "user", r#"{"type":"hologram","beam":"MARK-7"}"#),
    ("openai-chat", "text of the model", "assistant", r#""content":"MARK-7""#),
    ("openai-chat", "reasoning", "assistant", r#""content":"b","reasoning_content":"MARK-7""#),
    (
        "openai-chat",
        "a call",
        "assistant",
        r#""tool_calls":[{"id":"call00001","type":"function","function":{"name":"f","arguments":"{\"a\":\"MARK-7\"}"}}]"#,
    ),
    ("openai-chat", "a refusal", "assistant", r#""refusal":"MARK-7""#),
    ("openai-chat", "a field that is not known", "assistant", r#""content":"b","hologram":{"beam":"MARK-7"}"#),
    ("openai-responses", "text of the user", "user", r#"{"type":"input_text","text":"MARK-7"}"#),
    ("openai-responses", "a part that is not known", "user", r#"{"type":"input_video","beam":"MARK-7"}"#),
    (
        "openai-responses",
        "an item of the user's that is not known",
        "item",
        r#"{"type":"hologram_output","call_id":"h","beam":"MARK-7"}"#,
    ),
    (
        "openai-responses",
        "an item of the application's",
        "item",
        r#"{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"MARK-7"}]}"#,
    ),
    (
        "openai-responses",
        "text of the model",
        "item",
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"MARK-7"}]}"#,
    ),
    (
        "openai-responses",
        "reasoning, encrypted",
        "model",
        r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"MARK-7"}"#,
    ),
    (
        "openai-responses",
        "the summary of reasoning",
        "model",
        r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"MARK-7"}],"encrypted_content":"ENC"}"#,
    ),
    (
        "openai-responses",
        "a call",
        "item",
        r#"{"type":"function_call","call_id":"call00001","name":"f","arguments":"{\"a\":\"MARK-7\"}"}"#,
    ),
    (
        "openai-responses",
        "what a hosted tool did",
        "item",
        r#"{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"MARK-7"}}"#,
    ),
    (
        "openai-responses",
        "an item of the model's that is not known",
        "item",
        r#"{"type":"hologram","id":"h_1","beam":"MARK-7"}"#,
    ),
    ("anthropic", "text of the user", "user", r#"{"type":"text","text":"MARK-7"}"#),
    ("anthropic", "a block of the user's that is not known", "user", r#"{"type":"hologram","beam":"MARK-7"}"#),
    ("anthropic", "text of the model", "assistant", r#"{"type":"text","text":"MARK-7"}"#),
    ("anthropic", "thinking, signed", "assistant", r#"{"type":"thinking","thinking":"MARK-7","signature":"c2ln"}"#),
    (
        "anthropic",
        "the signature of thinking",
        "assistant",
        r#"{"type":"thinking","thinking":"hm","signature":"TUFSSy03"}"#,
    ),
    ("anthropic", "thinking, redacted", "assistant", r#"{"type":"redacted_thinking","data":"TUFSSy03"}"#),
    ("anthropic", "a call", "assistant", r#"{"type":"tool_use","id":"call00001","name":"f","input":{"a":"MARK-7"}}"#),
    ("anthropic", "a block of the model's that is not known", "assistant", r#"{"type":"hologram","beam":"MARK-7"}"#),
    ("gemini", "text of the user", "user", r#"{"text":"MARK-7"}"#),
    ("gemini", "a part of the user's that is not known", "user", r#"{"hologram":{"beam":"MARK-7"}}"#),
    ("gemini", "text of the model", "model", r#"{"text":"MARK-7"}"#),
    ("gemini", "a thought", "model", r#"{"text":"MARK-7","thought":true}"#),
    ("gemini", "the signature of a text", "model", r#"{"text":"said","thoughtSignature":"TUFSSy03"}"#),
    ("gemini", "a call", "model", r#"{"functionCall":{"name":"f","args":{"a":"MARK-7"}}}"#),
    (
        "gemini",
        "the signature of a call",
        "model",
        r#"{"functionCall":{"name":"f","args":{}},"thoughtSignature":"TUFSSy03"}"#,
    ),
    ("gemini", "code that the model ran", "model", r#"{"executableCode":{"language":"PYTHON","code":"MARK-7"}}"#),
    ("gemini", "a part of the model's that is not known", "model", r#"{"hologram":{"beam":"MARK-7"}}"#),
    ("bedrock-converse", "text of the user", "user", r#"{"text":"MARK-7"}"#),
    ("bedrock-converse", "a block of the user's that is not known", "user", r#"{"hologram":{"beam":"MARK-7"}}"#),
    ("bedrock-converse", "text of the model", "assistant", r#"{"text":"MARK-7"}"#),
    (
        "bedrock-converse",
        "reasoning, signed",
        "assistant",
        r#"{"reasoningContent":{"reasoningText":{"text":"MARK-7","signature":"c2ln"}}}"#,
    ),
    (
        "bedrock-converse",
        "the signature of reasoning",
        "assistant",
        r#"{"reasoningContent":{"reasoningText":{"text":"hm","signature":"TUFSSy03"}}}"#,
    ),
    (
        "bedrock-converse",
        "a call",
        "assistant",
        r#"{"toolUse":{"toolUseId":"call00001","name":"f","input":{"a":"MARK-7"}}}"#,
    ),
    ("bedrock-converse", "a block of the model's that is not known", "assistant", r#"{"hologram":{"beam":"MARK-7"}}"#),
];

/// The shortest answer of each wire: a decoder says whose it is.
const ANSWERS: &[(&str, &str)] = &[
    (
        "openai-chat",
        r#"{"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"x"}}]}"#,
    ),
    (
        "openai-responses",
        r#"{"object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]}"#,
    ),
    (
        "anthropic",
        r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}"#,
    ),
    ("gemini", r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"x"}]},"finishReason":"STOP"}]}"#),
    (
        "bedrock-converse",
        r#"{"output":{"message":{"role":"assistant","content":[{"text":"x"}]}},"stopReason":"end_turn"}"#,
    ),
];

/// A conversation of the wire that holds the block, and more around it.
fn around(wire: &str, role: &str, block: &str) -> String {
    let (user, model) = ("user", if wire == "gemini" { "model" } else { "assistant" });
    let message = |role: &str, text: &str| match wire {
        "gemini" => format!(r#"{{"role":"{role}","parts":[{{"text":"{text}"}}]}}"#),
        "bedrock-converse" => format!(r#"{{"role":"{role}","content":[{{"text":"{text}"}}]}}"#),
        _ => format!(r#"{{"role":"{role}","content":"{text}"}}"#),
    };
    let (first, said, last) = (message(user, "a"), message(model, "said here"), message(user, "c"));
    let key = if wire == "gemini" { "parts" } else { "content" };
    let middle = match (wire, role) {
        ("openai-responses", "item") => format!("{block},{said}"),
        ("openai-responses", "model") => {
            format!(
                r#"{block},{{"id":"msg_1","type":"message","role":"assistant","content":[{{"type":"output_text","text":"said here"}}]}}"#
            )
        }
        ("openai-chat", "assistant") => format!(r#"{{"role":"assistant",{block}}}"#),
        (_, "user") => format!(r#"{{"role":"user","{key}":[{block}]}},{said}"#),
        ("anthropic", _) => format!(r#"{{"role":"{role}","{key}":[{block},{{"type":"text","text":"said here"}}]}}"#),
        (_, _) => format!(r#"{{"role":"{role}","{key}":[{block},{{"text":"said here"}}]}}"#),
    };
    let list = match wire {
        "gemini" => "contents",
        "openai-responses" => "input",
        _ => "messages",
    };
    format!(r#"{{"{list}":[{first},{middle},{last}]}}"#)
}

/// What becomes of a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Becomes {
    AsItCame,
    Another,
    Nothing,
}

fn becomes(from: Target, to: Target, role: &str, block: &str) -> Becomes {
    let name = from.to_string();
    let wire = name.split('/').next().unwrap();
    let (_, answer) = ANSWERS.iter().find(|(of, _)| *of == wire).unwrap();
    let provider = decode(from, answer.as_bytes()).unwrap().metadata.provider;
    let mut messages = parse(from, &around(wire, role, block)).unwrap().messages;
    for message in messages.iter_mut().filter(|message| message.role == Role::Assistant) {
        message.metadata.provider.clone_from(&provider);
        message.metadata.model = Some("model-1".to_owned());
    }
    let options = PromptOptions::new().with_model("model-1");
    let prompt = prompts::prompt(to, &stored::log(messages), &options).unwrap();
    prompts::assert_accepted(to, &prompt);
    let request = prompt.request.get();
    let has_mark = [MARK, "TUFSSy03"].iter().any(|mark| request.contains(mark));
    match has_mark {
        true if request.contains(block) => Becomes::AsItCame,
        true => Becomes::Another,
        false => {
            assert!(!prompt.report.is_empty(), "{from} to {to}: {block} is left out, and not in the report: {request}");
            Becomes::Nothing
        }
    }
}

/// Targets in few words: `openai-chat/*` are all of a wire.
fn in_words(targets: &[Target]) -> String {
    let mut words = Vec::new();
    for wire in WIRES {
        let is_its = |target: &&Target| target.to_string().split('/').next() == Some(wire.name);
        let (its, all) = (targets.iter().filter(is_its).count(), prompts::targets().iter().filter(is_its).count());
        match its {
            its if its == all && all > 1 => words.push(format!("`{}/*`", wire.name)),
            _ => words.extend(targets.iter().filter(is_its).map(|target| format!("`{target}`"))),
        }
    }
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// Where the table stands.
const DOCUMENT: &str = "src/docs/crossing.md";
const BEGINS: &str = "<!-- The table below is written by tests/library/crossing.rs: UPDATE=1. -->\n";
const ENDS: &str = "<!-- The end of the table. -->\n";

/// For each pair of targets, and each kind of block, what crosses and what does not.
#[test]
fn the_table_of_what_crosses_is_right() {
    let all = prompts::targets();
    let mut table = String::new();
    for wire in WIRES {
        // Targets of the wire whose blocks fare alike are one section.
        let mut sections: Vec<(Vec<Target>, Vec<String>)> = Vec::new();
        for from in all.iter().copied().filter(|from| from.to_string().split('/').next() == Some(wire.name)) {
            let blocks = BLOCKS.iter().filter(|(of, ..)| *of == wire.name);
            let rows = blocks.map(|(_, kind, role, block)| {
                let found: Vec<Becomes> = all.iter().map(|to| becomes(from, *to, role, block)).collect();
                let cell = |wanted: Becomes| {
                    let is_it = all.iter().copied().zip(&found).filter(|(_, found)| **found == wanted);
                    in_words(&is_it.map(|(to, _)| to).collect::<Vec<_>>())
                };
                let [as_it_came, another, nothing] = [Becomes::AsItCame, Becomes::Another, Becomes::Nothing].map(cell);
                format!("| {kind} | {as_it_came} | {another} | {nothing} |\n")
            });
            let rows: Vec<String> = rows.collect();
            match sections.iter_mut().find(|(_, known)| *known == rows) {
                Some((of, _)) => of.push(from),
                None => sections.push((vec![from], rows)),
            }
        }
        for (of, rows) in sections {
            table += &format!(
                "\nFrom {}:\n\n| block | as it came | in another form | left out |\n|---|---|---|---|\n",
                in_words(&of)
            );
            table += &rows.concat();
        }
    }
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = document.split_once(BEGINS).unwrap();
    let (_, after) = rest.split_once(ENDS).unwrap();
    let found = format!("{before}{BEGINS}{table}\n{ENDS}{after}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(DOCUMENT, &found).unwrap();
    }
    let known = std::fs::read_to_string(DOCUMENT).unwrap();
    let change = known.lines().zip(found.lines()).find(|(known, found)| known != found);
    assert!(known == found, "{change:?}: UPDATE=1 writes the table of {DOCUMENT} again");
}

/// Paths of parameters, and their values.
type Settings = Vec<(&'static str, Value)>;

/// A request of each wire with a tool, and parameters of it: paths, and values that other wires may take.
fn parameters() -> Vec<(&'static str, Value, Settings)> {
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let of_chat = json!([{ "type": "function", "function": { "name": "f", "parameters": schema } }]);
    let of_responses = json!([{ "type": "function", "name": "f", "parameters": schema, "strict": false }]);
    let of_gemini = json!([{ "functionDeclarations": [{ "name": "f", "parametersJsonSchema": schema }] }]);
    let of_converse = json!({ "tools": [{ "toolSpec": { "name": "f", "inputSchema": { "json": schema } } }] });
    let text = schema.to_string();
    let hello = json!([{ "role": "user", "content": "hello" }]);
    vec![
        (
            "openai-chat",
            json!({ "model": "m-1", "messages": hello, "tools": of_chat }),
            vec![
                ("max_completion_tokens", json!(900)),
                ("max_tokens", json!(900)),
                ("temperature", json!(0.5)),
                ("top_p", json!(0.9)),
                ("stop", json!("END")),
                ("seed", json!(7)),
                ("n", json!(2)),
                ("presence_penalty", json!(0.5)),
                ("frequency_penalty", json!(0.5)),
                ("reasoning_effort", json!("low")),
                ("verbosity", json!("low")),
                ("user", json!("u-1")),
                ("safety_identifier", json!("s-1")),
                ("prompt_cache_key", json!("k-1")),
                ("prompt_cache_retention", json!("24h")),
                ("metadata", json!({ "a": "b" })),
                ("service_tier", json!("default")),
                ("store", json!(false)),
                ("stream", json!(true)),
                ("tool_choice", json!({ "type": "function", "function": { "name": "f" } })),
                ("parallel_tool_calls", json!(false)),
                ("response_format", json!({ "type": "json_object" })),
                ("response_format", json!({ "type": "json_schema", "json_schema": { "name": "f", "schema": schema } })),
                ("logit_bias", json!({ "50256": -100 })),
            ],
        ),
        (
            "openai-responses",
            json!({ "model": "m-1", "input": hello, "tools": of_responses }),
            vec![
                ("max_output_tokens", json!(900)),
                ("temperature", json!(0.5)),
                ("top_p", json!(0.9)),
                ("presence_penalty", json!(0.5)),
                ("frequency_penalty", json!(0.5)),
                ("reasoning.effort", json!("low")),
                ("text.verbosity", json!("low")),
                ("user", json!("u-1")),
                ("safety_identifier", json!("s-1")),
                ("prompt_cache_key", json!("k-1")),
                ("prompt_cache_retention", json!("24h")),
                ("metadata", json!({ "a": "b" })),
                ("service_tier", json!("default")),
                ("store", json!(false)),
                ("stream", json!(true)),
                ("tool_choice", json!({ "type": "function", "name": "f" })),
                ("parallel_tool_calls", json!(false)),
                ("text.format", json!({ "type": "json_object" })),
                ("text.format", json!({ "type": "json_schema", "name": "f", "schema": schema })),
                ("previous_response_id", json!("resp_1")),
            ],
        ),
        (
            "anthropic",
            json!({ "model": "m-1", "messages": hello, "tools": [{ "name": "f", "input_schema": schema }] }),
            vec![
                ("max_tokens", json!(900)),
                ("temperature", json!(0.5)),
                ("top_p", json!(0.9)),
                ("top_k", json!(40)),
                ("stop_sequences", json!(["END"])),
                ("metadata.user_id", json!("u-1")),
                ("stream", json!(true)),
                ("tool_choice", json!({ "type": "tool", "name": "f" })),
                ("tool_choice", json!({ "type": "auto", "disable_parallel_tool_use": true })),
                ("output_config.format", json!({ "type": "json_schema", "schema": schema })),
                ("thinking", json!({ "type": "enabled", "budget_tokens": 1024 })),
            ],
        ),
        (
            "gemini",
            json!({ "contents": [{ "role": "user", "parts": [{ "text": "hello" }] }], "tools": of_gemini }),
            vec![
                ("generationConfig.maxOutputTokens", json!(900)),
                ("generationConfig.temperature", json!(0.5)),
                ("generationConfig.topP", json!(0.9)),
                ("generationConfig.topK", json!(40)),
                ("generationConfig.stopSequences", json!(["END"])),
                ("generationConfig.seed", json!(7)),
                ("generationConfig.candidateCount", json!(2)),
                ("generationConfig.presencePenalty", json!(0.5)),
                ("generationConfig.frequencyPenalty", json!(0.5)),
                ("toolConfig.functionCallingConfig", json!({ "mode": "ANY", "allowedFunctionNames": ["f"] })),
                ("generationConfig.responseMimeType", json!("application/json")),
                ("generationConfig.responseJsonSchema", schema.clone()),
                ("safetySettings", json!([])),
            ],
        ),
        (
            "bedrock-converse",
            json!({ "messages": [{ "role": "user", "content": [{ "text": "hello" }] }], "toolConfig": of_converse }),
            vec![
                ("inferenceConfig.maxTokens", json!(900)),
                ("inferenceConfig.temperature", json!(0.5)),
                ("inferenceConfig.topP", json!(0.9)),
                ("inferenceConfig.stopSequences", json!(["END"])),
                ("requestMetadata", json!({ "a": "b" })),
                ("toolConfig.toolChoice", json!({ "tool": { "name": "f" } })),
                (
                    "outputConfig.textFormat",
                    json!({ "type": "json_schema", "structure": { "jsonSchema": { "name": "f", "schema": text } } }),
                ),
                ("guardrailConfig", json!({ "guardrailIdentifier": "g" })),
            ],
        ),
    ]
}

fn with(request: &Value, path: &str, value: &Value) -> Value {
    let mut request = request.clone();
    let (before, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut place = &mut request;
    for name in before.split('.').filter(|name| !name.is_empty()) {
        place = place.as_object_mut().unwrap().entry(name).or_insert(json!({}));
    }
    place[last] = value.clone();
    request
}

/// The paths of what a request says, arrays as a whole.
fn paths(value: &Value, path: &str, into: &mut Vec<(String, Value)>) {
    match value.as_object() {
        Some(fields) if !fields.is_empty() => fields.iter().for_each(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            paths(value, &path, into);
        }),
        _ => into.push((path.to_owned(), value.clone())),
    }
}

fn repaired(from: Target, to: Target, request: &Value, model: Option<&str>) -> (Value, Vec<String>) {
    let mut options = PromptOptions::new();
    options.model = model.map(str::to_owned);
    let prompt = repair(from, to, &request.to_string(), &options).unwrap();
    let refused: Vec<_> = check(to, prompt.request.get()).unwrap();
    assert!(!refused.iter().any(|finding| finding.level.is_refused()), "{from} to {to}: {refused:?}");
    let lines = prompt.report.iter().map(|line| line.place.clone().unwrap_or_default()).collect();
    (serde_json::from_str(prompt.request.get()).unwrap(), lines)
}

/// The parameter that a path leads into.
fn parameter(path: &str) -> &str {
    const WHOLE: [&str; 8] = [
        "response_format",
        "text.format",
        "output_config.format",
        "outputConfig.textFormat",
        "toolConfig.functionCallingConfig",
        "toolConfig.toolChoice",
        "requestMetadata",
        "tool_choice",
    ];
    let path = path.trim_start_matches("generationConfig.").trim_start_matches("inferenceConfig.");
    let path = path.strip_suffix(".a").unwrap_or(path);
    if path.starts_with("responseJsonSchema") {
        return "responseJsonSchema";
    }
    WHOLE.into_iter().find(|whole| path.starts_with(whole)).unwrap_or(path)
}

/// A request with a signature says by its wire and its model who made it: gh:openai/codex#8145.
#[test]
fn a_signature_of_a_request_goes_to_its_maker_only() {
    const SIGNED: &str = "TUFSSy03";
    let said = json!([{ "type": "thinking", "thinking": "hm", "signature": SIGNED }, { "type": "text", "text": "b" }]);
    let user = json!({ "role": "user", "content": "a" });
    let of_anthropic = json!({ "model": "claude-sonnet-4-5", "max_tokens": 9,
        "messages": [user, { "role": "assistant", "content": said }, user] });
    let of_nobody = with(&of_anthropic, "model", &Value::Null);
    let part = json!({ "functionCall": { "name": "f", "args": {} }, "thoughtSignature": SIGNED });
    let of_gemini = json!({ "contents": [{ "role": "user", "parts": [{ "text": "a" }] }, { "role": "model", "parts": [part] },
        { "role": "user", "parts": [{ "functionResponse": { "name": "f", "response": { "result": "1" } } }] }] });
    let thought = json!({ "reasoningContent": { "reasoningText": { "text": "hm", "signature": SIGNED } } });
    let of_converse = json!({ "messages": [{ "role": "user", "content": [{ "text": "a" }] },
        { "role": "assistant", "content": [thought, { "text": "b" }] }, { "role": "user", "content": [{ "text": "a" }] }] });
    let table = [
        ("anthropic", &of_anthropic, "openai-responses", Some("gpt-5"), false),
        ("anthropic", &of_anthropic, "openai-responses", None, false),
        ("anthropic", &of_nobody, "openai-responses", None, false),
        ("anthropic", &of_anthropic, "gemini", None, false),
        ("anthropic", &of_anthropic, "gemini/vertex", None, false),
        ("anthropic", &of_anthropic, "bedrock-converse", Some("us.amazon.nova-pro-v1:0"), false),
        ("anthropic", &of_anthropic, "bedrock-converse", Some("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), true),
        ("anthropic", &of_anthropic, "bedrock-converse", None, true),
        ("gemini", &of_gemini, "openai-responses", Some("gpt-5"), false),
        ("gemini", &of_gemini, "anthropic", Some("claude-sonnet-4-5"), false),
        ("bedrock-converse", &of_converse, "openai-responses", Some("gpt-5"), false),
        ("bedrock-converse", &of_converse, "gemini", None, false),
    ];
    for (from, request, to, model, is_sent) in table {
        let mut options = PromptOptions::new();
        options.model = model.map(str::to_owned);
        let prompt = repair(from.parse().unwrap(), to.parse().unwrap(), &request.to_string(), &options).unwrap();
        let text = prompt.request.get();
        assert_eq!(text.contains(SIGNED), is_sent, "{from} to {to} {model:?}: {text}");
    }
}

const SETTINGS: &str = "<!-- The parameters are written by tests/library/crossing.rs: UPDATE=1. -->\n";

#[test]
fn parameters_go_along_where_both_wires_have_them() {
    let targets: Vec<Target> = WIRES.iter().map(|wire| wire.name.parse().unwrap()).collect();
    let mut table = String::new();
    let mut judged = String::new();
    for (from, request, settings) in parameters() {
        let from: Target = from.parse().unwrap();
        let others: Vec<Target> = targets.iter().copied().filter(|to| to.to_string() != from.to_string()).collect();
        let names: Vec<_> = others.iter().map(|to| format!("`{to}`")).collect();
        table += &format!(
            "\nFrom `{from}`:\n\n| parameter | {} |\n|---|{}\n",
            names.join(" | "),
            "---|".repeat(names.len())
        );
        for (path, value) in &settings {
            let kind = value
                .get("type")
                .and_then(Value::as_str)
                .filter(|kind| kind.starts_with("json"))
                .map_or(String::new(), |kind| format!(", `{kind}`"));
            table += &format!("| `{path}`{kind} |");
            for to in &others {
                let (plain, _) = repaired(from, *to, &request, Some("m-2"));
                let (changed, lines) = repaired(from, *to, &with(&request, path, value), Some("m-2"));
                judged += &json!({ "case": format!("{path} of {from}"), "target": to.to_string().replace('-', "_"), "request": changed }).to_string();
                judged.push('\n');
                let (mut before, mut after) = (Vec::new(), Vec::new());
                paths(&plain, "", &mut before);
                paths(&changed, "", &mut after);
                assert!(
                    before.iter().all(|one| after.contains(one) || one.0 == "max_tokens"),
                    "{path} to {to}: {changed}"
                );
                after.retain(|one| !before.contains(one));
                let is_named = lines.iter().any(|place| path.starts_with(place.as_str()) && !place.is_empty());
                // A part of a choice may go along, and a part not.
                let is_right = after.is_empty() == is_named || *path == "tool_choice" && is_named;
                assert!(is_right, "{path} of {from} to {to}: {changed} {lines:?}");
                let mut places: Vec<_> = after.iter().map(|(path, _)| format!("`{}`", parameter(path))).collect();
                places.dedup();
                table += &format!(" {} |", if places.is_empty() { "–".to_owned() } else { places.join(", ") });
            }
            table.push('\n');
        }
    }
    if let Some(dir) = crate::common::rendered_dir() {
        std::fs::write(dir.join("parameters.jsonl"), judged).unwrap();
    }
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = document.split_once(SETTINGS).unwrap();
    let (known, after) = rest.split_once(ENDS).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(DOCUMENT, format!("{before}{SETTINGS}{table}\n{ENDS}{after}")).unwrap();
        return;
    }
    assert_eq!(known, format!("{table}\n"), "UPDATE=1 writes the table of {DOCUMENT} again");
}

/// Every pair of numbers and texts of one parameter comes back from another wire as it was.
#[test]
fn parameters_come_back_as_they_were() {
    for (from, request, settings) in parameters() {
        let from: Target = from.parse().unwrap();
        for to in WIRES
            .iter()
            .map(|wire| wire.name.parse::<Target>().unwrap())
            .filter(|to| to.to_string() != from.to_string())
        {
            for (path, value) in &settings {
                let given = with(&request, path, value);
                let (there, lines) = repaired(from, to, &given, None);
                if lines.iter().any(|place| path.starts_with(place.as_str()) && !place.is_empty()) {
                    continue;
                }
                let (back, left_out) = repaired(to, from, &there, None);
                let field = |request: &Value| request.pointer(&format!("/{}", path.replace('.', "/"))).cloned();
                // OpenAI's own Responses API is not known to take them: other servers of that wire do.
                if path.ends_with("_penalty") && from.to_string() == "openai-responses" {
                    let is_named = left_out.iter().any(|place| place.to_lowercase().contains("penalty"));
                    assert!(field(&back).is_none() && is_named, "{path} by {to}: {left_out:?} {back}");
                    continue;
                }
                // Of two names of one wire that another has one for, one comes back.
                let name = path.replace("max_tokens", "max_completion_tokens").replace("safety_identifier", "user");
                let found = field(&back).or_else(|| back.get(&name).cloned());
                let same = found.as_ref() == Some(value) || found == Some(json!([value]));
                assert!(same || path.contains("ormat") || path.contains("choice"), "{path} of {from} by {to}: {back}");
                assert!(found.is_some(), "{path} of {from} by {to}: {back}");
            }
        }
    }
}

/// What is said is no declaration, whatever it looks like.
#[test]
fn a_choice_of_a_tool_that_is_not_declared_stays_behind() {
    let (from, request, _) = parameters().swap_remove(0);
    let call =
        json!({ "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{\"name\":\"ghost\"}" } });
    let messages = json!([
        { "role": "user", "content": "hello" },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c1", "content": "done" },
    ]);
    let request = with(&request, "messages", &messages);
    for (name, goes_along) in [("f", true), ("ghost", false)] {
        let choice = json!({ "type": "function", "function": { "name": name } });
        let given = with(&request, "tool_choice", &choice);
        let (made, lines) = repaired(from.parse().unwrap(), "anthropic".parse().unwrap(), &given, Some("m-2"));
        assert_eq!(made.get("tool_choice").is_some(), goes_along, "{made}");
        assert_eq!(lines.iter().any(|place| place == "tool_choice"), !goes_along, "{lines:?}");
    }
}
