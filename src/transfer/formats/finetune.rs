//! Lines of OpenAI's fine-tuning, for chats and for preferences: most trainers read them.

use std::io::{self, Write};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::history::Conversation;
use crate::json::fields::{Fields, array};
use crate::model::{Body, Message};
use crate::provider::Target;
use crate::transfer::foreign::{Broken, Foreign, Node, Skipped, Taken};
use crate::transfer::format::{Context, Format, Head, Outgoing, Reader, Writer};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "openai-finetune",
    about: "lines of OpenAI's fine-tuning",
    read: Some(Reader::Each { recognise, read }),
    tables: None,
    write: Some(Writer { frame: ["", "", ""], extension: "jsonl", write }),
};

fn recognise(head: &Head<'_>) -> bool {
    let is_list = |fields: &Fields<'_>, name: &str| fields.peek(name).is_some_and(|raw| raw.get().starts_with('['));
    let has_roles = |fields: &Fields<'_>| {
        let messages = fields.peek("messages").and_then(array).unwrap_or_default();
        messages.first().is_none_or(|first| Fields::of(first).is_some_and(|first| first.peek("role").is_some()))
    };
    head.any(|fields| {
        is_list(fields, "messages") && has_roles(fields) && fields.peek("conversationId").is_none()
            || is_list(fields, "preferred_output")
    })
}

fn read(text: &str, context: &Context<'_>) -> Taken {
    let mut fields = Fields::read(text).map_err(|error| Broken::new(error.to_string()))?;
    let id = ["id", "conversation_id"].iter().find_map(|name| fields.string(name));
    let mut foreign = Foreign::new(id.unwrap_or_else(|| context.unnamed()));
    foreign.title = take::title(&mut fields, "title");
    let mut input = fields.object("input").unwrap_or_default();
    let Some(messages) = fields.array("messages").or_else(|| input.array("messages")) else {
        return Err(Broken { id: Some(foreign.id), title: None, why: "it has no list of messages".to_owned() });
    };
    add(&messages, "", &mut foreign);
    let parting = foreign.nodes.last().map(|node| node.id.clone());
    for (name, mark) in [("preferred_output", "preferred:"), ("non_preferred_output", "non_preferred:")] {
        let outputs = fields.array(name).unwrap_or_default();
        let first = foreign.nodes.len();
        add(&outputs, mark, &mut foreign);
        if let Some(node) = foreign.nodes.get_mut(first) {
            node.parent.clone_from(&parting);
        }
        if mark == "preferred:" {
            foreign.shown = foreign.nodes.last().map(|node| node.id.clone());
        }
    }
    foreign.rest = take::rest(fields);
    for (name, json) in take::rest(input).iter() {
        foreign.rest.push(name, json.clone());
    }
    Ok(foreign)
}

fn add(messages: &[&RawValue], mark: &str, foreign: &mut Foreign) {
    for (number, raw) in messages.iter().enumerate() {
        let request = format!("[{raw}]");
        let parsed = crate::provider::parse(Target::OPENAI_CHAT, &request).unwrap_or_default();
        let mut messages = parsed.messages;
        messages.iter_mut().for_each(weigh);
        let parent = foreign.nodes.last().map(|node| node.id.clone());
        foreign.nodes.push(Node { id: format!("{mark}{number}"), parent, messages });
    }
}

/// The weight is for a trainer; it is no content.
fn weigh(message: &mut Message) {
    let is_weight = |body: &Body| matches!(body, Body::Opaque { kind, .. } if kind == "weight");
    for chunk in message.chunks.extract_if(.., |chunk| is_weight(&chunk.body)) {
        if let Body::Opaque { json, .. } = chunk.body {
            message.metadata.extra.push("weight", json);
        }
    }
}

fn write(outgoing: &Outgoing, out: &mut dyn Write, skipped: &mut Skipped) -> io::Result<()> {
    let conversation = Conversation::new(outgoing.messages.clone());
    let messages = super::rendered(Target::OPENAI_CHAT, &conversation, "messages", skipped)?;
    let messages: Vec<Box<RawValue>> =
        messages.map_or_else(Vec::new, |raw| serde_json::from_str(raw.get()).unwrap_or_default());
    let is_answer = |raw: &RawValue| {
        let message: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        message.get("role").is_some_and(|role| role == "assistant") && message.get("tool_calls").is_none()
    };
    // A line ends with an answer.
    let Some(end) = messages.iter().rposition(|raw| is_answer(raw)) else {
        *skipped.entry("conversation_without_an_answer".to_owned()).or_default() += 1;
        return Ok(());
    };
    let left = messages.len() - end - 1;
    if left > 0 {
        *skipped.entry("message_after_the_last_answer".to_owned()).or_default() += left as u64;
    }
    let kept: Vec<&RawValue> = messages.iter().take(end + 1).map(AsRef::as_ref).collect();
    out.write_all(b"{\"messages\":")?;
    serde_json::to_writer(&mut *out, &kept)?;
    out.write_all(b"}\n")
}
