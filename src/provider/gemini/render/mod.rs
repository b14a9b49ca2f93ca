//! A conversation as Gemini's generateContent takes it, and as Vertex AI does.
//!
//! Roles alternate, but for what follows answers to calls: they stand in a content of their own, since newer models refuse
//! one with other parts (GM-24; gh:vellum-ai/vellum-assistant#39495), and a content of the user may follow it. Whatever is
//! said is decided by what precedes it alone, so that a prompt that goes on begins with the bytes of the one before.

mod assistant;
mod attach;
mod native;
pub(crate) mod object;
mod renderer;
mod request;
mod responses;
mod thinking;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::error::Result;
use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::history::report::{Fact, Taken};
use crate::model::Role;
use crate::provider::gemini::manner::Manner;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::tool_id::{IdRule, NameRule};
use crate::provider::prompt::tools::declared;
use crate::provider::prompt::turns::{BRIDGE, Turn, signed_turns};
use crate::provider::prompt::written::{nothing_to_send, written};
use crate::provider::target::Target;
use renderer::Renderer;
use request::{Functions, Part, Request, Speaker, System};

/// Ids are not sent: calls and responses meet by their order (GM-08, GM-11).
const IDS: IdRule = IdRule { min: 1, max: 64, allows: |_| true };
/// GM-16.
const NAMES: NameRule = NameRule { max: 64, marks: &['_', '.', ':', '-'], begins_freely: false };

pub(crate) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let manner = Manner::of(target);
    let mut report = Vec::new();
    let turns = signed_turns(messages, |_| IDS, NAMES, &mut report);
    let mut renderer = Renderer { manner, options, report, system: Vec::new(), contents: Vec::new() };
    for turn in turns {
        match turn.role {
            Role::Assistant => renderer.model(turn),
            _ => renderer.user(&turn),
        }
    }
    renderer.finish(target)
}

impl<'a> Renderer<'a> {
    /// A message that is not the model's. What the system says at the beginning has a place of its own (GM-25); what it
    /// says later is said by the user there.
    fn user(&mut self, turn: &Turn<'a>) {
        let leads = turn.role == Role::System && self.contents.is_empty();
        let mut parts = Vec::new();
        for (at, chunk) in turn.said() {
            let Some(part) = self.said(turn, at, chunk) else { continue };
            match part {
                Part::Text { .. } if leads => self.system.push(part),
                _ if leads => {
                    self.note_moved(turn, at);
                    parts.push(part);
                }
                _ => {
                    if turn.role == Role::System {
                        self.note(Fact::SaidByUser(Taken::LaterSystem), turn.stored, at);
                    }
                    parts.push(part);
                }
            }
        }
        self.say(Speaker::User, parts);
    }

    fn finish(mut self, target: Target) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
        if self.contents.is_empty() {
            return Err(nothing_to_send(target));
        }
        // GM-12.
        if self.contents.last().is_some_and(|last| last.role == Speaker::Model) {
            let place = format!("contents[{}]", self.contents.len());
            self.report.push(ReportLine::new(Fact::BridgeAdded { text: BRIDGE }).at(place));
            self.say(Speaker::User, vec![Part::Text { text: Cow::Borrowed(BRIDGE) }]);
        }
        let system_instruction = Some(System { parts: self.system }).filter(|system| !system.parts.is_empty());
        let tools = declared(&self.options.tools, NAMES, BTreeSet::new(), &mut self.report)?;
        let function_declarations: Vec<_> = tools.into_iter().map(Into::into).collect();
        let tools = (!function_declarations.is_empty()).then_some([Functions { function_declarations }]);
        let request = written(&Request { system_instruction, contents: self.contents, tools })?;
        Ok((request, self.report))
    }
}
