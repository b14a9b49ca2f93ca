//! What values a parameter may have.

use serde_json::Value;

use crate::server::refusal::Refusal;

/// The most pairs of metadata, characters of a key, and of a value.
const PAIRS: (usize, usize, usize) = (16, 64, 512);

/// What values a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::server::responses) enum Kind {
    Text,
    Flag,
    /// From, and up to.
    Number(f64, f64),
    /// At least.
    Whole(u64),
    Object,
    List,
    TextOrObject,
    TextOrList,
    Pairs,
}

impl Kind {
    /// Checks the value of a parameter that is not null.
    pub(super) fn check(self, name: &str, value: &Value) -> Result<(), Refusal> {
        let fits = match self {
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Number(..) => value.is_number(),
            Self::Whole(_) => value.is_u64() || value.is_i64(),
            Self::Object | Self::Pairs => value.is_object(),
            Self::List => value.is_array(),
            Self::TextOrObject => value.is_string() || value.is_object(),
            Self::TextOrList => value.is_string() || value.is_array(),
        };
        if !fits {
            return Err(wrong(name, self.in_words(), value));
        }
        match self {
            Self::Number(from, to) if !value.as_f64().is_some_and(|number| (from..=to).contains(&number)) => {
                Err(Refusal::value(name, &format!("expected a number from {from} to {to}")))
            }
            Self::Whole(least) if value.as_u64().is_none_or(|number| number < least) => {
                Err(Refusal::value(name, &format!("expected a whole number of at least {least}")))
            }
            Self::Pairs => pairs(name, value),
            _ => Ok(()),
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Flag => "a boolean",
            Self::Number(..) => "a number",
            Self::Whole(_) => "a whole number",
            Self::Object | Self::Pairs => "an object",
            Self::List => "an array",
            Self::TextOrObject => "a string or an object",
            Self::TextOrList => "a string or an array",
        }
    }
}

fn pairs(name: &str, value: &Value) -> Result<(), Refusal> {
    let (most, key_length, length) = PAIRS;
    let pairs = value.as_object().into_iter().flatten();
    if pairs.clone().count() > most {
        return Err(Refusal::value(name, &format!("expected at most {most} pairs")));
    }
    for (key, value) in pairs {
        let place = format!("{name}.{key}");
        let text = value.as_str().ok_or_else(|| wrong(&place, "a string", value))?;
        if key.chars().count() > key_length || text.chars().count() > length {
            let problem = format!("a key has at most {key_length} characters, and a value {length}");
            return Err(Refusal::value(place, &problem));
        }
    }
    Ok(())
}

/// The refusal of a value of another type.
pub(in crate::server::responses) fn wrong(param: &str, expected: &str, value: &Value) -> Refusal {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let message = format!("Invalid type for '{param}': expected {expected}, but got {found} instead.");
    Refusal::invalid(param, "invalid_type", message)
}

/// The refusal of a parameter that has no place where the request goes. `problem` names the wire.
pub(in crate::server::responses) fn unsupported(param: &str, problem: &str) -> Refusal {
    Refusal::invalid(param, "unsupported_parameter", format!("Unsupported parameter: '{param}': {problem}."))
}

/// The refusal of a parameter that nobody knows.
pub(super) fn unknown(param: &str) -> Refusal {
    Refusal::invalid(param, "unknown_parameter", format!("Unknown parameter: '{param}'."))
}
