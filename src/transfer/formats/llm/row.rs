//! What rows of both generations have in common.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::types::Value;

use crate::model::{Body, Chunk, File, Timestamp};
use crate::transfer::database::{Row, text};
use crate::transfer::take;

/// The provider that opaque parts are of.
pub(super) const NAME: &str = "llm";

/// When a row was written.
pub(super) fn time(row: &mut Row) -> Option<Timestamp> {
    let time = text(row, "datetime_utc")?;
    serde_json::value::to_raw_value(&time).ok().and_then(|raw| take::moment(&raw))
}

/// Tokens, as the answer's usage.
pub(super) fn usage(row: &mut Row) -> Option<crate::model::Json> {
    let count = |name: &&str| match row.remove(*name)? {
        Value::Integer(count) => Some(((*name).to_owned(), count.into())),
        _ => None,
    };
    let counts: serde_json::Map<String, serde_json::Value> =
        ["input_tokens", "output_tokens"].iter().filter_map(count).collect();
    if counts.is_empty() { None } else { take::json_of(&counts) }
}

/// The rest of a row, as fields of its answer, in the order of their names.
pub(super) fn keep_rest(row: Row, answer: &mut crate::model::Message) {
    let mut rest: Vec<(String, Value)> = row.into_iter().collect();
    rest.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, value) in rest {
        if let Some(json) = crate::transfer::database::json(value) {
            let name = if name == "model" { "asked_model".to_owned() } else { name };
            answer.metadata.extra.push(name, json);
        }
    }
}

pub(super) fn attached(mut row: Row) -> Chunk {
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
