//! Sessions of Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl`.
//!
//! Sources: txcript's `docs/formats/codex.md` with its pointers into openai/codex; see `docs/transfer.md`.

use std::collections::HashSet;
use std::io::{self, Write};

use serde_json::value::RawValue;
use serde_json::{Value, json as value};

use super::items::{parsed, segments};
use super::session::{is_scaffolding, said};
use crate::json::fields::{Fields, string};
use crate::model::extra::json;
use crate::model::{Json, Message, Role, Timestamp};
use crate::provider::Target;
use crate::transfer::foreign::{Foreign, Node, Skipped, Taken};
use crate::transfer::format::{Context, Format, Head, Outgoing, Reader, Writer};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "codex",
    about: "sessions of Codex",
    read: Some(Reader::Parts { recognise, group: |_| None, read }),
    tables: None,
    write: Some(Writer { frame: ["", "", ""], extension: "jsonl", write }),
};

/// What the oldest rollouts have in place of lines with a payload: the session's own line, then bare items.
fn is_bare(fields: &Fields<'_>) -> bool {
    ["id", "timestamp", "instructions"].iter().all(|name| fields.names().any(|known| known == *name))
}

fn recognise(head: &Head<'_>) -> bool {
    const KINDS: &[&str] = &["session_meta", "turn_context", "response_item", "event_msg", "compacted"];
    let is_line = |fields: &Fields<'_>| {
        let kind = fields.peek("type").and_then(string);
        fields.peek("payload").is_some() && kind.is_some_and(|kind| KINDS.contains(&kind.as_str()))
    };
    head.any(is_line) || !head.is_list && head.first(|fields| is_bare(fields) && fields.peek("type").is_none())
}

/// What is known at an item.
#[derive(Clone, Copy)]
struct Place {
    line: usize,
    time: Option<Timestamp>,
    /// The turn's items, as positions in a list.
    turn: Option<usize>,
}

#[derive(Default)]
struct Turn {
    id: Option<String>,
    model: Option<String>,
}

fn read(key: &str, lines: Vec<String>, _: &Context<'_>) -> Vec<Taken> {
    sessions(&lines).into_iter().map(|lines| Ok(one(key, lines))).collect()
}

/// The lines of each session: several may be in one file, one after the other. What a session has of one that it continues is
/// before all items.
fn sessions(lines: &[String]) -> Vec<&[String]> {
    let mut sessions = Vec::new();
    let (mut begin, mut has_items, mut ids) = (0, false, HashSet::new());
    for (at, line) in lines.iter().enumerate() {
        let mut fields =
            if line.contains("session_meta") { Fields::read(line).unwrap_or_default() } else { Fields::default() };
        let meta = if fields.says("type", "session_meta") { fields.object("payload") } else { None };
        let Some(id) = meta.and_then(|mut meta| meta.string("id")) else {
            has_items |= line.contains("response_item") || line.contains("compacted");
            continue;
        };
        if has_items && !ids.contains(&id) {
            sessions.extend(lines.get(begin..at));
            (begin, has_items) = (at, false);
            ids.clear();
        }
        ids.insert(id);
    }
    sessions.extend(lines.get(begin..));
    sessions
}

fn one(key: &str, lines: &[String]) -> Foreign {
    let mut foreign = Foreign::new(key);
    let mut items: Vec<(String, Place)> = Vec::new();
    let mut turns: Vec<Turn> = Vec::new();
    let mut usages: Vec<(usize, Json)> = Vec::new();
    // After how many items turns were taken back, and how many turns.
    let mut taken_back: Vec<(usize, u64)> = Vec::new();
    let mut provider = None;
    for (number, line) in lines.iter().enumerate() {
        let Ok(mut fields) = Fields::read(line) else {
            foreign.skip("line_that_is_no_object");
            continue;
        };
        let time = fields.peek("timestamp").and_then(take::moment);
        let place = Place { line: number, time, turn: turns.len().checked_sub(1) };
        let kind = fields.peek("type").and_then(string).unwrap_or_default();
        let Some(payload) = fields.take("payload") else {
            // A bare item, or the bare line of the session.
            if kind.is_empty() && fields.peek("role").is_none() {
                if is_bare(&fields) {
                    session(fields, &mut foreign);
                } else {
                    foreign.skip("line_of_kind:state");
                }
            } else {
                items.push((line.clone(), place));
            }
            continue;
        };
        let mut inner = Fields::of(payload).unwrap_or_default();
        match kind.as_str() {
            "session_meta" => {
                provider = provider.or_else(|| inner.peek("model_provider").and_then(string));
                // A session that continues another one begins with that session's line too: the first line is this
                // file's.
                if foreign.rest.is_empty() {
                    session(inner, &mut foreign)
                } else {
                    foreign.skip("line_of_kind:session_meta")
                }
            }
            "turn_context" => turns.push(Turn { id: inner.string("turn_id"), model: inner.string("model") }),
            // The state of the folder: for Codex, not for its model.
            "response_item" if inner.says("type", "ghost_snapshot") => foreign.skip("item:ghost_snapshot"),
            "response_item" => items.push((payload.get().to_owned(), place)),
            "event_msg" if inner.says("type", "thread_rolled_back") => {
                taken_back.push((items.len(), inner.integer("num_turns").unwrap_or(1)));
            }
            "event_msg" => event(inner, items.len(), &mut usages, &mut foreign),
            "compacted" => items.push((compacted(payload), place)),
            kind => foreign.skip(format!("line_of_kind:{kind}")),
        }
    }
    let raws: Vec<(&str, (usize, Place))> =
        items.iter().enumerate().map(|(at, (item, place))| (item.as_str(), (at, *place))).collect();
    let mut usages = usages.into_iter().peekable();
    let mut taken_back = taken_back.into_iter().peekable();
    // The nodes that were not taken back, and those of them with which a person's turn begins.
    let mut line: Vec<String> = Vec::new();
    let mut turns_begun: Vec<usize> = Vec::new();
    for (segment, (at, place)) in segments(&raws) {
        let mut messages = parsed(&segment, &mut foreign);
        let turn = place.turn.and_then(|turn| turns.get(turn));
        for message in &mut messages {
            message.metadata.created_at = place.time;
            message.metadata.turn_id = turn.and_then(|turn| turn.id.clone());
            if message.role == Role::Assistant {
                message.metadata.model = turn.and_then(|turn| turn.model.clone());
                if provider.is_some() {
                    message.metadata.provider.clone_from(&provider);
                }
            }
            scaffolding(message);
        }
        while let Some((_, usage)) = usages.next_if(|(after, _)| *after <= at + segment.len()) {
            if let Some(message) = messages.iter_mut().rev().find(|message| message.role == Role::Assistant) {
                message.usage = Some(usage);
            }
        }
        while let Some((_, count)) = taken_back.next_if(|(after, _)| *after <= at) {
            let left = turns_begun.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
            if let Some(begin) = turns_begun.drain(left..).next() {
                line.truncate(begin);
            }
        }
        let is_persons =
            |message: &Message| message.role == Role::User && message.metadata.extra.get("scaffolding").is_none();
        let (id, parent) = (place.line.to_string(), line.last().cloned());
        if messages.first().is_some_and(is_persons) {
            turns_begun.push(line.len());
        }
        line.push(id.clone());
        foreign.nodes.push(Node { id, parent, messages });
    }
    foreign.is_hollow = foreign.nodes.is_empty();
    foreign
}

