//! What right prompts for OpenAI Responses show, case by case.

use crate::common::reported;
use conversation_store::model::{Audio, Body, Chunk, File, Image, Json, Message, Native, Output, Part, PartBody, Role};
use conversation_store::provider::{PromptOptions, Target, Thinking, decode, render};
use conversation_store::{Error, Rule, Store};
use serde_json::Value;

/// The request's items, a line each: role or kind, then what is said.
fn shape(request: &str) -> Vec<String> {
    let request: Value = serde_json::from_str(request).unwrap();
    request["input"].as_array().unwrap().iter().map(item).collect()
}

fn item(item: &Value) -> String {
    let text = |name: &str| item[name].as_str().unwrap();
    match text("type") {
        "message" => {
            let parts = item["content"].as_array().unwrap();
            format!("{}{}", text("role"), parts.iter().map(|it| format!(" [{}]", part(it))).collect::<String>())
        }
        "function_call" => format!("call {} {} {}", text("call_id"), text("name"), text("arguments")),
        "function_call_output" => format!("output {}: {}", text("call_id"), output(&item["output"])),
        "reasoning" => format!("reasoning {} {}", item["summary"], text("encrypted_content")),
        other => other.to_owned(),
    }
}

fn output(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        parts => parts.as_array().unwrap().iter().map(|it| format!("[{}]", part(it))).collect::<Vec<_>>().join(" "),
    }
}

fn part(part: &Value) -> String {
    let text = |name: &str| part[name].as_str().unwrap();
    match text("type") {
        "input_text" => format!("in: {}", text("text")),
        "output_text" => format!("out: {}", text("text")),
        "refusal" => format!("refusal: {}", text("refusal")),
        "input_image" => format!("image {}", text("image_url")),
        other => other.to_owned(),
    }
}

/// The reports whose target is this wire, or any: read beside the `expect` of each case in `corruption.jsonl`. Those that
/// ask for a window or a branch are shown whole.
#[test]
fn reported_failures_are_rendered_as_they_should_be() {
    let mut found = String::new();
    for case in reported::cases().iter().filter(|case| ["openai_responses", "any"].contains(&case.target.as_str())) {
        let prompt =
            crate::common::prompts::prompt(Target::OPENAI_RESPONSES, &case.messages, &PromptOptions::new()).unwrap();
        assert!(!prompt.request.get().contains("\"id\":"), "{}: a server's id", case.id);
        found += &format!("# {}\n{}\n\n", case.id, shape(prompt.request.get()).join("\n"));
    }
    let wanted = include_str!("../fixtures/expected/openai_responses.txt");
    for (wanted, found) in wanted.split("\n\n").zip(found.split("\n\n")) {
        assert_eq!(found, wanted);
    }
    assert_eq!(found, wanted);
}

fn rendered_with(messages: &[Message], options: &PromptOptions) -> (String, Vec<Rule>) {
    let store = Store::open("memory:").unwrap();
    store.append("chat", messages).unwrap();
    let prompt = render(Target::OPENAI_RESPONSES, &store.load("chat").unwrap(), options).unwrap();
    (prompt.request.get().to_owned(), prompt.report.iter().map(|line| line.rule).collect())
}

fn rendered(messages: &[Message]) -> (String, Vec<Rule>) {
    rendered_with(messages, &PromptOptions::new())
}

fn own(json: &str, body: Body) -> Chunk {
    let json = Json::new(json).unwrap();
    Chunk { native: Some(Native { wire: "openai-responses".to_owned(), json }), ..Chunk::from(body) }
}

fn thinking(text: &str, signature: &str) -> Body {
    Body::Thinking { text: text.to_owned(), signature: Some(signature.to_owned()), redacted: None }
}

fn call(arguments: &str) -> Body {
    Chunk::tool_call("call_1", "run", arguments).body
}

const REASONING: &str =
    r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"ENC"}"#;
