//! Requests that real programs sent, in their order, each with the answer that the next request echoes.
//!
//! `tests/fixtures/gateway/traffic.jsonl.gz` has them: 44 runs of seven programs. Long texts are cut; equal ones stay equal.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use serde_json::{Value, json};

use super::answers::Wire;
use super::{Passed, Recorder, Reply, said};

/// What a person draws of each run: a letter for each call, which names its conversation. `*`: the first call of a conversation. `<`: the
/// conversation leaves another one there. `!`: the call is asked again. `~`: it rewrites what came before.
const DRAWN: &[(&str, &str)] = &[
    ("agent", "A* B* C* B C B C A"),
    ("ai", "A* A A A B* B B B C* C C C C"),
    ("cut-16-1", "A* A! A"),
    ("cut-16-9", "A* A! A"),
    ("cut-24-1", "A* A! A"),
    ("cut-3-1", "A* A! A"),
    ("cut-9-1", "A*"),
    ("cuteof-16-1", "A*"),
    ("cuteof-24-1", "A*"),
    ("cx2", "A* A B* B"),
    ("cxb", "A* A A A"),
    ("cxe429-0", "A* A! A! A"),
    ("cxe500-0", "A* A! A! A"),
    ("cxe503-0", "A* A! A"),
    ("cxfailed-0", "A*"),
    ("cxo", "A* B< B!"),
    ("cxo2", "A* B< C* C C C"),
    ("cxw", "A* A"),
    ("cxws", "A* A"),
    ("cxz", "A* A"),
    ("dcuteof-24-1", "A* A A"),
    ("dcuteof-28-1", "A* A A A"),
    ("dcuteof-4-1", "A* A! A A A"),
    ("dcuteof-9-1", "A* A~ A"),
    ("deverr-24-1", "A* A A"),
    ("deverr-9-1", "A* A~ A"),
    ("e400", "A*"),
    ("e429", "A* A! A! A"),
    ("e500", "A* A! A! A"),
    ("e529", "A* A! A! A"),
    ("everr-0-1", "A* A! A"),
    ("everr-16-1", "A*"),
    ("gm", "A* B* B C* B B"),
    ("occ", "A* A! A"),
    ("oce", "A* A! A"),
    ("pycut", "A* B* C* D* E* E! E!"),
    ("pye500", "A* B* C* C! C! D* E*"),
    ("res", "A* A A A B< B B~ B A A"),
    ("sdk5", "A* A! A!"),
    ("sdke429", "A* B* C* C! C! D*"),
    ("sdke500", "A* B* C* C! C! D*"),
    ("think", "A* A A A A"),
    ("tui", "A* B* B B B C< C"),
];

/// A request of a program.
struct Asked {
    wire: Wire,
    path: String,
    headers: Vec<(String, String)>,
    body: Value,
    items: Vec<Value>,
}

impl Asked {
    fn read(row: &Value) -> Option<Self> {
        let path = row["path"].as_str()?.to_owned();
        let wire = Wire::of(&path).filter(|_| row["method"] == "POST")?;
        let header = |pair: &Value| (pair[0].as_str().unwrap().to_owned(), pair[1].as_str().unwrap().to_owned());
        let headers: Vec<_> = row["headers"].as_array().unwrap().iter().map(header).collect();
        let skipped = ["content-type", "content-length", "host", "connection"];
        let is_passed = |(name, _): &(String, String)| !skipped.contains(&name.to_lowercase().as_str());
        let mut headers: Vec<_> = headers.into_iter().filter(is_passed).collect();
        let body = row["body"].clone();
        let list = ["messages", "input", "contents"].into_iter().find_map(|name| body.get(name)).unwrap();
        let items = list.as_array().cloned().unwrap_or_else(|| vec![json!({ "role": "user", "content": list })]);
        // This header is cut, too: of its JSON one field counts.
        let last = items.last().unwrap();
        let text = last["content"][0]["text"].as_str().unwrap_or_default();
        let compacts = last["type"] == "compaction_trigger" || text.starts_with("You are performing a CONTEXT");
        for (_, value) in headers.iter_mut().filter(|(name, _)| name == "x-codex-turn-metadata") {
            *value = json!({ "request_kind": if compacts { "compaction" } else { "turn" } }).to_string();
        }
        Some(Self { wire, path, headers, body, items })
    }

