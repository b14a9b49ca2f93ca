//! What right prompts for Amazon's Converse show.

use conversation_store::model::{Body, Chunk, File, Json, Message, Metadata, Native, Role};
use conversation_store::provider::{Level, PromptOptions, Target, Thinking, check, parse, render};
use conversation_store::{Rule, Store};
use serde_json::{Value, json};

const TARGET: Target = Target::BEDROCK_CONVERSE;

fn prompt(messages: &[Message], model: Option<&str>) -> (Value, Vec<Rule>) {
    let store = Store::open("memory:").unwrap();
    store.append("chat", messages).unwrap();
    let options = model.into_iter().fold(PromptOptions::new(), PromptOptions::with_model);
    let prompt = render(TARGET, &store.load("chat").unwrap(), &options).unwrap();
    let findings = check(TARGET, prompt.request.get()).unwrap();
    assert!(findings.iter().all(|finding| finding.level != Level::Hard), "{findings:?}");
    let rules = prompt.report.iter().map(|line| line.rule).collect();
    (serde_json::from_str(prompt.request.get()).unwrap(), rules)
}

fn document(name: &str) -> Chunk {
    let (name, data, mime_type) = (Some(name.to_owned()), Some("JVBERi0xLjQK".to_owned()), None);
    Body::File(File { name, url: None, data, mime_type }).into()
}

fn by_bedrock(chunks: impl IntoIterator<Item = Chunk>) -> Message {
    let mut message = Message::assistant(chunks);
    message.metadata = Metadata { provider: Some("bedrock".to_owned()), ..Metadata::default() };
    message
}

#[test]
fn documents_have_names_of_their_own_and_words_beside_them() {
    let messages = [
        Message::new(Role::User, [document("a.pdf")]),
        Message::assistant([Chunk::text("Read.")]),
        Message::new(Role::User, [Chunk::text("And?"), document("a-pdf")]),
    ];
    let (request, report) = prompt(&messages, None);
    let first = &request["messages"][0]["content"];
    assert_eq!(
        (&first[0]["text"], &first[1]["document"]["name"]),
        (&json!("The document is attached."), &json!("a-pdf"))
    );
    assert_eq!(request["messages"][2]["content"][1]["document"]["name"], "a-pdf (2)");
    assert_eq!(report, [Rule::Altered; 3]);
}

/// What came on another wire was never a block of this one.
#[test]
fn a_block_of_this_wire_alone_can_be_made_anew() {
    let report = |wire: &str| {
        let native = Native { wire: wire.to_owned(), json: Json::new(r#"{"text":"something else"}"#).unwrap() };
        prompt(&[Message::new(Role::User, [Chunk { native: Some(native), ..Chunk::text("said") }])], None).1
    };
    assert_eq!(report("bedrock-converse"), [Rule::Altered]);
    assert_eq!(report("anthropic"), []);
}

#[test]
fn thinking_without_words_is_in_no_tags() {
    let store = Store::open("memory:").unwrap();
    let thought = Body::Thinking { text: String::new(), signature: None, redacted: None };
    let answer = Message::assistant([thought.into(), Chunk::text("said")]);
    store.append("chat", &[Message::user("q"), answer, Message::user("next")]).unwrap();
    let options = PromptOptions::new().with_thinking(Thinking::Tagged);
    let prompt = render(TARGET, &store.load("chat").unwrap(), &options).unwrap();
    let request: Value = serde_json::from_str(prompt.request.get()).unwrap();
    assert_eq!(request["messages"][1]["content"], json!([{ "text": "said" }]));
    assert_eq!(prompt.report.iter().map(|line| line.rule).collect::<Vec<_>>(), [Rule::ThinkingLeftOut]);
}

#[test]
fn the_oldest_documents_give_way_in_steps() {
    let held = |count: usize| {
        let documents = (0..count).map(|at| document(&format!("D{at}")));
        let (request, report) = prompt(&[Message::new(Role::User, documents.chain([Chunk::text("Read.")]))], None);
        let blocks = request["messages"][0]["content"].as_array().unwrap();
        let held = blocks.iter().filter(|block| block.get("document").is_some()).count();
        (held, report.iter().filter(|rule| **rule == Rule::LeftOut).count())
    };
    assert_eq!([5, 6, 7, 8].map(held), [(5, 0), (4, 2), (5, 2), (4, 4)]);
}

#[test]
fn tools_that_were_called_are_declared_and_ids_are_the_models() {
    let messages = [
        Message::user("Look."),
        Message::assistant([Chunk::tool_call("functions.ls:0", "ls", r#"{"path":"."}"#)]),
        Message::tool("functions.ls:0", "src"),
    ];
    let id = |model| {
        let (request, _) = prompt(&messages, model);
        assert_eq!(request["toolConfig"]["tools"][0]["toolSpec"]["name"], "ls");
        let (call, result) = (&request["messages"][1]["content"][0], &request["messages"][2]["content"][0]);
        assert_eq!(call["toolUse"]["toolUseId"], result["toolResult"]["toolUseId"]);
        call["toolUse"]["toolUseId"].as_str().unwrap().to_owned()
    };
    assert_eq!(id(Some("moonshot.kimi-k2-thinking")), "functions.ls:0");
    assert!(id(None).starts_with("call_") && id(Some("us.anthropic.claude-sonnet-4-6")).starts_with("call_"));
}

#[test]
fn reasoning_goes_back_to_who_takes_it() {
    let request = r#"[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[
        {"reasoningContent":{"reasoningText":{"text":"hm"}}},{"text":"b"}]},{"role":"user","content":[{"text":"c"}]}]"#;
    let unsigned = parse(TARGET, request).unwrap().messages;
    let signed = Body::Thinking { text: "hm".to_owned(), signature: Some("c2ln".to_owned()), redacted: None };
    let signed = [Message::user("a"), by_bedrock([signed.clone().into(), Chunk::text("b")]), Message::user("c")];
    let goes = |messages: &[Message], model| {
        let (request, _) = prompt(messages, model);
        request["messages"][1]["content"][0].get("reasoningContent").is_some()
    };
    let models = [None, Some("us.deepseek.r1-v1:0"), Some("us.anthropic.claude-sonnet-4-6")];
    assert_eq!(models.map(|model| goes(&unsigned, model)), [false, true, false]);
    assert_eq!(models.map(|model| goes(&signed, model)), [true; 3]);
    // Of whom it is is one rule of all wires: what is not stated counts as the target's own, and the report states that.
    let [asked, mut answer, last] = signed;
    answer.metadata.provider = None;
    let (request, report) = prompt(&[asked.clone(), answer.clone(), last.clone()], None);
    assert!(request["messages"][1]["content"][0].get("reasoningContent").is_some());
    assert_eq!(report, [Rule::OriginAssumed]);
    answer.metadata.provider = Some("anthropic".to_owned());
    assert_eq!(prompt(&[asked, answer, last], None).1, [Rule::ThinkingLeftOut]);
}
