//! Tools as they are declared to a target: those that the caller has, and stubs of others that the history calls.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use serde::Serialize;
use serde_json::value::RawValue;

use super::arguments::EMBEDDED_DEPTH;
use super::tool_id::NameRule;
use crate::error::{Error, Result};
use crate::history::ReportLine;
use crate::history::report::Fact;
use crate::json;
use crate::model::Json;
use crate::provider::text::is_blank;

/// A tool that the model may call.
///
/// ```
/// use conversation_store::model::Json;
/// use conversation_store::provider::{PromptOptions, Tool};
///
/// let parameters = Json::new(r#"{"type": "object", "properties": {"path": {"type": "string"}}}"#)?;
/// let read = Tool::new("read_file", parameters).with_description("Reads a file of the project.");
/// let options = PromptOptions::new().with_tools([read]);
/// # let _ = options;
/// # Ok::<(), conversation_store::model::JsonError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// Its name, as it is in the calls of the log.
    pub name: String,
    /// What it does, for the model.
    pub description: Option<String>,
    /// JSON Schema of its arguments: an object.
    pub parameters: Json,
    /// Whether the model's arguments have to fit the schema exactly, where the target has a word for it. `None`: nothing is
    /// said of it.
    pub strict: Option<bool>,
}

impl Tool {
    /// A tool of this name, whose arguments have this JSON Schema.
    #[must_use]
    pub fn new(name: impl Into<String>, parameters: Json) -> Self {
        Self { name: name.into(), description: None, parameters, strict: None }
    }

    /// Sets what it does.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets whether the model's arguments have to fit the schema exactly.
    #[must_use]
    pub fn with_strict(mut self, strict: bool) -> Self {
        self.strict = Some(strict);
        self
    }
}

/// A tool in a target's words.
#[derive(Debug, Serialize)]
pub(crate) struct Declared<'a> {
    pub(crate) name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<&'a str>,
    /// JSON Schema, an object.
    pub(crate) parameters: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strict: Option<bool>,
}

/// The caller's tools in their order; after them stubs of those that were called besides, by name.
pub(crate) fn declared<'a>(
    tools: &'a [Tool],
    names: NameRule,
    called: BTreeSet<Cow<'a, str>>,
    report: &mut Vec<ReportLine>,
) -> Result<Vec<Declared<'a>>> {
    let mut declared: Vec<Declared<'a>> = Vec::new();
    let mut known = HashSet::new();
    for tool in tools {
        let name = names.fit(&tool.name);
        if !known.insert(name.clone()) {
            return Err(Error::InvalidInput(format!("two tools are declared by the name {name:?}")));
        }
        if name != tool.name {
            report.push(ReportLine::new(Fact::DeclarationRenamed { from: &tool.name, to: &name }));
        }
        let description = tool.description.as_deref().filter(|text| !is_blank(text));
        declared.push(Declared { name, description, parameters: schema(tool)?, strict: tool.strict });
    }
    let others = called.into_iter().filter(|name| !known.contains(name));
    declared.extend(others.map(|name| Declared { name, description: None, parameters: stub(), strict: None }));
    Ok(declared)
}

fn schema(tool: &Tool) -> Result<Box<RawValue>> {
    let text = tool.parameters.as_str();
    if !json::is_object(text) || json::depth(text) > EMBEDDED_DEPTH {
        let detail = format!("the parameters of the tool {:?} are no JSON object, or nested too deep", tool.name);
        return Err(Error::InvalidInput(detail));
    }
    let text = json::one_line(&json::replace_lone_surrogates(text)).into_owned();
    RawValue::from_string(text).map_err(|error| Error::InvalidInput(format!("the tool {:?}: {error}", tool.name)))
}

/// Any object.
fn stub() -> Box<RawValue> {
    RawValue::from_string(r#"{"type":"object"}"#.to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Rule;

    const NAMES: NameRule = NameRule::words(64);

    fn tool(name: &str, parameters: &str) -> Result<Tool> {
        let parameters = Json::new(parameters).map_err(|error| Error::InvalidInput(error.to_string()))?;
        Ok(Tool::new(name, parameters))
    }

    #[test]
    fn stubs_stand_behind_the_callers_tools() -> Result<()> {
        let tools = [tool("z", "{\n\"type\":\"object\"}")?.with_description(" "), tool("a.b", "{}")?];
        let called = ["z", "m", "c"].into_iter().map(Cow::Borrowed).collect();
        let mut report = Vec::new();
        let declared = declared(&tools, NAMES, called, &mut report)?;
        let names: Vec<_> = declared.iter().map(|tool| (tool.name.as_ref(), tool.parameters.get())).collect();
        let fitted = NAMES.fit("a.b");
        let stub = r#"{"type":"object"}"#;
        assert_eq!(names, [("z", stub), (&fitted, "{}"), ("c", stub), ("m", stub)]);
        assert!(declared.iter().all(|tool| tool.description.is_none()));
        assert_eq!(report.iter().map(|line| line.rule).collect::<Vec<_>>(), [Rule::NameChanged]);
        Ok(())
    }

    #[test]
    fn what_no_target_takes_is_an_error() -> Result<()> {
        let deep = format!("{}1{}", "{\"a\":".repeat(101), "}".repeat(101));
        for tools in [vec![tool("a", "{}")?, tool("a", "{}")?], vec![tool("a", "[]")?], vec![tool("a", &deep)?]] {
            let result = declared(&tools, NAMES, BTreeSet::new(), &mut Vec::new());
            assert!(matches!(result, Err(Error::InvalidInput(_))), "{tools:?}");
        }
        Ok(())
    }
}
