//! A request that is refused, to one that is accepted; or one that is of another wire than somebody said.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::align::Reading;
use super::edits::Edits;
use super::marks::kept;
use super::report::{left_out, named, place, unknown_fields};
use super::settings::Settings;
use super::smallest::edit;
use super::tools::crossing;
use crate::error::{Error, Result};
use crate::history::{Conversation, MessageState, Rule, StoredMessage};
use crate::json::fields::{Fields, array, is_empty, string};
use crate::json::object::merged;
use crate::model::{Body, Message, Native, Role};
use crate::provider::check::judge::check;
use crate::provider::parameters::{RESPONSES, column};
use crate::provider::prompt::options::{FinishedTools, Images, NoContent, PromptOptions, Thinking};
use crate::provider::prompt::origin::maker;
use crate::provider::prompt::render::{Prompt, render};
use crate::provider::read::parse::{Readable, Request};
use crate::provider::read::parsed::Given;
use crate::provider::target::{Target, Wire};
use crate::provider::{WIRES, anthropic, bedrock_converse, openai_chat};

/// Reads a request of one wire, and writes it as a target takes it: the messages in it are reconciled and rendered as if
/// they came from a store.
///
/// Where both are of the same wire, the repair is the smallest edit. A request in which [`check`](crate::provider::check())
/// finds nothing that is refused comes back as it is, byte for byte. Otherwise only those messages are written again that a rule
/// objects to; all others, and all other fields of the request, keep their bytes, and white space stays. What is not known
/// stays too. Each difference has a line in the report.
///
/// Between wires the tools go along, as the target declares them, unless the options name others; tools that only one provider
/// has are left out. So do the parameters that both wires have: the length of the answer, temperature, the choice of tools, the
/// form of the answer. The name of a model goes along where both have the same models; elsewhere the options name one.
///
/// The report holds, in this order: what could not be read as it is; what was wrong with the conversation; what the
/// target does not take; what became of the other fields; what is refused still, where that can only be cured by the caller.
/// A line's place is a path into the request that was given, in the notation of [`check`](crate::provider::check()); of a
/// message that was added, where it is now. Message indexes are positions in the list of messages that
/// [`parse`](crate::provider::parse()) reads.
///
/// Costs a parse, a prompt, and a few checks: linear in the length of the request.
///
/// ```
/// use conversation_store::provider::{PromptOptions, Target, repair};
///
/// let request = r#"{"model": "gpt-5", "messages": [
///     {"role": "user", "content": "What time is it?"},
///     {"role": "assistant", "content": null, "tool_calls": [
///         {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]},
///     {"role": "user", "content": "Well?"}]}"#;
/// let repaired = repair(Target::OPENAI_CHAT, Target::OPENAI_CHAT, request, &PromptOptions::new())?;
/// assert!(repaired.request.get().starts_with(r#"{"model": "gpt-5", "messages": ["#));
/// assert!(repaired.request.get().contains(r#"{"role":"tool","tool_call_id":"call_1","content":"Interrupted"#));
/// assert_eq!(repaired.report[0].place.as_deref(), Some("messages[1].tool_calls[0]"));
/// # Ok::<(), conversation_store::Error>(())
/// ```
///
/// # Errors
/// As [`parse`](crate::provider::parse()) and [`render`](crate::provider::render()). `InvalidInput` also if most of the
/// request cannot be read as one of `from`, but as one of another wire: the error names it.
pub fn repair(from: Target, target: Target, request: &str, options: &PromptOptions) -> Result<Prompt> {
    let text = Readable::of(request);
    let crosses = from.wire().name != target.wire().name;
    let is_asked = asks_for_more(options);
    if !crosses
        && !is_asked
        && let Some(accepted) = accepted(target, &text)
    {
        return Ok(accepted);
    }
    let read = Request::read(from, &text).map_err(|error| hinted(error, from, &text))?;
    refuse_other_wire(from, &text)?;
    let Request { parsed, mut rest } = read;
    let before = rest.clone();
    let (options, lost) =
        if crosses { crossing(from, &mut rest, options) } else { (Cow::Borrowed(options), Vec::new()) };
    let places = parsed.places;
    let mut messages = parsed.messages;
    if column(target) == RESPONSES && before.peek("store").is_some_and(|store| store.get() == "false") {
        messages.iter_mut().for_each(forget);
    }
    let mut messages: Vec<StoredMessage> = (0..).zip(messages).map(|(at, message)| stored(at, message)).collect();
    if crosses {
        state_origin(from, target, before.peek("model").and_then(string), &mut messages);
    }
    let prompt = render(target, &Conversation::new(messages.clone()), &options)?;
    let mut report = parsed.notes;
    // What came on a wire was made there, as far as anybody can tell.
    report.extend(prompt.report.into_iter().filter(|line| crosses || line.rule != Rule::OriginAssumed));
    let given = text.raw()?;
    if crosses {
        place(&mut report, &places);
        let mut unknown = left_out(unknown_fields(&messages), &prompt.request);
        place(&mut unknown, &places);
        report.append(&mut unknown);
        report.extend(lost);
        // A list of messages has nothing beside them.
        if !given.get().starts_with('{') {
            return Ok(Prompt { request: prompt.request, report });
        }
        let tools = from.wire().tools.field;
        let taken = before.peek(tools).filter(|_| rest.peek(tools).is_none());
        let (fields, lines) = Settings::cross(from, target, rest, taken, &prompt.request, options.model.as_deref());
        report.extend(lines);
        let request = merged(&prompt.request, fields).ok().and_then(|text| String::from_utf8(text).ok());
        let request = request.and_then(|text| RawValue::from_string(text).ok()).unwrap_or(prompt.request);
        return Ok(Prompt { request, report });
    }
    let rendered = kept(target, given, prompt.request);
    let Some(mut edits) = Edits::new(target, given, &rendered) else {
        place(&mut report, &places);
        return Ok(Prompt { request: rendered, report });
    };
    if is_asked {
        edits.make_all(true, "as asked for");
    }
    let (written, lines) = edit(target, &mut edits)?;
    let request = RawValue::from_string(written)
        .map_err(|error| Error::InvalidInput(format!("it cannot be written: {error}")))?;
    report.extend(left_out(unknown_fields(&messages), &request));
    let mut report = named(report, &places, &edits, target);
    place(&mut report, &places);
    report.extend(lines);
    Ok(Prompt { request, report })
}

