//! One message: its role, its fields, its content as a whole, its blocks.
//!
//! What counts over the whole request: images, and the marks up to which a prompt is cached.

use serde_json::Value;

use crate::provider::anthropic::rules::{
    AN_03, AN_04, AN_06, AN_07, AN_08, AN_16, AN_17, AN_18, AN_19, AN_20, AN_21, AN_22, AN_24, AN_25, AN_27, AN_28,
    AN_29, AN_30, AN_31, AN_32, AN_33, AN_40, AN_41, AN_44,
};
use crate::provider::anthropic::types::{ROLES, is_known, is_server_result};
use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::shape::{Fault, Shape};
use crate::provider::check::value::{Object, is_filled, items, kind, objects, text};
use crate::provider::prompt::media::bytes::{IMAGE_TYPES, decode_base64, dimensions, is_web_address, sniff};
use crate::provider::text::{is_blank, is_word};

/// Characters of a tool's name where it is defined.
pub(crate) const NAME: usize = 128;
/// Characters of a tool's name where it is called.
const NAME_IN_CALL: usize = 200;
/// Types of other wires' parts, which are sent here by mistake.
const OF_OTHER_WIRES: &[&str] = &[
    "image_url",
    "input_audio",
    "file",
    "refusal",
    "input_text",
    "input_image",
    "input_file",
    "output_text",
    "function_call",
    "function_call_output",
];

/// `last`: it is the last of the conversation.
pub(crate) fn check_message<'a>(message: &'a Value, place: &str, last: bool, seen: &mut Seen<'a>, out: &mut Findings) {
    let Some(object) = message.as_object() else {
        return out.push(AN_03.at(place, format!("expected an object, got {}", kind(message))));
    };
    let name = object.get("role").unwrap_or(&Value::Null);
    let Some((role, shape)) = ROLES.iter().find(|(role, _)| name == role) else {
        return out.push(AN_03.at(place, format!("role is {}", kind(name))));
    };
    let place_of_content = format!("{place}.content");
    check_fields(shape, role, object, place, out);
    match object.get("content").unwrap_or(&Value::Null) {
        Value::Null => {}
        Value::String(text) if text.is_empty() => check_emptiness(role, last, &place_of_content, out),
        Value::String(text) if is_blank(text) => out.push(AN_08.at(place_of_content, "text is blank")),
        Value::Array(blocks) if blocks.is_empty() => check_emptiness(role, last, &place_of_content, out),
        Value::Array(blocks) => {
            for (i, block) in blocks.iter().enumerate() {
                let place = format!("{place_of_content}[{i}]");
                match block.as_object() {
                    Some(block) => check_block(block, &place, role, seen, out),
                    None => out.push(AN_41.at(place, format!("expected an object, got {}", kind(block)))),
                }
            }
            match *role {
                "system" => check_system(blocks, &place_of_content, out),
                "assistant" => check_order(blocks, &place_of_content, out),
                _ => {}
            }
        }
        _ => {}
    }
}

/// Compares with the official type, but for what other rules say better.
fn check_fields(shape: &'static Shape, role: &str, message: &Object, place: &str, out: &mut Findings) {
    let content = format!("{place}.content");
    let is_content = message.get("content").is_some_and(|content| content.is_string() || content.is_array());
    for misfit in shape.misfits(message, place) {
        let (place, fault) = (&misfit.place, misfit.fault);
        let field = place.rsplit('.').next().unwrap_or_default();
        let rule = match (fault, field) {
            // AN-27 and AN-28 judge them.
            (Fault::Unknown, "cache_control") if place.starts_with(&content) => continue,
            (_, "media_type") => continue,
            (Fault::Unknown, "clear_at") if role == "system" => {
                out.push(AN_33.of(misfit).with_level(Level::Soft));
                continue;
            }
            (Fault::Unknown, _) => &AN_33,
            (Fault::Wrong, "input") => &AN_18,
            (_, "signature") => &AN_21,
            (_, "content") if *place == content && !is_content => &AN_06,
            _ => &AN_41,
        };
        out.push(rule.of(misfit));
    }
}

fn check_emptiness(role: &str, last: bool, place: &str, out: &mut Findings) {
    if !(last && role == "assistant") {
        out.push(AN_06.at(place, "content is empty"));
    }
}

