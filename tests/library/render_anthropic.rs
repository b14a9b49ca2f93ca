//! What right prompts for Anthropic show, case by case.

use crate::common::{prompts, reported};
use conversation_store::model::{
    Body, Chunk, File, Image, Json, Message, Metadata, Native, Output, Part, PartBody, Role,
};
use conversation_store::provider::{Prompt, PromptOptions, Target, Thinking, render};
use conversation_store::{Error, Rule, Store};
use serde_json::{Value, json};

/// The request, a line each: role, then a line for each block.
fn shape(request: &str) -> Vec<String> {
    let request: Value = serde_json::from_str(request).unwrap();
    let mut lines = Vec::new();
    for block in request["system"].as_array().into_iter().flatten() {
        lines.push(format!("system {}", said(block)));
    }
    for message in request["messages"].as_array().unwrap() {
        lines.push(message["role"].as_str().unwrap().to_owned());
        for block in message["content"].as_array().unwrap() {
            lines.push(format!("  {}", said(block)));
        }
    }
    for tool in request["tools"].as_array().into_iter().flatten() {
        lines.push(format!("tool {}", tool["name"].as_str().unwrap()));
    }
    lines
}

fn said(block: &Value) -> String {
    let field = |name: &str| block[name].as_str().unwrap_or_default();
    match field("type") {
        "text" => format!("{:?}", field("text")),
        "thinking" => format!("thinks {:?} ({})", field("thinking"), field("signature")),
        "redacted_thinking" => format!("thinks, redacted ({})", field("data")),
        "tool_use" => format!("calls {} {} {}", field("id"), field("name"), block["input"]),
        "tool_result" => {
            let failed = if block["is_error"] == true { " (failed)" } else { "" };
            let content = match &block["content"] {
                Value::Null => "nothing".to_owned(),
                Value::Array(blocks) => blocks.iter().map(said).collect::<Vec<_>>().join(", "),
                text => text.to_string(),
            };
            format!("result {}{failed}: {content}", field("tool_use_id"))
        }
        other => {
            let source = &block["source"];
            let place = source["media_type"].as_str().or(source["url"].as_str()).or(source["file_id"].as_str());
            format!("{other} {}", place.unwrap_or_default()).trim_end().to_owned()
        }
    }
}

/// What a case says about the request beside the history.
fn options(case: &str) -> PromptOptions {
    let options = PromptOptions::new();
    match case {
        "llxprt-2335-model-switch-signature" => options.with_model("opus"),
        "claude-code-63410-resume-other-model" => options.with_model("model-b"),
        // Thinking is off, or the prefix before it was changed.
        "forge-1853-thinking-disabled-final" | "opencode-48637-signature-bound-to-prefix" => {
            options.with_thinking(Thinking::Omit)
        }
        _ => options,
    }
}

/// The reports whose target is this wire, or any: read beside the `expect` of each case in `corruption.jsonl`.
#[test]
fn reported_failures_are_rendered_as_they_should_be() {
    let mut found = String::new();
    for case in reported::cases().iter().filter(|case| ["anthropic", "any"].contains(&case.target.as_str())) {
        let prompt = prompts::prompt(Target::ANTHROPIC, &case.messages, &options(&case.id)).unwrap();
        found += &format!("# {}\n{}\n\n", case.id, shape(prompt.request.get()).join("\n"));
    }
    let wanted = include_str!("../fixtures/expected/anthropic.txt");
    for (wanted, found) in wanted.split("\n\n").zip(found.split("\n\n")) {
        assert_eq!(found, wanted);
    }
    assert_eq!(found, wanted);
}

fn rendered(target: Target, messages: &[Message], options: &PromptOptions) -> Prompt {
    let store = Store::open("memory:").unwrap();
    store.append("chat", messages).unwrap();
    let prompt = render(target, &store.load("chat").unwrap(), options).unwrap();
    prompts::assert_accepted(target, &prompt);
    prompts::assert_conserved(target, store.load("chat").unwrap().messages(), &prompt);
    prompt
}

fn shown(messages: &[Message]) -> Vec<String> {
    shape(rendered(Target::ANTHROPIC, messages, &PromptOptions::new()).request.get())
}

fn rules(prompt: &Prompt) -> Vec<Rule> {
    prompt.report.iter().map(|line| line.rule).collect()
}

fn bedrock() -> Target {
    "anthropic/bedrock".parse().unwrap()
}

