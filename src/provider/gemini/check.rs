//! Is a generateContent request accepted?
//!
//! First the request as a whole: its parameters, `systemInstruction`, its tools. Then one content: its role, its fields, its
//! parts, their signatures. Then the contents in their sequence: which calls are answered, where, and whether the current turn
//! bears its signatures.

use serde_json::Value;

use super::models::{refuses_model_last, wants_signatures};
use super::rules::{
    GM_01, GM_02, GM_03, GM_04, GM_05, GM_06, GM_07, GM_08, GM_09, GM_10, GM_11, GM_12, GM_13, GM_14, GM_15, GM_16,
    GM_17, GM_18, GM_19, GM_20, GM_21, GM_22, GM_23, GM_24, GM_25, GM_26, GM_28, GM_29,
};
use super::types::CONTENT;
use crate::json;
use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::findings::Findings;
use crate::provider::check::shape::Fault;
use crate::provider::check::value::{Object, entry, field, is_filled, kind, text};
use crate::provider::prompt::media::bytes::decode_any_base64;
use crate::provider::target::Target;
use crate::provider::text::{is_blank, is_spelling_of, is_word_with};

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

/// Characters of a function's name.
const NAME: usize = 128;
/// What a part may carry, one at a time.
pub(crate) const DATA: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];
/// Types of inline data that every model takes, and those that some models or Vertex refuse (from reports, see GM-19).
pub(crate) const TYPES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "application/pdf",
    "text/plain",
    "audio/wav",
    "audio/x-wav",
    "audio/mp3",
    "audio/mpeg",
    "audio/aiff",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
    "audio/x-aac",
    "audio/m4a",
    "audio/mp4",
    "audio/webm",
    "audio/l16",
    "audio/opus",
    "audio/pcm",
    "video/mp4",
    "video/mpeg",
    "video/mov",
    "video/quicktime",
    "video/avi",
    "video/x-flv",
    "video/flv",
    "video/mpg",
    "video/mpegps",
    "video/webm",
    "video/wmv",
    "video/3gpp",
];
const TYPES_OF_SOME: &[&str] = &[
    "image/gif",
    "image/bmp",
    "image/avif",
    "text/html",
    "text/css",
    "text/markdown",
    "text/md",
    "text/csv",
    "text/xml",
    "text/rtf",
    "text/javascript",
    "application/x-javascript",
    "application/javascript",
    "text/x-python",
    "application/x-python",
    "application/json",
    "application/xml",
    "application/rtf",
];

/// Returns whether it holds inline data.
pub(crate) fn check_content(content: &Value, place: &str, out: &mut Findings) -> bool {
    let Some(content) = content.as_object() else {
        out.push(GM_28.at(place, format!("expected an object, got {}", kind(content))));
        return false;
    };
    let place_of_parts = format!("{place}.parts");
    let parts = content.get("parts").and_then(Value::as_array);
    check_fields(content, place, out);
    let role = content.get("role").unwrap_or(&Value::Null);
    if role.is_null() {
        out.push(GM_03.at(format!("{place}.role"), "no role").with_level(Level::Soft));
    } else if !["user", "model", "function"].iter().any(|known| role == known) {
        out.push(GM_03.at(format!("{place}.role"), format!("role is {}", kind(role))));
    }
    let Some(parts) = parts.filter(|parts| !parts.is_empty()) else {
        out.push(GM_04.at(place_of_parts, "missing, not an array, or empty"));
        return false;
    };
    let mut inline = false;
    for (i, part) in parts.iter().enumerate() {
        let place = format!("{place_of_parts}[{i}]");
        match part.as_object() {
            Some(part) => inline |= check_part(part, role, &place, out),
            None => out.push(GM_28.at(place, format!("expected an object, got {}", kind(part)))),
        }
    }
    inline
}

/// Compares with the official type, but for what other rules say better.
fn check_fields(content: &Object, place: &str, out: &mut Findings) {
    let parts = format!("{place}.parts");
    for misfit in CONTENT.misfits(content, place) {
        let rule = match (misfit.fault, misfit.place.rsplit('.').next().unwrap_or_default()) {
            (Fault::Unknown, _) => &GM_22,
            (_, "args" | "response") => &GM_15,
            (_, "thoughtSignature" | "thought_signature") => &GM_18,
            _ if misfit.place == parts => &GM_04,
            _ => &GM_28,
        };
        out.push(rule.of(misfit));
    }
}

