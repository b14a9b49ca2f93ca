//! The official types of an item (openai 2.54.0, `ResponseInputItemParam`), type by type. What a hosted tool has put
//! into its own item is left to it: new kinds come with every release.

use crate::provider::check::shape::Type::{Any, AnyObject, Array, Bool, Null, Number, Object, OneOf, String};
use crate::provider::check::shape::{Shape, Type, optional, required};

/// A type of item.
#[derive(Debug)]
pub(crate) struct ItemType {
    pub(crate) name: &'static str,
    /// Whether the model says it; messages may be of either side.
    pub(crate) by_model: bool,
    /// What its ids begin with; empty where that is not known.
    pub(crate) prefix: &'static str,
    /// The type of the item that answers it; empty where there is none, or where the provider answers itself.
    pub(crate) output: &'static str,
    pub(crate) fields: &'static Shape,
}

const fn by_model(name: &'static str, prefix: &'static str, output: &'static str, fields: &'static Shape) -> ItemType {
    ItemType { name, by_model: true, prefix, output, fields }
}

const fn given(name: &'static str, fields: &'static Shape) -> ItemType {
    ItemType { name, by_model: false, prefix: "", output: "", fields }
}

/// All types.
pub(crate) static ITEMS: &[ItemType] = &[
    ItemType { prefix: "msg", ..given("message", &EASY_MESSAGE) },
    by_model("reasoning", "rs", "", &REASONING),
    by_model("function_call", "fc", "function_call_output", &FUNCTION_CALL),
    given("function_call_output", &FUNCTION_CALL_OUTPUT),
    by_model("custom_tool_call", "ctc", "custom_tool_call_output", &CUSTOM_CALL),
    given("custom_tool_call_output", &CUSTOM_CALL_OUTPUT),
    by_model("computer_call", "cu", "computer_call_output", &COMPUTER_CALL),
    given("computer_call_output", &COMPUTER_CALL_OUTPUT),
    by_model("shell_call", "", "shell_call_output", &SHELL_CALL),
    given("shell_call_output", &SHELL_CALL_OUTPUT),
    by_model("apply_patch_call", "", "apply_patch_call_output", &PATCH_CALL),
    given("apply_patch_call_output", &PATCH_CALL_OUTPUT),
    by_model("local_shell_call", "lsh", "local_shell_call_output", &LOCAL_SHELL_CALL),
    given("local_shell_call_output", &LOCAL_SHELL_CALL_OUTPUT),
    by_model("web_search_call", "ws", "", &WEB_SEARCH_CALL),
    by_model("file_search_call", "fs", "", &FILE_SEARCH_CALL),
    by_model("code_interpreter_call", "ci", "", &CODE_INTERPRETER_CALL),
    by_model("image_generation_call", "ig", "", &IMAGE_GENERATION_CALL),
    by_model("mcp_call", "mcp", "", &MCP_CALL),
    by_model("mcp_list_tools", "mcpl", "", &MCP_LIST_TOOLS),
    by_model("mcp_approval_request", "mcpr", "", &MCP_APPROVAL_REQUEST),
    given("mcp_approval_response", &MCP_APPROVAL_RESPONSE),
    by_model("tool_search_call", "", "", &TOOL_SEARCH_CALL),
    given("tool_search_output", &TOOL_SEARCH_OUTPUT),
    given("additional_tools", &ADDITIONAL_TOOLS),
    by_model("program", "", "", &PROGRAM),
    given("program_output", &PROGRAM_OUTPUT),
    by_model("compaction", "cmp", "", &COMPACTION),
    given("compaction_trigger", &COMPACTION_TRIGGER),
    given("item_reference", &ITEM_REFERENCE),
];

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

