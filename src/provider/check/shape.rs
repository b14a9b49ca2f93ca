//! The types of the official SDKs, as tables, and how far a value is from them.

use serde_json::Value;

use super::finding::Level;
use super::value::{self, Object, entry, kind};
use crate::provider::text::is_spelling_of;

/// What a value may be.
#[derive(Debug)]
pub(crate) enum Type {
    Any,
    Null,
    Bool,
    Number,
    String,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// An array of these.
    Array(&'static [Type]),
    Object(&'static Shape),
    /// An object, whatever its fields.
    AnyObject,
}

/// The fields of an object. Others are not known.
#[derive(Debug)]
pub(crate) struct Shape(pub(crate) &'static [Field]);

/// One field: its name, which in camelCase is also taken in snake_case, as in the JSON of protobuf; whether it must be there,
/// what it may be.
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
    pub(crate) fault: Fault,
    pub(crate) problem: String,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is not in the shape.
    Unknown,
    /// Its value is a string that the shape does not list: another type of object, for example.
    Value,
    /// It must be there, and is not.
    Missing,
    /// It is of another type.
    Wrong,
}

impl Fault {
    /// The level of a misfit, where the rule that it breaks is of `level`.
    pub(crate) fn level(self, level: Level) -> Level {
        if matches!(self, Self::Unknown | Self::Value) { Level::Unknown } else { level }
    }
}

impl Shape {
    /// That of the shapes which the object fits best.
    pub(crate) fn nearest(shapes: &[&'static Self], object: &Object) -> Option<&'static Self> {
        nearest(shapes.iter().copied(), object)
    }

    /// Where the object does not fit, each place beginning with `place`.
    pub(crate) fn misfits(&'static self, object: &Object, place: &str) -> Vec<Misfit> {
        let mut out = Vec::new();
        self.compare(object, place, &mut out);
        out
    }

    fn compare(&'static self, object: &Object, place: &str, out: &mut Vec<Misfit>) {
        for field in self.0 {
            match entry(object, field.name) {
                // Clients send null for what they leave out (recorded: pydantic-ai test_simple_completion).
                Some((_, Value::Null)) if !field.required => {}
                Some((name, value)) => compare(value, field.types, &format!("{place}.{name}"), out),
                None if field.required => {
                    let place = format!("{place}.{}", field.name);
                    out.push(Misfit { place, fault: Fault::Missing, problem: "required field is missing".to_owned() });
                }
                None => {}
            }
        }
        for name in object.keys().filter(|name| !self.knows(name)) {
            let problem = "field is not in the type of the official SDK".to_owned();
            out.push(Misfit { place: format!("{place}.{name}"), fault: Fault::Unknown, problem });
        }
    }

    /// Is there a field of this name?
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.0.iter().any(|field| is_spelling_of(field.name, name))
    }

    /// Is this the shape of objects of that type?
    pub(crate) fn is_of_type(&self, name: &str) -> bool {
        self.0.iter().filter(|field| field.name == "type").any(|field| names(field.types).any(|other| other == name))
    }

    /// How many of the object's tags name another shape.
    fn other_tags(&'static self, object: &Object) -> usize {
        let tags = self.0.iter().filter(|field| TAGS.contains(&field.name));
        tags.filter(|tag| object.get(tag.name).is_some_and(|value| is_another_tag(tag, value))).count()
    }

    /// How badly the object fits: first by the kinds of its values, then by missing and unknown fields.
    fn distance(&'static self, object: &Object) -> [usize; 3] {
        let known = self.0.iter().filter_map(|field| Some((field, value::field(object, field.name)?)));
        let strange = known.map(|(field, value)| strangers(field.types, value)).sum();
        let missing =
            self.0.iter().filter(|field| field.required && value::field(object, field.name).is_none()).count();
        let unknown = object.keys().filter(|name| !self.knows(name)).count();
        [strange, missing + unknown, missing]
    }
}

/// Where a value is none of these types, each place beginning with `place`.
pub(crate) fn misfits(value: &Value, types: &'static [Type], place: &str) -> Vec<Misfit> {
    let mut out = Vec::new();
    compare(value, types, place, &mut out);
    out
}

/// That of the shapes which the object fits best: above all by its tags.
fn nearest(shapes: impl Iterator<Item = &'static Shape> + Clone, object: &Object) -> Option<&'static Shape> {
    let least = shapes.clone().map(|shape| shape.other_tags(object)).min()?;
    let mut tagged = shapes.filter(|shape| shape.other_tags(object) == least);
    match (tagged.next()?, tagged.next()) {
        (one, None) => Some(one),
        (one, Some(other)) => [one, other].into_iter().chain(tagged).min_by_key(|shape| shape.distance(object)),
    }
}

/// The fields that tell shapes apart.
const TAGS: [&str; 2] = ["type", "role"];

/// Does the field tell shapes apart, and does this value name another one?
fn is_another_tag(field: &Field, value: &Value) -> bool {
    TAGS.contains(&field.name)
        && names(field.types).next().is_some()
        && !value.as_str().is_some_and(|value| names(field.types).any(|name| name == value))
}

/// How far a value is from an array that must stand there: the number of its elements that are tagged as others, or three
/// if it is a string.
fn strangers(types: &'static [Type], value: &Value) -> usize {
    match (value, elements(types)) {
        (Value::String(_), Some(_)) if !types.iter().any(|kind| matches!(kind, Type::String)) => 3,
        (Value::Array(items), Some(of)) => items.iter().filter(|item| is_stranger(of, item)).count(),
        _ => 0,
    }
}

fn is_stranger(of: &'static [Type], item: &Value) -> bool {
    let mut tags = shapes(of).flat_map(|shape| shape.0).filter(|field| field.name == "type").peekable();
    let tag = item.get("type").unwrap_or(&Value::Null);
    item.is_object() && tags.peek().is_some() && tags.all(|field| is_another_tag(field, tag))
}

/// Is the object of a type that none of the shapes has? Nothing can be said of its other fields.
fn is_untold(types: &'static [Type], object: &Object) -> bool {
    let mut tags = shapes(types).flat_map(|shape| shape.0).filter(|field| field.name == "type").peekable();
    let tag = object.get("type").filter(|tag| tag.is_string());
    tags.peek().is_some() && tag.is_some_and(|tag| tags.all(|field| is_another_tag(field, tag)))
}

fn names(types: &'static [Type]) -> impl Iterator<Item = &'static str> {
    types.iter().flat_map(|kind| if let Type::OneOf(names) = kind { *names } else { &[] }).copied()
}

fn elements(types: &'static [Type]) -> Option<&'static [Type]> {
    types.iter().find_map(|kind| if let Type::Array(of) = kind { Some(*of) } else { None })
}

fn shapes(types: &'static [Type]) -> impl Iterator<Item = &'static Shape> + Clone {
    types.iter().filter_map(|kind| if let Type::Object(shape) = kind { Some(*shape) } else { None })
}

/// The parser has limited the depth of the value, the tables that of the types.
fn compare(value: &Value, types: &'static [Type], place: &str, out: &mut Vec<Misfit>) {
    let one_is = |fits: fn(&Type) -> bool| types.iter().any(|kind| matches!(kind, Type::Any) || fits(kind));
    let fits = match value {
        Value::Null => one_is(|kind| matches!(kind, Type::Null)),
        Value::Bool(_) => one_is(|kind| matches!(kind, Type::Bool)),
        Value::Number(_) => one_is(|kind| matches!(kind, Type::Number)),
        Value::String(text) => one_is(|kind| matches!(kind, Type::String)) || names(types).any(|name| name == text),
        Value::Array(items) => {
            let elements = elements(types);
            for (i, item) in items.iter().enumerate() {
                if let Some(elements) = elements {
                    compare(item, elements, &format!("{place}[{i}]"), out);
                }
            }
            elements.is_some() || one_is(|_| false)
        }
        Value::Object(object) if is_untold(types, object) => {
            let place = format!("{place}.type");
            let problem = format!("the type {} is not known", kind(object.get("type").unwrap_or(&Value::Null)));
            return out.push(Misfit { place, fault: Fault::Value, problem });
        }
        Value::Object(object) => {
            let nearest = nearest(shapes(types), object);
            if let Some(shape) = nearest {
                shape.compare(object, place, out);
            }
            nearest.is_some() || one_is(|kind| matches!(kind, Type::AnyObject))
        }
    };
    if !fits {
        let problem = format!("expected {}, got {}", expected(types), kind(value));
        let fault = if value.is_string() && names(types).next().is_some() { Fault::Value } else { Fault::Wrong };
        out.push(Misfit { place: place.to_owned(), fault, problem });
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
            Self::Any => "anything".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Bool => "a boolean".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::String => "a string".to_owned(),
            Self::OneOf(names) => names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or "),
            Self::Array(_) => "an array".to_owned(),
            Self::Object(_) | Self::AnyObject => "an object".to_owned(),
        }
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
            (json!({"content": [{"type": "x", "texts": ""}]}), "m.content[0].type: the type \"x\" is not known"),
            (json!({"content": null}), "m.content: expected a string or an array, got null"),
            (json!({"content": "a", "name": true}), "m.name: expected a string or null, got a boolean"),
            (json!({"content": "a", "id": 1}), "m.id: field is not in the type of the official SDK"),
        ];
        for (value, wanted) in table {
            let misfits = value.as_object().map(|object| MESSAGE.misfits(object, "m")).unwrap_or_default();
            let first = misfits.first().map(|misfit| format!("{}: {}", misfit.place, misfit.problem));
            assert_eq!(first.unwrap_or_default(), wanted, "{value}");
        }
    }

    #[test]
    fn the_nearest_shape_is_told_by_tags_then_by_elements_then_by_fields() {
        static OTHER: Shape =
            Shape(&[required("content", &[Type::Array(&[Type::Object(&IMAGE)])]), optional("id", &[Type::Any])]);
        let shapes: [&'static Shape; 4] = [&TEXT, &IMAGE, &MESSAGE, &OTHER];
        let table = [
            (json!({"type": "image", "text": ""}), 1),
            (json!({"text": ""}), 0),
            (json!({"content": "", "id": 1}), 2),
            (json!({"content": [{"type": "text"}], "id": 1}), 2),
            (json!({"content": [{"type": "image"}], "id": 1}), 3),
        ];
        for (value, wanted) in table {
            let nearest = value.as_object().and_then(|object| Shape::nearest(&shapes, object));
            let at = shapes.iter().position(|shape| nearest.is_some_and(|nearest| std::ptr::eq(*shape, nearest)));
            assert_eq!(at, Some(wanted), "{value}");
        }
    }

    #[test]
    fn fields_in_camel_case_have_a_second_spelling() {
        static BLOB: Shape = Shape(&[required("mimeType", &[Type::String])]);
        for (value, wanted) in [
            (json!({"mimeType": "a"}), ""),
            (json!({"mime_type": "a"}), ""),
            (json!({"mime_type": 1}), "b.mime_type"),
            (json!({}), "b.mimeType"),
            (json!({"mime_type": "a", "MimeType": "a"}), "b.MimeType"),
        ] {
            let misfits = value.as_object().map(|object| BLOB.misfits(object, "b")).unwrap_or_default();
            let places: Vec<_> = misfits.into_iter().map(|misfit| misfit.place).collect();
            assert_eq!(places.join(" "), wanted, "{value}");
        }
    }
}
