//! Requests of providers: checked, repaired, read from files; and the targets that judge them.

use std::path::{Path, PathBuf};

use conversation_store::Error;
use conversation_store::provider::{self, DIALECTS, Finding, Target, WIRES};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::failure::{Exit, Failure, Outcome};
use super::lines::Input;
use super::output::{self, Output};
use super::prompt::{Aim, Renderer, Rendering, Shown};
use super::text::{self, BOLD, DIM, ERROR, Layout, WARNING};

const INDENT: &str = "    ";

/// Check a request: where a provider would refuse it, why, and what to do
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo check --for openai-chat request.json
  convo prompt chat-42 --for openai-chat | convo check --for openai-chat
  convo check --for openai-chat/deepseek request.json --json | jq -r .place

The input is a whole request or the array of its messages. Each finding has its place, the rule, the problem, the \
cure, and a level: hard (documented or recorded as refused), hard? (reported as refused), soft (accepted with a loss), \
unknown (a field, type or value that the rules do not know).

Exit code 1 if the provider would refuse the request: there is a finding of level hard or hard?.")]
pub(super) struct Check {
    #[command(flatten)]
    aim: Aim,
    /// The request, JSON; - for stdin
    #[arg(default_value = "-")]
    file: PathBuf,
}

pub(super) fn check(args: &Check, output: &mut Output) -> Outcome {
    let target = args.aim.target;
    let request = read(&args.file)?;
    let Request { name, json } = &request;
    let findings =
        provider::check(target, json).map_err(|error| not_json(name, error.line, error.column, &error.message))?;
    let layout = Layout::folded("--json has all of it");
    for finding in &findings {
        output.result(finding, || finding_text(finding, layout))?;
    }
    let hard = findings.iter().filter(|finding| finding.level.is_refused()).count();
    output.flush()?;
    if !output.is_json() {
        let verdict = match (findings.len(), hard) {
            (0, _) => "no findings".to_owned(),
            (all, 0) => format!("{}, none of them hard: it is accepted", text::count(all, "finding")),
            (all, hard) => format!("{}, {hard} of them hard: it is refused", text::count(all, "finding")),
        };
        output::note(&format!("{name}: {target}: {verdict}"));
    }
    note_other_wire(target, &request, "--for");
    Ok(if hard > 0 { Exit::Findings } else { Exit::Done })
}

/// `messages[1]  hard  AN-10`, then the problem and the cure.
fn finding_text(finding: &Finding, layout: Layout) -> String {
    let Finding { rule, level, place, problem, cure, .. } = finding;
    let style = if level.is_refused() { ERROR } else { WARNING };
    let place = if place.is_empty() { "the request" } else { place };
    let head = format!("{BOLD}{}{BOLD:#}  {style}{level}{style:#}  {DIM}{rule}{DIM:#}\n", text::printable(place));
    head + &text::wrap(problem, INDENT, layout) + &text::wrap(&format!("cure: {cure}"), INDENT, layout)
}

/// Repair a request that a provider refuses: print one that it accepts, and report what was wrong
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo repair refused.json --for openai-chat > accepted.json
  convo repair refused.json --for openai-chat/mistral
  convo repair refused.json --for openai-chat --report
  convo repair refused.json --from openai-chat --for anthropic --model claude-sonnet-4-5
  curl https://example.com/request.json | convo repair --for openai-chat --json

Repairs calls without results, results without calls, results in the wrong place, broken arguments, empty messages. \
On one wire the repair is the smallest edit: what no rule objects to stays byte for byte, and a request that is \
accepted comes out as it is. From one wire to another the messages, the tools and the parameters that both have go along; --model names a model \
of the target, --tools other tools.

The report on stderr names what was wrong, and what was done about it. With --json both come as one object on stdout:
  {\"request\": {...}, \"report\": [{\"severity\": \"lost\", \"place\": \"messages[3]\", ...}]}
Where there is nothing to send, it has \"error\": {\"kind\", \"message\", \"cure\"} in place of \"request\".")]
pub(super) struct Repair {
    /// The request, or the array of its messages, JSON; - for stdin
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The wire of the request, if it is not the wire of --for
    #[arg(long, value_name = "WIRE")]
    from: Option<Target>,
    /// Print the report in place of the request: what was wrong, and what was done about it
    #[arg(long)]
    report: bool,
    #[command(flatten)]
    rendering: Rendering,
}

pub(super) fn repair(args: &Repair, output: &mut Output) -> Outcome {
    let Renderer { target, options } = args.rendering.prepare()?;
    let (input, from) = (read(&args.file)?, args.from.unwrap_or(target));
    let Request { name, json } = &input;
    if let (None, Some(wire)) = (args.from, provider::likely_wire(target, json)) {
        let (file, wire) = (args.file.display(), wire.name);
        let refusal = Failure::usage(format!("{name}: it looks like a request of {wire}, not of {target}"));
        return Err(refusal.with_cure(format!(
            "`convo repair {file} --from {wire} --for {target}` turns it into one of {target}; --from {target} repairs it as what --for says"
        )));
    }
    let (request, error, report) = match provider::repair(from, target, json, &options) {
        Ok(prompt) => {
            let request = if output.is_json() { on_one_line(prompt.request) } else { prompt.request };
            (Some(request), None, prompt.report)
        }
        Err(error @ Error::NothingToSend(_)) => {
            let failure =
                Failure::from(error).with_cure("add what the user says: a message of the role `user` with a text");
            (None, Some(failure.at(name)), Vec::new())
        }
        Err(error @ Error::TooLarge(_)) => (None, Some(Failure::from(error).at(name)), Vec::new()),
        Err(error) => return Err(Failure::from(error).at(name)),
    };
    let shown = Shown { conversation: None, key: None, request, error, report };
    if args.report { shown.print_report(output) } else { shown.print(output) }
}

