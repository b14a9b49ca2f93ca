//! Databases: those of `llm`, of Open WebUI, in archives, and hostile ones.

use std::path::{Path, PathBuf};

use conversation_store::Store;
use conversation_store::model::{Body, Message};
use conversation_store::transfer::ImportOptions;
use rusqlite::Connection;

use super::hostile::zipped;
use super::{assert_works, conversations, count, imported, messages, run, unanswered};

/// What versions of llm up to 0.31 write.
const RESPONSES: &str = "
    CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
    CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT,
        options_json TEXT, response TEXT, response_json TEXT, conversation_id TEXT, duration_ms INTEGER,
        datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER);
    CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, arguments TEXT, tool_call_id TEXT);
    CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, output TEXT, tool_call_id TEXT);";

/// A conversation of it.
const ASKED_THE_TIME: &str = "
    INSERT INTO conversations VALUES ('c1', 'Time', 'm');
    INSERT INTO responses VALUES
        ('r1', 'm', 'What time is it?', 'Be brief.', NULL, '{}', '', NULL, 'c1', 10, '2026-01-02T03:04:05', 5, 2),
        ('r2', 'm', '', 'Be brief.', NULL, '{}', 'Noon.', NULL, 'c1', 10, '2026-01-02T03:04:06', 9, 3);
    INSERT INTO tool_calls VALUES (1, 'r1', 1, 'now', '{}', 'call_1');
    INSERT INTO tool_results VALUES (1, 'r2', 1, 'now', '12:00', 'call_1');";

/// What 0.32 adds.
const THREADS: &str = r#"
    CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
    CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT, datetime_utc TEXT, source TEXT);
    CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT, provider_metadata TEXT);
    CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, tool_name TEXT, text TEXT, payload TEXT);
    CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT, datetime_utc TEXT);
    CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, model TEXT,
        resolved_model TEXT, options_json TEXT, schema_id TEXT, input_tokens INTEGER, output_tokens INTEGER,
        token_details TEXT, duration_ms INTEGER, datetime_utc TEXT, response_json TEXT);"#;

/// Two turns of a thread: a question about a fragment and a picture, with a call; and a branch of its first message.
const ABOUT_A_NOVEL: &str = r#"
    INSERT INTO fragments VALUES (7, 'h', 'It was a dark night.', NULL, NULL);
    INSERT INTO attachments VALUES ('a1', 'image/png', NULL, NULL, x'0102');
    INSERT INTO messages VALUES ('m0', NULL, 'system', NULL), ('m1', 'm0', 'user', NULL), ('m2', 'm1', 'assistant', NULL),
        ('m3', 'm2', 'tool', NULL), ('m4', 'm3', 'assistant', '{"openai":{"id":"resp_1"}}'), ('m5', 'm1', 'assistant', NULL);
    INSERT INTO parts VALUES (1, 'm0', 0, 'text', NULL, 'Be brief.', NULL),
        (2, 'm1', 0, 'text', NULL, NULL, '{"text_ref":[{"literal":"Read: "},{"fragment":7},{"literal":" Why?"}]}'),
        (3, 'm1', 1, 'attachment', NULL, NULL, '{"attachment":{"id":"a1"}}'),
        (4, 'm2', 0, 'reasoning', NULL, '', '{"redacted":true,"provider_metadata":{"openai":{"id":"rs_1","encrypted_content":"ENC"}}}'),
        (5, 'm2', 1, 'tool_call', 'look', NULL, '{"name":"look","arguments":{"at": 1},"tool_call_id":"c1"}'),
        (6, 'm3', 0, 'tool_result', 'look', NULL, '{"name":"look","output":"no moon","tool_call_id":"c1","exception":"Dark","attachments":[{"id":"a1"}]}'),
        (7, 'm4', 0, 'text', NULL, 'No moon.', NULL), (8, 'm4', 1, 'hologram', NULL, NULL, '{"x":1}'),
        (9, 'm5', 0, 'text', NULL, 'Who knows.', NULL);
    INSERT INTO threads VALUES ('t1', 'Novel', 'm4', NULL, '2026-08-05 01:02:03+00:00');
    INSERT INTO turns VALUES
        ('u1', 't1', 'm1', 'm2', 'gpt-5', 'gpt-5-2026', '{"temperature":1}', NULL, 5, 2, NULL, 10, '2026-08-05T01:02:03+00:00', '{"id":"resp_1"}'),
        ('u2', 't1', 'm3', 'm4', 'gpt-5', NULL, NULL, NULL, 9, 3, NULL, 10, '2026-08-05T01:02:04+00:00', NULL),
        ('u3', 't1', 'm1', 'm5', 'gpt-5', NULL, NULL, NULL, 1, 1, NULL, 5, '2026-08-05T01:02:05+00:00', NULL);"#;

