//! What of a message bears meaning, and its digest: what two requests, or an answer and its echo, are compared by.
//!
//! It is an allow-list. Not in it: thinking, ids, `cache_control` and `cachePoint`, annotations, and every field that a client may
//! add or leave out. Texts of one role that follow each other are one text, wherever messages and parts begin; the white space at
//! the ends of a text of the model does not count.

use std::borrow::Cow;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use crate::model::{Body, Chunk, Message, Output, PartBody, Role};

/// What a chunk means.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Meaning<'a> {
    Text(Cow<'a, str>),
    Call {
        /// Empty if nobody gave it one.
        id: &'a str,
        name: &'a str,
        arguments: Vec<u8>,
    },
    Result {
        id: &'a str,
        name: Option<&'a str>,
        failed: bool,
        output: Vec<u8>,
    },
    /// An item of an earlier answer, by its id alone.
    Reference(String),
    /// A block that this crate has no chunk for. Some clients send it back without the id that the provider gave it.
    Item {
        id: Option<String>,
        /// Its type, and what it has beside its id and its status, in bytes that are equal if that is.
        content: Vec<u8>,
        kind: &'a str,
    },
    /// Anything else, in bytes that are equal if it is.
    Other(Vec<u8>),
}

/// What a chunk means; `None` if it says nothing that is compared.
pub(super) fn of(chunk: &Chunk) -> Option<Meaning<'_>> {
    match &chunk.body {
        Body::Text { text, .. } | Body::Refusal { text } => {
            (!text.is_empty()).then_some(Meaning::Text(Cow::Borrowed(text)))
        }
        Body::Thinking { .. } | Body::Error { .. } => None,
        Body::ToolCall { id, name, arguments, .. } => {
            let id = if is_made_up(id, name) { "" } else { id };
            Some(Meaning::Call { id, name, arguments: canonical(arguments) })
        }
        Body::ToolResult { tool_call_id, name, output, is_error } => Some(Meaning::Result {
            id: tool_call_id,
            name: name.as_deref(),
            failed: *is_error == Some(true),
            output: output_bytes(output),
        }),
        Body::Image(image) => Some(other("image", &image.url)),
        Body::Audio(audio) => {
            // An earlier answer's sound comes back by its id.
            let sound = audio.data.as_ref().or(audio.url.as_ref()).or(chunk.id.as_ref()).or(audio.transcript.as_ref());
            Some(other("audio", sound.map_or("", String::as_str)))
        }
        Body::File(file) => Some(other("file", file.data.as_ref().or(file.url.as_ref()).map_or("", String::as_str))),
        // Where Amazon's caches may end: clients move it to the newest message.
        Body::Opaque { kind, .. } | Body::Unknown { kind } if kind == "cachePoint" => None,
        Body::Opaque { kind, json, .. } => Some(opaque(kind, json.as_str())).filter(|meaning| !is_of_thinking(meaning)),
        Body::Unknown { kind } => Some(other("unknown", kind)),
    }
}

/// What the ids of thinking begin with, of OpenAI.
const THINKING: &str = "rs_";

/// Whether it names thinking by its id, which is compared no more than the thinking itself.
fn is_of_thinking(meaning: &Meaning<'_>) -> bool {
    matches!(meaning, Meaning::Reference(id) if id.starts_with(THINKING))
}

/// The item that a chunk names by its id.
pub(super) fn reference(chunk: &Chunk) -> Option<String> {
    let Body::Opaque { kind, json, .. } = &chunk.body else { return None };
    match opaque(kind, json.as_str()) {
        Meaning::Reference(id) => Some(id),
        _ => None,
    }
}

/// What a chunk of the model means.
pub(super) fn of_model(chunk: &Chunk) -> Option<Meaning<'_>> {
    if let (Body::Audio(_), Some(id)) = (&chunk.body, &chunk.id) {
        // Clients send the id alone.
        return Some(other("audio", id));
    }
    match of(chunk)? {
        Meaning::Text(Cow::Borrowed(text)) => {
            Some(words(text)).filter(|words| !words.is_empty()).map(|words| Meaning::Text(words.into()))
        }
        meaning => Some(meaning),
    }
}

/// A text of the model without the thinking at its beginning. Servers of models leave it there that do not know the model's form
/// (`<think>` of DeepSeek R1, Qwen and others); clients take it out before they send it again, as the models' cards ask.
pub(super) fn words(text: &str) -> &str {
    let Some(thought) = text.trim_ascii_start().strip_prefix("<think>") else { return text };
    thought.split_once("</think>").map_or("", |(_, words)| words.trim_ascii_start())
}

