//! Fields of a request that are not known, and did not reach the prompt.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use crate::history::report::Fact;
use crate::history::{ReportLine, StoredMessage};
use crate::json::fields::{Fields, array};

/// A field that is not known, and the line that it gets if it does not reach the prompt.
pub(super) struct Unknown<'a> {
    name: &'a str,
    value: &'a str,
    line: ReportLine,
}

/// The unknown fields of messages and chunks.
pub(super) fn unknown_fields(messages: &[StoredMessage]) -> Vec<Unknown<'_>> {
    let mut unknown = Vec::new();
    for stored in messages {
        unknown.extend(stored.message.metadata.extra.iter().map(|(name, json)| Unknown {
            name,
            value: json.as_str(),
            line: ReportLine::message(Fact::FieldUnknown { name }, stored),
        }));
        for (at, chunk) in stored.message.chunks.iter().enumerate() {
            unknown.extend(chunk.extra.iter().map(|(name, json)| Unknown {
                name,
                value: json.as_str(),
                line: ReportLine::chunk(Fact::FieldUnknown { name }, stored, at),
            }));
        }
    }
    unknown
}

/// Lines for those unknown fields that are nowhere in the request.
pub(super) fn left_out(unknown: Vec<Unknown<'_>>, request: &RawValue) -> Vec<ReportLine> {
    let mut written = HashSet::new();
    if !unknown.is_empty() {
        collect(request, &mut written);
    }
    let lost = unknown.into_iter().filter(|unknown| !written.contains(&(Cow::Borrowed(unknown.name), unknown.value)));
    lost.map(|unknown| unknown.line).collect()
}

/// All fields of all objects. How deep a request is nested, its renderer and [`Json::MAX_DEPTH`](crate::model::Json)
/// limit.
fn collect<'a>(value: &'a RawValue, written: &mut HashSet<(Cow<'a, str>, &'a str)>) {
    for (name, field) in Fields::of(value).unwrap_or_default().pairs() {
        collect(field, written);
        written.insert((name, field.get()));
    }
    if value.get().starts_with('[') {
        array(value).unwrap_or_default().into_iter().for_each(|item| collect(item, written));
    }
}
