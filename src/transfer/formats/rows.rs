//! Rows of stores that kept one chunk per row, and began the message index at 0 again on every append.
//!
//! A row is `{conversation, seq, message_index, chunk_index, role, type, data}`, or `{chunk: {type, ...}, role, msgIdx,
//! chunkIdx}`. Rows are sorted by `seq`; a message
//! ends where the role changes, the message index changes, or the chunk index goes back.

use crate::json::fields::{Fields, string};
use crate::model::{Body, Chunk, Line, Message, Role};
use crate::transfer::foreign::{Foreign, Taken};
use crate::transfer::format::{Context, Format, Head, Reader};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "rows",
    about: "rows of a store that kept one chunk a row",
    read: Some(Reader::Parts { recognise, group, read }),
    tables: None,
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
    let has = |fields: &Fields<'_>, names: &[&str]| names.iter().all(|name| fields.peek(name).is_some());
    head.first(|fields| ROWS.iter().any(|names| has(fields, names)))
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
