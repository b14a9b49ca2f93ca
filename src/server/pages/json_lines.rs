//! A request as lines, each value with its place: what is reported about a place is shown there.

use std::collections::HashMap;

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
    /// Whether the text is cut because it is base64, which nobody reads.
    pub(super) is_encoded: bool,
    /// The place of the value that begins here, as in `messages[4].content[0]`.
    pub(super) place: String,
    pub(super) notes: Vec<Note>,
    /// What became of the value that the line belongs to.
    pub(super) change: Option<Change>,
    /// What became of the value that begins here.
    pub(super) marks: Vec<Mark>,
    /// What was left out after the value that ends here.
    pub(super) gone: Vec<Mark>,
}

/// What became of a value on its way from what is stored to what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Removed,
    Altered,
    Moved,
}

impl Change {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Altered => "altered",
            Self::Moved => "moved",
        }
    }
}

/// A change, and the note that says more.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) change: Change,
    pub(super) number: usize,
    /// Of what was left out, the beginning.
    pub(super) gone: Option<Cut>,
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

    /// Puts marks at their places, or at the values around them. What was left out is put after the value at its place, at the
    /// beginning if it has none.
    pub(super) fn mark(&mut self, marks: Vec<(String, Mark)>) {
        let places = self.lines.iter().enumerate().filter(|(_, line)| !line.place.is_empty());
        let places: HashMap<String, usize> = places.map(|(at, line)| (line.place.clone(), at)).collect();
        for (mut place, mark) in marks {
            let mut begin = places.get(&place).copied();
            while let (None, Some(end)) = (begin, place.rfind(['.', '['])) {
                place.truncate(end);
                begin = places.get(&place).copied();
            }
            let begin = match begin {
                Some(begin) => begin,
                None if mark.change == Change::Removed => 0,
                None => continue,
            };
            let end = if place.is_empty() { begin } else { self.end(begin) };
            if mark.change == Change::Removed {
                if let Some(line) = self.lines.get_mut(end) {
                    line.gone.push(mark);
                }
                continue;
            }
            for line in self.lines.get_mut(begin..=end).unwrap_or_default() {
                line.change.get_or_insert(mark.change);
            }
            if let Some(line) = self.lines.get_mut(begin) {
                line.marks.push(mark);
            }
        }
    }

    /// The last line of the value that begins at a line.
    fn end(&self, begin: usize) -> usize {
        let depth = self.lines.get(begin).map_or(0, |line| line.depth);
        let within = self.lines.iter().skip(begin + 1).take_while(|line| line.depth > depth).count();
        let closes =
            self.lines.get(begin + within + 1).is_some_and(|line| line.place.is_empty() && line.depth == depth);
        if within > 0 && closes { begin + within + 1 } else { begin + within }
    }

    /// The numbers of the notes that marks lead to.
    pub(super) fn marked(&self) -> impl Iterator<Item = usize> {
        self.lines.iter().flat_map(|line| line.marks.iter().chain(&line.gone)).map(|mark| mark.number)
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
        let is_encoded = is_encoded(text);
        let text = Cut::new(text, if is_encoded { ENCODED } else { VALUE });
        let (depth, notes, marks, gone) = (depth.min(DEPTH), Vec::new(), Vec::new(), Vec::new());
        self.lines.push(Line { depth, text, is_encoded, place, notes, change: None, marks, gone });
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
        let encoded = JsonLines::of(&data).lines.into_iter().map(|line| line.is_encoded);
        assert_eq!(encoded.collect::<Vec<_>>(), [false, true, false, false]);
        // However deep, it is shown.
        let deep = JsonLines::of(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
        assert!(deep.lines.len() > 200 && deep.lines.iter().all(|line| line.depth <= DEPTH));
    }

    #[test]
    fn a_mark_is_on_the_whole_value_and_what_is_gone_comes_after_it() {
        let mut lines = JsonLines::of(r#"{"a":[{"b":1},2],"c":3}"#);
        let mark = |place: &str, change, number| (place.to_owned(), Mark { change, number, gone: None });
        lines.mark(vec![
            mark("a[0]", Change::Altered, 1),
            mark("a[0].b", Change::Removed, 2),
            mark("a", Change::Removed, 3),
            // What is in no line belongs to what is around it.
            mark("c.d[1]", Change::Added, 4),
            mark("", Change::Removed, 5),
            mark("x", Change::Added, 6),
        ]);
        let numbers = |marks: &[Mark]| marks.iter().map(|mark| mark.number).collect::<Vec<_>>();
        let shown: Vec<_> = lines
            .lines
            .iter()
            .map(|line| (line.text.text.trim(), line.change.is_some(), numbers(&line.marks), numbers(&line.gone)))
            .collect();
        let wanted = [
            ("{", false, vec![], vec![5]),
            ("\"a\": [", false, vec![], vec![]),
            ("{", true, vec![1], vec![]),
            ("\"b\": 1", true, vec![], vec![2]),
            ("},", true, vec![], vec![]),
            ("2", false, vec![], vec![]),
            ("],", false, vec![], vec![3]),
            ("\"c\": 3", true, vec![4], vec![]),
            ("}", false, vec![], vec![]),
        ];
        assert_eq!(shown, wanted);
        assert_eq!(lines.marked().collect::<Vec<_>>(), [5, 1, 2, 3, 4]);
    }
}
