//! How many tokens a text is.
//!
//! Estimated, unless the feature `tokens` counts them with the vocabulary `o200k_base` of OpenAI's models (tiktoken-rs;
//! other providers' vocabularies give other figures, mostly higher by less than a third).

/// The tokens of a text, by the vocabulary `o200k_base`.
///
/// The text is cut into pieces, each of which costs at most one token more than the text in one: the expressions that
/// take a text apart give up on long runs of one kind of character.
#[cfg(feature = "tokens")]
pub(crate) fn tokens(text: &str) -> u64 {
    const PIECE: usize = 4096;
    let vocabulary = tiktoken_rs::o200k_base_singleton();
    let (mut rest, mut tokens) = (text, 0);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at_checked(crate::json::boundary(rest, PIECE)).unwrap_or((rest, ""));
        tokens += vocabulary.encode_ordinary(piece).len() as u64;
        rest = after;
    }
    tokens
}

#[cfg(not(feature = "tokens"))]
pub(crate) use estimate as tokens;

/// The tokens of a text, or some more: up to twice as many in prose and code.
///
/// Words of up to seven letters are one token, longer ones one for each four letters; `camelCase` is two words; digits,
/// signs and capitals in a row are one token for each two; a run of spaces or of line breaks is one, but for the single
/// space before a word or sign. Of other characters two of two bytes are one token, those of three
/// bytes one each, those of four three.
#[cfg(any(test, not(feature = "tokens")))]
pub(crate) fn estimate(text: &str) -> u64 {
    let mut tokens = 0;
    let mut run = Run { kind: Kind::Space, length: 0 };
    for character in text.chars() {
        let kind = Kind::of(character);
        let goes_on = kind == run.kind || (run.kind == Kind::Upper && run.length == 1 && kind == Kind::Lower);
        if goes_on {
            run = Run { kind, length: run.length + 1 };
        } else {
            tokens += run.tokens(Some(kind));
            run = Run { kind, length: 1 };
        }
    }
    tokens + run.tokens(None)
}

#[cfg(any(test, not(feature = "tokens")))]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    Digit,
    Space,
    Break,
    Sign,
    /// Two bytes: Greek, Cyrillic, Hebrew, Arabic, letters with accents.
    Double,
    /// Three bytes: most of what Asia writes.
    Triple,
    /// Four bytes: pictures.
    Quadruple,
}

/// Characters of a kind that stand side by side.
#[cfg(any(test, not(feature = "tokens")))]
struct Run {
    kind: Kind,
    length: u64,
}

#[cfg(any(test, not(feature = "tokens")))]
impl Kind {
    fn of(character: char) -> Self {
        match character {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Digit,
            ' ' => Self::Space,
            _ if character.is_ascii_whitespace() => Self::Break,
            _ if character.is_ascii() => Self::Sign,
            _ => match character.len_utf8() {
                2 => Self::Double,
                3 => Self::Triple,
                _ => Self::Quadruple,
            },
        }
    }
}

#[cfg(any(test, not(feature = "tokens")))]
impl Run {
    fn tokens(&self, next: Option<Kind>) -> u64 {
        match self.kind {
            Kind::Lower if self.length <= 7 => self.length.min(1),
            Kind::Lower => self.length.div_ceil(4),
            Kind::Digit | Kind::Upper | Kind::Sign | Kind::Double => self.length.div_ceil(2),
            Kind::Space if self.length == 1 && next.is_some_and(|next| next != Kind::Digit) => 0,
            Kind::Space | Kind::Break => self.length.div_ceil(16),
            Kind::Triple => self.length,
            Kind::Quadruple => 3 * self.length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_estimated_by_its_words() {
        let table = [
            ("", 0),
            ("Hello, world!", 4),
            ("internationalization", 5),
            ("readFile", 2),
            ("HTTPServer", 4),
            ("in 2026", 4),
            ("a\n\n  b", 4),
            ("12345678", 4),
            ("{\"a\":[]}", 5),
            ("你好", 2),
            ("😀", 3),
        ];
        for (text, wanted) in table {
            assert_eq!(estimate(text), wanted, "{text:?}");
        }
    }

    #[cfg(feature = "tokens")]
    #[test]
    fn the_estimate_is_no_less_than_the_count() {
        let code = include_str!("tokens.rs");
        let prose = include_str!("../../../docs/design.md");
        let json = include_str!("../../../../tests/fixtures/incident.jsonl");
        let table = [
            ("code", code),
            ("prose", prose),
            ("json", json),
            (
                "german",
                "Die Donaudampfschifffahrtsgesellschaft verkauft ihre ältesten Schiffe, größtenteils für Ersatzteile.",
            ),
            ("chinese", "我们昨天在会议上讨论了这个问题，但是没有得出结论。请把文件发给我。"),
            ("russian", "Мы вчера обсуждали этот вопрос на совещании, но так и не пришли к решению."),
            ("emoji", "😀👩‍👩‍👧‍👦🇩🇪✅"),
            (
                "base64",
                "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
            ),
            (
                "hex",
                "1a997b08-09c2-412c-b296-48703c8aaf58 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            ),
            (
                "log",
                "2026-01-02T03:04:05.678Z ERROR [worker-3] src/main.rs:42: connection reset by peer (os error 104)",
            ),
        ];
        let figures = table.map(|(kind, text)| (kind, tokens(text), estimate(text)));
        let wrong = |(_, count, estimate): &&(&str, u64, u64)| estimate < count || *estimate > count * 2;
        assert_eq!(figures.iter().filter(wrong).collect::<Vec<_>>(), Vec::<&(&str, u64, u64)>::new(), "{figures:?}");
    }

    /// The expressions of the vocabulary give up on such texts, and BPE takes its time.
    #[cfg(feature = "tokens")]
    #[test]
    fn long_runs_are_counted() {
        for piece in [" ", "a", "\n", "\u{3000}", "!", "ä", " \n"] {
            assert!(tokens(&piece.repeat(100_000)) > 100, "{piece:?}");
        }
    }
}
