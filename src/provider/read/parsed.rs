//! A request that somebody has, broken ones too, to the messages in it; and who says a message, by whatever name.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::history::ReportLine;
use crate::history::report::Fact;
use crate::json::fields::{self, Fields, Item, string};
use crate::model::extra::{Owner, json};
use crate::model::{Body, Chunk, Message, Role};
use crate::provider::check::not_json::NotJson;

/// A request, before its messages are taken out of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given<'a> {
    /// The text of an object.
    Object(&'a str),
    /// Just the list of its messages.
    List(&'a RawValue),
}

impl<'a> Given<'a> {
    /// The fields, and the items of the list of this name, objects or not. What is in its place stays a field.
    pub(crate) fn items(self, name: &str) -> Result<(Fields<'a>, Option<Vec<Item<'a>>>)> {
        let objects = |objects: Vec<Fields<'a>>| objects.into_iter().map(Item::Object).collect();
        self.read(name, objects, fields::items)
    }

    /// The fields, and the values of the list of this name.
    pub(crate) fn values(self, name: &str) -> Result<(Fields<'a>, Option<Vec<&'a RawValue>>)> {
        self.read(name, |values| values, fields::array)
    }

    /// In one pass, if the list is what it should be.
    fn read<T: Deserialize<'a>, L>(
        self,
        name: &str,
        usual: impl FnOnce(T) -> L,
        any: impl FnOnce(&'a RawValue) -> Option<L>,
    ) -> Result<(Fields<'a>, Option<L>)> {
        let text = match self {
            Self::List(raw) => return Ok((Fields::default(), any(raw))),
            Self::Object(text) => text,
        };
        if let Some((fields, list)) = Fields::read_with::<T>(text, name) {
            return Ok((fields, list.map(usual)));
        }
        let mut fields = Fields::read(text).map_err(not_json)?;
        let list = fields.peek(name).and_then(any);
        if list.is_some() {
            fields.take(name);
        }
        Ok((fields, list))
    }
}

/// The error of a text that is no JSON.
pub(crate) fn not_json(error: serde_json::Error) -> Error {
    Error::InvalidInput(NotJson::from(error).to_string())
}

/// The messages of a request.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Parsed {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// What could not be taken as it is, and what it was taken for. Message indexes are positions in `messages`.
    pub notes: Vec<ReportLine>,
    /// Where each message was read from.
    pub(crate) places: Vec<Place>,
}

/// Where in a request a message was read from. It becomes text, in the notation of `check`, only where somebody asks:
/// `messages[4].content[0]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The list of messages, or the field that it was read from.
    field: Cow<'static, str>,
    /// The items of the list; `None` if it was read from another field.
    pub(crate) items: Option<Range<usize>>,
    /// Each of its chunks.
    chunks: Vec<Spot>,
}

/// Where in an item a chunk was read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The field of the item, with its dot; empty if it was read from all of it.
    field: Cow<'static, str>,
    at: Option<usize>,
    /// The item, if it is not the first.
    item: Option<usize>,
}

impl Spot {
    pub(crate) const fn field(field: &'static str, at: Option<usize>) -> Self {
        Self { field: Cow::Borrowed(field), at, item: None }
    }
}

impl Place {
    /// The message, or the first of the items that it was read from.
    pub(crate) fn whole(&self) -> String {
        indexed(&self.field, self.items.as_ref().map(|items| items.start))
    }

    /// One of its chunks.
    pub(crate) fn chunk(&self, at: usize) -> Option<String> {
        let spot = self.chunks.get(at)?;
        let item = spot.item.map_or_else(|| self.whole(), |item| indexed(&self.field, Some(item)));
        Some(item + &indexed(&spot.field, spot.at))
    }

    /// Adds the chunks of the next item.
    pub(crate) fn extend(&mut self, item: usize, spots: impl IntoIterator<Item = Spot>) {
        self.chunks.extend(spots.into_iter().map(|spot| Spot { item: Some(item), ..spot }));
        self.items = self.items.take().map(|items| items.start..item + 1);
    }
}

fn indexed(field: &str, at: Option<usize>) -> String {
    at.map_or_else(|| field.to_owned(), |at| format!("{field}[{at}]"))
}

