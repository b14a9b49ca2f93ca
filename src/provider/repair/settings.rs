//! What a request says beside its messages and tools, on another wire: `parameters` has where each wire has it.
//!
//! What has no place on the other wire is left out, and has a line.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::history::ReportLine;
use crate::history::report::Fact;
use crate::json::fields::{Fields, string};
use crate::json::object::{Node, Object};
use crate::provider::anthropic::models;
use crate::provider::parameters::choice::{self, Choice};
use crate::provider::parameters::form::{self, Form};
use crate::provider::parameters::{ANTHROPIC, CHAT, GEMINI, Parameter, RESPONSES, Shape, TABLE, WIRES, column};
use crate::provider::target::Target;

/// Objects of a wire whose fields are parameters.
const GROUPS: [&[&str]; WIRES.len()] = [
    &[],
    &["text", "reasoning"],
    &["metadata", "output_config"],
    &["generationConfig", "toolConfig"],
    &["inferenceConfig", "toolConfig", "outputConfig"],
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
        let (at, to) = (column(from), column(target));
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
        TABLE.iter().for_each(|parameter| settings.take(parameter));
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
        self.object.put(path, value);
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

    fn take(&mut self, parameter: &Parameter) {
        let mut found = None;
        for path in parameter.paths(self.from) {
            found = found.or(self.given(path).map(|raw| (*path, raw)));
        }
        let Some((path, raw)) = found else { return };
        let Some(place) = parameter.place(self.target) else {
            return match parameter.shape {
                Shape::Stream => self.left_out(path, "the address of the request says it"),
                _ => self.foreign(path),
            };
        };
        if self.object.has(&place.split('.').collect::<Vec<_>>()) {
            return self.left_out(path, format!("{} has {place} from another field", self.target));
        }
        match self.value(parameter.shape, raw) {
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
        let path = choice::PLACES.get(self.from).copied().unwrap_or_default();
        let given = self.given(path);
        let parallel = self.given(choice::PARALLEL);
        let flag = given.filter(|_| self.from == ANTHROPIC).and_then(Fields::of);
        let flag = flag.is_some_and(|fields| fields.peek(choice::DISABLED).is_some_and(|raw| raw.get() == "true"));
        let one_by_one = flag || parallel.is_some_and(|raw| raw.get() == "false");
        let tools = Fields::of(rendered).and_then(|fields| fields.peek(self.target.wire().tools.field));
        let Some(tools) = tools else { return };
        let mut chosen = None;
        if let Some(raw) = given {
            match Choice::read(self.from, raw) {
                Some(Choice::One(name)) if !declares(tools, &name) => {
                    self.left_out(path, format!("no tool of the request is named {name:?}"));
                }
                Some(read) => chosen = Some(read),
                None => self.foreign(path),
            }
        }
        if chosen.as_ref().is_some_and(|choice| !choice.put(self.to, &mut self.object)) {
            self.left_out(path, format!("{} has no word for it", self.target));
        }
        if one_by_one && !choice::put_one_by_one(self.to, chosen.as_ref(), &mut self.object) {
            let path = if flag { path } else { choice::PARALLEL };
            self.left_out(path, format!("{} has no word for it", self.target));
        }
    }

    fn form(&mut self) {
        let mut path = form::PLACES.get(self.from).copied().unwrap_or_default();
        let kind = if self.from == GEMINI { self.given(form::KIND).and_then(string) } else { None };
        let given = self.given(path);
        let has_schema = given.is_some();
        let form = match (given, kind.as_deref()) {
            (Some(raw), _) => Form::read(self.from, raw),
            (None, Some(form::JSON)) => Some(Form::Json),
            (None, Some("text/plain") | None) => return,
            (None, Some(_)) => None,
        };
        if !has_schema {
            path = form::KIND;
        }
        match form {
            Some(form) if form.put(self.to, &mut self.object) => {}
            Some(_) => self.left_out(path, format!("{} has no word for it", self.target)),
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

/// Whether rendered declarations have a tool of this name.
fn declares(tools: &RawValue, name: &str) -> bool {
    tools.get().contains(&format!("\"name\":{}", Value::from(name)))
}
