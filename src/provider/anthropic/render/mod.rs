//! A conversation as Anthropic Messages takes it, and as Bedrock does.
//!
//! Roles alternate: what one side says before the other does is one message. Each message is decided by what precedes it
//! alone, so that a prompt that goes on begins with the bytes of the one before.

mod assistant;
mod fields;
mod hosted;
mod limits;
mod media;
mod native;
mod results;
mod thinking;
mod user;
mod wire;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use serde_json::value::RawValue;

use super::NAME;
use super::model::refuses_prefill;
use crate::error::{Error, Result};
use crate::history::StoredMessage;
use crate::history::{ReportLine, Rule};
use crate::model::Role;
use crate::provider::prompt::{nothing_to_send, written};
use crate::provider::text::without_end;
use crate::provider::tool_id::{IdRule, NameRule};
use crate::provider::tools::declared;
use crate::provider::turns::{BEGINNING, BRIDGE, turns};
use crate::provider::{PromptOptions, Target, dialect};
use wire::{Block, Message, Origin, Request, Speaker};

/// How a server speaks this wire.
#[derive(Debug)]
pub(in crate::provider) struct Manner {
    /// The provider whose answers are the server's.
    pub(in crate::provider) provider: &'static str,
    /// The providers whose thinking is the server's own. Claude's signatures hold on all of its platforms
    /// (platform.claude.com extended-thinking).
    pub(in crate::provider) providers: &'static [&'static str],
    /// What tools may be called.
    pub(in crate::provider) names: NameRule,
    /// Whether images and documents may be at an address.
    pub(in crate::provider) addresses: bool,
    /// Whether the tools of the history have to be declared.
    pub(in crate::provider) declares: bool,
}

/// The providers by which Claude is served.
pub(in crate::provider) const PROVIDERS: &[&str] = &["anthropic", "bedrock"];
/// As Anthropic speaks it. The name: AN-17.
const ANTHROPIC: Manner =
    Manner { provider: NAME, providers: PROVIDERS, names: NameRule::words(128), addresses: true, declares: false };

impl Manner {
    pub(in crate::provider) fn of(target: Target) -> &'static Self {
        match target.dialect().map(|dialect| &dialect.manner) {
            Some(dialect::Manner::Anthropic(manner)) => manner,
            _ => &ANTHROPIC,
        }
    }
}

/// AN-16; the length is Bedrock's (BR-01), so that a history may move.
const IDS: IdRule = IdRule { min: 1, max: 64, allows: is_id_character };
/// Bytes of a request (AN-42).
const BYTES: usize = 32 * 1024 * 1024;
/// Messages of a request (AN-01).
const MESSAGES: usize = 100_000;
fn is_id_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

pub(super) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let manner = Manner::of(target);
    let mut report = Vec::new();
    let turns = turns(messages, IDS, manner.names, &mut report);
    let mut renderer = Renderer {
        manner,
        options,
        report,
        system: Vec::new(),
        messages: Vec::new(),
        called: BTreeSet::new(),
        server_calls: HashSet::new(),
        last_text: None,
    };
    for turn in turns {
        match turn.role {
            Role::Assistant => renderer.assistant(turn),
            Role::System | Role::User | Role::Tool => renderer.user(&turn),
        }
    }
    renderer.finish(target)
}

struct Renderer<'a> {
    manner: &'static Manner,
    options: &'a PromptOptions,
    report: Vec<ReportLine>,
    system: Vec<Block<'a>>,
    messages: Vec<Message<'a>>,
    /// The tools that were called.
    called: BTreeSet<String>,
    /// The ids of the calls that the provider ran itself.
    server_calls: HashSet<String>,
    /// Whose text was said last.
    last_text: Option<Origin<'a>>,
}

impl<'a> Renderer<'a> {
    /// Adds to the message of the speaker, or begins one.
    fn say(&mut self, speaker: Speaker, mut blocks: Vec<Block<'a>>) {
        if blocks.is_empty() {
            return;
        }
        if self.messages.is_empty() && speaker == Speaker::Assistant {
            let detail = "the target wants the user to begin: a first message was made";
            self.report.push(ReportLine::new(Rule::TurnMade, detail));
            self.say(Speaker::User, vec![Block::Text { text: Cow::Borrowed(BEGINNING) }]);
        }
        match self.messages.last_mut().filter(|last| last.role == speaker) {
            Some(last) => last.content.append(&mut blocks),
            None => self.messages.push(Message { role: speaker, content: blocks }),
        }
    }

    fn finish(mut self, target: Target) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
        if self.messages.is_empty() {
            return Err(nothing_to_send(target));
        }
        limits::keep_to_limits(&mut self.messages, &mut self.report);
        self.end();
        let called = if self.manner.declares { self.called } else { BTreeSet::new() };
        let called = called.into_iter().map(Cow::Owned).collect();
        let tools = declared(&self.options.tools, self.manner.names, called, &mut self.report)?;
        let tools = tools.into_iter().map(Into::into).collect();
        let request = Request { system: self.system, messages: self.messages, tools };
        if request.messages.len() > MESSAGES {
            return Err(Error::TooLarge(format!("{} messages, {target} takes {MESSAGES}", request.messages.len())));
        }
        let request = written(&request)?;
        if request.get().len() > BYTES {
            return Err(Error::TooLarge(format!("{} bytes, {target} takes {BYTES}", request.get().len())));
        }
        Ok((request, self.report))
    }

    /// The assistant's words are continued where the model is known to do so, and answered elsewhere.
    fn end(&mut self) {
        let takes_prefill = self.options.model.as_deref().and_then(refuses_prefill) == Some(false);
        let Some(last) = self.messages.last_mut().filter(|last| last.role == Speaker::Assistant) else { return };
        if let Some(Block::Text { text }) = last.content.last_mut().filter(|_| takes_prefill) {
            let trimmed = without_end(text);
            if trimmed.len() < text.len() {
                *text = Cow::Owned(trimmed.to_owned());
                let detail = "white space at the end of the last text was left out";
                if let Some(Origin { stored, chunk }) = self.last_text {
                    self.note(Rule::Altered, stored, chunk, detail);
                }
            }
            return;
        }
        let detail = format!("the target does not end on the assistant's words: {BRIDGE:?} was added");
        self.report.push(ReportLine::new(Rule::BridgeAdded, detail));
        self.say(Speaker::User, vec![Block::Text { text: Cow::Borrowed(BRIDGE) }]);
    }

    /// Whether a message of the assistant may begin with thinking here: it is the first of its side, or the provider's own
    /// tools gave their results last.
    fn may_think(&self) -> bool {
        let allows =
            |last: &Message<'_>| last.role == Speaker::User || last.content.last().is_some_and(Block::is_server_result);
        self.messages.last().is_none_or(allows)
    }

    fn note(&mut self, rule: Rule, stored: &StoredMessage, chunk: usize, detail: impl Into<String>) {
        self.report.push(ReportLine::chunk(rule, stored, chunk, detail));
    }
}
