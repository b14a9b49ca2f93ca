//! `logs.db` of the program `llm`: `responses` are what its versions up to 0.31 wrote, `threads` what 0.32 writes. A
//! database that was upgraded has both; the id of a conversation is the id of its thread.
//!
//! Source: llm 0.32's `migrations.py`, `logs.py` and `docs/logging.md`. Columns that a version does not have are absent.

mod responses;
mod threads;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::types::Value;

use crate::model::{Body, Chunk, File, Timestamp};
use crate::transfer::database::{Database, Row, text};
use crate::transfer::foreign::{Foreign, Taken};
use crate::transfer::format::{Context, Format, Tables};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "llm",
    about: "logs.db of the program llm",
    read: None,
    tables: Some(Tables { needed: &["conversations", "responses"], read }),
    write: None,
};

fn read(database: &Database, _: &Context<'_>, take: &mut dyn FnMut(Taken) -> bool) -> rusqlite::Result<()> {
    for (id, name) in conversations(database)? {
        database.next_conversation();
        let mut foreign = Foreign::new(if id.is_empty() { "without-a-conversation".to_owned() } else { id.clone() });
        foreign.title = name;
        responses::read(database, &id, &mut foreign)?;
        threads::read(database, &id, &mut foreign)?;
        if !take(database.whole(foreign)) {
            break;
        }
    }
    Ok(())
}

/// The ids and names of all conversations, in the order of their ids, which is that of time.
fn conversations(database: &Database) -> rusqlite::Result<BTreeMap<String, Option<String>>> {
    const SOURCES: &[(&str, &str)] = &[
        (
            "responses",
            "SELECT DISTINCT r.conversation_id AS id, c.name AS name FROM responses r \
             LEFT JOIN conversations c ON c.id = r.conversation_id",
        ),
        ("turns", "SELECT DISTINCT thread_id AS id FROM turns"),
        ("threads", "SELECT id, name FROM threads"),
    ];
    let mut found = BTreeMap::new();
    for (table, sql) in SOURCES {
        for mut row in database.all(&[table], sql, "")? {
            let (id, name) = (text(&mut row, "id").unwrap_or_default(), text(&mut row, "name"));
            let known: &mut Option<String> = found.entry(id).or_default();
            *known = name.or(known.take());
        }
    }
    Ok(found)
}

/// When a row was written.
fn time(row: &mut Row) -> Option<Timestamp> {
    let time = text(row, "datetime_utc")?;
    serde_json::value::to_raw_value(&time).ok().and_then(|raw| take::moment(&raw))
}

/// Tokens, as the answer's usage.
fn usage(row: &mut Row) -> Option<crate::model::Json> {
    let count = |name: &&str| match row.remove(*name)? {
        Value::Integer(count) => Some(((*name).to_owned(), count.into())),
        _ => None,
    };
    let counts: serde_json::Map<String, serde_json::Value> =
        ["input_tokens", "output_tokens"].iter().filter_map(count).collect();
    if counts.is_empty() { None } else { take::json_of(&counts) }
}

/// The rest of a row, as fields of its answer, in the order of their names.
fn keep_rest(row: Row, answer: &mut crate::model::Message) {
    let mut rest: Vec<(String, Value)> = row.into_iter().collect();
    rest.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, value) in rest {
        if let Some(json) = crate::transfer::database::json(value) {
            let name = if name == "model" { "asked_model".to_owned() } else { name };
            answer.metadata.extra.push(name, json);
        }
    }
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
