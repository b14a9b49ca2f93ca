//! Times, numbers and texts, as people read them.

use askama::Template;

use crate::history::ReportLine;
use crate::json;
use crate::log::ListItem;
use crate::model::Timestamp;

/// A moment: exact for programs, and short for people.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub(super) exact: String,
    pub(super) short: String,
}

impl From<Timestamp> for Moment {
    fn from(at: Timestamp) -> Self {
        let exact = at.to_string();
        let short = exact.split(['.', 'Z']).next().unwrap_or(&exact).replace('T', " ");
        Self { exact, short }
    }
}

/// A text, and how many bytes of it are not shown.
#[derive(Clone, Debug, Template)]
#[template(config = "src/server/pages/askama.toml", path = "cut.html")]
pub(super) struct Cut {
    pub(super) text: String,
    pub(super) rest: usize,
}

impl Cut {
    /// The first bytes of a text, up to the end of a character.
    pub(super) fn new(text: &str, most: usize) -> Self {
        let (shown, rest) = text.split_at(json::boundary(text, most));
        Self { text: shown.to_owned(), rest: rest.len() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// A conversation's name for people: its title, else its key, else its id.
pub(super) fn titled(item: &ListItem) -> String {
    let title = item.title.clone().filter(|title| !title.trim().is_empty());
    title.or_else(|| item.key.clone()).unwrap_or_else(|| item.id.to_string())
}

/// A number with commas between the thousands.
pub(super) fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 message`, `2,000 messages`.
pub(super) fn count(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    if number == 1 { format!("1 {what}") } else { format!("{} {what}s", grouped(number)) }
}

/// As [`count`], for templates.
pub(super) fn counted(number: impl std::borrow::Borrow<usize>, what: &str) -> String {
    count(*number.borrow(), what)
}

/// A line of a report, at the place that it is about.
#[derive(Clone, Debug, Template)]
#[template(config = "src/server/pages/askama.toml", path = "note.html")]
pub(super) struct Note {
    pub(super) severity: String,
    pub(super) rule: String,
    /// Where, if it is not clear from where the note is shown.
    pub(super) place: Option<String>,
    pub(super) detail: String,
    pub(super) why: Option<String>,
    pub(super) cure: Option<String>,
    /// Which line of its report it is.
    pub(super) line: Option<usize>,
    /// Which of the notes of its page it is, if they lead from one to the next.
    pub(super) number: Option<Number>,
    /// Whether the request on its page has a mark for it.
    pub(super) is_marked: bool,
}

/// Which of how many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) this: usize,
    pub(super) all: usize,
}

impl Note {
    /// Numbers notes in the order of the page: how many there are.
    pub(super) fn number<'n>(notes: impl Iterator<Item = &'n mut Self>) -> usize {
        let notes: Vec<_> = notes.collect();
        let all = notes.len();
        for (at, note) in notes.into_iter().enumerate() {
            note.number = Some(Number { this: at + 1, all });
        }
        all
    }
}

impl From<&ReportLine> for Note {
    fn from(line: &ReportLine) -> Self {
        let rule = serde_json::to_value(line.rule).ok().and_then(|rule| rule.as_str().map(str::to_owned));
        Self {
            severity: line.severity.as_str().to_owned(),
            rule: rule.unwrap_or_default(),
            place: line.place.clone(),
            detail: line.detail.clone(),
            why: line.why.clone(),
            cure: line.cure.clone(),
            line: None,
            number: None,
            is_marked: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        let cut = Cut::new("héllo", 2);
        assert_eq!((cut.text.as_str(), cut.rest), ("h", 5));
        assert_eq!(Cut::new("abc", 3).rest, 0);
        assert_eq!(
            (grouped(1_234_567_u64), count(1_u64, "byte"), count(2_000_u64, "byte")),
            ("1,234,567".to_owned(), "1 byte".to_owned(), "2,000 bytes".to_owned())
        );
    }
}