/// Returns whether it holds inline data.
fn check_part(part: &Object, role: &Value, place: &str, out: &mut Findings) -> bool {
    let data: Vec<_> = DATA.iter().copied().filter(|name| is_set(part, name)).collect();
    let signed = field(part, "thoughtSignature").is_some_and(is_filled);
    check_one(&data, part, signed, place, out);
    match part.get("text").and_then(Value::as_str) {
        Some("") if !signed => out.push(GM_06.at(format!("{place}.text"), "text is empty")),
        Some(text) if !text.is_empty() && is_blank(text) => {
            out.push(GM_06.at(format!("{place}.text"), "text is blank"));
        }
        _ => {}
    }
    check_signature(part, role, place, out);
    if part.get("thought") == Some(&Value::Bool(true)) && !signed {
        out.push(GM_26.at(place, "a thought without its signature"));
    }
    if let Some((name, file)) = object(part, "fileData") {
        let (uri, value) = entry(file, "fileUri").unwrap_or(("fileUri", &Value::Null));
        if !is_filled(value) {
            out.push(GM_20.at(format!("{place}.{name}.{uri}"), "missing or empty"));
        }
    }
    check_function(part, "functionCall", "args", place, out);
    check_function(part, "functionResponse", "response", place, out);
    if data.contains(&"functionCall") && !role.is_null() && role != "model" {
        out.push(GM_23.at(place, format!("functionCall in a turn of the role {role}")));
    }
    if data.contains(&"functionResponse") && role == "model" {
        out.push(GM_23.at(place, "functionResponse in a turn of the model"));
    }
    let inline = object(part, "inlineData");
    if let Some((name, blob)) = inline {
        check_inline(blob, &format!("{place}.{name}"), out);
    }
    inline.is_some()
}

fn check_one(data: &[&str], part: &Object, signed: bool, place: &str, out: &mut Findings) {
    let beside = ["thoughtSignature", "thought"];
    match data {
        [_] => {}
        [] => {
            let only_signature =
                signed && part.keys().all(|name| beside.iter().any(|known| is_spelling_of(known, name)));
            let other = part.iter().any(|(name, value)| {
                !value.is_null() && !beside.iter().chain(DATA).any(|known| is_spelling_of(known, name))
            });
            let level = match (only_signature, other) {
                (true, _) => Level::Soft,
                (false, true) => Level::Unknown,
                (false, false) => Level::Hard,
            };
            out.push(GM_05.at(place, "carries nothing that is known").with_level(level));
        }
        several => out.push(GM_05.at(place, format!("carries {} at a time", several.join(", ")))),
    }
}

fn check_signature(part: &Object, role: &Value, place: &str, out: &mut Findings) {
    let Some((name, signature)) = entry(part, "thoughtSignature").filter(|(_, value)| !value.is_null()) else { return };
    let place = format!("{place}.{name}");
    if signature.as_str().and_then(decode_any_base64).is_none() {
        out.push(GM_18.at(&place, "not base64"));
    }
    if role != "model" {
        out.push(GM_29.at(place, "outside of a turn of the model"));
    }
}

fn check_inline(blob: &Object, place: &str, out: &mut Findings) {
    let (name, declared) = entry(blob, "mimeType").unwrap_or(("mimeType", &Value::Null));
    let essence = declared.as_str().and_then(|name| name.split(';').next());
    let essence = essence.map(|name| name.trim().to_ascii_lowercase()).unwrap_or_default();
    let place_of_type = format!("{place}.{name}");
    if TYPES_OF_SOME.contains(&essence.as_str()) {
        let problem = format!("some models refuse {}", kind(declared));
        out.push(GM_19.at(place_of_type, problem).with_level(Level::Soft));
    } else if !TYPES.contains(&essence.as_str()) {
        out.push(GM_19.at(place_of_type, format!("mimeType is {}", kind(declared))));
    }
    let data = blob.get("data").and_then(Value::as_str).filter(|data| !data.is_empty());
    if data.and_then(decode_any_base64).is_none() {
        out.push(GM_19.at(format!("{place}.data"), "data is not base64"));
    }
}

