//! The prompt inspector: what would be sent to a target, beside what is stored; and a request that was refused, with what it
//! becomes.

use std::collections::{HashMap, HashSet};

use askama::Template;

use super::conversation::Heading;
use super::frame::{Frame, for_its_owner, page};
use super::json_lines::JsonLines;
use super::message::{Showing, Shown};
use super::sent;
use super::words::Note;
use crate::error::Error;
use crate::history::{MessageState, ReportLine};
use crate::provider::{self, Finding, OptionValues, PROMPT_OPTIONS, Prompt, PromptOption, PromptOptions};
use crate::server::app::{Call, Outcome};
use crate::server::body::{Judged, judged};
use crate::server::native::parameters;
use crate::server::refusal::Refusal;

/// The target of a form that names none.
const TARGET: &str = "openai-chat";
/// Bytes of one text beside the request, which has it whole.
const TEXT: usize = 2_000;
/// The newest messages that are beside the request.
const MESSAGES: usize = 200;

/// A control with a fixed number of values.
#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "choice.html")]
pub(super) struct Choice {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// Values, what they mean, and which is chosen.
    pub(super) values: Vec<(String, String, bool)>,
}

impl Choice {
    pub(super) fn new(call: &Call, name: &'static str, label: &'static str, values: &[(&str, &str)]) -> Self {
        let chosen = call.query.get(name).unwrap_or_default();
        let value = |(at, (value, text)): (usize, &(&str, &str))| {
            let is_chosen = if chosen.is_empty() { at == 0 } else { chosen == *value };
            ((*value).to_owned(), (*text).to_owned(), is_chosen)
        };
        Self { name, label, values: values.iter().enumerate().map(value).collect() }
    }

    /// The wires, and their dialects.
    pub(super) fn target(call: &Call, name: &'static str, label: &'static str, none: Option<&str>) -> Self {
        let dialects = provider::DIALECTS.iter().map(|dialect| format!("{}/{}", dialect.wire, dialect.name));
        let mut names: Vec<String> = provider::WIRES.iter().map(|wire| wire.name.to_owned()).chain(dialects).collect();
        names.sort_unstable_by_key(|name| (name != TARGET, name.clone()));
        let mut values: Vec<(&str, &str)> = none.map(|none| ("", none)).into_iter().collect();
        values.extend(names.iter().map(|name| (name.as_str(), name.as_str())));
        Self::new(call, name, label, &values)
    }
}

/// A control that takes a text or a number.
struct Field {
    name: &'static str,
    label: &'static str,
    value: String,
    is_number: bool,
}

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "prompt.html")]
struct Inspector {
    frame: Frame,
    heading: Heading,
    choices: Vec<Choice>,
    fields: Vec<Field>,
    problem: Option<String>,
    request: Option<JsonLines>,
    /// Bytes of the request.
    size: String,
    /// The request, to be copied.
    text: Option<String>,
    /// How many lines the report has.
    steps: usize,
    /// Lines of the report that are about no message and no place that is shown.
    notes: Vec<Note>,
    messages: Vec<Shown>,
    left_out: usize,
}

