//! What a judge asks of a value.

use serde_json::{Map, Value};

use crate::provider::text::is_spelling_of;

pub(crate) type Object = Map<String, Value>;

/// The text of a field, empty where it is no string.
pub(crate) fn text<'a>(object: &'a Object, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The role of a message, empty where it is no string.
pub(crate) fn role(message: &Object) -> &str {
    text(message, "role")
}

/// The items of a field, none where it is no array.
pub(crate) fn items<'a>(object: &'a Object, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Those of the items that are objects, with their positions.
pub(crate) fn objects(items: &[Value]) -> impl Iterator<Item = (usize, &Object)> {
    items.iter().enumerate().filter_map(|(i, item)| Some((i, item.as_object()?)))
}

/// The items of a request's list; `None` where they are no sequence: not an array, empty, or not all of them objects.
pub(crate) fn sequence<'a>(request: &'a Value, name: &str) -> Option<Vec<&'a Object>> {
    let items = request.get(name)?.as_array().filter(|items| !items.is_empty())?;
    items.iter().map(Value::as_object).collect()
}

/// The field of this name, or, of a name in camelCase, that in snake_case.
pub(crate) fn field<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    entry(object, name).map(|(_, value)| value)
}

/// The same, with its name as it is spelled there.
pub(crate) fn entry<'a>(object: &'a Object, name: &str) -> Option<(&'a str, &'a Value)> {
    let found = object.get_key_value(name).or_else(|| object.iter().find(|(other, _)| is_spelling_of(name, other)));
    found.map(|(name, value)| (name.as_str(), value))
}

/// What a value is, for people; short strings are quoted.
pub(crate) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::String(text) if text.len() <= 64 => format!("{text:?}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Is this a string, an array or an object, and not an empty one?
pub(crate) fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}