/// Whether nobody gave a call its id: it goes by its name then, and by its number among those of the name.
pub(super) fn is_made_up(id: &str, name: &str) -> bool {
    let number = id.strip_prefix(name).map(|rest| rest.strip_prefix('_').unwrap_or(rest));
    id.is_empty() || number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Characters of an id that no other call has by chance.
const RANDOM: usize = 8;

/// Whether no other call has the id of this one, but where somebody copied it: `toolu_01A09q90qw90`, not `call_0` or
/// `functions.NAME:0`.
pub(super) fn is_random(id: &str, name: &str) -> bool {
    let own = if name.is_empty() { id.to_owned() } else { id.replace(name, " ") };
    let parts = own.split(|c: char| !c.is_ascii_alphanumeric());
    let is_word = |part: &&str| {
        let has = |of: fn(&u8) -> bool| part.as_bytes().iter().any(of);
        !(has(u8::is_ascii_digit) || has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase))
    };
    parts.filter(|part| !is_word(part)).map(str::len).sum::<usize>() >= RANDOM
}

/// What of the model's words is no other answer's by chance: the id of a call, or so many bytes. `OK` may be anybody's answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// Of the model's texts.
    bytes: usize,
    pub(super) is_enough: bool,
}

/// So many bytes are no other answer's by chance.
const EVIDENCE: usize = 64;

impl Evidence {
    pub(super) fn of<'c>(said: impl IntoIterator<Item = &'c Chunk>) -> Self {
        let mut evidence = Self::default();
        evidence.take(said);
        evidence
    }

    pub(super) fn take<'c>(&mut self, said: impl IntoIterator<Item = &'c Chunk>) {
        for chunk in said {
            match &chunk.body {
                Body::Text { text, .. } => self.bytes += text.len(),
                Body::ToolCall { id, name, .. } => self.is_enough |= is_random(id, name),
                _ => {}
            }
        }
        self.is_enough |= self.bytes >= EVIDENCE;
    }
}

fn other(kind: &str, what: &str) -> Meaning<'static> {
    Meaning::Other([kind.as_bytes(), &[0], what.as_bytes()].concat())
}

/// A block that this crate has no chunk for.
fn opaque<'a>(kind: &'a str, json: &str) -> Meaning<'a> {
    let mut value: Value = serde_json::from_str(json).unwrap_or(Value::Null);
    let id = value.get("id").and_then(Value::as_str).map(str::to_owned);
    match id {
        Some(id) if kind == "item_reference" => Meaning::Reference(id),
        id => {
            if let Some(fields) = value.as_object_mut() {
                fields.retain(|name, value| !["id", "status"].contains(&name.as_str()) && !value.is_null());
            }
            let mut content = Vec::new();
            write(&value, &mut content);
            Meaning::Item { id, content, kind }
        }
    }
}

fn output_bytes(output: &Output) -> Vec<u8> {
    let mut bytes = Vec::new();
    match output {
        Output::Text(text) => bytes.extend_from_slice(text.as_bytes()),
        Output::Parts(parts) => {
            for part in parts {
                match &part.body {
                    PartBody::Text { text } => bytes.extend_from_slice(text.as_bytes()),
                    PartBody::Image(image) => framed(&mut bytes, b'i', image.url.as_bytes()),
                    PartBody::Audio(audio) => {
                        let sound = audio.data.as_ref().or(audio.url.as_ref());
                        framed(&mut bytes, b'a', sound.map_or(&[][..], |sound| sound.as_bytes()));
                    }
                    PartBody::File(file) => {
                        let data = file.data.as_ref().or(file.url.as_ref());
                        framed(&mut bytes, b'f', data.map_or(&[][..], |data| data.as_bytes()));
                    }
                    PartBody::Json { json } => framed(&mut bytes, b'j', &canonical(json.as_str())),
                    PartBody::Unknown { kind } if kind == "cachePoint" => {}
                    PartBody::Unknown { kind } => framed(&mut bytes, b'u', kind.as_bytes()),
                }
            }
        }
    }
    bytes
}

/// A byte that no text has, so that what follows is no text.
const MARK: u8 = 0xff;

fn framed(bytes: &mut Vec<u8>, kind: u8, what: &[u8]) {
    bytes.extend_from_slice(&[MARK, kind]);
    bytes.extend_from_slice(&(what.len() as u64).to_be_bytes());
    bytes.extend_from_slice(what);
}

