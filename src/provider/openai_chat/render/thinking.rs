//! What becomes of thinking on a wire that has no thinking blocks.

use std::borrow::Cow;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::request::{ExtraFields, Field, Part, SEPARATOR};
use super::{Renderer, Thought};
use crate::history::report::{Fact, Thought as Why};
use crate::json::fields::Fields;
use crate::provider::prompt::arguments::embedded_object;
use crate::provider::prompt::options::Thinking;
use crate::provider::prompt::turns::Turn;
use crate::provider::text::is_blank;

/// Where thinking goes back to.
enum Place<'a> {
    /// Fields of the message.
    Fields(Vec<Cow<'a, str>>),
    /// A part of its content.
    Part(Box<RawValue>),
}

impl<'a> Renderer<'a> {
    /// Puts thinking where it belongs: into the text, into `reasoning_content`, which is given back, or nowhere.
    ///
    /// A message with calls always carries `reasoning_content` where the dialect has it: so it depends on nothing that
    /// comes later.
    pub(super) fn thinking(
        &mut self,
        turn: &Turn<'a>,
        thoughts: Vec<Thought<'a>>,
        parts: &mut Vec<Part<'a>>,
        extra: &mut Vec<(Cow<'a, str>, Field<'a>)>,
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
        let mut fields: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
        for thought in thoughts {
            let place = if comes_back && !is_all && otherwise.is_none() { self.place(&thought) } else { None };
            match place {
                Some(Place::Fields(names)) => {
                    for name in names {
                        match fields.iter_mut().find(|(known, _)| *known == name) {
                            Some((_, text)) => *text = Cow::Owned([text, thought.text].join(SEPARATOR)),
                            None => fields.push((name, Cow::Borrowed(thought.text))),
                        }
                    }
                    continue;
                }
                Some(Place::Part(part)) => {
                    parts.insert((thought.before + tagged).min(parts.len()), Part::Raw(part));
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
        extra.splice(0..0, fields.into_iter().map(|(name, text)| (name, Field::Text(text))));
        otherwise.map(|otherwise| if native.is_empty() { otherwise.to_owned() } else { native.join(SEPARATOR) })
    }

    /// Where the server had the thought, if it takes it there.
    fn place(&self, thought: &Thought<'a>) -> Option<Place<'a>> {
        let json = &thought.native?.json;
        let fields = Fields::read(json.as_str()).ok()?;
        if fields.says("type", "thinking") {
            // Parsers take what else is in it.
            embedded_object(json)?;
            let part = part(fields, thought.text);
            let taken = self.manner.arrays && self.refused("assistant", "content", &format!("[{part}]")).is_none();
            return taken.then_some(Place::Part(part));
        }
        let names = fields.pairs().into_iter().map(|(name, _)| name);
        let mut names: Vec<Cow<'a, str>> = names.filter(|name| self.takes_text(name, thought.text)).collect();
        names.sort_unstable();
        names.dedup();
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

/// The part of these fields, in their order, with the text in its place.
fn part(fields: Fields<'_>, text: &str) -> Box<RawValue> {
    let in_list = fields.peek("thinking").is_some_and(|thinking| thinking.get().starts_with('['));
    let thinking = if in_list { json!([{"type": "text", "text": text}]) } else { Value::from(text) };
    let mut fields = fields.pairs();
    let mut part = ExtraFields::default();
    if fields.iter().all(|(name, _)| name != "thinking") {
        fields.push((Cow::Borrowed("thinking"), RawValue::NULL));
    }
    for (name, raw) in fields {
        let value = if name == "thinking" { to_raw_value(&thinking).unwrap_or_default() } else { raw.to_owned() };
        part.0.push((name, Field::Json(value)));
    }
    to_raw_value(&part).unwrap_or_default()
}
