//! Blocks of tools that the provider runs itself.

use super::blocks::CACHE_CONTROL;
use crate::provider::check::shape::Type::{AnyObject, Array, OneOf, String};
use crate::provider::check::shape::{Shape, Type, optional, required};

/// What came of it, or an error.
const OUTCOME: &[Type] = &[AnyObject];
/// Who called: the model, or code it wrote.
const CALLER: &[Type] = &[AnyObject];

pub(super) static TOOL_USE: Shape = Shape(&[
    required("id", &[String]),
    required("input", &[AnyObject]),
    required("name", &[String]),
    required("type", &[OneOf(&["server_tool_use"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("caller", CALLER),
]);
pub(super) static WEB_SEARCH_RESULT: Shape = Shape(&[
    required("content", &[Array(&[AnyObject]), AnyObject]),
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["web_search_tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("caller", CALLER),
]);
pub(super) static WEB_FETCH_RESULT: Shape = Shape(&[
    required("content", OUTCOME),
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["web_fetch_tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
    optional("caller", CALLER),
]);
pub(super) static CODE_EXECUTION_RESULT: Shape = Shape(&[
    required("content", OUTCOME),
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["code_execution_tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
]);
pub(super) static BASH_RESULT: Shape = Shape(&[
    required("content", OUTCOME),
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["bash_code_execution_tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
]);
pub(super) static TEXT_EDITOR_RESULT: Shape = Shape(&[
    required("content", OUTCOME),
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["text_editor_code_execution_tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
]);
pub(super) static TOOL_SEARCH_RESULT: Shape = Shape(&[
    required("content", OUTCOME),
    required("tool_use_id", &[String]),
    required("type", &[OneOf(&["tool_search_tool_result"])]),
    optional("cache_control", CACHE_CONTROL),
]);
pub(super) static CONTAINER_UPLOAD: Shape = Shape(&[
    required("file_id", &[String]),
    required("type", &[OneOf(&["container_upload"])]),
    optional("cache_control", CACHE_CONTROL),
]);
