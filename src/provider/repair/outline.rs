//! The text of an array or object, taken apart: its values, and the text before each of them.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::fields::{Fields, array};

/// The text of an array or object, taken apart so that it can be put together again.
#[derive(Debug)]
pub(super) struct Outline<'a> {
    open: &'a str,
    pub(super) members: Vec<Member<'a>>,
    /// The text after the last value.
    tail: &'a str,
}

#[derive(Debug)]
pub(super) struct Member<'a> {
    /// White space and, in an object, the name; without the comma.
    lead: &'a str,
    /// Empty in an array.
    pub(super) name: Cow<'a, str>,
    pub(super) value: &'a RawValue,
}

impl<'a> Outline<'a> {
    /// `None` for any other value.
    pub(super) fn of(raw: &'a RawValue) -> Option<Self> {
        let text = raw.get();
        let values = match text.as_bytes().first()? {
            b'[' => array(raw)?.into_iter().map(|value| (Cow::Borrowed(""), value)).collect(),
            b'{' => Fields::of(raw)?.pairs(),
            _ => return None,
        };
        let mut end = 1;
        let mut members = Vec::with_capacity(values.len());
        for (name, value) in values {
            let start = value.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
            let lead = text.get(end..start)?;
            let lead = lead.trim_start().strip_prefix(',').unwrap_or(lead);
            members.push(Member { lead, name, value });
            end = start + value.get().len();
        }
        Some(Self { open: text.get(..1)?, members, tail: text.get(end..)? })
    }

    /// The text with these values in place of its own: `None` as the value of a member keeps the member as it is.
    pub(super) fn written<'v>(&self, parts: impl Iterator<Item = Part<'v>>) -> String {
        let mut out = self.open.to_owned();
        let mut space = "";
        for (i, part) in parts.enumerate() {
            if i > 0 {
                out.push(',');
            }
            let (member, value) = match part {
                Part::Given(at) => (self.members.get(at), None),
                Part::Changed(at, value) => (self.members.get(at), Some(value)),
                Part::New(name, value) => {
                    out.push_str(space);
                    if let Some(name) = name {
                        out.push_str(&serde_json::Value::from(name).to_string());
                        out.push(':');
                    }
                    out.push_str(value);
                    continue;
                }
            };
            let Some(member) = member else { continue };
            out.push_str(member.lead);
            out.push_str(value.unwrap_or_else(|| member.value.get()));
            space = if self.open == "[" { member.lead } else { leading_space(member.lead) };
        }
        out.push_str(self.tail);
        out
    }
}

fn leading_space(lead: &str) -> &str {
    lead.get(..lead.len() - lead.trim_start().len()).unwrap_or_default()
}

/// A member of what is written.
#[derive(Debug)]
pub(super) enum Part<'v> {
    /// That at this position, as it is.
    Given(usize),
    /// That at this position, with this value.
    Changed(usize, &'v str),
    /// Another one. In an object it has a name.
    New(Option<&'v str>, &'v str),
}
