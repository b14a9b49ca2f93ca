//! Tool calls, whole or in pieces.
//!
//! By the API reference, a call's id and name come once, with its first piece, and `index` keeps the calls apart. Servers
//! also repeat id and name with every piece, leave out the index, or give index 0 to each of several whole calls: a piece
//! begins a new call if it names one that is not the one before, and that one is whole.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::calls::{Call as Written, Form, custom_call};
use crate::model::{Body, Chunk, Extra};
use crate::provider::read::answer::Answer;
use crate::provider::read::fields::{Fields, text};

/// The calls of a message.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    all: Vec<Call>,
    /// The last call of each id, and of each key.
    by_id: HashMap<String, usize>,
    by_key: HashMap<Key, usize>,
}

#[derive(Debug)]
struct Call {
    chunk_index: u32,
    /// Empty until it comes.
    id: String,
    /// Empty until it comes.
    name: String,
    arguments: String,
    /// A call of type `custom`: its input is no JSON.
    custom: bool,
    has_extra: bool,
    form: Form,
}

/// What makes a call differ from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Index(u64),
    /// No index was given.
    None,
    /// The one `function_call` of the time before tools.
    Function,
}

/// A piece of a call.
#[derive(Debug)]
struct Piece {
    key: Key,
    id: String,
    name: String,
    arguments: String,
    custom: bool,
    extra: Extra,
    form: Form,
}

impl Calls {
    /// An item of `tool_calls`. One that is `whole` has no type if it states none; of pieces only the first does.
    pub(crate) fn take(&mut self, raw: &RawValue, whole: bool, answer: &mut Answer) {
        let Some(mut fields) = Fields::of(raw) else { return answer.keep("tool_calls", raw) };
        let key = fields.integer("index").map_or(Key::None, Key::Index);
        let mut written = Written::read(fields);
        written.form.typed |= !whole;
        self.piece(Piece::new(key, written), answer);
    }

    /// The `function_call` of the time before tools.
    pub(crate) fn function(&mut self, fields: Fields<'_>, answer: &mut Answer) {
        self.piece(Piece::new(Key::Function, Written::function(fields)), answer);
    }

    fn piece(&mut self, piece: Piece, answer: &mut Answer) {
        answer.hold(piece.id.len() + piece.name.len() + piece.arguments.len());
        let at = self.find(&piece).unwrap_or_else(|| {
            self.by_key.insert(piece.key, self.all.len());
            self.all.push(Call::new(answer.new_chunk()));
            self.all.len() - 1
        });
        let Some(call) = self.all.get_mut(at) else { return };
        call.custom |= piece.custom;
        call.form.add(piece.form);
        call.arguments.push_str(&piece.arguments);
        let id = first(&mut call.id, piece.id);
        if !id.is_empty() {
            let last = self.by_id.entry(id.clone()).or_default();
            *last = at.max(*last);
        }
        let name = first(&mut call.name, piece.name);
        let extra = if call.has_extra { Extra::new() } else { piece.extra };
        call.has_extra |= !extra.is_empty();
        let body = Body::ToolCall { id, name, arguments: piece.arguments, signature: None, server: false };
        answer.delta(call.chunk_index, Chunk { extra, ..body.into() });
    }

    /// The call that a piece goes on with.
    fn find(&self, piece: &Piece) -> Option<usize> {
        let at = match piece.key {
            Key::None if !piece.id.is_empty() => self.by_id.get(&piece.id).copied(),
            Key::None => self.all.len().checked_sub(1),
            key => self.by_key.get(&key).copied(),
        }?;
        self.all.get(at).filter(|call| !call.is_followed_by(piece)).map(|_| at)
    }

    /// Calls that their fields do not give back are kept as they were, too.
    pub(crate) fn finish(&self, answer: &mut Answer) {
        for call in &self.all {
            let native = match call.custom {
                true => custom_call(&call.id, &call.name, &call.arguments),
                false => call.form.native(&call.id, &call.name, &call.arguments),
            };
            if native.is_some() {
                answer.delta(call.chunk_index, Chunk { native, ..Chunk::tool_call("", "", "") });
            }
        }
    }
}

impl Piece {
    fn new(key: Key, written: Written<'_>) -> Self {
        let Written { id, name, arguments, custom, extra, form } = written;
        Self { key, id, name, arguments: arguments.map(text).unwrap_or_default(), custom, extra, form }
    }
}

impl Call {
    fn new(chunk_index: u32) -> Self {
        let (id, name, arguments) = (String::new(), String::new(), String::new());
        Self { chunk_index, id, name, arguments, custom: false, has_extra: false, form: Form::default() }
    }

    /// Whether the piece begins another call, though it comes where this one's pieces come.
    fn is_followed_by(&self, piece: &Piece) -> bool {
        if self.name.is_empty() || piece.name.is_empty() {
            return false;
        }
        let is_whole = crate::model::json_text::is_object(&self.arguments);
        let other_name = piece.name != self.name;
        match (self.id.as_str(), piece.id.as_str()) {
            (known, said) if !known.is_empty() && !said.is_empty() => {
                said != known && (other_name || is_whole || self.arguments.trim().is_empty())
            }
            _ => piece.key == Key::None && (other_name || is_whole),
        }
    }
}

/// What is said for the first time, and is then known.
fn first(known: &mut String, said: String) -> String {
    if known.is_empty() {
        known.clone_from(&said);
        return said;
    }
    String::new()
}
