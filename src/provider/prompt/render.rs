//! A conversation to a request: what every wire needs first, then the wire's own renderer.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::options::{FinishedTools, Images, PromptOptions};
use super::window::limits;
use super::{call_text, left_out};
use crate::error::{Error, Result};
use crate::history::report::Fact;
use crate::history::{Conversation, ReportLine, StoredMessage, parted};
use crate::model::{Body, Chunk, Role};
use crate::provider::target::{Target, Wire};

/// A conversation as a provider takes it.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The part of the provider's request that holds the conversation, as compact JSON: an object with the wire's keys
    /// (`openai-chat`: `messages`, and `tools` where some are declared or the dialect needs them). Model, limits and the
    /// like are the caller's to add.
    pub request: Box<RawValue>,
    /// What was done to the conversation: reconcile's lines first, then the renderer's.
    pub report: Vec<ReportLine>,
}

/// Renders a conversation for a target.
///
/// Whatever the conversation holds, [`check`](crate::provider::check()) finds nothing hard in the request. Every chunk is in
/// it unchanged, or has a line in the report. With the same options, the request of a longer conversation begins with the
/// bytes of the request before, so that a provider's prompt cache holds.
///
/// ```
/// use conversation_store::model::Message;
/// use conversation_store::provider::{PromptOptions, Target, render};
/// use conversation_store::Store;
///
/// let store = Store::open("memory:")?;
/// store.append("chat", &[Message::user("hello")])?;
/// let prompt = render(Target::OPENAI_CHAT, &store.load("chat")?, &PromptOptions::new())?;
/// assert_eq!(prompt.request.get(), r#"{"messages":[{"role":"user","content":"hello"}]}"#);
/// # Ok::<(), conversation_store::Error>(())
/// ```
///
/// # Errors
/// `NothingToSend` if nothing of the conversation is left for this target, `TooLarge` if it is more than the target takes,
/// `InvalidInput` if the declared tools have one name twice, or parameters that are no object.
pub fn render(target: Target, conversation: &Conversation, options: &PromptOptions) -> Result<Prompt> {
    let say = |messages: &[StoredMessage]| (target.wire().render)(target, messages, options);
    let (request, report) = render_with(target, conversation, options, say)?;
    Ok(Prompt { request, report })
}

/// What is said of a conversation, and its report. `say`: in the words of the wire.
pub(crate) fn render_with<T>(
    target: Target,
    conversation: &Conversation,
    options: &PromptOptions,
    say: impl FnOnce(&[StoredMessage]) -> Result<(T, Vec<ReportLine>)>,
) -> Result<(T, Vec<ReportLine>)> {
    let mut report = conversation.report().to_vec();
    let mut lines = Vec::new();
    let messages = left_out::summarized(conversation, &mut report);
    let messages = match options.images {
        Images::Send => messages,
        Images::Omit => left_out::without_images(messages, &mut lines),
    };
    let messages = match options.max_result_bytes {
        Some(most) => left_out::shortened(messages, most, &mut lines),
        None => messages,
    };
    let sent = match options.finished_tools {
        FinishedTools::Keep => Cow::Borrowed(&*messages),
        FinishedTools::Flatten | FinishedTools::Drop => {
            Cow::Owned(left_out::without_rounds(target, &messages, options, &mut lines))
        }
    };
    let (sent, forgotten) = left_out::without_thinking(target, &messages, sent, options, &mut lines);
    let begin = limits::begin(target, &messages, &sent, options, &mut report);
    if begin > 0 {
        let held: HashSet<u64> = messages.iter().skip(begin).map(|stored| stored.index).collect();
        lines.retain(|line| line.message_index.is_none_or(|index| held.contains(&index)));
    }
    report.append(&mut lines);
    let held = limits::held(sent, begin);
    let (said, mut lines) = say(&steps(target.wire(), &held))?;
    left_out::without_lines(&mut lines, &forgotten);
    report.append(&mut lines);
    call_text::report(&held, &mut report);
    report.extend(unsigned_texts(target.wire(), &held));
    Ok((said, report))
}

/// The steps of messages in which a provider ran tools itself, apart unless the wire has them in one message: what is said
/// after their results is a message after them. What came from the wire itself goes back as it came.
fn steps<'a>(wire: &Wire, messages: &'a [StoredMessage]) -> Cow<'a, [StoredMessage]> {
    if wire.joins_steps {
        return Cow::Borrowed(messages);
    }
    parted(messages, |call| call.native.as_ref().is_none_or(|native| native.wire != wire.name))
}

/// Gemini signs texts, and no other wire has a place for that. Texts that another wire signed.
fn unsigned_texts(wire: &Wire, messages: &[StoredMessage]) -> Vec<ReportLine> {
    // What is kept is compact, and a quote in a text is escaped: only a field is written so.
    const SIGNATURES: &[&str] = &["\"thoughtSignature\":\"", "\"thought_signature\":\""];
    let is_signed = |chunk: &Chunk| {
        let native = chunk.native.as_ref().filter(|native| native.wire != wire.name && is_text(&chunk.body));
        native.is_some_and(|native| SIGNATURES.iter().any(|name| native.json.as_str().contains(name)))
    };
    let mut lines = Vec::new();
    for stored in messages.iter().filter(|stored| stored.message.role == Role::Assistant) {
        let signed = stored.message.chunks.iter().enumerate().filter(|(_, chunk)| is_signed(chunk));
        lines.extend(signed.map(|(at, _)| ReportLine::chunk(Fact::TextSignatureRemoved, stored, at)));
    }
    lines
}

/// Whether this is text that is sent.
fn is_text(body: &Body) -> bool {
    matches!(body, Body::Text { text, .. } if !text.trim().is_empty())
}

/// A wire's request as JSON.
pub(crate) fn to_json(request: &impl Serialize) -> Result<Box<RawValue>> {
    to_raw_value(request).map_err(|error| Error::InvalidInput(format!("the prompt cannot be written: {error}")))
}

pub(crate) fn nothing_to_send(target: Target) -> Error {
    Error::NothingToSend(format!("no message of the conversation has content that {target} takes"))
}
