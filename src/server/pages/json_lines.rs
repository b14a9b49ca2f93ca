//! A request as lines, each value with its place: what is reported about a place is shown there.

use askama::Template;
use serde_json::value::RawValue;

use super::words::{Cut, Note};
use crate::model::Json;

/// The most lines of a page.
const LINES: usize = 20_000;
/// Bytes of one value.
const VALUE: usize = 4 * 1024;
/// Bytes of data that nobody reads: base64.
const ENCODED: usize = 120;
/// Indents that have a style; what is deeper has the deepest.
const DEPTH: usize = 12;

/// JSON, line by line.
#[derive(Debug, Default, Template)]
#[template(config = "src/server/pages/askama.toml", path = "json_lines.html")]
pub(super) struct JsonLines {
    pub(super) lines: Vec<Line>,
    /// Whether there are more.
    pub(super) is_cut: bool,
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) depth: usize,
    pub(super) text: Cut,
    /// The place of the value that begins here, as in `messages[4].content[0]`.
    pub(super) place: String,
    pub(super) notes: Vec<Note>,
}

impl JsonLines {
    /// The lines of a JSON text. What is no JSON is one line.
    pub(super) fn of(json: &str) -> Self {
        let mut lines = Self::default();
        lines.value(json, 0, "", String::new(), "");
        lines
    }

    /// Puts a note at its place, or at the value around it. Gives it back if there is none.
    pub(super) fn put(&mut self, note: Note) -> Option<Note> {
        let mut place = note.place.clone().filter(|place| !place.is_empty())?;
        loop {
            if let Some(line) = self.lines.iter_mut().find(|line| line.place == place) {
                line.notes.push(note);
                return None;
            }
            match place.rfind(['.', '[']) {
                Some(at) => place.truncate(at),
                None => return Some(note),
            }
        }
    }

    /// The notes at its places, in their order.
    pub(super) fn notes(&mut self) -> impl Iterator<Item = &mut Note> {
        self.lines.iter_mut().flat_map(|line| line.notes.iter_mut())
    }

    fn push(&mut self, depth: usize, text: &str, place: String) {
        if self.lines.len() >= LINES {
            self.is_cut = true;
            return;
        }
        let most = if is_encoded(text) { ENCODED } else { VALUE };
        self.lines.push(Line { depth: depth.min(DEPTH), text: Cut::new(text, most), place, notes: Vec::new() });
    }

    /// `before` is the key, `after` the comma.
    fn value<'a>(&mut self, json: &'a str, depth: usize, before: &str, place: String, after: &str) {
        let json = json.trim();
        if self.is_cut {
            return;
        }
        let read = if depth >= Json::MAX_DEPTH {
            None
        } else if json.starts_with('{') {
            let member = |(name, value): (String, &'a RawValue)| {
                let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                let key = serde_json::to_string(&name).unwrap_or_default();
                (format!("{key}: "), value.get(), place)
            };
            Json::fields(json).map(|fields| fields.into_iter().map(member).collect::<Vec<_>>())
        } else if json.starts_with('[') {
            let items = serde_json::from_str::<Vec<&'a RawValue>>(json).ok();
            let member = |(at, value): (usize, &'a RawValue)| (String::new(), value.get(), format!("{place}[{at}]"));
            items.map(|items| items.into_iter().enumerate().map(member).collect())
        } else {
            None
        };
        // A text, a number, or what is no JSON.
        let Some(members) = read else { return self.push(depth, &format!("{before}{json}{after}"), place) };
        let (open, close) = if json.starts_with('{') { ('{', '}') } else { ('[', ']') };
        if members.is_empty() {
            return self.push(depth, &format!("{before}{open}{close}{after}"), place);
        }
        self.push(depth, &format!("{before}{open}"), place);
        let last = members.len() - 1;
        for (at, (key, value, place)) in members.into_iter().enumerate() {
            self.value(value, depth + 1, &key, place, if at < last { "," } else { "" });
        }
        self.push(depth, &format!("{close}{after}"), String::new());
    }
}

/// Whether the end of a line is a long text in base64.
fn is_encoded(line: &str) -> bool {
    let text = line.trim_end_matches(',').strip_suffix('"').and_then(|line| line.rsplit_once('"'));
    text.map(|(_, text)| text.rsplit_once("base64,").map_or(text, |(_, data)| data)).is_some_and(|text| {
        text.len() > 2 * ENCODED && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_its_place() {
        let lines = JsonLines::of(r#"{"b":[1.0,{"a":"x\",{"}],"a":[]}"#);
        let shown: Vec<_> =
            lines.lines.iter().map(|line| (line.depth, line.text.text.as_str(), line.place.as_str())).collect();
        let wanted = [
            (0, "{", ""),
            (1, "\"b\": [", "b"),
            (2, "1.0,", "b[0]"),
            (2, "{", "b[1]"),
            (3, "\"a\": \"x\\\",{\"", "b[1].a"),
            (2, "}", ""),
            (1, "],", ""),
            (1, "\"a\": []", "a"),
            (0, "}", ""),
        ];
        assert_eq!(shown, wanted);
        assert_eq!(JsonLines::of("not json").lines.len(), 1);
        let data = format!(r#"{{"url":"data:image/png;base64,{0}","text":"{0} {0}"}}"#, "iVBO".repeat(100));
        let rests: Vec<_> = JsonLines::of(&data).lines.iter().map(|line| line.text.rest > 0).collect();
        assert_eq!(rests, [false, true, false, false]);
        // However deep, it is shown.
        let deep = JsonLines::of(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
        assert!(deep.lines.len() > 200 && deep.lines.iter().all(|line| line.depth <= DEPTH));
    }
}
