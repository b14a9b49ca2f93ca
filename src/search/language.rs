//! What is left of a word without its ending: `drinks` and `drinking` are found by `drink`.
//!
//! A stem is a function of the word alone, the same in the index and in a query. So a word of whatever language finds at least
//! itself; a wrong language only makes less of what could be found, or more.

use std::borrow::Cow;
use std::str::FromStr;

use frostem::{Algorithm, Stemmer};

use crate::error::{Error, Result};

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
    use super::*;

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
