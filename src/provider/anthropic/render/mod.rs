//! A conversation as Anthropic Messages takes it, and as Bedrock does.
//!
//! Roles alternate: what one side says before the other does is one message. Each message is decided by what precedes it
//! alone, so that a prompt that goes on begins with the bytes of the one before.

mod assistant;
mod attach;
mod fields;
mod hosted;
mod limits;
mod native;
mod plan;
mod renderer;
mod request;
mod results;
mod thinking;
mod thought;
mod user;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::history::report::Fact;
use crate::model::Role;
use crate::provider::anthropic::manner::Manner;
use crate::provider::anthropic::models::refuses_prefill;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::tool_id::IdRule;
use crate::provider::prompt::tools::declared;
use crate::provider::prompt::turns::{BRIDGE, Origin, Speaker, turns};
use crate::provider::prompt::written::{nothing_to_send, written};
use crate::provider::target::Target;
use crate::provider::text::without_end;
use renderer::Renderer;
use request::{Block, Request};

/// AN-16; the length is Bedrock's (BR-01), so that a history may move.
const IDS: IdRule = IdRule { min: 1, max: 64, allows: is_id_character };
/// Bytes of a request (AN-42).
const BYTES: usize = 32 * 1024 * 1024;
/// Messages of a request (AN-01).
const MESSAGES: usize = 100_000;
fn is_id_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

pub(crate) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let manner = Manner::of(target);
    let mut report = Vec::new();
    let turns = turns(messages, |_| IDS, manner.names, &mut report);
    let mut renderer = Renderer {
        manner,
        options,
        report,
        system: Vec::new(),
        messages: Vec::new(),
        called: BTreeSet::new(),
        server_calls: HashSet::new(),
        unanswered: HashSet::new(),
        asked: Vec::new(),
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

impl<'a> Renderer<'a> {
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

    /// The assistant's words are continued where the model is known to do so, and answered elsewhere. A paused turn is sent
    /// back as it is: the provider goes on with it.
    fn end(&mut self) {
        if self.is_paused() {
            return;
        }
        let takes_prefill = self.options.model.as_deref().and_then(refuses_prefill) == Some(false);
        let Some(last) = self.messages.last_mut().filter(|last| last.role == Speaker::Assistant) else { return };
        if let Some(Block::Text { text }) = last.content.last_mut().filter(|_| takes_prefill) {
            let trimmed = without_end(text);
            if trimmed.len() < text.len() {
                *text = Cow::Owned(trimmed.to_owned());
                if let Some(Origin { stored, chunk }) = self.last_text {
                    self.note(Fact::EndTrimmed, stored, chunk);
                }
            }
            return;
        }
        let place = format!("messages[{}]", self.messages.len());
        self.report.push(ReportLine::new(Fact::BridgeAdded { text: BRIDGE }).at(place));
        self.say(Speaker::User, vec![Block::Text { text: Cow::Borrowed(BRIDGE) }]);
    }
}
