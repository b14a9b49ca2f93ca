//! Chat completions, whole (`chat.completion`) or streamed (`chat.completion.chunk`), of OpenAI and of the servers that
//! speak its wire.
//!
//! Choice 0 is the message. Further choices (`n` above 1) are left out: a conversation goes on from one answer. So are
//! log probabilities, and what content filters say of each piece; which fields these are, the tables here say. Fields that are
//! not known here become opaque chunks at the end of the message, or, beside `choices`, fields of its metadata.
//!
//! Sources: API reference, "The chat completion object" and "The chat completion chunk object"; types of the official
//! Python SDK (openai 2.54.0); DeepSeek's API docs for `reasoning_content`; OpenRouter's for `reasoning` and `images`;
//! Mistral's for content in chunks; Moonshot's and Groq's for where their usage is in a stream.
//!
//! What comes in pieces: tool calls, sound, annotations, and the details of reasoning.
//!
//! By the API reference, a call's id and name come once, with its first piece, and `index` keeps the calls apart. Servers
//! also repeat id and name with every piece, leave out the index, or give index 0 to each of several whole calls: a piece
//! begins a new call if it names one that is not the one before, and that one is whole.
//!
//! What goes back of `reasoning_details`, which OpenRouter sends in pieces, is what the pieces make up, as in a whole answer.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::calls::{Call as Written, Form, custom_call, function};
use super::request::{part, sound, thinking, thinking_part};
use crate::json;
use crate::json::fields::{Fields, text};
use crate::json::ordered::Ordered;
use crate::model::extra::Owner;
use crate::model::{Audio, Body, Chunk, Extra, Json, Metadata, Native};
use crate::provider::prompt::media::bytes::decode_base64;
use crate::provider::read::answer::{Answer, Decode};

/// Fields beside `choices` that say nothing of the message.
const OF_THE_RESPONSE: &[&str] = &["object", "obfuscation", "prompt_filter_results", "prompt_logprobs"];
/// Fields of a choice that are left out.
const OF_THE_CHOICE: &[&str] = &[
    "index",
    "logprobs",
    "content_filter_results",
    "content_filter_offsets",
    "native_finish_reason",
    "stop_reason",
    "token_ids",
    "text",
    "seed",
    "routed_experts",
];

/// What the kind of an opaque chunk begins with that is no field of the message, but stood beside it.
const CHOICE: &str = "choice.";
const RESPONSE: &str = "response.";

/// A decoder of chat completions.
#[derive(Debug)]
struct Completion {
    provider: &'static str,
    /// The id and the model of objects that came before the first choice.
    metadata: Metadata,
    /// Their other fields.
    earlier: Vec<Extra>,
    /// The names of these fields: later objects repeat them.
    earlier_names: HashSet<String>,
    thinking: Option<u32>,
    text: Option<u32>,
    refusal: Option<u32>,
    calls: Calls,
    beside: Beside,
    details: Details,
}

pub(crate) fn decoder(provider: &'static str) -> Box<dyn Decode> {
    Box::new(Completion {
        provider,
        metadata: Metadata::default(),
        earlier: Vec::new(),
        earlier_names: HashSet::new(),
        thinking: None,
        text: None,
        refusal: None,
        calls: Calls::default(),
        beside: Beside::default(),
        details: Details::default(),
    })
}

impl Decode for Completion {
    fn take(&mut self, _event: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool {
        let choices = fields.array("choices");
        let usage = fields.take("usage").or_else(|| fields.peek("x_groq").and_then(Fields::of)?.take("usage"));
        if choices.is_none() && usage.is_none() {
            return false;
        }
        let choice = choices
            .unwrap_or_default()
            .into_iter()
            .filter_map(Fields::of)
            .find_map(|mut choice| answer.takes(choice.integer("index")).then_some(choice));
        self.begin(fields, choice.is_some(), answer);
        if let Some(usage) = usage {
            answer.usage(usage);
        }
        if let Some(choice) = choice {
            self.choice(choice, answer);
        }
        true
    }

    fn finish(&mut self, answer: &mut Answer) {
        // There may have been no choice.
        answer.begin(self.metadata());
        self.calls.finish(answer);
        self.beside.finish(&mut self.text, answer);
        self.details.finish(answer);
    }
}

impl Completion {
    /// Azure sends what its filter says of the prompt, without a choice, id or model, before the message begins.
    fn begin(&mut self, fields: &mut Fields<'_>, says: bool, answer: &mut Answer) {
        OF_THE_RESPONSE.iter().for_each(|name| _ = fields.take(name));
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let (id, model) = (filled(fields.string("id")), filled(fields.string("model")));
        let rest = fields.take_but_error();
        if answer.has_begun() {
            for (name, raw) in rest.rest().filter(|(name, _)| !self.earlier_names.contains(&**name)) {
                answer.keep(&format!("{RESPONSE}{name}"), raw);
            }
            return;
        }
        self.metadata.id = self.metadata.id.take().or(id);
        self.metadata.model = self.metadata.model.take().or(model);
        self.earlier_names.extend(rest.names().map(str::to_owned));
        let extra = rest.extra(Owner::Message);
        answer.hold(extra.iter().map(|(name, value)| name.len() + value.as_str().len()).sum());
        self.earlier.push(extra);
        if says {
            answer.begin(self.metadata());
        }
    }

