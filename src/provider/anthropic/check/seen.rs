//! What counts over the whole request: images, and the marks up to which a prompt is cached.

use serde_json::Value;

use crate::provider::anthropic::rules::{AN_27, AN_28, AN_29, AN_30, AN_31, AN_32, AN_44};
use crate::provider::check::findings::Findings;
use crate::provider::check::value::{Object, is_filled, kind, text};
use crate::provider::prompt::media::bytes::{IMAGE_TYPES, decode_base64, dimensions, is_web_address, sniff};

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

pub(crate) fn check_document(document: &Object, place: &str, out: &mut Findings) {
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

/// The marks of a request, in the order of the prompt: how long each holds.
#[derive(Default)]
pub(crate) struct Marks<'a>(Vec<&'a str>);

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
        self.0.push(ttl.unwrap_or_default());
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
            self.0.push(DEFAULT_TTL);
        }
    }

    pub(crate) fn check(&self, out: &mut Findings) {
        if self.0.len() > MARKS {
            out.push(AN_27.at("", format!("{} blocks with cache_control, at most {MARKS}", self.0.len())));
        }
        if self.0.iter().skip_while(|ttl| **ttl != "5m").any(|ttl| *ttl == "1h") {
            out.push(AN_27.at("", "a mark of 1h after one of 5m"));
        }
    }
}
