//! A request that was refused, and what it becomes.

use askama::Template;

use super::frame::{Frame, page};
use super::json_lines::JsonLines;
use super::prompt::{Choice, annotate, with_form};
use super::words::Note;
use crate::error::Error;
use crate::provider::{self, Finding, PromptOptions};
use crate::server::app::{Call, Outcome};
use crate::server::native::options;
use crate::server::refusal::Refusal;

#[derive(Template)]
#[template(path = "repair.html")]
struct Repair {
    frame: Frame,
    choices: Vec<Choice>,
    given: String,
    problem: Option<String>,
    result: Option<Repaired>,
}

struct Repaired {
    /// Whether the target takes it as it is.
    is_accepted: bool,
    /// What the target objects to, at its place.
    given: JsonLines,
    findings: usize,
    repaired: JsonLines,
    /// The repaired request, to be copied.
    text: String,
    lines: usize,
    notes: Vec<Note>,
}

pub(super) fn form(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&[])?;
    shown(call, 200, String::new(), None, None)
}

pub(super) fn repair(call: &Call, body: &[u8]) -> Outcome {
    let call = with_form(call, body)?;
    call.query.check(&["for", "from", "request"])?;
    let given = call.query.get("request").unwrap_or_default().to_owned();
    if given.trim().is_empty() {
        return shown(&call, 400, given, Some("Paste a request: JSON.".to_owned()), None);
    }
    match repaired(&call, &given) {
        Ok(result) => shown(&call, 200, given, None, Some(result)),
        Err(refusal) if refusal.status < 500 => shown(&call, refusal.status, given, Some(refusal.message), None),
        Err(refusal) => Err(refusal),
    }
}

fn shown(call: &Call, status: u16, given: String, problem: Option<String>, result: Option<Repaired>) -> Outcome {
    let choices = vec![
        Choice::target(call, "for", "Target", None),
        Choice::target(call, "from", "Written for", Some("the same target")),
    ];
    page(status, &Repair { frame: Frame::of(call), choices, given, problem, result })
}

fn repaired(call: &Call, given: &str) -> Result<Repaired, Refusal> {
    let target = options::target(call, "for")?;
    let from = if call.query.get("from").is_some() { options::target(call, "from")? } else { target };
    let prompt = match provider::repair(from, target, given, &PromptOptions::new()) {
        Err(Error::InvalidInput(problem)) => return Err(Refusal::new(400, "invalid_json", problem)),
        repaired => repaired?,
    };
    // What is of another wire is not judged by the target's rules.
    let is_same = call.query.get("from").is_none_or(|from| Some(from) == call.query.get("for"));
    let findings = if is_same { provider::check(target, given).unwrap_or_default() } else { Vec::new() };
    let is_accepted = is_same && !findings.iter().any(|finding| finding.level.is_refused());
    let mut lines = JsonLines::of(given);
    let count = findings.len();
    let mut notes: Vec<Note> = findings.iter().filter_map(|finding| lines.put(found(finding))).collect();
    notes.extend(annotate(&mut lines, &prompt.report));
    let text = prompt.request.get().to_owned();
    let repaired = JsonLines::of(&text);
    Ok(Repaired { is_accepted, given: lines, findings: count, repaired, text, lines: prompt.report.len(), notes })
}

fn found(finding: &Finding) -> Note {
    Note {
        severity: if finding.level.is_refused() { "refused".to_owned() } else { finding.level.to_string() },
        rule: finding.rule.to_owned(),
        place: Some(finding.place.clone()).filter(|place| !place.is_empty()),
        detail: finding.problem.clone(),
        why: None,
        cure: Some(finding.cure.to_owned()),
    }
}