const CALL: &str =
    r#"{"arguments":"{}","call_id":"call_1","id":"fc_1","name":"run","status":"completed","type":"function_call"}"#;
const MESSAGE: &str = r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"ok","annotations":[],"logprobs":[]}]}"#;
const SEARCH: &str = r#"{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x","queries":["x"]}}"#;

/// An answer as the provider gave it.
fn answer() -> Message {
    let search = Body::Opaque {
        provider: "openai".to_owned(),
        kind: "web_search_call".to_owned(),
        json: Json::new(SEARCH).unwrap(),
    };
    let mut message = Message::assistant([
        own(REASONING, thinking("hm", "ENC")),
        search.into(),
        own(MESSAGE, Chunk::text("ok").body),
        own(CALL, call("{}")),
    ]);
    message.metadata.provider = Some("openai".to_owned());
    message.metadata.model = Some("gpt-6".to_owned());
    message
}

/// Calls of one id are answered in their order.
#[test]
fn an_answer_belongs_to_the_earliest_open_call() {
    let item = |json: String| {
        let kind = serde_json::from_str::<Value>(&json).unwrap()["type"].as_str().unwrap().to_owned();
        Chunk::from(Body::Opaque { provider: "openai".to_owned(), kind, json: Json::new(json).unwrap() })
    };
    let call =
        |command: &str| item(format!(r#"{{"type":"shell_call","call_id":"s","action":{{"commands":[{command:?}]}}}}"#));
    let output = item(
        r#"{"type":"shell_call_output","call_id":"s","output":[{"stdout":"said","stderr":"",
            "outcome":{"type":"exit","exit_code":0}}]}"#
            .to_owned(),
    );
    let by_openai = |chunks: Vec<Chunk>| {
        let mut message = Message::assistant(chunks);
        message.metadata.provider = Some("openai".to_owned());
        message
    };
    let messages = [
        Message::user("run"),
        by_openai(vec![call("one")]),
        Message::user("next"),
        by_openai(vec![call("two"), output]),
    ];
    let (request, _) = rendered(&messages);
    // The second one has no answer: one is made up.
    let places = ["one", "said", "next", "two", "Interrupted"];
    let places = places.map(|text| request.find(&format!("\"{text}")).unwrap());
    assert!(places.is_sorted(), "{request}");
}

