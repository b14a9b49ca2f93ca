//! Texts as words: runs of letters and digits in lower case. A character of Chinese or Japanese is a word by itself, because
//! nothing separates words there.
//!
//! What is left of a word without its ending: `drinks` and `drinking` are found by `drink`.
//!
//! A stem is a function of the word alone, the same in the index and in a query. So a word of whatever language finds at least
//! itself; a wrong language only makes less of what could be found, or more.

use std::borrow::Cow;
use std::str::FromStr;

use frostem::{Algorithm, Stemmer};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use crate::error::{Error, Result};

/// The name under which an index knows this way of splitting, and the name of the way that keeps stems.
pub(super) const NAME: &str = "words";
pub(super) const STEMS: &str = "stems";

/// Bytes of the longest word that is indexed. Longer runs are data, such as base64.
const LONGEST: usize = 200;

/// A word of a text, and its place there in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// What a colour of a terminal begins with: `ESC [ 31 m`.
const ESCAPE: char = '\u{1b}';

/// The words of a text, in order.
pub(super) fn words(text: &str) -> impl Iterator<Item = Word> {
    let mut characters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (from, first) =
                characters.by_ref().find(|(_, character)| character.is_alphanumeric() || *character == ESCAPE)?;
            if first == ESCAPE {
                // A colour of a terminal ends with its first letter.
                if characters.next_if(|(_, next)| *next == '[').is_some() {
                    while characters.next_if(|(_, next)| next.is_ascii_digit() || *next == ';').is_some() {}
                    characters.next_if(|(_, next)| next.is_ascii_alphabetic());
                }
                continue;
            }
            let mut to = from + first.len_utf8();
            if !is_a_word(first) {
                while let Some((at, next)) = characters.next_if(|(_, next)| next.is_alphanumeric() && !is_a_word(*next))
                {
                    to = at + next.len_utf8();
                }
            }
            if to - from <= LONGEST {
                let text = text.get(from..to).unwrap_or_default().to_lowercase();
                return Some(Word { text, from, to });
            }
        }
    })
}

/// Whether a character is a word by itself: Hiragana, Katakana, and Chinese characters.
const fn is_a_word(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// The same for an index: words as they are, or their stems.
#[derive(Clone, Debug)]
pub(super) struct Words(pub(super) Option<Stems>);

pub(super) struct Stream {
    words: std::vec::IntoIter<Word>,
    token: Token,
}

impl Tokenizer for Words {
    type TokenStream<'a> = Stream;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream {
        let mut words: Vec<Word> = words(text).collect();
        if let Some(stems) = &self.0 {
            words.iter_mut().for_each(|word| word.text = stems.of(&word.text).into_owned());
        }
        Stream { words: words.into_iter(), token: Token::default() }
    }
}

impl TokenStream for Stream {
    fn advance(&mut self) -> bool {
        let Some(Word { text, from, to }) = self.words.next() else { return false };
        let position = self.token.position.wrapping_add(1);
        self.token = Token { offset_from: from, offset_to: to, position, text, position_length: 1 };
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

/// The language of words in Latin letters: their endings are cut off as it does. Words in other letters have the language of
/// these: Arabic, Greek, Hindi, Russian, Tamil.
///
/// ```
/// use conversation_store::search::Language;
///
/// assert_eq!("de".parse::<Language>()?.name(), "german");
/// assert_eq!(Language::default().name(), "english");
/// # Ok::<(), conversation_store::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language(Algorithm);

/// Languages that are written in Latin letters.
const LATIN: &[Algorithm] = &[
    Algorithm::Catalan,
    Algorithm::Czech,
    Algorithm::Danish,
    Algorithm::Dutch,
    Algorithm::English,
    Algorithm::Finnish,
    Algorithm::French,
    Algorithm::German,
    Algorithm::Hungarian,
    Algorithm::Indonesian,
    Algorithm::Italian,
    Algorithm::Norwegian,
    Algorithm::Polish,
    Algorithm::Portuguese,
    Algorithm::Romanian,
    Algorithm::Spanish,
    Algorithm::Swedish,
    Algorithm::Turkish,
];

impl Language {
    /// All languages.
    pub fn all() -> impl Iterator<Item = Self> {
        LATIN.iter().copied().map(Self)
    }

    /// Its name in English, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}

impl Default for Language {
    /// English.
    fn default() -> Self {
        Self(Algorithm::English)
    }
}

impl FromStr for Language {
    type Err = Error;

    /// By its name, or its code in ISO 639.
    fn from_str(text: &str) -> Result<Self> {
        let known = Algorithm::from_name(text).ok().filter(|algorithm| LATIN.contains(algorithm));
        known.map(Self).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(Self::name).collect();
            Error::InvalidInput(format!("there is no language {text:?}: expected one of {}", names.join(", ")))
        })
    }
}

/// Makes stems of words.
#[derive(Clone, Copy)]
pub(super) struct Stems {
    latin: Stemmer,
}

impl std::fmt::Debug for Stems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stems").field("latin", &self.latin.algorithm()).finish()
    }
}

