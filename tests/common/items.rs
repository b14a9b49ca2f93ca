//! Messages that carry items of Responses' own, or parts of Gemini's: whole, damaged, out of place.

use conversation_store::model::{Body, Chunk, File, Image, Json, Message, Native, Output, Role};
use proptest::prelude::*;

const RESPONSES: &str = "openai-responses";
const GEMINI: &str = "gemini";
const CONVERSE: &str = "bedrock-converse";

/// Items and parts as Responses writes them. `ID` is a call's or an item's.
const ITEMS: &[&str] = &[
    r#"{"type":"web_search_call","id":"ws_ID","status":"completed","action":{"type":"search","query":"x"}}"#,
    r#"{"type":"web_search_call","status":"completed"}"#,
    r#"{"type":"code_interpreter_call","id":"ci_ID","code":"1","container_id":"c","outputs":null,"status":"completed"}"#,
    r#"{"type":"mcp_call","id":"mcp_ID","arguments":"{}","name":"n","server_label":"s"}"#,
    r#"{"type":"computer_call","id":"cu_ID","call_id":"ID","pending_safety_checks":[],"status":"completed"}"#,
    r#"{"type":"function_call","call_id":"ID","name":"read_file","arguments":"{}"}"#,
    r#"{"type":"function_call_output","call_id":"ID","output":"x"}"#,
    r#"{"type":"item_reference","id":"msg_ID"}"#,
    r#"{"type":"summary","id":"cmp_ID","encrypted_content":"AA"}"#,
    r#"{"type":"input_image","file_id":"file-ID","detail":"auto"}"#,
    r#"{"type":"input_file","file_id":"file-ID"}"#,
    r#"{"type":"input_text","text":"x"}"#,
    r#"{"type":"hologram","id":"h_ID"}"#,
    "[1]",
    "\"text\"",
];

/// Parts as Gemini writes them.
const PARTS: &[&str] = &[
    r#"{"executableCode":{"language":"PYTHON","code":"print(1)"}}"#,
    r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}"#,
    r#"{"executableCode":{"code":1}}"#,
    r#"{"toolCall":{"id":"ID"}}"#,
    r#"{"functionCall":{"name":"read_file","args":{}}}"#,
    r#"{"functionResponse":{"name":"read_file","response":{}}}"#,
    r#"{"fileData":{"fileUri":"https://x.test/files/ID"}}"#,
    r#"{"text":""}"#,
    r#"{"text":"x","inlineData":{"mimeType":"image/png","data":"AA=="}}"#,
    "{}",
    "null",
];

const IDS: &[&str] = &["1", "2", "call_0", "a b", ""];

/// A message of mostly such chunks.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    let provider = || {
        proptest::sample::select(
            &[None, Some("openai"), Some("gemini"), Some("vertex"), Some("xai"), Some("bedrock")][..],
        )
    };
    let role = prop_oneof![6 => Just(Role::Assistant), 1 => Just(Role::User), 1 => Just(Role::Tool)];
    let chunks = prop_oneof![
        proptest::collection::vec(responses(), 1..6),
        proptest::collection::vec(gemini(), 1..6),
        proptest::collection::vec(converse(), 1..6)
    ];
    (role, provider(), chunks).prop_map(|(role, provider, chunks)| {
        let mut message = Message::new(role, chunks);
        message.metadata.provider = provider.map(str::to_owned);
        message
    })
}