fn image(url: &str) -> Image {
    Image { url: url.to_owned(), mime_type: None }
}

const PNG: &str = "data:image/png;base64,iVBORw0KGgo=";

fn result(id: &str, parts: Vec<PartBody>, is_error: bool) -> Message {
    let output = Output::Parts(parts.into_iter().map(Part::from).collect());
    let body = Body::ToolResult { tool_call_id: id.to_owned(), name: None, output, is_error: Some(is_error) };
    Message::new(Role::Tool, [body.into()])
}

fn signed(text: &str, signature: &str) -> Chunk {
    let signature = Some(signature.to_owned());
    Body::Thinking { text: text.to_owned(), signature, redacted: None }.into()
}

fn made_by(mut message: Message, provider: &str, model: &str) -> Message {
    message.metadata = Metadata { provider: Some(provider.into()), model: Some(model.into()), ..message.metadata };
    message
}

fn with_native(body: Body, json: &str) -> Chunk {
    let native = Native { wire: "anthropic".to_owned(), json: Json::new(json).unwrap() };
    Chunk { native: Some(native), ..Chunk::from(body) }
}

/// Parallel tool results with images were split by user messages: "tool_use ids were found without tool_result blocks".
#[test]
fn results_stay_together_and_come_first() {
    let text = |text: &str| PartBody::Text { text: text.to_owned() };
    let shown = shown(&[
        Message::user("shots"),
        Message::assistant([
            Body::Image(image(PNG)).into(),
            Chunk::tool_call("a", "shot", "{}"),
            Chunk::tool_call("b", "shot", "{}"),
        ]),
        result("a", vec![text("half"), PartBody::Image(image(PNG))], true),
        result("b", vec![PartBody::Image(image("https://x.test/b.png")), text(" ")], false),
        Message::user("and now?"),
    ]);
    assert_eq!(
        shown,
        [
            "user",
            "  \"shots\"",
            "assistant",
            "  \"[image: it is in the next user message]\"",
            "  calls a shot {}",
            "  calls b shot {}",
            "user",
            "  result a (failed): \"half\"",
            "  result b: image https://x.test/b.png",
            "  \"Output of the tool call a:\"",
            "  image image/png",
            "  \"Image by the assistant:\"",
            "  image image/png",
            "  \"and now?\"",
        ]
    );
}

/// Models answer with a blank text before they think (recorded: pydantic-ai
/// test_anthropic_opus_46_features\[adaptive-thinking\]). It is left out, and the thinking stays.
#[test]
fn a_blank_text_does_not_take_thinking_with_it() {
    let chunks = [Chunk::text("\n\n"), signed("hm", "c2ln"), Chunk::text("So.")];
    let answer = made_by(Message::assistant(chunks), "anthropic", "claude-opus-4-6");
    let log = crate::common::stored::log([Message::user("go"), answer, Message::user("and?")]);
    let prompt = prompts::prompt(Target::ANTHROPIC, &log, &PromptOptions::new()).unwrap();
    let thinking = r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#;
    assert!(prompt.request.get().contains(thinking), "{}", prompt.request);
    assert_eq!(prompt.report.iter().map(|line| line.rule).collect::<Vec<_>>(), [Rule::LeftOut]);
}

#[test]
fn failures_have_words() {
    let shown = shown(&[
        Message::user("go"),
        Message::assistant([Chunk::tool_call("a", "f", "{}"), Chunk::tool_call("b", "f", "{}")]),
        result("a", vec![], true),
        result("b", vec![PartBody::Image(image(PNG))], true),
    ]);
    assert_eq!(shown[6], "  result a (failed): \"The tool failed and gave no output.\"");
    assert_eq!(shown[7], "  result b (failed): \"The tool failed; its output follows.\"");
}

#[test]
fn bedrock_declares_tools_and_takes_no_addresses() {
    let long = "n".repeat(70);
    let messages = [
        Message::new(Role::User, [Chunk::text("look"), Chunk::image("https://x.test/a.png")]),
        Message::assistant([Chunk::tool_call("1", "z", "{}"), Chunk::tool_call("2", &long, "{}")]),
        Message::tool("1", "ok"),
        Message::tool("2", "ok"),
    ];
    let prompt = rendered(bedrock(), &messages, &PromptOptions::new());
    let lines = shape(prompt.request.get());
    assert_eq!(lines[2], "  \"[image left out: the target takes data, not the address https://x.test/a.png]\"");
    assert!(lines[lines.len() - 2].starts_with("tool nnn"), "{lines:?}");
    assert_eq!(lines[lines.len() - 1], "tool z");
    let end = r#"{"name":"z","input_schema":{"type":"object"}}]}"#;
    assert!(prompt.request.get().ends_with(end), "{}", prompt.request);
    let prompt = rendered(Target::ANTHROPIC, &messages, &PromptOptions::new());
    assert_eq!(rules(&prompt), []);
    assert!(prompt.request.get().contains(&long));
}

