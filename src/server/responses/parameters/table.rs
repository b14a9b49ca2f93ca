//! What becomes of each parameter on each wire. Where a wire has a parameter of the same values, `provider::parameters` knows.

use serde_json::Value;

use super::kinds::Kind::{self, Flag, List, Number, Object, Pairs, Text, TextOrList, TextOrObject, Whole};
use super::sheet::Sheet;
use super::{anthropic, chat, converse, gemini, own, sheet};
use crate::history::Conversation;
use crate::provider::parameters::choice::put_one_by_one;
use crate::provider::parameters::{WIRES, column};
use crate::provider::{PromptOptions, Target, tokens_of};
use crate::server::refusal::Refusal;
use Does::{Here, Kept, Mapped, Refused, There};

/// Fills a parameter in: its name, its value.
type Map = fn(&str, &Value, &mut Sheet<'_>) -> Result<(), Refusal>;

/// What becomes of a parameter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Does {
    /// It is sent as it is, at the place that the target has for it. Where it has none, the response repeats it.
    There,
    /// It is sent under this name, which only the table of the documentation needs.
    Mapped(#[cfg_attr(not(test), expect(dead_code))] &'static str, Map),
    /// The response repeats it; it is not sent.
    Kept,
    /// The request is refused.
    Refused,
    /// This server does what it says.
    Here,
}

/// A parameter.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// What becomes of it, in the order of `WIRES`.
    pub(super) does: [Does; WIRES.len()],
}

impl Row {
    pub(super) fn on(&self, target: Target) -> Does {
        self.does.get(column(target)).copied().unwrap_or(Refused)
    }
}

const fn row(name: &'static str, kind: Kind, does: [Does; WIRES.len()]) -> Row {
    Row { name, kind, does }
}

/// The same on all wires.
const fn always(name: &'static str, kind: Kind, does: Does) -> Row {
    Row { name, kind, does: [does; WIRES.len()] }
}

/// As it came.
const AS_IT_IS: Does = Mapped("the same", own::same);
const UNLESS_ZERO: Does = Mapped("the same, unless 0", own::unless_zero);
/// Declared by the renderer.
const DECLARED: Does = Mapped("`tools`", |_, _, _| Ok(()));
/// Refused, unless it says what models do without a word.
const NOT_ZERO: Does =
    Mapped(
        "refused, unless 0",
        |name, value, sheet| {
            if value.as_f64() == Some(0.0) { Ok(()) } else { Err(sheet.no_place(name)) }
        },
    );
const NOT_ONE_BY_ONE: Does = Mapped("`false` is refused where tools are", one_by_one);

/// `true` is what models do without a word. OpenAI refuses the parameter where no tools are.
fn one_by_one(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    let asks = value == false && !sheet.tools.is_empty();
    match !asks || put_one_by_one(sheet.wire(), sheet.choice.as_ref(), &mut sheet.fields) {
        true => Ok(()),
        false => Err(sheet.no_word(name, "false")),
    }
}

/// Converse has no word for `none`: tools that are not declared would be declared again for the calls of the history.
fn chosen(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    let choice = sheet.choose(value)?;
    match sheet.tools.is_empty() || choice.put(sheet.wire(), &mut sheet.fields) {
        true => Ok(()),
        false => Err(sheet.no_word(name, "none")),
    }
}

fn text(_: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    let text = sheet::Text::read(value, sheet)?;
    text.refuse_verbosity(sheet)?;
    text.put_form(sheet)
}

/// Values of `include` that ask for what other wires' answers never have, or what this server writes anyway.
const INCLUDED: &[&str] = &[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];
const INCLUDES: Does = Mapped("kept; logprobs are refused", |name, value, sheet| {
    let words = value.as_array().into_iter().flatten().enumerate();
    let other = words.filter_map(|(at, word)| Some((at, word.as_str().filter(|word| !INCLUDED.contains(word))?)));
    match other.clone().next() {
        None => Ok(()),
        Some((at, word @ "message.output_text.logprobs")) => Err(sheet.no_word(&format!("{name}[{at}]"), word)),
        Some((at, word)) => Err(Refusal::value(format!("{name}[{at}]"), &format!("'{word}' is not known"))),
    }
});
/// Without the size of a model's window nothing can be left out.
const WINDOW: Does = Mapped("`auto`: a window of the history", window);

fn window(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    match value.as_str().unwrap_or_default() {
        "disabled" => Ok(()),
        "auto" => {
            match sheet.context_tokens {
                Some(tokens) => {
                    // Tools that the renderer declares count there.
                    let own = PromptOptions::new().with_tools(sheet.own_tools.clone());
                    let own = tokens_of(sheet.target, &Conversation::new(Vec::new()), &own);
                    let others = sheet.answer_tokens.unwrap_or_default().saturating_add(own);
                    sheet.options.max_tokens = Some(tokens.saturating_sub(others).max(1));
                }
                None => sheet.report.push(format!("{name}: the window of {} is not known: all is sent", sheet.model)),
            }
            Ok(())
        }
        other => Err(Refusal::value(name, &format!("'{other}' is not auto or disabled"))),
    }
}

fn window_there(name: &str, value: &Value, sheet: &mut Sheet<'_>) -> Result<(), Refusal> {
    match sheet.context_tokens {
        Some(_) => window(name, value, sheet),
        None => own::same(name, value, sheet),
    }
}

