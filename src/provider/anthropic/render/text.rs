//! White space as the provider sees it.

/// Whether nothing but white space is there (AN-07, AN-08).
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(is_space)
}

/// The text without white space at its end (AN-09).
pub(super) fn without_end(text: &str) -> &str {
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