/// Whether canonical arguments are no JSON: the answer was cut off within them.
pub(super) fn is_broken(canonical: &[u8]) -> bool {
    canonical.starts_with(&[MARK, b't'])
}

/// The arguments of a call as a JSON value, whatever they are written like: numbers are doubles, as JavaScript has them, of two
/// fields with one name the last counts, and none are an empty object. What is no JSON is compared as text.
pub(super) fn canonical(arguments: &str) -> Vec<u8> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    let mut bytes = Vec::with_capacity(text.len());
    match serde_json::from_str::<Value>(text) {
        Ok(value) => write(&value, &mut bytes),
        Err(_) => framed(&mut bytes, b't', text.as_bytes()),
    }
    bytes
}

/// The parser bounds how deep values are nested.
fn write(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Null => bytes.push(b'n'),
        Value::Bool(is) => bytes.push(if *is { b'y' } else { b'z' }),
        Value::Number(number) => {
            // Plus zero makes one number of the two zeros.
            framed(bytes, b'd', &(number.as_f64().unwrap_or_default() + 0.0).to_bits().to_be_bytes());
        }
        Value::String(text) => framed(bytes, b's', text.as_bytes()),
        Value::Array(items) => {
            bytes.push(b'[');
            items.iter().for_each(|item| write(item, bytes));
            bytes.push(b']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().filter(|(name, _)| *name != "cache_control").collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            bytes.push(b'{');
            for (name, value) in fields {
                framed(bytes, b'k', name.as_bytes());
                write(value, bytes);
            }
            bytes.push(b'}');
        }
    }
}

/// A digest with an owner's key.
pub(super) type Digest = [u8; 16];

/// The key of an owner's digests: who has a digest can neither guess what it is of, nor compare it with another owner's.
#[derive(Clone)]
pub(super) struct Key(Hmac<Sha256>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    pub(super) fn new(secret: &[u8; 32]) -> Self {
        // A key of any length is taken: there is no error to handle.
        let keyed = Hmac::new_from_slice(secret).unwrap_or_else(|_| Hmac::new(&Default::default()));
        Self(keyed)
    }

    /// The digest of parts, each of which keeps its ends.
    pub(super) fn digest<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        first_half(mac)
    }

    pub(super) fn running(&self) -> Running {
        Running { mac: self.0.clone(), role: None, is_in_text: false, blank: Vec::new() }
    }
}

fn first_half(mac: Hmac<Sha256>) -> Digest {
    let whole = mac.finalize().into_bytes();
    let mut half = Digest::default();
    half.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
    half
}

/// A digest of all that was said so far.
#[derive(Clone)]
pub(super) struct Running {
    mac: Hmac<Sha256>,
    role: Option<Role>,
    /// Whether a text of the model has begun.
    is_in_text: bool,
    /// White space that counts only if more of the same text comes.
    blank: Vec<u8>,
}

impl Running {
    /// What was said up to here.
    pub(super) fn digest(&self) -> Digest {
        first_half(self.mac.clone())
    }

    /// Takes what somebody says; `position` is that of a result's call among the calls before it.
    pub(super) fn say(&mut self, role: Role, meaning: &Meaning<'_>, position: Option<usize>) {
        let role = if role == Role::Tool { Role::User } else { role };
        if self.role != Some(role) && !matches!(meaning, Meaning::Result { .. }) {
            self.mark(b'o', &[role.as_str().as_bytes()]);
            self.role = Some(role);
        }
        match meaning {
            Meaning::Text(text) if role == Role::Assistant => {
                let text = if self.is_in_text { text } else { text.trim_ascii_start() };
                let (said, blank) = text.as_bytes().split_at(text.trim_ascii_end().len());
                if !said.is_empty() {
                    self.mac.update(&std::mem::take(&mut self.blank));
                    self.mac.update(said);
                    self.is_in_text = true;
                }
                self.blank.extend_from_slice(blank);
            }
            Meaning::Text(text) => self.mac.update(text.as_bytes()),
            Meaning::Call { name, arguments, .. } => self.mark(b'c', &[name.as_bytes(), arguments]),
            Meaning::Result { failed, output, name, .. } => {
                let at = position.map_or(u64::MAX, |at| at as u64).to_be_bytes();
                // A result that answers no call has only its name.
                let name = name.filter(|_| position.is_none()).unwrap_or_default();
                self.mark(b'r', &[&at, name.as_bytes(), &[u8::from(*failed)], output]);
                self.role = None;
            }
            Meaning::Reference(id) => self.mark(b'f', &[id.as_bytes()]),
            Meaning::Item { id, content, kind } => {
                let what = id.as_ref().map_or(content.as_slice(), |id| id.as_bytes());
                self.mark(b'x', &[&[kind.as_bytes(), &[0], what].concat()]);
            }
            Meaning::Other(bytes) => self.mark(b'x', &[bytes]),
        }
    }

