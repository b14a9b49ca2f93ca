//! A call whose arguments come in pieces, each with its path: Vertex AI streams them so. Source: Vertex AI documentation,
//! "Streaming function call arguments"; `PartialArg` of the official Python SDK (google-genai 3.4.0).

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::part::take;
use crate::json::fields::{Fields, array, string};

/// A call that goes on.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    open: Option<Call>,
}

#[derive(Debug, Default)]
struct Call {
    /// The fields of the part, but for its call.
    part: Map<String, Value>,
    /// The fields of the call, but for its arguments.
    call: Map<String, Value>,
    args: Value,
}

/// What a part is to a call that comes in pieces.
pub(crate) enum Piece {
    /// It is none of them.
    None,
    /// The call goes on.
    More,
    /// The call is whole: as if it had come so.
    Whole(Box<RawValue>),
}

impl Partial {
    pub(crate) fn take(&mut self, raw: &RawValue) -> Piece {
        let Some(mut fields) = Fields::of(raw) else { return Piece::None };
        let Some(mut call) = take(&mut fields, "functionCall").and_then(Fields::of) else { return Piece::None };
        let pieces = take(&mut call, "partialArgs").and_then(array);
        let goes_on = take(&mut call, "willContinue").is_some_and(|raw| raw.get() == "true");
        let ends = self.open.is_some() && call.peek("name").is_none();
        if pieces.is_none() && !goes_on && !ends {
            return Piece::None;
        }
        let open = self.open.get_or_insert_with(|| Call { args: Value::Object(Map::new()), ..Call::default() });
        for (known, fields) in [(&mut open.part, fields), (&mut open.call, call)] {
            for (name, raw) in fields.rest() {
                if let Ok(value) = serde_json::from_str(raw.get()) {
                    known.entry(name).or_insert(value);
                }
            }
        }
        pieces.into_iter().flatten().filter_map(Fields::of).for_each(|piece| set(&mut open.args, piece));
        if goes_on { Piece::More } else { self.end().map_or(Piece::More, Piece::Whole) }
    }

    /// The call as far as it came.
    pub(crate) fn end(&mut self) -> Option<Box<RawValue>> {
        let Call { mut part, mut call, args } = self.open.take()?;
        call.insert("args".to_owned(), args);
        part.insert("functionCall".to_owned(), Value::Object(call));
        to_raw_value(&part).ok()
    }
}

/// Sets the value at a path of the arguments; a string that is there goes on.
fn set(args: &mut Value, mut piece: Fields<'_>) {
    let path = take(&mut piece, "jsonPath").and_then(string).unwrap_or_default();
    let mut value = None;
    for name in ["stringValue", "numberValue", "boolValue", "nullValue"] {
        let found = take(&mut piece, name).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        value = value.or(found.map(|found| if name == "nullValue" { Value::Null } else { found }));
    }
    let (Some(value), Some(place)) = (value, at(args, &path)) else { return };
    match (place, value) {
        (Value::String(known), Value::String(more)) => known.push_str(&more),
        (place, value) => *place = value,
    }
}

/// Steps into arrays no further than this: a path may name any index.
const ITEMS: usize = 10_000;

/// The place of a path such as `$.city.names[0]`, made where it is not there yet.
fn at<'v>(args: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    let mut place = args;
    let path = path.strip_prefix('$').unwrap_or(path);
    for step in path.split(['.', '[']).map(|step| step.trim_end_matches(']')).filter(|step| !step.is_empty()) {
        let name = step.trim_matches(['"', '\'']);
        match step.parse::<usize>() {
            Ok(index) if index < ITEMS && !place.is_object() => {
                if !place.is_array() {
                    *place = Value::Array(Vec::new());
                }
                let items = place.as_array_mut()?;
                while items.len() <= index {
                    items.push(Value::Null);
                }
                place = items.get_mut(index)?;
            }
            _ => {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                place = place.as_object_mut()?.entry(name).or_insert(Value::Null);
            }
        }
    }
    Some(place)
}
