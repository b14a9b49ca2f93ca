//! The format of a file, recognised from its first values.

use std::io::BufRead;

use serde_json::value::RawValue;

use super::FORMATS;
use super::format::{Format, Head, Reader};
use super::values::{Value, Values};
use crate::model::json_text;
use crate::provider::fields::Fields;

/// A file's format, and what its values are.
pub(super) struct Known {
    pub(super) format: &'static Format,
    /// Whether its first value is its only one.
    pub(super) only: bool,
}

/// Finds a file's format, or states what it looks like.
pub(super) fn recognise(
    input: &mut dyn BufRead,
    wanted: Option<&'static Format>,
) -> std::io::Result<Result<Known, String>> {
    let mut values = Values::new(input);
    let mut raws: Vec<Box<RawValue>> = Vec::new();
    let (mut is_list, mut count, mut ended) = (false, 0, false);
    while raws.len() < Head::VALUES {
        let Some(value) = values.next()? else {
            ended = true;
            break;
        };
        count += 1;
        is_list = values.list() > 0;
        if let Value::Whole(bytes) = value {
            let text = String::from_utf8_lossy(&bytes);
            raws.extend(RawValue::from_string(json_text::replace_lone_surrogates(&text).into_owned()));
        }
        if count >= Head::VALUES {
            break;
        }
    }
    let only = ended && count == 1;
    if let Some(format) = wanted {
        return Ok(Ok(Known { format, only }));
    }
    let head = Head { values: raws.iter().map(AsRef::as_ref).collect(), is_list };
    let is_it = |format: &&Format| match &format.read {
        Some(Reader::Each { recognise, .. } | Reader::Parts { recognise, .. }) => recognise(&head),
        _ => false,
    };
    match FORMATS.iter().find(is_it) {
        Some(format) => Ok(Ok(Known { format, only })),
        None => Ok(Err(looks_like(&head, count))),
    }
}

fn looks_like(head: &Head<'_>, count: usize) -> String {
    let Some(first) = head.values.first() else {
        return if count == 0 { "it is empty".to_owned() } else { "it is not JSON".to_owned() };
    };
    let what = match Fields::of(first) {
        Some(fields) => {
            let names: Vec<String> = fields.names().take(12).map(|name| name.chars().take(40).collect()).collect();
            format!("objects with the fields {}", names.join(", "))
        }
        None => format!("values such as {}", first.get().chars().take(40).collect::<String>()),
    };
    if head.is_list { format!("a list of {what}") } else { what }
}