static TEXT: Shape = Shape(&[
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
static OUTPUT_IMAGE: Shape = Shape(&[
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
static OUTPUT_FILE: Shape = Shape(&[
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

static REASONING: Shape = Shape(&[
    required("id", &[String]),
    required("summary", &[Array(&[Object(&SUMMARY)])]),
    required("type", &[OneOf(&["reasoning"])]),
    optional("content", &[Array(&[Object(&REASONING_TEXT)])]),
    optional("encrypted_content", &[String, Null]),
    optional("status", STATUS),
]);
static SUMMARY: Shape = Shape(&[required("text", &[String]), required("type", &[OneOf(&["summary_text"])])]);
static REASONING_TEXT: Shape = Shape(&[required("text", &[String]), required("type", &[OneOf(&["reasoning_text"])])]);

const STATUS_OR_NULL: &[Type] = &[OneOf(&["in_progress", "completed", "incomplete"]), Null];
/// Who called: the model, or a program it wrote.
const CALLER: &[Type] = &[AnyObject, Null];
const OUTPUT: &[Type] = &[String, Array(&[Object(&TEXT), Object(&OUTPUT_IMAGE), Object(&OUTPUT_FILE)])];

static FUNCTION_CALL: Shape = Shape(&[
    required("arguments", &[String]),
    required("call_id", &[String]),
    required("name", &[String]),
    required("type", &[OneOf(&["function_call"])]),
    optional("id", &[String]),
    optional("caller", CALLER),
    optional("namespace", &[String]),
    optional("status", STATUS),
]);
static FUNCTION_CALL_OUTPUT: Shape = Shape(&[
    required("call_id", &[String]),
    required("output", OUTPUT),
    required("type", &[OneOf(&["function_call_output"])]),
    optional("id", &[String, Null]),
    optional("caller", CALLER),
    optional("name", &[String, Null]),
    optional("namespace", &[String, Null]),
    optional("status", STATUS_OR_NULL),
]);
static CUSTOM_CALL: Shape = Shape(&[
    required("call_id", &[String]),
    required("input", &[String]),
    required("name", &[String]),
    required("type", &[OneOf(&["custom_tool_call"])]),
    optional("id", &[String]),
    optional("caller", CALLER),
    optional("namespace", &[String]),
]);
static CUSTOM_CALL_OUTPUT: Shape = Shape(&[
    required("call_id", &[String]),
    required("output", OUTPUT),
    required("type", &[OneOf(&["custom_tool_call_output"])]),
    optional("id", &[String]),
    optional("caller", CALLER),
]);

static COMPUTER_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("call_id", &[String]),
    required("pending_safety_checks", &[Array(&[AnyObject])]),
    required("status", STATUS),
    required("type", &[OneOf(&["computer_call"])]),
    optional("action", &[AnyObject]),
    optional("actions", &[Array(&[AnyObject])]),
]);
static COMPUTER_CALL_OUTPUT: Shape = Shape(&[
    required("call_id", &[String]),
    required("output", &[Object(&SCREENSHOT)]),
    required("type", &[OneOf(&["computer_call_output"])]),
    optional("id", &[String, Null]),
    optional("acknowledged_safety_checks", &[Array(&[AnyObject]), Null]),
    optional("status", STATUS_OR_NULL),
]);
static SCREENSHOT: Shape = Shape(&[
    required("type", &[OneOf(&["computer_screenshot"])]),
    optional("file_id", &[String]),
    optional("image_url", &[String]),
]);

static SHELL_CALL: Shape = Shape(&[
    required("action", &[AnyObject]),
    required("call_id", &[String]),
    required("type", &[OneOf(&["shell_call"])]),
    optional("id", &[String, Null]),
    optional("caller", CALLER),
    optional("environment", &[AnyObject, Null]),
    optional("status", STATUS_OR_NULL),
]);
static SHELL_CALL_OUTPUT: Shape = Shape(&[
    required("call_id", &[String]),
    required("output", &[Array(&[Object(&COMMAND_OUTPUT)])]),
    required("type", &[OneOf(&["shell_call_output"])]),
    optional("id", &[String, Null]),
    optional("caller", CALLER),
    optional("max_output_length", &[Number, Null]),
    optional("status", STATUS_OR_NULL),
]);
static COMMAND_OUTPUT: Shape =
    Shape(&[required("outcome", &[AnyObject]), required("stderr", &[String]), required("stdout", &[String])]);

static PATCH_CALL: Shape = Shape(&[
    required("call_id", &[String]),
    required("operation", &[AnyObject]),
    required("status", &[OneOf(&["in_progress", "completed"])]),
    required("type", &[OneOf(&["apply_patch_call"])]),
    optional("id", &[String, Null]),
    optional("caller", CALLER),
]);
static PATCH_CALL_OUTPUT: Shape = Shape(&[
    required("call_id", &[String]),
    required("status", &[OneOf(&["completed", "failed"])]),
    required("type", &[OneOf(&["apply_patch_call_output"])]),
    optional("id", &[String, Null]),
    optional("caller", CALLER),
    optional("output", &[String, Null]),
]);

static LOCAL_SHELL_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("action", &[AnyObject]),
    required("call_id", &[String]),
    required("status", STATUS),
    required("type", &[OneOf(&["local_shell_call"])]),
]);
/// The server wants `call_id`, which is not in the type (gh:openai/openai-agents-python#1855).
static LOCAL_SHELL_CALL_OUTPUT: Shape = Shape(&[
    required("id", &[String]),
    optional("call_id", &[String]),
    required("output", &[String]),
    required("type", &[OneOf(&["local_shell_call_output"])]),
    optional("status", STATUS_OR_NULL),
]);

const TEXT_OR_NULL: &[Type] = &[String, Null];

static WEB_SEARCH_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("action", &[AnyObject]),
    required("status", &[String]),
    required("type", &[OneOf(&["web_search_call"])]),
]);
static FILE_SEARCH_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("queries", &[Array(&[String])]),
    required("status", &[String]),
    required("type", &[OneOf(&["file_search_call"])]),
    optional("results", &[Array(&[AnyObject]), Null]),
]);
static CODE_INTERPRETER_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("code", TEXT_OR_NULL),
    required("container_id", &[String]),
    required("outputs", &[Array(&[AnyObject]), Null]),
    required("status", &[String]),
    required("type", &[OneOf(&["code_interpreter_call"])]),
]);
static IMAGE_GENERATION_CALL: Shape = Shape(&[
    required("id", &[String]),
    required("result", TEXT_OR_NULL),
    required("status", &[String]),
    required("type", &[OneOf(&["image_generation_call"])]),
]);

