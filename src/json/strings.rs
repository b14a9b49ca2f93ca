//! The strings of a JSON text, which may be broken, or still come in.

/// Follows a text, character by character, and knows which of them stand within strings. A byte of a longer character may be
/// given as a character of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Strings {
    inside: bool,
    escaped: bool,
}

impl Strings {
    /// Takes the next character. Whether it is outside of strings; a quote does not.
    pub(crate) const fn is_outside(&mut self, next: char) -> bool {
        match next {
            _ if self.escaped => {
                self.escaped = false;
                return false;
            }
            '\\' => self.escaped = self.inside,
            '"' => {
                self.inside = !self.inside;
                return false;
            }
            _ => {}
        }
        !self.inside
    }

    /// Whether a string has begun that has not ended.
    pub(crate) const fn has_begun(self) -> bool {
        self.inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_at_a_quote_that_is_not_escaped() {
        let table = [
            (r#"{"a":[1]}"#, "{:[1]}", false),
            (r#""\"[" , "\\"]"#, " , ]", false),
            (r#"\"a\""#, r"\", true),
            (r#"["a\"#, "[", true),
        ];
        for (text, wanted, has_begun) in table {
            let mut strings = Strings::default();
            let outside: String = text.chars().filter(|next| strings.is_outside(*next)).collect();
            assert_eq!((outside.as_str(), strings.has_begun()), (wanted, has_begun), "{text}");
        }
    }
}
