//! Any log: its prompts are accepted, on every target.

use conversation_store::model::{FinishReason, Message};
use conversation_store::provider::{FinishedTools, PromptOptions, Thinking};
use conversation_store::{Conversation, MessageState, next_step};

use crate::common::{prompts, stored};

/// Takes the first line as the words of the options, and the others as the lines of a transcript.
pub fn holds(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Some((words, lines)) = text.split_once('\n') else { return };
    let options = words.split(' ').fold(PromptOptions::new(), option);
    let mut log = stored::log(lines.lines().filter_map(|line| Message::from_json(line).ok()));
    for message in &mut log {
        if message.message.finish_reason == Some(FinishReason::Interrupted) {
            message.state = MessageState::Interrupted;
        }
    }
    let _ = next_step(&Conversation::new(log.clone()));
    for target in prompts::targets() {
        if let Some(prompt) = prompts::prompt(target, &log, &options) {
            prompts::assert_accepted(target, &prompt);
        }
    }
}

fn option(options: PromptOptions, word: &str) -> PromptOptions {
    match word {
        "" => options,
        "tagged" => options.with_thinking(Thinking::Tagged),
        "omit" => options.with_thinking(Thinking::Omit),
        "flatten" => options.with_finished_tools(FinishedTools::Flatten),
        "drop" => options.with_finished_tools(FinishedTools::Drop),
        model => options.with_model(model),
    }
}
