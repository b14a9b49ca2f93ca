//! What a row of the tables of routes holds: its handler, and its part of the OpenAPI document.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use super::app::Handler;
use super::keys::Scope;

/// A call of an API.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) verb: Verb,
    /// Its path; the handler gets the parts in braces.
    pub(crate) path: &'static str,
    pub(crate) scope: Scope,
    pub(crate) handler: Handler,
    /// Its name in the OpenAPI document; empty where the route is not in it. Names never change.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) parameters: fn() -> Vec<Parameter>,
    /// The body that it takes, if any.
    pub(crate) body: Option<Content>,
    /// What it answers; `None` where that is not documented.
    pub(crate) answer: Option<Content>,
    /// Its statuses in addition to those of every route.
    pub(crate) refusals: &'static [u16],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Verb {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Delete => "delete",
        }
    }
}

impl Route {
    const fn new(verb: Verb, path: &'static str, scope: Scope, handler: Handler) -> Self {
        let (id, summary, parameters) = ("", "", Vec::new);
        Self { verb, path, scope, handler, id, summary, parameters, body: None, answer: None, refusals: &[] }
    }

    pub(crate) const fn get(path: &'static str, scope: Scope, handler: Handler) -> Self {
        Self::new(Verb::Get, path, scope, handler)
    }

    pub(crate) const fn post(path: &'static str, scope: Scope, handler: Handler) -> Self {
        Self::new(Verb::Post, path, scope, handler)
    }

    pub(crate) const fn put(path: &'static str, scope: Scope, handler: Handler) -> Self {
        Self::new(Verb::Put, path, scope, handler)
    }

    pub(crate) const fn delete(path: &'static str, scope: Scope, handler: Handler) -> Self {
        Self::new(Verb::Delete, path, scope, handler)
    }

    pub(crate) const fn named(self, id: &'static str, summary: &'static str) -> Self {
        Self { id, summary, ..self }
    }

    pub(crate) const fn takes(self, parameters: fn() -> Vec<Parameter>) -> Self {
        Self { parameters, ..self }
    }

    pub(crate) const fn body(self, body: Content) -> Self {
        Self { body: Some(body), ..self }
    }

    pub(crate) const fn answers(self, answer: Content) -> Self {
        Self { answer: Some(answer), ..self }
    }

    pub(crate) const fn refuses(self, refusals: &'static [u16]) -> Self {
        Self { refusals, ..self }
    }
}

/// A parameter after the `?`, or in the header.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) is_required: bool,
    /// Its JSON Schema.
    pub(crate) schema: Value,
    pub(crate) about: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Query,
    Header,
}

/// A parameter after the `?`, with its JSON Schema.
pub(crate) fn query(name: &'static str, schema: Value, about: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, is_required: false, schema, about }
}

/// As [`query`], of a text.
pub(crate) fn text(name: &'static str, about: &'static str) -> Parameter {
    query(name, serde_json::json!({ "type": "string" }), about)
}

/// As [`query`], of a number.
pub(crate) fn number(name: &'static str, least: u64, most: u64, about: &'static str) -> Parameter {
    query(name, serde_json::json!({ "type": "integer", "minimum": least, "maximum": most }), about)
}

impl Parameter {
    /// One without which the call is refused.
    pub(crate) fn required(self) -> Self {
        Self { is_required: true, ..self }
    }
}

/// A parameter in the header.
pub(crate) fn header(name: &'static str, schema: Value, about: &'static str) -> Parameter {
    Parameter { place: Place::Header, ..query(name, schema, about) }
}

/// The header with the key of an append.
pub(crate) fn idempotency_key(about: &'static str) -> Parameter {
    let schema = serde_json::json!({ "type": "string", "minLength": 1, "maxLength": 1000 });
    header("Idempotency-Key", schema, about)
}

/// A body: its type, its schema, and an example.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    pub(crate) media_type: &'static str,
    /// The name of its schema in the document, and the schema.
    pub(crate) schema: fn(&mut SchemaGenerator) -> (String, Schema),
    pub(crate) example: &'static str,
    /// Whether a request may leave it out.
    pub(crate) optional: bool,
}

/// What is read, or written, as a type.
pub(crate) const fn of<T: JsonSchema>(media_type: &'static str, example: &'static str) -> Content {
    Content { media_type, schema: schema::<T>, example, optional: false }
}

/// JSON of a type, with an example.
pub(crate) const fn json<T: JsonSchema>(example: &'static str) -> Content {
    of::<T>("application/json", example)
}

/// As [`json`], for a body that a request may leave out.
pub(crate) const fn optional_json<T: JsonSchema>(example: &'static str) -> Content {
    Content { optional: true, ..json::<T>(example) }
}

/// The name and the schema of a type.
fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> (String, Schema) {
    (T::schema_name().into_owned(), T::json_schema(generator))
}
