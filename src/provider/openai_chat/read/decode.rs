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

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::calls::function;
use super::growing::{Beside, Calls, DETAILS, Details, sound};
use super::part::{part, thinking, thinking_part};
use crate::json::fields::Fields;
use crate::model::extra::Owner;
use crate::model::{Body, Chunk, Metadata, Native};
use crate::provider::openai_chat::manner::provider;
use crate::provider::read::answer::{Answer, Decode};
use crate::provider::target::Target;

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
    /// Fields of objects that came before the first choice.
    metadata: Metadata,
    /// The names of fields that are in it: later objects repeat them.
    metadata_fields: HashSet<String>,
    thinking: Option<u32>,
    text: Option<u32>,
    refusal: Option<u32>,
    calls: Calls,
    beside: Beside,
    details: Details,
}

pub(crate) fn decoder(target: Target) -> Box<dyn Decode> {
    Box::new(Completion {
        provider: provider(target),
        metadata: Metadata::default(),
        metadata_fields: HashSet::new(),
        thinking: None,
        text: None,
        refusal: None,
        calls: Calls::default(),
        beside: Beside::default(),
        details: Details::default(),
    })
}

impl Decode for Completion {
    fn provider(&self) -> &'static str {
        self.provider
    }

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
        answer.begin(std::mem::take(&mut self.metadata));
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
            for (name, raw) in rest.rest().filter(|(name, _)| !self.metadata_fields.contains(&**name)) {
                answer.keep(&format!("{RESPONSE}{name}"), raw);
            }
            return;
        }
        self.metadata.id = self.metadata.id.take().or(id);
        self.metadata.model = self.metadata.model.take().or(model);
        self.metadata_fields.extend(rest.names().map(str::to_owned));
        let mut extra = rest.extra(Owner::Message);
        extra.add_new(self.metadata.extra.iter().map(|(name, value)| (name.to_owned(), value.clone())));
        self.metadata.extra = extra;
        if says {
            answer.begin(self.metadata.clone());
        }
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