fn session(mut fields: Fields<'_>, foreign: &mut Foreign) {
    if let Some(id) = fields.string("id") {
        foreign.id = id;
    }
    foreign.rest = take::rest(fields);
}

/// Events are for display; except for the token count they repeat items.
fn event(mut fields: Fields<'_>, after: usize, usages: &mut Vec<(usize, Json)>, foreign: &mut Foreign) {
    let kind = fields.string("type").unwrap_or_default();
    let usage = fields.object("info").and_then(|info| info.peek("last_token_usage").and_then(json));
    match (kind.as_str(), usage) {
        ("token_count", Some(usage)) => usages.push((after, usage)),
        _ => foreign.skip(format!("event:{kind}")),
    }
}

/// What replaces everything before it, as the message that the agent was given.
fn compacted(payload: &RawValue) -> String {
    let message = Fields::of(payload).and_then(|mut fields| fields.string("message")).unwrap_or_default();
    let content = serde_json::json!([{ "type": "input_text", "text": message }]);
    format!("{{\"type\":\"message\",\"role\":\"user\",\"content\":{content},\"compacted\":{payload}}}")
}

/// Marks what the program wrote in the user's name.
fn scaffolding(message: &mut Message) {
    let begins = message.role == Role::User && message.chunks.first().is_some_and(is_scaffolding);
    if begins && let Some(json) = take::json_of(&true) {
        message.metadata.extra.push("scaffolding", json);
    }
}

/// A session as Codex resumes it: what it sends to its model, and beside each text the event that it shows.
fn write(outgoing: &Outgoing, out: &mut dyn Write, skipped: &mut Skipped) -> io::Result<()> {
    let time = outgoing.item.last_activity.to_string();
    let mut line = |kind: &str, payload: Value| -> io::Result<()> {
        serde_json::to_writer(&mut *out, &value!({ "timestamp": time, "type": kind, "payload": payload }))?;
        out.write_all(b"\n")
    };
    let meta = value!({
        "id": outgoing.session, "timestamp": time, "cwd": outgoing.folder, "originator": "convo",
        "cli_version": env!("CARGO_PKG_VERSION"), "source": "cli",
    });
    line("session_meta", meta)?;
    let conversation = said(&outgoing.messages, skipped);
    let input = super::rendered(Target::OPENAI_RESPONSES, &conversation, "input", skipped)?;
    let items: Vec<Value> = input.map_or_else(Vec::new, |raw| serde_json::from_str(raw.get()).unwrap_or_default());
    for mut item in items {
        let kind = item.get("type").and_then(Value::as_str).unwrap_or("message").to_owned();
        // What only the server of the session before has cannot be given by its id.
        if kind == "item_reference" || kind == "reasoning" && item.get("encrypted_content").is_none_or(Value::is_null) {
            *skipped.entry("reasoning".to_owned()).or_default() += 1;
            continue;
        }
        if kind != "reasoning"
            && let Value::Object(fields) = &mut item
        {
            fields.remove("id");
        }
        let shown = (kind == "message").then(|| event_of(&item)).flatten();
        line("response_item", item)?;
        if let Some(event) = shown {
            line("event_msg", event)?;
        }
    }
    Ok(())
}

/// The event that shows a text, if there is one.
fn event_of(item: &Value) -> Option<Value> {
    let content = item.get("content")?;
    let text = match content.as_str() {
        Some(text) => text.to_owned(),
        None => {
            let texts = content.as_array()?.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    };
    let kind = if item.get("role")?.as_str()? == "user" { "user_message" } else { "agent_message" };
    Some(value!({ "type": kind, "message": text })).filter(|_| !text.is_empty())
}
