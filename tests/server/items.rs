//! Items come back whole: whatever a client sends, in the order and the spelling in which it sent it.

use conversation_store::Store;
use conversation_store::model::ConversationId;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::common::running::Running;
use crate::openai::conversation;

/// Items that have all that an answer has to have, so that nothing is added to them. The tests of the official clients have
/// one of every type.
const WHOLE: &[&str] = &[
    r#"{"id":"msg_1","type":"message","status":"completed","role":"user","content":[{"text":"a\u0000\u00e9","type":"input_text"}]}"#,
    r#"{"id":"msg_2","type":"message","x":[1.50,1E5,-0],"content":[{"type":"input_text","text":"a"},{"b":{"z":1,"a":2},"type":"input_x"},{"type":"input_image","detail":"low","image_url":"u"}],"role":"user","status":"incomplete"}"#,
    r#"{"id":"msg_3","type":"message","role":"developer","content":[],"status":"completed"}"#,
    r#"{"id":"msg_4","type":"message","role":"assistant","content":[{"type":"output_text","text":"","annotations":[],"logprobs":[]}],"phase":"final_answer","status":"completed"}"#,
    r#"{"id":"msg_5","type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[{"z":1}]},{"type":"refusal","refusal":"b"},{"type":"output_x"}],"status":"completed"}"#,
    r#"{"id":"msg_6","type":"message","role":"assistant","content":[{"type":"x"}],"status":"completed"}"#,
    r#"{"id":"msg_7","type":"message","role":"tool","content":[{"type":"input_text","text":"a"}],"status":"completed"}"#,
    r#"{"id":"rs_1","type":"reasoning","encrypted_content":"e","summary":[{"text":"a","type":"summary_text"},{"type":"summary_text","text":"b"}],"content":[{"type":"reasoning_text","text":"c"}]}"#,
    r#"{"id":"fc_1","type":"function_call","arguments":"{ \"b\" : 1.0 ","name":"f","call_id":"c1","namespace":"n","status":"in_progress"}"#,
    r#"{"id":"fco_1","type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a","x":1},{"type":"input_file","file_id":"f"}],"status":"completed"}"#,
    r#"{"id":"ctc_1","type":"custom_tool_call","call_id":"c2","name":"n","input":"text"}"#,
    r#"{"id":"ctco_1","type":"custom_tool_call_output","call_id":"c2","output":"text"}"#,
    r#"{"id":"mcp_1","type":"mcp_call","server_label":"s","name":"n","arguments":"{}","output":null,"error":{"é":"\/"}}"#,
    r#"{"id":"item_1","type":"of_next_year","deep":[[[[{"a":[]}]]]],"n":12345678901234567890123,"e":"\u2028"}"#,
    r#"{"id":"item_2","type":"input_x","is":"an item though it is called like a part"}"#,
];

fn items(text: &str) -> Vec<String> {
    let list: Map<String, Value> = serde_json::from_str(text).unwrap();
    assert_eq!(list["object"], "list");
    let data = text.split_once("\"data\":").unwrap().1;
    let mut stream = serde_json::Deserializer::from_str(data).into_iter::<Vec<Box<RawValue>>>();
    stream.next().unwrap().unwrap().into_iter().map(|item| item.get().to_owned()).collect()
}

#[test]
fn items_come_back_byte_for_byte() {
    let mut server = Running::durable(&[]);
    for size in [1, 2, WHOLE.len()] {
        let path = conversation(&server.client);
        for batch in WHOLE.chunks(size) {
            let body = format!("{{\"items\":[{}]}}", batch.join(", \n"));
            let answer = server.client.send("POST", &format!("{path}/items"), &[], body.as_bytes());
            answer.ok();
            assert_eq!(items(&answer.text()), batch, "as they are answered");
        }
        server.kill_and_restart();
        let listed = server.client.get(&format!("{path}/items?order=asc&limit=100"));
        assert_eq!(items(&listed.text()), WHOLE, "as they are listed, {size} at a time");
        for item in WHOLE {
            let id = item.split('"').nth(3).unwrap();
            assert_eq!(server.client.get(&format!("{path}/items/{id}")).text(), *item);
        }
    }
}

/// Any JSON within an item.
#[test]
fn generated_items_come_back() {
    let server = Running::open();
    let path = conversation(&server.client);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut number = 0;
    for _ in 0..40 {
        let items: Vec<String> = (0..20)
            .map(|_| {
                number += 1;
                generated(&mut runner, number)
            })
            .collect();
        let body = format!("{{\"items\":[{}]}}", items.join(","));
        let answer = server.client.send("POST", &format!("{path}/items"), &[], body.as_bytes());
        answer.ok();
        let listed = server.client.get(&format!("{path}/items?limit=20"));
        let mut listed = self::items(&listed.text());
        listed.reverse();
        assert_eq!(listed, items);
    }
}

