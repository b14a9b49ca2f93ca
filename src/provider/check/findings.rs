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
        if is_known { None } else { self.overrides.rule(finding) }
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