#[test]
fn an_answer_of_the_provider_is_given_back_byte_for_byte() {
    let (request, report) = rendered(&[answer(), Message::tool("call_1", "done")]);
    let output = r#"{"type":"function_call_output","call_id":"call_1","output":"done"}"#;
    assert_eq!(request, format!(r#"{{"input":[{REASONING},{SEARCH},{MESSAGE},{CALL},{output}]}}"#));
    assert_eq!(report, []);
}

#[test]
fn ids_go_where_the_reasoning_they_belong_to_does_not() {
    let without = |json: &str, id: &str| json.replace(&format!(r#""id":"{id}","#), "");
    let (call, said) = (without(CALL, "fc_1"), without(MESSAGE, "msg_1"));
    let output = r#"{"type":"function_call_output","call_id":"call_1","output":"done"}"#;
    let tool = || Message::tool("call_1", "done");

    // Thinking is not wanted: what hosted tools did loses the ids that stand for it.
    let search = without(SEARCH, "ws_1");
    let (request, report) = rendered_with(&[answer(), tool()], &PromptOptions::new().with_thinking(Thinking::Omit));
    assert_eq!(request, format!(r#"{{"input":[{search},{said},{call},{output}]}}"#));
    assert_eq!(report, [Rule::Altered, Rule::ThinkingLeftOut]);

    // The reasoning was not kept.
    let mut alone = answer();
    alone.chunks.drain(..2);
    let (request, _) = rendered(&[alone, tool()]);
    assert_eq!(request, format!(r#"{{"input":[{said},{call},{output}]}}"#));

    // The same ids a second time.
    let (request, _) = rendered(&[answer(), tool(), Message::user("again"), answer(), tool()]);
    for id in ["rs_1", "msg_1", "fc_1", "ws_1"] {
        assert_eq!(request.matches(id).count(), 1, "{id}: {request}");
    }
    assert_eq!(request.matches("\"ENC\"").count(), 2);
}

#[test]
fn another_model_or_provider_gets_no_reasoning() {
    let reasons = |provider: Option<&str>, model: Option<&str>, wanted: Option<&str>| {
        let mut message = Message::assistant([thinking("hm", "ENC").into(), Chunk::text("hello")]);
        message.metadata.provider = provider.map(str::to_owned);
        message.metadata.model = model.map(str::to_owned);
        let mut options = PromptOptions::new();
        options.model = wanted.map(str::to_owned);
        let (request, report) = rendered_with(&[message], &options);
        let made = r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"ENC"},{"type":"message""#;
        let is_sent = report.is_empty() || report == [Rule::OriginAssumed];
        assert_eq!(request.contains(made), is_sent, "{request}");
        assert_eq!(report == [Rule::OriginAssumed], is_sent && provider.is_none() && model.is_none());
        is_sent
    };
    assert!(reasons(Some("openai"), Some("gpt-6"), Some("gpt-6")));
    assert!(reasons(Some("openai"), Some("gpt-6"), None));
    assert!(!reasons(Some("openai"), Some("gpt-5"), Some("gpt-6")));
    assert!(!reasons(Some("anthropic"), None, None));
    assert!(!reasons(None, Some("claude-sonnet-4-5"), None));
    // Nobody states whose signature it is: the report says so.
    assert!(reasons(None, None, None));
}

#[test]
fn reasoning_that_nothing_follows_is_no_item() {
    let mut message = Message::assistant([Chunk::text("a"), thinking("hm", "ENC").into()]);
    message.metadata.provider = Some("openai".to_owned());
    let mut only = Message::assistant([thinking("alone", "ENC").into()]);
    only.metadata.provider = Some("openai".to_owned());
    let (request, report) = rendered(&[message, only, Message::user("b")]);
    assert_eq!(shape(&request), ["assistant [out: a]", "assistant [out: <think>\nalone\n</think>]", "user [in: b]"]);
    assert_eq!(report, [Rule::ThinkingLeftOut, Rule::ThinkingTagged]);
}

#[test]
fn what_is_said_keeps_its_order() {
    let messages = [
        Message::system("be brief"),
        Message::assistant([
            Chunk::text("first"),
            Chunk::tool_call("1", "run", "{}"),
            Chunk::text("then"),
            Body::Refusal { text: "no".to_owned() }.into(),
            Chunk::tool_call("2", "run", "{}"),
        ]),
        Message::tool("2", "two"),
        Message::tool("1", "one"),
        Message::system("be briefer"),
    ];
    let wanted = [
        "system [in: be brief]",
        "assistant [out: first]",
        "call 1 run {}",
        "assistant [out: then] [refusal: no]",
        "call 2 run {}",
        "output 1: one",
        "output 2: two",
        "system [in: be briefer]",
    ];
    assert_eq!(shape(&rendered(&messages).0), wanted);
}

#[test]
fn custom_tools_keep_their_input() {
    let json = r#"{"type":"custom_tool_call","call_id":"call_1","name":"run","input":"*** Begin"}"#;
    let messages = [Message::assistant([own(json, call("*** Begin"))]), Message::tool("call_1", "done")];
    let (request, report) = rendered(&messages);
    let output = r#"{"type":"custom_tool_call_output","call_id":"call_1","output":"done"}"#;
    assert_eq!(request, format!(r#"{{"input":[{json},{output}]}}"#));
    assert_eq!(report, []);
    // Of another provider's answer the item is made anew.
    let mut foreign = messages.clone();
    foreign[0].metadata.provider = Some("xai".to_owned());
    let (request, report) = rendered(&foreign);
    let made = r#"{"type":"custom_tool_call","call_id":"call_1","name":"run","input":"*** Begin"}"#;
    assert_eq!(request, format!(r#"{{"input":[{made},{output}]}}"#));
    assert_eq!(report, [Rule::Altered]);
}

#[test]
fn damaged_items_are_told_anew() {
    let damaged = [CALL.replace("\"{}\"", "\"{\""), CALL.replace("call_1", "call_2"), CALL.replace("fc_1", "fc 1")];
    for json in damaged {
        let mut message = answer();
        message.chunks[3] = own(&json, call("{}"));
        let (request, report) = rendered(&[message, Message::tool("call_1", "done")]);
        assert!(shape(&request).contains(&"call call_1 run {}".to_owned()), "{request}");
        assert_eq!(report, [Rule::Altered], "{json}");
    }
}

#[test]
fn attachments_stand_where_the_wire_has_a_place() {
    let image = || Image { url: "https://x.test/a.png".to_owned(), mime_type: None };
    let file = File {
        name: Some("a.pdf".to_owned()),
        data: Some("JVBERi0=".to_owned()),
        mime_type: Some("application/pdf".to_owned()),
        ..File::default()
    };
    let address = File { url: Some("https://x.test/a.pdf".to_owned()), ..File::default() };
    let sound = Audio { data: Some("UklGRg==".to_owned()), transcript: Some("hi".to_owned()), ..Audio::default() };
    let parts = [PartBody::Text { text: "see".to_owned() }, PartBody::Image(image())].map(Part::from);
    let result = Body::ToolResult {
        tool_call_id: "call_1".to_owned(),
        name: None,
        output: Output::Parts(parts.into()),
        is_error: None,
    };
    let messages = [
        Message::new(Role::User, [Body::File(file).into(), Body::File(address).into(), Body::Audio(sound).into()]),
        Message::assistant([call("{}").into(), Body::Image(image()).into()]),
        Message::new(Role::Tool, [result.into()]),
    ];
    let (request, report) = rendered(&messages);
    let wanted = [
        "user [input_file] [input_file] [in: hi]",
        "call call_1 run {}",
        "assistant [out: [image: it is in the next user message]]",
        "output call_1: [in: see] [image https://x.test/a.png]",
        "user [in: Image by the assistant:] [image https://x.test/a.png]",
    ];
    assert_eq!(shape(&request), wanted);
    let files = r#"{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="},{"type":"input_file","file_url":"https://x.test/a.pdf"}"#;
    assert!(request.contains(files), "{request}");
    assert_eq!(report, [Rule::Altered, Rule::MediaMoved]);
}

/// DeepSeek's reasoning is plain text, and goes back to it as it came; OpenAI takes none of it. What stands behind a call is
/// said before the calls.
#[test]
fn reasoning_that_is_not_encrypted_goes_back_to_who_takes_it() {
    let answer = r#"{"object":"response","model":"deepseek-v4-flash","status":"completed","output":[
        {"content":[{"text":"hm","type":"reasoning_text"}],"id":"84cf774d","summary":[],"type":"reasoning"},
        {"arguments":"{}","call_id":"call-a","name":"f","type":"function_call"},
        {"content":[{"text":"so","type":"output_text"}],"role":"assistant","type":"message"},
        {"arguments":"{}","call_id":"call-b","name":"f","type":"function_call"}]}"#;
    let reasoning =
        r#"{"content":[{"text":"hm","type":"reasoning_text"}],"id":"84cf774d","summary":[],"type":"reasoning"}"#;
    let deepseek = Target::OPENAI_RESPONSES.with_dialect("deepseek").unwrap();
    let message = decode(deepseek, answer.as_bytes()).unwrap();
    assert_eq!(message.metadata.provider.as_deref(), Some("deepseek"));
    let log = crate::common::stored::log([
        Message::user("go"),
        message,
        Message::tool("call-a", "1"),
        Message::tool("call-b", "2"),
    ]);
    let prompt = |target, model: &str| {
        let options = PromptOptions::new().with_model(model);
        let prompt = crate::common::prompts::prompt(target, &log, &options).unwrap();
        crate::common::prompts::assert_accepted(target, &prompt);
        (prompt.request.get().to_owned(), prompt.report.iter().map(|line| line.rule).collect::<Vec<_>>())
    };
    let (request, report) = prompt(deepseek, "deepseek-v4-flash");
    assert!(request.contains(reasoning), "{request}");
    let kinds = ["reasoning", "output_text", "call-a", "call-b", "\"1\"", "\"2\""].map(|text| request.find(text));
    assert!(kinds.iter().all(Option::is_some) && kinds.is_sorted(), "{request}");
    assert_eq!(report, [Rule::Altered]);
    let (request, report) = prompt(Target::OPENAI_RESPONSES, "gpt-5");
    assert!(!request.contains("reasoning"), "{request}");
    assert_eq!(report, [Rule::ThinkingLeftOut]);
}

#[test]
fn an_output_over_the_limit_is_too_large() {
    let store = Store::open("memory:").unwrap();
    let long = "x".repeat(10_485_761);
    store.append("chat", &[Message::assistant([call("{}").into()]), Message::tool("call_1", long)]).unwrap();
    let result = render(Target::OPENAI_RESPONSES, &store.load("chat").unwrap(), &PromptOptions::new());
    assert!(matches!(result, Err(Error::TooLarge(_))));
}

/// What a Responses server answers with `store`, decoded, and rendered for it again.
fn sent_back(answer: &str, streamed: bool) -> (Vec<Value>, Vec<Rule>) {
    let message = match streamed {
        false => decode(Target::OPENAI_RESPONSES, answer.as_bytes()).unwrap(),
        true => decode(Target::OPENAI_RESPONSES, stream(answer).as_bytes()).unwrap(),
    };
    let calls = message.chunks.iter().filter_map(|chunk| match &chunk.body {
        Body::ToolCall { id, .. } => Some(Message::tool(id.as_str(), "done")),
        _ => None,
    });
    let results: Vec<_> = calls.collect();
    let mut messages = vec![Message::user("go"), message];
    messages.extend(results);
    let log = crate::common::stored::log(messages);
    let prompt = crate::common::prompts::prompt(Target::OPENAI_RESPONSES, &log, &PromptOptions::new()).unwrap();
    crate::common::prompts::assert_accepted(Target::OPENAI_RESPONSES, &prompt);
    let request: Value = serde_json::from_str(prompt.request.get()).unwrap();
    let items = request["input"].as_array().unwrap()[1..].to_vec();
    (items, prompt.report.iter().map(|line| line.rule).collect())
}

/// The same answer, streamed: texts in deltas, then each item whole.
fn stream(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let with = |output: Value, status: &str| {
        let mut response = answer.clone();
        response["output"] = output;
        response["status"] = status.into();
        response
    };
    let mut events =
        vec![serde_json::json!({"type": "response.created", "response": with(Value::Array(vec![]), "in_progress")})];
    for (index, item) in answer["output"].as_array().unwrap().iter().enumerate() {
        for (part, content) in item["content"].as_array().into_iter().flatten().enumerate() {
            for delta in content["text"].as_str().unwrap().split_inclusive(' ') {
                events.push(serde_json::json!({"type": "response.output_text.delta", "output_index": index, "content_index": part, "delta": delta}));
            }
        }
        events.push(serde_json::json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    events.push(serde_json::json!({"type": "response.completed", "response": with(Value::Array(vec![]), "completed")}));
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// Whether an item stands in the prompt as it came, but for its id and what says nothing.
fn bare(item: &Value) -> Value {
    match item {
        Value::Object(fields) => {
            let says = |value: &Value| !value.is_null() && *value != serde_json::json!([]) && *value != "";
            let kept = fields.iter().filter(|(name, value)| says(value) && !["id", "status"].contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), bare(value))).collect()
        }
        Value::Array(items) => items.iter().map(bare).collect(),
        value => value.clone(),
    }
}

fn response(store: &str, output: &[&str]) -> String {
    let output = output.join(",");
    format!(
        r#"{{"object":"response","id":"resp_1","model":"gpt-5","status":"completed","store":{store},"output":[{output}]}}"#
    )
}

const BY_ID: &str = r#"{"id":"rs_2","type":"reasoning","summary":[]}"#;
const SUMMED_UP: &str = r#"{"id":"rs_2","type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}"#;
const SAID: &str = r#"{"id":"msg_2","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"so it is","annotations":[]}]}"#;
const IN_PARTS: &str = r#"{"id":"msg_3","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"one two","annotations":[]},{"type":"output_text","text":"three","annotations":[]}]}"#;
const ASKED: &str =
    r#"{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_2","name":"run","arguments":"{}"}"#;

/// OpenAI keeps the reasoning of an answer that it stored, and gives no more of it than an id.
#[test]
fn reasoning_that_only_the_server_has_goes_back_by_its_id() {
    for reasoning in [BY_ID, SUMMED_UP] {
        for (streamed, output) in [SAID, IN_PARTS, ASKED]
            .iter()
            .flat_map(|after| [false, true].map(|streamed| (streamed, [reasoning, after])))
        {
            let (items, report) = sent_back(&response("true", &output), streamed);
            let wanted: Vec<Value> = output.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
            assert_eq!(items[0], wanted[0], "{output:?}");
            assert_eq!(bare(&items[1]), bare(&wanted[1]), "{output:?}");
            // OR-08: a message after it has the server's id.
            assert_eq!(items[1]["id"].is_null(), output[1] == ASKED, "{output:?}");
            assert_eq!(report, [Rule::KeptByServer], "{output:?}");
        }
        // Without the item after it, it is nothing, and so it is to a server that stores nothing, or another model.
        for (store, output) in [("true", &[SAID, reasoning][..]), ("false", &[reasoning, SAID])] {
            let (items, report) = sent_back(&response(store, output), false);
            assert!(items.iter().all(|item| item["type"] == "message"), "{items:?}");
            assert_eq!(report, [Rule::ThinkingLeftOut], "{store}");
        }
    }
}

/// Other items of a step that lost its ids: reasoning by its id goes too, and the report says so.
#[test]
fn reasoning_by_its_id_goes_where_ids_do() {
    let mut message = decode(Target::OPENAI_RESPONSES, response("true", &[BY_ID, SAID]).as_bytes()).unwrap();
    message.chunks[1].native = None;
    let (request, report) = rendered(&[message]);
    assert!(!request.contains("reasoning"), "{request}");
    assert_eq!(report, [Rule::ThinkingLeftOut]);
}

#[test]
fn messages_of_one_answer_stay_apart_with_their_parts() {
    let phased = IN_PARTS.replace(r#""role""#, r#""phase":"commentary","role""#).replace("msg_3", "msg_4");
    for output in [&[IN_PARTS, SAID][..], &[SAID, IN_PARTS], &[IN_PARTS, &phased], &[&phased, ASKED, SAID]] {
        for streamed in [false, true] {
            let (items, report) = sent_back(&response("true", output), streamed);
            let wanted: Vec<Value> = output.iter().map(|item| bare(&serde_json::from_str(item).unwrap())).collect();
            let items: Vec<Value> =
                items.iter().map(bare).filter(|item| item["type"] != "function_call_output").collect();
            assert_eq!(items, wanted);
            assert_eq!(report, []);
        }
    }
    // A part that was changed is told anew.
    let mut message = decode(Target::OPENAI_RESPONSES, response("true", &[&phased]).as_bytes()).unwrap();
    message.chunks[1].body = Chunk::text("four").body;
    let (request, report) = rendered(&[message]);
    assert_eq!(shape(&request), ["assistant [out: one two] [out: four]"]);
    assert_eq!(report, [Rule::Altered]);
}
