//! Messages, whole (`message`) or streamed (`message_start` to `message_stop`).
//!
//! The tools that the provider runs are its own: their calls and results are opaque chunks, each the block that it was. A
//! signature, citations and such blocks are said when their block ends: what is cut off has none.
//!
//! Sources: API reference, "Messages" and "Streaming Messages"; types of the official Python SDK (anthropic 2.11.0),
//! `Message` and `RawMessageStreamEvent`.

use serde_json::value::{RawValue, to_raw_value};

use super::block::block;
use super::growing;
use super::growing::Blocks;
use crate::json::fields::{Fields, is_empty, string};
use crate::model::Metadata;
use crate::model::extra::Owner;
use crate::provider::anthropic::manner::provider;
use crate::provider::read::answer::{Answer, Decode};
use crate::provider::target::Target;

/// Fields of a message that say nothing of it, or what its chunks say.
const OF_THE_MESSAGE: &[&str] = &["type", "role"];
/// Fields of a message that come at the end of a stream.
const OF_THE_END: &[&str] = &["stop_reason", "stop_sequence", "stop_details", "container"];
/// Fields of an event that say nothing of the message. The metrics are Bedrock's.
const OF_THE_EVENT: &[&str] = &["type", "amazon-bedrock-invocationMetrics"];

/// A decoder of messages.
#[derive(Debug)]
struct Messages {
    provider: &'static str,
    blocks: Blocks,
    /// The fields of the token counts, as they were said last.
    usage: Vec<(String, Box<RawValue>)>,
}

pub(crate) fn decoder(target: Target) -> Box<dyn Decode> {
    let provider = provider(target);
    Box::new(Messages { provider, blocks: Blocks::new(provider), usage: Vec::new() })
}

impl Decode for Messages {
    fn provider(&self) -> &'static str {
        self.provider
    }

    fn take(&mut self, event: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool {
        let kind = fields.peek("type").and_then(string);
        match kind.as_deref().unwrap_or(event) {
            "message" => {
                let content = fields.array("content").unwrap_or_default();
                self.message(std::mem::take(fields), content, answer);
                answer.complete();
            }
            "message_start" => {
                let Some(mut message) = fields.object("message") else { return false };
                let content = message.array("content").unwrap_or_default();
                self.message(message, content, answer);
                keep_rest(fields, answer);
            }
            "content_block_start" => {
                let (Some(index), Some(raw)) = (fields.integer("index"), fields.take("content_block")) else {
                    return false;
                };
                self.blocks.start(index, raw, answer);
                keep_rest(fields, answer);
            }
            "content_block_delta" => {
                let (Some(index), Some(delta)) = (fields.integer("index"), fields.object("delta")) else {
                    return false;
                };
                self.blocks.delta(index, delta, answer);
                keep_rest(fields, answer);
            }
            "content_block_stop" => {
                let Some(index) = fields.integer("index") else { return false };
                self.blocks.stop(index, answer);
                keep_rest(fields, answer);
            }
            "message_delta" => {
                let delta = fields.object("delta").unwrap_or_default();
                delta.rest().for_each(|(name, raw)| self.end(&name, raw, answer));
                self.usage(fields, answer);
                self.edits(fields, answer);
                keep_rest(fields, answer);
            }
            "message_stop" => {
                answer.complete();
                keep_rest(fields, answer);
            }
            "ping" => _ = std::mem::take(fields),
            _ => return false,
        }
        true
    }

    fn finish(&mut self, answer: &mut Answer) {
        self.blocks.finish(answer);
    }
}

impl Messages {
    /// A whole message, or the beginning of one.
    fn message(&mut self, mut fields: Fields<'_>, content: Vec<&RawValue>, answer: &mut Answer) {
        OF_THE_MESSAGE.iter().for_each(|name| _ = fields.take(name));
        let (id, model) = (fields.string("id"), fields.string("model"));
        let end: Vec<_> = OF_THE_END.iter().filter_map(|name| Some((*name, fields.take(name)?))).collect();
        self.usage(&mut fields, answer);
        self.edits(&mut fields, answer);
        answer.begin(Metadata { id, model, extra: fields.extra(Owner::Message), ..Metadata::default() });
        for chunk in content.into_iter().filter_map(|raw| block(raw, self.provider)) {
            answer.chunk(chunk);
        }
        end.into_iter().for_each(|(name, raw)| self.end(name, raw, answer));
    }

    /// Why the model stopped, and what else is known only then: which sequence stopped it, in which container code ran. That
    /// is no content, and is kept with the counts.
    fn end(&mut self, name: &str, raw: &RawValue, answer: &mut Answer) {
        match string(raw).filter(|word| name == "stop_reason" && !word.is_empty()) {
            Some(word) => answer.stop(&word),
            None if OF_THE_END.contains(&name) => {
                if !is_empty(raw) {
                    self.usage.push((name.to_owned(), raw.to_owned()));
                    self.count(answer);
                }
            }
            None => answer.keep(name, raw),
        }
    }

    /// What the provider left out of the request by itself: it is kept with the counts.
    fn edits(&mut self, fields: &mut Fields<'_>, answer: &mut Answer) {
        let Some(raw) = fields.take("context_management") else { return };
        let applied = Fields::of(raw).and_then(|mut edits| edits.array("applied_edits"));
        if applied.is_some_and(|applied| !applied.is_empty()) {
            self.usage.push(("context_management".to_owned(), raw.to_owned()));
            self.count(answer);
        }
    }

    /// A stream counts the input at its beginning and the output at its end.
    fn usage(&mut self, fields: &mut Fields<'_>, answer: &mut Answer) {
        let Some(counts) = fields.object("usage") else { return };
        for (name, raw) in counts.pairs() {
            let raw = raw.to_owned();
            match self.usage.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) if raw.get() != "null" => *known = raw,
                Some(_) => {}
                None => self.usage.push((name.into_owned(), raw)),
            }
        }
        self.count(answer);
    }

    fn count(&self, answer: &mut Answer) {
        if let Ok(usage) = to_raw_value(&growing::Object(&self.usage)) {
            answer.usage(&usage);
        }
    }
}

fn keep_rest(fields: &mut Fields<'_>, answer: &mut Answer) {
    OF_THE_EVENT.iter().for_each(|name| _ = fields.take(name));
    fields.take_but_error().rest().for_each(|(name, raw)| answer.keep(&name, raw));
}
