//! ShareGPT: the format that trainers of open models read.
//!
//! Sources: LLaMA-Factory's `data/README.md`, axolotl's documents.

use std::collections::{HashSet, VecDeque};
use std::io::{self, Write};

use serde_json::json;
use serde_json::value::RawValue;

use super::markdown::words;
use crate::history::{Calls, Site};
use crate::json::fields::{Fields, array, string};
use crate::model::extra::json as kept;
use crate::model::{Body, Chunk, Message, Role};
use crate::transfer::foreign::{Broken, Foreign, Node, Skipped, Taken};
use crate::transfer::format::{Context, Format, Head, Outgoing, Reader, Writer};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "sharegpt",
    about: "ShareGPT's conversations",
    read: Some(Reader::Each { recognise, read }),
    tables: None,
    write: Some(Writer { frame: ["[", ",\n", "]\n"], extension: "json", write }),
};

fn recognise(head: &Head<'_>) -> bool {
    let is_said = |raw: &RawValue| {
        let said = array(raw).unwrap_or_default();
        said.first().and_then(|first| Fields::of(first)).is_some_and(|first| first.peek("from").is_some())
    };
    head.any(|fields| {
        fields.peek("conversations").is_some_and(|raw| raw.get().starts_with('['))
            || fields.peek("items").is_some_and(is_said)
    })
}

fn read(text: &str, context: &Context<'_>) -> Taken {
    let mut fields = Fields::read(text).map_err(|error| Broken::new(error.to_string()))?;
    let id = fields.string("id").unwrap_or_else(|| context.unnamed());
    let Some(said) = ["conversations", "items"].iter().find_map(|name| fields.array(name)) else {
        return Err(Broken { id: Some(id), title: None, why: "it has no list of conversations".to_owned() });
    };
    let mut reading = Reading {
        foreign: Foreign::new(id),
        images: fields.array("images").unwrap_or_default().into(),
        open: VecDeque::new(),
        calls: 0,
    };
    if let Some(system) = fields.string("system").filter(|text| !text.is_empty()) {
        reading.foreign.push(Some("system".to_owned()), vec![Message::system(system)]);
    }
    for raw in said {
        let messages = reading.messages(raw);
        let id = reading.foreign.nodes.len().to_string();
        reading.foreign.push(Some(id), messages);
    }
    let parting = reading.foreign.nodes.last().map(|node| node.id.clone());
    for name in ["chosen", "rejected"] {
        let Some(raw) = fields.take(name) else { continue };
        let messages = reading.messages(raw);
        reading.foreign.nodes.push(Node { id: name.to_owned(), parent: parting.clone(), messages });
        if name == "chosen" {
            reading.foreign.shown = Some(name.to_owned());
        }
    }
    let mut foreign = reading.foreign;
    for raw in reading.images {
        foreign.skip("image_without_a_mark");
        foreign.rest.push(
            "image",
            match kept(raw) {
                Some(json) => json,
                None => continue,
            },
        );
    }
    for (name, json) in take::rest(fields).iter() {
        foreign.rest.push(name, json.clone());
    }
    Ok(foreign)
}

struct Reading<'a> {
    foreign: Foreign,
    images: VecDeque<&'a RawValue>,
    /// Calls that have no result yet.
    open: VecDeque<String>,
    calls: usize,
}