impl Parsed {
    /// Reads a message from an item of the list of this name, or from the field of this name, and adds it.
    pub(crate) fn read(
        &mut self,
        field: &'static str,
        item: Option<usize>,
        read: impl FnOnce(&mut Notes<'_>) -> Option<Message>,
    ) {
        let mut notes = Notes::new(self.messages.len(), field, item, &mut self.notes);
        if let Some(message) = read(&mut notes) {
            let place = notes.into_place();
            self.push(message, place);
        }
    }

    /// Adds a message that was read there.
    pub(crate) fn push(&mut self, message: Message, mut place: Place) {
        place.chunks.resize(message.chunks.len(), Spot::default());
        self.messages.push(message);
        self.places.push(place);
    }
}

impl Parsed {
    /// Makes one message of the last two, of which the last was read from this item.
    pub(crate) fn join_last(&mut self, item: usize) {
        let (Some(later), Some(place)) = (self.messages.pop(), self.places.pop()) else { return };
        let (Some(message), Some(known)) = (self.messages.last_mut(), self.places.last_mut()) else { return };
        message.chunks.extend(later.chunks);
        message.metadata.id = message.metadata.id.take().or(later.metadata.id);
        let fields = later.metadata.extra.iter().map(|(name, value)| (name.to_owned(), value.clone()));
        message.metadata.extra.add_new(fields);
        known.extend(item, place.chunks);
        let index = u64::try_from(self.messages.len()).unwrap_or(u64::MAX);
        for line in self.notes.iter_mut().rev().take_while(|line| line.message_index == Some(index)) {
            line.message_index = Some(index - 1);
        }
    }
}

/// The error of a request without a list of messages.
pub(crate) fn no_messages(key: &str) -> Error {
    Error::InvalidInput(format!("no request: expected an object with an array `{key}`, or that array"))
}

/// What is noted of one message while it is read: lines, and where it and its chunks so far are.
#[derive(Debug)]
pub(crate) struct Notes<'a> {
    message: u64,
    lines: &'a mut Vec<ReportLine>,
    place: Place,
}

impl<'a> Notes<'a> {
    /// On the message of this index, which is an item of the list of this name, or in the field of this name.
    pub(crate) fn new(
        message: usize,
        field: impl Into<Cow<'static, str>>,
        item: Option<usize>,
        lines: &'a mut Vec<ReportLine>,
    ) -> Self {
        let place = Place { field: field.into(), items: item.map(|item| item..item + 1), chunks: Vec::new() };
        Self { message: u64::try_from(message).unwrap_or(u64::MAX), lines, place }
    }

    /// A chunk of this field, if there is one.
    pub(crate) fn at(&mut self, field: impl Into<Cow<'static, str>>, chunk: Option<Chunk>) -> Option<Chunk> {
        if chunk.is_some() {
            self.place.chunks.push(Spot { field: field.into(), ..Spot::default() });
        }
        chunk
    }

    /// The chunks of the items of this field: one of each, or several, or none.
    pub(crate) fn each<'r, C: IntoIterator<Item = Chunk>>(
        &mut self,
        field: &'static str,
        items: Vec<&'r RawValue>,
        mut read: impl FnMut(&'r RawValue, &mut Self) -> C,
    ) -> Vec<Chunk> {
        let mut chunks = Vec::with_capacity(items.len());
        for (at, raw) in items.into_iter().enumerate() {
            for chunk in read(raw, self) {
                chunks.push(chunk);
                self.place.chunks.push(Spot::field(field, Some(at)));
            }
        }
        chunks
    }

    /// The chunks of a `content` that is an array of blocks, or a text in place of it.
    pub(crate) fn content(
        &mut self,
        fields: &mut Fields<'_>,
        mut block: impl FnMut(&RawValue) -> Option<Chunk>,
    ) -> Vec<Chunk> {
        if let Some(blocks) = fields.array("content") {
            return self.each(".content", blocks, |raw, _| block(raw));
        }
        let Some(raw) = fields.take("content") else { return Vec::new() };
        let text = words(raw, self);
        let text = (!text.is_empty()).then(|| Chunk::text(text));
        self.at(".content", text).into_iter().collect()
    }

    /// Where the message was read from.
    pub(crate) fn into_place(self) -> Place {
        self.place
    }

    pub(crate) fn push(&mut self, fact: Fact<'_>) {
        self.lines.push(ReportLine { message_index: Some(self.message), ..ReportLine::new(fact) });
    }

