//! The options of prompts as a table: what the program takes as arguments, the server as parameters, its pages in a form.

use super::options::{FinishedTools, Images, NoContent, PromptOptions, Thinking};

/// An option of prompts, for programs that let their users choose.
///
/// ```
/// use conversation_store::provider::{OptionValues, PROMPT_OPTIONS, PromptOptions};
///
/// let mut options = PromptOptions::new();
/// let option = PROMPT_OPTIONS.iter().find(|option| option.name == "thinking_turns").unwrap();
/// if let OptionValues::Number { least: 0, set } = option.values {
///     set(&mut options, 3);
/// }
/// assert_eq!(options.thinking_turns, Some(3));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PromptOption {
    /// Its name as a parameter: `thinking_turns`.
    pub name: &'static str,
    /// Its name as an argument: `thinking-turns`.
    pub argument: &'static str,
    /// Its value in a usage text: `N`.
    pub placeholder: &'static str,
    /// Its name for people: `Turns with thinking`.
    pub label: &'static str,
    /// What it does.
    pub about: &'static str,
    /// What it may be.
    pub values: OptionValues,
}

/// What an option may be, and how each value is set.
#[derive(Clone, Copy, Debug)]
pub enum OptionValues {
    /// Any text.
    Text(fn(&mut PromptOptions, &str)),
    /// A whole number.
    Number {
        /// The lowest.
        least: u64,
        /// Sets it.
        set: fn(&mut PromptOptions, u64),
    },
    /// One of these words; the first is the default.
    Words(&'static [OptionWord]),
}

/// A word that an option may be.
#[derive(Clone, Copy, Debug)]
pub struct OptionWord {
    /// The word.
    pub name: &'static str,
    /// What it means, for people.
    pub label: &'static str,
    /// Sets it.
    pub set: fn(&mut PromptOptions),
}

impl OptionWord {
    /// The word of what is not asked for.
    pub const NO: &'static str = "no";
    /// The word of what is asked for.
    pub const YES: &'static str = "yes";
}

const fn word(name: &'static str, label: &'static str, set: fn(&mut PromptOptions)) -> OptionWord {
    OptionWord { name, label, set }
}

/// All options of prompts but the tools, which are no single value.
pub const PROMPT_OPTIONS: &[PromptOption] = &[
    PromptOption {
        name: "model",
        argument: "model",
        placeholder: "MODEL",
        label: "Model",
        about: "The model of the request. Thinking is sent natively only to the model that produced it",
        values: OptionValues::Text(|options, model| options.model = Some(model.to_owned())),
    },
    PromptOption {
        name: "thinking",
        argument: "thinking",
        placeholder: "THINKING",
        label: "Thinking",
        about: "How to send thinking: in the target's own form, as text in `<think>` tags, or not at all",
        values: OptionValues::Words(&[
            word("native", "as the target takes it", |options| options.thinking = Thinking::Native),
            word("tagged", "in <think> tags", |options| options.thinking = Thinking::Tagged),
            word("omit", "left out", |options| options.thinking = Thinking::Omit),
        ]),
    },
    PromptOption {
        name: "thinking_turns",
        argument: "thinking-turns",
        placeholder: "N",
        label: "Turns with thinking",
        about: "Send thinking only of the user's last turns: of at least N; older thinking is left out in steps of N turns; 0: \
                none",
        values: OptionValues::Number { least: 0, set: |options, turns| options.thinking_turns = Some(turns) },
    },
    PromptOption {
        name: "max_result_bytes",
        argument: "max-result-bytes",
        placeholder: "N",
        label: "Most bytes of a result",
        about: "The most bytes of text in a tool result: of a longer one, send the beginning and a line that states the rest",
        values: OptionValues::Number { least: 0, set: |options, bytes| options.max_result_bytes = Some(bytes) },
    },
    PromptOption {
        name: "images",
        argument: "images",
        placeholder: "IMAGES",
        label: "Images",
        about: "How to send images: natively, or as words in their place, for models that refuse images",
        values: OptionValues::Words(&[
            word("send", "sent", |options| options.images = Images::Send),
            word("omit", "left out", |options| options.images = Images::Omit),
        ]),
    },
    PromptOption {
        name: "finished_tools",
        argument: "finished-tools",
        placeholder: "HOW",
        label: "Finished tool calls",
        about: "How to send tool calls from before the user's last message: as they are, written as text, or not at all",
        values: OptionValues::Words(&[
            word("keep", "kept", |options| options.finished_tools = FinishedTools::Keep),
            word("flatten", "as text", |options| options.finished_tools = FinishedTools::Flatten),
            word("drop", "left out", |options| options.finished_tools = FinishedTools::Drop),
        ]),
    },
    PromptOption {
        name: "no_content",
        argument: "no-content",
        placeholder: "WHAT",
        label: "Content of calls alone",
        about: "The content of a message that has only calls, on openai-chat: null, or an empty string",
        values: OptionValues::Words(&[
            word("null", "null", |options| options.no_content = NoContent::Null),
            word("empty", "an empty text", |options| options.no_content = NoContent::Empty),
        ]),
    },
    PromptOption {
        name: "continue_last",
        argument: "continue-last",
        placeholder: "WHETHER",
        label: "Continue the last answer",
        about: "Whether the model is to go on with an answer that ends the conversation: by a prefill or a prefix, where the \
                target has one; elsewhere the user asks for it, and the report says so",
        values: OptionValues::Words(&[
            word(OptionWord::NO, "no", |options| options.continue_last = false),
            word(OptionWord::YES, "yes", |options| options.continue_last = true),
        ]),
    },
    PromptOption {
        name: "last",
        argument: "last",
        placeholder: "N",
        label: "Most messages",
        about: "The most messages, without system messages: the newest, beginning with a user message",
        values: OptionValues::Number { least: 1, set: |options, messages| options.last_messages = Some(messages) },
    },
    PromptOption {
        name: "last_turns",
        argument: "last-turns",
        placeholder: "N",
        label: "Most turns",
        about: "The most turns of the user: the newest",
        values: OptionValues::Number { least: 1, set: |options, turns| options.last_turns = Some(turns) },
    },
    PromptOption {
        name: "window_tokens",
        argument: "window-tokens",
        placeholder: "N",
        label: "Most tokens",
        about: "The most tokens, estimated: the newest turns that fit, together with system messages and tools",
        values: OptionValues::Number { least: 1, set: |options, tokens| options.max_tokens = Some(tokens) },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_the_options_but_the_tools_has_a_row_that_sets_it_alone() {
        let named = |field: &str| match field {
            "last_messages" => "last".to_owned(),
            "max_tokens" => "window_tokens".to_owned(),
            field => field.to_owned(),
        };
        let fields = |options: &PromptOptions| -> Vec<(String, String)> {
            let text = format!("{options:?}");
            let text = text.trim_start_matches("PromptOptions { ").trim_end_matches(" }");
            text.split(", ")
                .map(|field| field.split_once(": ").unwrap())
                .map(|(name, value)| (named(name), value.to_owned()))
                .collect()
        };
        let default = fields(&PromptOptions::new());
        assert_eq!(default.len(), PROMPT_OPTIONS.len() + 1, "the tools have no row: {default:?}");
        for option in PROMPT_OPTIONS {
            assert_eq!(option.argument, option.name.replace('_', "-"));
            let set = |set: &dyn Fn(&mut PromptOptions)| {
                let mut options = PromptOptions::new();
                set(&mut options);
                let differ = fields(&options).into_iter().zip(&default).filter(|(now, then)| now != *then);
                differ.map(|((name, _), _)| name).collect::<Vec<_>>()
            };
            match option.values {
                OptionValues::Text(text) => assert_eq!(set(&|options| text(options, "x")), [option.name]),
                OptionValues::Number { set: number, .. } => {
                    assert_eq!(set(&|options| number(options, 7)), [option.name])
                }
                OptionValues::Words(words) => {
                    assert_eq!(set(&|options| (words[0].set)(options)), [""; 0], "the first is the default");
                    for word in &words[1..] {
                        assert_eq!(set(&|options| (word.set)(options)), [option.name], "{}", word.name);
                        let mut options = PromptOptions::new();
                        (word.set)(&mut options);
                        let value = fields(&options).into_iter().find(|(name, _)| name == option.name).unwrap().1;
                        let named = if word.name == OptionWord::YES { "true" } else { word.name };
                        assert_eq!(value.to_lowercase(), named);
                    }
                }
            }
        }
    }
}
