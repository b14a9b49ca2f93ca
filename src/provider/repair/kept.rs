//! What is kept of a request that is repaired, beside its messages: what the target does not refuse.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Error, Result};
use crate::history::{ReportLine, Rule};
use crate::provider::check::finding::Finding;
use crate::provider::check::judge::check;
use crate::provider::read::fields::{Fields, array, is_empty};
use crate::provider::target::Target;

/// The fields of the request that is made.
#[derive(Debug)]
pub(crate) struct Kept<'a>(Vec<Field<'a>>);

#[derive(Debug)]
struct Field<'a> {
    name: String,
    value: Value<'a>,
    /// Whether it is of the given request; else it was rendered.
    given: bool,
    /// What was rendered in its place.
    rendered: Option<&'a RawValue>,
}

#[derive(Debug)]
enum Value<'a> {
    Whole(&'a RawValue),
    /// An array, of which items were left out.
    Items(Vec<&'a RawValue>),
}

impl<'a> Kept<'a> {
    /// The fields in the order of the given request: what was rendered stands where it stood, or at the end.
    pub(crate) fn new(names: &[String], rest: Fields<'a>, rendered: &'a RawValue) -> Self {
        let (given, rendered) = (rest.pairs(), Fields::of(rendered).unwrap_or_default().pairs());
        let names: Vec<&str> =
            names.iter().map(String::as_str).chain(rendered.iter().map(|(name, _)| &**name)).collect();
        let (given, rendered) = (by_name(&given), by_name(&rendered));
        let mut seen = HashSet::new();
        let mut fields = Vec::new();
        for name in names.into_iter().filter(|name| seen.insert(*name)) {
            let (given, rendered) = (given.get(name).copied(), rendered.get(name).copied());
            let (value, given) = match (given, rendered) {
                (Some(value), None) => (value, true),
                (Some(value), Some(_)) if !is_empty(value) => (value, true),
                (_, Some(rendered)) => (rendered, false),
                (None, None) => continue,
            };
            fields.push(Field { name: name.to_owned(), value: Value::Whole(value), given, rendered });
        }
        Self(fields)
    }

    /// The request, without what the target would refuse of the given fields.
    pub(crate) fn accepted(&mut self, target: Target, report: &mut Vec<ReportLine>) -> Result<Box<RawValue>> {
        // Each turn leaves something out, so there is an end.
        loop {
            let request = self.written()?;
            let refused = refused(target, &request);
            let Some(first) = refused.first() else { return Ok(request) };
            if self.leave_out_unknown(target, &refused, report) {
                continue;
            }
            let left_out = match refused.iter().find_map(|finding| Some((self.place(finding)?, finding))) {
                Some(((at, item), finding)) => Some((self.leave_out(at, item), finding)),
                None => self.cause(target, first)?.map(|at| (self.leave_out(at, None), first)),
            };
            let Some((left_out, finding)) = left_out else { return Ok(request) };
            report.push(refusal(&left_out, finding));
        }
    }

    /// Leaves out the given fields that the target does not know: all at once, since each is refused for itself. Tells whether
    /// there were any.
    fn leave_out_unknown(&mut self, target: Target, refused: &[Finding], report: &mut Vec<ReportLine>) -> bool {
        let rule = target.wire().parameters.id;
        let unknown = refused.iter().filter(|finding| finding.rule == rule);
        let unknown: HashMap<&str, &Finding> = unknown.map(|finding| (&*finding.place, finding)).collect();
        let before = self.0.len();
        self.0.retain(|field| {
            let can_go = field.given && field.rendered.is_none();
            let found = unknown.get(field.name.as_str()).filter(|_| can_go);
            report.extend(found.map(|finding| refusal(&field.name, finding)));
            found.is_none()
        });
        self.0.len() < before
    }

    fn written(&self) -> Result<Box<RawValue>> {
        to_raw_value(self).map_err(|error| Error::InvalidInput(format!("it cannot be written: {error}")))
    }

    /// The given field that a finding is about, and the item of it.
    fn place(&self, finding: &Finding) -> Option<(usize, Option<usize>)> {
        let end = finding.place.find(['.', '[']).unwrap_or(finding.place.len());
        let (name, rest) = finding.place.split_at_checked(end)?;
        let at = self.0.iter().position(|field| field.given && field.name == name)?;
        let item = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')?.0.parse::<usize>().ok());
        Some((at, item))
    }

    /// The given field that makes the target refuse what was rendered: thinking is switched on, say, and the thinking of the
    /// conversation could not be kept.
    fn cause(&mut self, target: Target, finding: &Finding) -> Result<Option<usize>> {
        for at in 0..self.0.len() {
            if self.0.get(at).is_some_and(|field| field.given) {
                let field = self.0.remove(at);
                let request = self.written()?;
                self.0.insert(at, field);
                if !refused(target, &request).contains(finding) {
                    return Ok(Some(at));
                }
            }
        }
        Ok(None)
    }

    /// Leaves out an item of an array, or a field. Tells which.
    fn leave_out(&mut self, at: usize, item: Option<usize>) -> String {
        let Some(field) = self.0.get_mut(at) else { return String::new() };
        let name = field.name.clone();
        match item.filter(|item| field.value.remove(*item)) {
            Some(item) => return format!("{name}[{item}]"),
            None => match field.rendered {
                Some(rendered) => (field.value, field.given) = (Value::Whole(rendered), false),
                None => _ = self.0.remove(at),
            },
        }
        name
    }
}

/// The line for what was left out because of a finding.
fn refusal(left_out: &str, finding: &Finding) -> ReportLine {
    let detail = format!("`{left_out}` was left out, the target refuses it: {}: {}", finding.rule, finding.problem);
    ReportLine::new(Rule::LeftOut, detail)
}

/// Values by name: of fields with one name the last counts.
fn by_name<'a, 'n>(fields: &'n [(Cow<'a, str>, &'a RawValue)]) -> HashMap<&'n str, &'a RawValue> {
    fields.iter().map(|(name, value)| (&**name, *value)).collect()
}

/// What the target refuses a request for.
fn refused(target: Target, request: &RawValue) -> Vec<Finding> {
    let mut findings = check(target, request.get()).unwrap_or_default();
    findings.retain(|finding| finding.level.is_refused());
    findings
}

impl Value<'_> {
    /// Removes an item, if this is an array of several.
    fn remove(&mut self, item: usize) -> bool {
        let mut items = match self {
            Self::Whole(raw) => array(raw).unwrap_or_default(),
            Self::Items(items) => std::mem::take(items),
        };
        if items.len() < 2 || item >= items.len() {
            return false;
        }
        items.remove(item);
        *self = Self::Items(items);
        true
    }
}

impl Serialize for Kept<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for Field { name, value, .. } in &self.0 {
            match value {
                Value::Whole(raw) => map.serialize_entry(name, raw)?,
                Value::Items(items) => map.serialize_entry(name, items)?,
            }
        }
        map.end()
    }
}
