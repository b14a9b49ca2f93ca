//! A JSON object that is written piece by piece. It keeps the order of its fields, and texts of JSON as they were written: models
//! write the fields of an answer in the order of its schema.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// An object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object(Vec<(String, Node)>);

/// A value.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Node {
    Value(Value),
    Raw(Box<RawValue>),
    Object(Object),
}

impl<T: Into<Value>> From<T> for Node {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Raw(raw) => f.write_str(raw.get()),
            // An object of these always serialises.
            Self::Object(object) => f.write_str(&serde_json::to_string(object).unwrap_or_default()),
        }
    }
}

impl Object {
    /// Sets the value at the end of a path; the objects on the way are made where they are missing.
    pub(crate) fn set(&mut self, path: &[&str], value: impl Into<Node>) {
        let Some((name, rest)) = path.split_first() else { return };
        let at = self.0.iter().position(|(known, _)| known == name);
        match (at.and_then(|at| self.0.get_mut(at)), rest) {
            (Some((_, node)), []) => *node = value.into(),
            (None, []) => self.0.push(((*name).to_owned(), value.into())),
            (Some((_, Node::Object(inner))), rest) => inner.set(rest, value),
            (found, rest) => {
                let mut inner = Self::default();
                inner.set(rest, value);
                match found {
                    Some((_, node)) => *node = Node::Object(inner),
                    None => self.0.push(((*name).to_owned(), Node::Object(inner))),
                }
            }
        }
    }

    /// The same, of a path whose names are parted by dots.
    pub(crate) fn put(&mut self, path: &str, value: impl Into<Node>) {
        self.set(&path.split('.').collect::<Vec<_>>(), value);
    }

    /// Whether there is something at the end of a path.
    pub(crate) fn has(&self, path: &[&str]) -> bool {
        let Some((name, rest)) = path.split_first() else { return true };
        match self.0.iter().find(|(known, _)| known == name) {
            Some((_, Node::Object(inner))) => inner.has(rest),
            Some(_) => rest.is_empty(),
            None => false,
        }
    }

    pub(crate) fn into_fields(self) -> Vec<(String, Node)> {
        self.0
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, node)| (name, node)))
    }
}
