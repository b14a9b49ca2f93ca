//! JSON objects as the service reads them: into its `Struct`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::history::report::Arguments;
use crate::json;
use crate::provider::prompt::arguments::{EMBEDDED_DEPTH, embedded, malformed};

/// What was mended in arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mended {
    Arguments(Arguments),
    Surrogates,
}

/// Arguments, of the text of an object; and what was mended.
pub(crate) fn arguments(object: &str) -> (Box<RawValue>, Option<Mended>) {
    // The service's parser stops at 100 levels, the request's own among them.
    let deep = json::is_deeper(object, DEPTH);
    let taken: Cow<'_, str> = if deep { Cow::Owned(malformed(object)) } else { Cow::Borrowed(object) };
    let json = embedded(&taken).json;
    if deep {
        return (json, Some(Mended::Arguments(Arguments::TooDeep)));
    }
    if has_repeated_keys(json.get()) {
        let value = serde_json::from_str::<Value>(json.get());
        let mended = value.and_then(|value| serde_json::value::to_raw_value(&value));
        return match mended {
            Ok(json) => (json, Some(Mended::Arguments(Arguments::RepeatedKey))),
            Err(_) => (embedded(&malformed(object)).json, Some(Mended::Arguments(Arguments::Number))),
        };
    }
    let mended = json.get() != json::one_line(object);
    (json, mended.then_some(Mended::Surrogates))
}

/// The object that a text is, if the service takes it as it is.
pub(crate) fn plain(text: &str) -> Option<Box<RawValue>> {
    if !json::is_object(text) || json::is_deeper(text, DEPTH) || has_repeated_keys(text) {
        return None;
    }
    RawValue::from_string(json::one_line(text.trim()).into_owned()).ok()
}

const DEPTH: usize = if EMBEDDED_DEPTH < 90 { EMBEDDED_DEPTH } else { 90 };

/// Whether a key is twice in an object, or the text is no JSON that parsers take.
fn has_repeated_keys(text: &str) -> bool {
    serde_json::from_str::<Distinct>(text).is_err()
}

/// JSON without repeated keys.
struct Distinct;

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Keys)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Distinct;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without repeated keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Distinct, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if !keys.insert(key) {
                return Err(A::Error::custom("a repeated key"));
            }
            map.next_value::<Distinct>()?;
        }
        Ok(Distinct)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Distinct, A::Error> {
        while seq.next_element::<Distinct>()?.is_some() {}
        Ok(Distinct)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_str<E>(self, _: &str) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_unit<E>(self) -> Result<Distinct, E> {
        Ok(Distinct)
    }
}
