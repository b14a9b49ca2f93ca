//! Rows of stores that kept one chunk a row, and began the message index at 0 again on every append.

use conversation_store::model::Message;
use serde_json::json;

use super::{assert_works, imported, messages};

/// A row of each: role, message index, chunk index, chunk.
type Row = (&'static str, u64, u64, serde_json::Value);

/// The messages, as `role:kind kind`, and the ambiguous cases that were counted.
fn read(rows: &[Row]) -> (Vec<String>, Vec<String>) {
    let line = |(role, message, chunk, said): &Row| {
        json!({"chunk": said, "role": role, "msgIdx": message, "chunkIdx": chunk}).to_string()
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    let (store, run) = imported("chat.jsonl", lines.join("\n"));
    assert_eq!(run.summary.as_ref().unwrap().failed, 0, "{:?}", run.conversations);
    assert_works(&store);
    let kinds = |message: &Message| message.chunks.iter().map(|chunk| chunk.body.kind()).collect::<Vec<_>>().join(" ");
    let said = messages(&store, "rows:chat");
    let said = said.iter().map(|message| format!("{}:{}", message.role, kinds(message))).collect();
    let skipped = run.conversations[0].skipped.keys().filter(|kind| kind.starts_with("ambiguous:"));
    (said, skipped.cloned().collect())
}

fn text(words: &str) -> serde_json::Value {
    json!({"type": "text", "text": words})
}

#[test]
fn an_index_that_began_again_on_every_append_makes_no_message_of_eleven_chunks() {
    let call = |id: &str| json!({"type": "tool_call", "id": id, "name": "ls", "arguments": "{}"});
    let result = |id: &str| json!({"type": "tool_result", "tool_call_id": id, "content": "src"});
    let thinking = json!({"type": "thinking", "text": "hm"});
    let rows = [
        ("user", 0, 0, text("a")),
        ("assistant", 0, 0, thinking.clone()),
        ("assistant", 0, 1, text("b")),
        ("assistant", 0, 2, call("c1")),
        ("assistant", 0, 3, call("c2")),
        ("tool", 0, 0, result("c1")),
        ("tool", 0, 0, result("c2")),
        ("assistant", 0, 0, thinking),
    ];
    let wanted = [
        "user:text",
        "assistant:thinking text tool_call tool_call",
        "tool:tool_result",
        "tool:tool_result",
        "assistant:thinking",
    ];
    assert_eq!(read(&rows), (wanted.map(str::to_owned).to_vec(), vec![]));
}

#[test]
fn each_ambiguous_case_is_counted() {
    let cases = [
        ("role_changed_within_a_message", ("assistant", 0, 1), 2),
        ("next_message_or_fragment_of_the_same_chunk", ("user", 0, 0), 2),
        ("chunk_missing", ("user", 0, 2), 1),
        ("message_without_its_beginning", ("user", 0, 1), 2),
    ];
    for (kind, (role, message, chunk), count) in cases {
        let first = if kind == "message_without_its_beginning" { 1 } else { 0 };
        let rows = [("user", first, 0, text("a")), (role, message, chunk, text("b"))];
        let (said, ambiguous) = read(&rows);
        assert_eq!((said.len(), ambiguous), (count, vec![format!("ambiguous:{kind}")]), "{kind}");
    }
}
