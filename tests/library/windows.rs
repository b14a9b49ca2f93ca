//! Windows: the newest part of a long history, in steps, and still accepted, conserved, and a prefix of the next.

use crate::common::chat::shape;
use crate::common::hostile::for_hostile_logs;
use crate::common::prompts::{self, assert_prefixes};
use crate::common::reported::{self, Case};
use crate::common::stored;
use conversation_store::model::{Body, Chunk, Json, Message, Native, Role};
use conversation_store::provider::{FinishedTools, Prompt, PromptOptions, Target, Thinking, Tool, render};
use conversation_store::{Conversation, Rule, Store, StoredMessage};
use serde_json::Value;

fn options() -> Vec<PromptOptions> {
    let options = PromptOptions::new;
    let tool = Tool::new("read_file", Json::new("{}").unwrap()).with_description("Reads a file.");
    vec![
        options().with_last_messages(1),
        options().with_last_messages(4).with_thinking(Thinking::Tagged),
        options().with_last_turns(1).with_model("claude-3-5-sonnet"),
        options().with_last_turns(4),
        options().with_max_tokens(1),
        options().with_max_tokens(120),
        options().with_max_tokens(400).with_tools([tool]),
        options().with_max_tokens(2000).with_last_messages(9).with_last_turns(3),
        options().with_max_tokens(300).with_finished_tools(FinishedTools::Drop),
        options().with_last_messages(6).with_finished_tools(FinishedTools::Flatten),
        options().with_thinking_turns(1),
        options().with_thinking_turns(3).with_last_turns(8),
        options().with_thinking_turns(0).with_max_result_bytes(3),
    ]
}

/// The window holds what it may, or says that its last turn is more.
fn assert_held(target: Target, messages: &[StoredMessage], options: &PromptOptions, prompt: &Prompt) {
    let begin = prompts::window(prompt).unwrap_or_default();
    if prompt.report.iter().any(|line| line.rule == Rule::WindowExceeded) {
        return;
    }
    let held = || messages.iter().filter(|stored| stored.index >= begin && stored.message.role != Role::System);
    if let Some(limit) = options.last_messages {
        assert!(held().count() as u64 <= limit + removed(prompt), "{target}: {} messages", held().count());
    }
    if let Some(limit) = options.max_tokens {
        let tokens = tokens(&serde_json::from_str(prompt.request.get()).unwrap());
        assert!(tokens <= limit, "{target}: {tokens} tokens, asked for {limit}\n{}", prompt.request);
    }
}

/// Messages that reconcile left out, or of which it left nothing.
fn removed(prompt: &Prompt) -> u64 {
    let rules = [
        Rule::EmptyMessageRemoved,
        Rule::ErrorChunkRemoved,
        Rule::ResultMoved,
        Rule::OrphanResultRemoved,
        Rule::DuplicateResultRemoved,
    ];
    prompt.report.iter().filter(|line| rules.contains(&line.rule)).count() as u64
}

/// The tokens of all strings of a request.
fn tokens(request: &Value) -> u64 {
    match request {
        Value::String(text) => text_tokens(text),
        Value::Array(items) => items.iter().map(tokens).sum(),
        Value::Object(fields) => fields.values().map(tokens).sum(),
        _ => 0,
    }
}

#[cfg(feature = "tokens")]
fn text_tokens(text: &str) -> u64 {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len() as u64
}

/// A lower bound.
#[cfg(not(feature = "tokens"))]
fn text_tokens(text: &str) -> u64 {
    text.split_whitespace().map(|word| word.len() as u64 / 8).sum()
}

fn assert_windowed(targets: &[Target], messages: &[StoredMessage], options: &PromptOptions) {
    let conversation = Conversation::new(messages.to_vec());
    for target in targets {
        let Some(prompt) = prompts::prompt_of(*target, &conversation, options) else { continue };
        prompts::assert_accepted(*target, &prompt);
        prompts::assert_conserved(*target, messages, &prompt);
        assert_held(*target, messages, options, &prompt);
        let lines = prompt.report.iter().filter(|line| line.rule == Rule::OutsideWindow).count();
        assert!(lines <= 1, "{:#?}", prompt.report);
    }
}

#[test]
fn windows_of_hostile_logs_are_accepted_conserved_and_held() {
    let targets = prompts::targets();
    for_hostile_logs(24, options(), 600, |messages, options| assert_windowed(&targets, messages, options));
}

#[test]
fn windows_of_hostile_logs_keep_the_prefix_within_a_step() {
    let targets = prompts::targets();
    for_hostile_logs(24, options(), 150, |messages, options| assert_prefixes("hostile", &targets, messages, options));
}

#[test]
fn windows_of_reported_failures_are_accepted_and_conserved() {
    let targets = prompts::targets();
    for Case { id, messages, .. } in reported::cases() {
        options().iter().for_each(|options| assert_windowed(&targets, &messages, options));
        assert_prefixes(&id, &targets, &messages, &PromptOptions::new().with_last_messages(4));
    }
}

