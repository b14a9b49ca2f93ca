//! The tools of a request: as the wire of a model has them, and back.
//!
//! Of all wires but the one of Responses itself, a tool is a function. A custom tool becomes a function with one text, `input`; a
//! namespace becomes its tools, with the namespace before their names. Names are such that every wire takes them, and are the same
//! on all wires: a history may move.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::parameters::kinds::{unsupported, wrong};
use crate::history::{Conversation, StoredMessage};
use crate::json::fields::{Fields, array};
use crate::model::{Body, Chunk, Json};
use crate::provider::parameters::choice::Choice;
use crate::provider::{NameRule, Target, Tool};
use crate::server::refusal::Refusal;

/// What all wires take as the name of a function.
const NAMES: NameRule = NameRule { max: 64, marks: &['_', '-'], begins_freely: false };
/// What comes between a namespace and the name of its tool.
const SEPARATOR: &str = "__";
/// The only argument of a custom tool.
const INPUT: &str = "input";
/// The wire that has all kinds of tools.
const RESPONSES: &str = "openai-responses";

/// What becomes of tools that a provider runs itself, where the model's server has none of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostedTools {
    /// The request is refused.
    Refuse,
    /// They are left out, and the report says so.
    Drop,
}

/// A tool as the client declared it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Declared {
    /// A function.
    Function {
        /// Its name.
        name: String,
        /// The namespace that it is in.
        namespace: Option<String>,
    },
    /// A tool whose input is text.
    Custom {
        /// Its name.
        name: String,
        /// The namespace that it is in.
        namespace: Option<String>,
    },
}

impl Declared {
    fn name(&self) -> (Option<&str>, &str) {
        match self {
            Self::Function { name, namespace } | Self::Custom { name, namespace } => (namespace.as_deref(), name),
        }
    }
}

/// How calls of the model go back to what the client declared.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolNames {
    /// By the names that the model knows.
    declared: HashMap<String, Declared>,
    /// The other way.
    sent: HashMap<(Option<String>, String), String>,
    /// On a wire that has namespaces, the custom tools in them.
    customs: HashSet<String>,
    /// Whether the wire has all kinds of tools.
    is_own: bool,
}

impl ToolNames {
    /// Of the tools that a response repeats.
    pub(super) fn of(fields: &Map<String, Value>, target: Target) -> Self {
        let tools = fields.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let read = Tools::read(tools, None, target, HostedTools::Drop, &mut Vec::new());
        read.map(|read| read.names).unwrap_or_default()
    }

    /// What the client declared by the name that the model calls. A name that nobody declared is a function's.
    pub(super) fn back(&self, name: &str) -> Declared {
        let declared = self.declared.get(name).cloned();
        declared.unwrap_or_else(|| Declared::Function { name: name.to_owned(), namespace: None })
    }

    /// Whether the model calls a custom tool by this name.
    pub(super) fn is_custom(&self, name: &str) -> bool {
        match self.declared.get(name) {
            Some(declared) => matches!(declared, Declared::Custom { .. }),
            None => self.customs.contains(name),
        }
    }

    /// The name by which the model knows a tool. One that is not declared now may have been called before.
    pub(super) fn sent<'a>(&'a self, namespace: Option<&str>, name: &'a str) -> Cow<'a, str> {
        match self.sent.get(&(namespace.map(str::to_owned), name.to_owned())) {
            Some(sent) => Cow::Borrowed(sent),
            None if self.is_own => Cow::Borrowed(name),
            None => self.free_name(namespace, name),
        }
    }

