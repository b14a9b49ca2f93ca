//! From the words of a refusal, or the id of a rule, to what the rule says: `refusals` has the words.

mod refusals;

use std::collections::HashMap;

use serde::Serialize;

use super::check::finding::Level;
use super::check::rule::ProtocolRule;
use super::{DIALECTS, WIRES};
use refusals::REFUSALS;

/// A rule that a refused request may have broken.
///
/// Serialized with the keys `rule`, `level`, `target`, `cause`, `cure`, `source`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The rule's id, for example `OC-07`.
    pub rule: &'static str,
    /// What breaking it leads to, as a rule.
    pub level: Level,
    /// The wire or dialect whose rule it is.
    pub target: String,
    /// The condition that the request does not meet.
    pub cause: &'static str,
    /// What to do about it.
    pub cure: &'static str,
    /// Where the provider, or a report, says so: see [`ProtocolRule::source`].
    pub source: &'static str,
}

/// Explains the text of a provider's error, or the id of a rule: the rules that lead to it, the most likely first. Empty if no
/// text that is known is in it. [`check`](super::check()) finds the place in the request.
///
/// ```
/// use conversation_store::provider::explain;
///
/// let error = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01";
/// assert_eq!(explain(error)[0].rule, "AN-10");
/// assert_eq!(explain("an-10"), explain(error)[..1]);
/// ```
#[must_use]
pub fn explain(text: &str) -> Vec<Explanation> {
    let wires = WIRES.iter().flat_map(|wire| wire.rules.iter().map(|rule| (wire.name.to_owned(), *rule)));
    let dialects = DIALECTS
        .iter()
        .flat_map(|dialect| dialect.rules.iter().map(|rule| (format!("{}/{}", dialect.wire, dialect.name), *rule)));
    let rules: HashMap<&str, (String, &ProtocolRule)> =
        wires.chain(dialects).map(|(target, rule)| (rule.id, (target, rule))).collect();
    let upper = text.to_ascii_uppercase();
    let named = upper.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let plain = plain(text);
    let said = REFUSALS.iter().filter(|refusal| refusal.words.iter().all(|word| plain.contains(word)));
    let mut found: Vec<Explanation> = Vec::new();
    for id in named.chain(said.flat_map(|refusal| refusal.rules).copied()) {
        let Some((target, rule)) = rules.get(id).filter(|_| !found.iter().any(|found| found.rule == id)) else {
            continue;
        };
        let ProtocolRule { id, level, text, cure, source } = rule;
        found.push(Explanation { rule: id, level: *level, target: target.clone(), cause: text, cure, source });
    }
    found
}

/// A text as [`REFUSALS`] has it: in lower case, without quotation marks, with one space between words.
fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, '`' | '"' | '\'' | '\\')).collect();
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_names_rules_that_there_are_and_is_found_by_its_words() {
        for refusal in REFUSALS {
            let text = refusal.words.join(" ... ");
            assert_eq!(plain(&text), text, "not as texts are compared");
            let found = explain(&text);
            for rule in refusal.rules {
                assert!(found.iter().any(|found| found.rule == *rule), "{rule}: {text}");
            }
        }
    }
}
