//! A conversation as OpenAI Chat Completions takes it, and as the dialects of that wire do.

mod answer;
mod attach;
mod echo;
mod order;
mod own;
mod renderer;
mod request;
mod said;
mod thinking;

use std::cell::RefCell;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::error::Result;
use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::model::Role;
use crate::provider::openai_chat::manner::Manner;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::origin::Whose;
use crate::provider::prompt::render::{nothing_to_send, to_json};
use crate::provider::prompt::tool_id::NameRule;
use crate::provider::prompt::tools::declared;
use crate::provider::prompt::turns::{Call, Turn, turns};
use crate::provider::target::Target;
use renderer::Renderer;
use request::{AnyCall, Message, Own, Part, Request, SEPARATOR, Tool};
use said::Said;

/// OC-14.
const NAMES: NameRule = NameRule::words(64);
/// OC-12.
const CALLS: usize = 128;

pub(crate) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let manner = Manner::of(target);
    let mut report = Vec::new();
    let ids = |stored: &StoredMessage| if goes_back(stored, manner, options) { manner.ids.long() } else { manner.ids };
    let turns = turns(messages, ids, NAMES, &mut report);
    let echoes = target.dialect().is_none();
    let (messages, text_fields) = (Vec::new(), RefCell::default());
    let mut renderer = Renderer { target, manner, echoes, options, report, messages, text_fields };
    for turn in turns {
        renderer.turn(turn);
    }
    if !renderer.end() {
        return Err(nothing_to_send(target));
    }
    let Renderer { messages, mut report, .. } = renderer;
    let called = if manner.declares { called(&messages) } else { BTreeSet::new() };
    let tools = declared(&options.tools, NAMES, called, &mut report)?;
    let tools = tools.into_iter().map(|function| Tool::Function { function: function.into() }).collect();
    Ok((to_json(&Request { messages, tools })?, report))
}

/// Whether the ids of a message's calls go back to the model that made them, as far as anybody can tell.
fn goes_back(stored: &StoredMessage, manner: &Manner, options: &PromptOptions) -> bool {
    let whose = || Whose::of(&stored.message.metadata, manner.providers, options.model.as_deref());
    manner.own_ids && options.model.is_some() && stored.message.metadata.model.is_some() && whose() == Whose::Own
}

/// The tools that were called.
fn called<'a>(messages: &[Message<'a>]) -> BTreeSet<Cow<'a, str>> {
    let calls = messages.iter().flat_map(|message| match message {
        Message::Assistant { tool_calls, .. } => tool_calls.as_slice(),
        _ => &[],
    });
    let name = |call: &AnyCall<'a>| match call {
        AnyCall::Made(call) => call.function.name.clone(),
        AnyCall::Given(call) => call.name.clone(),
    };
    calls.map(name).collect()
}

impl<'a> Renderer<'a> {
    fn turn(&mut self, turn: Turn<'a>) {
        let (stored, role, before) = (turn.stored, turn.role, self.messages.len());
        let said = self.said(&turn);
        let media = match role {
            Role::Assistant => self.assistant(turn, said),
            Role::System => {
                self.system(&turn, said.parts);
                said.media
            }
            Role::User | Role::Tool => {
                self.user(stored, said.parts);
                said.media
            }
        };
        if role != Role::Tool {
            self.name(stored, before);
        }
        self.user(stored, media);
    }

    /// The message, its calls and their answers. Gives the media that have to follow.
    fn assistant(&mut self, turn: Turn<'a>, said: Said<'a>) -> Vec<Part<'a>> {
        let Said { mut parts, mut media, refusals, thinking, mut own } = said;
        let says_more = !refusals.is_empty() || !media.is_empty();
        let reasoning = self.thinking(&turn, thinking, &mut parts, &mut own, says_more);
        let content = self.content(parts);
        let refusal = (!refusals.is_empty()).then(|| refusals.join(SEPARATOR));
        let stored = turn.stored;
        let mut turn = turn;
        let mut calls = std::mem::take(&mut turn.calls).into_iter();
        let mut batch: Vec<Call<'a>> = calls.by_ref().take(CALLS).collect();
        if content.is_some() || refusal.is_some() || !batch.is_empty() {
            let tool_calls = self.calls(&turn, &batch);
            self.say(stored, content, reasoning, refusal, tool_calls, Own(own));
        } else if !own.is_empty() {
            self.note_alone(stored);
        }
        while !batch.is_empty() {
            for call in batch {
                self.answer(call, &mut media);
            }
            batch = calls.by_ref().take(CALLS).collect();
            if !batch.is_empty() {
                // More calls than one message may hold: the next message goes on with them.
                let reasoning = self.manner.reasoning_content.map(str::to_owned);
                let tool_calls = self.calls(&turn, &batch);
                self.say(stored, None, reasoning, None, tool_calls, Own::default());
            }
        }
        media
    }
}
