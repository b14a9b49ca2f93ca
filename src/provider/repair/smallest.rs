//! The smallest edit: of the differences between what was given and what was rendered, those that a rule asks for.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::edits::{Done, Edits, Written, place};
use crate::error::{Error, Result};
use crate::history::ReportLine;
use crate::history::report::{Fact, Refusal};
use crate::provider::check::finding::Finding;
use crate::provider::check::judge::check;
use crate::provider::check::not_json::NotJson;
use crate::provider::target::Target;

/// After so many rounds no more single differences are looked for.
const ROUNDS: usize = 12;

/// What the target refuses a request for. An error if it is nested too deep for anybody to say.
fn refused(target: Target, request: &str) -> Result<Vec<Finding>, NotJson> {
    let mut findings = check(target, request)?;
    findings.retain(|finding| finding.level.is_refused());
    Ok(findings)
}

/// Makes differences until the target refuses nothing. Each round judges the request a few times; there are at most a few
/// more than [`ROUNDS`]. Gives lines for fields, and for what is refused still.
///
/// # Errors
/// `InvalidInput` if what is not of the messages is nested too deep to be judged.
pub(super) fn edit(target: Target, edits: &mut Edits<'_>) -> Result<(String, Vec<ReportLine>)> {
    let mut lines = Vec::new();
    let mut round = 0;
    loop {
        let written = edits.written();
        let findings = match refused(target, &written.text) {
            Ok(findings) => findings,
            Err(_) if edits.make_deep() => continue,
            Err(error) => return Err(Error::InvalidInput(format!("it cannot be judged: {error}"))),
        };
        let Some(first) = findings.first() else { return Ok((respelled_least(target, edits, written), lines)) };
        let singly = round < ROUNDS
            && (answer(edits, &findings, &written, &mut lines) || cause(target, edits, first, &mut lines));
        round += 1;
        if !singly && !widely(target, edits, &findings) {
            lines.extend(findings.iter().map(still));
            return Ok((written.text, lines));
        }
    }
}

/// Where no single difference helps: more and more of them, if fewer things are refused then.
fn widely(target: Target, edits: &mut Edits<'_>, findings: &[Finding]) -> bool {
    let why = findings.first().map(|first| Refusal::from(first.clone()).to_string()).unwrap_or_default();
    let wider: [fn(&mut Edits<'_>, &str) -> bool; 3] = [
        |edits, why| edits.make_all(false, why),
        |edits, why| edits.make_all(true, why),
        |edits, why| edits.respell(why),
    ];
    let before = edits.state();
    for make in wider {
        let fewer = |left: Vec<Finding>| left.len() < findings.len();
        if make(edits, &why) && refused(target, &edits.written().text).is_ok_and(fewer) {
            return true;
        }
    }
    edits.restore(before);
    false
}

/// The line for what is refused still: only the caller can cure it.
fn still(finding: &Finding) -> ReportLine {
    let line = ReportLine::new(Fact::StillRefused { refusal: finding.clone().into(), cure: finding.cure });
    if finding.place.is_empty() { line } else { line.at(&finding.place) }
}

/// Makes the differences that the findings ask for. Of an array, items are left out from its end, so that places hold.
fn answer(edits: &mut Edits<'_>, findings: &[Finding], written: &Written, lines: &mut Vec<ReportLine>) -> bool {
    let mut findings: Vec<&Finding> = findings.iter().collect();
    findings.sort_by_key(|finding| Reverse(place(finding).and_then(|(_, item)| item)));
    let (mut seen, mut any) = (HashSet::new(), false);
    for finding in findings {
        if let Some(done) = edits.rename(finding) {
            any = true;
            lines.extend(done.line(finding));
            continue;
        }
        if !seen.insert((place(finding), if edits.is_message(finding) { finding.rule } else { "" })) {
            continue;
        }
        let done = edits.answer(finding, written);
        any |= !done.is_empty();
        lines.extend(done.into_iter().filter_map(|done| done.line(finding)));
    }
    any
}

/// Leaves out the given field that makes the target refuse what is there: thinking is switched on, say, and the thinking of
/// the conversation could not be kept.
fn cause(target: Target, edits: &mut Edits<'_>, finding: &Finding, lines: &mut Vec<ReportLine>) -> bool {
    for name in edits.given_fields().into_iter().filter(|_| edits.is_message(finding)).collect::<Vec<_>>() {
        let Some(without) = edits.without(&name) else { continue };
        if refused(target, &without.text).is_ok_and(|left| !left.contains(finding)) {
            lines.extend(edits.leave_out(&name).into_iter().filter_map(|done| done.line(finding)));
            return true;
        }
    }
    false
}

/// The request, with given spellings put back where the differences that were made elsewhere are enough.
fn respelled_least(target: Target, edits: &mut Edits<'_>, written: Written) -> String {
    let before = edits.state();
    if !edits.unspell() {
        return written.text;
    }
    let without = edits.written();
    if let Ok(findings) = refused(target, &without.text) {
        if findings.is_empty() {
            return without.text;
        }
        for finding in &findings {
            edits.respell_at(finding, &without);
        }
        let least = edits.written();
        if refused(target, &least.text).is_ok_and(|left| left.is_empty()) {
            return least.text;
        }
    }
    edits.restore(before);
    written.text
}

impl Done {
    /// The line for what was done to a field.
    fn line(self, finding: &Finding) -> Option<ReportLine> {
        let refusal = Refusal::from(finding.clone());
        match self {
            Self::Message => None,
            Self::Removed(name) => Some(ReportLine::new(Fact::FieldRemoved { name: &name, refusal }).at(&name)),
            Self::Rebuilt(name) => Some(ReportLine::new(Fact::FieldRebuilt { name: &name, refusal }).at(&name)),
            Self::Renamed { from, to } => {
                Some(ReportLine::new(Fact::DeclarationRenamed { from: &from, to: &to }).at(&finding.place))
            }
        }
    }
}
