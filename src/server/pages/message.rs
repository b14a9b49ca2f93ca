//! Messages as pages show them: calls beside their results, and nothing in them that a browser obeys or loads.

use std::cell::Cell;
use std::collections::HashMap;

use askama::Template;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::change::{Change, Link};
use super::frame::address_for;
use super::json_lines::JsonLines;
use super::prose::prose;
use super::words::{Cut, Moment, Note, counted, grouped};
use crate::history::{Calls, MessageState, Site, StoredMessage};
use crate::html::is_picture;
use crate::model::{Audio, Body, Chunk, File, Json, Message, Output, Part, PartBody, Role};
use crate::server::keys::Scope;

/// Texts and JSON of more lines, or more bytes, are folded.
const FOLDED_LINES: usize = 24;
const FOLDED_BYTES: usize = 4 * 1024;
/// The most characters of a folded text that are seen.
const SUMMARY: usize = 100;
/// The most bytes of a picture's data that are part of a page.
const PICTURE: usize = 8 * 1024 * 1024;

/// A message.
#[derive(Debug, Template)]
#[template(config = "src/server/pages/askama.toml", path = "message.html")]
pub(super) struct Shown {
    pub(super) index: u64,
    pub(super) role: &'static str,
    /// Absent if it is complete.
    pub(super) state: Option<&'static str>,
    pub(super) model: Option<String>,
    pub(super) at: Option<Moment>,
    /// Why the model stopped, unless it came to its end.
    pub(super) reason: Option<String>,
    /// Tokens in, and out.
    pub(super) tokens: Option<(String, String)>,
    /// Where its writing is stopped, while it is written.
    pub(super) stop: Option<String>,
    /// What may be changed of it.
    pub(super) changes: Vec<Link>,
    /// Where the request is that it answers, if that was kept.
    pub(super) request: Option<String>,
    /// Whatever else is known.
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) chunks: Vec<Piece>,
    /// The fields that a message without words keeps for a program.
    pub(super) keeps: String,
    /// The messages whose calls its results answer: they are shown there.
    pub(super) answers: Vec<u64>,
    /// Whether it goes on with the answer of the message before it.
    pub(super) continues: bool,
    /// Why nobody else sees it.
    pub(super) hidden: Option<String>,
    pub(super) notes: Vec<Note>,
    /// Where its texts are whole, if they are not here.
    pub(super) whole: Option<String>,
    /// The seqs and the state: what changes when the message does.
    pub(super) mark: String,
}

/// A chunk.
#[derive(Debug, Template)]
#[template(config = "src/server/pages/askama.toml", path = "piece.html")]
pub(super) struct Piece {
    /// Its place in the page.
    pub(super) id: String,
    pub(super) chunk: u32,
    pub(super) content: Content,
    pub(super) hidden: Option<String>,
    pub(super) notes: Vec<Note>,
}

/// What a chunk holds.
#[derive(Debug)]
pub(super) enum Content {
    Thinking { text: Cut, redacted: Option<String> },
    Refusal(Cut),
    Call { name: String, id: String, arguments: Option<Plain>, is_remote: bool, answer: Option<Answer> },
    Answer(Answer),
    Failure { message: Cut, code: Option<String> },
    Plain(Plain),
}

/// A tool's result.
#[derive(Debug, Template)]
#[template(config = "src/server/pages/askama.toml", path = "answer.html")]
pub(super) struct Answer {
    pub(super) name: Option<String>,
    pub(super) id: String,
    pub(super) has_failed: bool,
    pub(super) index: u64,
    /// Whether it is shown beside its call, in another message than its own.
    pub(super) is_beside: bool,
    pub(super) parts: Vec<Plain>,
    pub(super) notes: Vec<Note>,
}

/// Text and attachments.
#[derive(Debug, Template)]
#[template(config = "src/server/pages/askama.toml", path = "plain.html")]
pub(super) enum Plain {
    Text(Cut),
    /// HTML that is harmless.
    Prose(String),
    /// A long text, and its first words.
    Folded {
        about: String,
        text: Cut,
    },
    /// JSON; with a summary if it is folded.
    Lines {
        about: Option<String>,
        lines: JsonLines,
    },
    /// Data of ours.
    Picture(String),
    /// What is elsewhere: it is loaded only by somebody who follows the link.
    Elsewhere {
        what: &'static str,
        address: String,
    },
    /// What is there, in words.
    Named {
        what: String,
        about: String,
    },
    Json {
        what: String,
        json: Cut,
    },
}

