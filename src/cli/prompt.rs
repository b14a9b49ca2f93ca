use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use conversation_store::model::Name;
use conversation_store::provider::{self, FinishedTools, Images, NoContent, PromptOptions, Target, Thinking, WIRES};
use conversation_store::{Error, ReportLine, Store};
use serde::Serialize;
use serde_json::value::RawValue;

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::Output;
use super::values::conversation;
use super::{report, text, tools};

const EXAMPLES: &str = "\
Examples:
  convo prompt chat-42 --for openai-chat
  convo prompt chat-42 --for openai-chat/deepseek --thinking tagged
  convo prompt chat-42 --for gemini --tools tools.json
  # the newest part of a long conversation
  convo prompt chat-42 --for anthropic --window-tokens 150000
  # what was left out or altered, why, and what to do about it
  convo prompt chat-42 --for anthropic --report
  convo prompt chat-42 --for openai-chat --json | jq .report

The request has the conversation, and the tools of --tools: model, limits and the like are yours to add. The \
report on stderr names what was left out or altered, the worst first.

With --json both come as one object on stdout:
  {\"conversation\": \"e07db1a4-...\", \"key\": \"chat-42\", \"request\": {\"messages\": [...]},
   \"report\": [{\"severity\": \"lost\", \"rule\": \"thinking_left_out\", \"message_index\": 1, ...}]}
If there is nothing to send, it has \"error\": {\"kind\", \"message\", \"hint\"} in place of \"request\".";

/// Print a conversation as a request that the provider accepts
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    #[command(flatten)]
    rendering: Rendering,
    /// Print the report in place of the request: what was left out or altered, why, and what to do about it
    #[arg(long)]
    report: bool,
}

/// For whom, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Rendering {
    #[command(flatten)]
    aim: Aim,
    /// The model that the prompt is for: thinking is native only for the model that made it
    #[arg(long)]
    model: Option<String>,
    /// What becomes of thinking: the target's own form, text in `<think>` tags, or nothing
    #[arg(long, default_value = "native", value_parser = thinking())]
    thinking: Thinking,
    /// What becomes of images: sent where the target takes them, or words in their place, for models that refuse them
    #[arg(long, default_value = "send", value_parser = images())]
    images: Images,
    /// What becomes of calls and answers behind which the user has spoken: as they are, told as text, or left out
    #[arg(long, default_value = "keep", value_name = "HOW", value_parser = finished_tools())]
    finished_tools: FinishedTools,
    /// What a message of calls only has for content, on openai-chat: null, or an empty string
    #[arg(long, default_value = "null", value_name = "WHAT", value_parser = no_content())]
    no_content: NoContent,
    /// At most so many messages, system messages besides: the newest, from a message of the user on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    last: Option<u64>,
    /// At most so many turns of the user, the newest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    last_turns: Option<u64>,
    /// At most so many tokens, estimated: the newest turns that fit, besides system messages and tools
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    window_tokens: Option<u64>,
    /// The tools to declare: a JSON array of {name, description?, parameters}, as for any wire but Gemini's
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
}

/// For whom, and how: all that is known before a conversation is loaded.
pub(super) struct Renderer {
    pub(super) target: Target,
    pub(super) options: PromptOptions,
}

/// For whom.
#[derive(Debug, clap::Args)]
pub(super) struct Aim {
    #[arg(long = "for", value_name = "TARGET", help = known_wires())]
    pub(super) target: Target,
}

/// A conversation's prompt, or why there is none.
#[derive(Serialize)]
pub(super) struct Shown {
    /// A request that was repaired is no conversation's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) conversation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Failure>,
    pub(super) report: Vec<ReportLine>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let renderer = args.rendering.prepare()?;
    renderer.render(&location.read()?, &location.name(&args.conversation))?.print(args.report, output)
}

fn known_wires() -> String {
    let wires: Vec<_> = WIRES.iter().map(|wire| wire.name).collect();
    format!(
        "The wire, or the wire and a dialect, as in openai-chat/mistral: {}; `convo targets` lists all",
        wires.join(", ")
    )
}