/// What fills in the beginning of every request, and what is done at its end.
pub(super) fn begin(sheet: &mut Sheet<'_>) {
    match sheet.target.wire().name {
        "openai-chat" => chat::begin(sheet),
        "openai-responses" => own::begin(sheet),
        "anthropic" => anthropic::begin(sheet),
        // The model of these is in the path.
        _ => {}
    }
}

pub(super) fn end(sheet: &mut Sheet<'_>) {
    match sheet.target.wire().name {
        "anthropic" => anthropic::end(sheet),
        "bedrock-converse" => converse::end(sheet),
        "gemini" => anthropic::forget_strict(sheet),
        _ => {}
    }
}

/// All parameters, in the order in which they are filled in: tools come before what is said of them, and the length of an answer
/// before what counts towards it.
pub(super) const TABLE: &[Row] = &[
    row(
        "tools",
        List,
        [DECLARED, Mapped("the same", own::tools), DECLARED, DECLARED, Mapped("`toolConfig.tools`", |_, _, _| Ok(()))],
    ),
    row(
        "tool_choice",
        TextOrObject,
        [
            Mapped("`tool_choice`", chosen),
            AS_IT_IS,
            Mapped("`tool_choice`", chosen),
            Mapped("`toolConfig.functionCallingConfig`", chosen),
            Mapped("`toolConfig.toolChoice`; `none` is refused", chosen),
        ],
    ),
    row(
        "parallel_tool_calls",
        Flag,
        [
            Mapped("the same", one_by_one),
            AS_IT_IS,
            Mapped("`tool_choice.disable_parallel_tool_use`", one_by_one),
            NOT_ONE_BY_ONE,
            NOT_ONE_BY_ONE,
        ],
    ),
    always("max_output_tokens", Whole(1), There),
    always("temperature", Number(0.0, 2.0), There),
    always("top_p", Number(0.0, 1.0), There),
    row("presence_penalty", Number(-2.0, 2.0), [There, UNLESS_ZERO, NOT_ZERO, There, NOT_ZERO]),
    row("frequency_penalty", Number(-2.0, 2.0), [There, UNLESS_ZERO, NOT_ZERO, There, NOT_ZERO]),
    // Answers of other wires are read without them.
    row("top_logprobs", Whole(0), [NOT_ZERO, UNLESS_ZERO, NOT_ZERO, NOT_ZERO, NOT_ZERO]),
    row(
        "text",
        Object,
        [
            Mapped("`response_format`; `verbosity` at OpenAI, Azure and OpenRouter", chat::text),
            AS_IT_IS,
            Mapped("`output_config.format`; `json_object` and `verbosity` are refused", text),
            Mapped("`generationConfig.responseMimeType`, `responseJsonSchema`; `verbosity` is refused", text),
            Mapped("`outputConfig.textFormat`; `json_object` and `verbosity` are refused", text),
        ],
    ),
    row(
        "reasoning",
        Object,
        [
            Mapped("`reasoning_effort`; summaries are kept", chat::reasoning),
            AS_IT_IS,
            Mapped("`thinking` and `output_config.effort`, by model", anthropic::reasoning),
            Mapped("`generationConfig.thinkingConfig`, by model", gemini::reasoning),
            Mapped(
                "`additionalModelRequestFields` and `outputConfig.effort`, of Claude, Nova 2 and gpt-oss",
                converse::reasoning,
            ),
        ],
    ),
    row(
        "service_tier",
        Text,
        [
            Mapped("the same at OpenAI, Azure, OpenRouter and Groq", chat::service_tier),
            AS_IT_IS,
            Mapped("`default` is `standard_only`; `flex` and `priority` are refused", anthropic::service_tier),
            Mapped("`serviceTier`", gemini::service_tier),
            Mapped("`serviceTier.type`", converse::service_tier),
        ],
    ),
    row(
        "truncation",
        Text,
        [WINDOW, Mapped("the same, or a window of the history", window_there), WINDOW, WINDOW, WINDOW],
    ),
    row(
        "include",
        List,
        [INCLUDES, Mapped("the same, and encrypted reasoning", own::include), INCLUDES, INCLUDES, INCLUDES],
    ),
    always("user", Text, There),
    always("safety_identifier", Text, There),
    always("prompt_cache_key", Text, There),
    always("prompt_cache_retention", Text, There),
    always("prompt_cache_options", Object, There),
    row("max_tool_calls", Whole(1), [Kept, AS_IT_IS, Kept, Kept, Kept]),
    always("metadata", Pairs, Kept),
    always("stream_options", Object, Kept),
    row("context_management", List, [Refused, AS_IT_IS, Refused, Refused, Refused]),
    row("moderation", Object, [Refused, AS_IT_IS, Refused, Refused, Refused]),
    row("image", Object, [Refused, AS_IT_IS, Refused, Refused, Refused]),
    row("access_programs", Object, [Refused, AS_IT_IS, Refused, Refused, Refused]),
    always("prompt", Object, Refused),
    always("model", Text, Here),
    always("input", TextOrList, Here),
    always("instructions", Text, Here),
    always("previous_response_id", Text, Here),
    always("conversation", TextOrObject, Here),
    always("store", Flag, Here),
    always("stream", Flag, Here),
    always("background", Flag, Here),
];
