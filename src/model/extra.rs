//! Fields that this crate does not know: what becomes of them.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use super::json::{Json, JsonError};
use crate::json::fields::Fields;

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
        let fields = Fields::read(text).map_err(|error| JsonError(error.to_string()))?.pairs();
        let fields = fields.into_iter().map(|(name, raw)| Ok((name.into_owned(), Json::from_raw(raw.to_owned())?)));
        fields.collect::<Result<_, _>>().map(Self)
    }

    /// Adds fields at the end, but names that are there.
    pub(crate) fn add_new(&mut self, fields: impl IntoIterator<Item = (String, Json)>) {
        let mut fields = fields.into_iter().peekable();
        if fields.peek().is_none() {
            return;
        }
        let mut names: HashSet<String> = self.0.iter().map(|(name, _)| name.clone()).collect();
        self.0.extend(fields.filter(|(name, _)| names.insert(name.clone())));
    }

    /// Gives fields another value.
    pub(super) fn replace(&mut self, value: impl Fn(&str) -> Option<Json>) {
        for (name, known) in &mut self.0 {
            *known = value(name).unwrap_or_else(|| known.clone());
        }
    }

    /// Adds a field at the end.
    pub fn push(&mut self, name: impl Into<String>, value: Json) {
        self.0.push((name.into(), value));
    }
}

impl Fields<'_> {
    /// What nobody took, to be kept with a message or a chunk.
    pub(crate) fn extra(self, of: Owner) -> Extra {
        let mut extra = Extra::new();
        self.extend(of, &mut extra);
        extra
    }

    /// Adds what nobody took, but names that are there.
    pub(crate) fn extend(self, of: Owner, extra: &mut Extra) {
        extra.add_new(self.rest().filter_map(|(name, raw)| Some((of.free(name), json(raw)?))));
    }
}

/// What unknown fields are kept with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    Message,
    Chunk,
}

impl Owner {
    /// The transcript format's own fields: an unknown one of that name would be taken for them.
    const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Message => &[
                "conversation",
                "role",
                "chunks",
                "finish_reason",
                "model",
                "provider",
                "created_at",
                "turn_id",
                "step_id",
                "usage",
                "id",
                "native",
            ],
            Self::Chunk => &[
                "type",
                "text",
                "annotations",
                "signature",
                "redacted",
                "id",
                "name",
                "arguments",
                "server",
                "item_id",
                "tool_call_id",
                "content",
                "is_error",
                "url",
                "mime_type",
                "data",
                "transcript",
                "message",
                "code",
                "provider",
                "kind",
                "json",
                "native",
            ],
        }
    }

    fn free(self, name: Cow<'_, str>) -> String {
        if self.fields().contains(&name.as_ref()) { format!("native_{name}") } else { name.into_owned() }
    }
}

/// A value, to be kept; `null` is none. One that is nested too deep is kept as a string that holds its text.
pub(crate) fn json(raw: &RawValue) -> Option<Json> {
    if raw.get() == "null" {
        return None;
    }
    let kept = Json::from_raw(raw.to_owned());
    kept.or_else(|_| Json::new(serde_json::to_string(raw.get()).unwrap_or_default())).ok()
}

/// A value as [`json`] keeps it, without white space between its tokens.
pub(crate) fn compact(raw: &RawValue) -> Option<Json> {
    let kept = json(raw)?;
    match crate::json::compact(kept.as_str()) {
        Cow::Borrowed(_) => Some(kept),
        Cow::Owned(text) => Some(Json::new(text).unwrap_or(kept)),
    }
}
