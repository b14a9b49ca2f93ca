use clap::builder::{PossibleValuesParser, TypedValueParser};
use conversation_store::model::Name;
use conversation_store::provider::{self, PromptOptions, Target, Thinking};
use conversation_store::{Error, ReportLine, Store};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Location;
use super::failure::{Exit, Failure, Outcome};
use super::output::Output;

const EXAMPLES: &str = "\
Examples:
  convo prompt chat-42 --for openai-chat
  convo prompt chat-42 --for openai-chat/deepseek --model deepseek-v4 --thinking tagged
  convo prompt chat-42 --for openai-chat --json | jq .report

The request holds the conversation only: model, limits, tools and the like are yours to add. What was left out or
altered stands in the report, on stderr; with --json in one object with the request:
{\"conversation\", \"key\"?, \"request\", \"report\"}, or \"error\" in place of \"request\" where there is nothing to send.";

/// Print a conversation as a request that the provider accepts
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    conversation: String,
    #[command(flatten)]
    rendering: Rendering,
}

/// For whom, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Rendering {
    #[command(flatten)]
    aim: Aim,
    /// The model that the prompt is for: thinking is native only for the model that made it
    #[arg(long)]
    model: Option<String>,
    /// What becomes of thinking: the target's own form, text in <think> tags, or nothing
    #[arg(long, default_value = "native", value_parser = thinking())]
    thinking: Thinking,
}

/// For whom.
#[derive(Debug, clap::Args)]
pub(super) struct Aim {
    /// The wire, or the wire and its dialect: openai-chat, openai-chat/deepseek
    #[arg(long = "for", value_name = "TARGET")]
    target: Target,
    /// The dialect of the wire: deepseek
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
}

/// A conversation's prompt, or why there is none.
#[derive(Serialize)]
pub(super) struct Shown {
    pub(super) conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Failure>,
    pub(super) report: Vec<ReportLine>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let target = args.rendering.aim.target()?;
    let shown = args.rendering.render(&location.read()?, target, &Name::from(&args.conversation))?;
    if output.is_json() {
        output.json(&shown)?;
        return Ok(shown.exit());
    }
    output.report(None, &shown.report);
    match (&shown.request, shown.error) {
        (_, Some(error)) => Err(error),
        (request, None) => output.json(request).map(|()| Exit::Done),
    }
}

fn thinking() -> impl TypedValueParser<Value = Thinking> {
    PossibleValuesParser::new(["native", "tagged", "omit"]).map(|name| match name.as_str() {
        "tagged" => Thinking::Tagged,
        "omit" => Thinking::Omit,
        _ => Thinking::Native,
    })
}

impl Aim {
    /// The target, in its dialect.
    pub(super) fn target(&self) -> Result<Target, Failure> {
        match &self.dialect {
            None => Ok(self.target),
            Some(name) => self.target.with_dialect(name).map_err(|error| Failure::usage(format!("--dialect: {error}"))),
        }
    }
}

impl Rendering {
    pub(super) fn target(&self) -> Result<Target, Failure> {
        self.aim.target()
    }

    /// Loads a conversation from the store and renders it. That there is nothing to send is no failure here.
    pub(super) fn render(&self, store: &Store, target: Target, name: &Name) -> Result<Shown, Error> {
        let mut options = PromptOptions::new().with_thinking(self.thinking);
        if let Some(model) = &self.model {
            options = options.with_model(model);
        }
        let item = store.describe(name)?;
        let conversation = store.load(name)?;
        let (request, error, report) = match provider::render(target, &conversation, &options) {
            Ok(prompt) => (Some(prompt.request), None, prompt.report),
            Err(error @ (Error::NothingToSend(_) | Error::TooLarge(_))) => {
                (None, Some(error.into()), conversation.report().to_vec())
            }
            Err(error) => return Err(error),
        };
        Ok(Shown { conversation: item.id.to_string(), key: item.key, request, error, report })
    }
}

impl Shown {
    /// A conversation without a prompt.
    pub(super) fn failed(name: &Name, error: Failure) -> Self {
        let (conversation, key) = (name.id().to_string(), name.key().map(str::to_owned));
        Self { conversation, key, request: None, error: Some(error), report: Vec::new() }
    }

    /// What a person calls it.
    pub(super) fn label(&self) -> &str {
        self.key.as_deref().unwrap_or(&self.conversation)
    }

    pub(super) const fn exit(&self) -> Exit {
        if self.error.is_some() { Exit::Failed } else { Exit::Done }
    }
}
