use crate::provider::Target;
use serde_json::{Map, Value};
#[derive(Debug, Default)]
pub(super) struct ToolNames {}
pub(super) enum Declared {
    Function { name: String, namespace: Option<String> },
    Custom { name: String, namespace: Option<String> },
}
impl ToolNames {
    pub(super) fn of(_: &Map<String, Value>, _: Target) -> Self {
        Self {}
    }
    pub(super) fn back(&self, name: &str) -> Declared {
        Declared::Function { name: name.to_owned(), namespace: None }
    }
}
#[derive(Clone, Copy)]
pub(super) enum HostedTools {
    Refuse,
    Drop,
}