    /// What is known of the message before its first choice. The last value of a field counts.
    fn metadata(&mut self) -> Metadata {
        let mut metadata = std::mem::take(&mut self.metadata);
        let fields = self.earlier.iter().rev().flat_map(Extra::iter);
        metadata.extra.add_new(fields.map(|(name, value)| (name.to_owned(), value.clone())));
        metadata
    }

    fn choice(&mut self, mut choice: Fields<'_>, answer: &mut Answer) {
        OF_THE_CHOICE.iter().for_each(|name| _ = choice.take(name));
        if let Some(usage) = choice.take("usage") {
            answer.usage(usage);
        }
        if let Some(delta) = choice.object("delta") {
            self.said(delta, false, answer);
        }
        if let Some(message) = choice.object("message") {
            self.said(message, true, answer);
            answer.complete();
        }
        if let Some(word) = choice.string("finish_reason").filter(|word| !word.is_empty()) {
            answer.stop(&word);
        }
        choice.rest().for_each(|(name, raw)| answer.keep(&format!("{CHOICE}{name}"), raw));
    }

    /// A message, or a piece of it.
    fn said(&mut self, mut fields: Fields<'_>, whole: bool, answer: &mut Answer) {
        fields.take("role");
        if let Some((_, text, native)) = thinking(&mut fields) {
            self.think(text, native, answer);
        }
        if let Some(text) = fields.string("content") {
            self.say(text, answer);
        }
        for raw in fields.array("content").unwrap_or_default() {
            self.part(raw, answer);
        }
        if let Some(text) = fields.string("refusal").filter(|text| !text.is_empty()) {
            let index = *self.refusal.get_or_insert_with(|| answer.new_chunk());
            answer.delta(index, Body::Refusal { text });
        }
        let audio = if self.beside.has_sound() { fields.object("audio") } else { sound(&mut fields) };
        if let Some(audio) = audio {
            self.beside.audio(audio, answer);
        }
        for raw in fields.array("images").unwrap_or_default() {
            self.part(raw, answer);
        }
        for raw in fields.array("annotations").unwrap_or_default() {
            self.beside.annotation(raw, answer);
        }
        for raw in fields.array("tool_calls").unwrap_or_default() {
            self.calls.take(raw, whole, answer);
        }
        if let Some(call) = function(&mut fields) {
            self.calls.function(call, answer);
        }
        if !whole {
            for raw in fields.array(DETAILS).unwrap_or_default() {
                self.details.take(raw, answer);
            }
        }
        fields.rest().for_each(|(name, raw)| answer.keep(&name, raw));
    }

    fn part(&mut self, raw: &RawValue, answer: &mut Answer) {
        let Some(chunk) = part(raw, self.provider) else { return };
        match chunk.body {
            Body::Text { text, annotations: None } if chunk.extra.is_empty() => self.say(text, answer),
            Body::Thinking { text, signature: None, .. } => {
                let native = thinking_part(raw);
                self.think(text, native, answer);
            }
            body => answer.chunk(Chunk { body, ..chunk }),
        }
    }

    fn say(&mut self, text: String, answer: &mut Answer) {
        if !text.is_empty() {
            let index = *self.text.get_or_insert_with(|| answer.new_chunk());
            answer.delta(index, Body::Text { text, annotations: None });
        }
    }

    /// The block that it came in is kept once.
    fn think(&mut self, text: String, native: Option<Native>, answer: &mut Answer) {
        if !text.is_empty() {
            let (index, native) = match self.thinking {
                Some(index) => (index, None),
                None => (answer.new_chunk(), native),
            };
            self.thinking = Some(index);
            answer.delta(index, Chunk { native, ..Chunk::thinking(text) });
        }
    }
}

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
        let is_whole = json::is_object(&self.arguments);
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

/// What is held back until the message ends.
#[derive(Debug, Default)]
struct Beside {
    audio: Option<Sound>,
    annotations: Vec<String>,
}

#[derive(Debug)]
struct Sound {
    chunk_index: u32,
    id: Option<String>,
    data: Vec<String>,
    transcript: String,
    extra: Extra,
}

impl Beside {
    /// Whether the sound has begun.
    const fn has_sound(&self) -> bool {
        self.audio.is_some()
    }