/// The request as it is, if the target refuses nothing of it.
fn accepted(target: Target, text: &Readable<'_>) -> Option<Prompt> {
    let findings = check(target, text.get()).ok()?;
    if findings.iter().any(|finding| finding.level.is_refused()) {
        return None;
    }
    let report = text.note().into_iter().collect();
    Some(Prompt { request: text.raw().ok()?.to_owned(), report })
}

/// Whether the options ask for another conversation than the one that is there. A model is named, not asked for.
fn asks_for_more(options: &PromptOptions) -> bool {
    let PromptOptions {
        model: _,
        thinking,
        thinking_turns,
        max_result_bytes,
        images,
        finished_tools,
        no_content,
        continue_last,
        last_messages,
        last_turns,
        max_tokens,
        tools,
    } = options;
    *thinking != Thinking::default()
        || *images != Images::default()
        || *finished_tools != FinishedTools::default()
        || *no_content != NoContent::default()
        || *continue_last
        || last_messages.or(*last_turns).or(*max_tokens).or(*thinking_turns).or(*max_result_bytes).is_some()
        || !tools.is_empty()
}

/// Leaves out what the server would have to look up, where it is to store nothing: references, and reasoning that is no
/// more than its id. What was thought in words stays.
fn forget(message: &mut Message) {
    message.chunks.retain(|chunk| !matches!(&chunk.body, Body::Opaque { kind, .. } if kind == "item_reference"));
    for chunk in &mut message.chunks {
        let has_content = |native: &Native| {
            let fields = Fields::read(native.json.as_str()).unwrap_or_default();
            fields.peek("content").is_some_and(|content| !is_empty(content))
        };
        if matches!(chunk.body, Body::Thinking { signature: None, redacted: None, .. }) {
            chunk.native = chunk.native.take().filter(has_content);
        }
    }
}

/// A message as if it had come out of a log.
fn stored(index: u64, message: Message) -> StoredMessage {
    let chunk_indexes = (0..).take(message.chunks.len()).collect();
    let seq = index + 1;
    StoredMessage { index, state: MessageState::Complete, first_seq: seq, last_seq: seq, chunk_indexes, message }
}

/// States who made what the model said in a request that goes to another wire, as far as the request has it: its model, or else
/// the wire that it is of. Signatures and encrypted thinking are good for their maker only.
fn state_origin(from: Target, target: Target, model: Option<String>, messages: &mut [StoredMessage]) {
    let maker = model.as_deref().and_then(maker);
    // Claude is on both, and its signatures hold on both: the model decides.
    let has_claude = |wire: &Wire| [anthropic::manner::NAME, bedrock_converse::manner::NAME].contains(&wire.name);
    let may_share = has_claude(from.wire()) && has_claude(target.wire());
    // Servers of any model speak this wire.
    let is_anybodys = from.wire().name == openai_chat::manner::NAME && from.dialect().is_none();
    let provider = maker.or_else(|| (!is_anybodys).then(|| (from.wire().provider)(from))).filter(|_| !may_share);
    for stored in messages.iter_mut().filter(|stored| stored.message.role == Role::Assistant) {
        let made = &mut stored.message.metadata;
        made.provider = made.provider.take().or_else(|| provider.map(str::to_owned));
        made.model = made.model.take().or_else(|| model.clone());
    }
}

