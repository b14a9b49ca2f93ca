//! Texts as words: runs of letters and digits in lower case. A character of Chinese or Japanese is a word by itself, because
//! nothing separates words there.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::language::Stems;

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

/// The words of a text, in order.
pub(super) fn words(text: &str) -> impl Iterator<Item = Word> {
    let mut characters = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (from, first) = characters.by_ref().find(|(_, character)| character.is_alphanumeric())?;
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

/// The last boundary of characters at or before a byte.
pub(super) fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
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

#[cfg(test)]
mod tests {
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
}
