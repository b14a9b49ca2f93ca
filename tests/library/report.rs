//! The report: every kind of line, in words, at its place, with its severity.

use std::fmt::{self, Write};

use crate::common::hostile::for_hostile_logs;
use crate::common::prompts::{self, assert_reported, is_marked, targets};
use conversation_store::model::{Chunk, Json, Line, Message, Metadata, Role};
use conversation_store::provider::{FinishedTools, Images, PromptOptions, Target, Thinking, Tool, WIRES, repair};
use conversation_store::{Conversation, ReportLine, Severity, Store, StoredMessage};
use proc_macro2::{TokenStream, TokenTree};
use serde_json::Value;

/// What is done to a conversation or to a request, case by case.
const CASES: &str = include_str!("../fixtures/report/cases.jsonl");

/// What people read of it. `UPDATE=1` writes it again: read the difference aloud.
const SENTENCES: &str = "tests/fixtures/report/sentences.txt";

/// A sentence, and where it was said.
struct Said {
    severity: Severity,
    words: String,
    cure: Option<String>,
    places: Vec<String>,
    targets: Vec<String>,
}

impl Said {
    fn add(said: &mut Vec<Self>, target: &str, line: ReportLine) {
        let ReportLine { severity, cure, .. } = line.clone();
        let place = match (&line.place, line.message_index, line.chunk_index) {
            (Some(place), ..) => place.clone(),
            (None, Some(message), Some(chunk)) => format!("message {message}, chunk {chunk}"),
            (None, Some(message), None) => format!("message {message}"),
            (None, None, _) => String::new(),
        };
        let shown = line.to_string();
        let first = shown.lines().next().unwrap();
        let words = first.strip_prefix(&place).unwrap().trim_start_matches(": ").to_owned();
        assert_eq!(shown.lines().nth(1), cure.as_ref().map(|cure| format!("  cure: {cure}")).as_deref());
        let at = said.iter().position(|of| (&of.words, of.severity, &of.cure) == (&words, severity, &cure));
        let at = at.unwrap_or_else(|| {
            said.push(Self { severity, words, cure, places: Vec::new(), targets: Vec::new() });
            said.len() - 1
        });
        let Self { places, targets, .. } = &mut said[at];
        for (list, one) in [(places, place.as_str()), (targets, target)] {
            if !list.iter().any(|known| known == one) {
                list.push(one.to_owned());
            }
        }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.severity, self.words)?;
        if let Some(cure) = &self.cure {
            writeln!(f, "    cure: {cure}")?;
        }
        let places = self.places.iter().filter(|place| !place.is_empty()).map(String::as_str).collect::<Vec<_>>();
        match places.as_slice() {
            [] => {}
            [first, _, _, _, _, rest @ ..] => writeln!(f, "    at {first} and {} others", rest.len() + 4)?,
            few => writeln!(f, "    at {}", few.join("; "))?,
        }
        let all: Vec<String> = prompts::targets().iter().map(ToString::to_string).collect();
        let mut of = Vec::new();
        for wire in WIRES {
            let is_its = |target: &&String| target.split('/').next() == Some(wire.name);
            let (its, all) = (self.targets.iter().filter(is_its), all.iter().filter(is_its).count());
            match its.clone().count() {
                count if count == all && all > 1 => of.push(format!("{}/*", wire.name)),
                _ => of.extend(its.cloned()),
            }
        }
        writeln!(f, "    on {}\n", of.join(", "))
    }
}

#[test]
fn every_sentence_is_read_once() {
    let mut found = String::new();
    for case in cases() {
        let mut said: Vec<Said> = Vec::new();
        for (target, report) in reports(&case) {
            for line in report {
                Said::add(&mut said, &target, line);
            }
        }
        said.sort_by_key(|said| said.severity);
        writeln!(found, "# {}\n", case["case"].as_str().unwrap()).unwrap();
        said.iter().for_each(|said| write!(found, "{said}").unwrap());
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(SENTENCES, &found).unwrap();
    }
    let known = std::fs::read_to_string(SENTENCES).unwrap();
    let change = known.lines().zip(found.lines()).find(|(known, found)| known != found);
    assert!(known == found, "{change:?}: UPDATE=1 writes {SENTENCES} again");

    // Comments are text, too.
    let is_comment = |words: &String| words.starts_with(' ') && words.ends_with('.');
    let fragments = fragments().into_iter().filter(|words| !is_comment(words));
    let missing: Vec<String> =
        fragments.filter(|words| !found.contains(words) && !ELSEWHERE.contains(&words.as_str())).collect();
    assert!(missing.is_empty(), "no case makes these sentences: {missing:#?}");
}

/// What is not in a prompt as it was is stated as lost or changed, at its place; what is there is not stated as lost.
#[test]
fn what_is_lost_is_stated_as_lost_and_nothing_else_is() {
    let thinking = [Thinking::Native, Thinking::Tagged, Thinking::Omit];
    let mut options: Vec<PromptOptions> =
        thinking.into_iter().map(|thinking| PromptOptions::new().with_thinking(thinking)).collect();
    let rounds = [FinishedTools::Flatten, FinishedTools::Drop];
    options.extend(rounds.map(|rounds| PromptOptions::new().with_finished_tools(rounds)));
    options.push(PromptOptions::new().with_images(Images::Omit));
    for_hostile_logs(12, options, 400, |messages, options| {
        let conversation = Conversation::new(messages.to_vec());
        for target in targets() {
            if let Some(prompt) = prompts::prompt_of(target, &conversation, options) {
                assert_reported(target, messages, &prompt, is_marked);
            }
        }
    });
}