/// The wire that a request looks like, if that is another one than it is read as: `read_as` refuses it, and the other leaves
/// at most half as many of its messages unread. Takes as long as a check of each wire.
///
/// ```
/// use conversation_store::provider::{Target, likely_wire};
///
/// let request = r#"{"max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]}"#;
/// let wire = likely_wire(Target::OPENAI_CHAT, request).map(|wire| wire.name);
/// assert_eq!(wire, Some("anthropic"));
/// ```
#[must_use]
pub fn likely_wire(read_as: Target, request: &str) -> Option<&'static Wire> {
    let text = Readable::of(request);
    let (strange, _) = strange(read_as, &text).filter(|(strange, _)| *strange > 0)?;
    other_wire(read_as, &text, strange)
}

/// Refuses a request of which most cannot be read as one of `from`, where another wire leaves at most half as many messages
/// unread. A request that `from` accepts is one of `from`, whatever it holds that the package does not know.
fn refuse_other_wire(from: Target, text: &Readable<'_>) -> Result<()> {
    let Some((strange, all)) = strange(from, text).filter(|(strange, all)| strange * 2 > *all) else { return Ok(()) };
    other_wire(from, text, strange).map_or(Ok(()), |wire| {
        Err(Error::InvalidInput(format!(
            "{strange} of {all} messages cannot be read as {from}; it looks like a request of {}: say so with --from",
            wire.name
        )))
    })
}

/// The wire that a request looks like of which `from` cannot read so many messages.
fn other_wire(from: Target, text: &Readable<'_>, strange: usize) -> Option<&'static Wire> {
    let (wire, less) = likely(from, text)?;
    (less * 2 <= strange && reads_more(Target::of(wire), from, text) && !is_accepted(from, text)).then_some(wire)
}

/// Whether a wire reads more than another in some message, and less in none. A message may have fields of a store's own, which
/// one wire keeps and another does not; what it says shows whose it is.
fn reads_more(wire: Target, than: Target, text: &Readable<'_>) -> bool {
    let Some(items) = text.raw().ok().and_then(|request| items(wire, request)) else { return false };
    let read = |target: Target, item: &RawValue| {
        let list = RawValue::from_string(format!("[{}]", item.get())).ok()?;
        let (parsed, _) = (target.wire().parse)(target, Given::List(&list)).ok()?;
        let chunks = parsed.messages.iter().flat_map(|message| &message.chunks);
        Some(chunks.filter(|chunk| !matches!(chunk.body, Body::Opaque { .. })).count())
    };
    let pairs = items.into_iter().map(|item| (read(wire, item), read(than, item)));
    let (mut more, mut less) = (false, false);
    for (of_wire, of_other) in pairs {
        more |= of_wire > of_other;
        less |= of_wire < of_other;
    }
    more && !less
}

/// The messages of a request of that wire, or of their array.
fn items(target: Target, request: &RawValue) -> Option<Vec<&RawValue>> {
    let is_list = request.get().starts_with('[');
    array(if is_list { request } else { Fields::of(request)?.peek(target.wire().messages)? })
}

/// Whether `from` refuses nothing of the request.
fn is_accepted(from: Target, text: &Readable<'_>) -> bool {
    check(from, text.get()).is_ok_and(|findings| !findings.iter().any(|finding| finding.level.is_refused()))
}

/// The error of a request that cannot be read, with the wire that it looks like.
fn hinted(error: Error, from: Target, text: &Readable<'_>) -> Error {
    match (error, likely(from, text)) {
        (Error::InvalidInput(problem), Some((wire, _))) => {
            Error::InvalidInput(format!("{problem}; it looks like a request of {}: say so with --from", wire.name))
        }
        (error, _) => error,
    }
}

/// The wire, other than `from`, that reads the most of the request, and how many messages it cannot read.
fn likely(from: Target, text: &Readable<'_>) -> Option<(&'static Wire, usize)> {
    let others = WIRES.iter().copied().filter(|wire| wire.name != from.wire().name);
    let read = others.filter_map(|wire| {
        let (strange, all) = strange(Target::of(wire), text)?;
        (all > 0 && strange * 2 <= all).then_some((wire, strange))
    });
    read.min_by_key(|(_, strange)| *strange)
}

/// How many of its messages a wire cannot read as they stand, and how many there are.
fn strange(target: Target, text: &Readable<'_>) -> Option<(usize, usize)> {
    let items = items(target, text.raw().ok()?)?;
    let strange = items.iter().filter(|item| Reading::of_item(target, item).is_strange).count();
    Some((strange, items.len()))
}
