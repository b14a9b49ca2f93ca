//! The OpenAPI document is what is served: every route, every example, every status.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::http::Client;
use crate::common::running::Running;
use crate::recorded::{Recorder, Reply};

/// The operations of a document: the verb and the path of each, and what is said of it.
pub(crate) fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, verbs): (&String, &Value)| {
        let verbs = verbs.as_object().unwrap().clone();
        let path = path.clone();
        verbs.into_iter().map(move |(verb, operation)| (verb, path.clone(), operation)).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

/// What an answer has to be by its schema, as far as these schemas go.
fn fits(document: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = document.pointer(name.trim_start_matches('#')).unwrap();
        return fits(document, schema, value, place);
    }
    if let Some(expected) = schema.get("const") {
        assert_eq!(value, expected, "{place}");
    }
    if let Some(values) = schema["enum"].as_array() {
        assert!(values.contains(value), "{place}: {value}");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().map(|name| name.as_str().unwrap()).collect(),
        _ => Vec::new(),
    };
    let is = |name: &&str| match *name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    };
    assert!(types.is_empty() || types.iter().any(is), "{place}: {value} is no {types:?}");
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(value.get(name.as_str().unwrap()).is_some(), "{place}: {name} is missing in {value}");
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            fits(document, schema, value, &format!("{place}.{name}"));
        }
    }
    for (at, value) in value.as_array().into_iter().flatten().enumerate() {
        fits(document, &schema["items"], value, &format!("{place}[{at}]"));
    }
}

/// A conversation that every example finds as it expects it: its ids and an item.
fn prepared(client: &Client, key: &str) -> (String, String) {
    let item = json!({ "role": "user", "id": format!("msg_{key}"), "chunks": [{ "type": "text", "text": "hello" }] });
    let receipt = client.post(&format!("/api/v1/conversations/{key}/messages"), &item).ok();
    (receipt["conversation"].as_str().unwrap().to_owned(), format!("msg_{key}"))
}