/// How much of messages is shown, and what is known of them besides.
#[derive(Debug, Default)]
pub(super) struct Showing {
    /// The address of the conversation.
    pub(super) address: String,
    /// The most bytes of one text.
    pub(super) most: usize,
    /// Whether all texts are shown as they are written.
    pub(super) as_written: bool,
    /// The message before those of the page.
    pub(super) before: Option<StoredMessage>,
    /// Why messages, and chunks of them, are hidden or erased.
    pub(super) hidden: HashMap<(u64, Option<u32>), String>,
    /// Lines of a report.
    pub(super) notes: HashMap<(u64, Option<u32>), Vec<Note>>,
    /// Whose the conversation is, if it is not the reader's own.
    pub(super) owner: Option<String>,
    /// What who looks may do.
    pub(super) scopes: Vec<Scope>,
    /// Whether a text was cut since a message began.
    pub(super) has_cut: Cell<bool>,
}

impl Shown {
    /// The notes at its places, in the order of the page.
    pub(super) fn notes(&mut self) -> impl Iterator<Item = &mut Note> {
        self.notes.iter_mut().chain(self.chunks.iter_mut().flat_map(|piece| {
            let answer = match &mut piece.content {
                Content::Call { answer: Some(answer), .. } | Content::Answer(answer) => Some(answer),
                _ => None,
            };
            answer.into_iter().flat_map(|answer| answer.notes.iter_mut()).chain(piece.notes.iter_mut())
        }))
    }
}

impl Showing {
    /// All messages of a page, in order.
    pub(super) fn messages(&mut self, messages: &[StoredMessage]) -> Vec<Shown> {
        let calls = Calls::pair(messages);
        let asked: HashMap<Site, Site> = calls.pairs().map(|(call, result)| (result, call)).collect();
        let mut shown = Vec::new();
        for (at, stored) in messages.iter().enumerate() {
            self.has_cut.set(false);
            let mut pieces = Vec::new();
            let mut answers = Vec::new();
            for (position, chunk) in stored.message.chunks.iter().enumerate() {
                let site = Site { message: at, chunk: position };
                let call = asked.get(&site).and_then(|call| messages.get(call.message));
                if let Some(call) = call {
                    if !answers.contains(&call.index) {
                        answers.push(call.index);
                    }
                    continue;
                }
                let result = calls.result(site).and_then(|result| {
                    let stored = messages.get(result.message)?;
                    Some((stored, result.chunk, stored.message.chunks.get(result.chunk)?))
                });
                pieces.push(self.piece(stored, position, chunk, result));
            }
            let before = at.checked_sub(1).map_or(self.before.as_ref(), |before| messages.get(before));
            let continues = before.is_some_and(|before| stored.continues(before));
            shown.push(Shown { continues, ..self.message(stored, pieces, answers) });
        }
        shown
    }

    fn message(&mut self, stored: &StoredMessage, chunks: Vec<Piece>, answers: Vec<u64>) -> Shown {
        let Message { role, finish_reason, usage, metadata, .. } = &stored.message;
        let seqs = if stored.first_seq == stored.last_seq {
            stored.first_seq.to_string()
        } else {
            format!("{} to {}", stored.first_seq, stored.last_seq)
        };
        let known = [
            ("seq", Some(seqs).filter(|_| stored.first_seq > 0)),
            ("provider", metadata.provider.clone()),
            ("id", metadata.id.clone()),
            ("turn", metadata.turn_id.clone()),
            ("step", metadata.step_id.clone()),
            ("finish reason", finish_reason.as_ref().map(|reason| reason.as_str().to_owned())),
            ("usage", usage.as_ref().map(|usage| usage.as_str().to_owned())),
        ];
        let passed = metadata.extra.get("convo").and_then(|json| Passed::read(json.as_str()));
        let (request, about) =
            passed.map_or((None, None), |passed| (passed.request(self.owner.as_deref()), Some(passed.about)));
        let field = |(name, json): (&str, &Json)| match about.as_ref().filter(|_| name == "convo") {
            // The bytes of its request are for programs.
            Some(about) => format!("{name}: {about}"),
            None => format!("{name}: {}", json.as_str()),
        };
        let extra = metadata.extra.iter().map(|pair| ("field", field(pair)));
        let is_bare = chunks.is_empty() && answers.is_empty() && stored.state == MessageState::Complete;
        let keeps: Vec<&str> = metadata.extra.iter().map(|(name, _)| name).filter(|_| is_bare).collect();
        let state = (stored.state != MessageState::Complete).then(|| stored.state.as_str());
        Shown {
            index: stored.index,
            role: role.as_str(),
            state,
            model: metadata.model.clone(),
            at: metadata.created_at.map(Moment::from),
            reason: finish_reason
                .as_ref()
                .map(|reason| reason.as_str().to_owned())
                .filter(|reason| !matches!(reason.as_str(), "stop" | "tool_calls") && Some(reason.as_str()) != state),
            tokens: usage.as_ref().and_then(|usage| tokens(usage.as_str())),
            stop: (self.scopes.contains(&Scope::Append) && stored.state == MessageState::Streaming)
                .then(|| format!("{}/stop", self.address)),
            changes: if self.is_changed(stored) {
                Change::links(&self.scopes, &self.address, Some(stored.index))
            } else {
                Vec::new()
            },
            request,
            facts: known.into_iter().filter_map(|(name, value)| Some((name, value?))).chain(extra).collect(),
            chunks,
            keeps: keeps.join(", "),
            answers,
            continues: false,
            hidden: self.hidden.remove(&(stored.index, None)),
            notes: self.notes.remove(&(stored.index, None)).unwrap_or_default(),
            whole: self
                .has_cut
                .get()
                .then(|| format!("{}?from={}&whole=1#m{}", self.address, stored.index, stored.index)),
            mark: format!("{}-{}-{}", stored.first_seq, stored.last_seq, stored.state.as_str()),
        }
    }