    /// Session and agent, as the program names them.
    fn scope(&self) -> Vec<&str> {
        let named = ["x-claude-code-session-id", "x-claude-code-agent-id", "session-id", "thread-id", "x-session-id"];
        let is_named = |name: &str| named.contains(&name.to_lowercase().as_str());
        self.headers.iter().filter(|(name, _)| is_named(name)).map(|(_, value)| value.as_str()).collect()
    }

    fn is_streamed(&self) -> bool {
        self.body["stream"] == true || self.path.contains("streamGenerateContent")
    }

    fn is_models(&self, item: &Value) -> bool {
        match item["role"].as_str() {
            Some(role) => role == "assistant" || role == "model",
            None => !item["type"].as_str().unwrap().ends_with("_output") && item["type"] != "compaction_trigger",
        }
    }
}

/// An item without what changes from one request to the next.
fn normal(wire: Wire, item: &Value) -> Value {
    let mut item = item.clone();
    if let Value::String(text) = &item["content"] {
        item["content"] = json!([{ "type": "text", "text": text }]);
    }
    let parts = if wire == Wire::Gemini { "parts" } else { "content" };
    for part in item[parts].as_array_mut().into_iter().flatten() {
        let part = part.as_object_mut().unwrap();
        part.remove("cache_control");
        part.remove("thoughtSignature");
        for name in ["functionCall", "functionResponse"] {
            if let Some(call) = part.get_mut(name).and_then(Value::as_object_mut) {
                call.remove("id");
            }
        }
        if let Some(text) = part.get("text").and_then(Value::as_str).map(str::trim_end) {
            let text = text.to_owned();
            part.insert("text".to_owned(), json!(text));
        }
    }
    item
}

/// What the model said to a request: the run that the first request has behind it that begins with it.
fn echoed(asked: &[Asked], at: usize) -> Option<Vec<Value>> {
    let one = &asked[at];
    let normal_of = |asked: &Asked, count: usize| -> Vec<Value> {
        asked.items.iter().take(count).map(|item| normal(asked.wire, item)).collect()
    };
    let count = one.items.len();
    let begins = |later: &&Asked| {
        let is_longer = later.items.get(count).is_some_and(|next| later.is_models(next));
        is_longer
            && later.wire == one.wire
            && later.scope() == one.scope()
            && normal_of(later, count) == normal_of(one, count)
    };
    let later = asked[at + 1..].iter().find(begins)?;
    let run = later.items[count..].iter().take_while(|item| later.is_models(item)).cloned();
    Some(run.flat_map(|item| said_by(later.wire, item)).collect())
}