#[test]
fn every_example_is_answered_as_documented() {
    let model = "[[model]]\npattern = \"ollama/*\"\nupstream = \"up\"\nwire = \"openai-chat\"\n";
    let recorder = Recorder::with("sled:DIR/store?cache_mb=1", model, &[]);
    let client = recorder.client();
    let body = json!({ "messages": [{ "role": "user", "content": "hi" }] });
    let answer = json!({ "choices": [{ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": "hello" } }] });
    let exchange = recorder.ask("/v1/chat/completions", &[], &body, Reply::json(&answer)).exchange;
    recorder.settled(&exchange);
    let document = client.get("/openapi.json").ok();
    let said = json!([{ "index": 0, "message": { "role": "assistant", "content": "hello" }, "finish_reason": "stop" }]);
    let answers = || recorder.answers(Reply::json(&json!({ "choices": said })));
    for (at, (verb, path, operation)) in operations(&document).into_iter().enumerate() {
        let (id, item) = prepared(client, &format!("prepared-{at}"));
        let id = if path.starts_with("/v1") { format!("conv_{}", id.replace('-', "")) } else { id };
        let place = format!("{verb} {path}");
        let target = path.replace("{conversation}", &id).replace("{item}", &item).replace("{message}", "0");
        let mut target = target.replace("{exchange}", &exchange);
        if path.starts_with("/v1/responses") {
            answers();
        }
        if path.contains("{response}") {
            let response = client.post("/v1/responses", &json!({ "model": "ollama/x", "input": "hi" })).ok();
            target = target.replace("{response}", response["id"].as_str().unwrap());
        }
        let wanted = operation["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|parameter| parameter["in"] == "query" && parameter["required"] == true);
        let query: Vec<String> =
            wanted.map(|parameter| format!("{}=openai-chat", parameter["name"].as_str().unwrap())).collect();
        let target = format!("{target}?{}", query.join("&"));
        let answer = &operation["responses"]["200"]["content"];
        let (media_type, answer) = answer.as_object().unwrap().iter().next().unwrap();
        if media_type == "text/event-stream" {
            assert_eq!(client.follow(&target, &[]).next().unwrap().id, Some(1));
            continue;
        }
        let body = operation.pointer("/requestBody/content").and_then(Value::as_object).map(|content| {
            let (_, content) = content.iter().next().unwrap();
            if !content["example"].is_string() {
                fits(&document, &content["schema"], &content["example"], &place);
            }
            content["example"].as_str().map_or_else(|| content["example"].to_string(), str::to_owned)
        });
        let got = client.send(&verb.to_uppercase(), &target, &[], body.unwrap_or_default().as_bytes());
        assert_eq!(got.status, 200, "{place}: {}", got.text());
        assert_eq!(got.header("content-type"), Some(media_type.as_str()), "{place}");
        if media_type == "application/json" {
            fits(&document, &answer["schema"], &got.json(), &place);
            fits(&document, &answer["schema"], &answer["example"], &format!("the example of {place}"));
        }
    }
}

#[test]
fn operation_ids_stay() {
    let document = Running::open().client.get("/openapi.json").ok();
    let ids: BTreeSet<String> = operations(&document)
        .iter()
        .map(|(_, _, operation)| operation["operationId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), operations(&document).len(), "each has its own");
    let known = include_str!("operation_ids.txt");
    assert_eq!(
        ids.into_iter().collect::<Vec<_>>(),
        known.lines().filter(|id| cfg!(feature = "search") || *id != "searchConversations").collect::<Vec<_>>(),
        "clients are generated by these names"
    );
}

#[test]
fn references_lead_somewhere() {
    let document = Running::open().client.get("/openapi.json").ok();
    assert_eq!(document["openapi"], "3.1.0");
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let text = document.to_string();
    for part in text.split("#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
    for name in schemas.keys() {
        assert!(text.contains(&format!("#/components/schemas/{name}\"")), "{name} is not used");
    }
}

/// People find all of it in `docs/http-api.md`.
#[test]
fn the_docs_name_every_route_and_code() {
    let docs = include_str!("../../src/docs/http-api.md");
    let document = Running::open().client.get("/openapi.json").ok();
    for (verb, path, _) in operations(&document) {
        let route = format!("`{} {path}`", verb.to_uppercase());
        assert!(docs.contains(&route), "{route} is missing");
    }
    for (name, source) in [
        ("refusal.rs", include_str!("../../src/server/refusal.rs")),
        ("serve.rs", include_str!("../../src/server/serve.rs")),
    ] {
        let codes = source
            .split('"')
            .filter(|word| word.contains('_') && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        for code in codes.filter(|code| {
            !["_error", "last_seq", "message_index", "request_id"].iter().any(|known| code.ends_with(known))
        }) {
            assert!(docs.contains(&format!("`{code}`")), "{name}: `{code}` is missing");
        }
    }
    for (file, code) in codes_of_refusals(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server")) {
        assert!(docs.contains(&format!("`{code}`")), "{}: `{code}` is missing", file.display());
    }
}

/// The codes with which a refusal is made in a folder, each with its file.
fn codes_of_refusals(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut codes = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            codes.extend(codes_of_refusals(&path));
            continue;
        }
        let source = fs::read_to_string(&path).unwrap_or_default();
        for call in source.split("Refusal::new(").skip(1) {
            let code = call.split_once(',').and_then(|(_, rest)| rest.trim_start().strip_prefix('"')?.split_once('"'));
            codes.extend(code.map(|(code, _)| (path.clone(), code.to_owned())));
        }
    }
    codes
}

#[test]
fn the_example_of_the_docs_runs() {
    let server = Running::open();
    let docs = include_str!("../../src/docs/http-api.md");
    let example = docs.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let example = example.replace("127.0.0.1:8080", &server.client.address);
    let output = std::process::Command::new("bash").args(["-euc", &example]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers = String::from_utf8(output.stdout).unwrap();
    assert!(
        answers.contains("\"first_seq\":1") && answers.contains("\"request\":{") && answers.contains("conv_"),
        "{answers}"
    );
}
