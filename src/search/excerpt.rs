//! The text around what was found, on one line, with what was found marked in it.

use std::ops::Range;

use serde::Serialize;

use super::query::Phrase;
use super::words::{Stems, Word, words};
use crate::json::boundary;

/// Bytes of an excerpt on each side of the first word that was found.
const AROUND: usize = 80;

/// A piece of an excerpt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema), schemars(rename = "ExcerptPiece"))]
#[non_exhaustive]
pub struct Piece {
    /// Its text.
    pub text: String,
    /// Whether it was searched for.
    #[serde(rename = "match", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_match: bool,
}

/// The text around the first words that were found, in pieces; none if a phrase is not there.
pub(super) fn excerpt(text: &str, phrases: &[Phrase], stems: &Stems) -> Option<Vec<Piece>> {
    let found: Vec<Word> = words(text).collect();
    let needs_stems = phrases.iter().any(|phrase| !phrase.is_exact);
    let stemmed: Vec<_> = found.iter().filter(|_| needs_stems).map(|word| stems.of(&word.text)).collect();
    let mut places: Vec<Range<usize>> = Vec::new();
    for phrase in phrases {
        let fits = |at: &usize| {
            phrase.words.iter().zip(*at..).all(|(wanted, at)| match phrase.is_exact {
                true => found.get(at).is_some_and(|word| word.text == *wanted),
                false => stemmed.get(at).is_some_and(|stem| *stem == stems.of(wanted)),
            })
        };
        let before = places.len();
        let starts = (0..found.len()).filter(fits);
        places.extend(starts.filter_map(|at| Some(found.get(at)?.from..found.get(at + phrase.words.len() - 1)?.to)));
        if places.len() == before {
            return None;
        }
    }
    places.sort_by_key(|place| place.start);
    let first = places.first()?.clone();
    let (from, to) =
        (boundary(text, first.start.saturating_sub(AROUND)), boundary(text, first.end.saturating_add(AROUND)));
    let mut pieces = Pieces { text, pieces: Vec::new() };
    if from > 0 {
        pieces.push("…", false);
    }
    let mut at = from;
    for place in places.iter().filter(|place| place.end <= to) {
        // Phrases may overlap.
        if place.end > at {
            pieces.add(at..place.start.max(at), false);
            pieces.add(place.start.max(at)..place.end, true);
            at = place.end;
        }
    }
    pieces.add(at..to, false);
    if to < text.len() {
        pieces.push("…", false);
    }
    Some(pieces.trimmed())
}

struct Pieces<'a> {
    text: &'a str,
    pieces: Vec<Piece>,
}

impl Pieces<'_> {
    fn add(&mut self, range: Range<usize>, is_match: bool) {
        let text = self.text.get(range).unwrap_or_default();
        let mut line = String::with_capacity(text.len());
        for character in text.chars() {
            match character.is_whitespace() {
                true if self.ends_blank(&line) => {}
                true => line.push(' '),
                false => line.push(character),
            }
        }
        self.push(&line, is_match);
    }

    /// Whether what was written so far ends with a blank, or nothing was written.
    fn ends_blank(&self, line: &str) -> bool {
        let last = if line.is_empty() { self.pieces.last().map_or("", |piece| &piece.text) } else { line };
        last.is_empty() || last.ends_with([' ', '…'])
    }

    fn push(&mut self, text: &str, is_match: bool) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.is_match == is_match => last.text.push_str(text),
            _ => self.pieces.push(Piece { text: text.to_owned(), is_match }),
        }
    }

    fn trimmed(mut self) -> Vec<Piece> {
        if let Some(last) = self.pieces.last_mut() {
            let end = last.text.trim_end_matches('…').trim_end();
            let is_cut = last.text.ends_with('…');
            last.text = format!("{end}{}", if is_cut { "…" } else { "" });
        }
        self.pieces.retain(|piece| !piece.text.is_empty());
        self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::super::query::SearchQuery;
    use super::super::words::Language;
    use super::*;

    /// With brackets around what is marked.
    fn marked(text: &str, query: &str) -> Option<String> {
        let phrases = SearchQuery::new(query).phrases().unwrap_or_default();
        let pieces = excerpt(text, &phrases, &Stems::new(Language::default()))?;
        Some(
            pieces
                .iter()
                .map(|Piece { text, is_match }| if *is_match { format!("[{text}]") } else { text.clone() })
                .collect(),
        )
    }

    #[test]
    fn an_excerpt_is_around_the_first_word() {
        let text = format!("{}Why does\nthe  BUILD fail?{}", "é ".repeat(50), " x".repeat(90));
        let found = marked(&text, "build").unwrap_or_default();
        assert!(
            found.starts_with('…') && found.ends_with("x…") && found.contains("é Why does the [BUILD] fail? x x"),
            "{found}"
        );
        for (query, wanted) in [
            ("\"b c\" a", Some("[a] [b c] d [b c]")),
            ("a b", Some("[a] [b] c d [b] c")),
            ("\"b c\" c", Some("a [b c] d [b c]")),
            ("\"a c\"", None),
            ("e", None),
        ] {
            assert_eq!(marked(" a b c\td b c ", query).as_deref(), wanted, "{query}");
        }
    }

    #[test]
    fn endings_are_marked_with_the_word_and_quotes_mean_the_very_word() {
        assert_eq!(
            marked("She drinks, he was drinking a drink", "drink").as_deref(),
            Some("She [drinks], he was [drinking] a [drink]")
        );
        assert_eq!(marked("She drinks", "\"drink\""), None);
        assert_eq!(marked("snake_cases", "snake_case").as_deref(), Some("[snake_cases]"));
    }
}
