//! Characters that a stream cuts in two: `"\ud83d"` ends one delta, `"\ude00"` begins the next.
//!
//! Servers that count in UTF-16 (JavaScript's strings, Java's) cut between the halves of a surrogate pair. Neither half is
//! a character, so the first one waits for the next delta of the same text: the decoders see whole characters only.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use super::forms::GrowingTexts;
use crate::json::fields::{Fields, array};
use crate::json::{ESCAPE, begins_with_second_half, first_half_at_end, replace_lone_surrogates};

/// What a decoder wants to see besides.
const KIND: &[&str] = &["type"];
/// Deeper, no wire has a text that grows.
const DEPTH: usize = 12;

/// First halves that wait, by the text that they belong to.
#[derive(Debug)]
pub(crate) struct SplitPairs {
    growing: &'static GrowingTexts,
    /// By the names and numbers on the way to the text.
    waiting: HashMap<String, Half>,
    /// How many have waited.
    count: u64,
}

#[derive(Debug)]
struct Half {
    /// How many waited before it.
    before: u64,
    /// The smallest object that holds the text, with `%` in its place.
    object: String,
    /// Its escape.
    escape: String,
}

/// A change of an object's text: the bytes from `at` to `end` become `with`.
struct Change {
    at: usize,
    end: usize,
    with: String,
}

impl SplitPairs {
    /// Of a stream whose texts grow so.
    pub(crate) fn new(growing: &'static GrowingTexts) -> Self {
        Self { growing, waiting: HashMap::new(), count: 0 }
    }

    /// The next object of a stream with the halves of its characters joined; what is left of them is U+FFFD.
    pub(crate) fn join<'a>(&mut self, json: &'a str) -> Cow<'a, str> {
        if self.waiting.is_empty() && matches!(replace_lone_surrogates(json), Cow::Borrowed(_)) {
            return Cow::Borrowed(json);
        }
        let mut changes = Vec::new();
        if let Ok(object) = serde_json::from_str::<&RawValue>(json) {
            self.visit(json, object, &Place::default(), &mut changes);
        }
        changes.sort_by_key(|change| change.at);
        let mut joined = String::with_capacity(json.len() + ESCAPE);
        let mut copied = 0;
        for Change { at, end, with } in changes {
            joined.push_str(json.get(copied..at).unwrap_or_default());
            joined.push_str(&with);
            copied = end;
        }
        joined.push_str(json.get(copied..).unwrap_or_default());
        Cow::Owned(replace_lone_surrogates(&joined).into_owned())
    }

    /// The stream has ended: deltas that end the texts whose halves still wait.
    pub(crate) fn take_rest(&mut self) -> impl Iterator<Item = String> {
        let mut waiting: Vec<Half> = std::mem::take(&mut self.waiting).into_values().collect();
        waiting.sort_unstable_by_key(|half| half.before);
        waiting.into_iter().map(|half| half.object.replacen('%', "\\ufffd", 1))
    }

    fn visit(&mut self, json: &str, value: &RawValue, place: &Place, changes: &mut Vec<Change>) {
        if place.depth > DEPTH {
            return;
        }
        let text = value.get();
        if text.starts_with('[') {
            let inside = place.inside("[", "[", "]");
            array(value).unwrap_or_default().into_iter().for_each(|item| self.visit(json, item, &inside, changes));
        } else if let Some(fields) = Fields::of(value) {
            let (identity, kind) = (scalars(&fields, self.growing.identity), scalars(&fields, KIND));
            for (name, field) in fields.pairs() {
                let mut inside =
                    place.inside(&format!("{{{identity}{name}:"), &format!("{{{kind}{identity}\"{name}\":"), "}");
                inside.grows |= self.growing.texts.contains(&name.as_ref());
                self.visit(json, field, &inside, changes);
            }
        } else if place.grows && text.starts_with('"') {
            // The value's text is a part of the object's.
            let start = (text.as_ptr() as usize).saturating_sub(json.as_ptr() as usize) + 1;
            let text = text.get(1..text.len() - 1).unwrap_or_default();
            if !text.is_empty() {
                self.text(start, text, place, changes);
            }
        }
    }

    /// A text at `start`, as it is escaped.
    fn text(&mut self, start: usize, text: &str, place: &Place, changes: &mut Vec<Change>) {
        if let Some(half) = self.waiting.remove(&place.key) {
            let with = if begins_with_second_half(text) { half.escape } else { r"\ufffd".to_owned() };
            changes.push(Change { at: start, end: start, with });
        }
        if let Some((at, escape)) = first_half_at_end(text).and_then(|at| Some((at, text.get(at..)?))) {
            let object = format!("{}\"%\"{}", place.before, place.after);
            self.waiting.insert(place.key.clone(), Half { before: self.count, object, escape: escape.to_owned() });
            self.count += 1;
            changes.push(Change { at: start + at, end: start + text.len(), with: String::new() });
        }
    }
}

/// The plain values among these fields, as JSON, each with a comma after it.
fn scalars(fields: &Fields<'_>, names: &[&str]) -> String {
    let plain = |raw: &&RawValue| !raw.get().starts_with(['{', '[']);
    let known = names.iter().filter_map(|name| Some((name, fields.peek(name).filter(plain)?)));
    known.map(|(name, raw)| format!("\"{name}\":{},", raw.get())).collect()
}

/// Where a value is.
#[derive(Default)]
struct Place {
    key: String,
    /// The text before and after it in an object that holds nothing else.
    before: String,
    after: String,
    depth: usize,
    /// Whether a text there is one that grows.
    grows: bool,
}

impl Place {
    fn inside(&self, key: &str, open: &str, close: &str) -> Self {
        Self {
            key: format!("{}{key}", self.key),
            before: format!("{}{open}", self.before),
            after: format!("{close}{}", self.after),
            depth: self.depth + 1,
            grows: self.grows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(index: u8, text: &str) -> String {
        format!(r#"{{"id":"x","choices":[{{"index":{index},"delta":{{"content":"{text}"}}}}]}}"#)
    }

    #[test]
    fn halves_wait_for_the_next_delta_of_their_text() {
        static CHAT: GrowingTexts = GrowingTexts { identity: &["index"], texts: &["delta"] };
        let mut halves = SplitPairs::new(&CHAT);
        let mut join = |text: String| halves.join(&text).into_owned();
        assert_eq!(join(chat(0, r"a\ud83d")), chat(0, "a"));
        assert_eq!(join(chat(1, "b")), chat(1, "b"));
        assert_eq!(join(chat(0, "")), chat(0, ""));
        assert_eq!(join(chat(0, r"\ude00c\uD83D")), chat(0, r"\ud83d\ude00c"));
        assert_eq!(join(chat(0, "d")), chat(0, r"\ufffdd"));
        assert_eq!(join(chat(0, r"\ude00")), chat(0, r"\ufffd"));
        assert_eq!(join(chat(0, r"\\ud83d")), chat(0, r"\\ud83d"));
        assert_eq!(join(r#"{"id":"\ud83d"}"#.to_owned()), r#"{"id":"\ufffd"}"#);
        assert_eq!(join(chat(0, r"e\ud83d")), chat(0, "e"));
        assert!(halves.take_rest().eq([r#"{"choices":[{"index":0,"delta":{"content":"\ufffd"}}]}"#]));
    }
}