    /// Whether a message can still be changed: it has ended, and is there.
    fn is_changed(&self, stored: &StoredMessage) -> bool {
        stored.state != MessageState::Streaming && !self.hidden.contains_key(&(stored.index, None))
    }

    fn piece(
        &mut self,
        stored: &StoredMessage,
        position: usize,
        chunk: &Chunk,
        result: Option<(&StoredMessage, usize, &Chunk)>,
    ) -> Piece {
        let (index, number) = (stored.index, stored.chunk_index(position));
        let content = match &chunk.body {
            Body::Thinking { text, redacted, .. } => {
                Content::Thinking { text: self.cut(text), redacted: redacted.as_ref().map(|data| grouped(data.len())) }
            }
            Body::Refusal { text } => Content::Refusal(self.cut(text)),
            Body::ToolCall { id, name, arguments, server, .. } => {
                let answer = result.map(|(answering, at, chunk)| {
                    let notes = self.notes.remove(&(answering.index, Some(answering.chunk_index(at))));
                    let answer = self.answer(answering.index, chunk, notes.unwrap_or_default());
                    Answer { is_beside: true, ..answer }
                });
                let (name, id) = (name.clone(), id.clone());
                let arguments = (!arguments.is_empty()).then(|| self.data(arguments));
                Content::Call { name, id, arguments, is_remote: *server, answer }
            }
            Body::ToolResult { .. } => Content::Answer(self.answer(index, chunk, Vec::new())),
            Body::Error { message, code } => Content::Failure { message: self.cut(message), code: code.clone() },
            Body::Text { text, .. } => Content::Plain(self.said(stored.message.role, text)),
            Body::Image(image) => Content::Plain(picture(&image.url)),
            Body::Audio(audio) => Content::Plain(sound(audio)),
            Body::File(file) => Content::Plain(document(file)),
            Body::Opaque { provider, kind, json } => {
                let what = if kind.is_empty() { provider.clone() } else { format!("{provider} {kind}") };
                Content::Plain(self.json(what, json.as_str()))
            }
            Body::Unknown { kind } => {
                let fields: Vec<String> =
                    chunk.extra.iter().map(|(name, json)| format!("{name}: {}", json.as_str())).collect();
                Content::Plain(Plain::Json { what: kind.clone(), json: self.cut(&fields.join("\n")) })
            }
        };
        Piece {
            id: format!("m{index}-{number}"),
            chunk: number,
            content,
            hidden: self.hidden.remove(&(index, Some(number))),
            notes: self.notes.remove(&(index, Some(number))).unwrap_or_default(),
        }
    }

    fn answer(&self, index: u64, chunk: &Chunk, notes: Vec<Note>) -> Answer {
        let Body::ToolResult { tool_call_id, name, output, is_error } = &chunk.body else {
            return Answer {
                name: None,
                id: String::new(),
                has_failed: false,
                index,
                is_beside: false,
                parts: Vec::new(),
                notes,
            };
        };
        let parts = match output {
            Output::Text(text) => vec![self.data(text)],
            Output::Parts(parts) => parts.iter().map(|part| self.part(part)).collect(),
        };
        let (name, id) = (name.clone(), tool_call_id.clone());
        Answer { name, id, has_failed: *is_error == Some(true), index, is_beside: false, parts, notes }
    }

    fn part(&self, part: &Part) -> Plain {
        match &part.body {
            PartBody::Text { text } => self.data(text),
            PartBody::Image(image) => picture(&image.url),
            PartBody::Audio(audio) => sound(audio),
            PartBody::File(file) => document(file),
            PartBody::Json { json } => self.data(json.as_str()),
            PartBody::Unknown { kind } => {
                let fields: Vec<String> =
                    part.extra.iter().map(|(name, json)| format!("{name}: {}", json.as_str())).collect();
                Plain::Json { what: kind.clone(), json: self.cut(&fields.join("\n")) }
            }
        }
    }

