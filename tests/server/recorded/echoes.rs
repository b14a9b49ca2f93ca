//! What clients make of an answer before they send it again, and of what came before it: a row for each, as in `requirements`, with
//! the point that it belongs to.

use serde_json::{Value, json};

use super::answers::Wire;
use super::requirements::{
    CHAT, CLAUDE, CODEX, Case, End, Row, Status, Whole, call, check, item, model, result, session, text, user,
};
use super::{Reply, passed};

/// An id that no other call has.
const ID: &str = "toolu_01A09q90qw90lq917835lq9";

/// An answer that is nobody else's.
fn long(number: usize) -> String {
    format!("Answer {number}, and it is long enough to be nobody else's, whoever it is that asks.")
}

fn called(arguments: Value) -> Value {
    json!({ "role": "assistant", "content": [call(ID, arguments)] })
}

fn given(text: &str) -> Value {
    json!({ "role": "user", "content": [result(ID, text)] })
}

const ROWS: &[Row] = &[
    (4, "another history with the same short answer is another conversation", "A* B* A", |case| {
        case.say("s", &[user("Is it raining in Oslo?")], "yes");
        case.say("s", &[user("Is 2 even?"), model("yes"), user("Is 3 even?")], "no");
        case.say("s", &[user("Is it raining in Oslo?"), model("yes"), user("And in Rome?")], "no");
    }),
    (4, "a longer word begins with no shorter one", "A* B*", |case| {
        case.say("s", &[user("hi")], "high");
        case.say("s", &[user("high or low? 7"), model("high"), user("high or low? 2")], "low");
    }),
    (7, "a client that keeps the newest messages alone goes on", "A* A A A A A A", |case| {
        let mut list = Vec::new();
        for number in 0..7 {
            list.push(user(&format!("question {number}")));
            let window = &list[list.len().saturating_sub(5)..];
            case.ask(CHAT, &[("x-session-id", "s")], window, &[model(&long(number))]);
            list.push(model(&long(number)));
        }
        assert_eq!(case.shown(0).len(), 14, "{:?}", case.shown(0));
    }),
    (7, "so does one that keeps the system's words, too", "A* A A~ A~ A~", |case| {
        let mut list = Vec::new();
        for number in 0..5 {
            list.push(user(&format!("question {number}")));
            let window = &list[list.len().saturating_sub(3)..];
            let system = [json!({ "role": "system", "content": "Be brief." })];
            let headers = [("x-convo-conversation", "chat-7")];
            case.ask(CHAT, &headers, &[&system, window].concat(), &[model(&long(number))]);
            list.push(model(&long(number)));
        }
        assert_eq!(case.shown(0).len(), 11, "{:?}", case.shown(0));
    }),
    (7, "what quotes the end of a conversation once is beside it", "A* A A B*", |case| {
        let mut list = Vec::new();
        for number in 0..3 {
            list.push(user(&format!("question {number}")));
            case.say("s", &list, &long(number));
            list.push(model(&long(number)));
        }
        let mut quoted = list[4..].to_vec();
        quoted.push(user("Give it a title."));
        case.say("s", &quoted, "A title");
    }),
    (7, "a client that keeps what people read alone goes on", "A* A A A A A", |case| {
        let mut list = Vec::new();
        for number in 0..3 {
            list.push(user(&format!("question {number}")));
            case.ask(CLAUDE, &session("s"), &list, &[call(&format!("{ID}{number}"), json!({}))]);
            let mut step = list.clone();
            step.push(json!({ "role": "assistant", "content": [call(&format!("{ID}{number}"), json!({}))] }));
            step.push(json!({ "role": "user", "content": [result(&format!("{ID}{number}"), "found")] }));
            case.say("s", &step, &long(number));
            list.push(model(&long(number)));
        }
        assert_eq!(case.shown(0).len(), 12, "{:?}", case.shown(0));
    }),
    (7, "arguments of old calls may be cleared", "A* A A~", |case| {
        case.ask(CLAUDE, &session("s"), &[user("hi")], &[call(ID, json!({ "path": "a", "content": "much" }))]);
        let mut list = vec![user("hi"), called(json!({ "path": "a", "content": "much" })), given("done")];
        case.say("s", &list, "one");
        list[1] = called(json!({}));
        list.extend([model("one"), user("on")]);
        case.say("s", &list, "two");
    }),
    (8, "thinking in a text is no part of what comes back", "A* A A", |case| {
        let of = [("x-session-id", "s")];
        case.ask(CHAT, &of, &[user("2 + 2?")], &[model("<think>\nIt is four.\n</think>\n\nfour")]);
        case.ask(CHAT, &of, &[user("2 + 2?"), model("four"), user("+ 1?")], &[model("<think>hm</think>five")]);
        let list = [user("2 + 2?"), model("four"), user("+ 1?"), model("five"), user("+ 1?")];
        case.ask(CHAT, &of, &list, &[model("six")]);
    }),
    (8, "white space around a text is no part of it", "A* A A", |case| {
        let of = [("x-session-id", "s")];
        case.ask(CHAT, &of, &[user("2 + 2?")], &[model("\n\n four \n")]);
        case.ask(CHAT, &of, &[user("2 + 2?"), model("four"), user("+ 1?")], &[model(" five")]);
        let list = [user("2 + 2?"), model("four"), user("+ 1?"), model(" five"), user("+ 1?")];
        case.ask(CHAT, &of, &list, &[model("six")]);
    }),
    (8, "the text beside calls may be left out", "A* A A", |case| {
        case.ask(CLAUDE, &session("s"), &[user("hi")], &[text("I look it up."), call(ID, json!({}))]);
        let mut list = vec![user("hi"), called(json!({})), given("done")];
        case.say("s", &list, "one");
        list.extend([model("one"), user("on")]);
        case.say("s", &list, "two");
    }),
    (8, "a sound comes back by its id", "A* A", |case| {
        let audio = json!({ "id": "audio_abc123", "data": "UklGRg==", "transcript": "hello", "expires_at": 9 });
        let said = json!({ "role": "assistant", "content": null, "audio": audio });
        let more = json!({ "modalities": ["text", "audio"], "stream": false });
        let body = Case::body(CHAT, &[user("hi")], &more);
        let reply = Reply::json(&Wire::Chat.whole(&[said], 1));
        let exchange = case.recorder.ask(CHAT, &[("x-session-id", "s")], &body, reply).exchange;
        case.draw(&exchange);
        let echo = json!({ "role": "assistant", "audio": { "id": "audio_abc123" } });
        case.ask(CHAT, &[("x-session-id", "s")], &[user("hi"), echo, user("on")], &[model("yes")]);
    }),
    (9, "a call that was cut off by a limit is left out, or answered with an error", "A* A B* B", |case| {
        for of in ["s", "t"] {
            let mut events = Wire::Anthropic.events(&[call(ID, json!({ "path": "a long path" }))], 1);
            let last = events.iter().rposition(|event| event.contains("input_json_delta")).unwrap();
            events.remove(last);
            let end = events.iter_mut().find(|event| event.contains("message_delta")).unwrap();
            *end = end.replace("\"stop_reason\":\"tool_use\"", "\"stop_reason\":\"max_tokens\"");
            let body = Case::body(CLAUDE, &[user(of)], &json!({}));
            let exchange = case.recorder.ask(CLAUDE, &session(of), &body, Reply::of_events(&events)).exchange;
            case.draw(&exchange);
            let list = match of {
                "s" => vec![user(of), user("go on")],
                _ => vec![user(of), called(json!({ "path": "a l" })), given("The arguments were cut off.")],
            };
            case.say(of, &list, "yes");
        }
    }),
    (9, "an answer of thinking alone is left out, and stays", "A* A A", |case| {
        let thought = json!({ "type": "thinking", "thinking": "hm", "signature": "c2ln" });
        case.ask(CLAUDE, &session("s"), &[user("hi")], &[thought]);
        case.say("s", &[user("hi"), user("go on")], "yes");
        case.say("s", &[user("hi"), user("go on"), model("yes"), user("more")], "end");
        let messages = case.recorder.messages(&case.letters[0]);
        assert_eq!(messages[1]["chunks"][0]["type"], "thinking", "{messages:?}");
    }),
    (9, "a whole answer without words is one", "A* A", |case| {
        case.ask(CLAUDE, &session("s"), &[user("hi")], &[]);
        assert_eq!(case.last["state"], "complete");
        let answer = case.recorder.messages(&case.letters[0]).pop().unwrap();
        assert_eq!((&answer["finish_reason"], &answer["chunks"]), (&json!("stop"), &json!([])), "{answer}");
        case.say("s", &[user("hi"), user("on")], "yes");
    }),
    (3, "another key of the provider is another person's, but a token that is renewed", "A* B* A C* C D* E*", |case| {
        let of = |key: &'static str| [("authorization", key)];
        let (ada, bob) = (of("Bearer sk-of-ada-0123"), of("Bearer sk-of-bob-4567"));
        for person in [&ada, &bob] {
            case.ask(CHAT, person, &[user("hi")], &[model(&long(0))]);
        }
        case.ask(CHAT, &ada, &[user("hi"), model(&long(0)), user("on")], &[model("yes")]);
        case.ask(CHAT, &of("Bearer eyJh.eyJz.one"), &[user("hey")], &[model(&long(1))]);
        case.ask(CHAT, &of("Bearer eyJh.eyJz.two"), &[user("hey"), model(&long(1)), user("on")], &[model("yes")]);
        case.ask_with(CHAT, &ada, &[user("ho")], &json!({}), &[], &Status(529));
        case.ask(CHAT, &bob, &[user("ho")], &[model("hello")]);
    }),
    (3, "a critic with another model and other words leaves what it is given", "A* B< A", |case| {
        let more = |system: &str, model: &str| json!({ "system": system, "model": model });
        let mut list = vec![user("Draft it.")];
        case.ask_with(CLAUDE, &[], &list, &more("You write.", "m1"), &[text(&long(0))], &Whole);
        list.extend([model(&long(0)), user("Criticise it.")]);
        case.ask_with(CLAUDE, &[], &list, &more("You criticise.", "m2"), &[text("Bad.")], &Whole);
        list[2] = user("Go on.");
        case.ask_with(CLAUDE, &[], &list, &more("You write.", "m1"), &[text("So be it.")], &Whole);
    }),
    (15, "what failed is asked again with another reminder", "A* A A A", |case| {
        let reminded =
            |minute: u32| json!({ "role": "user", "content": [text(&format!("It is 10:0{minute}.")), text("on")] });
        let list = |minute| [user("hi"), model(&long(0)), reminded(minute)];
        case.ask(CLAUDE, &[], &[user("hi")], &[text(&long(0))]);
        for minute in 0..2 {
            case.ask_with(CLAUDE, &[], &list(minute), &json!({}), &[], &Status(529));
        }
        case.ask(CLAUDE, &[], &list(2), &[text("yes")]);
        let shown = case.shown(0);
        assert_eq!((shown.len(), &*shown[2]), (4, "user: It is 10:02.on"), "{shown:?}");
    }),
    (15, "so it is where the system tells the time", "A* A A A~ A~", |case| {
        let mut list = Vec::new();
        let ask = |case: &mut Case, list: &[Value], end: &End| {
            let system = json!({ "role": "system", "content": format!("It is 10:0{}.", case.drawn.len()) });
            let said = [model(&long(list.len()))];
            case.ask_with(CHAT, &[("x-session-id", "s")], &[&[system], list].concat(), &json!({}), &said, end);
        };
        for _ in 0..2 {
            list.push(user("hi"));
            ask(case, &list, &Status(429));
            ask(case, &list, &Whole);
            list.push(model(&long(list.len())));
        }
        list.push(user("more"));
        ask(case, &list, &Whole);
        assert_eq!(case.shown(0).len(), 7, "{:?}", case.shown(0));
    }),
    (15, "a first question that is another one is asked elsewhere", "A* B*", |case| {
        case.ask_with(CLAUDE, &session("s"), &[user("one")], &json!({}), &[], &Status(529));
        case.say("s", &[user("two")], "yes");
    }),
    (12, "references to thinking may be left out", "A* A A", |case| {
        let of = |id: &str| json!({ "type": "item_reference", "id": id });
        let answer = |number: usize| {
            let thought = json!({ "type": "reasoning", "id": format!("rs_{number}"), "summary": [] });
            let said = json!({ "type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "text": long(number), "annotations": [] }] });
            [thought, said]
        };
        let ask = |case: &mut Case, list: &[Value], number: usize| case.ask(CODEX, &[], list, &answer(number));
        ask(case, &[item("user", "hi")], 1);
        ask(case, &[item("user", "hi"), of("rs_1"), of("msg_1"), item("user", "on")], 2);
        ask(case, &[item("user", "hi"), of("msg_1"), item("user", "on"), of("msg_2"), item("user", "more")], 3);
        assert_eq!(case.shown(0).len(), 6, "{:?}", case.shown(0));
    }),
    (8, "what the model was to go on with may be left out, or come back in its answer", "A* A B* B", |case| {
        let words = "Once upon a time there was a store that lost nothing, wherever its power was cut.";
        for (of, given, said) in [("s", "{", "\"x\": 1}"), ("t", "Once", words)] {
            case.say(of, &[user(of), model(given)], said);
            case.say(of, &[user(of), model(said), user("on")], "yes");
            let letter = usize::from(of == "t");
            let wanted = [&format!("user: {of}"), &*format!("assistant: {said}"), "user: on", "assistant: yes"];
            assert_eq!(case.shown(letter), wanted);
        }
    }),
    (8, "a picture that the model drew may be left out", "A* A A", |case| {
        let picture = json!({ "inlineData": { "mimeType": "image/png", "data": "iVBORw0KGgo=" } });
        let drawn = json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": long(1) }, picture] },
            "finishReason": "STOP" }] });
        let part = |role: &str, text: &str| json!({ "role": role, "parts": [{ "text": text }] });
        let ask = |case: &mut Case, list: &[Value], answer: &Value| {
            let path = "/v1beta/models/m:generateContent";
            let body = json!({ "contents": list });
            let exchange = case.recorder.ask(path, &[], &body, Reply::json(answer)).exchange;
            case.draw(&exchange);
        };
        let mut list = vec![part("user", "Draw.")];
        for answer in [drawn.clone(), drawn.clone(), drawn] {
            ask(case, &list, &answer);
            list.extend([part("model", &long(1)), part("user", "on")]);
        }
    }),
    (10, "who edits an earlier question leaves there, though reminders change", "A* A~ A~ B<", |case| {
        let reminded = |text: &str, number: usize| json!({ "role": "user", "content": [self::text(&format!("It is 10:0{number}.")), self::text(text)] });
        let mut list = Vec::new();
        for number in 0..3 {
            list.push(user(&format!("question {number}")));
            let (last, before) = list.split_last().unwrap();
            let last = reminded(last["content"].as_str().unwrap(), number);
            case.say("s", &[before, &[last]].concat(), &long(number));
            list.push(model(&long(number)));
        }
        case.say("s", &[&list[..4], &[reminded("another question", 4)]].concat(), "no");
        assert_eq!(case.shown(1).len(), 6, "{:?}", case.shown(1));
    }),
    (5, "what a template asks has no words here", "A* A B*", |case| {
        let of = |before: Value| json!({ "prompt": { "id": "pmpt_1" }, "previous_response_id": before });
        let ask = |case: &mut Case, before: Value, number: usize| {
            let mut body = json!({ "model": "m", "stream": true });
            body.as_object_mut().unwrap().extend(of(before).as_object().unwrap().clone());
            let events = Wire::Responses.events(&Wire::Responses.text(&long(number), number), number);
            let exchange = case.recorder.ask(CODEX, &[], &body, Reply::of_events(&events)).exchange;
            case.draw(&exchange);
            assert_eq!(case.last["state"], "complete", "{}", case.last);
        };
        ask(case, Value::Null, 1);
        ask(case, "resp_1".into(), 2);
        ask(case, Value::Null, 3);
    }),
    (2, "a name goes to the conversation, not to what is asked beside it", "A* B*", |case| {
        let of = [("x-convo-conversation", "chat-7")];
        let more = json!({ "response_format": { "type": "json_schema", "json_schema": { "name": "title" } } });
        case.ask_with(CHAT, &of, &[user("Give it a title: hi")], &more, &[model("{}")], &Whole);
        case.ask(CHAT, &of, &[user("hi")], &[model("hello")]);
        let named = case.recorder.client().get("/api/v1/conversations/chat-7").ok();
        assert_eq!(named["conversation"], json!(case.letters[1]));
    }),
    (5, "a question without words may be asked again", "A* B*", |case| {
        for _ in 0..2 {
            case.ask(CHAT, &[("x-session-id", "s")], &[user("")], &[model("hello")]);
            assert_eq!(case.last["state"], "complete");
        }
    }),
    (5, "what the provider keeps is asked again at its place", "A* A A! A", |case| {
        let more = json!({ "conversation": "conv_1" });
        let ask = |case: &mut Case, text: &str, said: &str| {
            let said = Wire::Responses.text(said, 1);
            case.ask_with(CODEX, &[], &[item("user", text)], &more, &said, &Whole);
        };
        ask(case, "hi", "hello");
        case.ask_with(CODEX, &[], &[item("user", "on")], &more, &[], &Status(429));
        ask(case, "on", "yes");
        ask(case, "on", "yes again");
        assert_eq!(
            case.shown(0),
            ["user: hi", "assistant: hello", "user: on", "assistant: yes", "user: on", "assistant: yes again"]
        );
    }),
    (15, "who asks more while an answer runs goes on from that in a place of its own", "A* A B< B", |case| {
        let events = Wire::Anthropic.events(&[text("a sum")], 10);
        let reply = events[1..].iter().fold(Reply::stream().then(&events[0]).wait(1), |reply, event| reply.then(event));
        let body = Case::body(CLAUDE, &[user("doc")], &json!({})).to_string();
        let client = case.recorder.client();
        let mut first = case.recorder.begin(client, CLAUDE, &session("s"), body.as_bytes(), reply.end());
        first.until(b"message_start");
        case.recorder.placed(first.answer.header("x-convo-exchange").unwrap());
        let body = Case::body(CLAUDE, &[user("doc"), user("a question")], &json!({}));
        let reply = Reply::of_events(&Wire::Anthropic.events(&[text("an answer")], 11));
        let second = case.recorder.ask(CLAUDE, &session("s"), &body, reply).exchange;
        case.recorder.settled(&second);
        case.recorder.go_on();
        let is_whole = first.end();
        case.draw(&passed(first, is_whole).exchange);
        case.draw(&second);
        case.say("s", &[user("doc"), model("a sum"), user("on")], "yes");
        assert_eq!(case.shown(1), ["user: doc", "assistant: a sum", "user: on", "assistant: yes"]);
        case.say("s", &[user("doc"), model("a sum"), user("on"), model("yes"), user("more")], "end");
    }),
];

