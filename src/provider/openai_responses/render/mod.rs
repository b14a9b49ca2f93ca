//! A conversation as OpenAI Responses takes it, statelessly: all of it in `input`, nothing by reference.
//!
//! System messages stay where they were said, as items of the role system. Only a first one that came as `instructions`
//! is that again.

mod assistant;
mod attach;
mod items;
mod native;
mod pairs;
mod renderer;
mod request;
mod thinking;

use std::collections::{BTreeSet, HashSet};

use serde_json::value::RawValue;

use crate::error::Result;
use crate::history::ReportLine;
use crate::history::StoredMessage;
use crate::model::{Body, Role};
use crate::provider::openai_responses::manner::Manner;
use crate::provider::prompt::options::PromptOptions;
use crate::provider::prompt::render::{nothing_to_send, to_json};
use crate::provider::prompt::tool_id::{IdRule, NameRule};
use crate::provider::prompt::tools::declared;
use crate::provider::prompt::turns::{Turn, turns};
use crate::provider::target::Target;
use native::Given;
use pairs::Pairs;
use renderer::Renderer;
use request::Request;

/// OR-13.
const IDS: IdRule = IdRule { min: 1, max: 64, allows: |character| !character.is_control() };
/// OR-16.
const NAMES: NameRule = NameRule::words(128);

pub(crate) fn render(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
) -> Result<(Box<RawValue>, Vec<ReportLine>)> {
    let manner = Manner::of(target);
    let mut report = Vec::new();
    let turns = turns(messages, |_| IDS, NAMES, &mut report);
    let instructions = turns.first().and_then(instructions);
    let (pairs, stored) = (Pairs::find(&turns, manner.providers), turns.iter().map(|turn| turn.stored).collect());
    let mut renderer = Renderer {
        manner,
        options,
        report,
        input: Vec::new(),
        ids: HashSet::new(),
        customs: HashSet::new(),
        pairs,
        stored,
        at: 0,
    };
    for (at, turn) in turns.into_iter().enumerate().skip(usize::from(instructions.is_some())) {
        renderer.at = at;
        match turn.role {
            Role::Assistant => renderer.assistant(turn)?,
            _ => renderer.given(&turn),
        }
    }
    if renderer.input.is_empty() {
        return Err(nothing_to_send(target));
    }
    let tools = declared(&options.tools, NAMES, BTreeSet::new(), &mut renderer.report)?;
    let tools = tools.into_iter().map(Into::into).collect();
    let input = std::mem::take(&mut renderer.input);
    let request = to_json(&Request { instructions, input, tools })?;
    Ok((request, renderer.into_report()))
}

/// What a message says that came as the request's `instructions`.
fn instructions<'a>(turn: &Turn<'a>) -> Option<&'a str> {
    let [chunk] = turn.stored.message.chunks.as_slice() else { return None };
    let Body::Text { text, annotations: None } = &chunk.body else { return None };
    let given = Given::of(chunk).filter(|given| turn.role == Role::System && given.is_instructions(text));
    given.map(|_| text.as_str()).filter(|text| !text.is_empty())
}
