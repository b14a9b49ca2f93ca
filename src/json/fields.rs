//! A JSON object as its fields in order, each with its raw text: taken by name, and what nobody took is the rest.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The fields of an object. `null` counts as absent; of fields with one name the last counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// An item of an array.
#[derive(Debug)]
pub(crate) enum Item<'a> {
    /// An object.
    Object(Fields<'a>),
    /// Any other value.
    Other(&'a RawValue),
}

/// A field's name, which is copied only if it holds escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Fields<'a> {
    /// Reads the text of an object.
    pub(crate) fn read(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Reads the text of an object, and in the same pass the value of one field as what it should be. `None` if it is something
    /// else, or there twice, or the text is no object.
    pub(crate) fn read_with<T: Deserialize<'a>>(text: &'a str, name: &str) -> Option<(Self, Option<T>)> {
        struct With<'n, T>(&'n str, PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for With<'_, T> {
            type Value = (Fields<'de>, Option<T>);

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut pairs, mut with) = (Vec::new(), None);
                while let Some(Name(name)) = map.next_key()? {
                    if name != self.0 {
                        pairs.push((name, map.next_value()?));
                    } else if with.replace(map.next_value()?).is_some() {
                        return Err(A::Error::duplicate_field("the list"));
                    }
                }
                Ok((Fields(pairs), with))
            }
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let read = deserializer.deserialize_map(With(name, PhantomData)).ok()?;
        deserializer.end().ok()?;
        Some(read)
    }

    /// The fields of a value that is an object.
    pub(crate) fn of(raw: &'a RawValue) -> Option<Self> {
        if raw.get().starts_with('{') { Self::read(raw.get()).ok() } else { None }
    }

    /// One field, for a value in the place of an object.
    pub(crate) fn one(name: &str, raw: &'a RawValue) -> Self {
        Self(vec![(Cow::Owned(name.to_owned()), raw)])
    }

    /// Takes all fields but an error, which is left for the decoder.
    pub(crate) fn take_but_error(&mut self) -> Self {
        let error = self.take("error");
        let rest = std::mem::take(self);
        self.0.extend(error.map(|error| (Cow::Borrowed("error"), error)));
        rest
    }

    /// A field's value, also if it is `null`.
    pub(crate) fn last(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rfind(|(field, _)| field == name).map(|(_, raw)| *raw)
    }

    /// A field's value, left where it is.
    pub(crate) fn peek(&self, name: &str) -> Option<&'a RawValue> {
        self.last(name).filter(|raw| raw.get() != "null")
    }

    /// Whether a field is this string.
    pub(crate) fn says(&self, name: &str, word: &str) -> bool {
        self.peek(name).and_then(string).is_some_and(|string| string == word)
    }

    /// Takes a field, whatever it is.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().rposition(|(field, _)| field == name)?;
        let (_, raw) = self.0.remove(at);
        self.0.retain(|(field, _)| field != name);
        (raw.get() != "null").then_some(raw)
    }

    /// Drops the fields whose values say nothing.
    #[cfg(feature = "transfer")]
    pub(crate) fn drop_if(&mut self, says_nothing: impl Fn(&str, &RawValue) -> bool) {
        let dropped = self.present().filter(|(name, raw)| says_nothing(name, raw));
        let dropped: std::collections::HashSet<String> = dropped.map(|(name, _)| name.to_owned()).collect();
        self.0.retain(|(name, _)| !dropped.contains(name.as_ref()));
    }

    /// Takes a field that `read` understands; any other stays.
    fn take_if<T>(&mut self, name: &str, read: impl FnOnce(&'a RawValue) -> Option<T>) -> Option<T> {
        let value = self.peek(name).and_then(read)?;
        self.take(name);
        Some(value)
    }

    /// Takes a string.
    pub(crate) fn string(&mut self, name: &str) -> Option<String> {
        self.take_if(name, string)
    }

    /// Takes a string; of any other value, its JSON text.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.take(name).map(text)
    }

    /// Takes a whole number.
    pub(crate) fn integer(&mut self, name: &str) -> Option<u64> {
        self.take_if(name, |raw| raw.get().parse().ok())
    }

    /// Takes an object.
    pub(crate) fn object(&mut self, name: &str) -> Option<Self> {
        self.take_if(name, Self::of)
    }

    /// Takes an array.
    pub(crate) fn array(&mut self, name: &str) -> Option<Vec<&'a RawValue>> {
        self.take_if(name, array)
    }

    /// The fields that are there, each with the value that counts. To look each name up by [`Fields::peek`] would take time by the
    /// square of their number.
    pub(crate) fn present(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        const FEW: usize = 16;
        let table = || self.0.iter().map(|(name, raw)| (name.as_ref(), *raw)).collect::<HashMap<&str, &'a RawValue>>();
        let values = (self.0.len() > FEW).then(table);
        self.names().filter_map(move |name| {
            let raw = values.as_ref().map_or_else(|| self.last(name), |values| values.get(name).copied())?;
            (raw.get() != "null").then_some((name, raw))
        })
    }

    /// The names of the fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_ref())
    }

    /// What nobody took.
    pub(crate) fn pairs(self) -> Vec<(Cow<'a, str>, &'a RawValue)> {
        self.0
    }

    /// What nobody took, but `null`.
    pub(crate) fn rest(self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.0.into_iter().filter(|(_, raw)| raw.get() != "null")
    }
}

/// A string's content.
pub(crate) fn string(raw: &RawValue) -> Option<String> {
    // The parser would word an error for every other value, which costs more than the value.
    if raw.get().starts_with('"') { serde_json::from_str(raw.get()).ok() } else { None }
}