pub(super) fn prompt(call: &Call, _: &[u8]) -> Outcome {
    let call = &for_its_owner(call)?;
    let call = Call { query: call.query.filled().or("for", TARGET), ..call.clone() };
    parameters::check_prompt(&call)?;
    let (store, name) = (call.store(), parameters::name(&call));
    let conversation = parameters::conversation(&call, &name)?;
    let rendered = parameters::target(&call, "for")
        .and_then(|target| Ok(provider::render(target, &conversation, &parameters::prompt(&call, Vec::new())?)?));
    let (request, report, problem) = match rendered {
        Ok(Prompt { request, report, .. }) => (Some(request), report, None),
        Err(refusal) if refusal.status < 500 => (None, conversation.report().to_vec(), Some(refusal.message)),
        Err(refusal) => return Err(refusal),
    };
    let mut lines = request.as_ref().map(|request| JsonLines::of(request.get()));
    let loaded = if call.query.get(parameters::AT).is_none() { Some(store.load_raw(&name)) } else { None };
    let stored = match loaded {
        Some(Ok(stored)) => stored,
        None | Some(Err(Error::Corrupt { .. })) => {
            let mut messages = conversation.into_messages();
            messages.retain(|stored| stored.state != MessageState::Synthetic);
            messages
        }
        Some(Err(error)) => return Err(error.into()),
    };
    let left_out = stored.len().saturating_sub(MESSAGES);
    let item = store.describe(&name)?;
    let address = format!("/pages/conversations/{}", item.id);
    let mut showing = Showing { address, most: TEXT, ..Showing::default() };
    let mut notes = Vec::new();
    for (at, line) in report.iter().enumerate() {
        let note = Note { line: Some(at), ..Note::from(line) };
        match line.message_index {
            Some(index) => showing.notes.entry((index, line.chunk_index)).or_default().push(note),
            None => notes.extend(match &mut lines {
                Some(lines) => lines.put(note),
                None => Some(note),
            }),
        }
    }
    let mut messages = showing.messages(stored.get(left_out..).unwrap_or_default());
    let mut rest: Vec<_> = showing.notes.into_iter().collect();
    rest.sort_unstable_by_key(|(place, _)| *place);
    // Their messages are not beside the request.
    notes.extend(rest.into_iter().flat_map(|(place, notes)| notes.into_iter().map(move |note| placed(note, place))));
    let shown = notes.iter_mut().chain(messages.iter_mut().flat_map(Shown::notes));
    let mut shown: Vec<&mut Note> = shown.chain(lines.iter_mut().flat_map(JsonLines::notes)).collect();
    let steps = Note::number(shown.iter_mut().map(|note| &mut **note));
    let numbers: HashMap<usize, usize> =
        shown.iter().filter_map(|note| Some((note.line?, note.number?.this))).collect();
    if let (Some(lines), Some(request), Ok(target)) = (&mut lines, &request, parameters::target(&call, "for"))
        && judged(&call, request.get().as_bytes(), Judged::Repaired).is_ok()
    {
        sent::mark(lines, (target, request.get()), &stored, &report, &numbers);
        let marked: HashSet<usize> = lines.marked().collect();
        let shown = notes.iter_mut().chain(messages.iter_mut().flat_map(Shown::notes)).chain(lines.notes());
        shown.for_each(|note| note.is_marked = note.number.is_some_and(|number| marked.contains(&number.this)));
    }
    let text = request.as_ref().map(|request| request.get().to_owned());
    let inspector = Inspector {
        frame: Frame::of(&call),
        heading: Heading::of(&call, &name, item)?,
        choices: choices(&call),
        fields: fields(&call),
        problem,
        size: request.map_or_else(String::new, |request| super::words::count(request.get().len(), "byte")),
        request: lines,
        text,
        steps,
        notes,
        messages,
        left_out,
    };
    page(200, &inspector)
}

/// The note with the place in words.
fn placed(note: Note, (message, chunk): (u64, Option<u32>)) -> Note {
    let chunk = chunk.map_or_else(String::new, |chunk| format!(", chunk {chunk}"));
    Note { place: Some(format!("message {message}{chunk}")), ..note }
}

/// The options that are one of a few words, after the target.
fn choices(call: &Call) -> Vec<Choice> {
    let choice = |option: &PromptOption| match option.values {
        OptionValues::Words(words) => {
            let values: Vec<_> = words.iter().map(|word| (word.name, word.label)).collect();
            Some(Choice::new(call, option.name, option.label, &values))
        }
        _ => None,
    };
    let target = Choice::target(call, "for", "Target", None);
    std::iter::once(target).chain(PROMPT_OPTIONS.iter().filter_map(choice)).collect()
}

/// The options that take a text or a number.
fn fields(call: &Call) -> Vec<Field> {
    let field = |option: &PromptOption| {
        let is_number = match option.values {
            OptionValues::Text(_) => false,
            OptionValues::Number { .. } => true,
            OptionValues::Words(_) => return None,
        };
        let value = call.query.get(option.name).unwrap_or_default().to_owned();
        Some(Field { name: option.name, label: option.label, value, is_number })
    };
    let value = call.query.get(parameters::AT).unwrap_or_default().to_owned();
    let at = Field { name: parameters::AT, label: "As it was at seq", value, is_number: true };
    std::iter::once(at).chain(PROMPT_OPTIONS.iter().filter_map(field)).collect()
}

/// The report of what was repaired, at the places of the request that was given: the lines that have none are returned.
fn annotate(lines: &mut JsonLines, report: &[ReportLine]) -> Vec<Note> {
    report.iter().filter_map(|line| lines.put(Note::from(line))).collect()
}

/// A call with the fields of a form in place of its query.
fn with_form(call: &Call, body: &[u8]) -> Result<Call, Refusal> {
    let form = crate::server::body::text(body)?;
    Ok(Call { query: crate::server::query::Query::new(form).filled(), ..call.clone() })
}

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "repair.html")]
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

pub(super) fn repair_form(call: &Call, _: &[u8]) -> Outcome {
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
    let target = parameters::target(call, "for")?;
    let from = if call.query.get("from").is_some() { parameters::target(call, "from")? } else { target };
    judged(call, given.as_bytes(), Judged::Shown)?;
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
    Note::number(notes.iter_mut().chain(lines.notes()));
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
        line: None,
        number: None,
        is_marked: false,
    }
}