/// Words that no case above makes, and where they are made.
const ELSEWHERE: &[&str] = &[
    // Damaged stores: tests/durability/faults.
    "what a record holds is missing",
    "restore a backup; `convo verify` shows what is damaged",
    // Half characters in what is appended: tests/server/native.rs.
    "the chunk, whose own text is kept as its `native`",
];

/// Of each text in the source of the sentences, the longest stretch that is always the same.
fn fragments() -> Vec<String> {
    let source: TokenStream = include_str!("../../src/history/report/words.rs").parse().unwrap();
    let mut found = Vec::new();
    collect(source, &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<String>) {
    let mut is_doc = false;
    for token in tokens {
        match token {
            // A comment is an attribute.
            TokenTree::Group(group) if !is_doc => collect(group.stream(), found),
            TokenTree::Literal(literal) => {
                let text: Option<String> = serde_json::from_str(&literal.to_string()).ok();
                let parts = text.as_deref().unwrap_or_default().split(|mark| "{}".contains(mark)).step_by(2);
                let longest = parts.max_by_key(|part| part.len()).unwrap_or_default();
                if longest.trim().len() > 3 {
                    found.push(longest.to_owned());
                }
            }
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                is_doc = true;
                continue;
            }
            _ => {}
        }
        is_doc = false;
    }
}

fn cases() -> Vec<Value> {
    CASES.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What is reported of a case, at each target where there is something to send.
fn reports(case: &Value) -> Vec<(String, Vec<ReportLine>)> {
    if let Some(target) = case["for"].as_str() {
        let from = case["from"].as_str().unwrap_or(target).parse().unwrap();
        let target: Target = target.parse().unwrap();
        let repaired = repair(from, target, case["request"].as_str().unwrap(), &PromptOptions::new()).unwrap();
        return vec![(target.to_string(), repaired.report)];
    }
    let options = options(&case["options"]);
    let (messages, conversation) = match case["state"].as_str() {
        Some(state) => special(state),
        None => (messages(case), Conversation::new(messages(case))),
    };
    let report = |target: Target| {
        let prompt = prompts::prompt_of(target, &conversation, &options)?;
        prompts::assert_accepted(target, &prompt);
        assert_reported(target, &messages, &prompt, |_| true);
        Some((target.to_string(), prompt.report))
    };
    let is_asked = |target: &Target| {
        case["targets"].as_array().is_none_or(|names| names.iter().any(|name| *name == target.to_string()))
    };
    targets().into_iter().filter(is_asked).filter_map(report).collect()
}

/// Conversations that only a store gives, or that are too long for a file.
fn special(state: &str) -> (Vec<StoredMessage>, Conversation) {
    if state == "long" {
        let image = Chunk::image(format!("data:image/png;base64,iVBORw0KGgoA{}", "AAAA".repeat(4 << 20)));
        let messages = crate::common::stored::log([Message::new(Role::User, [image, Chunk::text("Hello.")])]);
        return (messages.clone(), Conversation::new(messages));
    }
    let store = Store::open("memory:").unwrap();
    let call = Message::assistant([Chunk::tool_call("c1", "look", "{}")]);
    store.append("c", &[Message::user("Hello."), call, Message::user("Wait.")]).unwrap();
    let writer = match state {
        "streaming" => {
            let mut writer = store.begin("c", Role::Assistant, Metadata::default()).unwrap();
            writer.push(0, Chunk::text("I ")).unwrap();
            store.sync().unwrap();
            Some(writer)
        }
        _ => {
            // Nobody waits for the result any more.
            store.append("c", &[Message::assistant([Chunk::text("Well.")])]).unwrap();
            store.summarize("c", 3, "They looked.").unwrap();
            store.append("c", &[Message::tool("c1", "seen"), Message::user("And?")]).unwrap();
            None
        }
    };
    let loaded = (store.load_raw("c").unwrap(), store.load("c").unwrap());
    drop(writer);
    loaded
}

fn messages(case: &Value) -> Vec<StoredMessage> {
    let history = case["history"].as_array().unwrap();
    crate::common::stored::log(history.iter().map(|message| Line::from_json(&message.to_string()).unwrap().message))
}

fn options(given: &Value) -> PromptOptions {
    let mut options = PromptOptions::new();
    for (name, value) in given.as_object().unwrap() {
        options = match (name.as_str(), value.as_str().unwrap_or_default()) {
            ("model", model) => options.with_model(model),
            ("thinking", "omit") => options.with_thinking(Thinking::Omit),
            ("thinking", "tagged") => options.with_thinking(Thinking::Tagged),
            ("images", "omit") => options.with_images(Images::Omit),
            ("finished_tools", "flatten") => options.with_finished_tools(FinishedTools::Flatten),
            ("finished_tools", "drop") => options.with_finished_tools(FinishedTools::Drop),
            ("max_result_bytes", _) => options.with_max_result_bytes(value.as_u64().unwrap()),
            ("thinking_turns", _) => options.with_thinking_turns(value.as_u64().unwrap()),
            ("continue_last", _) => options.with_continue_last(value.as_bool().unwrap()),
            ("last_turns", _) => options.with_last_turns(value.as_u64().unwrap()),
            ("last_messages", _) => options.with_last_messages(value.as_u64().unwrap()),
            ("tools", _) => {
                let names = value.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                options.with_tools(names.map(|name| Tool::new(name, Json::new("{}").unwrap())))
            }
            (name, value) => panic!("no option {name} {value}"),
        };
    }
    options
}
