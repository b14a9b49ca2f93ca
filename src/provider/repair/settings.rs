//! What a request says beside its messages and tools, on another wire: the length of the answer, how its words are chosen, which
//! tools are called, the form of the answer.
//!
//! `TABLE` has the parameters that have the same values on each wire that has them. The choice of tools and the form of the answer
//! are of another shape on each wire: they have functions of their own. What has no place on the other wire is left out, and has a
//! line.
//!
//! Sources: the references of the five APIs, "Create chat completion", "Create a model response", "Create a Message",
//! `GenerationConfig`, `Converse`; the types of the vendors' Python SDKs (openai 3.52.0, anthropic 2.14.0, google-genai 3.4.0,
//! botocore 1.44.8).

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::history::ReportLine;
use crate::history::report::Fact;
use crate::json::fields::{Fields, array, string};
use crate::json::object::{Node, Object};
use crate::provider::anthropic::models;
use crate::provider::target::Target;

/// The wires, in the order of the columns.
const WIRES: [&str; 5] = ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse"];
const CHAT: usize = 0;
const RESPONSES: usize = 1;
const ANTHROPIC: usize = 2;
const GEMINI: usize = 3;

/// Objects of a wire whose fields are parameters.
const GROUPS: [&[&str]; WIRES.len()] = [
    &[],
    &["text", "reasoning"],
    &["metadata", "output_config"],
    &["generationConfig", "toolConfig"],
    &["inferenceConfig", "toolConfig", "outputConfig"],
];

/// What values a parameter has.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// The same on each wire.
    Same,
    /// A number, up to the highest that each wire takes.
    UpTo([f64; WIRES.len()]),
    /// A text or a list of texts, at most so many on each wire.
    Stops([usize; WIRES.len()]),
    /// A flag that other wires have in the address of a request.
    Stream,
}

/// A parameter: its paths on each wire. The first one is written, each is read.
struct Setting {
    at: [&'static [&'static str]; WIRES.len()],
    shape: Shape,
    /// Whether of all servers of Chat Completions only OpenAI's and Azure's are known to take it.
    is_openais: bool,
}

const fn setting(shape: Shape, at: [&'static [&'static str]; WIRES.len()]) -> Setting {
    Setting { at, shape, is_openais: false }
}

const fn same(at: [&'static [&'static str]; WIRES.len()]) -> Setting {
    setting(Shape::Same, at)
}

const fn openais(at: [&'static [&'static str]; WIRES.len()]) -> Setting {
    Setting { at, shape: Shape::Same, is_openais: true }
}

/// Of OpenAI's two wires alone, under one name.
const fn of_openai(name: &'static [&'static str]) -> Setting {
    openais([name, name, &[], &[], &[]])
}

const TABLE: &[Setting] = &[
    same([
        &["max_completion_tokens", "max_tokens"],
        &["max_output_tokens"],
        &["max_tokens"],
        &["generationConfig.maxOutputTokens"],
        &["inferenceConfig.maxTokens"],
    ]),
    setting(
        Shape::UpTo([2.0, 2.0, 1.0, 2.0, 1.0]),
        [
            &["temperature"],
            &["temperature"],
            &["temperature"],
            &["generationConfig.temperature"],
            &["inferenceConfig.temperature"],
        ],
    ),
    same([&["top_p"], &["top_p"], &["top_p"], &["generationConfig.topP"], &["inferenceConfig.topP"]]),
    same([&[], &[], &["top_k"], &["generationConfig.topK"], &[]]),
    setting(
        Shape::Stops([4, 0, usize::MAX, 5, 4]),
        [&["stop"], &[], &["stop_sequences"], &["generationConfig.stopSequences"], &["inferenceConfig.stopSequences"]],
    ),
    openais([&["seed"], &[], &[], &["generationConfig.seed"], &[]]),
    openais([&["n"], &[], &[], &["generationConfig.candidateCount"], &[]]),
    same([&["presence_penalty"], &[], &[], &["generationConfig.presencePenalty"], &[]]),
    same([&["frequency_penalty"], &[], &[], &["generationConfig.frequencyPenalty"], &[]]),
    same([&["reasoning_effort"], &["reasoning.effort"], &[], &[], &[]]),
    openais([&["verbosity"], &["text.verbosity"], &[], &[], &[]]),
    openais([&["user"], &["user"], &["metadata.user_id"], &[], &[]]),
    openais([&["metadata"], &["metadata"], &[], &[], &["requestMetadata"]]),
    of_openai(&["service_tier"]),
    of_openai(&["store"]),
    of_openai(&["safety_identifier"]),
    of_openai(&["prompt_cache_key"]),
    of_openai(&["prompt_cache_retention"]),
    setting(Shape::Stream, [&["stream"], &["stream"], &["stream"], &[], &[]]),
];

