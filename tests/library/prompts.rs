//! Whatever a log holds: its prompts are accepted, conserved, and prefixes of the next.

use std::fs;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::hostile::for_hostile_logs;
use crate::common::prompts::{self, assert_prefixes};
use crate::common::reported::{self, Case};
use conversation_store::Conversation;
use conversation_store::model::Json;
use conversation_store::provider::{FinishedTools, Images, NoContent, PromptOptions, Target, Thinking, Tool};
use serde_json::{Value, json};

/// Writes requests for the oracle, if it is asked for.
struct Rendered(Option<fs::File>);

impl Rendered {
    fn new(name: &str) -> Self {
        Self(crate::common::rendered_dir().map(|dir| fs::File::create(dir.join(name)).unwrap()))
    }

    fn write(&mut self, case: &str, target: Target, request: &str) {
        if let Some(file) = &mut self.0 {
            let request: Value = serde_json::from_str(request).unwrap();
            let profiles: Vec<&str> = target.dialect().iter().map(|dialect| dialect.name).collect();
            let wire = target.wire().name.replace('-', "_");
            writeln!(file, "{}", json!({"case": case, "target": wire, "profiles": profiles, "request": request}))
                .unwrap();
        }
    }
}

/// Cases that hold no more than a system message, which is no message on some wires.
const NOTHING_TO_SEND: &[&str] = &["hermes-57942-only-system"];

fn options() -> Vec<PromptOptions> {
    // The model is one that goes on with an assistant's words.
    let prefill = PromptOptions::new().with_model("claude-3-5-sonnet");
    let thinking = [Thinking::Native, Thinking::Tagged, Thinking::Omit];
    let schema = Json::new(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#).unwrap();
    let tools = ["read_file", "9 odd names"].map(|name| Tool::new(name, schema.clone()).with_description("Reads."));
    let flattened = PromptOptions::new().with_finished_tools(FinishedTools::Flatten).with_tools(tools);
    let dropped = PromptOptions::new().with_finished_tools(FinishedTools::Drop).with_thinking(Thinking::Tagged);
    let empty = PromptOptions::new().with_no_content(NoContent::Empty).with_images(Images::Omit);
    let shortened = PromptOptions::new().with_max_result_bytes(4);
    let thinking = thinking.map(|thinking| PromptOptions::new().with_thinking(thinking));
    thinking.into_iter().chain([prefill, flattened, dropped, empty, shortened]).collect()
}

#[test]
fn reported_failures_are_accepted_and_conserved() {
    let mut rendered = Rendered::new("corruption.jsonl");
    let cases = reported::cases();
    assert_eq!(cases.len(), 106);
    for Case { id, messages, .. } in &cases {
        let conversation = Conversation::new(messages.clone());
        for target in prompts::targets() {
            for options in options() {
                let Some(prompt) = prompts::prompt_of(target, &conversation, &options) else {
                    assert!(NOTHING_TO_SEND.contains(&id.as_str()), "{id} {target}: nothing to send");
                    continue;
                };
                prompts::assert_accepted(target, &prompt);
                prompts::assert_conserved(target, messages, &prompt);
                rendered.write(id, target, prompt.request.get());
            }
        }
    }
}

#[test]
fn reported_failures_keep_the_prefix() {
    for Case { id, messages, .. } in reported::cases() {
        assert_prefixes(&id, &prompts::targets(), &messages, &PromptOptions::new());
    }
}

/// Of so many hostile logs the oracle gets the prompts, for all targets.
const JUDGED: u32 = 2_100;

#[test]
fn hostile_logs_are_accepted_and_conserved() {
    let (targets, rendered) = (prompts::targets(), Mutex::new(Rendered::new("hostile.jsonl")));
    let (logs, judged) = (AtomicU32::new(0), AtomicU32::new(0));
    let continued = PromptOptions::new().with_model("claude-3-5-sonnet").with_continue_last(true);
    let options = options().into_iter().chain([continued]).collect();
    for_hostile_logs(9, options, 10_000, |messages, options| {
        logs.fetch_add(1, Ordering::Relaxed);
        let conversation = Conversation::new(messages.to_vec());
        let (mut requests, mut is_sent) = (Vec::new(), true);
        for target in &targets {
            let Some(prompt) = prompts::prompt_of(*target, &conversation, options) else {
                is_sent = false;
                continue;
            };
            prompts::assert_accepted(*target, &prompt);
            prompts::assert_conserved(*target, messages, &prompt);
            requests.push((*target, prompt.request));
        }
        // A log counts if every target has something to be sent.
        if judged.load(Ordering::Relaxed) < JUDGED {
            judged.fetch_add(u32::from(is_sent), Ordering::Relaxed);
            let mut rendered = rendered.lock().unwrap();
            requests.iter().for_each(|(target, request)| rendered.write("hostile", *target, request.get()));
        }
    });
    let (logs, judged) = (logs.into_inner(), judged.into_inner());
    println!("{logs} hostile logs on {} targets, {judged} of them for the oracle on all", targets.len());
}

#[test]
fn hostile_logs_keep_the_prefix() {
    let targets = prompts::targets();
    for_hostile_logs(9, options(), 500, |messages, options| {
        assert_prefixes("hostile", &targets, messages, options);
    });
}