fn generated(runner: &mut proptest::test_runner::TestRunner, number: usize) -> String {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree as _;
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        "-?[1-9][0-9]{0,3}\\.[0-9]{1,4}(E[0-9])?",
        any::<String>().prop_map(|text| Value::from(text).to_string()),
    ];
    let json = leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(","))),
            prop::collection::vec(("[a-z]{1,6}", inner), 0..4).prop_map(|fields| {
                let mut seen = std::collections::HashSet::new();
                let fields = fields.into_iter().filter(|(name, _)| seen.insert(name.clone()));
                format!(
                    "{{{}}}",
                    fields.map(|(name, value)| format!("\"{name}\":{value}")).collect::<Vec<_>>().join(",")
                )
            }),
        ]
    });
    let text = any::<String>().prop_map(|text| Value::from(text).to_string());
    let known = (prop::sample::select(vec!["input_text", "output_text"]), text.clone(), json.clone())
        .prop_map(|(kind, text, more)| format!("{{\"type\":\"{kind}\",\"text\":{text},\"more\":{more}}}"));
    let refusal = (text, json.clone())
        .prop_map(|(text, more)| format!("{{\"type\":\"refusal\",\"refusal\":{text},\"text\":{more}}}"));
    let unknown = (prop::sample::select(vec!["x", "input_image"]), json.clone())
        .prop_map(|(kind, text)| format!("{{\"type\":\"{kind}\",\"text\":{text}}}"));
    let part = prop_oneof![known, refusal, unknown];
    let role = prop::sample::select(vec!["user", "assistant", "system", "developer"]);
    let message = (role, prop::collection::vec(part, 0..4), json.clone()).prop_map(|(role, parts, more)| {
        format!(
            "\"type\":\"message\",\"role\":\"{role}\",\"more\":{more},\"content\":[{}],\"status\":\"completed\"",
            parts.join(",")
        )
    });
    let kinds = vec!["mcp_call", "web_search_call", "x_kind", "shell_call_output"];
    let other = (prop::sample::select(kinds), json.clone())
        .prop_map(|(kind, more)| format!("\"type\":\"{kind}\",\"more\":{more}"));
    let output = (any::<String>(), json).prop_map(|(text, more)| {
        format!("\"type\":\"function_call_output\",\"call_id\":\"c\",\"more\":{more},\"output\":{},\"status\":\"completed\"", Value::from(text))
    });
    let item = prop_oneof![message, other, output].prop_map(move |rest| format!("{{\"id\":\"id_{number}\",{rest}}}"));
    item.new_tree(runner).unwrap().current()
}

/// A page's memory is bounded by bytes too: it ends early, and says that there is more.
#[test]
fn a_page_of_large_items_is_cut() {
    let server = Running::open();
    let path = conversation(&server.client);
    let text = "x".repeat(6 * 1024 * 1024);
    for _ in 0..5 {
        let item = serde_json::json!({ "items": [{ "role": "user", "content": text }] });
        server.client.post(&format!("{path}/items"), &item).ok();
    }
    for order in ["asc", "desc"] {
        let (mut seen, mut pages, mut after) = (0, 0, String::new());
        loop {
            let page = server.client.get(&format!("{path}/items?limit=100&order={order}{after}")).ok();
            (seen, pages) = (seen + page["data"].as_array().unwrap().len(), pages + 1);
            if page["has_more"] == false {
                break;
            }
            after = format!("&after={}", page["last_id"].as_str().unwrap());
        }
        assert!(seen == 5 && pages > 1, "{order}: {seen} on {pages} pages");
    }
}

/// Whoever asks for the newest messages of a large conversation gets a page of them, and the server holds no more than that.
#[test]
fn a_page_takes_memory_for_what_it_has() {
    const MESSAGE: u64 = 8 * 1024 * 1024;
    const COUNT: u64 = 40;
    let mut server = Running::durable(&[]);
    let path = conversation(&server.client);
    let text = "x".repeat(usize::try_from(MESSAGE).unwrap());
    let item = serde_json::json!({ "items": [{ "role": "user", "content": text }] });
    server.client.post(&format!("{path}/items"), &item).ok();
    let id = path.rsplit('/').next().unwrap();
    // What the server stored of it, so often as if it had come so often.
    server.kill();
    let store = Store::open(&format!("sled:{}", server.dir.path().join("store").display())).unwrap();
    let id_of_store = id.strip_prefix("conv_").unwrap_or(id).parse::<ConversationId>().unwrap();
    let mut message = store.load_raw(id_of_store).unwrap().remove(0).message;
    for number in 1..COUNT {
        message.metadata.id = Some(format!("msg_{number}"));
        store.append(id_of_store, std::slice::from_ref(&message)).unwrap();
    }
    store.close().unwrap();
    drop(store);
    server.restart();
    let newest = format!("/api/v1/conversations/{id}/messages?newest=100");
    let pages = ["", "?hidden=1", "?from=0"].map(|query| format!("/pages/conversations/{id}{query}"));
    let items = ["asc", "desc"].map(|order| format!("{path}/items?limit=100&order={order}"));
    let mut most = 0;
    for page in pages.into_iter().chain(items).chain([newest.clone()]) {
        // Without the memory that earlier requests left.
        server.kill_and_restart();
        let grown = server.growth(|| assert_eq!(server.client.get(&page).status, 200, "{page}"));
        println!("{page}: {} MiB", grown >> 20);
        most = most.max(grown);
    }
    // An answer of 16 MiB is several times in memory: as messages, as items, as JSON.
    assert!(most < COUNT * MESSAGE, "{most} bytes");
    let messages = server.client.get(&newest).ok();
    let indexes: Vec<u64> =
        messages["messages"].as_array().unwrap().iter().map(|message| message["index"].as_u64().unwrap()).collect();
    assert!((1..=3).contains(&indexes.len()) && indexes.last() == Some(&(COUNT - 1)), "{indexes:?}");
}
