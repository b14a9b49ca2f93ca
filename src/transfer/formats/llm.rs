//! `logs.db` of the program `llm`: conversations and responses, as its versions up to 0.31 write them.
//!
//! Source: llm's `docs/logging.md`. Columns that a version does not have are absent.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::model::{Body, Chunk, File, Message, Output, Role};
use crate::transfer::foreign::{Foreign, Node, Taken};
use crate::transfer::format::{Format, Reader};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "llm",
    about: "logs.db of the program llm",
    read: Some(Reader::Database { tables: &["conversations", "responses"], read }),
    write: None,
};

/// A row by the names of its columns.
type Row = HashMap<String, Value>;

fn rows(database: &Connection, sql: &str, parameter: &str, each: &mut dyn FnMut(Row) -> bool) -> rusqlite::Result<()> {
    let mut statement = database.prepare(sql)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let parameters: &[&dyn rusqlite::ToSql] = if statement.parameter_count() > 0 { &[&parameter] } else { &[] };
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        let cell = |(at, name): (usize, &String)| Ok((name.clone(), row.get(at)?));
        let row: rusqlite::Result<Row> = names.iter().enumerate().map(cell).collect();
        if !each(row?) {
            break;
        }
    }
    Ok(())
}

/// A table's rows that belong to a response; none if the version has no such table.
fn of(database: &Connection, tables: &[String], table: &str, sql: &str, id: &str) -> rusqlite::Result<Vec<Row>> {
    let mut found = Vec::new();
    if tables.iter().any(|known| known == table) {
        rows(database, sql, id, &mut |row| {
            found.push(row);
            true
        })?;
    }
    Ok(found)
}