fn database(dir: &Path, name: &str, sql: &[&str]) -> PathBuf {
    let path = dir.join(name);
    let database = Connection::open(&path).unwrap();
    database.execute_batch(&sql.concat()).unwrap();
    path
}

/// A store with what a database holds.
fn taken(sql: &[&str]) -> (Store, super::Run) {
    let dir = crate::common::tempdir().unwrap();
    let path = database(dir.path(), "logs.db", sql);
    let store = Store::open("memory:").unwrap();
    let run = run(Some(&store), &path, &ImportOptions::default());
    (store, run)
}

fn roles(said: &[Message]) -> Vec<&str> {
    said.iter().map(|message| message.role.as_str()).collect()
}

fn words(said: &[Message]) -> Vec<String> {
    let texts = said.iter().flat_map(|message| &message.chunks).filter_map(|chunk| match &chunk.body {
        Body::Text { text, .. } => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn the_responses_of_llm_are_read() {
    let (store, run) = taken(&[RESPONSES, ASKED_THE_TIME]);
    assert_eq!(run.summary.unwrap().messages, 5);
    let said = messages(&store, "llm:c1");
    assert_eq!(roles(&said), ["system", "user", "assistant", "tool", "assistant"]);
    assert_eq!(said[4].metadata.created_at.unwrap().to_string(), "2026-01-02T03:04:06Z");
    assert!(unanswered(&said).is_empty());
    assert_works(&store);
}

#[test]
fn the_threads_of_llm_are_read() {
    let (store, run) = taken(&[RESPONSES, THREADS, ABOUT_A_NOVEL]);
    let summary = run.summary.unwrap();
    println!(
        "logs.db | {} | {} | {} | {} | {} | {:?}",
        summary.conversations,
        summary.messages,
        summary.branches,
        count(&store, "tool_call"),
        count(&store, "thinking"),
        summary.skipped
    );
    assert_eq!((summary.conversations, summary.messages, summary.branches, summary.failed), (1, 5, 1, 0));
    assert_eq!(run.conversations[0].title.as_deref(), Some("Novel"));
    let said = messages(&store, "llm:t1");
    assert_eq!(roles(&said), ["system", "user", "assistant", "tool", "assistant"]);
    assert_eq!(words(&said), ["Be brief.", "Read: It was a dark night. Why?", "No moon."]);
    assert!(matches!(&said[1].chunks[1].body, Body::Image(image) if image.url == "data:image/png;base64,AQI="));
    let thinking = &said[2].chunks[0];
    assert!(matches!(&thinking.body, Body::Thinking { signature: Some(proof), .. } if proof == "ENC"), "{thinking:?}");
    assert_eq!((thinking.id.as_deref(), said[2].metadata.provider.as_deref()), (Some("rs_1"), Some("openai")));
    assert!(
        matches!(&said[2].chunks[1].body, Body::ToolCall { id, arguments, .. } if id == "c1" && arguments == r#"{"at":1}"#)
    );
    assert!(
        matches!(&said[3].chunks[0].body, Body::ToolResult { is_error: Some(true), name: Some(name), .. } if name == "look")
    );
    let metadata = &said[2].metadata;
    assert_eq!((metadata.model.as_deref(), metadata.id.as_deref()), (Some("gpt-5-2026"), Some("u1")));
    assert_eq!(said[4].usage.as_ref().unwrap().as_str(), r#"{"input_tokens":9,"output_tokens":3}"#);
    assert_eq!(said[4].metadata.created_at.unwrap().to_string(), "2026-08-05T01:02:04Z");
    assert!(matches!(&said[4].chunks[1].body, Body::Opaque { kind, .. } if kind == "hologram"));
    assert_eq!(words(&messages(&store, "llm:t1:m5")).last().unwrap(), "Who knows.");
    assert!(unanswered(&said).is_empty());
    assert_works(&store);
}

/// After an upgrade the first turn repeats the responses of its conversation.
#[test]
fn a_conversation_that_went_on_after_the_upgrade_is_one() {
    let upgraded = r#"
        INSERT INTO messages VALUES ('n0', NULL, 'system', NULL), ('n1', 'n0', 'user', NULL), ('n2', 'n1', 'assistant', NULL),
            ('n3', 'n2', 'tool', NULL), ('n4', 'n3', 'assistant', NULL), ('n5', 'n4', 'user', NULL), ('n6', 'n5', 'assistant', NULL);
        INSERT INTO parts VALUES (1, 'n0', 0, 'text', NULL, 'Be brief.', NULL), (2, 'n1', 0, 'text', NULL, 'What time is it?', NULL),
            (3, 'n2', 0, 'tool_call', 'now', NULL, '{"name":"now","arguments":{},"tool_call_id":"call_1"}'),
            (4, 'n3', 0, 'tool_result', 'now', NULL, '{"name":"now","output":"12:00","tool_call_id":"call_1"}'),
            (5, 'n4', 0, 'text', NULL, 'Noon.', NULL), (6, 'n5', 0, 'text', NULL, 'And now?', NULL), (7, 'n6', 0, 'text', NULL, 'Noon.', NULL);
        INSERT INTO threads VALUES ('c1', 'Time', 'n6', NULL, '2026-08-05 01:02:03+00:00');
        INSERT INTO turns VALUES ('u1', 'c1', 'n5', 'n6', 'm', NULL, NULL, NULL, 5, 2, NULL, 10, '2026-08-05T01:02:03+00:00', NULL);"#;
    let dir = crate::common::tempdir().unwrap();
    let store = Store::open("memory:").unwrap();
    let before = database(dir.path(), "before.db", &[RESPONSES, ASKED_THE_TIME]);
    run(Some(&store), &before, &ImportOptions::default()).summary.unwrap();
    let after = database(dir.path(), "after.db", &[RESPONSES, ASKED_THE_TIME, THREADS, upgraded]);
    let again = run(Some(&store), &after, &ImportOptions::default());
    assert_eq!((again.summary.unwrap().added, again.notes), (2, vec![]));
    let said = messages(&store, "llm:c1");
    assert_eq!(roles(&said), ["system", "user", "assistant", "tool", "assistant", "user", "assistant"]);
    assert_eq!(words(&said)[2..], ["Noon.", "And now?", "Noon."]);
    assert_works(&store);
    // A thread that does not repeat them follows them: nothing is left out.
    let alone = "DELETE FROM parts WHERE id = 5; UPDATE turns SET id = 'u1';";
    let other = database(dir.path(), "other.db", &[RESPONSES, ASKED_THE_TIME, THREADS, upgraded, alone]);
    let store = Store::open("memory:").unwrap();
    run(Some(&store), &other, &ImportOptions::default()).summary.unwrap();
    assert_eq!(
        words(&messages(&store, "llm:c1"))[2..],
        ["Noon.", "Be brief.", "What time is it?", "And now?", "Noon."]
    );
}

#[test]
fn the_chats_of_a_webui_db_are_those_of_the_export() {
    let export = std::fs::read_to_string(super::sample("open-webui-export.json")).unwrap();
    let export: Vec<serde_json::Value> = serde_json::from_str(&export).unwrap();
    let dir = crate::common::tempdir().unwrap();
    let tables = "CREATE TABLE auth (id TEXT); CREATE TABLE chat (id TEXT PRIMARY KEY, user_id TEXT, title TEXT, chat JSON,
        created_at BIGINT, updated_at BIGINT, share_id TEXT, archived BOOLEAN, pinned BOOLEAN, meta JSON, folder_id TEXT);";
    let path = database(dir.path(), "webui.db", &[tables]);
    let connection = Connection::open(&path).unwrap();
    for chat in &export {
        let text = |name: &str| chat[name].as_str();
        let row = (text("id"), text("user_id"), text("title"), chat["chat"].to_string(), chat["created_at"].as_i64());
        let sql = "INSERT INTO chat (id, user_id, title, chat, created_at, archived, pinned, meta) VALUES (?1, ?2, ?3, ?4, ?5, 0, 1, '{\"tags\":[\"x\"]}')";
        connection.execute(sql, row).unwrap();
    }
    drop(connection);
    let store = Store::open("memory:").unwrap();
    let summary = run(Some(&store), &path, &ImportOptions::default()).summary.unwrap();
    let (other, run) = imported("chats.json", serde_json::to_string(&export).unwrap());
    let wanted = run.summary.unwrap();
    assert_eq!((summary.messages, summary.branches), (wanted.messages, wanted.branches));
    for id in conversations(&other) {
        let key = other.describe(id).unwrap().key.unwrap();
        assert_eq!(messages(&store, &key), messages(&other, &key));
    }
    let tags = store.describe("open-webui:ow-1").unwrap().tags;
    assert!(tags.iter().any(|tag| tag == "pinned") && tags.iter().any(|tag| tag == "x"), "{tags:?}");
    assert!(!tags.iter().any(|tag| tag == "archived"), "{tags:?}");
    assert_works(&store);
}

#[test]
fn a_database_in_an_archive_is_read_with_its_log() {
    let dir = crate::common::tempdir().unwrap();
    let path = database(dir.path(), "logs.db", &["PRAGMA journal_mode = wal;", RESPONSES]);
    // What a program that still runs has written is in the log beside the database.
    let open = Connection::open(&path).unwrap();
    open.execute_batch(&["PRAGMA wal_autocheckpoint = 0;", ASKED_THE_TIME].concat()).unwrap();
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    let (whole, log) = (read("logs.db"), read("logs.db-wal"));
    drop(open);
    let (store, run) = imported("backup.zip", zipped(&[("llm/logs.db", &whole), ("llm/logs.db-wal", &log)]));
    assert_eq!(run.summary.unwrap().messages, 5, "{:?}", run.notes);
    assert_eq!(messages(&store, "llm:c1").len(), 5);
    let (_, run) = imported("bad.zip", zipped(&[("logs.db", b"SQLite format 3\0 and nothing else")]));
    assert!(run.summary.is_err());
}

#[test]
fn a_database_that_computes_its_rows_is_not_run() {
    let endless = "CREATE TABLE conversations (id TEXT, name TEXT);
        CREATE VIEW responses AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)
            SELECT id, 'c' AS conversation_id, 'hi' AS prompt, 1 AS datetime_utc FROM n;";
    let large = "CREATE TABLE conversations (id TEXT, name TEXT);
        CREATE TABLE responses (id TEXT, conversation_id TEXT, datetime_utc TEXT, prompt TEXT AS (printf('%200000000d', 1)));
        INSERT INTO responses VALUES ('r', 'c', '');";
    for sql in [endless, large] {
        let (_, run) = taken(&[sql]);
        let error = run.summary.unwrap_err().to_string();
        assert!(error.contains("a database with the tables conversations"), "{error}");
    }
    // A message that follows itself, and parts of no message.
    let circle = "INSERT INTO messages VALUES ('a', 'b', 'user', NULL), ('b', 'a', 'user', NULL);
        INSERT INTO parts VALUES (1, 'a', 0, 'text', NULL, 'hi', '[[{'), (2, 'gone', 0, 'text', NULL, 'x', NULL);
        INSERT INTO threads VALUES ('t', NULL, 'a', NULL, NULL), ('u', 'none', 'gone', NULL, NULL);
        INSERT INTO turns (id, thread_id, tip_message_hash) VALUES (1, 't', 'b'), (2, x'00', 3.5);";
    let (store, run) = taken(&[RESPONSES, THREADS, circle]);
    assert_eq!(run.summary.unwrap().failed, 0);
    assert_eq!(words(&messages(&store, "llm:t")), ["hi"]);
    assert_works(&store);
}
