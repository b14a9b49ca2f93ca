//! Whatever a repair writes again: it says what was given once, wherever that went.

use crate::common::hostile::log;
use crate::common::{cases, config, prompts, stored};
use conversation_store::provider::{PromptOptions, Target, parse, render, repair};
use conversation_store::{Conversation, Error};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

/// What happens to the list of a request before somebody repairs it. The numbers are positions, round and round.
#[derive(Clone, Debug)]
enum Change {
    Swap(usize, usize),
    Remove(usize),
    Repeat(usize, usize),
    /// A part of one item goes to the end of another.
    Hand(usize, usize, usize),
    /// Somebody puts in a text, or a picture.
    Say(usize, &'static str),
    Show(usize, &'static str),
    /// A picture alone.
    Picture(usize, &'static str),
    /// A field of an item is not there any more, or nothing.
    Forget(usize, usize),
    Empty(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    const ROLES: &[&str] = &["system", "user", "assistant", "model"];
    let at = || 0_usize..24;
    let role = || proptest::sample::select(ROLES);
    prop_oneof![
        3 => (at(), at()).prop_map(|(one, other)| Change::Swap(one, other)),
        2 => at().prop_map(Change::Remove),
        1 => (at(), at()).prop_map(|(one, to)| Change::Repeat(one, to)),
        3 => (at(), at(), at()).prop_map(|(from, part, to)| Change::Hand(from, part, to)),
        3 => (at(), role()).prop_map(|(to, role)| Change::Say(to, role)),
        3 => (at(), role()).prop_map(|(to, role)| Change::Show(to, role)),
        1 => (at(), role()).prop_map(|(to, role)| Change::Picture(to, role)),
        1 => (at(), at()).prop_map(|(of, field)| Change::Forget(of, field)),
        1 => (at(), at()).prop_map(|(of, field)| Change::Empty(of, field)),
    ]
}

impl Change {
    /// Of the request's list. What is put in has this number.
    fn make(&self, target: Target, list: &mut Vec<Value>, number: usize) {
        let Some(count) = std::num::NonZero::new(list.len()).map(std::num::NonZero::get) else { return };
        match *self {
            Self::Swap(one, other) => list.swap(one % count, other % count),
            Self::Remove(at) => _ = list.remove(at % count),
            Self::Repeat(at, to) => list.insert(to % count, list[at % count].clone()),
            Self::Hand(from, part, to) => {
                let source = parts(&mut list[from % count]).filter(|parts| !parts.is_empty());
                let Some(part) = source.map(|parts| parts.remove(part % parts.len())) else { return };
                let to = (to..to + count).find(|to| has_parts(&list[to % count]));
                if let Some(parts) = to.and_then(|to| parts(&mut list[to % count])) {
                    parts.push(part);
                }
            }
            Self::Say(to, role) => list.insert(to % count, said(target, role, &format!("Said <{number}>"))),
            Self::Show(to, role) => list.insert(to % count, shown(target, role, number)),
            Self::Picture(to, role) => {
                let mut item = shown(target, role, number);
                parts(&mut item).into_iter().for_each(|parts| _ = parts.remove(0));
                list.insert(to % count, item);
            }
            Self::Forget(of, field) => {
                let Some(fields) = list[of % count].as_object_mut() else { return };
                if let Some(name) = name(fields, field) {
                    fields.remove(&name);
                }
            }
            Self::Empty(of, field) => {
                let Some(fields) = list[of % count].as_object_mut() else { return };
                if let Some(name) = name(fields, field) {
                    fields.insert(name, Value::Null);
                }
            }
        }
    }
}

fn name(fields: &Map<String, Value>, at: usize) -> Option<String> {
    fields.keys().nth(at % fields.len().max(1)).cloned()
}

const PARTS: [&str; 3] = ["content", "parts", "tool_calls"];

fn has_parts(item: &Value) -> bool {
    PARTS.iter().any(|name| item.get(name).is_some_and(Value::is_array))
}

fn parts(item: &mut Value) -> Option<&mut Vec<Value>> {
    let fields = item.as_object_mut()?;
    fields.iter_mut().find(|(name, value)| PARTS.contains(&name.as_str()) && value.is_array())?.1.as_array_mut()
}

fn said(target: Target, role: &str, text: &str) -> Value {
    match target.wire().name {
        "gemini" => json!({"role": role, "parts": [{"text": text}]}),
        "bedrock-converse" => json!({"role": role, "content": [{"text": text}]}),
        _ => json!({"role": role, "content": text}),
    }
}

/// The address or the data of a picture.
fn picture(number: usize) -> [String; 2] {
    [format!("https://x.test/{number}.png"), format!("iVBORw0KGgoAAAA{:05}", number % 100_000)]
}

fn shown(target: Target, role: &str, number: usize) -> Value {
    let [url, bytes] = picture(number);
    let text = format!("Shown <{number}>");
    match target.wire().name {
        "gemini" => {
            let file = json!({"fileData": {"mimeType": "image/png", "fileUri": url}});
            json!({"role": role, "parts": [{"text": text}, file]})
        }
        "bedrock-converse" => {
            let image = json!({"image": {"format": "png", "source": {"bytes": bytes}}});
            json!({"role": role, "content": [{"text": text}, image]})
        }
        "anthropic" => {
            let image = json!({"type": "image", "source": {"type": "url", "url": url}});
            json!({"role": role, "content": [{"type": "text", "text": text}, image]})
        }
        "openai-responses" => {
            let kind = if role == "assistant" { "output_text" } else { "input_text" };
            let image = json!({"type": "input_image", "image_url": url});
            json!({"role": role, "content": [{"type": kind, "text": text}, image]})
        }
        _ => {
            let image = json!({"type": "image_url", "image_url": {"url": url}});
            json!({"role": role, "content": [{"type": "text", "text": text}, image]})
        }
    }
}

/// The marks of a request: each text has one, and each picture that was put in.
fn marks(request: &str, put_in: usize) -> Vec<String> {
    let texts = request.split('<').skip(1).filter_map(|rest| rest.split_once('>'));
    let texts = texts.filter(|(mark, _)| mark.parse::<u32>().is_ok()).map(|(mark, _)| format!("<{mark}>"));
    texts.chain((0..put_in).flat_map(|number| picture(FIRST + number))).collect()
}

/// The number of the first text that is put in; a log's own are lower.
const FIRST: usize = 10_000;

/// The repair writes some messages as they were given, and others as they are rendered. What stands as often in both is as often
/// in what it writes; anything else no more often than in the one, no less often than in the other.
#[test]
fn what_moves_between_messages_is_neither_lost_nor_said_twice() {
    let targets = prompts::targets();
    let broken = (log(9), proptest::collection::vec(change(), 1..5));
    let result = TestRunner::new(config(cases("CONVO_HOSTILE_CASES", 300))).run(&broken, |(messages, changes)| {
        for target in &targets {
            let Some(prompt) = prompts::prompt(*target, &messages, &PromptOptions::new()) else { continue };
            let mut request: Value = serde_json::from_str(prompt.request.get()).unwrap();
            let name = ["messages", "input", "contents"].into_iter().find(|name| request.get(name).is_some()).unwrap();
            let list = request[name].as_array_mut().unwrap();
            (FIRST..).zip(&changes).for_each(|(number, change)| change.make(*target, list, number));
            let given = request.to_string();
            let read = parse(*target, &given).unwrap().messages;
            let whole = match render(*target, &Conversation::new(stored::log(read)), &PromptOptions::new()) {
                Ok(whole) => whole,
                Err(Error::NothingToSend(_)) => continue,
                Err(error) => panic!("{target}: {error}"),
            };
            // It may be of another wire by now.
            let Ok(repaired) = repair(*target, *target, &given, &PromptOptions::new()) else { continue };
            for mark in marks(&given, changes.len()) {
                let count = |request: &str| request.matches(&mark).count();
                let (before, after) = (count(&given), count(whole.request.get()));
                let now = count(repaired.request.get());
                let is_kept = (before.min(after)..=before.max(after)).contains(&now);
                let shown = || format!("\ngiven    {given}\nrendered {}\nwritten  {}", whole.request, repaired.request);
                prop_assert!(is_kept, "{target}: {mark} {now} times, not {before} or {after}{}", shown());
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// A request, or its list, repaired: the list, all of it, and the report.
fn repaired(target: &str, request: Value) -> (Vec<Value>, Value, Vec<String>) {
    let target: Target = target.parse().unwrap();
    let prompt = repair(target, target, &request.to_string(), &PromptOptions::new()).unwrap();
    prompts::assert_accepted(target, &prompt);
    let written: Value = serde_json::from_str(prompt.request.get()).unwrap();
    let named = || ["messages", "input", "contents"].into_iter().find_map(|name| written[name].as_array());
    let list = written.as_array().or_else(named).unwrap().clone();
    (list, written, prompt.report.iter().map(ToString::to_string).collect())
}

fn asked(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    json!({"role": "assistant", "content": "", "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
}

/// The target, the list, and what of it goes elsewhere, or stays alone: how often it is in the end, and at which item first.
#[test]
fn what_a_difference_moves_is_there_once() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let image = json!({"type": "image_url", "image_url": {"url": "https://x.test/a.png"}});
    let answer = |id: &str, content: Value| json!({"role": "tool", "tool_call_id": id, "content": content});
    let shown = json!([{"type": "text", "text": "one"}, image]);
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let call = json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "id": "fc_1"});
    let output = |text: &str| json!({"type": "function_call_output", "call_id": "c1", "output": text});
    let said = |role: &str, text: &str| json!({"role": role, "content": [{"text": text}]});
    let picture = json!({"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}});
    let table = [
        // An image of a tool's output, and one of the assistant's, go to a message of the user.
        (
            "openai-chat",
            json!([user("q"), asked(&["c1", "c2"]), answer("c1", shown), answer("c2", json!("two")),
                {"role": "assistant", "content": "ok"}, user("b")]),
            ("https://x.test/a.png", 4),
        ),
        (
            "openai-chat/vllm",
            json!([user("q"), {"role": "assistant", "content": [{"type": "text", "text": "here"}, image]}, user("b")]),
            ("https://x.test/a.png", 2),
        ),
        (
            "bedrock-converse",
            json!([said("user", "q"), {"role": "assistant", "content": [{"text": "here"}, picture]}, said("user", "b")]),
            ("iVBORw0KGgo=", 2),
        ),
        // What the system says between a call and its result is said after it.
        (
            "openai-chat/mistral",
            json!([user("q"), asked(&["aaaaaaaa1"]), {"role": "system", "content": "RULE"},
                answer("aaaaaaaa1", json!("two")), {"role": "assistant", "content": "ok"}, user("b")]),
            ("RULE", 4),
        ),
        // A result by name comes late, and has an id then.
        (
            "openai-chat",
            json!([user("q"), {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
                user("b"), {"role": "function", "name": "f", "content": "RESULT"}]),
            ("RESULT", 2),
        ),
        // A text goes into the message after the result.
        (
            "anthropic",
            json!([user("q"), {"role": "assistant", "content": [used("t1")]}, {"role": "assistant", "content": "SAID"},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]},
                {"role": "assistant", "content": [used("t2")]}, user("b")]),
            ("SAID", 3),
        ),
        // An output goes to the second call of its id, which gets another one.
        (
            "openai-responses",
            json!([user("q"), call, output("r1"), user("x"), call, user("b"), output("R2")]),
            ("R2", 5),
        ),
    ];
    for (target, list, (mark, wanted)) in table {
        let (list, ..) = repaired(target, list);
        let at: Vec<usize> = (0..list.len()).filter(|at| list[*at].to_string().contains(mark)).collect();
        assert_eq!(at, [wanted], "{target}: {list:#?}");
    }
}

#[test]
fn a_moved_result_is_spelled_as_the_target_takes_it() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let wanted = |content: &str| json!({"role": "tool", "tool_call_id": "c1", "content": content});
    for (result, content) in [
        (json!({"role": "tool", "tool_call_id": "c1", "content": null}), ""),
        (json!({"tool_call_id": "c1", "content": "r"}), "r"),
    ] {
        let (list, ..) = repaired("openai-chat", json!([user("q"), asked(&["c1"]), user("b"), result]));
        assert_eq!(list[2..], [wanted(content), user("b")]);
    }
    // One that is taken as it is stays as it is.
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "r", "seen": 1});
    let (list, ..) = repaired("openai-chat", json!([user("q"), asked(&["c1"]), user("b"), result]));
    assert_eq!(list[2], result);
}

/// A message of the system goes into a field of its own, and with it the text in the place of a picture.
#[test]
fn the_text_in_the_place_of_a_picture_goes_with_its_message() {
    let address = json!({"type": "url", "url": "https://x.test/a.png"});
    let no_data = json!({"type": "base64", "media_type": "image/png", "data": "%%%"});
    for (target, source) in [("anthropic/bedrock", address), ("anthropic", no_data)] {
        let system = json!({"role": "system", "content": [{"type": "image", "source": source}]});
        let list = json!([system, {"role": "user", "content": "q"}]);
        let (list, whole, _) = repaired(target, list);
        assert_eq!(list.len(), 1, "{target}: {whole}");
        assert!(whole["system"].to_string().contains("[image left out: "), "{target}: {whole}");
    }
}

/// An orphan result holds the picture that the model shows later: the result is left out, and the picture is there once.
#[test]
fn a_picture_that_an_orphan_result_holds_too_is_there_once() {
    const ADDRESS: &str = "https://x.test/a.png";
    let picture = json!({"type": "image", "source": {"type": "url", "url": ADDRESS}});
    let orphan = json!({"type": "tool_result", "tool_use_id": "t1", "content": [picture]});
    let user = |content: Value| json!({"role": "user", "content": content});
    let model = |content: Value| json!({"role": "assistant", "content": content});
    let list = json!([
        user(json!("q")),
        model(json!("a")),
        user(json!([orphan, {"type": "text", "text": "b"}])),
        model(json!([picture, {"type": "text", "text": "c"}])),
        user(json!("r"))
    ]);
    let (_, whole, _) = repaired("anthropic", list);
    assert_eq!(whole.to_string().matches(ADDRESS).count(), 1, "{whole}");
}

/// A picture of the model's stays where it is accepted, whatever is left out of other messages.
#[test]
fn what_is_left_out_elsewhere_moves_no_picture() {
    const CANONICAL: &str = "iVBORw0KGgo=";
    const UNPADDED: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk-M9QDwADhgGAWjR9awAAAABJRU5ErkJggg";
    let gemini = |role: &str, part: Value| json!({"role": role, "parts": [part]});
    let shown = |data: &str| gemini("model", json!({"inlineData": {"mimeType": "image/png", "data": data}}));
    let foreign = json!({"fileData": {"mimeType": "application/x-foo", "fileUri": "https://x.test/a.foo"}});
    let repeated = json!({"text": "[image left out: its data is not base64]"});
    let of_gemini = |system: &Value, data| {
        json!([
            gemini("system", system.clone()),
            gemini("user", json!({"text": "q"})),
            shown(data),
            gemini("user", json!({"text": "r"}))
        ])
    };
    let user = |text: &str| json!({"role": "user", "content": text});
    let image = |source: Value| json!({"type": "image", "source": source});
    let address = image(json!({"type": "url", "url": "https://x.test/a.png"}));
    let data = image(json!({"type": "base64", "media_type": "image/png", "data": CANONICAL}));
    let system = json!({"role": "system", "content": [address]});
    let orphan = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": [address]}, {"type": "text", "text": "b"}]});
    let shows = json!({"role": "assistant", "content": [data]});
    for (target, list, text) in [
        ("gemini", of_gemini(&foreign, UNPADDED), "[file left out: "),
        ("gemini", of_gemini(&foreign, CANONICAL), "[file left out: "),
        ("gemini", of_gemini(&repeated, CANONICAL), "[image left out: "),
        ("anthropic/bedrock", json!([system, user("q"), shows, user("r")]), "[image left out: "),
        ("anthropic", json!([user("q"), {"role": "assistant", "content": "a"}, orphan, shows, user("r")]), r#""b""#),
    ] {
        let last = list.as_array().unwrap().len() - 2;
        let (written, whole, _) = repaired(target, list.clone());
        let kept = written.len().saturating_sub(2);
        assert_eq!(written[kept..], list.as_array().unwrap()[last..], "{target}: {whole}");
        assert!(whole.to_string().contains(text), "{target}: {whole}");
    }
}

/// What the server is told not to keep cannot be looked up there. That it is not to keep it, the caller decides.
#[test]
fn what_is_not_stored_is_left_out_and_store_stays() {
    let user = json!({"role": "user", "content": "q"});
    let said = json!({"type": "message", "role": "assistant", "status": "completed", "id": "msg_1",
        "content": [{"type": "output_text", "text": "ok", "annotations": []}]});
    for lost in [
        json!({"type": "reasoning", "id": "rs_1", "summary": []}),
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "T"}]}),
        json!({"type": "item_reference", "id": "rs_1"}),
    ] {
        let request = json!({"model": "gpt-5", "input": [user, lost, said, user], "store": false});
        let (list, request, report) = repaired("openai-responses", request);
        assert_eq!((&list[..], &request["store"]), (&[user.clone(), said.clone(), user.clone()][..], &json!(false)));
        assert!(report.len() == 1 && report[0].contains("input[1]"), "{report:#?}");
        // Where the server keeps it, it stays.
        let request = json!({"model": "gpt-5", "input": [user, lost, said, user]}).to_string();
        let same = repair(Target::OPENAI_RESPONSES, Target::OPENAI_RESPONSES, &request, &PromptOptions::new()).unwrap();
        assert_eq!(same.request.get(), request);
    }
}

/// A tool whose name is refused is declared as its calls name it, and chosen by that name. Without the tool, nothing chooses it.
#[test]
fn a_tool_and_the_choice_of_it_have_one_name() {
    let user = json!([{"role": "user", "content": "q"}]);
    let schema = json!({"type": "object"});
    let contents = json!([{"role": "user", "parts": [{"text": "q"}]}]);
    let table = [
        (
            "openai-chat",
            json!({"messages": user, "tools": [{"type": "function", "function": {"name": "a b"}}],
                "tool_choice": {"type": "function", "function": {"name": "a b"}}}),
        ),
        (
            "openai-responses",
            json!({"input": user, "tools": [{"type": "function", "name": "a b", "parameters": schema}],
                "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "a b"}]}}),
        ),
        (
            "anthropic",
            json!({"max_tokens": 9, "messages": user, "tools": [{"name": "a b", "input_schema": schema}],
                "tool_choice": {"type": "tool", "name": "a b"}}),
        ),
        (
            "gemini",
            json!({"contents": contents, "tools": [{"functionDeclarations": [{"name": "a b"}, {"name": "c d"}]}],
                "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["c d", "a b"]}}}),
        ),
        (
            "bedrock-converse",
            json!({"messages": [{"role": "user", "content": [{"text": "q"}]}], "toolConfig": {
                "tools": [{"toolSpec": {"name": "a b", "inputSchema": {"json": schema}}}],
                "toolChoice": {"tool": {"name": "a b"}}}}),
        ),
    ];
    for (target, mut request) in table {
        request["model"] = json!("m");
        let given = request.to_string();
        let (_, written, report) = repaired(target, request);
        let written = written.to_string();
        assert!(!written.contains("a b") && !written.contains("c d"), "{target}: {written}");
        let name = written.split('"').find(|word| word.starts_with("a_b_")).unwrap();
        assert_eq!(written.matches(name).count(), given.matches("a b").count(), "{target}: {written}");
        assert!(report.iter().all(|line| line.contains("declared as")), "{target}: {report:#?}");
    }
    let nameless = json!({"model": "m", "messages": user, "tools": [{"type": "function", "function": {"name": null}}],
        "tool_choice": "required", "parallel_tool_calls": false});
    let (_, written, report) = repaired("openai-chat", nameless);
    assert_eq!(written, json!({"model": "m", "messages": user}));
    assert_eq!(report.len(), 3, "{report:#?}");
}
