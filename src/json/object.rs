//! A JSON object that is written piece by piece. It keeps the order of its fields, and texts of JSON as they were written:
//! models write the fields of an answer in the order of its schema.
//!
//! And an object and further fields as one JSON text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::fields::Fields;

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
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, node)| (name, node)))
    }
}

/// An object with further fields. Objects that both have become one; of anything else the further field counts. The object may be
/// large: only the names of its fields are looked at.
pub(crate) fn merged(object: &RawValue, fields: Object) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(object.get().len() + 1024);
    write(Fields::read(object.get())?, fields, &mut out)?;
    Ok(out)
}

fn write(parts: Fields<'_>, fields: Object, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let order: Vec<String> = fields.0.iter().map(|(name, _)| name.clone()).collect();
    let mut added: HashMap<String, Node> = fields.0.into_iter().collect();
    let known: Vec<(Cow<'_, str>, &RawValue)> = parts.pairs();
    let mut writer = Writer { out, is_first: true };
    writer.out.push(b'{');
    for name in order.iter().filter(|name| !known.iter().any(|(known, _)| known == name.as_str())) {
        if let Some(node) = added.remove(name) {
            writer.field(name, &node)?;
        }
    }
    for (name, raw) in known {
        match (added.remove(&*name), Fields::of(raw)) {
            (None, _) => writer.field(&name, raw)?,
            (Some(Node::Object(more)), Some(inner)) => {
                writer.name(&name)?;
                write(inner, more, writer.out)?;
            }
            (Some(node), _) => writer.field(&name, &node)?,
        }
    }
    out.push(b'}');
    Ok(())
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl Writer<'_> {
    fn name(&mut self, name: &str) -> serde_json::Result<()> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        serde_json::to_writer(&mut *self.out, name)?;
        self.out.push(b':');
        Ok(())
    }

    fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
        self.name(name)?;
        serde_json::to_writer(&mut *self.out, value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_history_is_merged_as_it_is_written() {
        let of = |history: &str, set: &[(&[&str], Value)]| {
            let mut fields = Object::default();
            set.iter().for_each(|(path, value)| fields.set(path, value.clone()));
            let history = RawValue::from_string(history.to_owned()).unwrap();
            String::from_utf8(merged(&history, fields).unwrap()).unwrap()
        };
        let history = r#"{"messages":[ 1e1 ],"toolConfig":{"tools":[{"b":1,"a":2}],"x":{"y":1}},"n":null}"#;
        let set: &[(&[&str], Value)] = &[
            (&["model"], json!("m")),
            (&["toolConfig", "toolChoice"], json!({})),
            (&["toolConfig", "x", "z"], json!(2)),
            (&["n"], json!(3)),
        ];
        let expected = r#"{"model":"m","messages":[ 1e1 ],"toolConfig":{"toolChoice":{},"tools":[{"b":1,"a":2}],"x":{"z":2,"y":1}},"n":3}"#;
        assert_eq!(of(history, set), expected);
        assert_eq!(of("{}", &[]), "{}");
        assert_eq!(of(r#"{"a":1}"#, &[(&["a", "b"], json!(2)), (&["c"], json!({}))]), r#"{"c":{},"a":{"b":2}}"#);
    }
}
