//! The smallest edit: of the differences between what was given and what was rendered, those that a rule asks for.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::edits::{Edits, Written, place};
use crate::history::{ReportLine, Rule};
use crate::provider::check::finding::Finding;
use crate::provider::check::judge::check;
use crate::provider::target::Target;

/// After so many rounds no more single differences are looked for.
const ROUNDS: usize = 12;

/// What the target refuses a request for.
pub(super) fn refused(target: Target, request: &str) -> Vec<Finding> {
    let mut findings = check(target, request).unwrap_or_default();
    findings.retain(|finding| finding.level.is_refused());
    findings
}

/// Makes differences until the target refuses nothing. Each round judges the request once; there are at most a few more
/// than [`ROUNDS`]. Gives lines for fields, and for what is refused still.
pub(super) fn edit(target: Target, edits: &mut Edits<'_>) -> (String, Vec<ReportLine>) {
    let mut lines = Vec::new();
    let mut stage = 0;
    for round in 0.. {
        let written = edits.written();
        let findings = refused(target, &written.text);
        let Some(first) = findings.first() else { return (respelled_least(target, edits, written), lines) };
        let any = round < ROUNDS
            && (answer(edits, &findings, &written, &mut lines) || cause(target, edits, first, &mut lines));
        let why = format!("{}: {}", first.rule, first.problem);
        while !any && stage < STAGES.len() {
            stage += 1;
            if STAGES.get(stage - 1).is_some_and(|make| make(edits, &why)) {
                break;
            }
        }
        if !any && stage >= STAGES.len() && edits.written().text == written.text {
            lines.extend(findings.iter().map(|finding| {
                let detail = format!(
                    "{} is still refused: {}: {}; {}",
                    shown(finding),
                    finding.rule,
                    finding.problem,
                    finding.cure
                );
                ReportLine::new(Rule::Altered, detail)
            }));
            return (written.text, lines);
        }
    }
    (edits.written().text, lines)
}

type Stage = fn(&mut Edits<'_>, &str) -> bool;

/// Where no single difference helps: more and more of them.
const STAGES: &[Stage] =
    &[|edits, why| edits.make_all(false, why), |edits, why| edits.make_all(true, why), |edits, why| edits.respell(why)];

fn shown(finding: &Finding) -> String {
    if finding.place.is_empty() { "the request".to_owned() } else { format!("`{}`", finding.place) }
}

/// Makes the differences that the findings ask for. Of an array, items are left out from its end, so that places hold.
fn answer(edits: &mut Edits<'_>, findings: &[Finding], written: &Written, lines: &mut Vec<ReportLine>) -> bool {
    let mut findings: Vec<&Finding> = findings.iter().collect();
    findings.sort_by_key(|finding| Reverse(place(finding).and_then(|(_, item)| item)));
    let (mut seen, mut any) = (HashSet::new(), false);
    for finding in findings {
        if !seen.insert((place(finding), if edits.is_message(finding) { finding.rule } else { "" })) {
            continue;
        }
        let Some(done) = edits.answer(finding, written) else { continue };
        any = true;
        if !done.is_empty() {
            lines.push(refusal(&done, finding));
        }
    }
    any
}

/// Leaves out the given field that makes the target refuse what is there: thinking is switched on, say, and the thinking of
/// the conversation could not be kept.
fn cause(target: Target, edits: &mut Edits<'_>, finding: &Finding, lines: &mut Vec<ReportLine>) -> bool {
    for name in edits.given_fields() {
        let Some(without) = edits.without(&name) else { continue };
        if !refused(target, &without.text).contains(finding) {
            edits.leave_out(&name);
            lines.push(refusal(&format!("`{name}` was left out"), finding));
            return true;
        }
    }
    false
}

/// The request, with given spellings put back where the differences that were made elsewhere are enough.
fn respelled_least(target: Target, edits: &mut Edits<'_>, written: Written) -> String {
    let taken = edits.unspell();
    if taken.is_empty() {
        return written.text;
    }
    let without = edits.written();
    let findings = refused(target, &without.text);
    if findings.is_empty() {
        return without.text;
    }
    for finding in &findings {
        edits.respell_at(finding, &without);
    }
    let least = edits.written();
    if refused(target, &least.text).is_empty() {
        return least.text;
    }
    edits.remake(taken);
    edits.written().text
}

/// The line for what was done to a field because of a finding.
fn refusal(done: &str, finding: &Finding) -> ReportLine {
    ReportLine::new(Rule::LeftOut, format!("{done}, the target refuses it: {}: {}", finding.rule, finding.problem))
}
