//! The official types of a message (anthropic 2.11.0, `MessageParam`). What a hosted tool has put into its own blocks is left
//! to it: new kinds come with every release.
//!
//! And the tools that the provider runs itself, by name. Their tables differ: results of `advisor` are known, and none of them
//! is rendered.

use crate::provider::check::shape::Type::{AnyObject, Array, Bool, Null, Object, OneOf, String};
use crate::provider::check::shape::{Shape, Type, optional, required};

/// The roles, and the fields of their messages.
pub(super) static ROLES: &[(&str, &Shape)] = &[("user", &USER), ("assistant", &ASSISTANT), ("system", &SYSTEM)];

static USER: Shape = Shape(&[required("content", &[String, Array(BLOCKS)]), required("role", &[OneOf(&["user"])])]);
static ASSISTANT: Shape =
    Shape(&[required("content", &[String, Array(BLOCKS)]), required("role", &[OneOf(&["assistant"])])]);
static SYSTEM: Shape =
    Shape(&[required("content", &[String, Array(&[Object(&TEXT)])]), required("role", &[OneOf(&["system"])])]);

/// Whether a block may be of this type, in a message of any role.
pub(super) fn is_known(name: &str) -> bool {
    BLOCKS.iter().any(|of| if let Object(shape) = of { shape.is_of_type(name) } else { false })
}

const BLOCKS: &[Type] = &[
    Object(&TEXT),
    Object(&IMAGE),
    Object(&DOCUMENT),
    Object(&SEARCH_RESULT),
    Object(&THINKING),
    Object(&REDACTED_THINKING),
    Object(&TOOL_USE),
    Object(&TOOL_RESULT),
    Object(&SERVER_TOOL_USE),
    Object(&WEB_SEARCH_RESULT),
    Object(&WEB_FETCH_RESULT),
    Object(&CODE_EXECUTION_RESULT),
    Object(&BASH_RESULT),
    Object(&TEXT_EDITOR_RESULT),
    Object(&TOOL_SEARCH_RESULT),
    Object(&CONTAINER_UPLOAD),
];

const CACHE_CONTROL: &[Type] = &[Object(&EPHEMERAL), Null];
static EPHEMERAL: Shape =
    Shape(&[required("type", &[OneOf(&["ephemeral"])]), optional("ttl", &[OneOf(&["5m", "1h"])])]);

pub(crate) static TEXT: Shape = Shape(&[
    required("text", &[String]),
    required("type", &[OneOf(&["text"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("citations", &[Array(&[AnyObject]), Null]),
]);

static IMAGE: Shape = Shape(&[
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

static DOCUMENT: Shape = Shape(&[
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

static SEARCH_RESULT: Shape = Shape(&[
    required("content", &[Array(&[Object(&TEXT)])]),
    required("source", &[String]),
    required("title", &[String]),
    required("type", &[OneOf(&["search_result"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("citations", &[Object(&CITED)]),
]);

static THINKING: Shape = Shape(&[
    required("signature", &[String]),
    required("thinking", &[String]),
    required("type", &[OneOf(&["thinking"])]),
]);
static REDACTED_THINKING: Shape =
    Shape(&[required("data", &[String]), required("type", &[OneOf(&["redacted_thinking"])])]);

static TOOL_USE: Shape = Shape(&[
    required("id", &[String]),
    required("input", &[AnyObject]),
    required("name", &[String]),
    required("type", &[OneOf(&["tool_use"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("caller", &[AnyObject]),
    optional("toolset_name", &[String, Null]),
]);
static TOOL_RESULT: Shape = Shape(&[
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

/// What came of it, or an error.
const OUTCOME: &[Type] = &[AnyObject];
/// Who called: the model, or code it wrote.
const CALLER: &[Type] = &[AnyObject];

static SERVER_TOOL_USE: Shape = Shape(&[
    required("id", &[String]),
    required("input", &[AnyObject]),
    required("name", &[String]),
    required("type", &[OneOf(&["server_tool_use"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("caller", CALLER),
]);
static WEB_SEARCH_RESULT: Shape = Shape(&[
    required("content", &[Array(&[AnyObject]), AnyObject]),
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["web_search_tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("caller", CALLER),
]);
static WEB_FETCH_RESULT: Shape = Shape(&[
    required("content", OUTCOME),
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["web_fetch_tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("caller", CALLER),
]);
static CODE_EXECUTION_RESULT: Shape = Shape(&[
    required("content", OUTCOME),
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["code_execution_tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
]);
static BASH_RESULT: Shape = Shape(&[
    required("content", OUTCOME),
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["bash_code_execution_tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
]);
static TEXT_EDITOR_RESULT: Shape = Shape(&[
    required("content", OUTCOME),
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["text_editor_code_execution_tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
]);
static TOOL_SEARCH_RESULT: Shape = Shape(&[
    required("content", OUTCOME),
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["tool_search_tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
]);
static CONTAINER_UPLOAD: Shape = Shape(&[
    required("file_id", &[String]),
    required("type", &[OneOf(&["container_upload"])]),
    optional("cache_control", CACHE_CONTROL),
]);

/// Those whose results are known: the provider puts them beside their calls, and they can tell that the tool is not there.
/// Source: `ContentBlockParam` of the official Python SDK (anthropic 2.11.0).
pub(crate) const WITH_RESULTS: &[&str] = &[
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search",
    "advisor",
];
/// The names that their calls may have in a request that is rendered.
pub(crate) const CALLED: &[&str] = &[
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
];
/// The types of their results that are rendered.
pub(crate) const SENT_RESULTS: &[&str] = &[
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
];

/// `web_search_tool_result` and the like.
pub(crate) fn is_server_result(name: &str) -> bool {
    name.strip_suffix("_result")
        .map(|name| name.strip_suffix("_tool").unwrap_or(name))
        .is_some_and(|name| WITH_RESULTS.contains(&name))
}
