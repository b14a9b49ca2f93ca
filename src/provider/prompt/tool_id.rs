//! Tool ids and names as a target takes them: deterministic, unique, and decided by what came before only.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use uuid::Uuid;

/// The namespace of the digests in ids and names. A change would change prompts that were sent before.
const DIGESTS: Uuid = Uuid::from_u128(0x51d0_9b6c_7d8a_5b46_a6f0_93c2_5e1b_4f88);

/// What a target takes as a tool call's id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdRule {
    /// Characters at least.
    pub(crate) min: usize,
    /// Characters at most; all made ids fit.
    pub(crate) max: usize,
    /// Whether a character may stand in it.
    pub(crate) allows: fn(char) -> bool,
}

/// What a target takes as a tool's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameRule {
    /// Characters at most.
    pub(crate) max: usize,
    /// What may stand in it beside ASCII letters and digits.
    pub(crate) marks: &'static [char],
    /// Whether it may begin with anything that may stand in it; else with a letter or `_`.
    pub(crate) begins_freely: bool,
}

/// The ids of one prompt.
#[derive(Debug)]
pub(crate) struct Ids {
    used: HashSet<String>,
    /// How many ids were made of one: the next is made without a look at those.
    attempts: HashMap<String, u32>,
}

impl Ids {
    pub(crate) fn new() -> Self {
        Self { used: HashSet::new(), attempts: HashMap::new() }
    }

    /// The id of the next call: its own if the target takes it and no call before had it, else one made from it.
    pub(crate) fn next(&mut self, own: &str, rule: IdRule) -> String {
        let lengths = rule.min..=rule.max;
        let fits = lengths.contains(&own.chars().count()) && own.chars().all(rule.allows);
        let mut id = if fits { own.to_owned() } else { rule.made(own, 0) };
        if self.used.insert(id.clone()) {
            return id;
        }
        let mut attempt = self.attempts.get(own).copied().unwrap_or_default();
        while !self.used.insert(id.clone()) {
            attempt += 1;
            id = rule.made(own, attempt);
        }
        self.attempts.insert(own.to_owned(), attempt);
        id
    }
}

impl IdRule {
    /// The same, for ids of any length.
    pub(crate) const fn long(self) -> Self {
        Self { max: usize::MAX, ..self }
    }

    /// `call_` and hexadecimal digits, or the digits alone where there is no room.
    fn made(self, own: &str, attempt: u32) -> String {
        const DIGITS: usize = 24;
        let digest = Uuid::new_v5(&DIGESTS, format!("{attempt}:{own}").as_bytes()).simple().to_string();
        let id = format!("call_{}", digest.get(..DIGITS).unwrap_or(&digest));
        if id.len() <= self.max && id.chars().all(self.allows) {
            return id;
        }
        digest.get(..self.max.min(digest.len())).unwrap_or(&digest).to_owned()
    }
}

impl NameRule {
    /// Letters, digits, `_` and `-`.
    pub(crate) const fn words(max: usize) -> Self {
        Self { max, marks: &['_', '-'], begins_freely: true }
    }

    /// The name as it is, or, where the target does not take it, what is left of it and a digest that keeps it apart from
    /// others.
    pub(crate) fn fit<'a>(&self, name: &'a str) -> Cow<'a, str> {
        let allows = |character: char| character.is_ascii_alphanumeric() || self.marks.contains(&character);
        let begins = |character: char| self.begins_freely || character.is_ascii_alphabetic() || character == '_';
        if name.starts_with(begins) && name.len() <= self.max && name.chars().all(allows) {
            return Cow::Borrowed(name);
        }
        const DIGITS: usize = 8;
        let digest = Uuid::new_v5(&DIGESTS, name.as_bytes()).simple().to_string();
        let kept = name.chars().map(|character| if allows(character) { character } else { '_' });
        let lead = if name.is_empty() { "tool" } else { "_" };
        let lead = if name.is_empty() || !kept.clone().next().is_some_and(begins) { lead } else { "" };
        let kept: String = lead.chars().chain(kept).take(self.max - DIGITS - 1).collect();
        Cow::Owned(format!("{kept}_{}", digest.get(..DIGITS).unwrap_or(&digest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: IdRule = IdRule { min: 1, max: 40, allows: |character| !character.is_control() };

    #[test]
    fn an_id_that_fits_stays_and_no_id_comes_twice() {
        let mut ids = Ids::new();
        let given: Vec<String> =
            ["a", "a", "", "", "functions.bash:0", &"x".repeat(41)].iter().map(|id| ids.next(id, RULE)).collect();
        assert_eq!(given[0], "a");
        assert_eq!(given[4], "functions.bash:0");
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len());
        assert!(given.iter().all(|id| !id.is_empty() && id.len() <= 40));
        let mut again = Ids::new();
        assert_eq!(again.next("a", RULE), given[0]);
        assert_eq!(again.next("a", RULE), given[1]);
    }

    #[test]
    fn ids_are_made_as_if_each_was_looked_for_anew() {
        let rules = [RULE, IdRule { min: 2, max: 2, allows: |character| character.is_ascii_hexdigit() }];
        for rule in rules {
            let (mut ids, mut used) = (Ids::new(), HashSet::new());
            for own in (0..60).map(|at| ["a", "b", "", "ab", "a"][at % 5]) {
                let fits = own.len() >= rule.min;
                let mut tries =
                    (0..).map(|attempt| if attempt == 0 && fits { own.to_owned() } else { rule.made(own, attempt) });
                let wanted = tries.find(|id| !used.contains(id)).unwrap();
                drop(tries);
                assert_eq!(ids.next(own, rule), wanted);
                used.insert(wanted);
            }
        }
    }

    #[test]
    fn nine_characters_are_enough_for_ids() {
        let rule = IdRule { min: 9, max: 9, allows: |character| character.is_ascii_alphanumeric() };
        let mut ids = Ids::new();
        assert_eq!(ids.next("abcDEF123", rule), "abcDEF123");
        assert_ne!(ids.next("short", rule), "short");
        let given: HashSet<String> = (0..100).map(|_| ids.next("toolu_1", rule)).collect();
        assert_eq!(given.len(), 100);
        assert!(given.iter().all(|id| id.len() == 9));
    }

    #[test]
    fn names_fit_and_stay_apart() {
        let rule = NameRule::words(64);
        assert_eq!(rule.fit("read_file"), "read_file");
        for name in ["browser.tabs.open", "", "ä", &"x".repeat(65)] {
            let fitted = rule.fit(name);
            assert!((1..=64).contains(&fitted.len()), "{fitted}");
            assert!(fitted.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)), "{fitted}");
        }
        assert_eq!(rule.fit("9lives"), "9lives");
        assert_ne!(rule.fit("a.b"), rule.fit("a:b"));
        assert_ne!(rule.fit(&"x".repeat(65)), rule.fit(&"x".repeat(66)));
    }

    #[test]
    fn names_begin_as_they_must() {
        let rule = NameRule { max: 64, marks: &['_', '.', ':', '-'], begins_freely: false };
        for name in ["browser.tabs:open", "_x", "a-b"] {
            assert_eq!(rule.fit(name), name);
        }
        for name in ["9lives", "-x", ".x", "ä", "", &"9".repeat(80)] {
            let fitted = rule.fit(name);
            assert!(fitted.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'), "{fitted}");
            assert!(fitted.len() <= 64, "{fitted}");
        }
    }
}