/// An item of the model as its provider gave it.
fn said_by(wire: Wire, mut item: Value) -> Vec<Value> {
    match wire {
        Wire::Anthropic => {
            let text = |text: &str| vec![json!({ "type": "text", "text": text })];
            let mut blocks = item["content"].as_str().map_or_else(|| item["content"].as_array().unwrap().clone(), text);
            blocks.iter_mut().for_each(|block| _ = block.as_object_mut().unwrap().remove("cache_control"));
            blocks
        }
        Wire::Chat => vec![item],
        Wire::Responses => {
            let call = item["call_id"].as_str().map(|id| format!("fc_{id}"));
            let object = item.as_object_mut().unwrap();
            object.remove("internal_chat_message_metadata_passthrough");
            let id = object.get("id").and_then(Value::as_str).map(str::to_owned);
            match (object["type"].as_str().unwrap(), id) {
                ("item_reference", Some(id)) if id.starts_with("rs_") => {
                    vec![json!({ "type": "reasoning", "id": id, "summary": [], "encrypted_content": "ENC" })]
                }
                ("item_reference", Some(id)) => {
                    let text = format!("The text of {id}. ");
                    vec![json!({ "type": "message", "id": id, "role": "assistant", "status": "completed",
                        "content": [{ "type": "output_text", "text": text, "annotations": [] }] })]
                }
                ("reasoning", _) => {
                    object.remove("content");
                    vec![item]
                }
                ("function_call", None) => {
                    object.insert("id".to_owned(), json!(call));
                    vec![item]
                }
                _ => vec![item],
            }
        }
        Wire::Gemini => {
            let mut parts = item["parts"].as_array().unwrap().clone();
            for part in &mut parts {
                if let Some(call) = part.get_mut("functionCall").and_then(Value::as_object_mut) {
                    call.remove("id");
                }
            }
            parts
        }
    }
}

/// What the model was about to say in a run that was cut: thinking, a text, a call.
fn unfinished(number: usize) -> Vec<Value> {
    vec![
        json!({ "type": "thinking", "thinking": "Let me think. ", "signature": format!("cut{number}") }),
        json!({ "type": "text", "text": "Another first part of a longer answer. And more of it." }),
        json!({ "type": "tool_use", "id": format!("toolu_cut_{number}"), "name": "Bash", "input": { "command": "no" } }),
    ]
}

/// The answers of a run.
struct Script<'a> {
    name: &'a str,
    asked: &'a [Asked],
}

impl Script<'_> {
    /// Whether the program asks the same again: it got no answer.
    fn is_repeated(&self, at: usize) -> bool {
        let one = &self.asked[at];
        let is_sdk = ["py", "sdk"].iter().any(|name| self.name.starts_with(name));
        let same = |later: &Asked| match is_sdk {
            true => later.path == one.path && later.body == one.body,
            false => later.scope() == one.scope() && later.items == one.items && later.path == one.path,
        };
        self.asked[at + 1..].iter().any(same) && !self.name.starts_with("cxc")
    }

    /// The number in a run's name: a status, or the event after which it is cut.
    fn number(&self) -> Option<usize> {
        let digits =
            self.name.split('-').find_map(|part| part.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok());
        digits.filter(|_| !self.name.starts_with("pycut"))
    }

    /// What the model says to a request, the upstream's answer, and whether it is a whole one.
    fn answer(&self, at: usize, number: usize) -> (Vec<Value>, Reply, bool) {
        let one = &self.asked[at];
        let echo = echoed(self.asked, at);
        let is_compaction = one.items.last().is_some_and(|item| item["type"] == "compaction_trigger");
        let compaction = || vec![json!({ "type": "compaction", "id": "cmp_2", "encrypted_content": "COMPACTED==" })];
        let last = || if is_compaction { compaction() } else { one.wire.text("All done now. ", number) };
        let said = echo.clone().unwrap_or_else(last);
        let whole = |said: &[Value]| match one.is_streamed() {
            true => Reply::of_events(&one.wire.events(said, number)),
            false => Reply::json(&one.wire.whole(said, number)),
        };
        let count = self.number();
        let name = self.name.split('-').next().unwrap();
        if self.is_repeated(at) {
            let reply = match name {
                "cxo" | "occ" | "pycut" => Reply::cut_after(&one.wire.events(&said, number), 3),
                "cut" | "dcuteof" => Reply::cut_after(&one.wire.events(&unfinished(number), number), count.unwrap()),
                "everr" => Reply::stream().then(&one.wire.error_event()).end(),
                "oce" => Reply::error(429, &json!({ "error": { "message": "slow down", "type": "rate_limit" } })),
                _ => {
                    let status = count.and_then(|count| u16::try_from(count).ok()).filter(|status| *status >= 400);
                    Reply::error(status.unwrap_or(529), &json!({ "error": { "message": "no", "type": "overloaded" } }))
                }
            };
            return (Vec::new(), reply, false);
        }
        if name == "cxfailed" {
            return (Vec::new(), Reply::stream().then(&one.wire.error_event()).end(), false);
        }
        if name == "e400" {
            return (Vec::new(), Reply::error(400, &json!({ "error": { "message": "no", "type": "invalid" } })), false);
        }
        // The first answer of a run that was cut, and was not asked again.
        if let (0, "cut" | "cuteof" | "dcuteof" | "everr" | "deverr", Some(count)) = (at, name, count) {
            let mut blocks = unfinished(number);
            for (block, kept) in blocks.iter_mut().zip(echo.unwrap_or_default()) {
                *block = kept;
            }
            let mut events = one.wire.events(&blocks, number);
            events.truncate(count);
            if name.ends_with("everr") {
                events.push(one.wire.error_event());
            }
            let reply = match name {
                "cut" => Reply::cut_after(&events, events.len()),
                _ => Reply::of_events(&events),
            };
            return (Vec::new(), reply, false);
        }
        let reply = whole(&said);
        (said, reply, true)
    }
}

