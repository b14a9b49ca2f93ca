use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json;
#[cfg(feature = "server")]
use crate::json::fields::Fields;

/// JSON text that is kept as it was written: order of keys, spelling of numbers, escapes. One of several lines loses the
/// white space between its tokens: a line that it is part of stays one line.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

/// A text that is not JSON, or is nested deeper than [`Json::MAX_DEPTH`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(pub(super) String);

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
        if json::is_deeper(raw.get(), Self::MAX_DEPTH) {
            let depth = json::depth(raw.get());
            return Err(JsonError(format!("nested {depth} deep; at most {} are accepted", Self::MAX_DEPTH)));
        }
        if json::has_line_break(raw.get()) {
            let line = RawValue::from_string(json::compact(raw.get()).into_owned());
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
        let fields = Fields::read(text).ok()?.pairs();
        Some(fields.into_iter().map(|(name, raw)| (name.into_owned(), raw)).collect())
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