    /// A name that no declared tool has.
    fn free_name<'a>(&self, namespace: Option<&str>, name: &'a str) -> Cow<'a, str> {
        let joined = match namespace {
            None => Cow::Borrowed(name),
            Some(space) if space.ends_with(SEPARATOR) => Cow::Owned(format!("{space}{name}")),
            Some(space) => Cow::Owned(format!("{space}{SEPARATOR}{name}")),
        };
        let fitted = match joined {
            Cow::Borrowed(name) => NAMES.fit(name),
            Cow::Owned(name) => Cow::Owned(NAMES.fit(&name).into_owned()),
        };
        if !self.declared.contains_key(&*fitted) {
            return fitted;
        }
        // What no name may hold makes a digest of both, and of the attempt.
        let mut attempts = (0_u32..).map(|at| {
            let whole = format!("{}\n{name}\n{at}", namespace.unwrap_or_default());
            NAMES.fit(&whole).into_owned()
        });
        let free = attempts.find(|made| !self.declared.contains_key(made));
        Cow::Owned(free.unwrap_or_default())
    }

    fn add(&mut self, tool: Declared, sent: String) {
        let (namespace, name) = tool.name();
        self.sent.insert((namespace.map(str::to_owned), name.to_owned()), sent.clone());
        self.declared.insert(sent, tool);
    }

    /// The conversation with its calls under the names that the model knows, and the input of custom tools as their argument.
    pub(super) fn sent_in(&self, conversation: Conversation) -> Conversation {
        if self.is_own {
            return conversation;
        }
        conversation
            .changed(|stored: &mut StoredMessage| stored.message.chunks.iter_mut().for_each(|call| self.send(call)))
    }

    fn send(&self, chunk: &mut Chunk) {
        let native =
            chunk.native.take_if(|native| native.wire == RESPONSES && matches!(chunk.body, Body::ToolCall { .. }));
        let Some(native) = native else { return };
        let Body::ToolCall { name, arguments, .. } = &mut chunk.body else { return };
        let Ok(mut item) = Fields::read(native.json.as_str()) else { return };
        let namespace = item.string("namespace");
        if item.says("type", "custom_tool_call") {
            *arguments = custom_arguments(arguments);
        }
        *name = self.sent(namespace.as_deref(), name).into_owned();
    }
}

/// The input of a custom tool, as the arguments of the function in its place.
pub(super) fn custom_arguments(input: &str) -> String {
    json!({ INPUT: input }).to_string()
}

/// The input of a custom tool in the arguments of the function in its place. A model that wrote something else meant that.
pub(super) fn custom_input(arguments: &str) -> String {
    let read = serde_json::from_str::<Map<String, Value>>(arguments).ok();
    let input = read.and_then(|mut fields| if fields.len() == 1 { fields.remove(INPUT) } else { None });
    match input {
        Some(Value::String(input)) => input,
        _ => arguments.to_owned(),
    }
}

/// A request's tools.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Those that are declared to the model by the renderer.
    pub(super) functions: Vec<Tool>,
    pub(super) names: ToolNames,
    /// Names that the client declared, with their kinds.
    choices: Vec<(Declared, String)>,
    /// Kinds of tools that are no functions, where the wire has them.
    hosted: usize,
}

impl Tools {
    /// `tools`: the value of the request; `text`: the same as it was written.
    pub(super) fn read(
        tools: &[Value],
        text: Option<&RawValue>,
        target: Target,
        hosted: HostedTools,
        report: &mut Vec<String>,
    ) -> Result<Self, Refusal> {
        let is_own = target.wire().name == RESPONSES;
        let mut read = Self { names: ToolNames { is_own, ..ToolNames::default() }, ..Self::default() };
        let texts = text.and_then(array).unwrap_or_default();
        let mut found = Vec::new();
        for (at, tool) in tools.iter().enumerate() {
            let place = format!("tools[{at}]");
            let fields = tool.as_object().ok_or_else(|| wrong(&place, "an object", tool))?;
            let text = texts.get(at).and_then(|raw| Fields::of(raw));
            match required(fields, &place, "type")? {
                kind @ ("function" | "custom") => found.push(Given::read(fields, text, kind, None, &place)?),
                "namespace" => found.extend(Given::read_all(fields, text, &place)?),
                _ if is_own => read.hosted += 1,
                kind => match hosted {
                    HostedTools::Drop => report.push(format!("{place}: {target} has no tool of type {kind}: not sent")),
                    HostedTools::Refuse => {
                        let problem = format!("{target} has no tool of type '{kind}'");
                        return Err(unsupported(&place, &problem));
                    }
                },
            }
        }
        // Tools outside of namespaces keep their names, whatever comes before them.
        found.sort_by_key(|given| given.tool.name().0.is_some());
        let mut known = HashSet::new();
        for given in found {
            if !known.insert(given.tool.clone()) && !is_own {
                let problem = format!("two tools have the name '{}'", given.tool.name().1);
                return Err(Refusal::value(given.place, &problem));
            }
            read.take(given, is_own)?;
        }
        Ok(read)
    }

