//! What every prompt has to be: accepted, conserved, a prefix of the next.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};

use conversation_store::model::{Body, Chunk, Message, Output, PartBody, Role};
use conversation_store::provider::{FinishedTools, Prompt, PromptOptions, Target, check, render};
use conversation_store::{Conversation, Error, ReportLine, Rule, Severity, StoredMessage};
use serde_json::Value;
use serde_json::value::RawValue;

/// All targets: every wire, and every dialect of it.
pub(crate) fn targets() -> Vec<Target> {
    use conversation_store::provider::{DIALECTS, WIRES};
    let wires = WIRES.iter().map(|wire| wire.name.parse::<Target>().unwrap());
    let dialects = DIALECTS.iter().map(|dialect| format!("{}/{}", dialect.wire, dialect.name).parse().unwrap());
    wires.chain(dialects).collect()
}

/// The prompt, if there is something to send.
pub(crate) fn prompt(target: Target, messages: &[StoredMessage], options: &PromptOptions) -> Option<Prompt> {
    prompt_of(target, &Conversation::new(messages.to_vec()), options)
}

/// The prompt of a conversation, if there is something to send.
pub(crate) fn prompt_of(target: Target, conversation: &Conversation, options: &PromptOptions) -> Option<Prompt> {
    match render(target, conversation, options) {
        Ok(prompt) => Some(prompt),
        Err(Error::NothingToSend(_)) => None,
        Err(error) => panic!("{target}: {error}"),
    }
}

/// Fails if the target would refuse the prompt.
pub(crate) fn assert_accepted(target: Target, prompt: &Prompt) {
    let findings = check(target, prompt.request.get()).unwrap();
    let hard: Vec<String> =
        findings.iter().filter(|finding| finding.level.is_refused()).map(ToString::to_string).collect();
    assert!(hard.is_empty(), "{target}: {hard:#?}\n{}", prompt.request);
}

/// Fails if a chunk of the log is neither in the prompt unchanged nor in its report.
pub(crate) fn assert_conserved(target: Target, messages: &[StoredMessage], prompt: &Prompt) {
    let request: Value = serde_json::from_str(prompt.request.get()).unwrap();
    let mut strings = HashSet::new();
    collect(&request, &mut strings);
    let said = Said { request: prompt.request.get(), compact: OnceCell::new(), strings };
    let reported: HashSet<(u64, u32)> =
        prompt.report.iter().filter_map(|line| Some((line.message_index?, line.chunk_index?))).collect();
    let empty = prompt.report.iter().filter(|line| line.rule == Rule::EmptyMessageRemoved);
    let empty: HashSet<u64> = empty.filter_map(|line| line.message_index).collect();
    let begin = window(prompt).unwrap_or_default().max(summarized(prompt).map_or(0, |through| through + 1));
    let is_held = |stored: &&StoredMessage| stored.index >= begin || stored.message.role == Role::System;
    for stored in messages.iter().filter(|stored| !empty.contains(&stored.index)).filter(is_held) {
        for (at, chunk) in stored.message.chunks.iter().enumerate() {
            // A result is a message of its own, also where a system message brought it: the summary covers it.
            if stored.index < begin && matches!(chunk.body, Body::ToolResult { .. }) {
                continue;
            }
            let is_reported = reported.contains(&(stored.index, stored.chunk_index(at)));
            assert!(
                is_reported || is_in(chunk, &said),
                "{target}: chunk {at} of message {} is lost: {chunk:?}\n{}\n{:#?}",
                stored.index,
                prompt.request,
                prompt.report
            );
        }
    }
}

/// Fails if a chunk that is not in the prompt as it was has no line at its place that states a loss or a change, or a chunk
/// that is in it has one that states a loss. What says nothing may leave with a note.
pub(crate) fn assert_reported(
    target: Target,
    messages: &[StoredMessage],
    prompt: &Prompt,
    is_told_apart: fn(&Chunk) -> bool,
) {
    let request: Value = serde_json::from_str(prompt.request.get()).unwrap();
    let mut strings = HashSet::new();
    collect(&request, &mut strings);
    // Words in the place of an attachment may hold its address.
    let is_said = |line: &&str| !(line.starts_with('[') && line.contains(" left out: "));
    let without_words = |text: &&str| text.split('\n').filter(is_said).collect::<Vec<_>>().join("\n");
    let strings: Vec<String> = strings.iter().map(without_words).collect();
    let strings = strings.iter().map(String::as_str).collect();
    let said = Said { request: prompt.request.get(), compact: OnceCell::new(), strings };
    let mut severities: BTreeMap<(u64, u32), Vec<Severity>> = BTreeMap::new();
    for line in &prompt.report {
        if let (Some(message), Some(chunk)) = (line.message_index, line.chunk_index) {
            severities.entry((message, chunk)).or_default().push(line.severity);
        }
    }
    let begin = window(prompt).unwrap_or_default().max(summarized(prompt).map_or(0, |through| through + 1));
    let is_held = |stored: &&StoredMessage| stored.index >= begin || stored.message.role == Role::System;
    for stored in messages.iter().filter(is_held) {
        for (at, chunk) in stored.message.chunks.iter().enumerate() {
            let found = severities.get(&(stored.index, stored.chunk_index(at))).map(Vec::as_slice).unwrap_or_default();
            let is_in = is_in(chunk, &said);
            let at_least = if says_nothing(chunk) { Severity::Note } else { Severity::Changed };
            let is_told = found.iter().any(|severity| *severity <= at_least) || says_nothing(chunk);
            let says = || format!("{target}: chunk {at} of message {}: {chunk:?}\n{prompt:#?}", stored.index);
            assert!(is_in || is_told, "no line states a loss or a change: {}", says());
            let is_stated = found.contains(&Severity::Lost) && is_told_apart(chunk);
            assert!(!is_in || !is_stated, "stated as lost, but there: {}", says());
        }
    }
}

