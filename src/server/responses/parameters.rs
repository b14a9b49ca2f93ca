use super::tools::{HostedTools, ToolNames};
use crate::model::Json;
use crate::provider::{PromptOptions, Target, Tool};
use crate::server::refusal::Refusal;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
pub(super) struct Rendered {
    pub(super) options: PromptOptions,
    pub(super) fields: Map<String, Value>,
    pub(super) report: Vec<String>,
    pub(super) tools: ToolNames,
}
pub(super) fn rendered(
    request: &Map<String, Value>,
    target: Target,
    model: &str,
    _: HostedTools,
    _: Option<u64>,
) -> Result<Rendered, Refusal> {
    let mut options = PromptOptions::new().with_model(model);
    let tools = request.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
    options.tools = tools
        .iter()
        .filter_map(|t| Some(Tool::new(t.get("name")?.as_str()?, Json::new(t.get("parameters")?.to_string()).ok()?)))
        .collect();
    let mut fields = Map::new();
    if !matches!(target.wire().name, "gemini" | "bedrock-converse") {
        fields.insert("model".into(), model.into());
        fields.insert("stream".into(), true.into());
    }
    if target.wire().name == "anthropic" {
        fields.insert("max_tokens".into(), json!(4096));
    }
    if target.wire().name == "openai-responses" {
        fields.insert("store".into(), false.into());
    }
    Ok(Rendered { options, fields, report: Vec::new(), tools: ToolNames::default() })
}
pub(super) fn echo(request: &Map<String, Value>) -> Map<String, Value> {
    let Value::Object(mut all) = json!({"instructions": null, "tools": [], "tool_choice": "auto", "truncation": "disabled", "parallel_tool_calls": true, "text": {"format": {"type": "text"}}, "top_p": 1.0, "presence_penalty": 0, "frequency_penalty": 0, "top_logprobs": 0, "temperature": 1.0, "reasoning": null, "max_output_tokens": null, "max_tool_calls": null, "store": true, "background": false, "service_tier": "default", "metadata": {}, "safety_identifier": null, "prompt_cache_key": null})
    else {
        return Map::new();
    };
    for (n, v) in request {
        if all.contains_key(n) {
            all.insert(n.clone(), v.clone());
        }
    }
    all
}
pub(super) fn merged(history: &RawValue, fields: Map<String, Value>) -> Result<Vec<u8>, Refusal> {
    let mut all: Map<String, Value> =
        serde_json::from_str(history.get()).map_err(|e| Refusal::internal(e.to_string()))?;
    all.extend(fields);
    serde_json::to_vec(&all).map_err(|e| Refusal::internal(e.to_string()))
}