#[test]
fn what_clients_make_of_an_answer_is_its_echo() {
    check(ROWS);
}

/// The provider states what the whole call has taken.
#[test]
fn the_tokens_of_a_call_with_choices_count_once() {
    let mut case = Case::open();
    let choice = |index: usize| json!({ "index": index, "message": model("hello"), "finish_reason": "stop" });
    let mut answer = Wire::Chat.whole(&[model("hello")], 1);
    answer["choices"] = json!([choice(0), choice(1), choice(2)]);
    let body = Case::body(CHAT, &[user("hi")], &json!({ "n": 3, "stream": false }));
    let exchange = case.recorder.ask(CHAT, &[], &body, Reply::json(&answer)).exchange;
    case.draw(&exchange);
    assert_eq!(case.recorder.messages(&case.letters[0]).len(), 4);
    let usage = case.recorder.client().get("/api/v1/usage").json();
    let row = &usage["rows"][0];
    assert_eq!(
        (&row["answers"], &row["uncounted"], &row["input"], &row["output"]),
        (&json!(1), &json!(0), &json!(3), &json!(5)),
        "{usage}"
    );
}

/// Some wires have it in the path alone.
#[test]
fn tokens_are_counted_for_the_model_in_the_path() {
    let mut case = Case::open();
    let answer = json!({ "output": { "message": { "role": "assistant", "content": [{ "text": "hello" }] } },
        "stopReason": "end_turn", "usage": { "inputTokens": 3, "outputTokens": 5, "totalTokens": 8 } });
    let body = json!({ "messages": [{ "role": "user", "content": [{ "text": "hi" }] }] });
    let path = "/model/amazon.nova-lite-v1%3A0/converse";
    let exchange = case.recorder.ask(path, &[], &body, Reply::json(&answer)).exchange;
    case.draw(&exchange);
    let usage = case.recorder.client().get("/api/v1/usage?by=model").json();
    assert_eq!(usage["rows"][0]["model"], "amazon.nova-lite-v1:0", "{usage}");
}
