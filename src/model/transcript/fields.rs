//! A JSON object as its fields in order, each with its raw text: taken by name, and what nobody took is `Extra`.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use super::line::Expected;
use crate::json::fields::Fields as Pairs;
use crate::model::{Extra, Json};

/// The fields of one object of `text`, and the object's place in it.
pub(super) struct Fields<'a> {
    text: &'a str,
    offset: usize,
    place: String,
    rest: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Fields<'a> {
    /// Reads the object that is the whole of `part`, itself a part of `text`.
    pub(super) fn new(text: &'a str, part: &'a str, place: String) -> Result<Self, Expected> {
        let offset = offset(text, part);
        match Pairs::read(part) {
            Ok(pairs) => Ok(Self { text, offset, place, rest: pairs.pairs() }),
            Err(error) => {
                // serde_json counts columns of one line in bytes, from 1; the parts of a line have no line breaks.
                let at = offset + error.column().saturating_sub(1);
                let problem = if error.is_data() {
                    format!("expected an object, found {}", kind(part))
                } else {
                    format!("not JSON: {}", without_position(&error))
                };
                Err(Expected::at(text, at, if place.is_empty() { "line" } else { &place }, problem))
            }
        }
    }

    /// An error at this object.
    pub(super) fn error(&self, field: &str, problem: impl fmt::Display) -> Expected {
        Expected::at(self.text, self.offset, self.path(field), problem)
    }

    fn error_at(&self, raw: &RawValue, field: &str, problem: impl fmt::Display) -> Expected {
        Expected::at(self.text, offset(self.text, raw.get()), self.path(field), problem)
    }

    fn path(&self, field: &str) -> String {
        match (self.place.is_empty(), field.is_empty()) {
            (true, true) => "line".to_owned(),
            (true, false) => field.to_owned(),
            (false, true) => self.place.clone(),
            (false, false) => format!("{}.{field}", self.place),
        }
    }

    fn find(&self, field: &str) -> Option<usize> {
        self.rest.iter().position(|(name, _)| name == field)
    }

    /// The first byte of a field's value, if it is there and not `null`.
    pub(super) fn peek(&self, field: &str) -> Option<u8> {
        self.peek_raw(field).and_then(|raw| raw.bytes().next())
    }

    /// A field's raw text, which stays, if it is there and not `null`.
    pub(super) fn peek_raw(&self, field: &str) -> Option<&'a str> {
        let (_, raw) = self.rest.get(self.find(field)?)?;
        Some(raw.get()).filter(|raw| *raw != "null")
    }

    /// Takes a field; `null` counts as absent.
    fn take(&mut self, field: &str) -> Result<Option<&'a RawValue>, Expected> {
        Ok(self.take_any(field)?.filter(|raw| raw.get() != "null"))
    }

    /// Takes a field, `null` too.
    fn take_any(&mut self, field: &str) -> Result<Option<&'a RawValue>, Expected> {
        let Some(at) = self.find(field) else { return Ok(None) };
        let (_, raw) = self.rest.remove(at);
        if self.find(field).is_some() {
            return Err(self.error_at(raw, field, "is given twice in one object"));
        }
        Ok(Some(raw))
    }

    /// A string, if it is there.
    pub(super) fn string(&mut self, field: &str) -> Result<Option<String>, Expected> {
        let Some(raw) = self.take(field)? else { return Ok(None) };
        match serde_json::from_str(raw.get()) {
            Ok(string) => Ok(Some(string)),
            Err(_) => Err(self.error_at(raw, field, format!("expected a string, found {}", kind(raw.get())))),
        }
    }

    /// A string that must be there.
    pub(super) fn required(&mut self, field: &str) -> Result<String, Expected> {
        self.string(field)?.ok_or_else(|| self.error(field, "missing; expected a string"))
    }

    /// A string, if it is one; anything else stays among the rest.
    pub(super) fn string_or_rest(&mut self, field: &str) -> Result<Option<String>, Expected> {
        if self.peek(field) == Some(b'"') { self.string(field) } else { Ok(None) }
    }

    /// A boolean, if it is there.
    pub(super) fn boolean(&mut self, field: &str) -> Result<Option<bool>, Expected> {
        let Some(raw) = self.take(field)? else { return Ok(None) };
        match raw.get() {
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            _ => Err(self.error_at(raw, field, format!("expected true or false, found {}", kind(raw.get())))),
        }
    }

    /// A string that `parse` understands, if it is there.
    pub(super) fn parsed<T, E: fmt::Display>(
        &mut self,
        field: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Expected> {
        let raw = self.find(field).and_then(|at| self.rest.get(at)).map(|(_, raw)| *raw);
        let (Some(string), Some(raw)) = (self.string(field)?, raw) else { return Ok(None) };
        parse(&string).map(Some).map_err(|problem| self.error_at(raw, field, problem))
    }

    /// Any JSON, if it is there.
    pub(super) fn json(&mut self, field: &str) -> Result<Option<Json>, Expected> {
        let Some(raw) = self.take(field)? else { return Ok(None) };
        Json::from_raw(raw.to_owned()).map(Some).map_err(|error| self.error_at(raw, field, error))
    }

    /// Any JSON that must be there; `null` is a value like any other.
    pub(super) fn value(&mut self, field: &str) -> Result<Json, Expected> {
        let raw = self.take_any(field)?.ok_or_else(|| self.error(field, "missing; expected a JSON value"))?;
        Json::from_raw(raw.to_owned()).map_err(|error| self.error_at(raw, field, error))
    }

    /// A field's raw text, if it is there.
    pub(super) fn raw(&mut self, field: &str) -> Result<Option<&'a str>, Expected> {
        Ok(self.take(field)?.map(RawValue::get))
    }

    /// The fields of an object, if it is there.
    pub(super) fn object(&mut self, field: &str) -> Result<Option<Fields<'a>>, Expected> {
        let Some(raw) = self.take(field)? else { return Ok(None) };
        Fields::new(self.text, raw.get(), self.path(field)).map(Some)
    }

    /// An array's objects, if it is there.
    pub(super) fn objects(&mut self, field: &str) -> Result<Option<Vec<Fields<'a>>>, Expected> {
        let Some(raw) = self.take(field)? else { return Ok(None) };
        let items: Vec<&'a RawValue> = serde_json::from_str(raw.get())
            .map_err(|_| self.error_at(raw, field, format!("expected an array, found {}", kind(raw.get()))))?;
        let path = self.path(field);
        let fields =
            items.iter().enumerate().map(|(i, item)| Fields::new(self.text, item.get(), format!("{path}[{i}]")));
        fields.collect::<Result<_, _>>().map(Some)
    }

    /// What nobody took.
    pub(super) fn extra(self) -> Result<Extra, Expected> {
        let mut extra = Extra::new();
        for (name, raw) in &self.rest {
            let json = Json::from_raw((*raw).to_owned()).map_err(|error| self.error_at(raw, name, error))?;
            extra.push(name.as_ref(), json);
        }
        Ok(extra)
    }
}

/// Where `part`, a slice of `text`, begins in it.
fn offset(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// What a JSON value is, in words.
fn kind(json: &str) -> &'static str {
    match json.trim_start().bytes().next() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// serde_json's words without its own line and column, which are those of a part.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(words, _)| words.to_owned())
}
