//! Sessions of Claude Code: `~/.claude/projects/FOLDER/SESSION.jsonl`, and those of its sub-agents.
//!
//! The format is Anthropic's own and not documented. Sources: txcript's `docs/formats/claude-code.md`, denisraison's
//! data-formats; see `docs/transfer.md`.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use serde_json::value::RawValue;
use serde_json::{Value, json as value};
use uuid::Uuid;

use super::session::said;
use crate::json::fields::{Fields, string};
use crate::model::extra::json;
use crate::model::{Body, Chunk, FinishReason, Message, Role};
use crate::provider::Target;
use crate::transfer::foreign::{Foreign, Node, Skipped, Taken};
use crate::transfer::format::{Context, Format, Head, Outgoing, Reader, Writer};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "claude-code",
    about: "sessions of Claude Code",
    read: Some(Reader::Parts { recognise, group, read }),
    tables: None,
    write: Some(Writer { frame: ["", "", ""], extension: "jsonl", write }),
};

fn recognise(head: &Head<'_>) -> bool {
    head.any(|fields| {
        let has = |name| fields.peek(name).is_some();
        let kind = fields.peek("type").and_then(string);
        let is_aside = match kind.as_deref() {
            Some("summary") => has("leafUuid"),
            Some("file-history-snapshot") => has("snapshot"),
            _ => false,
        };
        is_aside
            || has("sessionId") && (has("uuid") || has("type"))
            || has("uuid") && has("message") && has("isSidechain")
    })
}

fn group(text: &str) -> Option<String> {
    Fields::read(text).ok()?.string("sessionId")
}

/// Lines of one thread of a session.
struct Thread {
    foreign: Foreign,
    /// The message of each line: several lines may be one message of the API.
    nodes: HashMap<String, usize>,
    /// Nodes that began a message of the API, by its id.
    begun: HashMap<String, usize>,
    /// What summaries state, and of which line: some are of other sessions.
    summaries: Vec<(Option<String>, String)>,
}

fn read(key: &str, lines: Vec<String>, _: &Context<'_>) -> Vec<Taken> {
    let mut main = Thread::new(key.to_owned());
    let mut agents: Vec<Thread> = Vec::new();
    let mut named_agents: HashMap<String, usize> = HashMap::new();
    // A sub-agent's line belongs to the sub-agent of its parent.
    let mut agent_of: HashMap<String, usize> = HashMap::new();
    let mut aside = HashMap::new();
    let mut seen = HashSet::new();
    for line in &lines {
        let Ok(mut fields) = Fields::read(line) else {
            main.foreign.skip("line_that_is_no_object");
            continue;
        };
        let kind = fields.string("type").unwrap_or_default();
        let is_said = fields.peek("message").is_some_and(|raw| raw.get().starts_with('{')) || is_queued(&fields);
        let id = fields.peek("uuid").and_then(string);
        if id.is_some() && !seen.insert(line.as_str()) {
            main.foreign.skip("repeated_line");
            continue;
        }
        let mut thread = &mut main;
        if let Some(id) = id.filter(|_| fields.peek("isSidechain").is_some_and(|raw| raw.get() == "true")) {
            let parent = fields.peek("parentUuid").and_then(string);
            let named = fields.peek("agentId").and_then(string);
            let known = match &named {
                Some(agent) => named_agents.get(agent).copied(),
                None => parent.and_then(|parent| agent_of.get(&parent).copied()),
            };
            let place = known.unwrap_or_else(|| {
                let agent = named.unwrap_or_else(|| id.clone());
                named_agents.insert(agent.clone(), agents.len());
                agents.push(Thread::new(format!("{key}:{agent}")));
                agents.len() - 1
            });
            agent_of.insert(id, place);
            if let Some(agent) = agents.get_mut(place) {
                thread = agent;
            }
        }
        if is_said {
            thread.said(fields);
        } else {
            thread.aside(&kind, fields, line, &mut aside);
        }
    }
    for (kind, count) in aside {
        *main.foreign.skipped.entry(format!("line_of_kind:{kind}")).or_default() += count;
    }
    let says = |thread: &Thread| thread.foreign.nodes.iter().any(|node| !node.messages.is_empty());
    let mut taken = Vec::new();
    let has_main = says(&main) || agents.is_empty();
    if !has_main && let Some(agent) = agents.first_mut() {
        // The file of a sub-agent: its other lines are the sub-agent's.
        for (kind, count) in std::mem::take(&mut main.foreign.skipped) {
            *agent.foreign.skipped.entry(kind).or_default() += count;
        }
        for (name, json) in main.foreign.rest.iter() {
            agent.foreign.rest.push(name, json.clone());
        }
    }
    if has_main {
        // A file that holds only summaries of other sessions is no conversation.
        main.foreign.is_hollow = !says(&main);
        taken.push(Ok(main.finish()));
    }
    for mut thread in agents {
        thread.foreign.tags.push("sub-agent".to_owned());
        if let Some(json) = take::json_of(&key) {
            thread.foreign.rest.push("session", json);
        }
        taken.push(Ok(thread.finish()));
    }
    taken
}

