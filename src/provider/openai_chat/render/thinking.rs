//! What becomes of thinking on a wire that has no thinking blocks.

use std::borrow::Cow;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::renderer::Renderer;
use super::request::{Part, SEPARATOR};
use crate::history::report::{Fact, Thought as Why};
use crate::model::Native;
use crate::provider::prompt::arguments::embedded_object;
use crate::provider::prompt::options::Thinking;
use crate::provider::prompt::turns::Turn;
use crate::provider::text::is_blank;

/// A thinking chunk of an assistant message.
#[derive(Debug)]
pub(crate) struct Thought<'a> {
    /// Its position in the message.
    pub(crate) chunk: usize,
    pub(crate) text: &'a str,
    /// Whether it has a signature, or redacted data, which belong to another wire.
    pub(crate) is_opaque: bool,
    /// How many parts of the message stand before it.
    pub(crate) before: usize,
    /// Where this wire had it, without its text.
    pub(crate) native: Option<&'a Native>,
}

/// Where thinking goes back to.
enum Place {
    /// Fields of the message.
    Fields(Vec<String>),
    /// A part of its content, made of these fields.
    Part(Map<String, Value>),
}

pub(crate) type Thoughts<'a> = Vec<Thought<'a>>;

impl<'a> Renderer<'a> {
    /// Puts thinking where it belongs: into the text, into `reasoning_content`, which is given back, or nowhere.
    ///
    /// A message with calls always carries `reasoning_content` where the dialect has it: so it depends on nothing that
    /// comes later.
    pub(crate) fn thinking(
        &mut self,
        turn: &Turn<'a>,
        thoughts: Thoughts<'a>,
        parts: &mut Vec<Part<'a>>,
        own_fields: &mut Vec<(String, Box<RawValue>)>,
        says_more: bool,
    ) -> Option<String> {
        let otherwise = self.manner.reasoning_content.filter(|_| !turn.calls.is_empty());
        let own = otherwise.is_some()
            && self.options.thinking == Thinking::Native
            && turn.is_by(self.manner.providers, self.options.model.as_deref());
        let comes_back = self.options.thinking == Thinking::Native && turn.is_by(self.manner.providers, None);
        let is_all = parts.is_empty() && turn.calls.is_empty() && !says_more;
        let tags = self.options.thinking.tags(is_all);
        let (mut native, mut tagged) = (Vec::new(), 0);
        let mut fields: Vec<(String, String)> = Vec::new();
        for thought in thoughts {
            let place = if comes_back && !is_all && otherwise.is_none() { self.place(&thought) } else { None };
            match place {
                Some(Place::Fields(names)) => {
                    for name in names {
                        match fields.iter_mut().find(|(known, _)| *known == name) {
                            Some((_, text)) => *text = [text, thought.text].join(SEPARATOR),
                            None => fields.push((name, thought.text.to_owned())),
                        }
                    }
                    continue;
                }
                Some(Place::Part(part)) => {
                    let json = to_raw_value(&part).unwrap_or_default();
                    parts.insert((thought.before + tagged).min(parts.len()), Part::Own(json));
                    tagged += 1;
                    continue;
                }
                None => {}
            }
            if own && !thought.is_opaque && !thought.text.is_empty() {
                native.push(thought.text);
            } else if tags && !is_blank(thought.text) {
                self.note(self.options.thinking.tagging(), turn.stored, thought.chunk);
                let text = Cow::Owned(Thinking::tagged(thought.text));
                parts.insert((thought.before + tagged).min(parts.len()), Part::Text { text });
                tagged += 1;
            } else {
                self.note(
                    Fact::ThinkingRemoved { why: self.why_left_out(&thought), text: thought.text },
                    turn.stored,
                    thought.chunk,
                );
            }
        }
        let text = |(name, text): (String, String)| (name, to_raw_value(&text).unwrap_or_default());
        own_fields.splice(0..0, fields.into_iter().map(text));
        otherwise.map(|otherwise| if native.is_empty() { otherwise.to_owned() } else { native.join(SEPARATOR) })
    }

    /// Where the server had the thought, if it takes it there.
    fn place(&self, thought: &Thought<'_>) -> Option<Place> {
        let mut given = embedded_object(&thought.native?.json)?;
        let text = Value::from(thought.text);
        if given.get("type").is_some_and(|kind| kind == "thinking") {
            let texts = given.get("thinking").is_some_and(Value::is_array);
            let told = if texts { json!([{"type": "text", "text": text}]) } else { text };
            given.insert("thinking".to_owned(), told);
            let part = Value::Object(given.clone());
            let taken =
                self.manner.arrays && self.refused("assistant", "content", &json!([part]).to_string()).is_none();
            return taken.then_some(Place::Part(given));
        }
        let taken = |name: &String| self.takes_text(name, thought.text);
        let names: Vec<String> = given.keys().filter(|name| taken(name)).cloned().collect();
        (!names.is_empty() && !thought.text.is_empty()).then_some(Place::Fields(names))
    }

    fn why_left_out(&self, thought: &Thought<'_>) -> Why {
        match self.options.thinking {
            Thinking::Omit => Why::AsAsked,
            _ if thought.text.is_empty() && !thought.is_opaque => Why::Empty,
            _ if is_blank(thought.text) => Why::NoText,
            _ if thought.is_opaque => Why::Encrypted,
            _ => Why::NoPlace,
        }
    }
}