const MODEL: &str = "model";
/// The choice of tools, where it is in one object with them.
pub(super) const BESIDE_TOOLS: (&str, &str) = ("toolConfig", "toolChoice");

/// Parameters that go along, and lines for those that do not.
pub(super) struct Settings<'a> {
    from: usize,
    to: usize,
    source: String,
    target: Target,
    /// What nobody has read: paths, and values.
    left: Vec<(String, &'a RawValue)>,
    object: Object,
    lines: Vec<ReportLine>,
}

impl<'a> Settings<'a> {
    /// Reads the fields of a request beside its messages. `tools`: the field that its tools were taken from; `rendered`: the
    /// request as the target takes it, with its tools; `model`: one of the target's.
    pub(super) fn cross(
        from: Target,
        target: Target,
        given: Fields<'a>,
        tools: Option<&'a RawValue>,
        rendered: &RawValue,
        model: Option<&str>,
    ) -> (Object, Vec<ReportLine>) {
        let column = |target: Target| WIRES.iter().position(|wire| *wire == target.wire().name);
        let (Some(at), Some(to)) = (column(from), column(target)) else { return (Object::default(), Vec::new()) };
        let mut left = Vec::new();
        // Converse says beside its tools which are called.
        let beside = tools.and_then(Fields::of).and_then(|config| config.peek(BESIDE_TOOLS.1));
        left.extend(beside.map(|raw| (format!("{}.{}", BESIDE_TOOLS.0, BESIDE_TOOLS.1), raw)));
        for (name, raw) in given.rest() {
            match Fields::of(raw).filter(|_| GROUPS.get(at).is_some_and(|groups| groups.contains(&&*name))) {
                Some(group) => left.extend(group.rest().map(|(inner, raw)| (format!("{name}.{inner}"), raw))),
                None => left.push((name.into_owned(), raw)),
            }
        }
        let (object, lines) = (Object::default(), Vec::new());
        let mut settings = Self { from: at, to, source: from.to_string(), target, left, object, lines };
        settings.model(from, model);
        TABLE.iter().for_each(|setting| settings.take(setting));
        settings.tool_choice(rendered);
        settings.form();
        settings.fill(model);
        settings.end()
    }

