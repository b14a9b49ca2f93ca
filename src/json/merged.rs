//! An object and further fields: one JSON text.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::value::RawValue;

use super::object::{Node, Object};
use crate::json::fields::Fields;

/// An object with further fields. Objects that both have become one; of anything else the further field counts. The object may be
/// large: only the names of its fields are looked at.
pub(crate) fn merged(object: &RawValue, fields: Object) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(object.get().len() + 1024);
    write(Fields::read(object.get())?, fields, &mut out)?;
    Ok(out)
}

fn write(parts: Fields<'_>, fields: Object, out: &mut Vec<u8>) -> serde_json::Result<()> {
    let (order, mut added): (Vec<String>, HashMap<String, Node>) = {
        let fields = fields.into_fields();
        (fields.iter().map(|(name, _)| name.clone()).collect(), fields.into_iter().collect())
    };
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