fn responses() -> impl Strategy<Value = Chunk> {
    let id = || proptest::sample::select(IDS);
    prop_oneof![
        2 => (id(), proptest::sample::select(ITEMS)).prop_map(|(id, json)| opaque("openai", id, json)),
        3 => (id(), proptest::sample::select(&[
            r#"{"id":"rs_ID","type":"reasoning","summary":[{"type":"summary_text","text":"hmm"}],"encrypted_content":"c2ln","status":null}"#,
            r#"{"id":"rs_ID","type":"reasoning","summary":[{"type":"summary_text","text":"hmm"}],"encrypted_content":"c2ln"}"#,
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hmm"}],"encrypted_content":"c2ln"}"#,
            r#"{"id":"rs_ID","type":"reasoning","summary":[{"type":"summary_text","text":"hmm"}]}"#,
            r#"{"id":"rs_ID","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"x"}],"encrypted_content":"c2ln"}"#,
        ][..])).prop_map(|(id, json)| with(thinking("hmm"), RESPONSES, id, json)),
        3 => (id(), proptest::sample::select(&[
            r#"{"id":"fc_ID","type":"function_call","call_id":"ID","name":"read_file","arguments":"{}","status":"completed"}"#,
            r#"{"arguments":"{}","id":"fc_ID","type":"function_call","call_id":"other","name":"read_file"}"#,
            r#"{"type":"function_call","call_id":"ID","name":"read_file","arguments":"{}","colour":"red"}"#,
        ][..])).prop_map(|(id, json)| with(call(id, "read_file", "{}", None), RESPONSES, id, json)),
        1 => (id(), proptest::sample::select(&[
            r#"{"type":"custom_tool_call","id":"ctc_ID","call_id":"ID","name":"patch","input":"*** Begin"}"#,
            r#"{"type":"custom_tool_call","call_id":"ID","name":"patch"}"#,
        ][..])).prop_map(|(id, json)| with(call(id, "patch", "*** Begin", None), RESPONSES, id, json)),
        3 => (id(), proptest::sample::select(&[
            r#"{"id":"msg_ID","type":"message","role":"assistant","status":"completed","phase":"final_answer","content":[{"type":"output_text","text":"cited","annotations":[],"logprobs":[]}]}"#,
            r#"{"id":"msg_ID","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"other","annotations":[]}]}"#,
            r#"{"type":"output_text","text":"cited","annotations":[{"type":"url_citation","url":"https://x.test","title":"X","start_index":0,"end_index":1}]}"#,
            r#"{"type":"output_text","text":"cited","annotations":"none"}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"cited"}]}"#,
        ][..])).prop_map(|(id, json)| with(text(), RESPONSES, id, json)),
        1 => (id(), proptest::sample::select(&[
            r#"{"type":"input_image","image_url":"https://x.test/a.png","detail":"high"}"#,
            r#"{"type":"input_image","image_url":"ftp://x.test","detail":"high"}"#,
        ][..])).prop_map(|(id, json)| with(image(), RESPONSES, id, json)),
        1 => Just(Chunk::text("plain")),
    ]
}

