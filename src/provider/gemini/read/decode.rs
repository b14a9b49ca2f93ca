//! Answers of generateContent, whole or streamed: a stream's events are answers, too, each with a piece of the content.
//!
//! Candidate 0 is the message. Text that follows text is one chunk; text with a signature is a chunk of its own, as it came.
//! Safety ratings and log probabilities are left out; what else is said beside the content (grounding, citations) becomes
//! opaque chunks at the end. Sources: API reference, "GenerateContentResponse"; types of the official Python SDK
//! (google-genai 3.4.0); ai.google.dev thought-signatures.
//!
//! A call whose arguments come in pieces, each with its path: Vertex AI streams them so. Source: Vertex AI documentation,
//! "Streaming function call arguments"; `PartialArg` of the official Python SDK (google-genai 3.4.0).

use std::collections::HashSet;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::request::{Names, Origin, part, take};
use crate::json::fields::{Fields, array, string, text};
use crate::model::extra::Owner;
use crate::model::{Body, Chunk, FinishReason, Metadata};
use crate::provider::read::answer::{Answer, Decode};

/// Fields of a candidate that are left out.
const OF_THE_CANDIDATE: &[&str] = &["index", "safetyRatings", "avgLogprobs", "logprobsResult", "tokenCount"];

pub(crate) fn decoder(provider: &'static str) -> Box<dyn Decode> {
    Box::new(Content {
        provider,
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

/// A call that goes on.
#[derive(Debug, Default)]
struct Partial {
    open: Option<Call>,
}

#[derive(Debug, Default)]
struct Call {
    /// The fields of the part, but for its call.
    part: Map<String, Value>,
    /// The fields of the call, but for its arguments.
    call: Map<String, Value>,
    args: Value,
}

/// What a part is to a call that comes in pieces.
pub(crate) enum Piece {
    /// It is none of them.
    None,
    /// The call goes on.
    More,
    /// The call is whole: as if it had come so.
    Whole(Box<RawValue>),
}

impl Partial {
    pub(crate) fn take(&mut self, raw: &RawValue) -> Piece {
        let Some(mut fields) = Fields::of(raw) else { return Piece::None };
        let Some(mut call) = take(&mut fields, "functionCall").and_then(Fields::of) else { return Piece::None };
        let pieces = take(&mut call, "partialArgs").and_then(array);
        let goes_on = take(&mut call, "willContinue").is_some_and(|raw| raw.get() == "true");
        let ends = self.open.is_some() && call.peek("name").is_none();
        if pieces.is_none() && !goes_on && !ends {
            return Piece::None;
        }
        let open = self.open.get_or_insert_with(|| Call { args: Value::Object(Map::new()), ..Call::default() });
        for (known, fields) in [(&mut open.part, fields), (&mut open.call, call)] {
            for (name, raw) in fields.rest() {
                if let Ok(value) = serde_json::from_str(raw.get()) {
                    known.entry(name).or_insert(value);
                }
            }
        }
        pieces.into_iter().flatten().filter_map(Fields::of).for_each(|piece| set(&mut open.args, piece));
        if goes_on { Piece::More } else { self.end().map_or(Piece::More, Piece::Whole) }
    }

    /// The call as far as it came.
    pub(crate) fn end(&mut self) -> Option<Box<RawValue>> {
        let Call { mut part, mut call, args } = self.open.take()?;
        call.insert("args".to_owned(), args);
        part.insert("functionCall".to_owned(), Value::Object(call));
        to_raw_value(&part).ok()
    }
}

/// Sets the value at a path of the arguments; a string that is there goes on.
fn set(args: &mut Value, mut piece: Fields<'_>) {
    let path = take(&mut piece, "jsonPath").and_then(string).unwrap_or_default();
    let mut value = None;
    for name in ["stringValue", "numberValue", "boolValue", "nullValue"] {
        let found = take(&mut piece, name).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        value = value.or(found.map(|found| if name == "nullValue" { Value::Null } else { found }));
    }
    let (Some(value), Some(place)) = (value, at(args, &path)) else { return };
    match (place, value) {
        (Value::String(known), Value::String(more)) => known.push_str(&more),
        (place, value) => *place = value,
    }
}

/// Steps into arrays no further than this: a path may name any index.
const ITEMS: usize = 10_000;

/// The place of a path such as `$.city.names[0]`, made where it is not there yet.
fn at<'v>(args: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    let mut place = args;
    let path = path.strip_prefix('$').unwrap_or(path);
    for step in path.split(['.', '[']).map(|step| step.trim_end_matches(']')).filter(|step| !step.is_empty()) {
        let name = step.trim_matches(['"', '\'']);
        match step.parse::<usize>() {
            Ok(index) if index < ITEMS && !place.is_object() => {
                if !place.is_array() {
                    *place = Value::Array(Vec::new());
                }
                let items = place.as_array_mut()?;
                while items.len() <= index {
                    items.push(Value::Null);
                }
                place = items.get_mut(index)?;
            }
            _ => {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                place = place.as_object_mut()?.entry(name).or_insert(Value::Null);
            }
        }
    }
    Some(place)
}