/// A turn of an agent: the user asks, a tool is run, the model answers.
fn turn(number: u64) -> Vec<Message> {
    let id = format!("call_{number}");
    vec![
        Message::user(format!("Question {number}: what does the file say?")),
        Message::assistant([Chunk::thinking("I have to look into it."), Chunk::tool_call(&id, "read_file", "{}")]),
        Message::tool(&id, "It says that all is well, and goes on for some time."),
        Message::assistant([Chunk::text("All is well.")]),
    ]
}

fn agent(turns: u64) -> Vec<StoredMessage> {
    let system = Message::new(Role::System, [Chunk::text("You are a helper.")]);
    stored::log(std::iter::once(system).chain((0..turns).flat_map(turn)))
}

/// The first message of the window, for a conversation of each of these lengths in turns.
fn begins(lengths: std::ops::Range<u64>, options: &PromptOptions) -> Vec<u64> {
    let begin = |turns| {
        let prompt = prompts::prompt(Target::OPENAI_CHAT, &agent(turns), options).unwrap();
        assert_eq!(shape(prompt.request.get())[0], "system You are a helper.");
        prompts::window(&prompt).unwrap_or_default()
    };
    lengths.map(begin).collect()
}

#[test]
fn a_window_moves_in_steps_of_half_of_it() {
    let options = PromptOptions::new().with_last_turns(6);
    assert_eq!(begins(1..14, &options), [0, 0, 0, 0, 0, 0, 13, 13, 13, 25, 25, 25, 37]);
    let options = PromptOptions::new().with_last_messages(20);
    assert_eq!(begins(1..12, &options), [0, 0, 0, 0, 0, 9, 9, 17, 17, 25, 25]);
    let mut tokens = begins(1..60, &PromptOptions::new().with_max_tokens(1000));
    assert!(tokens.is_sorted());
    tokens.dedup();
    assert!((4..20).contains(&tokens.len()), "{tokens:?}");
}

/// Of what several limits allow, the least.
#[test]
fn the_narrowest_limit_counts() {
    let (turns, messages) = (PromptOptions::new().with_last_turns(2), PromptOptions::new().with_last_messages(20));
    assert_eq!(begins(9..10, &messages), [17]);
    assert_eq!(begins(9..10, &messages.with_last_turns(2)), begins(9..10, &turns));
}

#[test]
fn what_is_left_out_is_one_line_and_the_system_message_stays() {
    let options = PromptOptions::new().with_last_turns(1);
    let prompt = prompts::prompt(Target::OPENAI_CHAT, &agent(3), &options).unwrap();
    let lines: Vec<String> = prompt.report.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines[0],
        "message 9: messages 1 to 8 removed: the window that was asked for begins at this message (outside_window)"
    );
    assert!(lines[1].ends_with("(thinking_left_out)") && lines.len() == 2, "{lines:?}");
    let lines = shape(prompt.request.get());
    assert_eq!(lines[..2], ["system You are a helper.", "user Question 2: what does the file say?"]);
}

/// A tool loop that never comes back to the user cannot be cut.
#[test]
fn a_last_turn_that_is_too_large_is_kept_whole_and_reported() {
    let mut messages = agent(2);
    messages.extend(agent(40).split_off(9).into_iter().filter(|stored| stored.message.role != Role::User));
    for options in [PromptOptions::new().with_last_messages(10), PromptOptions::new().with_max_tokens(500)] {
        let prompt = prompts::prompt(Target::OPENAI_CHAT, &messages, &options).unwrap();
        assert_eq!(prompts::window(&prompt), Some(5));
        let exceeded: Vec<_> = prompt.report.iter().filter(|line| line.rule == Rule::WindowExceeded).collect();
        assert_eq!(exceeded.iter().map(|line| line.message_index).collect::<Vec<_>>(), [Some(5)]);
        assert_eq!(shape(prompt.request.get()).len(), 1 + 5 + 38 * 4);
    }
}

/// What is in every window takes its share of the tokens: the system message, and the tools.
#[test]
fn what_is_always_sent_counts() {
    let long = "Be short. ".repeat(800);
    let mut tool = Tool::new("read_file", Json::new("{}").unwrap());
    tool.description = Some(long.clone());
    let begin = |messages: &[StoredMessage], options: &PromptOptions| {
        prompts::window(&prompts::prompt(Target::OPENAI_CHAT, messages, options).unwrap()).unwrap_or_default()
    };
    let options = PromptOptions::new().with_max_tokens(3000);
    let mut told = agent(15);
    told[0].message.chunks = vec![Chunk::text(&long)];
    assert_eq!(begin(&agent(15), &options), 0);
    assert!(begin(&told, &options) > 0);
    assert!(begin(&agent(15), &options.with_tools([tool])) > 0);
}