fn thinking() -> impl TypedValueParser<Value = Thinking> {
    PossibleValuesParser::new(["native", "tagged", "omit"]).map(|name| match name.as_str() {
        "tagged" => Thinking::Tagged,
        "omit" => Thinking::Omit,
        _ => Thinking::Native,
    })
}

fn images() -> impl TypedValueParser<Value = Images> {
    PossibleValuesParser::new(["send", "omit"]).map(|name| match name.as_str() {
        "omit" => Images::Omit,
        _ => Images::Send,
    })
}

fn finished_tools() -> impl TypedValueParser<Value = FinishedTools> {
    PossibleValuesParser::new(["keep", "flatten", "drop"]).map(|name| match name.as_str() {
        "flatten" => FinishedTools::Flatten,
        "drop" => FinishedTools::Drop,
        _ => FinishedTools::Keep,
    })
}

fn no_content() -> impl TypedValueParser<Value = NoContent> {
    PossibleValuesParser::new(["null", "empty"]).map(|name| match name.as_str() {
        "empty" => NoContent::Empty,
        _ => NoContent::Null,
    })
}

impl Rendering {
    /// Reads what the arguments name.
    pub(super) fn prepare(&self) -> Result<Renderer, Failure> {
        let target = self.aim.target;
        let mut options = PromptOptions::new().with_thinking(self.thinking).with_finished_tools(self.finished_tools);
        (options.images, options.no_content) = (self.images, self.no_content);
        (options.last_messages, options.last_turns) = (self.last, self.last_turns);
        options.max_tokens = self.window_tokens;
        if let Some(model) = &self.model {
            options = options.with_model(model);
        }
        if let Some(file) = &self.tools {
            options = options.with_tools(tools::read(file)?);
        }
        Ok(Renderer { target, options })
    }
}

impl Renderer {
    /// Loads a conversation from the store and renders it. That there is nothing to send is no failure here.
    pub(super) fn render(&self, store: &Store, name: &Name) -> Result<Shown, Error> {
        let item = store.describe(name)?;
        let conversation = store.load(name)?;
        let (request, error, report) = match provider::render(self.target, &conversation, &self.options) {
            Ok(prompt) => (Some(prompt.request), None, prompt.report),
            Err(error @ (Error::NothingToSend(_) | Error::TooLarge(_))) => {
                (None, Some(error.into()), conversation.report().to_vec())
            }
            Err(error) => return Err(error),
        };
        Ok(Shown { conversation: Some(item.id.to_string()), key: item.key, request, error, report })
    }
}

impl Shown {
    /// A conversation without a prompt.
    pub(super) fn failed(name: &Name, error: Failure) -> Self {
        let (conversation, key) = (Some(name.id().to_string()), name.key().map(str::to_owned));
        Self { conversation, key, request: None, error: Some(error), report: Vec::new() }
    }

    /// What a person calls it.
    pub(super) fn label(&self) -> &str {
        self.key.as_deref().or(self.conversation.as_deref()).unwrap_or_default()
    }

    /// The request alone, and what was done on stderr; with `--json` all in one; with `--report` what was done alone.
    pub(super) fn print(self, report_only: bool, output: &mut Output) -> Outcome {
        if report_only {
            output.result(&self.report, || match self.report.as_slice() {
                [] => "report: nothing was left out or altered".to_owned(),
                report => report::text(None, report),
            })?;
            return self.error.map_or(Ok(Exit::Done), Err);
        }
        if output.is_json() {
            output.json(&self)?;
            return Ok(self.exit());
        }
        output.report(None, &self.report);
        match (&self.request, self.error) {
            (_, Some(error)) => Err(error),
            // People read it in lines; what has lines already stays as it was written.
            (Some(request), None) if output.is_text() && !request.get().contains('\n') => {
                output.text(&text::printable(&text::pretty_json(request.get()))).map(|()| Exit::Done)
            }
            (request, None) => output.json(request).map(|()| Exit::Done),
        }
    }

    pub(super) const fn exit(&self) -> Exit {
        if self.error.is_some() { Exit::Failed } else { Exit::Done }
    }
}
