//! The letters and the length that names and ids may have.

/// 1 to `most` of `a-z A-Z 0-9 _ -`.
pub(crate) fn is_word(text: &str, most: usize) -> bool {
    is_word_with(text, most, b"_-")
}

/// 1 to `most` ASCII letters, digits and `others`.
pub(crate) fn is_word_with(text: &str, most: usize, others: &[u8]) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
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
}