const ASKED: &str =
    r#"{"type":"server_tool_use", "id":"srvtoolu_1","name":"web_search","input":{"query":"x", "n":1.0}}"#;
const FOUND: &str = r#"{"tool_use_id":"srvtoolu_1","type":"web_search_tool_result","content":[{"type":"web_search_result","url":"https://x.test","title":"X","encrypted_content":"AA=="}]}"#;
const CITED: &str = r#"{"citations":[{"type":"web_search_result_location","url":"https://x.test","title":"X","encrypted_index":"BB","cited_text":"c"}],"type":"text","text":"X rose."}"#;

/// What a provider's own search looks like: thinking, the search, thinking, text with citations, a call of ours.
fn searched() -> Vec<Chunk> {
    let call = |id: &str, server| Body::ToolCall {
        id: id.to_owned(),
        name: "web_search".to_owned(),
        arguments: r#"{"query":"x", "n":1.0}"#.to_owned(),
        signature: None,
        server,
    };
    let output = Output::Parts(vec![PartBody::Json { json: Json::new("[1]").unwrap() }.into()]);
    let found = Body::ToolResult { tool_call_id: "srvtoolu_1".to_owned(), name: None, output, is_error: None };
    let cited = Body::Text { text: "X rose.".to_owned(), annotations: Json::new("[]").ok() };
    vec![
        signed("search", "s1"),
        with_native(call("srvtoolu_1", true), ASKED),
        with_native(found, FOUND),
        signed("calc", "s2"),
        with_native(cited, CITED),
        Chunk::tool_call("toolu_2", "calc", "{}"),
    ]
}

