//! The marks up to which a prompt is cached.

use serde_json::{Map, Value};

use crate::provider::anthropic::rules::AN_27;
use crate::provider::check::finding::Finding;
use crate::provider::check::shape::is_filled;

/// Marks in one request.
const MARKS: usize = 4;
/// How long a mark holds, if it does not say.
const DEFAULT_TTL: &str = "5m";
const TTLS: &[&str] = &[DEFAULT_TTL, "1h"];
const THINKING: &[&str] = &["thinking", "redacted_thinking"];

/// The marks of a request, in the order of the prompt: how long each holds.
#[derive(Default)]
pub(crate) struct Marks<'a>(Vec<&'a str>);

impl<'a> Marks<'a> {
    /// Takes the mark of a block or tool, if it has one.
    pub(crate) fn see(&mut self, block: &'a Map<String, Value>, place: &str, out: &mut Vec<Finding>) {
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
        let name = block.get("type").and_then(Value::as_str).unwrap_or_default();
        if name == "text" && block.get("text").is_some_and(|text| text == "") {
            out.push(AN_27.at(place, "on an empty text block"));
        } else if THINKING.contains(&name) {
            out.push(AN_27.at(place, "on a thinking block"));
        }
    }

    /// Takes the mark of the request as a whole: it counts as one at its end.
    pub(crate) fn see_request(&mut self, request: &Map<String, Value>) {
        if request.get("cache_control").is_some_and(is_filled) {
            self.0.push(DEFAULT_TTL);
        }
    }

    pub(crate) fn check(&self, out: &mut Vec<Finding>) {
        if self.0.len() > MARKS {
            out.push(AN_27.at("", format!("{} blocks with cache_control, at most {MARKS}", self.0.len())));
        }
        if self.0.iter().skip_while(|ttl| **ttl != "5m").any(|ttl| *ttl == "1h") {
            out.push(AN_27.at("", "a mark of 1h after one of 5m"));
        }
    }
}
