//! The OpenAPI 3.1 document, made from the tables of routes: it describes what is served.

use serde_json::{Map, Value, json};

use super::route::{Content, Parameter, Place, Route};

/// The schemas that the tables name.
const SCHEMAS: &str = include_str!("schemas.json");

/// The statuses of every route, and what each means.
const ALWAYS: &[u16] = &[400, 401, 403, 429, 500, 503];

const fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The request is wrong",
        401 => "No key, or a wrong one",
        403 => "The key lacks the scope",
        404 => "Not found, or of another owner",
        408 => "The body arrived too slowly",
        409 => "It conflicts with what is stored",
        410 => "The cursor is of another conversation: begin again",
        412 => "The conversation does not end where the request expected",
        413 => "Over a limit",
        422 => "Understood, but not possible",
        429 => "Too many; Retry-After says when to try again",
        503 => "Not now; Retry-After says when to try again",
        _ => "The server failed",
    }
}

pub(crate) fn document(tables: &[&[Route]]) -> Value {
    let mut paths = Map::new();
    for route in tables.iter().copied().flatten() {
        let path = paths.entry(route.path.to_owned()).or_insert_with(|| json!({}));
        if let Value::Object(path) = path {
            path.insert(route.verb.as_str().to_owned(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "convo",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A store for LLM conversations: the OpenAI Conversations API under /v1, the native API under /api/v1.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "key": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            // The file is part of the program, and a test reads it.
            "schemas": serde_json::from_str::<Value>(SCHEMAS).unwrap_or_default(),
        },
    })
}

fn operation(route: &Route) -> Value {
    let parts = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parts = parts.map(|name| {
        let schema = if name == "message" {
            json!({ "type": "integer", "minimum": 0 })
        } else {
            json!({ "type": "string", "minLength": 1 })
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    });
    let parameters: Vec<Value> = parts.chain(route.parameters.iter().map(parameter)).collect();
    let mut answers = Map::new();
    answers.insert("200".to_owned(), json!({ "description": "Done", "content": content(&route.answer) }));
    let mut statuses: Vec<u16> = ALWAYS.iter().chain(route.refusals).copied().collect();
    if route.body.is_some() {
        statuses.extend([408, 413]);
    }
    for status in statuses {
        let schema = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } });
        answers.insert(status.to_string(), json!({ "description": meaning(status), "content": schema }));
    }
    let tag = if route.path.starts_with("/v1") { "OpenAI Conversations" } else { "native" };
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "description": format!("Scope: {}.", route.scope.as_str()),
        "tags": [tag],
        "parameters": parameters,
        "responses": answers,
    });
    if let (Value::Object(operation), Some(body)) = (&mut operation, &route.body) {
        operation.insert("requestBody".to_owned(), json!({ "required": !body.optional, "content": content(body) }));
    }
    operation
}

fn parameter(parameter: &Parameter) -> Value {
    let place = match parameter.place {
        Place::Query => "query",
        Place::Header => "header",
    };
    json!({
        "name": parameter.name,
        "in": place,
        "required": parameter.name == "for" || parameter.name == "from" && parameter.about.contains("answer") || parameter.name == "item",
        "description": parameter.about,
        "schema": serde_json::from_str::<Value>(parameter.schema).unwrap_or_default(),
    })
}

fn content(content: &Content) -> Value {
    let example: Value = serde_json::from_str(content.example).unwrap_or_default();
    json!({ content.media_type: { "schema": { "$ref": format!("#/components/schemas/{}", content.schema) }, "example": example } })
}
