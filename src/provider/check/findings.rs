//! Findings as they are made: a bounded number, however large the request is.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use super::finding::{Finding, Level};
use super::rule::{Overrides, ProtocolRule};

/// How many findings of one rule, at one level, are kept: somebody who looks at them cures the first ones.
const MOST: usize = 1_000;

/// Findings as they are made. A request of a few bytes a message may break a rule in millions of places: of one rule, at one
/// level, the first thousand are kept, and the last of those says how many there are more.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    kept: Vec<Finding>,
    /// By rule and level: how many there are, and which of those that are kept is the last.
    counts: HashMap<(&'static str, Level), (usize, usize)>,
    /// How the server that judges takes the rules of the wire: what does not hold there is not counted.
    dialect: Option<DialectRules>,
}

/// How a server takes the rules of its wire.
#[derive(Debug)]
pub(crate) struct DialectRules {
    pub(crate) overrides: &'static Overrides,
    /// The rule of the wire about fields of a request, and the fields that the server has beside the wire's.
    pub(crate) parameters: (&'static ProtocolRule, &'static [&'static str]),
}

impl DialectRules {
    /// The rule that a finding of the wire breaks at the server; none if it does not hold there.
    fn rule(&self, finding: &Finding) -> Option<&'static str> {
        let (rule, fields) = self.parameters;
        let is_known = finding.rule == rule.id && fields.contains(&finding.place.as_str());
        let holds = !is_known && !self.overrides.waives(finding);
        holds.then(|| self.overrides.own(finding).map_or(finding.rule, |own| own.id))
    }
}

impl Findings {
    /// Those of the wire's rules, as a server takes them.
    pub(super) fn of(dialect: Option<DialectRules>) -> Self {
        Self { dialect, ..Self::default() }
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        let rule = self.dialect.as_ref().map_or(Some(finding.rule), |dialect| dialect.rule(&finding));
        let Some(rule) = rule else { return };
        let (count, last) = self.counts.entry((rule, finding.level)).or_default();
        *count += 1;
        if *count <= MOST {
            *last = self.kept.len();
            self.kept.push(finding);
        }
    }

    /// Makes them those of the server; what is added from now on breaks its own rules.
    pub(super) fn take_over(&mut self) {
        if let Some(dialect) = self.dialect.take() {
            dialect.overrides.apply(&mut self.kept);
        }
    }

    /// In the order in which they were made.
    pub(crate) fn into_kept(mut self) -> Vec<Finding> {
        for (count, last) in self.counts.into_values().filter(|(count, _)| *count > MOST) {
            if let Some(finding) = self.kept.get_mut(last) {
                finding.problem.push_str(&format!("; {} more places break this rule", count - MOST));
            }
        }
        self.kept
    }
}

impl Extend<Finding> for Findings {
    fn extend<T: IntoIterator<Item = Finding>>(&mut self, findings: T) {
        findings.into_iter().for_each(|finding| self.push(finding));
    }
}

impl Deref for Findings {
    type Target = [Finding];

    fn deref(&self) -> &[Finding] {
        &self.kept
    }
}

impl DerefMut for Findings {
    fn deref_mut(&mut self) -> &mut [Finding] {
        &mut self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::openai_chat::rules::{OC_01, OC_05, OC_06, OC_12, OC_25};

    static OVERRIDES: Overrides = Overrides {
        waived: &[&OC_05],
        repeated: &[(&[&OC_06], Level::Soft, &OC_12)],
        replaced: &[(&OC_25, &OC_12, &["index"])],
        levels: &[(&[&OC_06], Level::Soft)],
        refused: Some(&[&OC_12]),
    };

    #[test]
    fn a_dialect_takes_the_rules_of_its_wire_otherwise() {
        let rules = DialectRules { overrides: &OVERRIDES, parameters: (&OC_25, &["known"]) };
        let mut found = Findings::of(Some(rules));
        found.extend([
            OC_25.at("known", ""),
            OC_01.at("a", ""),
            OC_05.at("b", ""),
            OC_06.at("c", "").with_level(Level::Soft),
            OC_06.at("d", ""),
            OC_25.at("e.index", ""),
            OC_25.at("e.index.f", ""),
        ]);
        found.take_over();
        let found: Vec<_> = found.iter().map(|found| (found.rule, found.level, found.place.as_str())).collect();
        let wanted = [
            (OC_01.id, Level::Soft, "a"),
            (OC_06.id, Level::Soft, "c"),
            (OC_06.id, Level::Soft, "d"),
            (OC_25.id, Level::Unknown, "e.index"),
            (OC_12.id, Level::Hard, "e.index.f"),
            (OC_12.id, Level::Hard, "c"),
        ];
        assert_eq!(found, wanted);
    }
}
