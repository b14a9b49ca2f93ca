use std::collections::HashSet;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// JSON text that is kept as it was written: order of keys, spelling of numbers, escapes. One of several lines loses the
/// white space between its tokens: a line that it is part of stays one line.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

/// A text that is not JSON, or is nested deeper than [`Json::MAX_DEPTH`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(String);

impl Json {
    /// The deepest nesting of arrays and objects that is accepted.
    pub const MAX_DEPTH: usize = 128;

    /// Takes JSON text.
    ///
    /// # Errors
    /// [`JsonError`] if it is not JSON, or nested deeper than [`Json::MAX_DEPTH`].
    pub fn new(text: impl Into<String>) -> Result<Self, JsonError> {
        let raw = RawValue::from_string(text.into()).map_err(|error| JsonError(error.to_string()))?;
        Self::from_raw(raw)
    }

    pub(crate) fn from_raw(raw: Box<RawValue>) -> Result<Self, JsonError> {
        let depth = super::json_text::depth(raw.get());
        if depth > Self::MAX_DEPTH {
            return Err(JsonError(format!("nested {depth} deep; at most {} are accepted", Self::MAX_DEPTH)));
        }
        if raw.get().contains(['\n', '\r']) {
            let line = RawValue::from_string(super::json_text::compact(raw.get()));
            return line.map(Self).map_err(|error| JsonError(error.to_string()));
        }
        Ok(Self(raw))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

#[cfg(feature = "server")]
impl Json {
    /// The fields of a JSON object, in order, each with its raw text; `None` for anything else.
    pub(crate) fn fields(text: &str) -> Option<Vec<(String, &RawValue)>> {
        serde_json::from_str(text).ok().map(|Object(fields)| fields)
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A JSON object as its fields, in order, each with its raw text.
pub(super) struct Object<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Object(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Fields that this crate does not know, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra(Vec<(String, Json)>);

impl Extra {
    /// No fields.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The first field of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// The fields of a JSON object.
    pub(crate) fn from_object(text: &str) -> Result<Self, JsonError> {
        let Object(fields) = serde_json::from_str(text).map_err(|error| JsonError(error.to_string()))?;
        let fields = fields.into_iter().map(|(name, raw)| Ok((name, Json::from_raw(raw.to_owned())?)));
        fields.collect::<Result<_, _>>().map(Self)
    }

    /// Adds fields at the end, but names that are there.
    pub(crate) fn add_new(&mut self, fields: impl IntoIterator<Item = (String, Json)>) {
        let mut names: HashSet<String> = self.0.iter().map(|(name, _)| name.clone()).collect();
        self.0.extend(fields.into_iter().filter(|(name, _)| names.insert(name.clone())));
    }

    /// Adds a field at the end.
    pub fn push(&mut self, name: impl Into<String>, value: Json) {
        self.0.push((name.into(), value));
    }
}