#[test]
fn a_providers_own_blocks_are_given_back_byte_for_byte() {
    let messages = [
        Message::user("search"),
        made_by(Message::assistant(searched()), "anthropic", "claude-x"),
        Message::tool("toolu_2", "2"),
    ];
    let prompt = rendered(Target::ANTHROPIC, &messages, &PromptOptions::new().with_model("claude-x"));
    assert_eq!(rules(&prompt), []);
    let thinks =
        |text: &str, signature: &str| format!(r#"{{"type":"thinking","thinking":"{text}","signature":"{signature}"}}"#);
    let used = r#"{"type":"tool_use","id":"toolu_2","name":"calc","input":{}}"#;
    let wanted = [&thinks("search", "s1"), ASKED, FOUND, &thinks("calc", "s2"), CITED, used].join(",");
    assert!(prompt.request.get().contains(&format!("[{wanted}]")), "{}", prompt.request);
}

/// Another model: the signatures go, the search stays. Another provider: its blocks go as well, and the search is told as if
/// we had made it, in its order.
#[test]
fn a_strangers_blocks_are_told_anew() {
    let messages = |provider: &str| {
        [
            Message::user("search"),
            made_by(Message::assistant(searched()), provider, "claude-x"),
            Message::tool("toolu_2", "2"),
        ]
    };
    let other = PromptOptions::new().with_model("claude-y");
    let prompt = rendered(Target::ANTHROPIC, &messages("anthropic"), &other);
    assert_eq!(rules(&prompt), [Rule::ThinkingLeftOut; 2]);
    assert!(prompt.request.get().contains(&format!("[{ASKED},{FOUND},{CITED},")), "{}", prompt.request);
    let prompt = rendered(Target::ANTHROPIC, &messages("kimi"), &other);
    assert_eq!(
        shape(prompt.request.get()),
        [
            "user",
            "  \"search\"",
            "assistant",
            "  calls srvtoolu_1 web_search {\"n\":1.0,\"query\":\"x\"}",
            "user",
            "  result srvtoolu_1: \"[1]\"",
            "assistant",
            "  \"X rose.\"",
            "  calls toolu_2 calc {}",
            "user",
            "  result toolu_2: \"2\"",
        ]
    );
}

#[test]
fn opaque_blocks_stand_where_they_may() {
    let opaque = |json: &str| {
        let (provider, kind) = ("anthropic".to_owned(), "block".to_owned());
        Chunk::from(Body::Opaque { provider, kind, json: Json::new(json).unwrap() })
    };
    let stored = r#"{"type":"image","source":{"type":"file","file_id":"file_1"}}"#;
    let shown = shown(&[
        Message::new(Role::User, [opaque(stored), opaque(ASKED), Chunk::text("go")]),
        Message::assistant([opaque(ASKED), opaque(stored), opaque(FOUND), Chunk::text("done")]),
        Message::new(Role::User, [opaque(FOUND), opaque(r#"{"type":"compaction","content":"x"}"#), Chunk::text("so?")]),
        Message::assistant([opaque(ASKED), Chunk::text("again")]),
        Message::user("end"),
    ]);
    assert_eq!(
        shown,
        [
            "user",
            "  image file_1",
            "  \"go\"",
            "assistant",
            "  server_tool_use",
            "  web_search_tool_result",
            "  \"done\"",
            "user",
            "  \"so?\"",
            "assistant",
            "  \"again\"",
            "user",
            "  \"end\"",
        ]
    );
}

/// A turn that the provider paused ends with its call: nothing is added, and the next message goes on with it.
/// What a server's tool found, without the block around it that names the call: a broken answer leaves it so.
#[test]
fn a_result_that_names_no_call_is_left_out() {
    let json = r#"{"type":"bash_code_execution_result","stdout":"1024\n","stderr":"","return_code":0,"content":[]}"#;
    let (provider, kind) = ("anthropic".to_owned(), "bash_code_execution_result".to_owned());
    let block = Chunk::from(Body::Opaque { provider, kind, json: Json::new(json).unwrap() });
    let messages = [Message::user("hi"), Message::assistant([block, Chunk::text("1024")]), Message::user("so?")];
    let prompt = rendered(Target::ANTHROPIC, &messages, &PromptOptions::new());
    prompts::assert_accepted(Target::ANTHROPIC, &prompt);
    assert!(!prompt.request.get().contains("bash_code"), "{}", prompt.request);
    assert_eq!(prompt.report.len(), 1, "{:?}", prompt.report);
}

#[test]
fn a_paused_turn_is_sent_back_as_it_is() {
    let opaque = |json: &str| {
        let (provider, kind) = ("anthropic".to_owned(), "block".to_owned());
        Chunk::from(Body::Opaque { provider, kind, json: Json::new(json).unwrap() })
    };
    let begun = [Message::user("search"), Message::assistant([opaque(ASKED)])];
    let [user, paused] = begun.clone();
    let prompt = rendered(Target::ANTHROPIC, &begun, &PromptOptions::new());
    assert_eq!(rules(&prompt), []);
    let paused_shape = ["user", "  \"search\"", "assistant", "  server_tool_use"];
    assert_eq!(shape(prompt.request.get()), paused_shape);
    let ended =
        [user.clone(), paused.clone(), Message::assistant([opaque(FOUND), Chunk::text("done")]), Message::user("so?")];
    let wanted = ["  web_search_tool_result", "  \"done\"", "user", "  \"so?\""];
    assert_eq!(shown(&ended), [paused_shape, wanted].concat());
    let left = [user, paused, Message::user("so?")];
    let wanted = ["  web_search_tool_result", "user", "  \"so?\""];
    assert_eq!(shown(&left), [&paused_shape[..], &wanted].concat());
}

/// A search whose id a tool result of ours answers, and the same search once more: the second one has not been made yet when
/// the result of the first is sent.
#[test]
fn a_search_is_answered_after_it_and_not_before() {
    let opaque = |json: &str| {
        let (provider, kind) = ("anthropic".to_owned(), "block".to_owned());
        Chunk::from(Body::Opaque { provider, kind, json: Json::new(json).unwrap() })
    };
    let chunks = searched();
    let (asked, found) = (&chunks[1], &chunks[2]);
    let ours = |json| Chunk { native: with_native(found.body.clone(), json).native, ..found.clone() };
    let own = ours(r#"{"type":"tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"text","text":"found"}]}"#);
    let answered = [Message::user("search"), Message::assistant([asked.clone(), own.clone(), opaque(ASKED)])];
    let begun = ["user", "  \"search\"", "assistant", "  calls srvtoolu_1 web_search {\"n\":1.0,\"query\":\"x\"}"];
    let result = ["user", "  result srvtoolu_1: \"found\""];
    let again = ["assistant", "  server_tool_use"];
    assert_eq!(shown(&answered), [&begun[..], &result, &again].concat());
    let mut goes_on = answered.to_vec();
    goes_on.push(Message::user("so?"));
    let ended = ["  web_search_tool_result", "user", "  \"so?\""];
    assert_eq!(shown(&goes_on), [&begun[..], &result, &again, &ended].concat());
}

/// All of a message's thinking goes back as it came, or none of it.
#[test]
fn thinking_is_whole_or_not_there() {
    let call = |arguments: &str| Chunk::tool_call("t", "f", arguments);
    let text = || Chunk::text("said");
    let table: [(Vec<Chunk>, &[&str]); 9] = [
        (vec![signed("a", "s1"), text()], &["thinks \"a\" (s1)", "\"said\""]),
        (vec![text(), signed("a", "s1"), text()], &["\"said\"", "\"said\""]),
        (vec![signed("a", "s1"), text(), signed("b", "s2")], &["\"said\""]),
        (vec![signed("a", "s1"), Chunk::thinking("b"), text()], &["\"said\""]),
        (vec![signed("a", ""), text()], &["\"said\""]),
        (
            vec![signed("a", "s1"), call("{}"), signed("", "s2"), text()],
            &["thinks \"a\" (s1)", "calls t f {}", "thinks \"\" (s2)", "\"said\""],
        ),
        (
            vec![signed("a", "s1"), call("[1]"), signed("b", "s2"), text()],
            &["calls t f {\"malformed_arguments\":\"[1]\"}", "\"said\""],
        ),
        (vec![signed("a", "s1"), Chunk::text(" "), signed("b", "s2"), text()], &["\"said\""]),
        (vec![signed("a", "s1"), Chunk::text(" ")], &["\"<think>\\na\\n</think>\""]),
    ];
    for (chunks, wanted) in table {
        let messages = [Message::user("q"), Message::assistant(chunks), Message::user("next")];
        let lines = shown(&messages);
        let lines: Vec<&str> = lines[3..3 + wanted.len()].iter().map(|line| line.trim_start()).collect();
        assert_eq!(lines, wanted);
    }
    let messages = [Message::user("q"), Message::assistant([text()]), Message::assistant([signed("a", "s1"), text()])];
    assert_eq!(shown(&messages)[2..5], ["assistant", "  \"said\"", "  \"said\""]);
    let tagged = rendered(Target::ANTHROPIC, &messages, &PromptOptions::new().with_thinking(Thinking::Tagged));
    assert_eq!(shape(tagged.request.get())[4], "  \"<think>\\na\\n</think>\"");
}

#[test]
fn only_older_models_continue_their_words() {
    let messages = [Message::user("poem"), Message::assistant([Chunk::text("Roses are red, \n")])];
    let with = |model: &str| rendered(Target::ANTHROPIC, &messages, &PromptOptions::new().with_model(model));
    let prompt = with("claude-3-5-sonnet-20241022");
    assert_eq!(shape(prompt.request.get())[3..], ["  \"Roses are red,\""]);
    assert_eq!(rules(&prompt), [Rule::Altered]);
    for model in ["claude-opus-4-6", "somebody-elses"] {
        let prompt = with(model);
        assert_eq!(shape(prompt.request.get())[3..], ["  \"Roses are red, \\n\"", "user", "  \"Continue.\""]);
        assert_eq!(rules(&prompt), [Rule::BridgeAdded]);
    }
}

#[test]
fn documents_are_pdf_or_text() {
    let file = |name: Option<&str>, url: Option<&str>, data: Option<&str>, mime_type: Option<&str>| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Body::File(File { name: own(name), url: own(url), data: own(data), mime_type: own(mime_type) })
    };
    let table = [
        (
            file(Some("a.pdf"), None, Some("JVBERi0="), None),
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, "title": "a.pdf"}),
        ),
        (
            file(None, Some("data:text/csv;base64,YSxi"), None, None),
            json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}}),
        ),
        (
            file(None, Some("https://x.test/a.pdf?b"), None, None),
            json!({"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf?b"}}),
        ),
        (
            file(None, Some("https://x.test/a.docx"), None, None),
            json!({"type": "text", "text": "[file left out: the target takes data, not an address]"}),
        ),
        (
            file(None, None, Some("QUJD"), Some("application/pdf")),
            json!({"type": "text", "text": "[file left out: it is \"application/pdf\"; PDF and text are taken]"}),
        ),
        (
            file(None, None, Some("IAo="), Some("text/plain")),
            json!({"type": "text", "text": "[file left out: its text is blank]"}),
        ),
        (
            file(None, None, Some("/w=="), Some("text/plain")),
            json!({"type": "text", "text": "[file left out: its text is not UTF-8]"}),
        ),
    ];
    for (body, wanted) in table {
        let messages = [Message::new(Role::User, [body.into()])];
        let prompt = rendered(Target::ANTHROPIC, &messages, &PromptOptions::new());
        let request: Value = serde_json::from_str(prompt.request.get()).unwrap();
        assert_eq!(request["messages"][0]["content"][0], wanted);
    }
}