    fn mark(&mut self, kind: u8, parts: &[&[u8]]) {
        self.blank.clear();
        self.is_in_text = false;
        self.mac.update(&[MARK, kind]);
        for part in parts {
            self.mac.update(&(part.len() as u64).to_be_bytes());
            self.mac.update(part);
        }
    }
}

/// What messages say, by roles, whatever their parts are.
pub(super) fn said<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Vec<(Role, Meaning<'m>)> {
    let mut all: Vec<(Role, Meaning<'m>)> = Vec::new();
    let messages = messages.into_iter().flat_map(|message| message.chunks.iter().map(|chunk| (message.role, chunk)));
    for (role, meaning) in messages.filter_map(|(role, chunk)| Some((role, of(chunk)?))) {
        match (all.last_mut(), meaning) {
            (Some((by, Meaning::Text(before))), Meaning::Text(more)) if *by == role => before.to_mut().push_str(&more),
            (_, meaning) => all.push((role, meaning)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_thinks_in_its_text_is_no_part_of_its_words() {
        let table = [
            ("<think>\nhm\n</think>\n\nfour", "four"),
            ("\n<think></think>four", "four"),
            ("<think>it was cut", ""),
            ("say <think>", "say <think>"),
            ("</think> four", "</think> four"),
        ];
        for (text, wanted) in table {
            assert_eq!(words(text), wanted);
        }
    }

    #[test]
    fn where_a_cache_may_end_is_compared_with_nothing() {
        let json = crate::model::Json::new(r#"{"cachePoint":{"type":"default"}}"#).unwrap();
        let point =
            |kind: &str| Chunk::from(Body::Opaque { provider: "p".into(), kind: kind.into(), json: json.clone() });
        assert!(of(&point("cachePoint")).is_none() && of(&point("guardContent")).is_some());
    }

    #[test]
    fn white_space_around_a_text_of_the_model_does_not_count() {
        let digest = |texts: &[&str]| {
            let mut running = Key::new(&[1; 32]).running();
            texts.iter().for_each(|text| running.say(Role::Assistant, &Meaning::Text((*text).into()), None));
            running.digest()
        };
        assert_eq!(digest(&["\n\n", " a", " b ", "\n"]), digest(&["a b"]));
        assert_ne!(digest(&["a", "b"]), digest(&["a", " b"]));
    }

    #[test]
    fn numbers_and_names_make_no_id_random() {
        let random =
            ["toolu_01A09q90qw90lq917835lq9", "call_9dpHVzDwvQpYZ2z1", "D681PevKs", "chatcmpl-tool-3f2b9c0a7d1e4f"];
        let counted = ["call_0", "functions.w2:0", "0", "call_w2_1", "get_weather:12", ""];
        assert!(random.iter().all(|id| is_random(id, "w2")));
        assert_eq!(counted.map(|id| is_random(id, "w2")), [false; 6]);
    }

    #[test]
    fn arguments_are_values() {
        let same: [(&str, &str); 8] = [
            (r#"{ "a":1, "b" : "\u00e9\/" }"#, r#"{"a":1.0,"b":"é/"}"#),
            (r#"{"b":2,"a":1}"#, r#"{"a":1,"b":2}"#),
            ("", "{}"),
            (" ", "{ }"),
            (r#"{"n":9223372036854775807}"#, r#"{"n":9223372036854775808}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            ("[0.0]", "[-0]"),
            ("{bad", "{bad"),
        ];
        for (a, b) in same {
            assert_eq!(canonical(a), canonical(b), "{a} {b}");
        }
        let other =
            [(r#"{"a":1}"#, r#"{"a":"1"}"#), ("[1,2]", "[12]"), ("{bad", "{bad }"), (r#"["a","b"]"#, r#"["ab"]"#)];
        for (a, b) in other {
            assert_ne!(canonical(a), canonical(b), "{a} {b}");
        }
    }
}