fn check_system(blocks: &[Value], place: &str, out: &mut Findings) {
    let strange =
        |block: &Object| block.get("type").and_then(Value::as_str).is_none_or(|name| name != "text" && is_known(name));
    if objects(blocks).any(|(_, block)| strange(block)) {
        out.push(AN_04.at(place, "another block than text"));
    }
    for (i, _) in objects(blocks).filter(|(_, block)| block.get("cache_control").is_some_and(|mark| !mark.is_null())) {
        out.push(AN_27.at(format!("{place}[{i}]"), "in a message of the role system"));
    }
}

/// Thinking comes first, and is not all; after a server's tool the model may think again.
fn check_order(blocks: &[Value], place: &str, out: &mut Findings) {
    if blocks.last().is_some_and(|last| is_thinking(name(last))) {
        out.push(AN_25.at(format!("{place}[{}]", blocks.len() - 1), "nothing follows the thinking"));
    }
    let mut spoken = false;
    for (i, name) in blocks.iter().map(name).enumerate() {
        match name {
            name if is_thinking(name) && spoken => {
                out.push(AN_24.at(format!("{place}[{i}]"), "after text or tool_use"));
            }
            "text" | "tool_use" => spoken = true,
            "server_tool_use" => spoken = false,
            name if is_server_result(name) => spoken = false,
            _ => {}
        }
    }
}

/// The type of a block, empty where it is no string.
fn name(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// The blocks of message `i` that are objects, and their places.
pub(crate) fn blocks(message: &Object, i: usize) -> impl Iterator<Item = (String, &Object)> {
    objects(items(message, "content")).map(move |(j, block)| (format!("messages[{i}].content[{j}]"), block))
}

fn check_block<'a>(block: &'a Object, place: &str, role: &str, seen: &mut Seen<'a>, out: &mut Findings) {
    seen.marks.see(block, place, out);
    let name = text(block, "type");
    check_side(name, role, place, out);
    match name {
        "text" => check_text(block, place, out),
        "image" => seen.images.see(block, place, out),
        "document" => check_document(block, place, out),
        "tool_use" => check_call(block, place, out),
        "tool_result" => check_result(block, place, seen, out),
        "thinking" if !is_text(block, "signature") => {
            out.push(AN_21.at(format!("{place}.signature"), "missing, empty, or not a string"));
        }
        "redacted_thinking" if !is_text(block, "data") => {
            out.push(AN_22.at(format!("{place}.data"), "missing, empty, or not a string"));
        }
        _ if OF_OTHER_WIRES.contains(&name) => {
            out.push(AN_41.at(format!("{place}.type"), format!("{name:?} is a type of another wire")));
        }
        _ => {}
    }
}

fn check_side(name: &str, role: &str, place: &str, out: &mut Findings) {
    let problem = format!("{name} in a message of the role {role}");
    match (name, role) {
        ("image" | "document", "assistant") => out.push(AN_20.at(place, problem)),
        ("tool_use" | "thinking" | "redacted_thinking", "assistant") | ("tool_result", "user") => {}
        ("tool_use" | "thinking" | "redacted_thinking" | "tool_result", _) => out.push(AN_19.at(place, problem)),
        _ => {}
    }
}

pub(crate) fn check_text(block: &Object, place: &str, out: &mut Findings) {
    let text =
        block.get("text").and_then(Value::as_str).filter(|_| block.get("type").is_some_and(|name| name == "text"));
    match text {
        Some("") => out.push(AN_07.at(format!("{place}.text"), "text is empty")),
        Some(text) if is_blank(text) => out.push(AN_08.at(format!("{place}.text"), "text is blank")),
        _ => {}
    }
}

fn check_call(call: &Object, place: &str, out: &mut Findings) {
    check_id(call.get("id"), &format!("{place}.id"), out);
    let name = call.get("name").unwrap_or(&Value::Null);
    let place_of_name = format!("{place}.name");
    match name.as_str().filter(|name| (1..=NAME_IN_CALL).contains(&name.chars().count())) {
        None => out.push(AN_17.at(place_of_name, format!("name is {}", kind(name)))),
        Some(text) if !is_word(text, NAME) => {
            let problem = format!("name is {}, which no tool can be defined as", kind(name));
            out.push(AN_17.at(place_of_name, problem).with_level(Level::Soft));
        }
        Some(_) => {}
    }
    let input = call.get("input").unwrap_or(&Value::Null);
    if !input.is_object() {
        out.push(AN_18.at(format!("{place}.input"), format!("expected an object, got {}", kind(input))));
    }
}

