//! The letters and the length that names and ids may have, how fields are spelled, what says nothing.

use std::borrow::Cow;

/// 1 to `most` of `a-z A-Z 0-9 _ -`.
pub(crate) fn is_word(text: &str, most: usize) -> bool {
    is_word_with(text, most, b"_-")
}

/// 1 to `most` ASCII letters, digits and `others`.
pub(crate) fn is_word_with(text: &str, most: usize, others: &[u8]) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
}

/// Is `name` this camelCase name, or the same in snake_case?
pub(crate) fn is_spelling_of(camel: &str, name: &str) -> bool {
    name == camel || name == snake_case(camel)
}

/// `inline_data` for `inlineData`.
pub(crate) fn snake_case(camel: &str) -> Cow<'_, str> {
    if !camel.contains(|letter: char| letter.is_ascii_uppercase()) {
        return Cow::Borrowed(camel);
    }
    let mut snake = String::with_capacity(camel.len() + 4);
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    Cow::Owned(snake)
}

/// Is nothing but white space there: Unicode's, or the four separators of ASCII, which many languages count with it?
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|character| character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_from_other_text() {
        for text in ["a", "_", "Az09_-"] {
            assert!(is_word(text, 6), "{text}");
        }
        for text in ["", "a.b", "a b", "é", "a\n", "1234567"] {
            assert!(!is_word(text, 6), "{text}");
        }
        assert!(is_word_with("a.b:c", 5, b".:"));
        assert!(!is_word_with("a_b", 5, b""));
    }

    #[test]
    fn names_have_two_spellings() {
        for name in ["thoughtSignature", "thought_signature"] {
            assert!(is_spelling_of("thoughtSignature", name), "{name}");
        }
        for name in ["thoughtsignature", "ThoughtSignature", "thought"] {
            assert!(!is_spelling_of("thoughtSignature", name), "{name}");
        }
        assert!(matches!(snake_case("role_of_x"), Cow::Borrowed("role_of_x")));
    }

    #[test]
    fn white_space_is_told_from_text() {
        for text in ["", " ", "\n\t", "\u{a0}", "\u{1c}\u{1f}", "\u{2003}"] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["a", " . ", "\u{feff}", "\u{0}"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }
}
