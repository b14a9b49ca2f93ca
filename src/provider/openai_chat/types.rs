//! The official types of a message (openai 2.54.0, `ChatCompletionMessageParam`), role by role.

use crate::provider::check::shape::Type::{Array, Null, Object, OneOf, String};
use crate::provider::check::shape::{Shape, Type, optional, required};

/// A role, the types its parts may have, its message's fields.
#[derive(Debug)]
pub(crate) struct Role {
    pub(crate) name: &'static str,
    pub(crate) parts: &'static [&'static str],
    pub(crate) message: &'static Shape,
}

/// All roles.
pub(crate) static ROLES: &[Role] = &[
    Role { name: "system", parts: &["text"], message: &SYSTEM },
    Role { name: "developer", parts: &["text"], message: &DEVELOPER },
    Role { name: "user", parts: &["text", "image_url", "input_audio", "file"], message: &USER },
    Role { name: "assistant", parts: &["text", "refusal"], message: &ASSISTANT },
    Role { name: "tool", parts: &["text"], message: &TOOL },
    Role { name: "function", parts: &[], message: &FUNCTION },
];

static SYSTEM: Shape =
    Shape(&[required("role", &[OneOf(&["system"])]), required("content", TEXT_CONTENT), optional("name", &[String])]);
static DEVELOPER: Shape = Shape(&[
    required("role", &[OneOf(&["developer"])]),
    required("content", TEXT_CONTENT),
    optional("name", &[String]),
]);
static USER: Shape = Shape(&[
    required("role", &[OneOf(&["user"])]),
    required("content", &[String, Array(&[Object(&TEXT), Object(&IMAGE), Object(&AUDIO), Object(&FILE)])]),
    optional("name", &[String]),
]);
static ASSISTANT: Shape = Shape(&[
    required("role", &[OneOf(&["assistant"])]),
    optional("audio", &[Object(&Shape(&[required("id", &[String])])), Null]),
    optional("content", &[String, Array(&[Object(&TEXT), Object(&REFUSAL)]), Null]),
    optional("function_call", &[Object(&FUNCTION_CALL), Null]),
    optional("name", &[String]),
    optional("refusal", &[String, Null]),
    optional("tool_calls", &[Array(&[Object(&CALL), Object(&CUSTOM_CALL)])]),
]);
static TOOL: Shape = Shape(&[
    required("role", &[OneOf(&["tool"])]),
    required("content", TEXT_CONTENT),
    required("tool_call_id", &[String]),
]);
static FUNCTION: Shape = Shape(&[
    required("role", &[OneOf(&["function"])]),
    required("content", &[String, Null]),
    required("name", &[String]),
]);

const TEXT_CONTENT: &[Type] = &[String, Array(&[Object(&TEXT)])];

static TEXT: Shape = Shape(&[
    required("type", &[OneOf(&["text"])]),
    required("text", &[String]),
    optional("prompt_cache_breakpoint", BREAKPOINT),
]);
static IMAGE: Shape = Shape(&[
    required("type", &[OneOf(&["image_url"])]),
    required("image_url", &[Object(&IMAGE_URL)]),
    optional("prompt_cache_breakpoint", BREAKPOINT),
]);
static IMAGE_URL: Shape = Shape(&[required("url", &[String]), optional("detail", &[OneOf(&["auto", "low", "high"])])]);
static AUDIO: Shape = Shape(&[
    required("type", &[OneOf(&["input_audio"])]),
    required("input_audio", &[Object(&AUDIO_DATA)]),
    optional("prompt_cache_breakpoint", BREAKPOINT),
]);
static AUDIO_DATA: Shape = Shape(&[required("data", &[String]), required("format", &[OneOf(&["wav", "mp3"])])]);
static FILE: Shape = Shape(&[
    required("type", &[OneOf(&["file"])]),
    required("file", &[Object(&FILE_DATA)]),
    optional("prompt_cache_breakpoint", BREAKPOINT),
]);
static FILE_DATA: Shape =
    Shape(&[optional("file_data", &[String]), optional("file_id", &[String]), optional("filename", &[String])]);
static REFUSAL: Shape = Shape(&[required("type", &[OneOf(&["refusal"])]), required("refusal", &[String])]);

const BREAKPOINT: &[Type] = &[Object(&Shape(&[required("mode", &[OneOf(&["explicit"])])]))];

static FUNCTION_CALL: Shape = Shape(&[required("arguments", &[String]), required("name", &[String])]);
static CALL: Shape = Shape(&[
    required("id", &[String]),
    required("type", &[OneOf(&["function"])]),
    required("function", &[Object(&FUNCTION_CALL)]),
]);
static CUSTOM_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("type", &[OneOf(&["custom"])]),
    required("custom", &[Object(&Shape(&[required("input", &[String]), required("name", &[String])]))]),
]);
