//! The OpenAPI 3.1 document, made from the tables of routes: it describes what is served.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::refusal;
use super::route::{Content, Parameter, Place, Route, json as json_of};

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
    let (mut paths, mut schemas) = (Map::new(), Schemas::new());
    let error = schemas.answer(&json_of::<refusal::Body<'_>>("null"));
    for route in tables.iter().copied().flatten() {
        let path = paths.entry(route.path.to_owned()).or_insert_with(|| json!({}));
        if let Value::Object(path) = path {
            path.insert(route.verb.as_str().to_owned(), operation(route, &error, &mut schemas));
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
            "schemas": schemas.by_name,
        },
    })
}

/// The schemas that routes name, made of types.
struct Schemas {
    bodies: SchemaGenerator,
    answers: SchemaGenerator,
    by_name: Map<String, Value>,
}

impl Schemas {
    fn new() -> Self {
        let generator = |contract| {
            let settings = SchemaSettings::draft2020_12().with(|settings| {
                settings.inline_subschemas = true;
                settings.contract = contract;
            });
            settings.into_generator()
        };
        let (bodies, answers) = (generator(Contract::Deserialize), generator(Contract::Serialize));
        Self { bodies, answers, by_name: Map::new() }
    }

    /// What a request has, as the document writes it.
    fn body(&mut self, content: &Content) -> Value {
        let (name, schema) = (content.schema)(&mut self.bodies);
        self.named(content, name, schema, false)
    }

    /// What an answer has.
    fn answer(&mut self, content: &Content) -> Value {
        let (name, schema) = (content.schema)(&mut self.answers);
        self.named(content, name, schema, true)
    }

    fn named(&mut self, content: &Content, name: String, schema: Schema, is_answer: bool) -> Value {
        let reference = json!({ "$ref": format!("#/components/schemas/{name}") });
        let mut schema = schema.to_value();
        tidy(&mut schema, is_answer);
        debug_assert!(self.by_name.get(&name).is_none_or(|known| *known == schema), "`{name}` names two schemas");
        self.by_name.insert(name, schema);
        let example: Value = serde_json::from_str(content.example).unwrap_or_default();
        match example {
            Value::Null => json!({ content.media_type: { "schema": reference } }),
            example => json!({ content.media_type: { "schema": reference, "example": example } }),
        }
    }
}

/// Leaves what holds of JSON: no widths of numbers, no defaults of fields. What an answer may leave out is never null.
/// Descriptions are the types' comments: their first paragraphs, without those that link into the library.
fn tidy(schema: &mut Value, is_answer: bool) {
    let Value::Object(fields) = schema else {
        if let Value::Array(schemas) = schema {
            schemas.iter_mut().for_each(|schema| tidy(schema, is_answer));
        }
        return;
    };
    if fields.contains_key("type") {
        fields.remove("default");
        if fields.get("format").is_some_and(|format| format != "binary") {
            fields.remove("format");
        }
    }
    if let Some(Value::String(about)) = fields.get("description") {
        let about = about.split("\n\n").next().unwrap_or_default().replace('\n', " ");
        match about.contains("](crate::") {
            true => fields.remove("description"),
            false => fields.insert("description".to_owned(), about.into()),
        };
    }
    let required: Vec<Value> = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let (true, Some(Value::Object(properties))) = (is_answer, fields.get_mut("properties")) {
        for (_, property) in properties.iter_mut().filter(|(name, _)| !required.contains(&Value::from(name.as_str()))) {
            if let Some(Value::Array(types)) = property.get_mut("type") {
                types.retain(|name| name != "null");
                if let [one] = types.as_slice() {
                    property["type"] = one.clone();
                }
            }
        }
    }
    fields.values_mut().for_each(|value| tidy(value, is_answer));
}

fn operation(route: &Route, error: &Value, schemas: &mut Schemas) -> Value {
    let parts = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parts = parts.map(|name| {
        let schema = if name == "message" {
            json!({ "type": "integer", "minimum": 0 })
        } else {
            json!({ "type": "string", "minLength": 1 })
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    });
    let parameters: Vec<Value> = parts.chain((route.parameters)().iter().map(parameter)).collect();
    let mut answers = Map::new();
    let answer = route.answer.as_ref().map(|answer| schemas.answer(answer));
    answers.insert("200".to_owned(), json!({ "description": "Done", "content": answer }));
    let mut statuses: Vec<u16> = ALWAYS.iter().chain(route.refusals).copied().collect();
    if route.body.is_some() {
        statuses.extend([408, 413]);
    }
    for status in statuses {
        answers.insert(status.to_string(), json!({ "description": meaning(status), "content": error }));
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
        operation
            .insert("requestBody".to_owned(), json!({ "required": !body.optional, "content": schemas.body(body) }));
    }
    operation
}

fn parameter(parameter: &Parameter) -> Value {
    let place = match parameter.place {
        Place::Query => "query",
        Place::Header => "header",
    };
    let mut described = json!({
        "name": parameter.name,
        "in": place,
        "required": parameter.is_required,
        "description": parameter.about,
        "schema": parameter.schema,
    });
    if parameter.schema.get("type").is_some_and(|kind| kind == "object")
        && let Value::Object(described) = &mut described
    {
        // As `NAME[FIELD]=VALUE`.
        described.insert("style".to_owned(), json!("deepObject"));
        described.insert("explode".to_owned(), json!(true));
    }
    described
}
