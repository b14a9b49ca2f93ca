//! The official types of an item (openai 2.54.0, `ResponseInputItemParam`), type by type. What a hosted tool has put
//! into its own item is left to it: new kinds come with every release.

mod calls;
mod hosted;
pub(crate) mod messages;

use crate::provider::check::shape::Shape;

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
    ItemType { prefix: "msg", ..given("message", &messages::EASY_MESSAGE) },
    by_model("reasoning", "rs", "", &messages::REASONING),
    by_model("function_call", "fc", "function_call_output", &calls::FUNCTION_CALL),
    given("function_call_output", &calls::FUNCTION_CALL_OUTPUT),
    by_model("custom_tool_call", "ctc", "custom_tool_call_output", &calls::CUSTOM_CALL),
    given("custom_tool_call_output", &calls::CUSTOM_CALL_OUTPUT),
    by_model("computer_call", "cu", "computer_call_output", &calls::COMPUTER_CALL),
    given("computer_call_output", &calls::COMPUTER_CALL_OUTPUT),
    by_model("shell_call", "", "shell_call_output", &calls::SHELL_CALL),
    given("shell_call_output", &calls::SHELL_CALL_OUTPUT),
    by_model("apply_patch_call", "", "apply_patch_call_output", &calls::PATCH_CALL),
    given("apply_patch_call_output", &calls::PATCH_CALL_OUTPUT),
    by_model("local_shell_call", "lsh", "", &calls::LOCAL_SHELL_CALL),
    given("local_shell_call_output", &calls::LOCAL_SHELL_CALL_OUTPUT),
    by_model("web_search_call", "ws", "", &hosted::WEB_SEARCH_CALL),
    by_model("file_search_call", "fs", "", &hosted::FILE_SEARCH_CALL),
    by_model("code_interpreter_call", "ci", "", &hosted::CODE_INTERPRETER_CALL),
    by_model("image_generation_call", "ig", "", &hosted::IMAGE_GENERATION_CALL),
    by_model("mcp_call", "mcp", "", &hosted::MCP_CALL),
    by_model("mcp_list_tools", "mcpl", "", &hosted::MCP_LIST_TOOLS),
    by_model("mcp_approval_request", "mcpr", "", &hosted::MCP_APPROVAL_REQUEST),
    given("mcp_approval_response", &hosted::MCP_APPROVAL_RESPONSE),
    by_model("tool_search_call", "", "", &hosted::TOOL_SEARCH_CALL),
    given("tool_search_output", &hosted::TOOL_SEARCH_OUTPUT),
    given("additional_tools", &hosted::ADDITIONAL_TOOLS),
    by_model("program", "", "", &hosted::PROGRAM),
    given("program_output", &hosted::PROGRAM_OUTPUT),
    by_model("compaction", "cmp", "", &hosted::COMPACTION),
    given("compaction_trigger", &hosted::COMPACTION_TRIGGER),
    given("item_reference", &hosted::ITEM_REFERENCE),
];
