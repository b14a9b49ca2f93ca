//! What a target would be sent, and what an agent has to do now.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command, FromArgMatches};
use conversation_store::model::Name;
use conversation_store::provider::{
    self, OptionValues, OptionWord, PROMPT_OPTIONS, PromptOption, PromptOptions, Target, Tool, WIRES,
};
use conversation_store::{Error, NextStep, ReportLine, Store, next_step};
use serde::Serialize;
use serde_json::value::RawValue;

use super::failure::{Exit, Failure, Outcome};
use super::lines::Input;
use super::location::Location;
use super::output::Output;
use super::text;
use super::text::{BOLD, DIM};
use super::values::{conversation, number, positive};

/// Print a conversation as a request that the provider accepts
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo prompt chat-42 --for openai-chat
  convo prompt chat-42 --for openai-chat/deepseek --thinking tagged
  convo prompt chat-42 --for gemini --tools tools.json
  # the newest part of a long conversation
  convo prompt chat-42 --for anthropic --window-tokens 150000
  # what was left out or altered, why, and what to do about it
  convo prompt chat-42 --for anthropic --report
  # what would have been sent when seq 2 was the last entry
  convo prompt chat-42 --for anthropic --at 2
  convo prompt chat-42 --for openai-chat --json | jq .report

The request holds the conversation, and the tools of --tools. Add the model, limits and other parameters yourself. The \
report on stderr names what was left out or altered, the worst first.

With --json, one object on stdout has both:
  {\"conversation\": \"e07db1a4-...\", \"key\": \"chat-42\", \"request\": {\"messages\": [...]},
   \"report\": [{\"severity\": \"lost\", \"rule\": \"thinking_left_out\", \"message_index\": 1, ...}]}
If there is nothing to send, \"error\" takes the place of \"request\": {\"kind\", \"message\", \"cure\"}.")]
pub(super) struct Prompt {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    #[command(flatten)]
    rendering: Rendering,
    /// Render the conversation as it was when this seq was its last: what would have been sent then
    #[arg(long, value_name = "SEQ", value_parser = positive)]
    at: Option<u64>,
    /// Print the report in place of the request: what was left out or altered, why, and what to do about it
    #[arg(long)]
    report: bool,
}

/// The target and the options of a prompt.
#[derive(Debug, clap::Args)]
pub(super) struct Rendering {
    #[command(flatten)]
    aim: Aim,
    #[command(flatten)]
    chosen: Chosen,
    /// The tools to declare: a JSON array of {name, description?, parameters}, in the form of any wire but Gemini's
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
}

/// The target and the options, as far as they are known before a conversation is loaded.
pub(super) struct Renderer {
    pub(super) target: Target,
    pub(super) options: PromptOptions,
}

/// The target.
#[derive(Debug, clap::Args)]
pub(super) struct Aim {
    #[arg(long = "for", value_name = "TARGET", help = known_wires())]
    pub(super) target: Target,
}