impl Thread {
    fn new(id: String) -> Self {
        Self { foreign: Foreign::new(id), nodes: HashMap::new(), begun: HashMap::new(), summaries: Vec::new() }
    }

    /// A line that is no message of the conversation: titles are taken, the first of each kind is kept, all are
    /// counted. The next message may follow it, so it has its place.
    fn aside(&mut self, kind: &str, mut fields: Fields<'_>, line: &str, count: &mut HashMap<String, u64>) {
        if let Some(id) = fields.peek("uuid").and_then(string) {
            let parent = ["parentUuid", "logicalParentUuid"].iter().find_map(|name| fields.peek(name)).and_then(string);
            // Its place is that of the line that it follows.
            let known = parent.as_ref().and_then(|parent| self.nodes.get(parent)).copied();
            self.nodes.insert(id.clone(), known.unwrap_or(self.foreign.nodes.len()));
            if known.is_none() {
                self.foreign.nodes.push(Node { id, parent, messages: Vec::new() });
            }
        }
        let named = ["customTitle", "aiTitle", "title"].iter().find_map(|name| fields.string(name));
        let title = match kind {
            "summary" => fields.string("summary"),
            "ai-title" | "custom-title" => named,
            _ => None,
        };
        if let Some(title) = title.filter(|title| !title.trim().is_empty()) {
            match kind {
                "summary" => self.summaries.push((fields.string("leafUuid"), title)),
                // A person's title wins over a model's.
                "custom-title" => self.foreign.title = Some(title),
                _ => self.foreign.title = self.foreign.title.take().or(Some(title)),
            }
            return;
        }
        let seen = count.entry(kind.to_owned()).or_default();
        *seen += 1;
        if *seen == 1
            && let Ok(json) = crate::model::Json::new(line)
        {
            self.foreign.rest.push(format!("first_{kind}"), json);
        }
    }

    fn said(&mut self, mut fields: Fields<'_>) {
        let id = fields.string("uuid").unwrap_or_else(|| self.foreign.nodes.len().to_string());
        let parent = fields.string("parentUuid").or_else(|| fields.peek("logicalParentUuid").and_then(string));
        let mut messages = match fields.take("message") {
            Some(raw) => messages(raw, &mut fields),
            None => queued(&mut fields),
        };
        if messages.iter().all(|message| message.chunks.is_empty()) {
            self.foreign.skip("empty_message");
            messages.clear();
        }
        let api = messages
            .first()
            .filter(|message| message.role == Role::Assistant)
            .and_then(|message| message.metadata.id.clone());
        // One message of the API is written as several lines, one for each block.
        let begun = api.as_ref().and_then(|api| self.begun.get(api).copied());
        let follows = |place: usize| parent.as_ref().is_none_or(|parent| self.nodes.get(parent) == Some(&place));
        if let Some(place) = begun.filter(|place| follows(*place))
            && let [more] = messages.as_mut_slice()
            && let Some(message) = self.foreign.nodes.get_mut(place).and_then(|node| node.messages.first_mut())
        {
            message.chunks.append(&mut more.chunks);
            message.finish_reason = more.finish_reason.take().or(message.finish_reason.take());
            message.usage = more.usage.take().or(message.usage.take());
            self.nodes.insert(id, place);
            return;
        }
        // Each of them has the usage of all: the last one's is whole.
        if let Some(first) = begun.and_then(|place| self.foreign.nodes.get_mut(place)?.messages.first_mut())
            && let Some(usage) = messages.first_mut().and_then(|message| message.usage.take())
        {
            first.usage = Some(usage);
        }
        if let Some(message) = messages.first_mut() {
            for name in ["isSidechain", "userType", "sessionId"] {
                fields.take(name);
            }
            take::keep(fields, Some(message));
        }
        let place = self.foreign.nodes.len();
        if let Some(api) = api {
            self.begun.insert(api, place);
        }
        self.nodes.insert(id.clone(), place);
        self.foreign.nodes.push(Node { id, parent, messages });
    }