    fn given(&mut self, path: &str) -> Option<&'a RawValue> {
        let at = self.left.iter().position(|(name, _)| name == path)?;
        Some(self.left.remove(at).1)
    }

    fn set(&mut self, path: &str, value: impl Into<Node>) {
        self.object.set(&path.split('.').collect::<Vec<_>>(), value);
    }

    fn left_out(&mut self, path: &str, problem: impl Into<String>) {
        let problem = problem.into();
        self.lines.push(ReportLine::new(Fact::FieldUnfit { name: path, problem: &problem }).at(path));
    }

    fn foreign(&mut self, path: &str) {
        let target = self.target.to_string();
        let fact = Fact::FieldForeign { name: path, from: &self.source, target: &target };
        self.lines.push(ReportLine::new(fact).at(path));
    }

    /// A model's name means something where the same models are.
    fn model(&mut self, from: Target, model: Option<&str>) {
        let given = self.given(MODEL).and_then(string);
        let is_openais = |target: Target| target.dialect().is_none() && target.wire().name.starts_with("openai");
        // On the others the model is part of the address.
        let has_field = matches!(self.to, CHAT | RESPONSES | ANTHROPIC);
        match (model, given) {
            (Some(model), _) if has_field => self.set(MODEL, model),
            (_, Some(_)) if !has_field => self.left_out(MODEL, "the address of the request names the model"),
            (_, None) if !has_field => {}
            (None, Some(given)) if is_openais(from) && is_openais(self.target) => self.set(MODEL, given),
            (_, given) => {
                let target = self.target.to_string();
                let fact = Fact::ModelNeeded { given: given.as_deref(), target: &target };
                self.lines.push(ReportLine::new(fact).at(MODEL));
            }
        }
    }

    fn take(&mut self, setting: &Setting) {
        let paths = setting.at.get(self.from).copied().unwrap_or_default();
        let mut found = None;
        for path in paths {
            found = found.or(self.given(path).map(|raw| (*path, raw)));
        }
        let Some((path, raw)) = found else { return };
        let places = setting.at.get(self.to).copied().unwrap_or_default();
        // OpenAI's newer models take the first name alone, most other servers the older one alone.
        let has_dialect = self.target.dialect().is_some_and(|dialect| dialect.name != "azure");
        let place = if has_dialect { places.last() } else { places.first() };
        let Some(place) = place.filter(|_| !(has_dialect && setting.is_openais && self.to == CHAT)) else {
            return match setting.shape {
                Shape::Stream => self.left_out(path, "the address of the request says it"),
                _ => self.foreign(path),
            };
        };
        match self.value(setting.shape, raw) {
            Ok(node) => self.set(place, node),
            Err(problem) => self.left_out(path, problem),
        }
    }

    fn value(&self, shape: Shape, raw: &RawValue) -> Result<Node, String> {
        match shape {
            Shape::Same | Shape::Stream => Ok(Node::Raw(raw.to_owned())),
            Shape::UpTo(most) => {
                let most = most.get(self.to).copied().unwrap_or(f64::MAX);
                let number: f64 = raw.get().parse().map_err(|_| "it is not a number".to_owned())?;
                if number > most {
                    return Err(format!("{} takes {most} at most", self.target));
                }
                Ok(Node::Raw(raw.to_owned()))
            }
            Shape::Stops(most) => {
                let most = most.get(self.to).copied().unwrap_or_default();
                let one = string(raw).map(|stop| vec![Value::from(stop)]);
                let all = one.or_else(|| serde_json::from_str(raw.get()).ok()).ok_or("it is no list of texts")?;
                if all.len() > most {
                    return Err(format!("{} takes {most} at most", self.target));
                }
                Ok(Node::Value(Value::Array(all)))
            }
        }
    }

    fn tool_choice(&mut self, rendered: &RawValue) {
        const NAMES: [&str; WIRES.len()] =
            ["tool_choice", "tool_choice", "tool_choice", "toolConfig.functionCallingConfig", "toolConfig.toolChoice"];
        const PARALLEL: &str = "parallel_tool_calls";
        let path = NAMES.get(self.from).copied().unwrap_or_default();
        let given = self.given(path);
        let parallel = self.given(PARALLEL);
        let flag = given.filter(|_| self.from == ANTHROPIC).and_then(Fields::of);
        let flag = flag.is_some_and(|fields| fields.peek("disable_parallel_tool_use").is_some_and(is_true));
        let one_by_one = flag || parallel.is_some_and(|raw| raw.get() == "false");
        let tools = Fields::of(rendered).and_then(|fields| fields.peek(self.target.wire().tools.field));
        let Some(tools) = tools else { return };
        let mut choice = None;
        if let Some(raw) = given {
            match Choice::read(self.from, raw) {
                Some(Choice::One(name)) if !declares(tools, &name) => {
                    self.left_out(path, format!("no tool of the request is named {name:?}"));
                }
                Some(read) => choice = Some(read),
                None => self.foreign(path),
            }
        }
        let place = NAMES.get(self.to).copied().unwrap_or_default();
        match choice.as_ref().map(|choice| choice.written(self.to)) {
            // One more field may follow.
            Some(Some(Value::Object(fields))) if self.to == ANTHROPIC => {
                fields.into_iter().for_each(|(name, value)| self.set(&format!("{place}.{name}"), value));
            }
            Some(Some(value)) => self.set(place, value),
            Some(None) => self.left_out(path, format!("{} has no word for it", self.target)),
            None => {}
        }
        match self.to {
            _ if !one_by_one => {}
            CHAT | RESPONSES => self.set(PARALLEL, false),
            ANTHROPIC => {
                if choice.is_none() {
                    self.set(&format!("{place}.type"), "auto");
                }
                if choice != Some(Choice::None) {
                    self.set(&format!("{place}.disable_parallel_tool_use"), true);
                }
            }
            _ => self.left_out(if flag { path } else { PARALLEL }, format!("{} has no word for it", self.target)),
        }
    }

    fn form(&mut self) {
        const NAMES: [&str; WIRES.len()] = [
            "response_format",
            "text.format",
            "output_config.format",
            "generationConfig.responseJsonSchema",
            "outputConfig.textFormat",
        ];
        const KIND: &str = "generationConfig.responseMimeType";
        let mut path = NAMES.get(self.from).copied().unwrap_or_default();
        let kind = if self.from == GEMINI { self.given(KIND).and_then(string) } else { None };
        let given = self.given(path);
        let has_schema = given.is_some();
        let form = match (given, kind.as_deref()) {
            (Some(raw), _) => Form::read(self.from, raw),
            (None, Some("application/json")) => Some(Form::Json),
            (None, Some("text/plain") | None) => return,
            (None, Some(_)) => None,
        };
        if !has_schema {
            path = KIND;
        }
        let place = NAMES.get(self.to).copied().unwrap_or_default();
        match form {
            Some(Form::Text) => {}
            Some(form) => match form.written(self.to) {
                Some(node) => {
                    if self.to == GEMINI {
                        self.set(KIND, "application/json");
                    }
                    if !(self.to == GEMINI && matches!(form, Form::Json)) {
                        self.set(place, node);
                    }
                }
                None => self.left_out(path, format!("{} has no word for it", self.target)),
            },
            None => self.foreign(path),
        }
    }

    /// What the target requires, and no other wire does.
    fn fill(&mut self, model: Option<&str>) {
        const MOST: &str = "max_tokens";
        if self.to == ANTHROPIC && !self.object.has(&[MOST]) {
            let tokens = models::answer_tokens(model.unwrap_or_default());
            self.set(MOST, tokens);
            let value = tokens.to_string();
            self.lines.push(ReportLine::new(Fact::FieldSet { name: MOST, value: &value }).at(MOST));
        }
    }

    fn end(mut self) -> (Object, Vec<ReportLine>) {
        for (path, _) in std::mem::take(&mut self.left) {
            self.foreign(&path);
        }
        (self.object, self.lines)
    }
}

