//! The format of a file, recognised from its first values.

use std::io::BufRead;

use serde_json::value::RawValue;

use super::FORMATS;
use super::format::{Format, Head, Reader};
use super::values::{Value, Values};
use crate::json;
use crate::json::fields::Fields;

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
    let packed = packed(input.fill_buf()?);
    let mut values = Values::new(input);
    let mut is_cut = false;
    let mut raws: Vec<Box<RawValue>> = Vec::new();
    let (mut is_list, mut count, mut ended) = (false, 0, false);
    while raws.len() < Head::VALUES {
        let Some(value) = values.next()? else {
            ended = true;
            break;
        };
        count += 1;
        is_list = values.list() > 0;
        is_cut |= matches!(value, Value::Cut(_));
        if let Value::Whole(bytes) = value {
            let text = String::from_utf8_lossy(&bytes);
            raws.extend(RawValue::from_string(json::replace_lone_surrogates(&text).into_owned()));
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
        None => Ok(Err(packed.map_or_else(|| looks_like(&head, count, is_cut), str::to_owned))),
    }
}

/// What a file is that must become JSON first.
fn packed(begin: &[u8]) -> Option<&'static str> {
    const UTF_16: &str = "it is UTF-16: convert it to UTF-8";
    const BEGINNINGS: &[(&[u8], &str)] = &[
        (b"\xff\xfe", UTF_16),
        (b"\xfe\xff", UTF_16),
        (b"\x1f\x8b", "it is packed by gzip: unpack it first"),
        (b"\x28\xb5\x2f\xfd", "it is packed by zstd: unpack it first"),
    ];
    BEGINNINGS.iter().find(|(known, _)| begin.starts_with(known)).map(|(_, what)| *what)
}

fn looks_like(head: &Head<'_>, count: usize, is_cut: bool) -> String {
    let Some(first) = head.values.first() else {
        let what = match (count, is_cut) {
            (0, _) => "it is empty",
            (_, true) => "it is cut off within its first value, or it is not JSON",
            _ => "it is not JSON",
        };
        return what.to_owned();
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