    /// A piece of audio: base64, in pieces that fit each other, and what is said in it.
    pub(crate) fn audio(&mut self, mut fields: Fields<'_>, answer: &mut Answer) {
        let sound = self.audio.get_or_insert_with(|| Sound {
            chunk_index: answer.new_chunk(),
            id: None,
            data: Vec::new(),
            transcript: String::new(),
            extra: Extra::new(),
        });
        let transcript = fields.string("transcript").unwrap_or_default();
        answer.hold(transcript.len());
        sound.transcript.push_str(&transcript);
        if let Some(data) = fields.string("data") {
            answer.hold(data.len());
            sound.data.push(data);
        }
        let id = fields.string("id");
        sound.id = sound.id.take().or(id);
        fields.extend(Owner::Chunk, &mut sound.extra);
    }

    /// An annotation of the text.
    pub(crate) fn annotation(&mut self, raw: &RawValue, answer: &mut Answer) {
        answer.hold(raw.get().len());
        self.annotations.push(raw.get().to_owned());
    }

    /// Says what was held back. Annotations belong to the text.
    pub(crate) fn finish(&mut self, text: &mut Option<u32>, answer: &mut Answer) {
        if let Some(Sound { chunk_index, id, data, transcript, extra }) = self.audio.take() {
            let filled = |text: String| Some(text).filter(|text| !text.is_empty());
            let (data, transcript) = (filled(joined(&data)), filled(transcript));
            let body = Body::Audio(Audio { url: None, data, mime_type: None, transcript });
            answer.delta(chunk_index, Chunk { id, extra, ..body.into() });
        }
        if let Ok(annotations) = Json::new(format!("[{}]", self.annotations.join(",")))
            && !self.annotations.is_empty()
        {
            let index = *text.get_or_insert_with(|| answer.new_chunk());
            answer.delta(index, Body::Text { text: String::new(), annotations: Some(annotations) });
        }
    }
}

/// Base64 in pieces: cut anywhere, or each encoded for itself.
fn joined(pieces: &[String]) -> String {
    let text = pieces.concat();
    if decode_base64(&text).is_some() {
        return text;
    }
    let bytes: Option<Vec<Vec<u8>>> = pieces.iter().map(|piece| decode_base64(piece)).collect();
    bytes.map_or(text, |bytes| STANDARD.encode(bytes.concat()))
}

/// The field of the details of reasoning.
const DETAILS: &str = "reasoning_details";
/// What grows, and in which type (openrouter.ai/docs, reasoning tokens). Others come whole.
const GROWING_DETAILS: &[(&str, &str)] = &[("reasoning.text", "text"), ("reasoning.summary", "summary")];

/// The details so far, field by field in their order.
#[derive(Debug, Default)]
struct Details(Vec<Ordered<Value>>);

impl Details {
    /// A detail, or a piece of the last one.
    pub(crate) fn take(&mut self, raw: &RawValue, answer: &mut Answer) {
        let Ok(fields) = Extra::from_object(raw.get()) else { return answer.keep(DETAILS, raw) };
        answer.hold(raw.get().len());
        let value = |json: &Json| serde_json::from_str(json.as_str()).unwrap_or_default();
        let piece: Ordered<Value> = fields.iter().map(|(name, json)| (name.to_owned(), value(json))).collect();
        match self.0.last_mut().and_then(|last| Some((growing_field(last, &piece)?, last))) {
            Some((growing, last)) => piece.into_iter().for_each(|field| add(last, field, growing)),
            None => self.0.push(piece),
        }
    }

    /// Keeps them all.
    pub(crate) fn finish(&mut self, answer: &mut Answer) {
        let details = std::mem::take(&mut self.0);
        let written: Vec<String> = details.iter().map(object).collect();
        if let Ok(raw) = RawValue::from_string(format!("[{}]", written.join(",")))
            && !written.is_empty()
        {
            answer.keep(DETAILS, &raw);
        }
    }
}

/// The field of the last detail that a piece goes on with.
fn growing_field(last: &Ordered<Value>, piece: &Ordered<Value>) -> Option<&'static str> {
    let (kind, index) = (piece.get("type")?.as_str()?, piece.get("index"));
    let field = GROWING_DETAILS.iter().find(|(name, _)| *name == kind)?.1;
    let is_same = last.get("type")?.as_str()? == kind && last.get("index") == index;
    // One that is signed is whole.
    let is_signed = last.get("signature").is_some_and(|signature| !signature.is_null());
    (is_same && !is_signed).then_some(field)
}

fn add(last: &mut Ordered<Value>, (name, value): (String, Value), growing: &str) {
    match (last.get_mut(&name), value) {
        (Some(Value::String(known)), Value::String(more)) if name == growing => known.push_str(&more),
        (Some(known @ Value::Null), value) => *known = value,
        (Some(_), _) => {}
        (None, value) => last.add(name, value),
    }
}

fn object(fields: &Ordered<Value>) -> String {
    let text = |value: &Value| to_raw_value(value).map(|raw| raw.get().to_owned()).unwrap_or_default();
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}:{}", Value::from(name), text(value))).collect();
    format!("{{{}}}", fields.join(","))
}
