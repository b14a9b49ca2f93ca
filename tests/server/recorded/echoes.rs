//! What clients make of an answer before they send it again, and of what came before it: a row for each, as in `requirements`, with
//! the point that it belongs to.

use serde_json::{Value, json};

use super::answers::Wire;
use super::requirements::{
    CHAT, CLAUDE, CODEX, Case, End, Row, Status, Whole, call, check, item, model, result, session, text, user,
};
use super::{Reply, passed};
use crate::common::http::Open;

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
    (3, "another key of the provider is another person's, but a token that is renewed", "A* B* A C* C", |case| {
        let of = |key: &'static str| [("authorization", key)];
        let (ada, bob) = (of("Bearer sk-of-ada-0123"), of("Bearer sk-of-bob-4567"));
        for person in [&ada, &bob] {
            case.ask(CHAT, person, &[user("hi")], &[model(&long(0))]);
        }
        case.ask(CHAT, &ada, &[user("hi"), model(&long(0)), user("on")], &[model("yes")]);
        case.ask(CHAT, &of("Bearer eyJh.eyJz.one"), &[user("hey")], &[model(&long(1))]);
        case.ask(CHAT, &of("Bearer eyJh.eyJz.two"), &[user("hey"), model(&long(1)), user("on")], &[model("yes")]);
    }),
    (3, "what failed may be asked again with another key", "A* A! A A!", |case| {
        let mut list = vec![user("hi")];
        for number in 0..2 {
            let of = |key: u32| [("authorization", ["Bearer sk-0", "Bearer sk-1"][key as usize])];
            case.ask_with(CHAT, &of(0), &list, &json!({}), &[], &Status(429));
            case.ask(CHAT, &of(1), &list, &[model(&long(number))]);
            list.extend([model(&long(number)), user("on")]);
        }
    }),
    (3, "each kind of key tells people apart", "A* B* A C* D* C E* F* E G* H* G I* J* I", |case| {
        let keys = [["AQ.Ab8RN6Kada", "AQ.Ab8RN6Kbob"], ["sk-1", "sk-2"], ["Basic YWRhOjE=", "Basic Ym9iOjE="]];
        let keys = keys.into_iter().chain([["Token ab12cd34", "Token ef56ab78"], ["id1.secret", "id2.secret"]]);
        for (number, keys) in keys.enumerate() {
            let hi = user(&format!("hi {number}"));
            for key in keys {
                case.ask(CHAT, &[("authorization", key)], std::slice::from_ref(&hi), &[model("yes")]);
            }
            case.ask(CHAT, &[("authorization", keys[0])], &[hi, model("yes"), user("on")], &[model("no")]);
        }
    }),
    (3, "one client may take one key after the other", "A* A A A", |case| {
        let mut list = vec![user("hi")];
        for number in 0..4 {
            let key = format!("Bearer sk-{}", number % 2);
            case.ask(CHAT, &[("authorization", &key)], &list, &[model(&long(number))]);
            list.extend([model(&long(number)), user("on")]);
        }
    }),
    (3, "what is renewed within a conversation is no other key", "A* A A A A A", |case| {
        let tokens = ["eyJh.eyJz.one", "eyJh.eyJz.two", "ya29.a0Af", "sk-ant-oat01-x", "tid=1;exp=2:ab", "ghu_16C7e4"];
        let mut list = vec![user("hi")];
        for token in tokens {
            case.ask(CHAT, &[("authorization", &format!("Bearer {token}"))], &list, &[model("yes")]);
            list.extend([model("yes"), user("on")]);
        }
    }),
    (3, "who has each turn answered by another model with other words goes on", "A* A A A", |case| {
        let mut list = vec![user("Draft it.")];
        for number in 0..4 {
            let more = json!({ "system": format!("You are {}.", number % 2), "model": format!("m{}", number % 2) });
            case.ask_with(CLAUDE, &[], &list, &more, &[text(&long(number))], &Whole);
            list.extend([model(&long(number)), user("Go on.")]);
        }
    }),
    (3, "short answers after a long one are nobody else's", "A* A A A", |case| {
        let mut list = vec![user("hi")];
        for number in 0..4 {
            let said = if number == 0 { long(0) } else { "yes".to_owned() };
            let more = json!({ "system": format!("It is 10:0{number}.") });
            case.ask_with(CLAUDE, &[("x-api-key", &format!("sk-{number}"))], &list, &more, &[text(&said)], &Whole);
            list.extend([model(&said), user("on")]);
        }
    }),
    (15, "what failed is asked again with another reminder", "A* A A A", |case| {
        let reminded = |minute: u32| {
            let reminder = format!("<system-reminder>It is 10:0{minute}.</system-reminder>");
            json!({ "role": "user", "content": [text(&reminder), text("on")] })
        };
        let list = |minute| [user("hi"), model(&long(0)), reminded(minute)];
        case.ask(CLAUDE, &[], &[user("hi")], &[text(&long(0))]);
        for minute in 0..2 {
            case.ask_with(CLAUDE, &[], &list(minute), &json!({}), &[], &Status(529));
        }
        case.ask(CLAUDE, &[], &list(2), &[text("yes")]);
        let shown = case.shown(0);
        assert_eq!(
            (shown.len(), &*shown[2]),
            (4, "user: <system-reminder>It is 10:02.</system-reminder>on"),
            "{shown:?}"
        );
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
    (15, "a question that failed may be asked again after another one", "A* A B< A! A C* D* C! C", |case| {
        for (of, before) in [("s", &[user("hi"), model(&long(0))][..]), ("t", &[])] {
            if let [first, ..] = before {
                case.say(of, std::slice::from_ref(first), &long(0));
            }
            let list = |text: &str| [before, &[user(text)]].concat();
            case.ask_with(CLAUDE, &session(of), &list("on"), &json!({}), &[], &Status(529));
            case.say(of, &list("Give it a title."), "A title");
            case.say(of, &list("on"), &long(1));
            case.say(of, &[&list("on")[..], &[model(&long(1)), user("more")]].concat(), "yes");
        }
        assert_eq!((case.shown(0).len(), case.shown(2).len()), (6, 4));
    }),
    (15, "what was replaced by the same with another reminder may be asked again, too", "A* A A A A!", |case| {
        let reminded = |minute: u32| {
            let reminder = format!("<system-reminder>It is 10:0{minute}.</system-reminder>");
            json!({ "role": "user", "content": [text(&reminder), text("on")] })
        };
        case.say("s", &[user("hi")], &long(0));
        for minute in [0, 1, 0] {
            let list = [user("hi"), model(&long(0)), reminded(minute)];
            case.ask_with(CLAUDE, &session("s"), &list, &json!({}), &[], &Status(529));
        }
        case.say("s", &[user("hi"), model(&long(0)), reminded(0)], "yes");
        assert_eq!(case.shown(0)[2..], ["user: <system-reminder>It is 10:00.</system-reminder>on", "assistant: yes"]);
    }),
    (15, "results that failed are asked again after something else", "A* A B< A! A", |case| {
        let call = call("toolu_01A09q90qw90lq0001", json!({}));
        let of = |more: &[Value]| {
            let given = [&[result("toolu_01A09q90qw90lq0001", "done")], more].concat();
            [
                user("hi"),
                json!({ "role": "assistant", "content": [&call] }),
                json!({ "role": "user", "content": given }),
            ]
        };
        case.ask(CLAUDE, &session("s"), &[user("hi")], std::slice::from_ref(&call));
        case.ask_with(CLAUDE, &session("s"), &of(&[]), &json!({}), &[], &Status(529));
        let title = [&of(&[])[..2], &[user("Give it a title.")]].concat();
        case.say("s", &title, "A title");
        case.say("s", &of(&[]), &long(1));
        let list = [&of(&[])[..], &[model(&long(1))]].concat();
        case.say("s", &[&list[..], &[user("on")]].concat(), "yes");
        assert_eq!(case.shown(0).len(), 6, "{:?}", case.shown(0));
    }),
    (15, "a question that was cut, and left out, may be asked again", "A* A A B< C< C", |case| {
        let of = |texts: &[&str]| {
            let texts = texts.iter().map(|text| user(text));
            [user("hi"), model(&long(0))].into_iter().chain(texts).collect::<Vec<_>>()
        };
        case.say("s", &[user("hi")], &long(0));
        case.ask_with(CLAUDE, &session("s"), &of(&["one"]), &json!({}), &[text("I am cut")], &End::Cut(4));
        case.ask_with(CLAUDE, &session("s"), &of(&["one", "two"]), &json!({}), &[], &Status(529));
        case.say("s", &of(&["two"]), &long(1));
        case.say("s", &of(&["one"]), &long(2));
        case.say("s", &[&of(&["one"])[..], &[model(&long(2)), user("on")]].concat(), "yes");
        assert_eq!(case.shown(2)[2..4], [String::from("user: one"), format!("assistant: {}", long(2))]);
    }),
    (15, "a title of a first question that failed takes not its place", "A* B* A! A", |case| {
        case.ask_with(CLAUDE, &session("s"), &[user("on")], &json!({}), &[], &Status(529));
        case.say("s", &[user("Give it a title:"), user("on")], "A title");
        case.say("s", &[user("on")], &long(1));
        case.say("s", &[user("on"), model(&long(1)), user("more")], "yes");
    }),
    (15, "results that were too long are shortened", "A* A A A", |case| {
        let call = call("toolu_01A09q90qw90lq0002", json!({}));
        let mut list = vec![user("hi")];
        case.ask(CLAUDE, &session("s"), &list, std::slice::from_ref(&call));
        list.push(json!({ "role": "assistant", "content": [call] }));
        let given = |text: &str| json!({ "role": "user", "content": [result("toolu_01A09q90qw90lq0002", text)] });
        let long = [&list[..], &[given("much")]].concat();
        case.ask_with(CLAUDE, &session("s"), &long, &json!({}), &[], &Status(400));
        list.push(given("m"));
        case.say("s", &list, "yes");
        case.say("s", &[&list[..], &[model("yes"), user("on")]].concat(), "no");
        assert_eq!(case.shown(0).len(), 6, "{:?}", case.shown(0));
    }),
    (15, "a probe takes nobody's place", "A* A B<", |case| {
        let probe = json!({ "max_tokens": 1 });
        case.say("s", &[user("hi")], &long(0));
        let of = |reminder: &str| {
            let asked = json!({ "role": "user", "content": [text("on"), text(reminder)] });
            [user("hi"), model(&long(0)), asked]
        };
        let [first, second] = [0, 1].map(|minute| format!("<system-reminder>It is 10:0{minute}.</system-reminder>"));
        case.ask_with(CLAUDE, &session("s"), &of(&first), &json!({}), &[], &Status(529));
        case.ask_with(CLAUDE, &session("s"), &of(&second), &probe, &[text("y")], &Whole);
        assert_eq!(case.shown(0)[2..], [format!("user: on{first}")]);
    }),
    (15, "a question whose retry runs keeps its place", "A* A B< A! A B", |case| asked_beside_a_retry(case, &[])),
    (15, "so it does where another one that failed follows it", "A* A A B< A! C< B", |case| {
        asked_beside_a_retry(case, &["too"])
    }),
    (15, "a first question that is another one is asked elsewhere", "A* B*", |case| {
        case.ask_with(CLAUDE, &session("s"), &[user("one")], &json!({}), &[], &Status(529));
        case.say("s", &[user("two")], "yes");
    }),
    (15, "another document with the same instruction is another question", "A* B* B C<", |case| {
        let of = |document: &str| json!({ "role": "user", "content": [text(document), text("Summarise it.")] });
        case.ask_with(CLAUDE, &session("s"), &[of("one")], &json!({}), &[], &Status(429));
        case.say("s", &[of("two")], &long(0));
        let list = |document: &str| [of("two"), model(&long(0)), of(document)];
        case.ask_with(CLAUDE, &session("s"), &list("three"), &json!({}), &[], &Status(429));
        case.say("s", &list("four"), "yes");
        assert_eq!((&*case.shown(0)[0], &*case.shown(1)[2]), ("user: oneSummarise it.", "user: threeSummarise it."));
    }),
    (4, "agents of a session that are asked the same at one time have a conversation each", "A< B* B A", |case| {
        let of = |system: &str| json!({ "system": system });
        let events = Wire::Anthropic.events(&[text(&long(1))], 1);
        let first = begun(case, &[user("hi")], &of("Sort."), &events, 1);
        case.ask_with(CLAUDE, &session("s"), &[user("hi")], &of("Translate."), &[text(&long(2))], &Whole);
        case.recorder.go_on();
        ended(case, first);
        for (system, number) in [("Sort.", 1), ("Translate.", 2)] {
            let list = [user("hi"), model(&long(number)), user("on")];
            case.ask_with(CLAUDE, &session("s"), &list, &of(system), &[text("yes")], &Whole);
        }
        for (letter, number) in [(0, 2), (1, 1)] {
            assert_eq!(case.shown(letter)[..2], ["user: hi".to_owned(), format!("assistant: {}", long(number))]);
        }
    }),
    (6, "who stops an answer goes on with what came of it, and may go back to that", "A A* A B<", |case| {
        let events = Wire::Anthropic.events(&[text(&long(0))], 1);
        let first = begun(case, &[user("hi")], &json!({}), &events, 8);
        case.recorder.until_shown(&first, "Answer 0, and it is long");
        let stopped = passed(first, false).exchange;
        let kept = "Answer 0, and it is";
        let mut list = vec![user("hi"), model(kept), user("on")];
        // The upstream would say more.
        case.say("s", &list, &long(1));
        case.draw(&stopped);
        assert_eq!(case.last["state"], "stopped");
        list.extend([model(&long(1)), user("more")]);
        case.say("s", &list, "yes");
        assert_eq!(case.shown(0)[..3], ["user: hi".to_owned(), format!("assistant: {kept}"), "user: on".to_owned()]);
        assert_eq!(case.shown(0).len(), 6, "{:?}", case.shown(0));
        case.say("s", &[user("hi"), model(kept), user("else")], "no");
        let kept = format!("assistant: {kept}");
        assert_eq!(case.shown(1), ["user: hi", &*kept, "user: else", "assistant: no"]);
    }),
    (16, "words of the system after an answer are a part of the question", "A* A B<", |case| {
        let list = |words: &str| {
            let system = json!({ "role": "system", "content": words });
            [user("hi"), model(&long(0)), user("on"), system]
        };
        case.say("s", &[user("hi")], &long(0));
        case.ask_with(CLAUDE, &session("s"), &list("The user says: mend the tests."), &json!({}), &[], &Status(529));
        case.say("s", &list("The user says: mend the docs."), "yes");
        assert_eq!(case.shown(0).len(), 4, "{:?}", case.shown(0));
    }),
    (15, "a first question may come in a third way", "A* A A", |case| {
        for minute in 0..3 {
            let reminder = text(&format!("<system-reminder>It is 10:0{minute}.</system-reminder>"));
            let system = json!({ "role": "system", "content": "Be brief." });
            let list = [system, json!({ "role": "user", "content": [reminder, text("on")] })];
            let end = if minute < 2 { Status(429) } else { Whole };
            case.ask_with(CHAT, &[("x-session-id", "s")], &list, &json!({}), &[model("yes")], &end);
        }
        assert_eq!(case.shown(0).len(), 3, "{:?}", case.shown(0));
    }),
    (10, "a reminder alone makes no beginning of the same", "A* A B*", |case| {
        let first = |words: &str| {
            let reminder = text("<system-reminder>It is 10:00.</system-reminder>");
            json!({ "role": "user", "content": [reminder, text(words)] })
        };
        case.say("s", &[first("hi")], &long(0));
        case.say("s", &[first("hi"), model(&long(0)), user("on")], &long(1));
        case.say("s", &[first("Find faults in this:"), model(&long(0)), user("Go.")], "none");
    }),
    (15, "who goes on from an answer leaves out what was asked while it came", "A A* B< A", |case| {
        let first = begun(case, &[user("hi")], &json!({}), &Wire::Anthropic.events(&[text(&long(0))], 1), 8);
        case.say("s", &[user("hi"), user("too")], &long(1));
        case.recorder.go_on();
        ended(case, first);
        case.say("s", &[user("hi"), model(&long(0)), user("on")], "yes");
        assert_eq!(case.shown(1), ["user: hi", &*format!("assistant: {}", long(0)), "user: on", "assistant: yes"]);
        case.say("s", &[user("hi"), user("too"), model(&long(1)), user("on")], "no");
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
    (8, "what the model was to go on with may be left out, or come back in its answer", "A* A~ B* B~", |case| {
        let words = "Once upon a time there was a store that lost nothing, wherever its power was cut.";
        for (of, given, said) in [("s", "{", "\"x\": 1}"), ("t", "Once", words)] {
            case.say(of, &[user(of), model(given)], said);
            case.say(of, &[user(of), model(said), user("on")], "yes");
            let letter = usize::from(of == "t");
            let wanted = [&format!("user: {of}"), &*format!("assistant: {given}{said}"), "user: on", "assistant: yes"];
            assert_eq!(case.shown(letter), wanted);
        }
    }),
    (8, "what the model is to go on with proves nothing of the question before it", "A* A B< B", |case| {
        let list = |text: &str| [user("hi"), model(&long(0)), user(text), model("{")];
        case.say("s", &[user("hi")], &long(0));
        case.ask_with(CLAUDE, &session("s"), &list("one"), &json!({}), &[], &Status(529));
        case.say("s", &list("another one"), "\"x\": 1}");
        case.say("s", &[&list("another one")[..3], &[model("{\"x\": 1}"), user("on")]].concat(), "yes");
        assert_eq!(case.shown(1)[2..4], ["user: another one", "assistant: {\"x\": 1}"]);
    }),
    (8, "an answer that another one goes on with is not left out", "A* A B* A", |case| {
        case.say("s", &[user("hi")], &long(0));
        case.say("s", &[user("hi"), model(&long(0))], &long(1));
        case.say("s", &[user("hi"), model(&long(1)), user("beside")], "yes");
        case.say("s", &[user("hi"), model(&long(0)), model(&long(1)), user("on")], "no");
    }),
    (10, "who has an earlier answer of the session and asks something else of it begins anew", "A* A B*", |case| {
        case.say("s", &[user("hi")], &long(0));
        case.say("s", &[user("hi"), model(&long(0)), user("on")], &long(1));
        case.say("s", &[user("Find faults in this:"), model(&long(0)), user("Go.")], "none");
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
    (15, "of many answers to one question each is gone on with that has a call", "A", |case| {
        let of = |number: usize| call(&format!("toolu_01A09q90qw90lq{number:04}"), json!({}));
        for number in 0..40 {
            case.ask(CLAUDE, &[], &[user("hi")], &[of(number)]);
        }
        let of = of(0);
        let given = json!({ "role": "user", "content": [result(of["id"].as_str().unwrap(), "done")] });
        case.ask(CLAUDE, &[], &[user("hi"), json!({ "role": "assistant", "content": [of] }), given], &[text("yes")]);
        let (last, begun) = case.drawn.split_last().unwrap();
        assert!(begun.iter().all(|drawn| drawn.ends_with('*')), "{begun:?}");
        case.drawn = vec![last.clone()];
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
    (5, "another template, or one with other variables, is another question", "A* B* C*", |case| {
        for (of, variables, end) in [("1", "x", Status(529)), ("1", "y", Whole), ("2", "y", Whole)] {
            let prompt = json!({ "id": format!("pmpt_{of}"), "variables": { "of": variables } });
            let body = json!({ "model": "m", "stream": true, "input": null, "prompt": prompt });
            let events = Wire::Responses.events(&Wire::Responses.text(&long(1), 1), 1);
            let reply = match end {
                Status(status) => Reply::error(status, &json!({ "error": { "message": "no" } })),
                _ => Reply::of_events(&events),
            };
            let passed = case.recorder.ask(CODEX, &[("session-id", "s")], &body, reply);
            case.draw(&passed.exchange);
            if passed.status == 200 {
                assert_eq!(case.recorder.request(&passed.exchange).0, body.to_string().as_bytes());
            }
        }
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

/// A call in the session `s` whose question is stored, and of whose answer so many events have come. The others come when the recorder
/// goes on.
fn begun(case: &Case, list: &[Value], more: &Value, events: &[String], count: usize) -> Open {
    let reply = events[..count].iter().fold(Reply::stream(), |reply, event| reply.then(event)).wait(1);
    let reply = events[count..].iter().fold(reply, |reply, event| reply.then(event)).end();
    let body = Case::body(CLAUDE, list, more).to_string();
    let mut open = case.recorder.begin(case.recorder.client(), CLAUDE, &session("s"), body.as_bytes(), reply);
    open.until_length(events[..count].concat().len());
    case.recorder.placed(open.answer.header("x-convo-exchange").unwrap());
    open
}

fn ended(case: &mut Case, mut open: Open) {
    let is_whole = open.end();
    case.draw(&passed(open, is_whole).exchange);
}

/// A question fails, and its retry runs while something like it is asked in the same place; with words that are typed after it.
fn asked_beside_a_retry(case: &mut Case, typed: &[&str]) {
    let reminded = |time: &str, typed: &[&str]| {
        let reminder = format!("<system-reminder>It is {time}.</system-reminder>");
        let asked = json!({ "role": "user", "content": [text(&reminder), text("on")] });
        let typed = typed.iter().map(|text| user(text));
        [user("hi"), model(&long(0)), asked].into_iter().chain(typed).collect::<Vec<_>>()
    };
    case.say("s", &[user("hi")], &long(0));
    let (first, second) = (reminded("10:00", &[]), reminded("10:01", typed));
    case.ask_with(CLAUDE, &session("s"), &first, &json!({}), &[], &Status(529));
    let retry = begun(case, &first, &json!({}), &Wire::Anthropic.events(&[text(&long(1))], 1), 1);
    if !typed.is_empty() {
        case.ask_with(CLAUDE, &session("s"), &reminded("10:00", typed), &json!({}), &[], &Status(529));
    }
    case.say("s", &second, &long(2));
    case.recorder.go_on();
    ended(case, retry);
    for (asked, number) in [(&first, 1), (&second, 2)] {
        case.say("s", &[&asked[..], &[model(&long(number)), user("more")]].concat(), "yes");
    }
    for letter in [usize::from(!typed.is_empty()) * 2, 1] {
        assert_eq!(case.shown(letter).len(), 6, "{:?}", case.shown(letter));
    }
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
