//! The official types of a message (anthropic 2.11.0, `MessageParam`). What a hosted tool has put into its own blocks is
//! left to it: new kinds come with every release.

pub(crate) mod blocks;
mod hosted;

use crate::provider::check::shape::Type::{Array, Object, OneOf, String};
use crate::provider::check::shape::{Shape, Type, required};

/// The roles, and the fields of their messages.
pub(super) static ROLES: &[(&str, &Shape)] = &[("user", &USER), ("assistant", &ASSISTANT), ("system", &SYSTEM)];

static USER: Shape = Shape(&[required("content", &[String, Array(BLOCKS)]), required("role", &[OneOf(&["user"])])]);
static ASSISTANT: Shape =
    Shape(&[required("content", &[String, Array(BLOCKS)]), required("role", &[OneOf(&["assistant"])])]);
static SYSTEM: Shape =
    Shape(&[required("content", &[String, Array(&[Object(&blocks::TEXT)])]), required("role", &[OneOf(&["system"])])]);

/// Whether a block may be of this type, in a message of any role.
pub(super) fn is_known(name: &str) -> bool {
    BLOCKS.iter().any(|of| if let Object(shape) = of { shape.is_of_type(name) } else { false })
}

const BLOCKS: &[Type] = &[
    Object(&blocks::TEXT),
    Object(&blocks::IMAGE),
    Object(&blocks::DOCUMENT),
    Object(&blocks::SEARCH_RESULT),
    Object(&blocks::THINKING),
    Object(&blocks::REDACTED_THINKING),
    Object(&blocks::TOOL_USE),
    Object(&blocks::TOOL_RESULT),
    Object(&hosted::TOOL_USE),
    Object(&hosted::WEB_SEARCH_RESULT),
    Object(&hosted::WEB_FETCH_RESULT),
    Object(&hosted::CODE_EXECUTION_RESULT),
    Object(&hosted::BASH_RESULT),
    Object(&hosted::TEXT_EDITOR_RESULT),
    Object(&hosted::TOOL_SEARCH_RESULT),
    Object(&hosted::CONTAINER_UPLOAD),
];
