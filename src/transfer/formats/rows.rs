//! Rows of stores that kept one chunk per row, and began the message index at 0 again on every append.
//!
//! A row is `{conversation, seq, message_index, chunk_index, role, type, data}`, or `{chunk: {type, ...}, role, msgIdx,
//! chunkIdx}`. Rows are sorted by `seq`; a message
//! ends where the role changes, the message index changes, or the chunk index goes back.
//!
//! They are lines of JSON, or the values of a table of keys and values in SQLite. There, a key names the conversation, and ends
//! with the row's number.

use crate::json::fields::{Fields, string};
use crate::model::{Body, Chunk, Line, Message, Role};
use crate::transfer::foreign::{Foreign, Taken};
use crate::transfer::format::{Context, Format, Head, Reader, Tables};
use crate::transfer::take;
#[cfg(feature = "archives")]
use crate::transfer::{
    database::{Database, text},
    foreign::Broken,
};
#[cfg(feature = "archives")]
use rusqlite::types::Value;
#[cfg(feature = "archives")]
use std::collections::BTreeMap;

pub(crate) const FORMAT: Format = Format {
    name: "rows",
    about: "rows of a store that kept one chunk a row",
    read: Some(Reader::Parts { recognise, group, read }),
    tables: Some(Tables {
        #[cfg(feature = "archives")]
        recognise: |database| Ok(!tables_of_rows(database)?.is_empty()),
        #[cfg(feature = "archives")]
        read: read_tables,
    }),
    write: None,
};

/// Types of rows by the names that stores gave them.
const TYPES: &[(&str, &str)] = &[
    ("reasoning", "thinking"),
    ("tool_use", "tool_call"),
    ("function_call", "tool_call"),
    ("tool_output", "tool_result"),
    ("function_call_output", "tool_result"),
    ("content", "text"),
];

/// The fields that only rows have, in each of their spellings.
const ROWS: [&[&str]; 2] =
    [&["message_index", "chunk_index", "role", "type"], &["msgIdx", "chunkIdx", "role", "chunk"]];

fn recognise(head: &Head<'_>) -> bool {
    head.first(is_row)
}

fn is_row(fields: &Fields<'_>) -> bool {
    ROWS.iter().any(|names| names.iter().all(|name| fields.peek(name).is_some()))
}

fn group(text: &str) -> Option<String> {
    let mut fields = Fields::read(text).ok()?;
    ["conversation", "conversation_id", "session_id"].iter().find_map(|name| fields.text(name))
}

struct Row {
    seq: Option<u64>,
    message: u64,
    chunk: u64,
    role: Option<Role>,
    kind: String,
    chunk_of: Option<Chunk>,
    time: Option<crate::model::Timestamp>,
}

fn read(key: &str, lines: Vec<String>, _: &Context<'_>) -> Vec<Taken> {
    let mut foreign = Foreign::new(key);
    let mut rows = Vec::new();
    for line in &lines {
        match row(line) {
            Some(row) => {
                if row.chunk_of.is_none() {
                    foreign.skip("row_without_data");
                }
                rows.push(row);
            }
            None => foreign.skip("row_that_is_no_object"),
        }
    }
    if rows.iter().any(|row| row.seq.is_none()) {
        foreign.skip("rows_without_seq_taken_in_their_order");
    } else {
        rows.sort_by_key(|row| row.seq);
    }
    let mut last: Option<(Option<Role>, u64, u64, String)> = None;
    let mut messages: Vec<(String, Message)> = Vec::new();
    for (place, row) in rows.into_iter().enumerate() {
        let begins = match &last {
            None => true,
            Some((role, message, chunk, kind)) => {
                let (other_role, other_message) = (*role != row.role, *message != row.message);
                let goes_back = row.chunk <= *chunk;
                if other_role && !other_message && !goes_back {
                    // One message cannot have two roles: the index did not begin again where it should have.
                    foreign.skip("ambiguous:role_changed_within_a_message");
                }
                if !other_role
                    && !other_message
                    && goes_back
                    && row.role != Some(Role::Tool)
                    && *kind == row.kind
                    && row.chunk == *chunk
                {
                    foreign.skip("ambiguous:next_message_or_fragment_of_the_same_chunk");
                }
                if !other_role && !other_message && !goes_back && row.chunk > chunk + 1 {
                    foreign.skip("ambiguous:chunk_missing");
                }
                if !other_role && other_message && row.message < *message && row.chunk > 0 {
                    foreign.skip("ambiguous:message_without_its_beginning");
                }
                other_role || other_message || goes_back
            }
        };
        let role = row.role.unwrap_or_else(|| {
            foreign.skip("unknown_role_taken_for_user");
            Role::User
        });
        if begins {
            let id = row.seq.map_or_else(|| format!("row{place}"), |seq| seq.to_string());
            let mut message = Message::new(role, []);
            message.metadata.created_at = row.time;
            messages.push((id, message));
        }
        if let Some((_, message)) = messages.last_mut() {
            message.chunks.extend(row.chunk_of);
        }
        last = Some((row.role, row.message, row.chunk, row.kind));
    }
    for (id, message) in messages {
        let said = if message.chunks.is_empty() { Vec::new() } else { vec![message] };
        foreign.push(Some(id), said);
    }
    vec![Ok(foreign)]
}