/// A string's content; of any other value, its JSON text.
pub(crate) fn text(raw: &RawValue) -> String {
    string(raw).unwrap_or_else(|| raw.get().to_owned())
}

/// An array's items.
pub(crate) fn array(raw: &RawValue) -> Option<Vec<&RawValue>> {
    if raw.get().starts_with('[') { serde_json::from_str(raw.get()).ok() } else { None }
}

/// An array's items. Arrays of objects alone, which are the rule, are read in one pass.
pub(crate) fn items(raw: &RawValue) -> Option<Vec<Item<'_>>> {
    if !raw.get().starts_with('[') {
        return None;
    }
    if let Ok(objects) = serde_json::from_str::<Vec<Fields<'_>>>(raw.get()) {
        return Some(objects.into_iter().map(Item::Object).collect());
    }
    let item = |raw| Fields::of(raw).map_or(Item::Other(raw), Item::Object);
    Some(array(raw)?.into_iter().map(item).collect())
}

/// Whether a value says nothing: `null`, or an empty string, array or object.
pub(crate) fn is_empty(raw: &RawValue) -> bool {
    let text = raw.get();
    let inside = |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    let is_blank = |inner: Option<&str>| inner.is_some_and(|inner| inner.trim().is_empty());
    matches!(text, "null" | "\"\"") || is_blank(inside('[', ']')) || is_blank(inside('{', '}'))
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    pairs.push((name, value));
                }
                Ok(Fields(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_by_name_and_null_is_absent() {
        let mut fields = Fields::read(r#"{"a":1,"b":null,"a":2,"c":"x","d":null}"#).unwrap();
        let names = |fields: &Fields<'_>| fields.names().map(str::to_owned).collect::<Vec<_>>();
        // Of one name the last counts, and all of them go.
        assert_eq!((fields.integer("b"), fields.integer("c"), fields.integer("a")), (None, None, Some(2)));
        assert_eq!(names(&fields), ["b", "c", "d"], "what was not understood stays");
        assert!(fields.take("b").is_none());
        assert_eq!(names(&fields), ["c", "d"]);
        let rest: Vec<_> = fields.rest().map(|(name, raw)| (name.into_owned(), raw.get())).collect();
        assert_eq!(rest, [("c".to_owned(), r#""x""#)]);
    }

    #[test]
    fn fields_that_are_there_have_the_value_that_counts() {
        // Few fields are looked up one by one, many in a table.
        let many: String = (0..100).map(|number| format!(",\"n{number}\":null")).collect();
        for (text, wanted) in [
            ("", ""),
            (r#","a":1,"b":2"#, "a1 b2"),
            (r#","a":null,"b":2"#, "b2"),
            (r#","a":1,"b":2,"a":null"#, "b2"),
            (r#","a":null,"b":2,"a":1"#, "a1 b2 a1"),
        ] {
            for fields in [text.to_owned(), format!("{many}{text}"), format!("{text}{many}")] {
                let object = format!("{{{}}}", fields.trim_start_matches(','));
                let fields = Fields::read(&object).unwrap();
                let shown: Vec<String> = fields.present().map(|(name, raw)| format!("{name}{raw}")).collect();
                assert_eq!(shown.join(" "), wanted, "{object}");
            }
        }
    }

    #[cfg(feature = "transfer")]
    #[test]
    fn fields_that_say_nothing_are_dropped() {
        let mut fields = Fields::read(r#"{"a":"","b":1,"c":null,"d":[],"b":{},"a":2,"e":""}"#).unwrap();
        fields.drop_if(|name, raw| name != "e" && is_empty(raw));
        // The last value of a name counts, and `null` is no value.
        assert_eq!(fields.names().collect::<Vec<_>>(), ["a", "c", "a", "e"]);
    }

    #[test]
    fn items_are_objects_or_what_they_are() {
        let read = |text: &str| {
            let shown = |item| match item {
                Item::Object(fields) => fields.names().collect::<Vec<_>>().join("+"),
                Item::Other(raw) => raw.get().to_owned(),
            };
            let fields = Fields::read(text).unwrap();
            fields.peek("a").and_then(items).map(|items| items.into_iter().map(shown).collect::<Vec<_>>())
        };
        let wanted = |items: &[&str]| Some(items.iter().map(|item| (*item).to_owned()).collect());
        assert_eq!(read(r#"{"a":[{"b":1,"c":{}},{}]}"#), wanted(&["b+c", ""]));
        assert_eq!(read(r#"{"a":[{"b":1},null,[{}], "d"]}"#), wanted(&["b", "null", "[{}]", r#""d""#]));
        assert_eq!(read(r#"{"a":[]}"#), wanted(&[]));
        assert_eq!(read(r#"{"a":{"b":[]}}"#), None);
    }

    #[test]
    fn one_field_is_read_in_the_same_pass() {
        let read = |text| {
            let (fields, list) = Fields::read_with::<Vec<u8>>(text, "a")?;
            Some((fields.names().collect::<Vec<_>>().join("+"), list))
        };
        assert_eq!(read(r#"{"b":[1],"a":[1,2],"c":{}}"#), Some(("b+c".to_owned(), Some(vec![1, 2]))));
        assert_eq!(read(r#" {"b":1} "#), Some(("b".to_owned(), None)));
        for other in [r#"{"a":"x"}"#, r#"{"a":null}"#, r#"{"a":[1],"a":[2]}"#, r#"{"a":[1]} x"#, "[]", r#"{"a":[1]"#] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
