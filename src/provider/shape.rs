//! The types of the official SDKs, as tables, and how far a value is from them.

use serde_json::{Map, Value};

/// What a value may be.
#[derive(Debug)]
pub(crate) enum Type {
    String,
    Null,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// An array of these.
    Array(&'static [Type]),
    Object(&'static Shape),
}

/// The fields of an object. There may be no others.
#[derive(Debug)]
pub(crate) struct Shape(pub(crate) &'static [Field]);

/// One field: its name, whether it must be there, what it may be.
#[derive(Debug)]
pub(crate) struct Field {
    name: &'static str,
    required: bool,
    types: &'static [Type],
}

pub(crate) const fn required(name: &'static str, types: &'static [Type]) -> Field {
    Field { name, required: true, types }
}

pub(crate) const fn optional(name: &'static str, types: &'static [Type]) -> Field {
    Field { name, required: false, types }
}

/// A place where a value does not fit its shape.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) place: String,
    /// The field is not in the shape. Else it is missing, or of the wrong type.
    pub(crate) unknown: bool,
    pub(crate) problem: String,
}

impl Shape {
    /// Where the object does not fit, each place beginning with `place`.
    pub(crate) fn misfits(&self, object: &Map<String, Value>, place: &str) -> Vec<Misfit> {
        let mut out = Vec::new();
        self.compare(object, place, &mut out);
        out
    }

    fn compare(&self, object: &Map<String, Value>, place: &str, out: &mut Vec<Misfit>) {
        for field in self.0 {
            let place = format!("{place}.{}", field.name);
            match object.get(field.name) {
                Some(value) => compare(value, field.types, &place, out),
                None if field.required => {
                    out.push(Misfit { place, unknown: false, problem: "required field is missing".to_owned() });
                }
                None => {}
            }
        }
        for name in object.keys().filter(|name| !self.knows(name)) {
            let problem = "field is not in the type of the official SDK".to_owned();
            out.push(Misfit { place: format!("{place}.{name}"), unknown: true, problem });
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.0.iter().any(|field| field.name == name)
    }

    /// How badly the object fits: first by its literal fields, then by missing and unknown ones.
    fn distance(&self, object: &Map<String, Value>) -> (usize, usize) {
        let another_kind = |field: &&Field| match (field.types, object.get(field.name)) {
            ([Type::OneOf(names)], Some(value)) => !value.as_str().is_some_and(|name| names.contains(&name)),
            _ => false,
        };
        let missing = self.0.iter().filter(|field| field.required && !object.contains_key(field.name)).count();
        let unknown = object.keys().filter(|name| !self.knows(name)).count();
        (self.0.iter().filter(another_kind).count(), missing + unknown)
    }
}

/// The parser has limited the depth of the value, the tables that of the types.
fn compare(value: &Value, types: &'static [Type], place: &str, out: &mut Vec<Misfit>) {
    let fits = match value {
        Value::Null => types.iter().any(|kind| matches!(kind, Type::Null)),
        Value::String(text) => types.iter().any(|kind| match kind {
            Type::String => true,
            Type::OneOf(names) => names.contains(&text.as_str()),
            _ => false,
        }),
        Value::Array(items) => {
            let elements = types.iter().find_map(|kind| if let Type::Array(of) = kind { Some(of) } else { None });
            for (i, item) in items.iter().enumerate() {
                if let Some(elements) = elements {
                    compare(item, elements, &format!("{place}[{i}]"), out);
                }
            }
            elements.is_some()
        }
        Value::Object(object) => {
            let shapes =
                types.iter().filter_map(|kind| if let Type::Object(shape) = kind { Some(shape) } else { None });
            let nearest = shapes.min_by_key(|shape| shape.distance(object));
            if let Some(shape) = nearest {
                shape.compare(object, place, out);
            }
            nearest.is_some()
        }
        Value::Bool(_) | Value::Number(_) => false,
    };
    if !fits {
        let problem = format!("expected {}, got {}", expected(types), kind(value));
        out.push(Misfit { place: place.to_owned(), unknown: false, problem });
    }
}

fn expected(types: &[Type]) -> String {
    let mut names: Vec<_> = types.iter().map(Type::name).collect();
    names.dedup();
    names.join(" or ")
}

impl Type {
    fn name(&self) -> String {
        match self {
            Self::String => "a string".to_owned(),
            Self::Null => "null".to_owned(),
            Self::OneOf(names) => names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or "),
            Self::Array(_) => "an array".to_owned(),
            Self::Object(_) => "an object".to_owned(),
        }
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    static TEXT: Shape = Shape(&[required("type", &[Type::OneOf(&["text"])]), required("text", &[Type::String])]);
    static IMAGE: Shape = Shape(&[required("type", &[Type::OneOf(&["image"])]), required("url", &[Type::String])]);
    static MESSAGE: Shape = Shape(&[
        required("content", &[Type::String, Type::Array(&[Type::Object(&TEXT), Type::Object(&IMAGE)])]),
        optional("name", &[Type::String, Type::Null]),
    ]);

    #[test]
    fn misfits_name_their_place() {
        let table = [
            (json!({"content": "a"}), ""),
            (json!({"content": [], "name": null}), ""),
            (json!({}), "m.content: required field is missing"),
            (json!({"content": 1}), "m.content: expected a string or an array, got a number"),
            (json!({"content": [1]}), "m.content[0]: expected an object, got a number"),
            (json!({"content": [{"type": "text", "url": "a"}]}), "m.content[0].text: required field is missing"),
            (json!({"content": [{"url": "a"}]}), "m.content[0].type: required field is missing"),
            (json!({"content": [{"type": "x", "text": ""}]}), "m.content[0].type: expected \"text\", got \"x\""),
            (json!({"content": "a", "name": true}), "m.name: expected a string or null, got a boolean"),
            (json!({"content": "a", "id": 1}), "m.id: field is not in the type of the official SDK"),
        ];
        for (value, wanted) in table {
            let misfits = value.as_object().map(|object| MESSAGE.misfits(object, "m")).unwrap_or_default();
            let first = misfits.first().map(|misfit| format!("{}: {}", misfit.place, misfit.problem));
            assert_eq!(first.unwrap_or_default(), wanted, "{value}");
        }
    }
}