    /// Parents become nodes, and results of one message's calls follow each other.
    fn finish(mut self) -> Foreign {
        let is_ours =
            |(leaf, _): &&(Option<String>, String)| leaf.as_ref().is_some_and(|leaf| self.nodes.contains_key(leaf));
        let summary =
            self.summaries.iter().rfind(is_ours).or(self.summaries.first()).map(|(_, summary)| summary.clone());
        self.foreign.title = self.foreign.title.take().or(summary);
        let ids: Vec<String> = self.foreign.nodes.iter().map(|node| node.id.clone()).collect();
        for node in &mut self.foreign.nodes {
            if let Some(place) = node.parent.as_ref().and_then(|parent| self.nodes.get(parent)) {
                node.parent = ids.get(*place).cloned();
            }
        }
        if self.foreign.nodes.iter().all(|node| node.parent.is_none()) {
            // Where no line names the one before it, the lines are one conversation in their order.
            self.foreign = self.foreign.in_a_row();
        }
        let says = |node: &&Node| !node.messages.is_empty();
        let last = self.foreign.nodes.iter().rfind(says).or(self.foreign.nodes.last());
        self.foreign.shown = last.map(|node| node.id.clone());
        // Calls that were made at once have their results side by side, below lines of one message. Each result is
        // placed below the one before it, unless it answers the same call again: then it is another branch.
        let mut last: HashMap<String, (String, HashSet<String>)> = HashMap::new();
        // Results after which another one was placed, by the node that all of them were below.
        let mut moved: HashMap<String, String> = HashMap::new();
        for node in &mut self.foreign.nodes {
            let Some(parent) = node.parent.clone() else { continue };
            let answers = answers(&node.messages);
            if answers.is_empty() {
                continue;
            }
            match last.get_mut(&parent) {
                Some((before, answered)) if !answers.iter().any(|answer| answered.contains(answer)) => {
                    moved.insert(before.clone(), parent);
                    node.parent = Some(std::mem::replace(before, node.id.clone()));
                    answered.extend(answers);
                }
                Some(_) => {}
                None => _ = last.insert(parent, (node.id.clone(), answers.into_iter().collect())),
            }
        }
        // What followed a result follows the last of them.
        for node in &mut self.foreign.nodes {
            if !answers(&node.messages).is_empty() {
                continue;
            }
            let parent = node.parent.as_ref().and_then(|parent| moved.get(parent));
            if let Some((last, _)) = parent.and_then(|parent| last.get(parent)) {
                node.parent = Some(last.clone());
            }
        }
        self.foreign
    }
}

/// The calls that a node answers, if it does nothing else.
fn answers(messages: &[Message]) -> Vec<String> {
    let chunks = || messages.iter().flat_map(|message| &message.chunks);
    let answers: Vec<String> = chunks()
        .filter_map(|chunk| match &chunk.body {
            Body::ToolResult { tool_call_id, .. } => Some(tool_call_id.clone()),
            _ => None,
        })
        .collect();
    if answers.len() == chunks().count() { answers } else { Vec::new() }
}

/// Whether a line is what a person typed while the model worked: no other line has it. What a program put in the queue is not
/// said.
fn is_queued(fields: &Fields<'_>) -> bool {
    let Some(attachment) = fields.peek("attachment").and_then(Fields::of) else { return false };
    let origin = attachment.peek("origin").and_then(Fields::of);
    attachment.says("type", "queued_command")
        && !attachment.says("commandMode", "task-notification")
        && origin.is_none_or(|origin| origin.says("kind", "human"))
        && attachment.peek("isMeta").is_none_or(|raw| raw.get() != "true")
        && attachment.peek("prompt").is_some()
}

