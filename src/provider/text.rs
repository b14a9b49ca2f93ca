//! The letters and the length that names and ids may have, how fields are spelled, what says nothing.

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
    name == camel || is_snake_case_of(camel, name)
}

/// Is `name` this camelCase name in snake_case? `inline_data` for `inlineData`.
fn is_snake_case_of(camel: &str, name: &str) -> bool {
    let mut rest = name.bytes();
    let mut goes_on = |letter: u8| rest.next() == Some(letter);
    let all = camel.bytes().all(|letter| match letter {
        b'A'..=b'Z' => goes_on(b'_') && goes_on(letter.to_ascii_lowercase()),
        _ => goes_on(letter),
    });
    all && rest.next().is_none()
}

/// Is nothing but white space there?
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(is_space)
}

/// The text without white space at its end.
pub(crate) fn without_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// Unicode's white space and the four separators of ASCII, which many languages count with it.
fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
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
        assert!(is_spelling_of("role_of_x", "role_of_x") && !is_spelling_of("role_of_x", "roleOfX"));
        assert!(!is_spelling_of("inlineData", "inline_data_") && !is_spelling_of("inlineData", "inline_dat"));
    }

    #[test]
    fn white_space_is_told_from_text() {
        for text in ["", " ", "\n\t", "\u{a0}", "\u{1c}\u{1f}", "\u{2003}"] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["a", " . ", "\u{feff}", "\u{0}"] {
            assert!(!is_blank(text), "{text:?}");
        }
        assert_eq!(without_end("red, \n"), "red,");
    }
}