/// The envelope is one line. In JSON, line breaks occur between tokens only.
fn on_one_line(request: Box<RawValue>) -> Box<RawValue> {
    if !request.get().contains(['\n', '\r']) {
        return request;
    }
    RawValue::from_string(request.get().replace(['\n', '\r'], " ")).unwrap_or(request)
}

/// List the targets that --for and --from take
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo targets
  convo targets --json | jq -r .target

A target is a wire (a format of requests), or a wire and a dialect of it (what one server does differently). Without a \
dialect you get the vendor's own API. --for and --from take any of them. src/docs/targets.md describes what each dialect \
changes.")]
pub(super) struct Targets {}

/// A target, with the rules that it is checked by in addition to those of its wire.
#[derive(Serialize)]
struct Row {
    target: String,
    wire: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dialect: Option<&'static str>,
    about: &'static str,
    rules: usize,
}

pub(super) fn targets(_: &Targets, output: &mut Output) -> Outcome {
    let all = all();
    if output.is_text() {
        output.text(&rows(&all))?;
    } else {
        for target in &all {
            output.json(target)?;
        }
    }
    Ok(Exit::Done)
}

/// Each wire, followed by its dialects.
fn all() -> Vec<Row> {
    let of = |wire: &'static str| {
        let dialects = DIALECTS.iter().filter(move |dialect| dialect.wire == wire);
        dialects.map(move |dialect| Row {
            target: format!("{wire}/{}", dialect.name),
            wire,
            dialect: Some(dialect.name),
            about: dialect.about,
            rules: dialect.rules.len(),
        })
    };
    let targets = WIRES.iter().flat_map(|wire| {
        let (target, rules) = (wire.name.to_owned(), wire.rules.len());
        let plain = Row { target, wire: wire.name, dialect: None, about: wire.about, rules };
        std::iter::once(plain).chain(of(wire.name))
    });
    targets.collect()
}

fn rows(all: &[Row]) -> String {
    let row = |shown: &Row| {
        let rules = if shown.dialect.is_some() { format!("+{}", shown.rules) } else { shown.rules.to_string() };
        [shown.target.clone(), rules, shown.about.to_owned()]
    };
    let heads = ["TARGET", "RULES", "ABOUT"].map(str::to_owned);
    text::titled_table(&std::iter::once(heads).chain(all.iter().map(row)).collect::<Vec<_>>())
}

/// A request, or the array of its messages: text that is JSON.
pub(super) struct Request {
    /// Its name in errors.
    pub(super) name: String,
    pub(super) json: String,
}

/// Reads a request; `-` is stdin.
pub(super) fn read(path: &Path) -> Result<Request, Failure> {
    let request = read_text(path)?;
    request.check().map(|()| request)
}

/// Reads a request, or its messages, one per line.
pub(super) fn read_messages(path: &Path) -> Result<Request, Failure> {
    let mut request = read_text(path)?;
    let checked = request.check();
    if checked.is_err() {
        let lines: Vec<_> = request.json.lines().filter(|line| !line.trim().is_empty()).collect();
        let is_object =
            |line: &&str| line.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(line).is_ok();
        if lines.len() > 1 && lines.iter().all(is_object) {
            request.json = format!("[{}]", lines.join(",\n"));
            return Ok(request);
        }
    }
    checked.map(|()| request)
}

fn read_text(path: &Path) -> Result<Request, Failure> {
    let input = Input::open(path)?;
    let name = input.name.clone();
    let json = input.read_text()?;
    if json.trim().is_empty() {
        return Err(Failure::new("invalid_input", format!("{name}: it is empty; expected a request as JSON")));
    }
    Ok(Request { name, json })
}

impl Request {
    /// Fails on text that is no JSON, and names the place. Lone surrogate escapes pass.
    fn check(&self) -> Result<(), Failure> {
        let Err(error) = serde_json::from_str::<IgnoredAny>(&self.json) else { return Ok(()) };
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        Err(not_json(&self.name, line, column, message))
    }
}

/// A note on stderr if the request looks like one of another wire.
fn note_other_wire(read_as: Target, request: &Request, option: &str) {
    if let Some(wire) = provider::likely_wire(read_as, &request.json) {
        let (name, wire) = (&request.name, wire.name);
        output::note(&format!(
            "{name}: it looks like a request of {wire}, not of {read_as}: say so with {option} {wire}"
        ));
    }
}

/// The failure of text that is no JSON, with its place.
fn not_json(name: &str, line: usize, column: usize, message: &str) -> Failure {
    Failure::new("invalid_input", format!("{name}:{line}:{column}: not JSON: {message}"))
}
