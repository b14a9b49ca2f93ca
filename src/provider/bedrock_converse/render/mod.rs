//! A conversation as Converse takes it.
//!
//! Roles alternate: what one side says before the other does is one message. Each message is decided by what precedes it
//! alone, so that a prompt that goes on begins with the bytes of the one before.

mod assistant;
mod attach;
mod limits;
mod names;
mod native;
mod renderer;
mod request;
mod results;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::error::Result;
use crate::history::report::Fact;
use crate::history::{ReportLine, StoredMessage};
use crate::model::Role;
use crate::provider::bedrock_converse::models::is_claude;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::tool_id::{IdRule, NameRule};
use crate::provider::prompt::tools::declared;
use crate::provider::prompt::turns::{BRIDGE, Speaker, turns};
use crate::provider::prompt::written::{nothing_to_send, written};
use crate::provider::target::Target;
use names::Names;
use renderer::Renderer;
use request::{Block, Request, ToolConfig};

/// BC-12, as Claude takes it.
const IDS: IdRule = IdRule { min: 1, max: 64, allows: is_id_character };
/// BC-12, as others do. Recorded: Kimi's ids are `functions.get_weather:0`.
const WIDER_IDS: IdRule =
    IdRule { min: 1, max: 64, allows: |character| is_id_character(character) || matches!(character, '.' | ':') };
/// BC-13.
const NAMES: NameRule = NameRule::words(64);

fn is_id_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

pub(crate) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let mut report = Vec::new();
    let is_others = options.model.as_deref().and_then(is_claude) == Some(false);
    let turns = turns(messages, |_| if is_others { WIDER_IDS } else { IDS }, NAMES, &mut report);
    let mut renderer = Renderer {
        options,
        report,
        system: Vec::new(),
        messages: Vec::new(),
        called: BTreeSet::new(),
        names: Names::default(),
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
        // BC-07.
        if self.messages.last().is_some_and(|last| last.role == Speaker::Assistant) {
            let place = format!("messages[{}]", self.messages.len());
            self.report.push(ReportLine::new(Fact::BridgeAdded { text: BRIDGE }).at(place));
            self.say(Speaker::User, vec![Block::Text(Cow::Borrowed(BRIDGE))]);
        }
        // BC-14.
        let called = std::mem::take(&mut self.called).into_iter().map(Cow::Owned).collect();
        let tools = declared(&self.options.tools, NAMES, called, &mut self.report)?;
        let tools: Vec<_> = tools.into_iter().map(Into::into).collect();
        let tool_config = (!tools.is_empty()).then_some(ToolConfig { tools });
        let request = written(&Request { system: self.system, messages: self.messages, tool_config })?;
        Ok((request, self.report))
    }
}
