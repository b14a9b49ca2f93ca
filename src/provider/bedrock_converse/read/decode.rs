//! Answers of Converse, whole, or streamed: as an event stream, or as lines of JSON, each event under its name.
//!
//! Sources: API reference, "Converse" and "ConverseStream"; types of the official Python SDK (botocore 1.44.5),
//! `ConverseResponse` and `ConverseStreamOutput`. What is measured, traced and configured is left out.

use super::block::block;
use super::growing::Blocks;
use crate::json::compact;
use crate::json::fields::Fields;
use crate::model::extra::Owner;
use crate::model::{Body, Metadata};
use crate::provider::bedrock_converse::manner::PROVIDER;
use crate::provider::read::answer::{Answer, Decode};
use crate::provider::target::Target;

/// Fields that say nothing of the message. `p` is padding.
const OF_THE_RESPONSE: &[&str] = &["metrics", "trace", "performanceConfig", "serviceTier", "ResponseMetadata", "p"];
/// Events of a stream.
const EVENTS: &[&str] =
    &["messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"];
/// How the names of errors end that come in place of an event.
const EXCEPTION: &str = "Exception";

/// A decoder of answers.
#[derive(Debug, Default)]
struct Response {
    blocks: Blocks,
}

pub(crate) fn decoder(_: Target) -> Box<dyn Decode> {
    Box::new(Response::default())
}

impl Decode for Response {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn take(&mut self, event: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool {
        if let Some(output) = fields.object("output") {
            self.response(output, fields, answer);
            return true;
        }
        // As a line of JSON, an event is the value of its name.
        let named = fields.names().find(|name| EVENTS.contains(name) || name.ends_with(EXCEPTION)).map(str::to_owned);
        if let Some(name) = named
            && let Some(mut inner) = fields.object(&name)
        {
            let known = self.event(&name, &mut inner, answer);
            inner.rest().for_each(|(name, raw)| answer.keep(&name, raw));
            rest(fields, answer);
            return known;
        }
        let grows = fields.peek("delta").is_some() && fields.peek("contentBlockIndex").is_some();
        let known = self.event(if grows { "contentBlockDelta" } else { event }, fields, answer);
        if known {
            rest(fields, answer);
        }
        known
    }

    fn finish(&mut self, answer: &mut Answer) {
        self.blocks.finish(answer);
    }
}

impl Response {
    /// A whole answer.
    fn response(&mut self, mut output: Fields<'_>, fields: &mut Fields<'_>, answer: &mut Answer) {
        let mut message = output.object("message").unwrap_or_default();
        message.take("role");
        let content = message.array("content").unwrap_or_default();
        answer.begin(Metadata { extra: message.extra(Owner::Message), ..Metadata::default() });
        for mut chunk in content.into_iter().filter_map(block) {
            if let Body::ToolCall { arguments, .. } = &mut chunk.body {
                // Answers may be indented: what is kept of them is not.
                *arguments = compact(arguments);
            }
            answer.chunk(chunk);
        }
        output.rest().for_each(|(name, raw)| answer.keep(&name, raw));
        end(fields, answer);
        answer.complete();
        rest(fields, answer);
    }

    fn event(&mut self, name: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool {
        let index = fields.integer("contentBlockIndex");
        match (name, index) {
            ("messageStart", _) => {
                fields.take("role");
                fields.take("p");
                let extra = std::mem::take(fields).extra(Owner::Message);
                answer.begin(Metadata { extra, ..Metadata::default() });
            }
            ("contentBlockStart", Some(index)) => {
                let start = fields.take("start").and_then(Fields::of).unwrap_or_default();
                self.blocks.start(index, start, answer);
            }
            ("contentBlockDelta", Some(index)) => {
                let Some(delta) = fields.object("delta") else { return false };
                self.blocks.delta(index, delta, answer);
            }
            ("contentBlockStop", Some(index)) => self.blocks.stop(index, answer),
            ("messageStop", _) => {
                end(fields, answer);
                answer.complete();
            }
            ("metadata", _) => end(fields, answer),
            (exception, _) if exception.ends_with(EXCEPTION) => {
                let message = fields.text("message").or_else(|| fields.text("Message"));
                let message = message.unwrap_or_else(|| "the answer failed".to_owned());
                answer.fail(Body::Error { message, code: Some(exception.to_owned()) });
            }
            _ => return false,
        }
        OF_THE_RESPONSE.iter().for_each(|name| _ = fields.take(name));
        true
    }
}

/// Why the model stopped, and what it cost.
fn end(fields: &mut Fields<'_>, answer: &mut Answer) {
    if let Some(word) = fields.string("stopReason") {
        answer.stop(&word);
    }
    if let Some(usage) = fields.take("usage") {
        answer.usage(usage);
    }
}

/// Keeps what is not known. An error is left for the caller.
fn rest(fields: &mut Fields<'_>, answer: &mut Answer) {
    OF_THE_RESPONSE.iter().for_each(|name| _ = fields.take(name));
    fields.take_but_error().rest().for_each(|(name, raw)| answer.keep(&name, raw));
}