impl Stems {
    pub(super) fn new(Language(algorithm): Language) -> Self {
        Self { latin: Stemmer::new(algorithm) }
    }

    /// The stem of a word in lower case. What has a digit is a name or a number, and has no ending.
    pub(super) fn of<'a>(&self, word: &'a str) -> Cow<'a, str> {
        if word.contains(char::is_numeric) {
            return Cow::Borrowed(word);
        }
        let of_letters = match word.chars().next().unwrap_or_default() {
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Algorithm::Greek,
            '\u{400}'..='\u{52f}' => Algorithm::Russian,
            '\u{600}'..='\u{6ff}' => Algorithm::Arabic,
            '\u{900}'..='\u{97f}' => Algorithm::Hindi,
            '\u{b80}'..='\u{bff}' => Algorithm::Tamil,
            first if first.is_ascii_alphabetic() || ('\u{c0}'..='\u{24f}').contains(&first) => {
                return self.latin.stem(word);
            }
            _ => return Cow::Borrowed(word),
        };
        Stemmer::new(of_letters).stem(word)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn colours_of_a_terminal_are_no_words() {
        let found: Vec<String> =
            super::words("\u{1b}[1;31merror\u{1b}[0m: m31 \u{1b}x").map(|word| word.text).collect();
        assert_eq!(found, ["error", "m31", "x"]);
    }

    use super::*;

    #[test]
    fn texts_are_split_into_words() {
        let long = "x".repeat(LONGEST + 1);
        for (text, wanted) in [
            ("Why does it fail?", &["why", "does", "it", "fail"][..]),
            ("snake_case, ÄRGER-1.5", &["snake", "case", "ärger", "1", "5"]),
            ("東京tower です", &["東", "京", "tower", "で", "す"]),
            ("한국어 텍스트", &["한국어", "텍스트"]),
            ("… !", &[]),
            (&format!("a {long} b"), &["a", "b"]),
        ] {
            let found: Vec<String> = words(text).map(|word| word.text).collect();
            assert_eq!(found, wanted, "{text}");
            assert!(
                words(text)
                    .all(|word| text.get(word.from..word.to).map(str::to_lowercase).as_ref() == Some(&word.text))
            );
        }
    }

    #[test]
    fn each_kind_of_letters_has_its_endings() {
        let stems = Stems::new(Language::default());
        for (words, stem) in [
            (&["drink", "drinks", "drinking"][..], "drink"),
            (&["книга", "книги"], "книг"),
            (&["καλημέρα"], "καλημερ"),
            (&["東", "한국어", "utf8", "x86"], ""),
        ] {
            for word in words {
                let wanted = if stem.is_empty() { word } else { stem };
                assert_eq!(stems.of(word), wanted, "{word}");
            }
        }
        let german = Stems::new("de".parse().unwrap_or_default());
        assert_eq!((german.of("häuser"), german.of("häusern")), ("haus".into(), "haus".into()));
    }

    #[test]
    fn languages_are_known_by_name_and_code() {
        for language in Language::all() {
            assert_eq!(language.name().parse::<Language>().ok(), Some(language));
        }
        assert_eq!("fr".parse::<Language>().map(Language::name).ok(), Some("french"));
        for unknown in ["", "klingon", "russian"] {
            assert!(unknown.parse::<Language>().is_err(), "{unknown}");
        }
    }
}