/// A conversation's prompt, or why there is none.
#[derive(Serialize)]
pub(super) struct Shown {
    /// Absent for a request that was repaired.
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

pub(super) fn prompt(args: &Prompt, location: &Location, output: &mut Output) -> Outcome {
    let renderer = args.rendering.prepare()?;
    let shown = renderer.render(&location.read()?, &location.name(&args.conversation), args.at)?;
    if args.report { shown.print_report(output) } else { shown.print(output) }
}

fn known_wires() -> String {
    let wires: Vec<_> = WIRES.iter().map(|wire| wire.name).collect();
    format!(
        "The wire, or the wire and a dialect, as in openai-chat/mistral: {}; `convo targets` lists all",
        wires.join(", ")
    )
}

/// The options of a prompt, from the table of all of them.
#[derive(Clone, Debug)]
struct Chosen(PromptOptions);

fn argument(option: &PromptOption) -> Arg {
    let argument = Arg::new(option.name).long(option.argument).value_name(option.placeholder).help(option.about);
    match option.values {
        OptionValues::Text(_) => argument,
        OptionValues::Number { least: 0, .. } => argument.value_parser(number::<u64>),
        OptionValues::Number { .. } => argument.value_parser(positive),
        OptionValues::Words(words) => {
            let names = words.iter().map(|word| word.name);
            let default = names.clone().next().unwrap_or_default();
            let argument = if names.clone().eq([OptionWord::NO, OptionWord::YES]) {
                argument.num_args(0..=1).require_equals(true).default_missing_value(OptionWord::YES)
            } else {
                argument
            };
            argument.default_value(default).value_parser(PossibleValuesParser::new(names))
        }
    }
}

impl clap::Args for Chosen {
    fn augment_args(command: Command) -> Command {
        command.args(PROMPT_OPTIONS.iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Chosen {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut chosen = Self(PromptOptions::new());
        chosen.update_from_arg_matches(matches).map(|()| chosen)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let Self(options) = self;
        for PromptOption { name, values, .. } in PROMPT_OPTIONS {
            let text = || matches.get_one::<String>(name);
            match values {
                OptionValues::Text(set) => text().into_iter().for_each(|text| set(options, text)),
                OptionValues::Number { set, .. } => {
                    matches.get_one(name).into_iter().for_each(|number| set(options, *number));
                }
                OptionValues::Words(words) => {
                    let word = text().and_then(|text| words.iter().find(|word| word.name == text));
                    word.into_iter().for_each(|word| (word.set)(options));
                }
            }
        }
        Ok(())
    }
}

impl Rendering {
    /// Reads what the arguments name.
    pub(super) fn prepare(&self) -> Result<Renderer, Failure> {
        let target = self.aim.target;
        let Chosen(mut options) = self.chosen.clone();
        if let Some(file) = &self.tools {
            options = options.with_tools(read_tools(file)?);
        }
        Ok(Renderer { target, options })
    }
}

impl Renderer {
    /// Loads a conversation from the store, perhaps as it was at a seq, and renders it. A conversation with nothing to send is
    /// no failure here.
    pub(super) fn render(&self, store: &Store, name: &Name, at: Option<u64>) -> Result<Shown, Error> {
        let item = store.describe(name)?;
        let conversation = match at {
            Some(seq) => store.load_at(name, seq)?,
            None => store.load(name)?,
        };
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

    /// Its name for people.
    pub(super) fn label(&self) -> &str {
        self.key.as_deref().or(self.conversation.as_deref()).unwrap_or_default()
    }

    /// The request, and the report on stderr; with `--json` both in one object.
    pub(super) fn print(self, output: &mut Output) -> Outcome {
        if output.is_json() {
            output.json(&self)?;
            return Ok(self.exit());
        }
        output.report(None, &self.report);
        match (&self.request, self.error) {
            (_, Some(error)) => Err(error),
            // People read it in lines; a request that has line breaks keeps its own.
            (Some(request), None) if output.is_text() && !request.get().contains('\n') => {
                output.text(&text::printable(&text::pretty_json(request.get()))).map(|()| Exit::Done)
            }
            (request, None) => output.json(request).map(|()| Exit::Done),
        }
    }

    /// The report alone: as JSON, one object per line.
    pub(super) fn print_report(self, output: &mut Output) -> Outcome {
        if output.is_text() && !self.report.is_empty() {
            output.text(&text::report(None, &self.report))?;
        } else if output.is_text() && self.error.is_none() {
            output.text("nothing was left out or altered")?;
        } else {
            self.report.iter().try_for_each(|line| output.json(line))?;
        }
        self.error.map_or(Ok(Exit::Done), Err)
    }

    pub(super) const fn exit(&self) -> Exit {
        if self.error.is_some() { Exit::Failed } else { Exit::Done }
    }
}

/// Print what an agent must do now: run tools, call the model, or wait
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo next-step chat-42
  convo next-step chat-42 --json | jq -r '.calls[].name'

Steps: run_tools (with the calls), call_model, call_model_again (the answer has only thinking, or calls that it announced are missing), \
continue_text (the answer's text was cut off), continue_turn (the \
provider paused: send the same again), await_model (a message is being written), await_user.")]
pub(super) struct Next {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
}

pub(super) fn next(args: &Next, location: &Location, output: &mut Output) -> Outcome {
    let conversation = location.read()?.load(location.name(&args.conversation))?;
    output.report(None, conversation.report());
    let step = next_step(&conversation);
    output.result(&step, || step_text(&step))?;
    Ok(Exit::Done)
}

fn step_text(step: &NextStep) -> String {
    let mut out = format!("{BOLD}{}{BOLD:#}\n", step.name().replace('_', " "));
    if let NextStep::RunTools(calls) = step {
        for call in calls {
            let (name, id) = (text::printable(&call.name), text::printable(&call.tool_call_id));
            out.push_str(&format!("  {name} {DIM}{id}{DIM:#}\n"));
            out.push_str(&text::wrap(&call.arguments, "    ", text::Layout::folded("--json has them")));
        }
    }
    out
}

/// Reads an array of tools.
fn read_tools(path: &Path) -> Result<Vec<Tool>, Failure> {
    let input = Input::open(path)?;
    let name = input.name.clone();
    let text = input.read_text()?;
    Tool::from_json(&text).map_err(|error| Failure::from(error).at(&name))
}

#[cfg(test)]
mod tests {
    use conversation_store::model::{Chunk, Message};

    use super::*;

    #[test]
    fn people_read_the_step_and_its_calls() {
        let store = Store::open("memory:").unwrap();
        let plain = |step| anstream::adapter::strip_str(&step_text(&step)).to_string();
        store.append("done", &[Message::assistant([Chunk::text("Done.")])]).unwrap();
        assert_eq!(plain(next_step(&store.load("done").unwrap())), "await user\n");
        let call = |name, id| Chunk::tool_call(id, name, "{\"a\":1}");
        store.append("chat", &[Message::assistant([call("ls", "call_1"), call("rm", "\u{7}")])]).unwrap();
        let wanted = "run tools\n  ls call_1\n    {\"a\":1}\n  rm \\u{7}\n    {\"a\":1}\n";
        assert_eq!(plain(next_step(&store.load("chat").unwrap())), wanted);
    }
}
