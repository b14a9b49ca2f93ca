//! What a row of the tables of routes holds: its handler, and its part of the OpenAPI document.

use super::app::Handler;
use super::keys::Scope;

/// A call of an API.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) verb: Verb,
    /// Its path; the handler gets the parts in braces.
    pub(crate) path: &'static str,
    /// Its name in the OpenAPI document. Names never change.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) scope: Scope,
    pub(crate) parameters: &'static [Parameter],
    /// The body that it takes, if any.
    pub(crate) body: Option<Content>,
    pub(crate) answer: Content,
    /// Its statuses in addition to those of every route.
    pub(crate) refusals: &'static [u16],
    pub(crate) handler: Handler,
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

/// A parameter after the `?`, or in the header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    /// Its JSON Schema.
    pub(crate) schema: &'static str,
    pub(crate) about: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Query,
    Header,
}

/// A body: its type, the name of its schema in `schemas.json`, and an example.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    pub(crate) media_type: &'static str,
    pub(crate) schema: &'static str,
    pub(crate) example: &'static str,
    /// Whether a request may leave it out.
    pub(crate) optional: bool,
}

/// JSON of a schema, with an example.
pub(crate) const fn json(schema: &'static str, example: &'static str) -> Content {
    Content { media_type: "application/json", schema, example, optional: false }
}

/// As [`json`], for a body that a request may leave out.
pub(crate) const fn optional_json(schema: &'static str, example: &'static str) -> Content {
    Content { optional: true, ..json(schema, example) }
}

/// A parameter after the `?`.
pub(crate) const fn query(name: &'static str, schema: &'static str, about: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, schema, about }
}

/// A parameter in the header.
pub(crate) const fn header(name: &'static str, schema: &'static str, about: &'static str) -> Parameter {
    Parameter { name, place: Place::Header, schema, about }
}
