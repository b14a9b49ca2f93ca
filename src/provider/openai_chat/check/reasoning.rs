//! Servers that want a model's reasoning back, in `reasoning_content`.

use serde_json::{Map, Value};

/// Is thinking on? The request says so; else the name of its model shows it, or a message that has thought.
pub(crate) fn is_thinking(request: &Value, messages: &[&Map<String, Value>], models: &[&str]) -> bool {
    if let Some(thinking) = request.get("thinking").filter(|thinking| thinking.is_object()) {
        return thinking.get("type").is_some_and(|mode| mode == "enabled");
    }
    let model = request.get("model").and_then(Value::as_str).unwrap_or_default();
    models.iter().any(|name| model.contains(name))
        || messages.iter().any(|message| message.get("reasoning_content").is_some_and(Value::is_string))
}