/// The tables of keys and values of which one of the first values is a row.
#[cfg(feature = "archives")]
fn tables_of_rows(database: &Database) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    for table in database.tables() {
        let columns = database.columns(table)?;
        if !["key", "value"].iter().all(|name| columns.iter().any(|column| column.eq_ignore_ascii_case(name))) {
            continue;
        }
        let (mut seen, mut has_row) = (0, false);
        database.next_conversation();
        database.rows(
            &format!("SELECT value AS value FROM {} LIMIT {}", quoted(table), Head::VALUES),
            "",
            &mut |mut cells| {
                let value = row_text(cells.remove("value"));
                has_row = value.is_some_and(|value| Fields::read(&value).is_ok_and(|fields| is_row(&fields)));
                seen += 1;
                !has_row && seen < Head::VALUES
            },
        )?;
        if has_row {
            found.push(table.clone());
        }
    }
    Ok(found)
}

#[cfg(feature = "archives")]
fn quoted(table: &str) -> String {
    format!("\"{}\"", table.replace('"', "\"\""))
}

/// A value that may be a row: text, also as bytes.
#[cfg(feature = "archives")]
fn row_text(value: Option<Value>) -> Option<String> {
    match value? {
        Value::Text(text) => Some(text),
        Value::Blob(bytes) => String::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// The conversations of tables of keys and values. A table is read whole: its keys may come in any order.
#[cfg(feature = "archives")]
fn read_tables(
    database: &Database,
    context: &Context<'_>,
    take: &mut dyn FnMut(Taken) -> bool,
) -> rusqlite::Result<()> {
    for table in tables_of_rows(database)? {
        let mut conversations: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
        database.next_conversation();
        let sql = format!("SELECT key AS key, value AS value FROM {} ORDER BY key", quoted(&table));
        database.rows(&sql, "", &mut |mut cells| {
            let key = text(&mut cells, "key").unwrap_or_default();
            if let Some(line) = row_text(cells.remove("value")) {
                let (conversation, number) = parted(&key);
                let named = group(&line).unwrap_or_else(|| conversation.to_owned());
                conversations.entry(named).or_default().push((number, line));
            }
            true
        })?;
        for (named, mut rows) in conversations {
            if !rows.iter().any(|(_, line)| Fields::read(line).is_ok_and(|fields| is_row(&fields))) {
                continue;
            }
            rows.sort_by_key(|(number, _)| *number);
            let named = if named.is_empty() { format!("{}:{table}", context.file) } else { named };
            let lines = rows.into_iter().map(|(_, line)| line).collect();
            for taken in read(&named, lines, context) {
                let whole = match taken {
                    Ok(foreign) => database.whole(foreign),
                    Err(broken) => Err(Broken { id: Some(named.clone()), ..broken }),
                };
                if !take(whole) {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// The conversation that a key names, and the number at its end: `chat-42/000017` is number 17 of `chat-42`.
#[cfg(feature = "archives")]
fn parted(key: &str) -> (&str, u64) {
    let named = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = key.get(named.len()..).and_then(|digits| digits.parse().ok()).unwrap_or(u64::MAX);
    (named.trim_end_matches(['/', ':', '.', '#', '_', '-', '|']), number)
}

fn row(line: &str) -> Option<Row> {
    let mut fields = Fields::read(line).ok()?;
    let role = fields.string("role")?;
    let role = match role.to_lowercase().as_str() {
        "human" => Some(Role::User),
        "ai" | "model" => Some(Role::Assistant),
        "developer" => Some(Role::System),
        "function" => Some(Role::Tool),
        name => Role::from_name(name),
    };
    let entry = fields.take("chunk");
    let kind = match entry.and_then(Fields::of) {
        Some(mut entry) => entry.string("type"),
        None => fields.string("type"),
    };
    let kind = kind.unwrap_or_default();
    let mut integer = |names: &[&str]| names.iter().find_map(|name| fields.integer(name));
    let seq = integer(&["seq"]);
    let message = integer(&["message_index", "msgIdx"]).unwrap_or_default();
    let chunk = integer(&["chunk_index", "chunkIdx"]).unwrap_or_default();
    let time = ["created_at", "timestamp"].iter().find_map(|name| take::moment_of(&mut fields, name));
    for name in ["conversation", "conversation_id", "session_id"] {
        fields.take(name);
    }
    let data = entry.or_else(|| fields.take("data")).or_else(|| fields.take("content"));
    let mut chunk_of = data.and_then(|data| chunk_of(&kind, data.get(), &mut fields));
    if let Some(chunk) = &mut chunk_of {
        fields.extend(crate::model::extra::Owner::Chunk, &mut chunk.extra);
    }
    Some(Row { seq, message, chunk, role, kind, chunk_of, time })
}

/// The chunk of a row: its data are the fields of a chunk (an object, or the text of one), or a chunk's text.
fn chunk_of(kind: &str, data: &str, row: &mut Fields<'_>) -> Option<Chunk> {
    let known = TYPES.iter().find(|(name, _)| *name == kind).map_or(kind, |(_, known)| *known);
    let text = serde_json::value::RawValue::from_string(data.to_owned()).ok();
    let text = text.as_deref().and_then(string);
    // A text counts as an object only if that has the fields of a chunk.
    let object = match &text {
        Some(text) if !matches!(known, "text" | "thinking") => {
            Some(text.as_str()).filter(|text| text.trim_start().starts_with('{'))
        }
        Some(_) => None,
        None => Some(data).filter(|data| data.starts_with('{')),
    };
    if let Some(object) = object
        && let Ok(mut fields) = Fields::read(object)
    {
        fields.take("type");
        let mut json = format!("{{\"type\":{}", serde_json::json!(known));
        for (name, raw) in fields.rest() {
            let name = match (known, name.as_ref()) {
                ("tool_call", "input" | "args") => "arguments",
                ("tool_call", "call_id" | "tool_call_id") => "id",
                ("tool_result", "call_id" | "tool_use_id" | "id") => "tool_call_id",
                ("tool_result", "output" | "result" | "text") => "content",
                ("text" | "thinking", "content" | "thinking") => "text",
                (_, name) => name,
            };
            json.push_str(&format!(",{}:{raw}", serde_json::json!(name)));
        }
        json.push('}');
        return chunk(&json).or_else(|| opaque(known, object));
    }
    let id = ["tool_call_id", "call_id"].iter().find_map(|name| row.string(name)).unwrap_or_default();
    match (known, text) {
        ("text", Some(text)) => Some(Chunk::text(text)),
        ("thinking", Some(text)) => Some(Chunk::thinking(text)),
        ("refusal", Some(text)) => Some(Body::Refusal { text }.into()),
        ("error", Some(message)) => Some(Body::Error { message, code: None }.into()),
        ("image", Some(url)) => Some(Chunk::image(url)),
        ("tool_result", Some(text)) => {
            Some(take::result(&id, row.string("name"), crate::model::Output::Text(text), None).into())
        }
        ("tool_call", Some(arguments)) => Some(Chunk::tool_call(id, row.string("name").unwrap_or_default(), arguments)),
        (_, _) if data == "null" => None,
        _ => opaque(known, data),
    }
}

fn chunk(json: &str) -> Option<Chunk> {
    let line = Line::from_json(&format!("{{\"role\":\"user\",\"chunks\":[{json}]}}")).ok()?;
    line.message.chunks.into_iter().next().filter(|chunk| !matches!(chunk.body, Body::Unknown { .. }))
}

fn opaque(kind: &str, data: &str) -> Option<Chunk> {
    let raw = serde_json::value::RawValue::from_string(data.to_owned()).ok()?;
    take::opaque(&raw, kind, FORMAT.name)
}