/// A call or a response: its name, and the object that it passes under `key`.
fn check_function(part: &Object, name: &str, key: &str, place: &str, out: &mut Findings) {
    let Some((name, function)) = object(part, name) else { return };
    let place = format!("{place}.{name}");
    match text(function, "name") {
        "" => out.push(GM_10.at(format!("{place}.name"), "missing, empty, or not a string")),
        name if !is_function_name(name) => {
            let problem = format!("name is {name:?}, which no function can be declared as");
            out.push(GM_16.at(format!("{place}.name"), problem).with_level(Level::Soft));
        }
        _ => {}
    }
    match function.get(key).unwrap_or(&Value::Null) {
        Value::Object(_) => {}
        Value::Null if key == "response" => {
            out.push(GM_15.at(format!("{place}.{key}"), "missing").with_level(Level::Soft));
        }
        Value::Null => {}
        other => out.push(GM_15.at(format!("{place}.{key}"), format!("expected an object, got {}", kind(other)))),
    }
}

fn is_set(part: &Object, name: &str) -> bool {
    field(part, name).is_some_and(|value| !value.is_null())
}

/// With its name as it is spelled there.
fn object<'a>(part: &'a Object, name: &str) -> Option<(&'a str, &'a Object)> {
    let (name, value) = entry(part, name)?;
    Some((name, value.as_object()?))
}

/// Whether it is a name that a function may have (GM-16).
fn is_function_name(name: &str) -> bool {
    is_word_with(name, NAME, b"_.:-") && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

/// A content: who says it, and which functions it calls or answers.
pub(crate) struct Spoken<'a> {
    /// Without a role it is the user's; empty where it is no string.
    pub(crate) role: &'a str,
    pub(crate) parts: Vec<&'a Object>,
    pub(crate) calls: Vec<&'a Object>,
    pub(crate) responses: Vec<&'a Object>,
}

/// The contents of a request; `None` where they are no sequence: not an array, empty, or not all of them objects with
/// parts that are objects.
pub(crate) fn turns(request: &Value) -> Option<Vec<Spoken<'_>>> {
    let contents = request.get("contents")?.as_array().filter(|contents| !contents.is_empty())?;
    contents.iter().map(turn).collect()
}

fn turn(content: &Value) -> Option<Spoken<'_>> {
    let role = match content.as_object()?.get("role").unwrap_or(&Value::Null) {
        Value::Null => "user",
        role => role.as_str().unwrap_or_default(),
    };
    let parts: Vec<_> = content.get("parts")?.as_array()?.iter().map(Value::as_object).collect::<Option<_>>()?;
    let functions = |name| parts.iter().filter_map(|part| field(part, name)?.as_object()).collect();
    Some(Spoken { role, calls: functions("functionCall"), responses: functions("functionResponse"), parts })
}

fn check_sequence(model: &str, turns: &[Spoken], out: &mut Findings) {
    let mut before: Option<&Spoken> = None;
    // The calls of the model's contents in a row up to here: they are one turn.
    let mut calls: Vec<&Object> = Vec::new();
    let mut by_model_only = true;
    for (i, turn) in turns.iter().enumerate() {
        let place = format!("contents[{i}]");
        if turn.role == "model" {
            if before.is_some_and(|before| before.role != "model") {
                calls.clear();
            }
            calls.extend(&turn.calls);
            if by_model_only && !turn.calls.is_empty() {
                out.push(GM_07.at(&place, "its functionCall is in the first turn"));
            }
            match turns.get(i + 1) {
                _ if calls.is_empty() => {}
                Some(next) if next.role == "model" => {}
                Some(_) => {
                    let given = turns.iter().skip(i + 1);
                    let given = given.take_while(|turn| turn.role != "model" && !turn.responses.is_empty());
                    check_responses(&calls, &given.collect::<Vec<_>>(), &format!("contents[{}]", i + 1), out);
                }
                None => {
                    let problem = "the conversation ends with calls that are not answered";
                    out.push(GM_12.at(&place, problem).with_level(Level::Hard));
                }
            }
        }
        if !turn.responses.is_empty() {
            if calls.is_empty() || turn.role == "model" {
                out.push(GM_09.at(&place, "no turn with calls right before it"));
            }
            if turn.responses.len() != turn.parts.len() {
                out.push(GM_24.at(&place, "function responses beside other parts"));
            }
        }
        if let Some(problem) = before.and_then(|before| in_a_row(before, turn)) {
            out.push(GM_14.at(place, problem));
        }
        if turn.role != "model" {
            by_model_only = false;
            // What follows responses may be more of them.
            if turn.responses.is_empty() {
                calls.clear();
            }
        }
        before = Some(turn);
    }
    check_ends(model, turns, out);
}

