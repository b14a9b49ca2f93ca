//! When a request is refused: one rule, and the tables of them.

use super::finding::{Finding, Level};
use super::shape::Misfit;

/// A condition that a request must meet, what it costs to break it, and who says so.
///
/// Sources: `gh:owner/repo#n` is an issue or pull request on GitHub, `sdk:x` the types of the official package
/// (openai 2.54.0, anthropic 2.11.0, google-genai 3.4.0, mistralai 3.7.0, botocore 1.44.5), `read:` a public text, other
/// names are vendors' pages. *From memory* and *thin* mean that no source shows it plainly.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProtocolRule {
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

impl ProtocolRule {
    /// This rule, broken at a place.
    pub(crate) fn at(&self, place: impl Into<String>, problem: impl Into<String>) -> Finding {
        Finding { rule: self.id, level: self.level, place: place.into(), problem: problem.into(), cure: self.cure }
    }

    /// This rule, broken by a field or value that the rules do not know.
    pub(crate) fn unknown(&self, place: impl Into<String>, problem: impl Into<String>) -> Finding {
        self.at(place, problem).with_level(Level::Unknown)
    }

    /// This rule, broken by a value that does not fit its shape.
    pub(crate) fn of(&self, misfit: Misfit) -> Finding {
        self.at(misfit.place, misfit.problem).with_level(misfit.fault.level(self.level))
    }
}

/// Declares the rules of a wire or dialect: a constant for each, and the table `RULES` of them all, which shows them in
/// its documentation.
macro_rules! rules {
    ($(#[$about:meta])* $($name:ident $id:literal $level:ident $text:literal $cure:literal $source:literal)*) => {
        $(pub(crate) static $name: $crate::provider::check::rule::ProtocolRule = $crate::provider::check::rule::ProtocolRule {
            id: $id,
            level: $crate::provider::check::finding::Level::$level,
            text: $text,
            cure: $cure,
            source: $source,
        };)*

        $(#[$about])*
        ///
        /// | id | level | rule | cure | source |
        /// |---|---|---|---|---|
        $(#[doc = concat!("| ", $id, " | ", stringify!($level), " | ", $text, " | ", $cure, " | ", $source, " |")])*
        pub static RULES: &[&$crate::provider::check::rule::ProtocolRule] = &[$(&$name),*];
    };
}
pub(crate) use rules;

/// How a server differs from the wire's inventor in the rules of the wire.
#[derive(Debug)]
pub(crate) struct Overrides {
    /// Rules that do not hold.
    pub(crate) waived: &'static [&'static ProtocolRule],
    /// The rules of the wire, a level, and a rule of the dialect. A finding of these rules at this level also breaks
    /// the rule of the dialect.
    pub(crate) repeated: &'static [(&'static [&'static ProtocolRule], Level, &'static ProtocolRule)],
    /// A rule of the wire, the dialect's rule that replaces it, and the fields on which the wire's rule stays.
    pub(crate) replaced: &'static [(&'static ProtocolRule, &'static ProtocolRule, &'static [&'static str])],
    /// What breaking these rules leads to.
    pub(crate) levels: &'static [(&'static [&'static ProtocolRule], Level)],
    /// The only rules that a request is refused for, where not all are.
    pub(crate) refused: Option<&'static [&'static ProtocolRule]>,
}

impl Overrides {
    pub(crate) const NONE: Self = Self { waived: &[], repeated: &[], replaced: &[], levels: &[], refused: None };

    /// Whether the rule of the wire that a finding breaks does not hold at the server.
    pub(super) fn waives(&self, finding: &Finding) -> bool {
        breaks(finding, self.waived)
    }

    /// The dialect's own rule that a finding of the wire breaks in the place of the wire's.
    pub(super) fn own(&self, finding: &Finding) -> Option<&'static ProtocolRule> {
        let mut replaced = self.replaced.iter().filter(|(of, _, _)| of.id == finding.rule);
        replaced.find(|(_, _, fields)| !fields.contains(&finding.field())).map(|(_, rule, _)| *rule)
    }

    /// Turns the findings of the wire that hold at the server into those of the server.
    pub(super) fn apply(&self, out: &mut Vec<Finding>) {
        for (rules, level, rule) in self.repeated {
            let found = out.iter().filter(|finding| breaks(finding, rules) && finding.level == *level);
            let found: Vec<_> = found.map(|finding| rule.at(&finding.place, &finding.problem)).collect();
            out.extend(found);
        }
        for finding in out.iter_mut() {
            if let Some(rule) = self.own(finding) {
                *finding = rule.at(&finding.place, &finding.problem);
            }
        }
        for (rules, level) in self.levels {
            set_level(*level, rules, out);
        }
        if let Some(rules) = self.refused {
            let others = out.iter_mut().filter(|finding| finding.level.is_refused() && !breaks(finding, rules));
            others.for_each(|finding| finding.level = Level::Soft);
        }
    }
}

/// Gives what breaks these rules another level.
pub(crate) fn set_level(level: Level, rules: &[&ProtocolRule], out: &mut [Finding]) {
    for finding in out.iter_mut().filter(|finding| breaks(finding, rules)) {
        finding.level = level;
    }
}

fn breaks(finding: &Finding, rules: &[&ProtocolRule]) -> bool {
    rules.iter().any(|rule| rule.id == finding.rule)
}