static MCP_CALL: Shape = Shape(&[
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
static MCP_LIST_TOOLS: Shape = Shape(&[
    required("id", &[String]),
    required("server_label", &[String]),
    required("tools", &[Array(&[AnyObject])]),
    required("type", &[OneOf(&["mcp_list_tools"])]),
    optional("error", TEXT_OR_NULL),
]);
static MCP_APPROVAL_REQUEST: Shape = Shape(&[
    required("id", &[String]),
    required("arguments", &[String]),
    required("name", &[String]),
    required("server_label", &[String]),
    required("type", &[OneOf(&["mcp_approval_request"])]),
]);
static MCP_APPROVAL_RESPONSE: Shape = Shape(&[
    required("approval_request_id", &[String]),
    required("approve", &[Bool]),
    required("type", &[OneOf(&["mcp_approval_response"])]),
    optional("id", TEXT_OR_NULL),
    optional("reason", TEXT_OR_NULL),
]);

static TOOL_SEARCH_CALL: Shape = Shape(&[
    required("arguments", &[Any]),
    required("type", &[OneOf(&["tool_search_call"])]),
    optional("id", TEXT_OR_NULL),
    optional("call_id", TEXT_OR_NULL),
    optional("execution", &[String]),
    optional("status", TEXT_OR_NULL),
]);
static TOOL_SEARCH_OUTPUT: Shape = Shape(&[
    required("tools", &[Array(&[AnyObject])]),
    required("type", &[OneOf(&["tool_search_output"])]),
    optional("id", TEXT_OR_NULL),
    optional("call_id", TEXT_OR_NULL),
    optional("execution", &[String]),
    optional("status", TEXT_OR_NULL),
]);
static ADDITIONAL_TOOLS: Shape = Shape(&[
    required("role", &[OneOf(&["developer"])]),
    required("tools", &[Array(&[AnyObject])]),
    required("type", &[OneOf(&["additional_tools"])]),
    optional("id", TEXT_OR_NULL),
]);
static PROGRAM: Shape = Shape(&[
    required("id", &[String]),
    required("call_id", &[String]),
    required("code", &[String]),
    required("fingerprint", &[String]),
    required("type", &[OneOf(&["program"])]),
]);
static PROGRAM_OUTPUT: Shape = Shape(&[
    required("id", &[String]),
    required("call_id", &[String]),
    required("result", &[String]),
    required("status", &[String]),
    required("type", &[OneOf(&["program_output"])]),
]);

static COMPACTION: Shape = Shape(&[
    required("encrypted_content", &[String]),
    required("type", &[OneOf(&["compaction"])]),
    optional("id", TEXT_OR_NULL),
]);
static COMPACTION_TRIGGER: Shape = Shape(&[required("type", &[OneOf(&["compaction_trigger"])])]);
static ITEM_REFERENCE: Shape =
    Shape(&[required("id", &[String]), optional("type", &[OneOf(&["item_reference"]), Null])]);