    fn take(&mut self, given: Given, is_own: bool) -> Result<(), Refusal> {
        let (namespace, name) = given.tool.name();
        let is_in_namespace = namespace.is_some();
        let sent = if is_own { name.to_owned() } else { self.names.free_name(namespace, name).into_owned() };
        self.choices.push((given.tool.clone(), sent.clone()));
        if !is_own {
            let mut tool = Tool::new(
                sent.clone(),
                Json::new(given.parameters).map_err(|error| Refusal::value(&given.place, &error.to_string()))?,
            );
            tool.description = given.description;
            tool.strict = given.strict;
            self.functions.push(tool);
        }
        // On its own wire, items say of which namespace their tools are.
        if !is_own || !is_in_namespace {
            self.names.add(given.tool, sent);
        } else if let Declared::Custom { name, .. } = given.tool {
            self.names.customs.insert(name);
        }
        Ok(())
    }

    /// Whether the model has anything to call.
    pub(super) fn is_empty(&self) -> bool {
        self.choices.is_empty() && self.hosted == 0
    }

    /// What the model may call, of a request's `tool_choice`. Of allowed tools the others are no longer declared.
    pub(super) fn choose(&mut self, value: &Value) -> Result<Choice, Refusal> {
        const PARAM: &str = "tool_choice";
        let choice = match value {
            Value::String(word) => mode(word, PARAM)?,
            Value::Object(fields) => match required(fields, PARAM, "type")? {
                "allowed_tools" => {
                    let word = optional(fields, PARAM, "mode", "a string", |value| value.as_str().map(str::to_owned))?;
                    self.allow(fields.get("tools").unwrap_or(&Value::Null))?;
                    mode(word.as_deref().unwrap_or("auto"), PARAM)?
                }
                _ => Choice::One(self.named(fields, PARAM)?),
            },
            other => return Err(wrong(PARAM, "a string or an object", other)),
        };
        if self.is_empty() && !matches!(choice, Choice::Auto | Choice::None) {
            return Err(Refusal::value(PARAM, "no tool is declared that can be called"));
        }
        Ok(choice)
    }

    fn allow(&mut self, tools: &Value) -> Result<(), Refusal> {
        const PARAM: &str = "tool_choice.tools";
        let tools = tools.as_array().ok_or_else(|| wrong(PARAM, "an array", tools))?;
        let mut allowed = HashSet::new();
        for (at, tool) in tools.iter().enumerate() {
            let place = format!("{PARAM}[{at}]");
            let fields = tool.as_object().ok_or_else(|| wrong(&place, "an object", tool))?;
            match required(fields, &place, "type")? {
                "namespace" => {
                    let namespace = required(fields, &place, "name")?;
                    let of = self.choices.iter().filter(|(tool, _)| tool.name().0 == Some(namespace));
                    allowed.extend(of.map(|(_, sent)| sent.clone()));
                }
                _ => {
                    allowed.insert(self.named(fields, &place)?);
                }
            }
        }
        self.functions.retain(|tool| allowed.contains(&tool.name));
        self.choices.retain(|(_, sent)| allowed.contains(sent));
        Ok(())
    }

    /// The name, as the model knows it, of the tool that an object names.
    fn named(&self, fields: &Map<String, Value>, place: &str) -> Result<String, Refusal> {
        let kind = required(fields, place, "type")?;
        if !matches!(kind, "function" | "custom") {
            return Err(unsupported(place, &format!("the model has no tool of type '{kind}'")));
        }
        let name = required(fields, place, "name")?;
        let namespace = fields.get("namespace").and_then(Value::as_str);
        let found = self.choices.iter().find(|(tool, _)| {
            let is_custom = matches!(tool, Declared::Custom { .. });
            is_custom == (kind == "custom") && tool.name() == (namespace, name)
        });
        let found = found.map(|(_, sent)| sent.clone());
        found.ok_or_else(|| Refusal::value(place, &format!("'{name}' is not among the tools")))
    }
}

fn mode(word: &str, param: &str) -> Result<Choice, Refusal> {
    match word {
        "auto" => Ok(Choice::Auto),
        "none" => Ok(Choice::None),
        "required" => Ok(Choice::Required),
        _ => Err(Refusal::value(param, "expected auto, none or required")),
    }
}

/// A tool that was read.
#[derive(Debug)]
struct Given {
    tool: Declared,
    description: Option<String>,
    /// JSON Schema.
    parameters: String,
    strict: Option<bool>,
    place: String,
}