fn queued(fields: &mut Fields<'_>) -> Vec<Message> {
    let mut attachment = fields.object("attachment").unwrap_or_default();
    let mut messages = with_content("user", attachment.take("prompt"), fields);
    take::keep(attachment, messages.first_mut());
    messages
}

/// The messages of a line, by a content as the API has it.
fn with_content(role: &str, content: Option<&RawValue>, fields: &mut Fields<'_>) -> Vec<Message> {
    let content = content.map_or("\"\"", RawValue::get);
    let request = format!("[{{\"role\":{},\"content\":{content}}}]", value!(role));
    let parsed = crate::provider::parse(Target::ANTHROPIC, &request).unwrap_or_default();
    let Some(parsed) = parsed.messages.into_iter().next() else { return Vec::new() };
    let chunks = parsed.chunks.into_iter().filter(|chunk| !is_blank(chunk)).collect();
    let mut messages = take::messages(parsed.role, chunks);
    let created_at = take::moment_of(fields, "timestamp");
    for message in &mut messages {
        message.metadata.created_at = created_at;
    }
    messages
}

fn messages(raw: &RawValue, fields: &mut Fields<'_>) -> Vec<Message> {
    let mut message = Fields::of(raw).unwrap_or_default();
    let role = message.string("role").unwrap_or_default();
    let mut messages = with_content(&role, message.take("content"), fields);
    if let Some(first) = messages.first_mut() {
        first.metadata.id = message.string("id");
        if first.role == Role::Assistant {
            first.metadata.model = message.string("model");
            first.metadata.provider = Some("anthropic".to_owned());
            first.finish_reason = message.string("stop_reason").and_then(|reason| FinishReason::given(&reason));
            first.usage = message.take("usage").and_then(json);
        }
        message.take("type");
        take::keep(message, Some(first));
    }
    messages
}

fn is_blank(chunk: &Chunk) -> bool {
    matches!(&chunk.body, Body::Text { text, .. } if text.is_empty())
}

/// The version of Claude Code whose lines these are.
const LINES_OF: &str = "2.1.197";

/// A session as Claude Code resumes it. Its lines are messages of the API, each of which names the one before it.
fn write(outgoing: &Outgoing, out: &mut dyn Write, skipped: &mut Skipped) -> io::Result<()> {
    let conversation = said(&outgoing.messages, skipped);
    let messages = super::rendered(Target::ANTHROPIC, &conversation, "messages", skipped)?;
    let messages: Vec<Value> =
        messages.map_or_else(Vec::new, |raw| serde_json::from_str(raw.get()).unwrap_or_default());
    let session = Uuid::from(outgoing.session);
    let mut models = outgoing.messages.iter().rev().filter_map(|stored| stored.message.metadata.model.as_deref());
    let model = models.next().unwrap_or("unknown");
    let mut parent: Option<String> = None;
    for (number, message) in messages.iter().enumerate() {
        let id = Uuid::new_v5(&session, number.to_string().as_bytes());
        let name = format!("msg_{}", id.simple());
        let id = id.to_string();
        let role = message.get("role").and_then(Value::as_str).unwrap_or("user");
        let content = message.get("content");
        let said = match role {
            "assistant" => value!({
                "id": name, "type": "message", "role": role, "model": model, "content": parts(content),
                "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 0, "output_tokens": 0 },
            }),
            _ => value!({ "role": role, "content": content }),
        };
        let line = value!({
            "parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": outgoing.folder, "sessionId": session.to_string(),
            "version": LINES_OF, "type": role, "message": said, "uuid": id, "timestamp": outgoing.item.last_activity,
        });
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
        parent = Some(id);
    }
    // The title that lists of sessions show.
    if let Some(title) = outgoing.item.title.as_deref().filter(|title| parent.is_some() && !title.trim().is_empty()) {
        serde_json::to_writer(
            &mut *out,
            &value!({ "type": "custom-title", "customTitle": title, "sessionId": session.to_string() }),
        )?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The content of an answer as blocks.
fn parts(content: Option<&Value>) -> Value {
    match content {
        Some(Value::String(text)) => value!([{ "type": "text", "text": text }]),
        content => content.cloned().unwrap_or_else(|| value!([])),
    }
}