fn runs() -> BTreeMap<String, Vec<Asked>> {
    let file = std::fs::File::open("tests/fixtures/gateway/traffic.jsonl.gz").unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let mut runs = BTreeMap::<String, Vec<Asked>>::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let run = runs.entry(row["scenario"].as_str().unwrap().to_owned()).or_default();
        run.extend(Asked::read(&row));
    }
    runs
}

#[test]
fn requests_of_real_programs_are_told_apart_as_a_person_would() {
    replay(&[&Recorder::open()]);
}

/// The same on PostgreSQL, where each request goes through another server than the one before it.
#[cfg(all(feature = "postgres", unix))]
#[test]
fn several_servers_of_a_store_tell_them_apart_as_one_does() {
    match crate::common::postgres::server() {
        Err(reason) => println!("skipped: {reason}"),
        Ok(server) => {
            let url = server.url();
            let first = Recorder::with(&url, "", &[]);
            replay(&[&first, &first.beside(&url)]);
        }
    }
}

/// The servers have all runs, one after the other: what one program says is never taken for another's.
fn replay(servers: &[&Recorder]) {
    let runs = runs();
    let (mut number, mut wrong) = (0, Vec::new());
    let mut requests = [0; 3];
    let mut seen = HashMap::<String, String>::new();
    for (name, asked) in &runs {
        let script = Script { name, asked };
        let mut letters = Vec::<String>::new();
        let mut drawn = Vec::new();
        let mut last = BTreeMap::<usize, (usize, Option<Vec<Value>>)>::new();
        let mut rewritten = Vec::new();
        let mut given = HashMap::<String, Value>::new();
        for (at, one) in asked.iter().enumerate() {
            number += 1;
            let recorder = servers[number % servers.len()];
            let (said, reply, is_whole) = script.answer(at, number);
            given.extend(said.iter().filter_map(|item| Some((item["id"].as_str()?.to_owned(), item.clone()))));
            let headers: Vec<_> = one.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let Passed { exchange, .. } = recorder.ask(&one.path, &headers, &one.body, reply);
            let settled = recorder.settled(&exchange);
            let conversation = settled["conversation"].as_str().unwrap_or_else(|| panic!("{name} {at}: {settled}"));
            let letter = letters.iter().position(|known| known == conversation).unwrap_or_else(|| {
                letters.push(conversation.to_owned());
                letters.len() - 1
            });
            if let Some(other) = seen.insert(conversation.to_owned(), name.clone()).filter(|other| other != name) {
                wrong.push(format!("{name} {at}: it is in a conversation of {other}"));
            }
            let is_rewritten = about(recorder, &settled).is_some_and(|about| about.get("rewritten").is_some());
            if is_rewritten {
                rewritten.push(letter);
            }
            let mark = match settled["how"].as_str().unwrap() {
                "new" => "*",
                "forked" => "<",
                "attempt" => "!",
                _ if is_rewritten => "~",
                _ => "",
            };
            drawn.push(format!("{}{mark}", char::from(b'A' + u8::try_from(letter.min(25)).unwrap())));
            let state = if is_whole { "complete" } else { "not complete" };
            if (settled["state"] == "complete") != is_whole {
                wrong.push(format!("{name} {at}: {settled} is not {state}"));
            }
            if settled["message"].is_u64() {
                let (bytes, replaced) = recorder.request(&exchange);
                let was = one.body.to_string();
                if bytes == was.as_bytes() {
                    requests[0] += 1;
                } else if replaced.as_deref().is_some_and(|fields| differs_only_in(&bytes, &was, fields)) {
                    requests[1] += 1;
                } else {
                    wrong.push(format!("{name} {at}: its request is another one"));
                }
            } else {
                requests[2] += 1;
            }
            last.insert(letter, (at, is_whole.then_some(said)));
        }
        let drawn = drawn.join(" ");
        match DRAWN.iter().find(|(known, _)| known == name) {
            Some((_, wanted)) if *wanted == drawn => {}
            Some((_, wanted)) => wrong.push(format!("{name}: drawn  {drawn}\n{name}: wanted {wanted}")),
            // A compaction each time, and a new history after it.
            None if name == "cxc" => {
                let is_right =
                    drawn.split(' ').enumerate().all(|(at, mark)| mark.ends_with(if at % 2 == 0 { '*' } else { '<' }));
                if !is_right {
                    wrong.push(format!("{name}: {drawn}"));
                }
            }
            None => wrong.push(format!("{name}: {drawn} is not in the table")),
        }
        for (letter, (at, answer)) in last.into_iter().filter(|(letter, _)| !rewritten.contains(letter)) {
            let wire = asked[at].wire;
            let resolve = |item: &Value| match item["type"].as_str() {
                Some("item_reference") => given[item["id"].as_str().unwrap()].clone(),
                _ => item.clone(),
            };
            let items: Vec<_> = asked[at].items.iter().map(resolve).collect();
            let mut wanted = said::by_items(wire, &items);
            let stored = said::by_messages(&servers[0].messages(&letters[letter]));
            match answer {
                Some(answer) => wanted.extend(said::by_answer(wire, &answer)),
                None if stored.len() > wanted.len() => continue,
                None => {}
            }
            if stored != wanted {
                let differs = stored.iter().zip(&wanted).position(|(stored, wanted)| stored != wanted);
                let at = differs.unwrap_or(stored.len().min(wanted.len()));
                let (stored, wanted) = (stored.get(at..), wanted.get(at..));
                wrong.push(format!("{name}, {letter}: line {at} is\n   {stored:.300?}\nnot\n   {wanted:.300?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(runs.len(), DRAWN.len() + 1);
    // As they came; with ids of devices replaced; without an answer.
    assert_eq!(requests, [43, 146, 23]);
}

/// Whether a request is another one in these fields alone, and in nothing else by a byte.
fn differs_only_in(bytes: &[u8], was: &str, fields: &str) -> bool {
    let is: Value = serde_json::from_slice(bytes).unwrap();
    let mut mended: Value = serde_json::from_str(was).unwrap();
    for field in fields.split(", ") {
        mended[field] = is[field].clone();
    }
    mended.to_string().as_bytes() == bytes
}

/// What the answer's message says of its request.
fn about(recorder: &Recorder, settled: &Value) -> Option<Value> {
    let (conversation, message) = (settled["conversation"].as_str()?, settled["message"].as_u64()?);
    let path = format!("/api/v1/conversations/{conversation}/messages/{message}");
    let answer = recorder.client().get(&path);
    // A hidden one is not shown.
    (answer.status == 200).then(|| answer.json()["convo"].clone())
}