impl Given {
    fn read(
        fields: &Map<String, Value>,
        text: Option<Fields<'_>>,
        kind: &str,
        namespace: Option<&str>,
        place: &str,
    ) -> Result<Self, Refusal> {
        let name = required(fields, place, "name")?.to_owned();
        if name.is_empty() {
            return Err(Refusal::value(format!("{place}.name"), "it is empty"));
        }
        let namespace = namespace.map(str::to_owned);
        let given = Self {
            tool: Declared::Function { name: name.clone(), namespace: namespace.clone() },
            description: optional(fields, place, "description", "a string", |value| value.as_str().map(str::to_owned))?,
            parameters: String::new(),
            strict: optional(fields, place, "strict", "a boolean", Value::as_bool)?,
            place: place.to_owned(),
        };
        if kind == "custom" {
            let parameters = json!({
                "type": "object",
                "properties": { INPUT: { "type": "string", "description": input_of(fields) } },
                "required": [INPUT],
                "additionalProperties": false,
            });
            let tool = Declared::Custom { name, namespace };
            return Ok(Self { tool, parameters: parameters.to_string(), strict: None, ..given });
        }
        let parameters = optional(fields, place, "parameters", "an object", |value| value.as_object().cloned())?;
        let text = text.and_then(|text| text.peek("parameters"));
        Ok(Self { parameters: schema(parameters.unwrap_or_default(), text), ..given })
    }

    /// The tools of a namespace.
    fn read_all(fields: &Map<String, Value>, text: Option<Fields<'_>>, place: &str) -> Result<Vec<Self>, Refusal> {
        let name = required(fields, place, "name")?;
        let about = optional(fields, place, "description", "a string", |value| value.as_str().map(str::to_owned))?;
        let tools = fields.get("tools").unwrap_or(&Value::Null);
        let tools = tools.as_array().ok_or_else(|| wrong(&format!("{place}.tools"), "an array", tools))?;
        let texts = text.and_then(|text| text.peek("tools")).and_then(array).unwrap_or_default();
        let read = tools.iter().enumerate().map(|(at, tool)| {
            let place = format!("{place}.tools[{at}]");
            let fields = tool.as_object().ok_or_else(|| wrong(&place, "an object", tool))?;
            let kind = required(fields, &place, "type")?;
            if !matches!(kind, "function" | "custom") {
                return Err(Refusal::value(format!("{place}.type"), "expected function or custom"));
            }
            let text = texts.get(at).and_then(|raw| Fields::of(raw));
            let given = Self::read(fields, text, kind, Some(name), &place)?;
            // The model sees no namespace that could say it.
            let description = match (&about, given.description) {
                (Some(about), Some(own)) if !about.is_empty() => Some(format!("{about}\n\n{own}")),
                (about, None) => about.clone(),
                (_, own) => own,
            };
            Ok(Self { description, ..given })
        });
        read.collect()
    }
}

/// What a custom tool takes, in words for the model: no other wire can hold it to a grammar.
fn input_of(fields: &Map<String, Value>) -> String {
    let format = fields.get("format");
    let of = |name: &str| format.and_then(|format| format.get(name)).and_then(Value::as_str).unwrap_or_default();
    match of("type") {
        "grammar" => {
            format!("Text that this grammar in {} accepts, and nothing else:\n{}", of("syntax"), of("definition"))
        }
        _ => "Text, as it is.".to_owned(),
    }
}

/// The schema as it was written. Arguments are an object: some wires want it to say so.
fn schema(parameters: Map<String, Value>, text: Option<&RawValue>) -> String {
    match text {
        Some(text) if parameters.contains_key("type") => text.get().to_owned(),
        _ => {
            let mut parameters = parameters;
            parameters.entry("type").or_insert_with(|| "object".into());
            if parameters.len() == 1 {
                parameters.insert("properties".to_owned(), json!({}));
            }
            Value::Object(parameters).to_string()
        }
    }
}

fn required<'a>(fields: &'a Map<String, Value>, place: &str, name: &str) -> Result<&'a str, Refusal> {
    let place = format!("{place}.{name}");
    match fields.get(name) {
        None | Some(Value::Null) => Err(Refusal::missing(&place)),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(wrong(&place, "a string", other)),
    }
}

fn optional<T>(
    fields: &Map<String, Value>,
    place: &str,
    name: &str,
    expected: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, Refusal> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read(value).map(Some).ok_or_else(|| wrong(&format!("{place}.{name}"), expected, value)),
    }
}

#[cfg(test)]
mod tests;
