//! Blocks that the caller writes, or that the model says.

use crate::provider::check::shape::Type::{AnyObject, Array, Bool, Null, Object, OneOf, String};
use crate::provider::check::shape::{Shape, Type, optional, required};

pub(super) const CACHE_CONTROL: &[Type] = &[Object(&EPHEMERAL), Null];
static EPHEMERAL: Shape =
    Shape(&[required("type", &[OneOf(&["ephemeral"])]), optional("ttl", &[OneOf(&["5m", "1h"])])]);

pub(crate) static TEXT: Shape = Shape(&[
    required("text", &[String]),
    required("type", &[OneOf(&["text"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("citations", &[Array(&[AnyObject]), Null]),
]);

pub(super) static IMAGE: Shape = Shape(&[
    required("source", &[Object(&BASE64_IMAGE), Object(&URL), Object(&STORED)]),
    required("type", &[OneOf(&["image"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("transformations", &[AnyObject, Null]),
]);
static BASE64_IMAGE: Shape = Shape(&[
    required("data", &[String]),
    required("media_type", &[OneOf(&["image/jpeg", "image/png", "image/gif", "image/webp"])]),
    required("type", &[OneOf(&["base64"])]),
]);
static URL: Shape = Shape(&[required("type", &[OneOf(&["url"])]), required("url", &[String])]);
static STORED: Shape = Shape(&[required("file_id", &[String]), required("type", &[OneOf(&["file"])])]);

pub(super) static DOCUMENT: Shape = Shape(&[
    required(
        "source",
        &[Object(&BASE64_PDF), Object(&PLAIN_TEXT), Object(&BLOCK_SOURCE), Object(&URL), Object(&STORED)],
    ),
    required("type", &[OneOf(&["document"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("citations", &[Object(&CITED), Null]),
    optional("context", &[String, Null]),
    optional("title", &[String, Null]),
]);
static BASE64_PDF: Shape = Shape(&[
    required("data", &[String]),
    required("media_type", &[OneOf(&["application/pdf"])]),
    required("type", &[OneOf(&["base64"])]),
]);
static PLAIN_TEXT: Shape = Shape(&[
    required("data", &[String]),
    required("media_type", &[OneOf(&["text/plain"])]),
    required("type", &[OneOf(&["text"])]),
]);
static BLOCK_SOURCE: Shape = Shape(&[
    required("content", &[String, Array(&[Object(&TEXT), Object(&IMAGE)])]),
    required("type", &[OneOf(&["content"])]),
]);
static CITED: Shape = Shape(&[optional("enabled", &[Bool])]);

pub(super) static SEARCH_RESULT: Shape = Shape(&[
    required("content", &[Array(&[Object(&TEXT)])]),
    required("source", &[String]),
    required("title", &[String]),
    required("type", &[OneOf(&["search_result"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("citations", &[Object(&CITED)]),
]);

pub(super) static THINKING: Shape = Shape(&[
    required("signature", &[String]),
    required("thinking", &[String]),
    required("type", &[OneOf(&["thinking"])]),
]);
pub(super) static REDACTED_THINKING: Shape =
    Shape(&[required("data", &[String]), required("type", &[OneOf(&["redacted_thinking"])])]);

pub(super) static TOOL_USE: Shape = Shape(&[
    required("id", &[String]),
    required("input", &[AnyObject]),
    required("name", &[String]),
    required("type", &[OneOf(&["tool_use"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("caller", &[AnyObject]),
    optional("toolset_name", &[String, Null]),
]);
pub(super) static TOOL_RESULT: Shape = Shape(&[
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("content", &[String, Array(RESULT_BLOCKS)]),
    optional("is_error", &[Bool]),
    optional("toolset_name", &[String, Null]),
]);
const RESULT_BLOCKS: &[Type] = &[
    Object(&TEXT),
    Object(&IMAGE),
    Object(&SEARCH_RESULT),
    Object(&DOCUMENT),
    Object(&TOOL_REFERENCE),
    Object(&BROWSER_STATE),
];
static TOOL_REFERENCE: Shape = Shape(&[
    required("tool_name", &[String]),
    required("type", &[OneOf(&["tool_reference"])]),
    optional("cache_control", CACHE_CONTROL),
]);
static BROWSER_STATE: Shape = Shape(&[
    required("tabs", &[Array(&[AnyObject])]),
    required("type", &[OneOf(&["browser_state"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("state_changes", &[Array(&[AnyObject]), Null]),
]);
