//! A file of tools, in the words of one wire or another.

use std::path::Path;

use conversation_store::model::Json;
use conversation_store::provider::Tool;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::failure::Failure;
use super::lines::Input;

/// A tool: OpenAI chat has its declaration under `function`, the other wires have it as it is.
#[derive(Deserialize)]
struct Given<'a> {
    #[serde(borrow)]
    function: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Declaration<'a> {
    name: String,
    description: Option<String>,
    /// Anthropic calls it `input_schema`.
    #[serde(borrow, alias = "input_schema")]
    parameters: &'a RawValue,
}

/// Reads an array of tools.
pub(super) fn read(path: &Path) -> Result<Vec<Tool>, Failure> {
    let input = Input::open(path)?;
    let name = input.name.clone();
    let text = input.read_text()?;
    let wrong = |error: serde_json::Error| {
        let wanted = "expected an array of tools, each with name, description? and parameters (or input_schema)";
        Failure::usage(format!("{name}: {error}; {wanted}"))
    };
    let tools: Vec<&RawValue> = serde_json::from_str(&text).map_err(wrong)?;
    let tools = tools.into_iter().map(|tool| {
        let given: Given<'_> = serde_json::from_str(tool.get()).map_err(wrong)?;
        let declaration = given.function.unwrap_or(tool).get();
        let Declaration { name, description, parameters } = serde_json::from_str(declaration).map_err(wrong)?;
        let parameters = Json::new(parameters.get()).map_err(|error| Failure::usage(error.to_string()))?;
        let tool = Tool::new(name, parameters);
        Ok(description.into_iter().fold(tool, Tool::with_description))
    });
    tools.collect()
}