/// A PNG's first bytes, with these sides.
fn png(width: u32, height: u32) -> String {
    use base64::Engine;
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    format!("data:image/png;base64,{}", base64::engine::general_purpose::STANDARD.encode(bytes))
}

#[test]
fn images_over_a_limit_give_way_to_words() {
    let images = |count: usize, last: &str| {
        let last = Chunk::image(last);
        let chunks = vec![Chunk::image(PNG); count - 1].into_iter().chain([last]);
        let prompt = rendered(Target::ANTHROPIC, &[Message::new(Role::User, chunks)], &PromptOptions::new());
        let lines = shape(prompt.request.get());
        let left_out: Vec<usize> = (0..count).filter(|at| lines[at + 1].starts_with("  \"[image left out")).collect();
        assert_eq!(prompt.report.len(), left_out.len());
        left_out
    };
    assert!(images(100, PNG).is_empty());
    assert_eq!(images(101, PNG), (0..50).collect::<Vec<_>>());
    assert_eq!(images(150, PNG), (0..50).collect::<Vec<_>>());
    assert_eq!(images(151, PNG), (0..100).collect::<Vec<_>>());
    assert!(images(20, &png(100, 2001)).is_empty());
    assert_eq!(images(21, &png(100, 2001)), [20]);
    assert_eq!(images(1, &png(8001, 1)), [0]);
    // Characters of base64 count, here as in `check`.
    let of = |characters: usize| {
        let image = PNG.replace('=', "A");
        let (label, data) = image.split_once(',').unwrap();
        format!("{label},{data}{}", "A".repeat(characters - data.len()))
    };
    assert!(images(1, &of(5_242_880)).is_empty());
    assert_eq!(images(1, &of(5_242_884)), [0]);
}