    pub(crate) fn of_call(&mut self, fact: Fact<'_>, id: &str) {
        self.push(fact);
        if let Some(line) = self.lines.last_mut() {
            line.tool_call_id = Some(id.to_owned());
        }
    }
}

/// A content that is no array, whatever it is.
pub(crate) fn words(raw: &RawValue, notes: &mut Notes<'_>) -> String {
    string(raw).unwrap_or_else(|| {
        notes.push(Fact::ContentAsText);
        raw.get().to_owned()
    })
}

/// What is in the place of a message, or what the wire has for it: a string is what the user said; other JSON is kept as
/// an opaque chunk, `null` not at all.
pub(crate) fn stranger(raw: &RawValue, what: &'static str, opaque: Option<Chunk>, notes: &mut Notes<'_>) -> Message {
    if let Some(text) = string(raw) {
        notes.push(Fact::StringAsMessage { what });
        return Message::user(text);
    }
    notes.push(Fact::JsonAsMessage { what });
    Message::new(Role::User, opaque)
}

/// A value that is not known, as a chunk of its own.
pub(crate) fn opaque(raw: &RawValue, kind: impl Into<String>, provider: &str) -> Option<Chunk> {
    Some(Body::Opaque { provider: provider.to_owned(), kind: kind.into(), json: json(raw)? }.into())
}

/// What was read from an item: one message, or two where the user's results stand beside what else is said.
pub(crate) fn push_parted(
    parsed: &mut Parsed,
    (role, chunks): (Role, Vec<Chunk>),
    rest: Fields<'_>,
    Place { field, items, chunks: spots }: Place,
) {
    let is_result = |chunk: &Chunk| matches!(chunk.body, Body::ToolResult { .. });
    let mut push = |role: Role, chunks: Vec<Chunk>, spots: Vec<Spot>| {
        parsed.push(Message::new(role, chunks), Place { field: field.clone(), items: items.clone(), chunks: spots });
    };
    if role != Role::User || !chunks.iter().any(is_result) {
        push(role, chunks, spots);
    } else if chunks.iter().all(is_result) {
        push(Role::Tool, chunks, spots);
    } else {
        let placed = chunks.into_iter().zip(spots);
        let (results, said): (Vec<_>, Vec<_>) = placed.partition(|(chunk, _)| is_result(chunk));
        for (role, placed) in [(Role::Tool, results), (role, said)] {
            let (chunks, spots) = placed.into_iter().unzip();
            push(role, chunks, spots);
        }
    }
    if let Some(message) = parsed.messages.last_mut() {
        message.metadata.extra = rest.extra(Owner::Message);
    }
}

/// The names of a wire's roles.
#[derive(Debug)]
pub(crate) struct RoleNames {
    /// Those of each role: the wire's own, and what others call it.
    pub(crate) known: &'static [(Role, &'static [&'static str])],
    /// Those that need no note: what is rendered has the same meaning.
    pub(crate) same: &'static [&'static str],
}

/// What every role is called.
pub(crate) const ROLES: &[(Role, &[&str])] = &[
    (Role::System, &["system", "developer"]),
    (Role::User, &["user", "human"]),
    (Role::Assistant, &["assistant", "ai", "model", "bot"]),
    (Role::Tool, &["tool", "function"]),
];

impl RoleNames {
    /// The role of this name, whatever its case.
    pub(crate) fn find(&self, name: &str) -> Option<Role> {
        let find = |name: &str| self.known.iter().find(|(_, names)| names.contains(&name)).map(|(role, _)| *role);
        find(name).or_else(|| find(&name.trim().to_lowercase()))
    }

    /// The role of this name, or the guess.
    pub(crate) fn role(&self, name: &str, guess: Role, notes: &mut Notes<'_>) -> Role {
        let role = self.find(name).unwrap_or(guess);
        if !self.same.contains(&name) {
            notes.push(Fact::RoleTaken { name: Some(name), taken: role });
        }
        role
    }

    /// The role that a message names, or the guess.
    pub(crate) fn take(&self, message: &mut Fields<'_>, guess: Role, notes: &mut Notes<'_>) -> Role {
        if let Some(name) = message.text("role") {
            return self.role(&name, guess, notes);
        }
        notes.push(Fact::RoleTaken { name: None, taken: guess });
        guess
    }
}