/// Whether the chunk of a hostile log has a mark, which no other has: nobody can tell others apart in a prompt.
pub(crate) fn is_marked(chunk: &Chunk) -> bool {
    if matches!(chunk.body, Body::ToolResult { output: Output::Parts(_), .. }) {
        return false;
    }
    let text = format!("{:?}", chunk.body);
    text.split('<').skip(1).any(|rest| rest.split_once('>').is_some_and(|(mark, _)| mark.parse::<u32>().is_ok()))
}

fn says_nothing(chunk: &Chunk) -> bool {
    match &chunk.body {
        Body::Text { text, .. } | Body::Refusal { text } => text.is_empty(),
        Body::Thinking { text, signature: None, redacted: None } => text.is_empty(),
        _ => false,
    }
}

/// The index of the first message of the window, if messages were left out for it.
pub(crate) fn window(prompt: &Prompt) -> Option<u64> {
    prompt.report.iter().find(|line| line.rule == Rule::OutsideWindow).and_then(|line| line.message_index)
}

/// How many documents were left out because the target takes no more: a step of that limit may lie between two prompts.
fn over_limit(prompt: &Prompt) -> usize {
    let is_over = |line: &&ReportLine| line.rule == Rule::LeftOut && line.detail.starts_with("document removed");
    prompt.report.iter().filter(is_over).count()
}

/// Whether no limit moved on between two prompts: then the first is the beginning of the second.
pub(crate) fn is_within_a_step(first: &Prompt, second: &Prompt) -> bool {
    let steps = |prompt: &Prompt| (window(prompt), over_limit(prompt), forgotten(prompt));
    steps(first) == steps(second)
}

/// The last thinking that was left out because its turn is older than those whose thinking is sent.
fn forgotten(prompt: &Prompt) -> Option<(Option<u64>, Option<u32>)> {
    let is_older = |line: &&ReportLine| {
        line.rule == Rule::ThinkingLeftOut && line.why.as_deref().is_some_and(|why| why.contains("of an older turn"))
    };
    prompt.report.iter().filter(is_older).map(|line| (line.message_index, line.chunk_index)).max()
}

/// The index of the last message that a summary tells.
pub(crate) fn summarized(prompt: &Prompt) -> Option<u64> {
    let lines = prompt.report.iter().filter(|line| line.chunk_index.is_none());
    lines.filter(|line| line.rule == Rule::Summarized).find_map(|line| line.message_index)
}

/// What a request says.
struct Said<'a> {
    request: &'a str,
    /// The request without white space between its tokens, once this is looked at.
    compact: OnceCell<String>,
    strings: HashSet<&'a str>,
}

fn collect<'a>(value: &'a Value, strings: &mut HashSet<&'a str>) {
    match value {
        Value::String(text) => _ = strings.insert(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, strings)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, strings)),
        _ => {}
    }
}

/// Whether a chunk stands in a request.
fn is_in(chunk: &Chunk, said: &Said<'_>) -> bool {
    let has = |text: &str| said.strings.iter().any(|string| string.contains(text));
    let is_string = |text: &str| said.strings.contains(text);
    // JSON within JSON is on one line, or without white space between its tokens.
    let has_json = |text: &str| {
        let is_on_a_line = said.request.contains(&text.trim().replace(['\n', '\r'], " "));
        is_on_a_line || said.compact.get_or_init(|| compact(said.request)).contains(&compact(text))
    };
    // Arguments are a string on some wires, JSON on others.
    let has_arguments = |text: &str| is_string(text) || has_json(text);
    let has_data = |url: &str| has(url) || url.split_once(";base64,").is_some_and(|(_, data)| is_string(data));
    if chunk.native.as_ref().is_some_and(|native| has_json(native.json.as_str())) {
        return true;
    }
    match &chunk.body {
        Body::Text { text, annotations } => {
            let cited = annotations.as_ref().is_none_or(|citations| has_json(citations.as_str()));
            !text.is_empty() && has(text) && cited
        }
        Body::Refusal { text } => !text.is_empty() && has(text),
        Body::Thinking { text, signature, redacted } => {
            let opaque = signature.iter().chain(redacted);
            has(text) && opaque.clone().all(|opaque| is_string(opaque)) && (!text.is_empty() || opaque.count() > 0)
        }
        Body::ToolCall { name, arguments, .. } => is_string(name) && has_arguments(arguments),
        Body::ToolResult { output: Output::Text(text), .. } => has(text) || has_arguments(text),
        Body::ToolResult { output: Output::Parts(parts), .. } => parts.iter().all(|part| match &part.body {
            PartBody::Text { text } => has(text) || has_arguments(text),
            PartBody::Json { json } => has(json.as_str()) || has_arguments(json.as_str()),
            PartBody::Image(image) => has_data(&image.url),
            PartBody::Audio(audio) => audio.data.as_ref().is_some_and(|data| has(data)),
            PartBody::File(file) => [&file.data, &file.url].into_iter().flatten().any(|place| has_data(place)),
            _ => false,
        }),
        Body::Image(image) => has_data(&image.url),
        Body::Audio(audio) => audio.data.as_ref().is_some_and(|data| has(data)),
        Body::File(file) => [&file.data, &file.url].into_iter().flatten().any(|place| has_data(place)),
        Body::Opaque { json, .. } => has_json(json.as_str()),
        _ => false,
    }
}

