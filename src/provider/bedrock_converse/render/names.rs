//! The names of documents: of few characters, and each once in a request (BC-19).

use std::collections::{HashMap, HashSet};

use crate::provider::bedrock_converse::check::message::is_name_character;

/// Characters of a name that are kept; a number may follow them.
const KEPT: usize = 180;
/// The name of what has none.
const NAMELESS: &str = "Document";

/// The names of a request's documents so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    used: HashSet<String>,
    /// How many were made of one.
    counts: HashMap<String, u32>,
}

impl Names {
    /// The name of the next document: its own where it can be.
    pub(crate) fn next(&mut self, own: &str) -> String {
        let fitted = fitted(own);
        if self.take(&fitted) {
            return fitted;
        }
        let mut count = self.counts.get(&fitted).copied().unwrap_or(1);
        loop {
            count += 1;
            let name = format!("{fitted} ({count})");
            if self.take(&name) {
                self.counts.insert(fitted, count);
                return name;
            }
        }
    }

    /// Takes a name as it is. False: another document has it.
    pub(crate) fn take(&mut self, name: &str) -> bool {
        self.used.insert(name.to_owned())
    }
}

fn fitted(own: &str) -> String {
    let spelled: String =
        own.chars().map(|character| if is_name_character(character) { character } else { '-' }).collect();
    let words: Vec<&str> = spelled.split_ascii_whitespace().collect();
    let name: String = words.join(" ").chars().take(KEPT).collect();
    let name = name.trim_end();
    if name.is_empty() { NAMELESS.to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::bedrock_converse::check::message::is_name;

    #[test]
    fn names_fit_and_come_once() {
        let mut names = Names::default();
        let long = "x".repeat(500);
        let given = ["Document 1", "a.pdf", "a-pdf", "", " ", "Document (2)", "é  ü", &long, &long];
        let made: Vec<String> = given.iter().map(|own| names.next(own)).collect();
        assert_eq!(made[..6], ["Document 1", "a-pdf", "a-pdf (2)", "Document", "Document (2)", "Document (2) (2)"]);
        assert!(made.iter().all(|name| is_name(name)), "{made:?}");
        assert_eq!(made.iter().collect::<HashSet<_>>().len(), made.len());
    }
}
