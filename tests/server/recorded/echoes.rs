//! What clients make of an answer before they send it again, and of what came before it: a row for each, as in `requirements`, with
//! the point that it belongs to.

use serde_json::{Value, json};

use super::answers::Wire;
use super::requirements::{
    CHAT, CLAUDE, CODEX, Case, Row, Status, Whole, call, check, item, model, result, session, text, user,
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
