//! Messages that carry blocks of Anthropic's own, whole or damaged.

use conversation_store::model::{Body, Chunk, Json, Message, Native, Output, Part, PartBody, Role};
use proptest::prelude::*;

/// Blocks as the provider writes them. `ID` is a call's id.
const BLOCKS: &[&str] = &[
    r#"{"type":"server_tool_use","id":"ID","name":"web_search","input":{"query":"x"}}"#,
    r#"{"type":"web_search_tool_result","tool_use_id":"ID","content":[{"type":"web_search_result","url":"https://x.test","title":"X","encrypted_content":"AA","page_age":null}]}"#,
    r#"{"type":"server_tool_use","id":"ID","name":"code_execution","input":{"code":"1"},"caller":{"type":"direct"}}"#,
    r#"{"type":"web_search_tool_result","tool_use_id":"ID","content":{"type":"web_search_tool_result_error","error_code":"unavailable"}}"#,
    r#"{"type":"tool_use","id":"ID","name":"read_file","input":{},"caller":{"type":"direct"}}"#,
    r#"{"type":"tool_use","id":"ID","name":"read_file","input":{},"caller":{"type":"code_execution_20260120","tool_id":"ID"}}"#,
    r#"{"type":"text","text":"cited","citations":[{"type":"web_search_result_location","url":"https://x.test","title":null,"encrypted_index":"BB","cited_text":"c"}]}"#,
    r#"{"type":"text","text":"cited","citations":[{"type":"char_location","cited_text":"c","document_index":0,"document_title":null,"start_char_index":0,"end_char_index":1,"file_id":null}]}"#,
    r#"{"type":"text","text":"cited","citations":[{"type":"hologram_location"}]}"#,
    r#"{"type":"text","text":"\ud83d","citations":null}"#,
    r#"{"type":"tool_result","tool_use_id":"ID","content":[{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"found"}]}]}"#,
    r#"{"type":"tool_result","tool_use_id":"ID","content":[{"type":"text","text":" "}],"is_error":true}"#,
    r#"{"type":"image","source":{"type":"file","file_id":"file_1"}}"#,
    r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"%%%"}}"#,
    r#"{"type":"container_upload","file_id":"file_1"}"#,
    r#"{"type":"summary","content":"summary"}"#,
    r#"{"type":"thinking","thinking":"t","signature":"s"}"#,
    r#"{"type":"server_tool_use","id":"a b","name":"advisor","input":[]}"#,
    "[1]",
    "\"text\"",
];
const IDS: &[&str] = &["srvtoolu_1", "srvtoolu_2", "call_0", "a b", ""];

/// A message of the assistant, or of the user, of such blocks.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    let provider = prop_oneof![2 => Just(None), 2 => Just(Some("anthropic")), 1 => Just(Some("kimi"))];
    let role = prop_oneof![3 => Just(Role::Assistant), 1 => Just(Role::User), 1 => Just(Role::Tool)];
    (role, provider, proptest::collection::vec(chunks(), 1..5)).prop_map(|(role, provider, chunks)| {
        let mut message = Message::new(role, chunks.into_iter().flatten());
        message.metadata.provider = provider.map(str::to_owned);
        message
    })
}

fn chunks() -> impl Strategy<Value = Vec<Chunk>> {
    let one = (block(), proptest::sample::select(IDS), 0..5_u8);
    prop_oneof![
        3 => proptest::sample::select(IDS).prop_map(|id| vec![asked(id, BLOCKS[0]), found(id, BLOCKS[1])]),
        1 => proptest::sample::select(IDS).prop_map(|id| vec![opaque(id, BLOCKS[2]), opaque(id, BLOCKS[3])]),
        1 => (proptest::sample::select(IDS), block()).prop_map(|(id, json)| vec![asked(id, BLOCKS[0]), found(id, json)]),
        2 => proptest::bool::ANY.prop_map(|signed| {
            let signature = signed.then(|| "c2ln".to_owned());
            vec![Body::Thinking { text: "hmm".to_owned(), signature, redacted: None }.into()]
        }),
        1 => Just(vec![Body::Thinking { text: String::new(), signature: None, redacted: Some("ENC".to_owned()) }.into()]),
        6 => one.prop_map(|(json, id, form)| vec![match form {
            0 => opaque(id, json),
            1 => asked(id, json),
            2 => found(id, json),
            3 => with(Body::Text { text: "cited".to_owned(), annotations: Json::new("[]").ok() }, id, json),
            _ => with(call(id, false), id, json),
        }]),
    ]
}

fn block() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(BLOCKS)
}

fn asked(id: &str, json: &str) -> Chunk {
    with(call(id, true), id, json)
}

fn call(id: &str, server: bool) -> Body {
    let (name, arguments) = if server { ("web_search", r#"{"query":"x"}"#) } else { ("read_file", "{}") };
    Body::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        signature: None,
        server,
    }
}

fn found(id: &str, json: &str) -> Chunk {
    let part = Part::from(PartBody::Json { json: Json::new(r#"{"found":1}"#).unwrap() });
    let output = Output::Parts(vec![part]);
    with(Body::ToolResult { tool_call_id: id.to_owned(), name: None, output, is_error: None }, id, json)
}

fn opaque(id: &str, json: &str) -> Chunk {
    let json = Json::new(json.replace("ID", id)).unwrap();
    Body::Opaque { provider: "anthropic".to_owned(), kind: "block".to_owned(), json }.into()
}

fn with(body: Body, id: &str, json: &str) -> Chunk {
    let json = Json::new(json.replace("ID", id)).unwrap();
    Chunk { native: Some(Native { wire: "anthropic".to_owned(), json }), ..Chunk::from(body) }
}