    /// What a message says. What the model writes is Markdown.
    fn said(&self, role: Role, text: &str) -> Plain {
        let cut = self.cut(text);
        match prose(&cut.text).filter(|_| role == Role::Assistant && cut.rest == 0 && !self.as_written) {
            Some(html) => Plain::Prose(html),
            None => Plain::Text(cut),
        }
    }

    /// What programs say to each other: JSON line by line, and what is long folded.
    fn data(&self, text: &str) -> Plain {
        if self.as_written {
            return Plain::Text(self.cut(text));
        }
        let is_json = text.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok();
        if is_json && text.len() <= self.most {
            let lines = JsonLines::of(text);
            let is_long = lines.lines.len() > FOLDED_LINES || text.len() > FOLDED_BYTES;
            return Plain::Lines { about: is_long.then(|| about(text, lines.lines.len())), lines };
        }
        let count = text.lines().count();
        let cut = self.cut(text);
        if count > FOLDED_LINES || text.len() > FOLDED_BYTES {
            return Plain::Folded { about: about(text, count), text: cut };
        }
        Plain::Text(cut)
    }

    fn json(&self, what: String, json: &str) -> Plain {
        Plain::Json { what, json: self.cut(json) }
    }

    fn cut(&self, text: &str) -> Cut {
        let cut = Cut::new(text, self.most);
        self.has_cut.set(self.has_cut.get() || cut.rest > 0);
        cut
    }
}

/// A folded text in a line: how long it is, and how it begins.
fn about(text: &str, lines: usize) -> String {
    let first: String =
        text.trim_start().chars().take(SUMMARY).map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    format!("{}: {first}", counted(lines, "line"))
}

/// What the proxy knows of an answer.
struct Passed {
    exchange: String,
    has_request: bool,
    /// All but the request's bytes.
    about: Value,
}

impl Passed {
    fn read(json: &str) -> Option<Self> {
        let mut about: Value = serde_json::from_str(json).ok()?;
        let exchange = about.get("exchange")?.as_str()?.to_owned();
        let has_request = about.as_object_mut()?.remove("sent").is_some();
        Some(Self { exchange, has_request, about })
    }

    fn request(&self, owner: Option<&str>) -> Option<String> {
        self.has_request.then(|| address_for(&format!("/pages/exchanges/{}/request", self.exchange), [], owner))
    }
}

/// Tokens in and out, under the names of the wires.
fn tokens(usage: &str) -> Option<(String, String)> {
    const NAMES: [[&str; 2]; 4] = [
        ["input_tokens", "output_tokens"],
        ["prompt_tokens", "completion_tokens"],
        ["promptTokenCount", "candidatesTokenCount"],
        ["inputTokens", "outputTokens"],
    ];
    let usage: Value = serde_json::from_str(usage).ok()?;
    let number = |name: &str| usage.get(name).and_then(Value::as_u64).map(grouped);
    NAMES.iter().find_map(|[input, output]| Some((number(input)?, number(output)?)))
}

fn picture(url: &str) -> Plain {
    if is_picture(url) && url.len() <= PICTURE {
        return Plain::Picture(url.to_owned());
    }
    address("picture", url)
}

fn sound(audio: &Audio) -> Plain {
    match (&audio.url, &audio.data, &audio.transcript) {
        (_, _, Some(transcript)) => Plain::Named { what: "sound".to_owned(), about: transcript.clone() },
        (Some(url), _, None) => address("sound", url),
        (None, data, None) => data_of("sound", data.as_deref()),
    }
}

fn document(file: &File) -> Plain {
    let name = file.name.as_deref().map(|name| format!("file {name}"));
    match (&file.url, name) {
        (Some(url), None) => address("file", url),
        (Some(url), Some(what)) => Plain::Named { what, about: described(url) },
        (None, Some(what)) => {
            let about = file.data.as_ref().map(|data| format!("{} characters of base64", grouped(data.len())));
            Plain::Named { what, about: about.unwrap_or_default() }
        }
        (None, None) => data_of("file", file.data.as_deref()),
    }
}

fn data_of(what: &str, data: Option<&str>) -> Plain {
    let about = data.map(|data| format!("{} characters of base64", grouped(data.len()))).unwrap_or_default();
    Plain::Named { what: what.to_owned(), about }
}

/// What is at an address: a link only where a browser loads a page from it, and runs nothing.
fn address(what: &'static str, url: &str) -> Plain {
    if url.starts_with("https://") || url.starts_with("http://") {
        return Plain::Elsewhere { what, address: url.to_owned() };
    }
    Plain::Named { what: what.to_owned(), about: described(url) }
}

/// An address; of data, its type and length.
pub(super) fn described(url: &str) -> String {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((kind, content)) => format!("data:{kind}, {} characters", grouped(content.len())),
        None => url.to_owned(),
    }
}
