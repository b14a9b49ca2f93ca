//! The parameters of a request that appends, and of one that renders.

use std::str::FromStr as _;

use crate::log::{AppendOptions, Durability, ExpectedHead};
use crate::model::Json;
use crate::provider::{FinishedTools, Images, NoContent, PromptOptions, Target, Thinking, Tool};
use crate::server::app::Call;
use crate::server::refusal::Refusal;

/// `expect`, `durability`, and the idempotency key.
pub(super) fn append(call: &Call) -> Result<AppendOptions, Refusal> {
    let mut options = AppendOptions::new();
    options.idempotency_key = call.idempotency_key()?.map(str::to_owned);
    options.expected = match call.query.get("expect") {
        None => ExpectedHead::Any,
        Some("new") => ExpectedHead::NewConversation,
        Some(seq) => {
            ExpectedHead::At(seq.parse().map_err(|_| Refusal::value("expect", "expected the last seq, or `new`"))?)
        }
    };
    options.durability =
        one_of(call, "durability", &[("durable", Durability::Durable), ("buffered", Durability::Buffered)])?;
    Ok(options)
}

/// A parameter that is one of a few words; the first word if it is absent.
fn one_of<T: Copy + Default>(call: &Call, name: &str, words: &[(&str, T)]) -> Result<T, Refusal> {
    let Some(text) = call.query.get(name) else { return Ok(T::default()) };
    let word = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    word.ok_or_else(|| Refusal::value(name, &format!("expected one of {}", known())))
}

/// A target: the wire, or the wire and its dialect, as in `openai-chat/mistral`.
pub(in crate::server) fn target(call: &Call, name: &str) -> Result<Target, Refusal> {
    let Some(text) = call.query.get(name) else {
        let message = format!("Missing required parameter: '{name}'.");
        return Err(Refusal::invalid(name, "missing_required_parameter", message));
    };
    Target::from_str(text).map_err(|error| Refusal::value(name, &error.to_string()))
}

/// The parameters that [`prompt`] reads.
pub(in crate::server) const PROMPT: &[&str] =
    &["for", "model", "thinking", "images", "finished_tools", "no_content", "last", "last_turns", "window_tokens"];

/// How to render a conversation.
pub(in crate::server) fn prompt(call: &Call, tools: Vec<Tool>) -> Result<PromptOptions, Refusal> {
    let mut options = PromptOptions::new();
    options.model = call.query.get("model").map(str::to_owned);
    options.thinking = one_of(
        call,
        "thinking",
        &[("native", Thinking::Native), ("tagged", Thinking::Tagged), ("omit", Thinking::Omit)],
    )?;
    options.images = one_of(call, "images", &[("send", Images::Send), ("omit", Images::Omit)])?;
    let finished = [("keep", FinishedTools::Keep), ("flatten", FinishedTools::Flatten), ("drop", FinishedTools::Drop)];
    options.finished_tools = one_of(call, "finished_tools", &finished)?;
    options.no_content = one_of(call, "no_content", &[("null", NoContent::Null), ("empty", NoContent::Empty)])?;
    options.last_messages = call.query.number("last", 1, u64::MAX)?;
    options.last_turns = call.query.number("last_turns", 1, u64::MAX)?;
    options.max_tokens = call.query.number("window_tokens", 1, u64::MAX)?;
    options.tools = tools;
    Ok(options)
}

/// A tool, as a body declares it.
#[derive(serde::Deserialize)]
pub(super) struct Declared {
    name: String,
    description: Option<String>,
    parameters: Box<serde_json::value::RawValue>,
}

/// The tools of a body.
pub(super) fn tools(declared: Vec<Declared>) -> Result<Vec<Tool>, Refusal> {
    let tool = |(at, declared): (usize, Declared)| {
        let parameters = Json::new(declared.parameters.get())
            .map_err(|error| Refusal::value(format!("tools[{at}].parameters"), &error.to_string()))?;
        let mut tool = Tool::new(declared.name, parameters);
        tool.description = declared.description;
        Ok(tool)
    };
    declared.into_iter().enumerate().map(tool).collect()
}
