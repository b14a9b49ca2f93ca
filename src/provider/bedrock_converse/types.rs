//! The official types of a message's blocks (botocore 1.44.5, bedrock-runtime `ContentBlock`), kind by kind. Fields and
//! kinds that are not here are not known, and not refused for that.

use crate::provider::check::shape::Type::{Any, AnyObject, Array, Null, Object, String};
use crate::provider::check::shape::{Shape, Type, optional, required};

/// The parameters of the request.
pub(super) const PARAMETERS: &[&str] = &[
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "guardrailConfig",
    "inferenceConfig",
    "messages",
    "modelId",
    "outputConfig",
    "performanceConfig",
    "promptVariables",
    "requestMetadata",
    "serviceTier",
    "system",
    "toolConfig",
];

/// The kinds of blocks: their name, which is that of their only field, and its value.
pub(super) static KINDS: &[(&str, &[Type])] = &[
    ("audio", &[Object(&MEDIA)]),
    ("cachePoint", &[Object(&CACHE_POINT)]),
    ("citationsContent", &[Object(&CITATIONS)]),
    ("document", &[Object(&DOCUMENT)]),
    ("guardContent", &[AnyObject]),
    ("image", &[Object(&MEDIA)]),
    ("reasoningContent", &[Object(&REASONING)]),
    ("searchResult", &[Object(&SEARCH_RESULT)]),
    ("text", &[String]),
    ("toolResult", &[Object(&TOOL_RESULT)]),
    ("toolUse", &[Object(&TOOL_USE)]),
    ("video", &[Object(&MEDIA)]),
];

static CACHE_POINT: Shape = Shape(&[required("type", &[String]), optional("ttl", &[String, Null])]);
static MEDIA: Shape =
    Shape(&[required("format", &[String]), required("source", &[AnyObject]), optional("error", &[AnyObject, Null])]);
static DOCUMENT: Shape = Shape(&[
    optional("format", &[String, Null]),
    required("name", &[String]),
    required("source", &[AnyObject]),
    optional("context", &[String, Null]),
    optional("citations", &[AnyObject, Null]),
]);
static CITATIONS: Shape =
    Shape(&[optional("content", &[Array(&[AnyObject]), Null]), optional("citations", &[Array(&[AnyObject]), Null])]);
static REASONING: Shape =
    Shape(&[optional("reasoningText", &[Object(&REASONING_TEXT), Null]), optional("redactedContent", &[String, Null])]);
static REASONING_TEXT: Shape = Shape(&[required("text", &[String]), optional("signature", &[String, Null])]);
static SEARCH_RESULT: Shape = Shape(&[
    required("source", &[String]),
    required("title", &[String]),
    required("content", &[Array(&[AnyObject])]),
    optional("citations", &[AnyObject, Null]),
]);
static TOOL_USE: Shape = Shape(&[
    required("toolUseId", &[String]),
    required("name", &[String]),
    required("input", &[Any]),
    optional("type", &[String, Null]),
]);
static TOOL_RESULT: Shape = Shape(&[
    required("toolUseId", &[String]),
    required("content", &[Array(&[AnyObject])]),
    optional("status", &[String, Null]),
    optional("type", &[String, Null]),
]);
