//! What was said, as HTML: text that no browser obeys.

use std::fmt::{self, Write};

/// The text as HTML text, or as the value of an attribute in quotes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Writing to a String does not fail.
    let _ = write_escaped(&mut out, text);
    out
}

/// Writes the text as HTML text. Controls, and marks that reverse the direction of what follows, become visible.
pub(crate) fn write_escaped(mut out: impl Write, text: &str) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(is_special) {
        let (plain, special) = rest.split_at(at);
        out.write_str(plain)?;
        let mut characters = special.chars();
        match characters.next() {
            Some('&') => out.write_str("&amp;")?,
            Some('<') => out.write_str("&lt;")?,
            Some('>') => out.write_str("&gt;")?,
            Some('"') => out.write_str("&quot;")?,
            Some('\'') => out.write_str("&#39;")?,
            Some(command) => write!(out, "{}", command.escape_unicode())?,
            None => {}
        }
        rest = characters.as_str();
    }
    out.write_str(rest)
}

fn is_special(character: char) -> bool {
    matches!(character, '&' | '<' | '>' | '"' | '\'')
        || (character.is_control() && !matches!(character, '\n' | '\r' | '\t'))
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether this is a picture's data, of a kind that cannot hold a script.
pub(crate) fn is_picture(url: &str) -> bool {
    ["png", "jpeg", "gif", "webp"].iter().any(|kind| url.starts_with(&format!("data:image/{kind};base64,")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_a_text() {
        assert_eq!(escape("<a href='x'>&\"\n\té"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\n\té");
        assert_eq!(escape("a\u{202e}b\u{1b}[0m\0"), "a\\u{202e}b\\u{1b}[0m\\u{0}");
        assert!(is_picture("data:image/png;base64,AAAA") && !is_picture("data:image/svg+xml;base64,AAAA"));
    }
}