/// Thinking counts where it is sent.
#[test]
fn thinking_that_is_left_out_is_not_counted() {
    let thought = "I think about it for a long time. ".repeat(20);
    let mut messages = Vec::new();
    for number in 0..10 {
        messages.push(Message::user(format!("Question {number}")));
        messages.push(Message::assistant([Chunk::thinking(&thought), Chunk::tool_call("1", "look", "{}")]));
        messages.push(Message::tool("1", "Yes."));
    }
    let messages = stored::log(messages);
    let begin = |target: &str, thinking| {
        let options = PromptOptions::new().with_max_tokens(1000).with_thinking(thinking);
        prompts::window(&prompts::prompt(target.parse().unwrap(), &messages, &options).unwrap())
    };
    assert_eq!(begin("openai-chat", Thinking::Native), None);
    assert_eq!(begin("openai-chat/deepseek", Thinking::Omit), None);
    assert!(begin("openai-chat/deepseek", Thinking::Native).is_some());
    assert!(begin("openai-chat", Thinking::Tagged).is_some());
}

/// What the user appends takes no prompt away, if nothing is sent for it, or only to some targets: blank texts, a call that a
/// provider ran and what that gave, a block of a provider's own.
#[test]
fn a_message_for_which_nothing_is_sent_takes_no_prompt_away() {
    let mut call = Chunk::tool_call("srvtoolu_1", "web_search", "{}");
    if let Body::ToolCall { server, .. } = &mut call.body {
        *server = true;
    }
    call.native = Some(Native { wire: "anthropic".to_owned(), json: Json::new("{}").unwrap() });
    let silent = [vec![Chunk::text(" ")], vec![call, Chunk::tool_result("srvtoolu_1", "found")], vec![upload()]];
    let before = [
        vec![Message::assistant([Chunk::thinking("I look.")])],
        vec![Message::user("hi"), Message::assistant([Chunk::text("ho")])],
        vec![Message::assistant([Chunk::tool_call("1", "look", "{}")]), Message::tool("1", "x")],
    ];
    let options = PromptOptions::new;
    let options = [
        options().with_thinking_turns(1),
        options().with_last_turns(1),
        options().with_last_messages(1),
        options().with_max_tokens(1),
        options().with_finished_tools(FinishedTools::Drop),
    ];
    for (before, chunks) in before.iter().flat_map(|before| silent.iter().map(move |chunks| (before, chunks))) {
        let after = before.iter().cloned().chain([Message::new(Role::User, chunks.clone())]);
        let messages = stored::log(after);
        options.iter().for_each(|options| assert_prefixes("silent", &prompts::targets(), &messages, options));
    }
}

/// A file at Anthropic, which no other provider can be sent.
fn upload() -> Chunk {
    let json = Json::new(r#"{"type":"container_upload","file_id":"file_1"}"#).unwrap();
    Body::Opaque { provider: "anthropic".to_owned(), kind: "container_upload".to_owned(), json }.into()
}

/// A turn begins with what the target is sent: such a file belongs to the words behind it.
#[test]
fn a_turn_begins_with_a_block_of_the_targets_own() {
    let mut messages = turn(0);
    messages.push(Message::new(Role::User, [upload()]));
    let alone = stored::log(messages.clone());
    messages.push(Message::user("Summarise it."));
    let asked = stored::log(messages);
    let options = PromptOptions::new().with_last_turns(1);
    let begin =
        |target, messages: &[StoredMessage]| prompts::window(&prompts::prompt(target, messages, &options).unwrap());
    assert_eq!((begin(Target::ANTHROPIC, &alone), begin(Target::ANTHROPIC, &asked)), (Some(4), Some(4)));
    assert_eq!((begin(Target::GEMINI, &alone), begin(Target::GEMINI, &asked)), (None, Some(5)));
}

/// Rewound messages are neither held nor counted; a fork has the window that its parent had there.
#[test]
fn windows_of_branches() {
    let store = Store::open("memory:").unwrap();
    let messages: Vec<Message> = agent(8).into_iter().map(|stored| stored.message).collect();
    store.append("chat", &messages).unwrap();
    let options = PromptOptions::new().with_last_turns(4);
    let prompt = |name: &str| render(Target::OPENAI_CHAT, &store.load(name).unwrap(), &options).unwrap();
    let before = prompt("chat");
    assert_eq!(prompts::window(&before), Some(17));
    store.fork_to("chat", None, "fork").unwrap();
    store.rewind("chat", 21).unwrap();
    assert_eq!(prompts::window(&prompt("chat")), Some(9));
    store.append("chat", &turn(90)).unwrap();
    let rewound = prompt("chat");
    assert_eq!(prompts::window(&rewound), Some(9));
    let shape = shape(rewound.request.get());
    assert!(shape.contains(&"user Question 90: what does the file say?".to_owned()));
    assert!(!shape.contains(&"user Question 5: what does the file say?".to_owned()));
    assert_eq!(prompt("fork").request.get(), before.request.get());
    store.append("fork", &turn(91)).unwrap();
    assert_eq!(prompts::window(&prompt("fork")), Some(25));
}
