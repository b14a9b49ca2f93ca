//! OpenAI's items: what Responses and Conversations hold, and what other formats adopted.

use std::io::{self, Write};

use serde_json::value::RawValue;

use crate::history::Conversation;
use crate::json::fields::{Fields, string};
use crate::model::{Message, Role};
use crate::provider::Target;
use crate::transfer::foreign::{Foreign, Skipped, Taken};
use crate::transfer::format::{Context, Format, Head, Outgoing, Reader, Writer};

pub(crate) const FORMAT: Format = Format {
    name: "openai-items",
    about: "items of OpenAI's Responses and Conversations",
    read: Some(Reader::Parts { recognise, group: |_| None, read }),
    tables: None,
    write: Some(Writer { frame: ["", "\n", "\n"], extension: "json", write }),
};

/// Types of items that no other format has, beside calls and what they gave.
const TYPES: &[&str] = &["reasoning", "compaction", "additional_tools", "item_reference"];
/// How the types of calls end, and of what they gave.
const ENDINGS: &[&str] = &["_call", "_output"];

fn recognise(head: &Head<'_>) -> bool {
    let is_page = head.values.len() == 1
        && head.first(|fields| {
            fields.peek("object").and_then(string).as_deref() == Some("list") && fields.peek("data").is_some()
        });
    let is_item = |fields: &Fields<'_>| match fields.peek("type").and_then(string).as_deref() {
        Some("message") => fields.peek("role").is_some() && fields.peek("content").is_some(),
        Some(kind) => {
            let has_id = ["call_id", "id"].iter().any(|name| fields.peek(name).is_some());
            let is_call = has_id && ENDINGS.iter().any(|end| kind.ends_with(end));
            (TYPES.contains(&kind) || is_call) && fields.peek("timestamp").is_none()
        }
        None => false,
    };
    is_page
        || head.first(is_item)
        || head.any(|fields| !head.values.is_empty() && is_item(fields) && fields.peek("payload").is_none())
}

fn read(key: &str, values: Vec<String>, _: &Context<'_>) -> Vec<Taken> {
    let mut foreign = Foreign::new(key);
    let mut items: Vec<String> = Vec::new();
    for value in values {
        let page = Fields::read(&value).ok().and_then(|mut fields| {
            fields.peek("object")?;
            Some(fields.array("data")?.into_iter().map(|raw| raw.get().to_owned()).collect::<Vec<_>>())
        });
        match page {
            Some(page) => items.extend(page),
            None => items.push(value),
        }
    }
    let raws: Vec<(&str, ())> = items.iter().map(|item| (item.as_str(), ())).collect();
    let mut number = 0;
    for (segment, ()) in segments(&raws) {
        let messages = parsed(&segment, &mut foreign);
        let id = segment.first().and_then(|item| Fields::read(item).ok()?.string("id"));
        let id = id.unwrap_or_else(|| number.to_string());
        number += segment.len();
        foreign.push(Some(id), messages);
    }
    vec![Ok(foreign.in_a_row())]
}

/// Items that are one turn: consecutive items of the model; any other item is a turn by itself. Each turn has the extra
/// fields of its first item.
pub(crate) fn segments<'a, T: Copy>(items: &[(&'a str, T)]) -> Vec<(Vec<&'a str>, T)> {
    let mut segments: Vec<(Vec<&str>, T)> = Vec::new();
    let mut is_models = false;
    for (item, with) in items {
        let is_given = is_given(item);
        match segments.last_mut() {
            Some((segment, _)) if is_models && !is_given => segment.push(item),
            _ => segments.push((vec![item], *with)),
        }
        is_models = !is_given;
    }
    segments
}

fn is_given(item: &str) -> bool {
    let Ok(fields) = Fields::read(item) else { return true };
    match fields.peek("type").and_then(string).as_deref() {
        None | Some("message") => fields.peek("role").and_then(string).as_deref() != Some("assistant"),
        Some(kind) => kind.ends_with("_output"),
    }
}

/// The messages of items.
pub(crate) fn parsed(items: &[&str], foreign: &mut Foreign) -> Vec<Message> {
    let request = format!("[{}]", items.join(","));
    match crate::provider::parse(Target::OPENAI_RESPONSES, &request) {
        Ok(parsed) => {
            let mut messages = parsed.messages;
            messages.iter_mut().filter(|message| message.role == Role::Assistant).for_each(|message| {
                message.metadata.provider = Some("openai".to_owned());
            });
            messages
        }
        Err(_) => {
            foreign.skip("item_that_is_no_json");
            Vec::new()
        }
    }
}

fn write(outgoing: &Outgoing, out: &mut dyn Write, skipped: &mut Skipped) -> io::Result<()> {
    let conversation = Conversation::new(outgoing.messages.clone());
    let input = super::rendered(Target::OPENAI_RESPONSES, &conversation, "input", skipped)?;
    match input.as_deref() {
        Some(input) => out.write_all(RawValue::get(input).as_bytes()),
        None => out.write_all(b"[]"),
    }
}
