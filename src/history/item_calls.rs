//! Items in which a model asks the application for something other than a function call: a shell, a computer, a patch,
//! permission to call a server. They are opaque chunks, known by their kind, and so are the answers.

use serde_json::Value;

use crate::json;
use crate::model::{Body, Chunk, Json};

/// What runs a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolKind {
    /// A function: JSON arguments, a result.
    Function,
    /// A tool whose input is text.
    Custom,
    /// Commands for a shell.
    Shell,
    /// Commands for a shell on the application's own machine.
    LocalShell,
    /// A change of a file.
    ApplyPatch,
    /// An action on a screen, answered by a picture of it.
    Computer,
    /// May a tool of an MCP server be called?
    McpApproval,
    /// A search for tools that the application runs.
    ToolSearch,
}

impl serde::Serialize for ToolKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl ToolKind {
    /// The kind's name in JSON: `function`, `local_shell` ...
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Custom => "custom",
            Self::Shell => "shell",
            Self::LocalShell => "local_shell",
            Self::ApplyPatch => "apply_patch",
            Self::Computer => "computer",
            Self::McpApproval => "mcp_approval",
            Self::ToolSearch => "tool_search",
        }
    }
}

/// A kind of item that asks, and what answers it.
struct Row {
    kind: ToolKind,
    asks: &'static str,
    /// The field with its id.
    id: &'static str,
    /// The field that has the action.
    what: &'static str,
    answers: &'static str,
    /// The fields of an answer with the id.
    of: &'static [&'static str],
}

/// Source: `ResponseInputItemParam` of the official Python SDK (openai 2.54.0).
const ROWS: &[Row] = &[
    row(ToolKind::Computer, "computer_call", "action", "computer_call_output", &["call_id"]),
    row(ToolKind::Shell, "shell_call", "action", "shell_call_output", &["call_id"]),
    row(ToolKind::LocalShell, "local_shell_call", "action", "local_shell_call_output", &["call_id", "id"]),
    row(ToolKind::ApplyPatch, "apply_patch_call", "operation", "apply_patch_call_output", &["call_id"]),
    row(ToolKind::ToolSearch, "tool_search_call", "arguments", "tool_search_output", &["call_id"]),
    Row {
        id: "id",
        ..row(
            ToolKind::McpApproval,
            "mcp_approval_request",
            "arguments",
            "mcp_approval_response",
            &["approval_request_id"],
        )
    },
];

const fn row(
    kind: ToolKind,
    asks: &'static str,
    what: &'static str,
    answers: &'static str,
    of: &'static [&'static str],
) -> Row {
    Row { kind, asks, id: "call_id", what, answers, of }
}

/// What an item asks.
pub(crate) struct Asked<'a> {
    pub(crate) kind: ToolKind,
    pub(crate) id: String,
    /// Of an MCP server's tool, its name; else the kind's.
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) raw: &'a Json,
}

/// What the application is asked by a chunk that is no call of a function.
pub(super) fn asked_by(chunk: &Chunk) -> Option<Asked<'_>> {
    let Body::Opaque { kind, json, .. } = &chunk.body else { return None };
    asked(kind, json)
}

/// Which call of what kind a chunk answers that is no result of a function.
pub(super) fn answered_by(chunk: &Chunk) -> Option<(ToolKind, String)> {
    let Body::Opaque { kind, json, .. } = &chunk.body else { return None };
    answered(kind, json)
}

/// What the application is asked by an item of this kind.
pub(crate) fn asked<'a>(kind: &str, json: &'a Json) -> Option<Asked<'a>> {
    let row = ROWS.iter().find(|row| row.asks == kind)?;
    let item = json::value::<Value>(json.as_str()).ok()?;
    if !is_applications(row.kind, &item) {
        return None;
    }
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let arguments = match item.get(row.what).or_else(|| item.get("actions")) {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(what) => what.to_string(),
    };
    let name = Some(text("name")).filter(|name| !name.is_empty()).unwrap_or_else(|| row.kind.name().to_owned());
    Some(Asked { kind: row.kind, id: text(row.id), name, arguments, raw: json })
}

/// Which call of what kind an item of this kind answers.
pub(crate) fn answered(kind: &str, json: &Json) -> Option<(ToolKind, String)> {
    let row = ROWS.iter().find(|row| row.answers == kind)?;
    let item = json::value::<Value>(json.as_str()).ok()?;
    let id = row.of.iter().find_map(|name| item.get(name)?.as_str()).unwrap_or_default();
    is_applications(row.kind, &item).then(|| (row.kind, id.to_owned()))
}

/// A search that the provider runs asks nothing of the application.
fn is_applications(kind: ToolKind, item: &Value) -> bool {
    kind != ToolKind::ToolSearch || item.get("execution").is_some_and(|who| who == "client")
}