fn text(row: &mut Row, name: &str) -> Option<String> {
    match row.remove(name)? {
        Value::Text(text) => Some(text).filter(|text| !text.is_empty()),
        Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

fn read(database: &Connection, take: &mut dyn FnMut(Taken) -> bool) -> rusqlite::Result<()> {
    let tables = crate::transfer::database::tables(database)?;
    let mut ids = Vec::new();
    let sql = "SELECT DISTINCT r.conversation_id AS id, c.name AS name, c.model AS model FROM responses r \
               LEFT JOIN conversations c ON c.id = r.conversation_id ORDER BY r.conversation_id";
    rows(database, sql, "", &mut |mut row| {
        ids.push((text(&mut row, "id"), text(&mut row, "name")));
        true
    })?;
    for (id, name) in ids {
        let id = id.unwrap_or_default();
        let mut foreign = Foreign::new(if id.is_empty() { "without-a-conversation".to_owned() } else { id.clone() });
        foreign.title = name;
        let mut responses = Vec::new();
        let sql = "SELECT * FROM responses WHERE coalesce(conversation_id, '') = ?1 ORDER BY datetime_utc, id";
        rows(database, sql, &id, &mut |row| {
            responses.push(row);
            true
        })?;
        let mut system = String::new();
        for row in responses {
            response(database, &tables, row, &mut system, &mut foreign)?;
        }
        if !take(Ok(foreign)) {
            return Ok(());
        }
    }
    Ok(())
}

fn response(
    database: &Connection,
    tables: &[String],
    mut row: Row,
    system: &mut String,
    foreign: &mut Foreign,
) -> rusqlite::Result<()> {
    let id = text(&mut row, "id").unwrap_or_else(|| foreign.nodes.len().to_string());
    let time = text(&mut row, "datetime_utc");
    let time = time.and_then(|time| serde_json::value::to_raw_value(&time).ok()).and_then(|raw| take::moment(&raw));
    let mut messages = Vec::new();
    let fragments = |table: &str| {
        let sql = format!(
            "SELECT f.content AS content FROM {table} p JOIN fragments f ON f.id = p.fragment_id WHERE p.response_id = ?1 ORDER BY p.\"order\""
        );
        let rows = of(database, tables, table, &sql, &id)?;
        Ok::<_, rusqlite::Error>(rows.into_iter().filter_map(|mut row| text(&mut row, "content")).collect::<Vec<_>>())
    };
    let mut instructions = fragments("system_fragments")?;
    instructions.extend(text(&mut row, "system"));
    let instructions = instructions.join("\n\n");
    // Each response repeats the instructions; they are written when they change.
    if !instructions.is_empty() && instructions != *system {
        messages.push(Message::system(instructions.clone()));
        *system = instructions;
    }
    let sql = "SELECT * FROM tool_results WHERE response_id = ?1 ORDER BY id";
    for mut result in of(database, tables, "tool_results", sql, &id)? {
        let (call, name) = (text(&mut result, "tool_call_id").unwrap_or_default(), text(&mut result, "name"));
        let failed = text(&mut result, "exception").map(|_| true);
        let output = Output::Text(text(&mut result, "output").unwrap_or_default());
        messages.push(Message::new(Role::Tool, [take::result(&call, name, output, failed).into()]));
    }
    let mut asked: Vec<Chunk> = fragments("prompt_fragments")?.into_iter().map(Chunk::text).collect();
    asked.extend(text(&mut row, "prompt").map(Chunk::text));
    let sql = "SELECT a.* FROM prompt_attachments p JOIN attachments a ON a.id = p.attachment_id WHERE p.response_id = ?1 ORDER BY p.\"order\"";
    for attachment in of(database, tables, "prompt_attachments", sql, &id)? {
        asked.push(attached(attachment));
    }
    if !asked.is_empty() {
        messages.push(Message::new(Role::User, asked));
    }
    let mut said: Vec<Chunk> =
        ["reasoning"].iter().filter_map(|name| text(&mut row, name)).map(Chunk::thinking).collect();
    said.extend(text(&mut row, "response").map(Chunk::text));
    let sql = "SELECT * FROM tool_calls WHERE response_id = ?1 ORDER BY id";
    for mut call in of(database, tables, "tool_calls", sql, &id)? {
        let mut next = |name: &str| text(&mut call, name).unwrap_or_default();
        said.push(Chunk::tool_call(next("tool_call_id"), next("name"), next("arguments")));
    }
    if said.is_empty() {
        foreign.skip("empty_message");
    } else {
        let mut answer = Message::new(Role::Assistant, said);
        answer.metadata.id = Some(id.clone());
        let resolved = text(&mut row, "resolved_model");
        answer.metadata.model = resolved.or_else(|| text(&mut row, "model"));
        let counts: serde_json::Map<String, serde_json::Value> = ["input_tokens", "output_tokens"]
            .iter()
            .filter_map(|name| match row.remove(*name)? {
                Value::Integer(count) => Some(((*name).to_owned(), count.into())),
                _ => None,
            })
            .collect();
        answer.usage = if counts.is_empty() { None } else { take::json_of(&counts) };
        row.remove("conversation_id");
        let mut rest: Vec<(String, Value)> = row.into_iter().collect();
        rest.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, value) in rest {
            // JSON in a text column is kept as JSON.
            let json = match value {
                Value::Text(text) if !text.is_empty() => {
                    crate::model::Json::new(text.clone()).ok().or_else(|| take::json_of(&text))
                }
                Value::Integer(number) => take::json_of(&number),
                Value::Real(number) => take::json_of(&number),
                _ => None,
            };
            if let Some(json) = json {
                let name = if name == "model" { "asked_model".to_owned() } else { name };
                answer.metadata.extra.push(name, json);
            }
        }
        messages.push(answer);
    }
    for message in &mut messages {
        message.metadata.created_at = time;
    }
    let parent = foreign.nodes.last().map(|node| node.id.clone());
    foreign.nodes.push(Node { id, parent, messages });
    Ok(())
}

fn attached(mut row: Row) -> Chunk {
    let mime_type = text(&mut row, "type");
    let data = match row.remove("content") {
        Some(Value::Blob(bytes)) => Some(STANDARD.encode(bytes)),
        _ => None,
    };
    let place = text(&mut row, "url").or_else(|| text(&mut row, "path"));
    let mime = mime_type.clone().unwrap_or_default();
    match (mime.starts_with("image/"), data) {
        (true, Some(data)) => Chunk::image(format!("data:{mime};base64,{data}")),
        (true, None) => take::picture(None, &place.unwrap_or_default(), mime_type),
        (false, data) => Body::File(File { name: None, url: place.filter(|_| data.is_none()), data, mime_type }).into(),
    }
}