fn gemini() -> impl Strategy<Value = Chunk> {
    let id = || proptest::sample::select(IDS);
    let signature = || proptest::option::of(proptest::sample::select(&["c2ln", "c2-_bg", "%%%", ""][..]));
    prop_oneof![
        2 => (id(), proptest::sample::select(PARTS)).prop_map(|(id, json)| opaque("gemini", id, json)),
        2 => (id(), proptest::sample::select(&[
            r#"{"text":"hmm","thought":true,"thoughtSignature":"c2ln"}"#,
            r#"{"text":"hmm","thought":true}"#,
            r#"{"text":"hmm","thought":true,"thoughtSignature":"%%%"}"#,
            r#"{"thoughtSignature":"c2ln"}"#,
        ][..])).prop_map(|(id, json)| with(thinking("hmm"), GEMINI, id, json)),
        4 => (id(), signature(), proptest::sample::select(&[
            r#"{"functionCall":{"name":"read_file","args":{}},"thoughtSignature":"c2ln"}"#,
            r#"{"functionCall":{"id":"ID","name":"read_file","args":{}},"thoughtSignature":"c2ln"}"#,
            r#"{"functionCall":{"id":"ID","name":"read_file"}}"#,
            r#"{"functionCall":{"name":"other","args":{}},"thoughtSignature":"c2ln"}"#,
            r#"{"functionCall":{"name":"read_file","args":[]},"thoughtSignature":"c2ln"}"#,
        ][..])).prop_map(|(id, signature, json)| with(call(id, "read_file", "{}", signature), GEMINI, id, json)),
        2 => (id(), proptest::sample::select(&[
            r#"{"text":"cited","thoughtSignature":"c2ln"}"#,
            r#"{"text":"cited","thoughtSignature":"%%%"}"#,
            r#"{"text":"other"}"#,
        ][..])).prop_map(|(id, json)| with(text(), GEMINI, id, json)),
        1 => Just(with(Body::Text { text: String::new(), annotations: None }, GEMINI, "", r#"{"text":"","thoughtSignature":"c2ln"}"#)),
        1 => Just(with(image(), GEMINI, "", r#"{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="},"thoughtSignature":"c2ln"}"#)),
        1 => Just(Chunk::text("plain")),
    ]
}

/// Opaque blocks of Converse, valid and not.
const BLOCKS: &[&str] = &[
    r#"{"cachePoint":{"type":"default"}}"#,
    r#"{"hologram":{"beams":[1]}}"#,
    r#"{"document":{"name":"Doc ID","source":{"content":[{"text":"x"}]}}}"#,
    r#"{"document":{"name":"a.pdf","source":{}}}"#,
    r#"{"toolUse":{"toolUseId":"ID","name":"read_file","input":{}}}"#,
    r#"{"toolResult":{"toolUseId":"ID","content":[]}}"#,
    r#"{"reasoningContent":{"redactedContent":"eA=="}}"#,
    r#"{"text":"","cachePoint":{"type":"default"}}"#,
    r#"{"text":""}"#,
    "{}",
    "null",
    "[1]",
];

fn converse() -> impl Strategy<Value = Chunk> {
    let id = || proptest::sample::select(IDS);
    let file = || {
        let (name, data) = (Some("Doc".to_owned()), Some("JVBERi0xLjQK".to_owned()));
        Body::File(File { name, url: None, data, mime_type: Some("application/pdf".to_owned()) })
    };
    let result = |id: &str| Body::ToolResult {
        tool_call_id: id.to_owned(),
        name: None,
        output: Output::Text("found".to_owned()),
        is_error: Some(false),
    };
    prop_oneof![
        3 => (id(), proptest::sample::select(BLOCKS)).prop_map(|(id, json)| opaque("bedrock", id, json)),
        2 => (id(), proptest::sample::select(&[
            r#"{"reasoningContent":{"reasoningText":{"text":"hmm","signature":"c2ln"}}}"#,
            r#"{"reasoningContent":{"reasoningText":{"text":"hmm"}}}"#,
            r#"{"reasoningContent":{"reasoningText":{"signature":"c2ln"}}}"#,
        ][..])).prop_map(|(id, json)| with(thinking("hmm"), CONVERSE, id, json)),
        3 => (id(), proptest::sample::select(&[
            r#"{"toolUse":{"toolUseId":"ID","name":"read_file","input":{},"type":"tool_use"}}"#,
            r#"{"toolUse":{"toolUseId":"other","name":"read_file","input":{}}}"#,
            r#"{"toolUse":{"toolUseId":"ID","name":"read_file","input":"{}"}}"#,
        ][..])).prop_map(|(id, json)| with(call(id, "read_file", "{}", None), CONVERSE, id, json)),
        2 => (id(), proptest::sample::select(&[
            r#"{"toolResult":{"toolUseId":"ID","content":[{"text":"found"}],"status":"success","seen":1}}"#,
            r#"{"toolResult":{"toolUseId":"ID","content":[{"text":" "}],"status":"error"}}"#,
            r#"{"toolResult":{"toolUseId":"other","content":[{"text":"found"}]}}"#,
        ][..])).prop_map(move |(id, json)| with(result(id), CONVERSE, id, json)),
        2 => (id(), proptest::sample::select(&[
            r#"{"citationsContent":{"content":[{"text":"cited"}],"citations":[{"title":"x"}]}}"#,
            r#"{"text":"cited","type":"text"}"#,
            r#"{"text":"other"}"#,
        ][..])).prop_map(|(id, json)| with(text(), CONVERSE, id, json)),
        2 => (id(), proptest::sample::select(&[
            r#"{"document":{"name":"Doc ID","format":"pdf","source":{"bytes":"JVBERi0xLjQK"},"context":"c"}}"#,
            r#"{"document":{"name":"Doc","format":"pdf","source":{"s3Location":{"uri":"s3://b/k"}}}}"#,
            r#"{"document":{"format":"pdf","source":{"bytes":"JVBERi0xLjQK"}}}"#,
        ][..])).prop_map(move |(id, json)| with(file(), CONVERSE, id, json)),
        1 => Just(Chunk::from(file())),
        1 => Just(Chunk::text("plain")),
    ]
}

fn text() -> Body {
    Body::Text { text: "cited".to_owned(), annotations: None }
}

fn image() -> Body {
    Body::Image(Image { url: "https://x.test/a.png".to_owned(), mime_type: None })
}

fn thinking(text: &str) -> Body {
    Body::Thinking { text: text.to_owned(), signature: Some("c2ln".to_owned()), redacted: None }
}

fn call(id: &str, name: &str, arguments: &str, signature: Option<&str>) -> Body {
    Body::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        signature: signature.map(str::to_owned),
        server: false,
    }
}

fn opaque(provider: &str, id: &str, json: &str) -> Chunk {
    let json = Json::new(json.replace("ID", id)).unwrap();
    Body::Opaque { provider: provider.to_owned(), kind: "block".to_owned(), json }.into()
}

fn with(body: Body, wire: &str, id: &str, json: &str) -> Chunk {
    let json = Json::new(json.replace("ID", id)).unwrap();
    Chunk { native: Some(Native { wire: wire.to_owned(), json }), ..Chunk::from(body) }
}
