//! Answers of generateContent, whole or streamed: a stream's events are answers, too, each with a piece of the content.
//!
//! Candidate 0 is the message. Text that follows text is one chunk; text with a signature is a chunk of its own, as it came.
//! Safety ratings and log probabilities are left out; what else is said beside the content (grounding, citations) becomes
//! opaque chunks at the end. Sources: API reference, "GenerateContentResponse"; types of the official Python SDK
//! (google-genai 3.4.0); ai.google.dev thought-signatures.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::part::{Names, Origin, part, take};
use super::partial::{Partial, Piece};
use crate::json::fields::{Fields, string, text};
use crate::model::extra::Owner;
use crate::model::{Body, Chunk, FinishReason, Metadata};
use crate::provider::gemini::manner::provider;
use crate::provider::read::answer::{Answer, Decode};
use crate::provider::target::Target;

/// Fields of a candidate that are left out.
const OF_THE_CANDIDATE: &[&str] = &["index", "safetyRatings", "avgLogprobs", "logprobsResult", "tokenCount"];

pub(crate) fn decoder(target: Target) -> Box<dyn Decode> {
    Box::new(Content {
        provider: provider(target),
        metadata_fields: HashSet::new(),
        names: Names::default(),
        open: None,
        partial: Partial::default(),
    })
}

/// A decoder of answers.
#[derive(Debug)]
struct Content {
    provider: &'static str,
    /// The names of fields that are in the metadata: later events repeat them.
    metadata_fields: HashSet<String>,
    names: Names,
    /// The chunk that text goes on with, and whether it is thinking.
    open: Option<(u32, bool)>,
    /// A call whose arguments come in pieces.
    partial: Partial,
}

impl Decode for Content {
    fn provider(&self) -> &'static str {
        self.provider
    }

    fn take(&mut self, _event: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool {
        let candidates = fields.array("candidates");
        let usage = take(fields, "usageMetadata");
        let feedback = take(fields, "promptFeedback");
        if candidates.is_none() && usage.is_none() && feedback.is_none() {
            return false;
        }
        self.begin(fields, answer);
        if let Some(usage) = usage {
            answer.usage(usage);
        }
        if let Some(raw) = feedback {
            if let Some(word) = Fields::of(raw).and_then(|mut feedback| feedback.string("blockReason")) {
                answer.stop(&word);
                answer.complete();
            }
            answer.keep("promptFeedback", raw);
        }
        let mut candidates = candidates.unwrap_or_default().into_iter().filter_map(Fields::of);
        let candidate =
            candidates.find_map(|mut candidate| answer.takes(candidate.integer("index")).then_some(candidate));
        if let Some(candidate) = candidate {
            self.candidate(candidate, answer);
        }
        true
    }

    fn finish(&mut self, answer: &mut Answer) {
        if let Some(call) = self.partial.end() {
            self.whole(&call, answer);
        }
    }
}

impl Content {
    fn begin(&mut self, fields: &mut Fields<'_>, answer: &mut Answer) {
        let (id, model) = (take(fields, "responseId").and_then(string), take(fields, "modelVersion").and_then(string));
        let rest = fields.take_but_error();
        if answer.has_begun() {
            for (name, raw) in rest.rest().filter(|(name, _)| !self.metadata_fields.contains(&**name)) {
                answer.keep(&name, raw);
            }
            return;
        }
        self.metadata_fields.extend(rest.names().map(str::to_owned));
        let extra = rest.extra(Owner::Message);
        answer.begin(Metadata { id, model, extra, ..Metadata::default() });
    }

    fn candidate(&mut self, mut candidate: Fields<'_>, answer: &mut Answer) {
        OF_THE_CANDIDATE.iter().for_each(|name| _ = take(&mut candidate, name));
        if let Some(mut content) = candidate.object("content") {
            content.take("role");
            for raw in content.array("parts").unwrap_or_default() {
                self.part(raw, answer);
            }
            content.rest().for_each(|(name, raw)| answer.keep(&name, raw));
        }
        let words = take(&mut candidate, "finishMessage");
        if let Some(word) = take(&mut candidate, "finishReason").and_then(string).filter(|word| !word.is_empty()) {
            answer.stop(&word);
            match FinishReason::from(word.as_str()) {
                FinishReason::Stop => {}
                FinishReason::Error => {
                    let message = words.map_or_else(|| "the answer failed".to_owned(), text);
                    answer.fail(Body::Error { message, code: Some(word) });
                }
                _ => words.into_iter().for_each(|words| answer.keep("finishMessage", words)),
            }
        }
        candidate.rest().for_each(|(name, raw)| answer.keep(&name, raw));
    }

    fn part(&mut self, raw: &RawValue, answer: &mut Answer) {
        match self.partial.take(raw) {
            Piece::None => self.whole(raw, answer),
            Piece::More => answer.hold(raw.get().len()),
            Piece::Whole(call) => self.whole(&call, answer),
        }
    }

    fn whole(&mut self, raw: &RawValue, answer: &mut Answer) {
        let Some(chunk) = part(raw, Origin::Answer, self.provider, &mut self.names) else { return };
        let grows = match &chunk {
            Chunk { body: Body::Text { .. }, native: None, .. } => Some(false),
            Chunk { body: Body::Thinking { signature: None, .. }, native: None, .. } => Some(true),
            _ => None,
        };
        let Some(thought) = grows else {
            self.open = None;
            return answer.chunk(chunk);
        };
        if matches!(&chunk.body, Body::Text { text, .. } | Body::Thinking { text, .. } if text.is_empty()) {
            return;
        }
        let index = match self.open {
            Some((index, of_thought)) if of_thought == thought => index,
            _ => answer.new_chunk(),
        };
        self.open = Some((index, thought));
        answer.delta(index, chunk);
    }
}