fn is_true(raw: &RawValue) -> bool {
    raw.get() == "true"
}

/// Whether rendered declarations have a tool of this name.
fn declares(tools: &RawValue, name: &str) -> bool {
    tools.get().contains(&format!("\"name\":{}", Value::from(name)))
}

/// What a model may call.
#[derive(Clone, Debug, PartialEq)]
enum Choice {
    Auto,
    None,
    Required,
    One(String),
}

impl Choice {
    fn read(wire: usize, raw: &RawValue) -> Option<Self> {
        let fields = Fields::of(raw);
        let field = |name: &str| fields.as_ref().and_then(|fields| fields.peek(name));
        let word = match wire {
            GEMINI => field("mode").and_then(string)?.to_lowercase(),
            CHAT | RESPONSES => string(raw).or_else(|| field("type").and_then(string))?,
            ANTHROPIC => field("type").and_then(string)?,
            _ => fields.as_ref()?.names().next()?.to_owned(),
        };
        let name = match wire {
            CHAT => field("function").and_then(Fields::of).and_then(|function| function.peek("name").and_then(string)),
            GEMINI => {
                let mut allowed = field("allowedFunctionNames").and_then(array).unwrap_or_default().into_iter();
                let first = allowed.next().and_then(string);
                if allowed.next().is_some() {
                    return None;
                }
                first
            }
            RESPONSES | ANTHROPIC => field("name").and_then(string),
            _ => field("tool").and_then(Fields::of).and_then(|tool| tool.peek("name").and_then(string)),
        };
        match (&*word, name) {
            ("auto", None) => Some(Self::Auto),
            ("none", None) => Some(Self::None),
            ("required" | "any", None) => Some(Self::Required),
            ("function" | "tool" | "any", Some(name)) => Some(Self::One(name)),
            _ => None,
        }
    }