/// JSON without the white space between its tokens.
fn compact(json: &str) -> String {
    let (mut quoted, mut escaped) = (false, false);
    let is_kept = |character: &char| {
        let is_text = quoted;
        quoted ^= *character == '"' && !escaped;
        escaped = is_text && *character == '\\' && !escaped;
        is_text || !character.is_ascii_whitespace()
    };
    json.chars().filter(is_kept).collect()
}

/// Fails if a target has no prompt where it had one of the messages before, or if the prompt does not begin with that one,
/// within a step of the window.
pub(crate) fn assert_prefixes(id: &str, targets: &[Target], messages: &[StoredMessage], options: &PromptOptions) {
    let is_compared = |at: usize| {
        let (before, rest) = messages.split_at(at);
        let ends_rounds = options.finished_tools != FinishedTools::Keep && rest[0].message.role == Role::User;
        !ends_rounds && !may_change(before, &rest[0].message)
    };
    let compared: Vec<bool> = (0..messages.len()).map(is_compared).collect();
    // Of so many messages each.
    let grown: Vec<Conversation> =
        (0..=messages.len()).map(|count| Conversation::new(messages[..count].to_vec())).collect();
    for target in targets {
        let mut last: Option<Prompt> = None;
        for (at, conversation) in grown.iter().enumerate() {
            let prompt = prompt_of(*target, conversation, options);
            if let Some(first) = &last {
                let at = at - 1;
                let second =
                    prompt.as_ref().unwrap_or_else(|| panic!("{id} {target} at {at} {options:?}: nothing to send"));
                if compared[at] && is_within_a_step(first, second) {
                    let (prefix, list) = (prefix(first), list(second));
                    assert!(list.starts_with(&prefix), "{id} {target} at {at} {options:?}:\n{prefix}\n{list}");
                }
            }
            last = prompt;
        }
    }
}

/// The bytes of the message list, without a bridge that is there only because the list ends, and without what closes it.
pub(crate) fn prefix(prompt: &Prompt) -> String {
    let list = list(prompt);
    let has_bridge = prompt.report.iter().any(|line| line.rule == Rule::BridgeAdded);
    let messages: Vec<&RawValue> = serde_json::from_str(list).unwrap();
    let end = match &messages[..] {
        [.., last, bridge] if has_bridge => {
            assert!(bridge.get().contains("\"user\""), "the bridge is no user message: {bridge}");
            last.get().as_ptr() as usize + last.get().len() - list.as_ptr() as usize
        }
        [bridge] if has_bridge => panic!("nothing but a bridge: {bridge}"),
        _ => list.len(),
    };
    list.get(..end).unwrap().trim_end_matches(['"', ']', '}']).to_owned()
}

/// The bytes of the message list.
pub(crate) fn list(prompt: &Prompt) -> &str {
    let request: BTreeMap<&str, &RawValue> = serde_json::from_str(prompt.request.get()).unwrap();
    let list = ["messages", "input", "contents"].iter().find_map(|key| request.get(key));
    list.unwrap_or_else(|| panic!("no message list: {}", prompt.request)).get()
}

/// Whether a message may change the prompt of the messages before it: a system message, or a first real result for one of
/// their calls.
pub(crate) fn may_change(before: &[StoredMessage], message: &Message) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for chunk in
        before.iter().flat_map(|stored| stored.message.chunks.iter().map(move |chunk| (stored.message.role, chunk)))
    {
        match chunk {
            (Role::Assistant, Chunk { body: Body::ToolCall { id, .. }, .. }) => open.push(id),
            (_, Chunk { body: Body::ToolResult { tool_call_id, .. }, .. }) => {
                if let Some(at) = open.iter().rposition(|id| id == tool_call_id) {
                    open.remove(at);
                }
            }
            _ => {}
        }
    }
    message.role == Role::System
        || message.chunks.iter().any(|chunk| {
            matches!(&chunk.body, Body::ToolResult { tool_call_id, .. } if open.contains(&tool_call_id.as_str()))
        })
}