impl Reading<'_> {
    fn messages(&mut self, raw: &RawValue) -> Vec<Message> {
        let Some(mut fields) = Fields::of(raw) else {
            self.foreign.skip("message_that_is_no_object");
            return Vec::new();
        };
        let from = ["from", "role"].iter().find_map(|name| fields.string(name)).unwrap_or_default();
        let value = ["value", "content"].iter().find_map(|name| fields.text(name)).unwrap_or_default();
        let mut messages = match from.to_lowercase().as_str() {
            "system" | "developer" => vec![Message::system(value)],
            "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model" => {
                vec![Message::assistant([Chunk::text(value)])]
            }
            "function_call" | "tool_call" => vec![Message::assistant(self.called(&value))],
            "observation" | "tool" | "function" | "function_response" | "tool_response" => {
                let id = self.open.pop_front().unwrap_or_default();
                vec![Message::tool(id, value)]
            }
            other => {
                if !matches!(other, "human" | "user") {
                    self.foreign.skip("unknown_role_taken_for_user");
                }
                vec![Message::new(Role::User, self.pictured(&value))]
            }
        };
        if messages
            .iter()
            .flat_map(|message| &message.chunks)
            .all(|chunk| matches!(&chunk.body, Body::Text { text, .. } if text.is_empty()))
        {
            self.foreign.skip("empty_message");
            return Vec::new();
        }
        take::keep(fields, messages.first_mut());
        messages
    }

    /// One call, or several in a list; anything else is text.
    fn called(&mut self, value: &str) -> Vec<Chunk> {
        let raw = RawValue::from_string(value.trim().to_owned()).ok();
        let list = raw.as_deref().map(|raw| array(raw).unwrap_or_else(|| vec![raw])).unwrap_or_default();
        let call = |raw: &RawValue| {
            let mut fields = Fields::of(raw)?;
            let name = fields.string("name")?;
            let given = ["arguments", "parameters"].iter().find_map(|name| fields.take(name));
            let arguments = take::arguments(given);
            let id = fields.string("id").unwrap_or_else(|| format!("call_{}", self.calls));
            self.calls += 1;
            self.open.push_back(id.clone());
            Some(take::with_rest(fields, Chunk::tool_call(id, name, arguments).body))
        };
        let calls: Option<Vec<Chunk>> = list.into_iter().map(call).collect();
        calls.filter(|calls| !calls.is_empty()).unwrap_or_else(|| {
            self.foreign.skip("call_that_is_no_json_kept_as_text");
            vec![Chunk::text(value)]
        })
    }

    /// Text with its pictures at their marks.
    fn pictured(&mut self, value: &str) -> Vec<Chunk> {
        const MARK: &str = "<image>";
        let mut chunks = Vec::new();
        let mut pieces = value.split(MARK).peekable();
        while let Some(piece) = pieces.next() {
            let mut text = piece.to_owned();
            let image = if pieces.peek().is_some() { self.images.pop_front() } else { None };
            let url = image.and_then(string);
            if url.is_none() && pieces.peek().is_some() {
                text.push_str(MARK);
            }
            if !text.is_empty() {
                chunks.push(Chunk::text(text));
            }
            chunks.extend(url.map(Chunk::image));
        }
        chunks
    }
}

fn write(outgoing: &Outgoing, out: &mut dyn Write, skipped: &mut Skipped) -> io::Result<()> {
    let mut said: Vec<(&str, String)> = Vec::new();
    let mut system = Vec::new();
    let mut skip = |kind: &str| *skipped.entry(kind.to_owned()).or_default() += 1;
    // Results have no ids: they come in the order of the calls. One that is missing is empty, unless none comes after it.
    let paired = Calls::pair(&outgoing.messages);
    let (calls, results): (Vec<Site>, HashSet<Site>) = paired.pairs().unzip();
    let last = calls.last().copied();
    let result = |site: Site| {
        let chunk = outgoing.messages.get(site.message).and_then(|stored| stored.message.chunks.get(site.chunk));
        match chunk.map(|chunk| &chunk.body) {
            Some(Body::ToolResult { output, .. }) => words(output),
            _ => String::new(),
        }
    };
    for (at, message) in outgoing.messages.iter().map(|stored| &stored.message).enumerate() {
        let (mut text, mut calls, mut observed) = (String::new(), Vec::new(), Vec::new());
        for (chunk, content) in message.chunks.iter().enumerate() {
            let site = Site { message: at, chunk };
            match &content.body {
                Body::Text { text: more, .. } | Body::Refusal { text: more } => text.push_str(more),
                Body::ToolCall { name, arguments, .. } => {
                    let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
                    calls.push(json!({ "name": name, "arguments": arguments }));
                    if paired.result(site).is_none() {
                        skip("call_without_a_result");
                    }
                    if Some(site) <= last {
                        observed.push(("observation", paired.result(site).map(result).unwrap_or_default()));
                    }
                }
                Body::ToolResult { .. } if results.contains(&site) => {}
                Body::ToolResult { .. } => skip("result_without_a_call"),
                other => skip(other.kind()),
            }
        }
        match message.role {
            Role::System => system.push(text),
            Role::Assistant if !text.is_empty() => said.push(("gpt", text)),
            // What a tool says beside results is said by the user, as in prompts.
            Role::User | Role::Tool if !text.is_empty() => said.push(("human", text)),
            _ => {}
        }
        match calls.as_slice() {
            [] => {}
            [call] => said.push(("function_call", call.to_string())),
            _ => said.push(("function_call", json!(calls).to_string())),
        }
        said.append(&mut observed);
    }
    let said: Vec<_> = said.into_iter().map(|(from, value)| json!({ "from": from, "value": value })).collect();
    let id = outgoing.item.key.clone().unwrap_or_else(|| outgoing.item.id.to_string());
    let mut conversation = json!({ "id": id, "conversations": said });
    if let (false, Some(fields)) = (system.is_empty(), conversation.as_object_mut()) {
        fields.insert("system".to_owned(), json!(system.join("\n\n")));
    }
    serde_json::to_writer(out, &conversation)?;
    Ok(())
}
