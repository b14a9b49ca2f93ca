//! Rows of stores that kept one chunk a row, and began the message index at 0 again on every append.

use conversation_store::model::Message;
use rusqlite::Connection;
use serde_json::json;

use conversation_store::Store;
use conversation_store::transfer::ImportOptions;

use super::{assert_works, imported, messages};

/// A row of each: role, message index, chunk index, chunk.
type Row = (&'static str, u64, u64, serde_json::Value);

/// The rows as lines of JSON, and as a table of keys and values whose keys sort otherwise than their numbers: the messages, as
/// `role:kind kind`, and the ambiguous cases that were counted. Both are read alike.
fn read(rows: &[Row]) -> (Vec<String>, Vec<String>) {
    let line = |(role, message, chunk, said): &Row| {
        json!({"chunk": said, "role": role, "msgIdx": message, "chunkIdx": chunk}).to_string()
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    let of_lines = said(&imported("chat.jsonl", lines.join("\n")));
    let dir = crate::common::tempdir().unwrap();
    for (file, key) in [("chat.db", "chat/"), ("chat.sqlite", "")] {
        let path = dir.path().join(file);
        let database = Connection::open(&path).unwrap();
        database
            .execute_batch("CREATE TABLE \"kv \"\"1\" (key BLOB PRIMARY KEY, value BLOB); CREATE TABLE other (key, x);")
            .unwrap();
        database.execute("INSERT INTO \"kv \"\"1\" VALUES ('meta', '{\"version\": 1}')", []).unwrap();
        for (at, line) in lines.iter().enumerate() {
            let key = format!("{key}{}", at + 8);
            database.execute("INSERT INTO \"kv \"\"1\" VALUES (?1, ?2)", (key, line.as_bytes())).unwrap();
        }
        drop(database);
        let store = Store::open("memory:").unwrap();
        let run = super::run(Some(&store), &path, &ImportOptions::default());
        assert_eq!(run.conversations.len(), 1, "{:?}", run.conversations);
        assert_eq!(said(&(store, run)), of_lines);
    }
    of_lines
}

fn said((store, run): &(Store, super::Run)) -> (Vec<String>, Vec<String>) {
    assert_eq!(run.summary.as_ref().unwrap().failed, 0, "{:?}", run.conversations);
    assert_works(store);
    let kinds = |message: &Message| message.chunks.iter().map(|chunk| chunk.body.kind()).collect::<Vec<_>>().join(" ");
    let key = store.list(&conversation_store::ListQuery::new()).unwrap().items[0].key.clone().unwrap();
    let said = messages(store, &key);
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