#[test]
fn arguments_stand_in_the_prompt_as_they_are() {
    let call = |arguments: &str| {
        let messages = [Message::user("q"), Message::assistant([Chunk::tool_call("t", "f", arguments)])];
        let prompt = rendered(Target::ANTHROPIC, &messages, &PromptOptions::new());
        let text = prompt.request.get();
        let input = text.split_once("\"input\":").unwrap().1.split_once("}]},{\"role\"").unwrap().0.to_owned();
        (input, rules(&prompt)[1..].to_vec())
    };
    let same = r#"{"n" : 1.0e5, "n": 2, "a":"é\n"}"#;
    assert_eq!(call(same), (same.to_owned(), vec![]));
    assert_eq!(call("{\n\t\"a\": 1\r\n}\n"), ("{ \t\"a\": 1  }".to_owned(), vec![]));
    assert_eq!(call(r#"{"a":"\ud83d"}"#), (r#"{"a":"\ufffd"}"#.to_owned(), vec![Rule::SurrogateReplaced]));
    let deep = format!("{}1{}", "{\"a\":".repeat(110), "}".repeat(110));
    assert!(call(&deep).0.starts_with("{\"malformed_arguments\":"));
    assert_eq!(call(&deep).1, [Rule::ArgumentsRepaired]);
}

#[test]
fn what_cannot_be_sent_is_an_error() {
    let render_one = |message: Message| {
        let store = Store::open("memory:").unwrap();
        store.append("chat", &[message]).unwrap();
        render(Target::ANTHROPIC, &store.load("chat").unwrap(), &PromptOptions::new())
    };
    assert!(matches!(render_one(Message::user(" ")), Err(Error::NothingToSend(_))));
    assert!(matches!(render_one(Message::system("be brief")), Err(Error::NothingToSend(_))));
    assert!(matches!(render_one(Message::user("a".repeat(33_554_432))), Err(Error::TooLarge(_))));
}
