//! Messages, their parts, and reasoning.

use crate::provider::check::shape::Type::{AnyObject, Array, Null, Object, OneOf, String};
use crate::provider::check::shape::{Shape, Type, optional, required};

/// A message of any role, in short.
pub(crate) static EASY_MESSAGE: Shape = Shape(&[
    required("content", &[String, Array(PARTS)]),
    required("role", &[OneOf(&["user", "assistant", "system", "developer"])]),
    optional("phase", PHASE),
    optional("type", &[OneOf(&["message"])]),
]);
/// A message with parts, not of the model.
pub(crate) static INPUT_MESSAGE: Shape = Shape(&[
    required("content", &[Array(PARTS)]),
    required("role", &[OneOf(&["user", "system", "developer"])]),
    optional("status", STATUS),
    optional("type", &[OneOf(&["message"])]),
]);
/// A message of the model, as it came.
pub(crate) static OUTPUT_MESSAGE: Shape = Shape(&[
    required("id", &[String]),
    required("content", &[Array(&[Object(&OUTPUT_TEXT), Object(&REFUSAL)])]),
    required("role", &[OneOf(&["assistant"])]),
    required("status", STATUS),
    required("type", &[OneOf(&["message"])]),
    optional("phase", PHASE),
]);

const PARTS: &[Type] = &[Object(&TEXT), Object(&IMAGE), Object(&FILE)];
const PHASE: &[Type] = &[OneOf(&["commentary", "final_answer"]), Null];
const STATUS: &[Type] = &[OneOf(&["in_progress", "completed", "incomplete"])];
const BREAKPOINT: &[Type] = &[Object(&Shape(&[required("mode", &[OneOf(&["explicit"])])])), Null];

pub(super) static TEXT: Shape = Shape(&[
    required("text", &[String]),
    required("type", &[OneOf(&["input_text"])]),
    optional("prompt_cache_breakpoint", BREAKPOINT),
]);
static IMAGE: Shape = Shape(&[
    required("detail", &[OneOf(&["low", "high", "auto", "original"])]),
    required("type", &[OneOf(&["input_image"])]),
    optional("file_id", &[String, Null]),
    optional("image_url", &[String, Null]),
    optional("prompt_cache_breakpoint", BREAKPOINT),
]);
/// In the output of a function an image may do without its detail.
pub(super) static OUTPUT_IMAGE: Shape = Shape(&[
    required("type", &[OneOf(&["input_image"])]),
    optional("detail", &[OneOf(&["low", "high", "auto", "original"]), Null]),
    optional("file_id", &[String, Null]),
    optional("image_url", &[String, Null]),
    optional("prompt_cache_breakpoint", BREAKPOINT),
]);
static FILE: Shape = Shape(&[
    required("type", &[OneOf(&["input_file"])]),
    optional("detail", &[OneOf(&["auto", "low", "high"])]),
    optional("file_data", &[String]),
    optional("file_id", &[String, Null]),
    optional("file_url", &[String]),
    optional("filename", &[String]),
    optional("prompt_cache_breakpoint", BREAKPOINT),
]);
pub(super) static OUTPUT_FILE: Shape = Shape(&[
    required("type", &[OneOf(&["input_file"])]),
    optional("detail", &[OneOf(&["auto", "low", "high"])]),
    optional("file_data", &[String, Null]),
    optional("file_id", &[String, Null]),
    optional("file_url", &[String, Null]),
    optional("filename", &[String, Null]),
    optional("prompt_cache_breakpoint", BREAKPOINT),
]);
static OUTPUT_TEXT: Shape = Shape(&[
    required("annotations", &[Array(&[AnyObject])]),
    required("text", &[String]),
    required("type", &[OneOf(&["output_text"])]),
    optional("logprobs", &[Array(&[AnyObject])]),
]);
static REFUSAL: Shape = Shape(&[required("refusal", &[String]), required("type", &[OneOf(&["refusal"])])]);

pub(super) static REASONING: Shape = Shape(&[
    required("id", &[String]),
    required("summary", &[Array(&[Object(&SUMMARY)])]),
    required("type", &[OneOf(&["reasoning"])]),
    optional("content", &[Array(&[Object(&REASONING_TEXT)])]),
    optional("encrypted_content", &[String, Null]),
    optional("status", STATUS),
]);
static SUMMARY: Shape = Shape(&[required("text", &[String]), required("type", &[OneOf(&["summary_text"])])]);
static REASONING_TEXT: Shape = Shape(&[required("text", &[String]), required("type", &[OneOf(&["reasoning_text"])])]);
