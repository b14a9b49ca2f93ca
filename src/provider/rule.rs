//! When a request is refused: one rule, and the tables of them.

use super::finding::{Finding, Level};

/// A condition that a request must meet, what it costs to break it, and who says so.
///
/// Sources: `gh:owner/repo#n` is an issue or pull request on GitHub, `sdk:x` the types of the official package
/// (openai 2.54.0, anthropic 2.11.0, google-genai 3.4.0, mistralai 3.7.0, botocore 1.44.5), `read:` a public text, other
/// names are vendors' pages. *From memory* and *thin* mean that no source shows it plainly.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rule {
    /// For example `OC-07`; never given to another rule.
    pub id: &'static str,
    /// What breaking it leads to, as a rule.
    pub level: Level,
    /// The condition.
    pub text: &'static str,
    /// What to do about a request that breaks it.
    pub cure: &'static str,
    /// Where the provider, or a report, says so.
    pub source: &'static str,
}

impl Rule {
    /// This rule, broken at a place.
    pub(crate) fn at(&self, place: impl Into<String>, problem: impl Into<String>) -> Finding {
        Finding { rule: self.id, level: self.level, place: place.into(), problem: problem.into(), cure: self.cure }
    }
}

/// Declares the rules of a wire or dialect: a constant for each, and the table `RULES` of them all, which shows them in
/// its documentation.
macro_rules! rules {
    ($(#[$about:meta])* $($name:ident $id:literal $level:ident $text:literal $cure:literal $source:literal)*) => {
        $(pub(in crate::provider) static $name: $crate::provider::Rule = $crate::provider::Rule {
            id: $id,
            level: $crate::provider::Level::$level,
            text: $text,
            cure: $cure,
            source: $source,
        };)*

        $(#[$about])*
        ///
        /// | id | level | rule | cure | source |
        /// |---|---|---|---|---|
        $(#[doc = concat!("| ", $id, " | ", stringify!($level), " | ", $text, " | ", $cure, " | ", $source, " |")])*
        pub static RULES: &[&$crate::provider::Rule] = &[$(&$name),*];
    };
}
pub(super) use rules;