fn check_result<'a>(result: &'a Object, place: &str, seen: &mut Seen<'a>, out: &mut Findings) {
    check_id(result.get("tool_use_id"), &format!("{place}.tool_use_id"), out);
    let failed = result.get("is_error") == Some(&Value::Bool(true));
    let content = result.get("content").unwrap_or(&Value::Null);
    let place = format!("{place}.content");
    if failed && !is_filled(content) {
        out.push(AN_40.at(&place, "an error without content").with_level(Level::Soft));
    }
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    for (i, block) in objects(blocks) {
        let place = format!("{place}[{i}]");
        let name = block.get("type").unwrap_or(&Value::Null);
        check_text(block, &place, out);
        if name == "image" {
            seen.images.see(block, &place, out);
        }
        seen.marks.see(block, &place, out);
        if failed && name != "text" {
            out.push(AN_40.at(place, format!("block of type {name} in an error")));
        }
    }
}

fn check_id(id: Option<&Value>, place: &str, out: &mut Findings) {
    let id = id.unwrap_or(&Value::Null);
    if !id.as_str().is_some_and(|id| is_word(id, usize::MAX)) {
        out.push(AN_16.at(place, format!("id is {}", kind(id))));
    }
}

fn is_text(block: &Object, field: &str) -> bool {
    block.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}

/// Images in one request.
const IMAGES: usize = 100;
/// Characters of an image's base64 (AN-30). The error says "bytes" and counts these: an image of 4.7 MB was refused as one
/// of 6,275,800 (gh:lobehub/lobehub#14711), and all counts that are reported are multiples of four.
pub(crate) const CHARACTERS: usize = 5_242_880;
/// Pixels of an image's longer side (AN-30).
pub(crate) const PIXELS: u32 = 8000;
/// Pixels of the longer side where there are more than so many images.
const PIXELS_OF_MANY: u32 = 2000;
const MANY: usize = 20;
/// Marks in one request.
const MARKS: usize = 4;
/// How the place of a block in a message begins.
const IN_MESSAGES: &str = "messages[";
/// How long a mark holds, if it does not say.
const DEFAULT_TTL: &str = "5m";
const TTLS: &[&str] = &[DEFAULT_TTL, "1h"];

/// What counts over the whole request.
#[derive(Default)]
pub(crate) struct Seen<'a> {
    pub(crate) images: ImagesSeen,
    pub(crate) marks: Marks<'a>,
}

pub(crate) fn is_thinking(name: &str) -> bool {
    ["thinking", "redacted_thinking"].contains(&name)
}

/// The images of a request: their number, and the places and longer sides of those too large to be one of many.
#[derive(Default)]
pub(crate) struct ImagesSeen {
    count: usize,
    large: Vec<(String, u32)>,
}

impl ImagesSeen {
    pub(crate) fn see(&mut self, image: &Object, place: &str, out: &mut Findings) {
        self.count += 1;
        let source = image.get("source").and_then(Value::as_object);
        match (source, source.and_then(|source| source.get("type")?.as_str())) {
            (Some(source), Some("base64")) => {
                if let Some(side) = check_base64(source, &format!("{place}.source"), out) {
                    self.large.push((place.to_owned(), side));
                }
            }
            (Some(source), Some("url")) => {
                let url = text(source, "url");
                if !is_web_address(url) {
                    out.push(AN_28.at(format!("{place}.source.url"), "not an http(s) URL"));
                }
            }
            (Some(_), Some("file")) => {}
            _ => out.push(AN_28.at(format!("{place}.source"), "neither base64 nor url nor file")),
        }
    }

    pub(crate) fn check(&self, out: &mut Findings) {
        if self.count > IMAGES {
            out.push(AN_31.at("messages", format!("{} images, at most {IMAGES}", self.count)));
        }
        if self.count > MANY {
            for (place, side) in &self.large {
                out.push(AN_32.at(place, format!("{side} pixels a side, one of {} images", self.count)));
            }
        }
    }
}

