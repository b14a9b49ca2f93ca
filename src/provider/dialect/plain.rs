//! Servers without rules of their own: each of them is a row, and what it does otherwise than OpenAI.

use crate::provider::check::rule::{Overrides, ProtocolRule};
use crate::provider::openai_chat::manner::{ImagesTaken, Manner, NAME, OPENAI, UserContent};
use crate::provider::openai_chat::rules::{OC_01, OC_03, OC_07, OC_08, OC_09, OC_18, OC_32};
use crate::provider::openai_responses::manner as responses;
use crate::provider::target::Dialect;

/// The models are OpenAI's, and so is what they take (learn.microsoft.com azure openai reference).
pub(crate) const AZURE: Dialect = Dialect {
    parameters: &["data_sources", "enhancements", "user_security_context"],
    ..Dialect::plain("azure", "Azure's OpenAI service", NAME, &OF_AZURE)
};
static OF_AZURE: Manner = Manner { providers: AZURES, ..OPENAI };
const AZURES: &[&str] = &["azure", "azure_openai", "openai"];

/// The same (learn.microsoft.com azure openai responses; recorded: pydantic-ai
/// test_azure_responses_reasoning_context_default_wire_contract).
pub(crate) const AZURE_RESPONSES: Dialect =
    Dialect::plain("azure", "Azure's OpenAI service", responses::NAME, &OF_AZURE_RESPONSES);
static OF_AZURE_RESPONSES: responses::Manner = responses::Manner { providers: AZURES, ..responses::OPENAI };

/// An array where a string will do is not in its type (inference-docs.cerebras.ai, chat completions).
/// A message may have `reasoning` (recorded: pydantic-ai test_cerebras_thinking_part_survives_multiturn).
pub(crate) const CEREBRAS: Dialect = Dialect {
    parameters: &["clear_thinking", "disable_reasoning", "min_completion_tokens", "reasoning_format"],
    ..Dialect::plain("cerebras", "Cerebras", NAME, &OF_CEREBRAS)
};
static OF_CEREBRAS: Manner = Manner { providers: &["cerebras"], own_ids: true, ..IMAGES_ALONE };

/// A server that nobody knows. It is refused what no server of this wire can read: no messages, messages that are none,
/// half a character. And calls without their results, or results without their calls, which most refuse.
pub(crate) const COMPATIBLE: Dialect = Dialect {
    overrides: Overrides { refused: Some(READABLE), ..Overrides::NONE },
    ..Dialect::plain("compatible", "any other server that takes the wire", NAME, &OF_COMPATIBLE)
};
static OF_COMPATIBLE: Manner =
    Manner { providers: &["compatible"], own_ids: true, image_strings: true, ..IMAGES_ALONE };
const READABLE: &[&ProtocolRule] = &[&OC_01, &OC_03, &OC_07, &OC_08, &OC_09, &OC_18, &OC_32];

/// It leaves out what it does not know. Images are sent as data, with or without an object around it; there are no parts for
/// sound and documents (docs.ollama.com, OpenAI compatibility).
pub(crate) const OLLAMA: Dialect = Dialect {
    parameters: &["format", "keep_alive", "options", "think", "thinking"],
    ..Dialect::plain("ollama", "Ollama", NAME, &OF_OLLAMA)
};
static OF_OLLAMA: Manner =
    Manner { providers: &["ollama"], own_ids: true, images: ImagesTaken::Data, image_strings: true, ..IMAGES_ALONE };

/// One address before the models of many makers: it takes what OpenAI takes, and passes it on
/// (openrouter.ai/docs/api-reference/parameters). What a model's maker refuses depends on the model. Ids of other makers are
/// longer (recorded: pydantic-ai test_openrouter_google_nested_schema).
pub(crate) const OPENROUTER: Dialect = Dialect {
    parameters: &[
        "cache_control",
        "debug",
        "image_config",
        "include_reasoning",
        "min_p",
        "models",
        "plugins",
        "preset",
        "provider",
        "reasoning",
        "repetition_penalty",
        "route",
        "session_id",
        "structured_outputs",
        "top_a",
        "top_k",
        "trace",
        "transforms",
        "usage",
    ],
    ..Dialect::plain("openrouter", "OpenRouter", NAME, &OF_OPENROUTER)
};
static OF_OPENROUTER: Manner = Manner { providers: &["openrouter"], own_ids: true, ..OPENAI };

/// Of media it takes images (docs.x.ai/docs/api-reference, chat completions).
pub(crate) const XAI: Dialect = Dialect {
    parameters: &["bootstrap_host", "bootstrap_room", "deferred", "search_parameters"],
    ..Dialect::plain("xai", "xAI", NAME, &OF_XAI)
};
static OF_XAI: Manner =
    Manner { providers: &["xai", "x-ai", "grok"], own_ids: true, audio: false, files: false, refusal: false, ..OPENAI };

/// What most servers take: text as strings, images and no other media.
const IMAGES_ALONE: Manner =
    Manner { arrays: false, user: UserContent::Joined, audio: false, files: false, refusal: false, ..OPENAI };
