//! Tools as the requests of the wires declare them, to what all of them can declare.

use serde_json::value::RawValue;

use super::forms::ToolForm;
use crate::error::{Error, Result};
use crate::json;
use crate::json::fields::Fields;
use crate::model::Json;
use crate::provider::WIRES;
use crate::provider::prompt::arguments::EMBEDDED_DEPTH;
use crate::provider::prompt::tools::Tool;
use crate::provider::target::Wire;

impl Tool {
    /// Reads a request's array of tools, as any of the wires writes it: `{"type": "function", "function": {..}}`,
    /// `{"name", "parameters"}`, `{"name", "input_schema"}`, `{"functionDeclarations": [..]}`.
    ///
    /// ```
    /// use conversation_store::provider::Tool;
    ///
    /// let tools = Tool::from_json(r#"[{"name": "clock", "input_schema": {"type": "object"}}]"#)?;
    /// assert_eq!((tools[0].name.as_str(), tools[0].parameters.as_str()), ("clock", r#"{"type": "object"}"#));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` if the text is no array, or one of the tools is of a provider's own kind (a web search, say): it has
    /// no JSON Schema, or one of Gemini's own types.
    pub fn from_json(tools: &str) -> Result<Vec<Self>> {
        let none = |error: String| Error::InvalidInput(format!("no tools: expected an array of them: {error}"));
        let tools: &RawValue = serde_json::from_str(tools).map_err(|error| none(error.to_string()))?;
        let declared = declared(tools, WIRES).ok_or_else(|| none("it is something else".to_owned()))?;
        let tools = declared.into_iter().map(|(place, tool)| {
            tool.map_err(|problem| Error::InvalidInput(format!("tools{place} cannot be declared elsewhere: {problem}")))
        });
        tools.collect()
    }
}

/// A tool that is declared, or why other wires cannot declare it.
pub(crate) type Found = std::result::Result<Tool, &'static str>;

/// Each tool of an array, or of what a wire has in its place, with its place in it.
pub(crate) fn declared(tools: &RawValue, wires: &[&Wire]) -> Option<Vec<(String, Found)>> {
    let mut found = Vec::new();
    let (items, others) = forms(wires).find_map(|form| (form.items)(tools))?;
    for (at, item) in items.into_iter().enumerate() {
        let mut fields = Fields::of(item).unwrap_or_default();
        let mut lists = forms(wires).filter_map(|form| form.list);
        match lists.find_map(|list| Some((list, fields.array(list)?))) {
            None => found.push((format!("[{at}]"), tool(fields, wires))),
            Some((list, functions)) => {
                for (function, declaration) in functions.into_iter().enumerate() {
                    let place = format!("[{at}].{list}[{function}]");
                    found.push((place, tool(Fields::of(declaration).unwrap_or_default(), wires)));
                }
                found.extend(fields.names().map(|name| (format!("[{at}].{name}"), Err("it is the provider's own"))));
            }
        }
    }
    found.extend(others.names().map(|name| (format!(".{name}"), Err("it is no tool"))));
    Some(found)
}

fn forms<'a>(wires: &'a [&Wire]) -> impl Iterator<Item = &'a ToolForm> {
    wires.iter().map(|wire| &wire.tools)
}

fn tool(mut fields: Fields<'_>, wires: &[&Wire]) -> Found {
    let wrapped = forms(wires).filter_map(|form| form.wrapper).find_map(|wrapper| fields.object(wrapper));
    let mut fields = wrapped.unwrap_or(fields);
    let name = fields.string("name").ok_or("it has no name")?;
    let schema = forms(wires).find_map(|form| (form.schema)(&mut fields)).ok_or("it has no JSON Schema")?;
    let kind = Fields::of(schema).ok_or("its JSON Schema is no object")?.string("type");
    // Gemini's own schemas have types of its own: `OBJECT`.
    if kind.is_some_and(|kind| kind != "object") {
        return Err("its schema is none of JSON Schema");
    }
    let parameters = Json::new(schema.get()).ok().filter(|schema| json::depth(schema.as_str()) <= EMBEDDED_DEPTH);
    let parameters = parameters.ok_or("its JSON Schema is nested too deep")?;
    let tool = Tool::new(name, parameters);
    Ok(fields.string("description").into_iter().fold(tool, Tool::with_description))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wires_words_are_read() -> Result<()> {
        let schema = r#"{"type":"object"}"#;
        let of = |tool: String| Tool::from_json(&format!("[{tool}]"));
        let wanted = Tool::new("f", Json::new(schema).map_err(|error| Error::InvalidInput(error.to_string()))?)
            .with_description("d");
        let body = format!(r#""name":"f","description":"d","parameters":{schema}"#);
        for tool in [
            format!(r#"{{"type":"function","function":{{{body}}}}}"#),
            format!(r#"{{"type":"function",{body},"strict":true}}"#),
            format!("{{{}}}", body.replace("parameters", "input_schema")),
            format!(r#"{{"functionDeclarations":[{{{}}}]}}"#, body.replace("parameters", "parametersJsonSchema")),
            format!(r#"{{"toolSpec":{{"name":"f","description":"d","inputSchema":{{"json":{schema}}}}}}}"#),
        ] {
            assert_eq!(of(tool)?, std::slice::from_ref(&wanted));
        }
        for (tool, problem) in [
            (
                r#"{"type":"web_search_20250305","name":"web_search"}"#,
                "tools[0] cannot be declared elsewhere: it has no",
            ),
            (r#"{"googleSearch":{}}"#, "tools[0] cannot be declared elsewhere: it has no name"),
            (
                r#"{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}"#,
                "tools[0].functionDeclarations[0] cannot be declared elsewhere: its schema is none of JSON Schema",
            ),
            (
                r#"{"functionDeclarations":[],"googleSearch":{}}"#,
                "tools[0].googleSearch cannot be declared elsewhere: it is the provider's own",
            ),
        ] {
            let error = of(tool.to_owned()).map_or_else(|error| error.to_string(), |tools| format!("{tools:?}"));
            assert!(error.starts_with(problem), "{error}");
        }
        assert!(Tool::from_json("{}").is_err() && Tool::from_json("nonsense").is_err());
        Ok(())
    }
}