/// The longer side of an image that is accepted, but too large to be one of many.
fn check_base64(source: &Object, place: &str, out: &mut Findings) -> Option<u32> {
    let declared = source.get("media_type").unwrap_or(&Value::Null);
    let image_type = declared.as_str().filter(|name| IMAGE_TYPES.contains(name));
    if image_type.is_none() {
        out.push(AN_28.at(format!("{place}.media_type"), format!("media_type is {}", kind(declared))));
    }
    let place = format!("{place}.data");
    let Some(bytes) = decoded(source) else {
        out.push(AN_44.at(place, "data is not raw base64"));
        return None;
    };
    if let (Some(image_type), Some(shown)) = (image_type, sniff(&bytes).filter(|shown| Some(*shown) != image_type)) {
        out.push(AN_29.at(&place, format!("the bytes are {shown}, declared as {image_type}")));
    }
    let characters = source.get("data").and_then(Value::as_str).map_or(0, str::len);
    if characters > CHARACTERS {
        out.push(AN_30.at(&place, format!("{characters} characters of base64, at most {CHARACTERS}")));
    }
    let (width, height) = dimensions(&bytes)?;
    let side = width.max(height);
    if side > PIXELS {
        out.push(AN_30.at(place, format!("{side} pixels a side, at most {PIXELS}")));
    }
    (PIXELS_OF_MANY < side && side <= PIXELS).then_some(side)
}

fn check_document(document: &Object, place: &str, out: &mut Findings) {
    let Some(source) = document.get("source").and_then(Value::as_object) else { return };
    if source.get("type").is_none_or(|name| name != "base64") {
        return;
    }
    let declared = source.get("media_type").unwrap_or(&Value::Null);
    if declared != "application/pdf" {
        out.push(AN_28.at(format!("{place}.source.media_type"), format!("media_type is {}", kind(declared))));
    }
    if decoded(source).is_none() {
        out.push(AN_44.at(format!("{place}.source.data"), "data is not raw base64"));
    }
}

fn decoded(source: &Object) -> Option<Vec<u8>> {
    decode_base64(source.get("data")?.as_str()?).filter(|bytes| !bytes.is_empty())
}

/// The marks of a request, in the order of the prompt: how long each holds, and where it is, if it is in a message.
#[derive(Default)]
pub(crate) struct Marks<'a>(Vec<(&'a str, String)>);

impl<'a> Marks<'a> {
    /// Takes the mark of a block or tool, if it has one.
    pub(crate) fn see(&mut self, block: &'a Object, place: &str, out: &mut Findings) {
        let Some(mark) = block.get("cache_control").and_then(Value::as_object).filter(|mark| !mark.is_empty()) else {
            return;
        };
        let place = format!("{place}.cache_control");
        let ttl = mark.get("ttl").map_or(Some(DEFAULT_TTL), Value::as_str);
        let known = ttl.is_some_and(|ttl| TTLS.contains(&ttl));
        if !known || mark.get("type").is_none_or(|name| name != "ephemeral") {
            out.push(AN_27.at(&place, "not of the type ephemeral, or for another time than 5m or 1h"));
        }
        self.0.push((
            ttl.unwrap_or_default(),
            if place.starts_with(IN_MESSAGES) { place.clone() } else { String::new() },
        ));
        let name = text(block, "type");
        if name == "text" && block.get("text").is_some_and(|text| text == "") {
            out.push(AN_27.at(place, "on an empty text block"));
        } else if is_thinking(name) {
            out.push(AN_27.at(place, "on a thinking block"));
        }
    }

    /// Takes the mark of the request as a whole: it counts as one at its end.
    pub(crate) fn see_request(&mut self, request: &Object) {
        if request.get("cache_control").is_some_and(is_filled) {
            self.0.push((DEFAULT_TTL, String::new()));
        }
    }

    pub(crate) fn check(&self, out: &mut Findings) {
        let over = self.0.len().saturating_sub(MARKS);
        if over > 0 {
            // Any of them may go: the first ones of the messages are of the least use.
            let marked: Vec<&str> =
                self.0.iter().map(|(_, place)| place.as_str()).filter(|place| !place.is_empty()).take(over).collect();
            let places = if marked.len() == over { marked } else { vec![""] };
            let problem = format!("{} blocks with cache_control, at most {MARKS}", self.0.len());
            places.into_iter().for_each(|place| out.push(AN_27.at(place, problem.as_str())));
        }
        let after = self.0.iter().skip_while(|(ttl, _)| *ttl != "5m");
        for (_, place) in after.filter(|(ttl, _)| *ttl == "1h") {
            out.push(AN_27.at(place.as_str(), "a cache_control of 1h after one of 5m"));
        }
    }
}
