//! The names of documents.

/// Characters of a document's name.
pub(crate) const NAME: usize = 200;

/// 1 to 200 ASCII letters, digits, hyphens, parentheses, brackets, and white space of which no two stand in a row.
pub(crate) fn is_name(name: &str) -> bool {
    let mut spaced = false;
    let allows = |character: char| {
        let space = character.is_ascii_whitespace();
        let fits = is_name_character(character) && !(space && spaced);
        spaced = space;
        fits
    };
    (1..=NAME).contains(&name.len()) && name.chars().all(allows)
}

pub(crate) fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character.is_ascii_whitespace() || "-()[]".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_few_characters() {
        for name in ["Document 1", "a-b (2) [x]", &"x".repeat(NAME)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a.pdf", "a  b", "a_b", "é", &"x".repeat(NAME + 1)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
