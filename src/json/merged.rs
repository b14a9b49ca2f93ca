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
