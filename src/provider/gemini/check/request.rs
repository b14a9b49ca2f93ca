//! The request as a whole: its parameters, `systemInstruction`, its contents one by one, their sequence, its tools.

use serde_json::Value;

use super::content::{check_content, is_function_name};
use super::sequence::{check_sequence, check_signatures, turns};
use crate::json;
use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::value::{Object, entry, kind, text};
use crate::provider::gemini::rules::{GM_01, GM_02, GM_16, GM_21, GM_25};
use crate::provider::target::Target;
use crate::provider::text::is_spelling_of;

/// Bytes of a request with inline data.
const BYTES: usize = 20 * 1024 * 1024;
/// Characters of a function's name that older models take too.
const OLDER_NAME: usize = 64;

/// The parameters of the service (`GenerateContentRequest`).
const PARAMETERS: &[&str] = &[
    "cachedContent",
    "contents",
    "generationConfig",
    "labels",
    "model",
    "modelArmorConfig",
    "safetySettings",
    "serviceTier",
    "store",
    "systemInstruction",
    "toolConfig",
    "tools",
];

pub(crate) fn check(_: Target, request: &Value, out: &mut Findings) {
    let Some(object) = request.as_object() else {
        return out.push(GM_01.at("", format!("expected an object, got {}", kind(request))));
    };
    for name in object.keys().filter(|name| !PARAMETERS.iter().any(|known| is_spelling_of(known, name))) {
        out.push(GM_02.unknown(name, "unknown parameter"));
    }
    if let Some((name, system)) = entry(object, "systemInstruction").filter(|(_, system)| !system.is_null()) {
        check_system(system, name, out);
    }
    let Some(contents) = object.get("contents").and_then(Value::as_array).filter(|contents| !contents.is_empty())
    else {
        return out.push(GM_01.at("contents", "missing, not an array, or empty"));
    };
    let mut inline = false;
    for (i, content) in contents.iter().enumerate() {
        inline |= check_content(content, &format!("contents[{i}]"), out);
    }
    let bytes = if inline { json::size(request) } else { 0 };
    if bytes > BYTES {
        out.push(GM_21.at("", format!("{bytes} bytes with inline data, at most {BYTES}")));
    }
    check_tools(object, out);
    if let Some(turns) = turns(request) {
        let model = text(object, "model");
        check_sequence(model, &turns, out);
        check_signatures(model, &turns, out);
    }
}

fn check_system(system: &Value, place: &str, out: &mut Findings) {
    let Some(content) = system.as_object() else {
        return out.push(GM_25.at(place, format!("expected an object, got {}", kind(system))));
    };
    let parts = match content.get("parts").unwrap_or(&Value::Null) {
        Value::Array(parts) => parts.as_slice(),
        part => std::slice::from_ref(part),
    };
    let has_text = |part: &Value| part.get("text").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if parts.is_empty() || !parts.iter().all(has_text) {
        out.push(GM_25.at(format!("{place}.parts"), "no parts, or one without text"));
    }
}

fn check_tools(request: &Object, out: &mut Findings) {
    let tools = match request.get("tools") {
        None | Some(Value::Null) => return,
        Some(Value::Array(tools)) => tools.as_slice(),
        Some(tool @ Value::Object(_)) => {
            out.push(GM_02.at("tools", "one tool, not in an array").with_level(Level::Soft));
            std::slice::from_ref(tool)
        }
        Some(other) => return out.push(GM_02.at("tools", format!("expected an array, got {}", kind(other)))),
    };
    for (i, tool) in tools.iter().enumerate() {
        let Some((list, declarations)) = tool.as_object().and_then(|tool| entry(tool, "functionDeclarations")) else {
            continue;
        };
        for (j, declaration) in declarations.as_array().into_iter().flatten().enumerate() {
            let name = declaration.get("name").unwrap_or(&Value::Null);
            check_name(name, format!("tools[{i}].{list}[{j}].name"), out);
        }
    }
}

fn check_name(name: &Value, place: String, out: &mut Findings) {
    match name.as_str().filter(|name| is_function_name(name)) {
        None => out.push(GM_16.at(place, format!("name is {}", kind(name)))),
        Some(name) if name.len() > OLDER_NAME => {
            let problem = format!("name of {} characters; older models take {OLDER_NAME}", name.len());
            out.push(GM_16.at(place, problem).with_level(Level::Soft));
        }
        Some(_) => {}
    }
}