/// `given`: the contents with responses that follow the calls.
fn check_responses(calls: &[&Object], given: &[&Spoken], place: &str, out: &mut Findings) {
    let responses: Vec<&Object> = given.iter().flat_map(|turn| turn.responses.iter().copied()).collect();
    if calls.len() != responses.len() {
        let problem = format!("{} calls before it, but {} function responses in it", calls.len(), responses.len());
        return out.push(GM_08.at(place, problem));
    }
    if given.len() > 1 {
        let problem = format!("the calls' responses are in {} contents", given.len());
        out.push(GM_08.at(place, problem).with_level(Level::Soft));
    }
    for (call, response) in calls.iter().zip(responses) {
        let of = |function: &Object, key: &str| function.get(key).cloned().unwrap_or_default();
        let (name, id) = (of(call, "name"), of(call, "id"));
        if of(response, "name") != name {
            out.push(GM_11.at(place, format!("a response of {} in the place of {name}", of(response, "name"))));
        }
        let other_id = of(response, "id");
        if is_text(&id) && is_text(&other_id) && id != other_id {
            out.push(GM_11.at(place, format!("a response with id {other_id} in the place of {id}")));
        }
    }
}

fn in_a_row(before: &Spoken, turn: &Spoken) -> Option<String> {
    let answers = |turn: &Spoken| !turn.responses.is_empty();
    if before.role == turn.role && !answers(before) && !answers(turn) {
        Some(format!("two contents of the role {} in a row", turn.role))
    } else if ["user", "function"].contains(&before.role) && turn.role == "user" && answers(before) && !answers(turn) {
        Some("a user content directly after function responses".to_owned())
    } else {
        None
    }
}

fn check_ends(model: &str, turns: &[Spoken], out: &mut Findings) {
    if let Some(first) = turns.first().filter(|first| first.role != "user") {
        out.push(GM_13.at("contents[0]", format!("the first content is of the role {}", first.role)));
    }
    if turns.last().is_some_and(|last| last.role == "model" && last.calls.is_empty()) {
        let level = if refuses_model_last(model) == Some(true) { Level::Hard } else { Level::Soft };
        let place = format!("contents[{}]", turns.len() - 1);
        out.push(GM_12.at(place, "the conversation ends with the model").with_level(level));
    }
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn check_signatures(model: &str, turns: &[Spoken], out: &mut Findings) {
    let level = match wants_signatures(model) {
        Some(true) => Level::Hard,
        Some(false) => return,
        None => Level::Soft,
    };
    out.extend(unsigned_calls(turns).map(|finding| finding.with_level(level)));
}

/// The first call of each step of the current turn, where it has no signature.
pub(crate) fn unsigned_calls(turns: &[Spoken]) -> impl Iterator<Item = Finding> {
    let start = turns.iter().rposition(|turn| turn.role == "user" && turn.responses.is_empty()).unwrap_or(0);
    let steps = turns.iter().enumerate().skip(start).filter(|(_, turn)| turn.role == "model");
    steps.filter_map(|(i, turn)| {
        let is_call = |part: &Object| field(part, "functionCall").is_some_and(Value::is_object);
        let (j, call) = turn.parts.iter().enumerate().find(|(_, part)| is_call(part))?;
        let unsigned = !field(call, "thoughtSignature").is_some_and(is_filled);
        unsigned.then(|| GM_17.at(format!("contents[{i}].parts[{j}]"), "a step's first call without thoughtSignature"))
    })
}
