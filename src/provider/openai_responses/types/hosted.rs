//! Items of tools that the provider runs itself, and of its own bookkeeping.

use crate::provider::check::shape::Type::{Any, AnyObject, Array, Bool, Null, OneOf, String};
use crate::provider::check::shape::{Shape, Type, optional, required};

const TEXT_OR_NULL: &[Type] = &[String, Null];

pub(super) static WEB_SEARCH_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("action", &[AnyObject]),
    required("status", &[String]),
    required("type", &[OneOf(&["web_search_call"])]),
]);
pub(super) static FILE_SEARCH_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("queries", &[Array(&[String])]),
    required("status", &[String]),
    required("type", &[OneOf(&["file_search_call"])]),
    optional("results", &[Array(&[AnyObject]), Null]),
]);
pub(super) static CODE_INTERPRETER_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("code", TEXT_OR_NULL),
    required("container_id", &[String]),
    required("outputs", &[Array(&[AnyObject]), Null]),
    required("status", &[String]),
    required("type", &[OneOf(&["code_interpreter_call"])]),
]);
pub(super) static IMAGE_GENERATION_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("result", TEXT_OR_NULL),
    required("status", &[String]),
    required("type", &[OneOf(&["image_generation_call"])]),
]);

pub(super) static MCP_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("arguments", &[String]),
    required("name", &[String]),
    required("server_label", &[String]),
    required("type", &[OneOf(&["mcp_call"])]),
    optional("approval_request_id", TEXT_OR_NULL),
    optional("error", TEXT_OR_NULL),
    optional("output", TEXT_OR_NULL),
    optional("status", &[String]),
]);
pub(super) static MCP_LIST_TOOLS: Shape = Shape(&[
    required("id", &[String]),
    required("server_label", &[String]),
    required("tools", &[Array(&[AnyObject])]),
    required("type", &[OneOf(&["mcp_list_tools"])]),
    optional("error", TEXT_OR_NULL),
]);
pub(super) static MCP_APPROVAL_REQUEST: Shape = Shape(&[
    required("id", &[String]),
    required("arguments", &[String]),
    required("name", &[String]),
    required("server_label", &[String]),
    required("type", &[OneOf(&["mcp_approval_request"])]),
]);
pub(super) static MCP_APPROVAL_RESPONSE: Shape = Shape(&[
    required("approval_request_id", &[String]),
    required("approve", &[Bool]),
    required("type", &[OneOf(&["mcp_approval_response"])]),
    optional("id", TEXT_OR_NULL),
    optional("reason", TEXT_OR_NULL),
]);

pub(super) static TOOL_SEARCH_CALL: Shape = Shape(&[
    required("arguments", &[Any]),
    required("type", &[OneOf(&["tool_search_call"])]),
    optional("id", TEXT_OR_NULL),
    optional("call_id", TEXT_OR_NULL),
    optional("execution", &[String]),
    optional("status", TEXT_OR_NULL),
]);
pub(super) static TOOL_SEARCH_OUTPUT: Shape = Shape(&[
    required("tools", &[Array(&[AnyObject])]),
    required("type", &[OneOf(&["tool_search_output"])]),
    optional("id", TEXT_OR_NULL),
    optional("call_id", TEXT_OR_NULL),
    optional("execution", &[String]),
    optional("status", TEXT_OR_NULL),
]);
pub(super) static ADDITIONAL_TOOLS: Shape = Shape(&[
    required("role", &[OneOf(&["developer"])]),
    required("tools", &[Array(&[AnyObject])]),
    required("type", &[OneOf(&["additional_tools"])]),
    optional("id", TEXT_OR_NULL),
]);
pub(super) static PROGRAM: Shape = Shape(&[
    required("id", &[String]),
    required("call_id", &[String]),
    required("code", &[String]),
    required("fingerprint", &[String]),
    required("type", &[OneOf(&["program"])]),
]);
pub(super) static PROGRAM_OUTPUT: Shape = Shape(&[
    required("id", &[String]),
    required("call_id", &[String]),
    required("result", &[String]),
    required("status", &[String]),
    required("type", &[OneOf(&["program_output"])]),
]);

pub(super) static COMPACTION: Shape = Shape(&[
    required("encrypted_content", &[String]),
    required("type", &[OneOf(&["compaction"])]),
    optional("id", TEXT_OR_NULL),
]);
pub(super) static COMPACTION_TRIGGER: Shape = Shape(&[required("type", &[OneOf(&["compaction_trigger"])])]);
pub(super) static ITEM_REFERENCE: Shape =
    Shape(&[required("id", &[String]), optional("type", &[OneOf(&["item_reference"]), Null])]);