    fn written(&self, wire: usize) -> Option<Value> {
        Some(match (wire, self) {
            (CHAT | RESPONSES, Self::Auto) => json!("auto"),
            (CHAT | RESPONSES, Self::None) => json!("none"),
            (CHAT | RESPONSES, Self::Required) => json!("required"),
            (CHAT, Self::One(name)) => json!({ "type": "function", "function": { "name": name } }),
            (RESPONSES, Self::One(name)) => json!({ "type": "function", "name": name }),
            (ANTHROPIC, Self::Auto) => json!({ "type": "auto" }),
            (ANTHROPIC, Self::None) => json!({ "type": "none" }),
            (ANTHROPIC, Self::Required) => json!({ "type": "any" }),
            (ANTHROPIC, Self::One(name)) => json!({ "type": "tool", "name": name }),
            (GEMINI, Self::Auto) => json!({ "mode": "AUTO" }),
            (GEMINI, Self::None) => json!({ "mode": "NONE" }),
            (GEMINI, Self::Required) => json!({ "mode": "ANY" }),
            (GEMINI, Self::One(name)) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
            (_, Self::Auto) => json!({ "auto": {} }),
            (_, Self::Required) => json!({ "any": {} }),
            (_, Self::One(name)) => json!({ "tool": { "name": name } }),
            (_, Self::None) => return None,
        })
    }
}

/// The form of an answer.
#[derive(Debug)]
enum Form {
    Text,
    Json,
    Schema(Schema),
}

#[derive(Debug)]
struct Schema {
    name: Option<String>,
    description: Option<String>,
    is_strict: Option<bool>,
    schema: Box<RawValue>,
}

impl Schema {
    fn read(fields: &Fields<'_>) -> Option<Self> {
        let text = |name: &str| fields.peek(name).and_then(string);
        let schema = fields.peek("schema")?;
        // Converse has the schema as a text.
        let schema = match string(schema) {
            Some(text) => RawValue::from_string(text).ok()?,
            None => schema.to_owned(),
        };
        let is_strict = fields.peek("strict").map(is_true);
        Some(Self { name: text("name"), description: text("description"), is_strict, schema })
    }

    /// With a name, which some wires require.
    fn named(&self, with_strict: bool) -> Object {
        let mut object = Object::default();
        object.set(&["name"], self.name.as_deref().unwrap_or("answer"));
        if let Some(description) = &self.description {
            object.set(&["description"], &**description);
        }
        if let Some(is_strict) = self.is_strict.filter(|_| with_strict) {
            object.set(&["strict"], is_strict);
        }
        object
    }
}

impl Form {
    fn read(wire: usize, raw: &RawValue) -> Option<Self> {
        let fields = Fields::of(raw)?;
        if wire == GEMINI {
            let schema = raw.to_owned();
            return Some(Self::Schema(Schema { name: None, description: None, is_strict: None, schema }));
        }
        match &*fields.peek("type").and_then(string)? {
            "text" => Some(Self::Text),
            "json_object" => Some(Self::Json),
            "json_schema" => {
                let inner = match wire {
                    CHAT => fields.peek("json_schema").and_then(Fields::of)?,
                    RESPONSES | ANTHROPIC => fields,
                    _ => {
                        let structure = fields.peek("structure").and_then(Fields::of)?;
                        structure.peek("jsonSchema").and_then(Fields::of)?
                    }
                };
                Schema::read(&inner).map(Self::Schema)
            }
            _ => None,
        }
    }

    fn written(&self, wire: usize) -> Option<Node> {
        let mut object = Object::default();
        match (wire, self) {
            (_, Self::Text) => return None,
            (CHAT | RESPONSES, Self::Json) => object.set(&["type"], "json_object"),
            (GEMINI, Self::Json) => {}
            (_, Self::Json) => return None,
            (GEMINI, Self::Schema(of)) => return Some(Node::Raw(of.schema.clone())),
            (CHAT, Self::Schema(of)) => {
                let mut inner = of.named(true);
                inner.set(&["schema"], Node::Raw(of.schema.clone()));
                object.set(&["type"], "json_schema");
                object.set(&["json_schema"], Node::Object(inner));
            }
            (RESPONSES, Self::Schema(of)) => {
                object = of.named(true);
                object.set(&["type"], "json_schema");
                object.set(&["schema"], Node::Raw(of.schema.clone()));
            }
            (ANTHROPIC, Self::Schema(of)) => {
                object.set(&["type"], "json_schema");
                object.set(&["schema"], Node::Raw(of.schema.clone()));
            }
            (_, Self::Schema(of)) => {
                let mut inner = of.named(false);
                inner.set(&["schema"], of.schema.get());
                object.set(&["type"], "json_schema");
                object.set(&["structure", "jsonSchema"], Node::Object(inner));
            }
        }
        Some(Node::Object(object))
    }
}
