//! What makes a conversation, point by point: a row for each, with what a person draws of its calls.
//!
//! A letter names the conversation of a call. `*`: it is the first one there. `<`: the conversation leaves another one there. `!`: the call is
//! asked again. `~`: it rewrites what came before.

use serde_json::{Value, json};

use super::answers::Wire;
use super::{Recorder, Reply, passed};

/// Calls, and what is drawn of them.
pub(super) struct Case {
    pub(super) recorder: Recorder,
    pub(super) letters: Vec<String>,
    pub(super) drawn: Vec<String>,
    number: usize,
    /// What the last call was settled as.
    pub(super) last: Value,
}

pub(super) const CLAUDE: &str = "/v1/messages";
pub(super) const CHAT: &str = "/v1/chat/completions";
pub(super) const CODEX: &str = "/v1/responses";

/// How an answer ends.
pub(super) enum End {
    Whole,
    /// After so many events.
    Cut(usize),
    Status(u16),
}
pub(super) use End::{Cut, Status, Whole};

pub(super) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

pub(super) fn model(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

pub(super) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

pub(super) fn call(id: &str, arguments: Value) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "Bash", "input": arguments })
}

pub(super) fn result(id: &str, text: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": text })
}

pub(super) fn item(role: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] })
}

pub(super) fn session(name: &str) -> Vec<(&str, &str)> {
    vec![("x-claude-code-session-id", name)]
}

impl Case {
    pub(super) fn open() -> Self {
        let recorder = Recorder::open();
        Self { recorder, letters: Vec::new(), drawn: Vec::new(), number: 0, last: Value::Null }
    }

    pub(super) fn body(path: &str, list: &[Value], more: &Value) -> Value {
        let name = if path == CODEX {
            "input"
        } else if path.contains("enerate") {
            "contents"
        } else {
            "messages"
        };
        let mut body = json!({ "model": "m", "stream": true, name: list });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    }

    /// A call, with fields beside its list, that gets this answer.
    pub(super) fn ask_with(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        list: &[Value],
        more: &Value,
        said: &[Value],
        end: &End,
    ) {
        let wire = Wire::of(path).unwrap();
        self.number += 1;
        let reply = match *end {
            Whole => Reply::of_events(&wire.events(said, self.number)),
            Cut(count) => Reply::cut_after(&wire.events(said, self.number), count),
            Status(status) => Reply::error(status, &json!({ "error": { "message": "no", "type": "no" } })),
        };
        let exchange = self.recorder.ask(path, headers, &Self::body(path, list, more), reply).exchange;
        self.draw(&exchange);
    }

    pub(super) fn ask(&mut self, path: &str, headers: &[(&str, &str)], list: &[Value], said: &[Value]) {
        self.ask_with(path, headers, list, &json!({}), said, &Whole);
    }

    /// A call of the Messages API in a session, answered with a text.
    pub(super) fn say(&mut self, of: &str, list: &[Value], answer: &str) {
        self.ask(CLAUDE, &session(of), list, &[text(answer)]);
    }

    /// A call of a chat of nobody's session, answered with a text.
    pub(super) fn chat(&mut self, list: &[Value], more: &Value, answer: &str) {
        self.ask_with(CHAT, &[], list, more, &[model(answer)], &Whole);
    }

    pub(super) fn draw(&mut self, exchange: &str) {
        let settled = self.recorder.settled(exchange);
        let conversation = settled["conversation"].as_str();
        let conversation = conversation.unwrap_or_else(|| panic!("{settled}: {}", self.recorder.running.log()));
        let letter = self.letters.iter().position(|known| known == conversation).unwrap_or_else(|| {
            self.letters.push(conversation.to_owned());
            self.letters.len() - 1
        });
        let path = format!("/api/v1/conversations/{conversation}/messages/{}", settled["message"]);
        let answer = self.recorder.client().get(&path);
        let is_rewritten = answer.status == 200 && answer.json()["convo"].get("rewritten").is_some();
        let mark = match settled["how"].as_str().unwrap() {
            "new" => "*",
            "forked" => "<",
            "attempt" => "!",
            _ if is_rewritten => "~",
            _ => "",
        };
        self.drawn.push(format!("{}{mark}", char::from(b'A' + u8::try_from(letter).unwrap())));
        self.last = settled;
    }

    /// The texts of a conversation as it is shown, by its letter.
    pub(super) fn shown(&self, letter: usize) -> Vec<String> {
        super::said::by_messages(&self.recorder.messages(&self.letters[letter]))
    }

    pub(super) fn tags(&self, letter: usize) -> Vec<String> {
        let path = format!("/api/v1/conversations/{}", self.letters[letter]);
        let described = self.recorder.client().get(&path).ok();
        let tags = described["tags"].as_array().cloned().unwrap_or_default();
        tags.iter().map(|tag| tag.as_str().unwrap().to_owned()).collect()
    }
}

pub(super) type Row = (u32, &'static str, &'static str, fn(&mut Case));

const ROWS: &[Row] = &[
    (1, "a shared beginning joins nothing", "A* B* C*", |case| {
        let first = json!({ "role": "user", "content": [text("# the date"), text("do one")] });
        case.say("s1", std::slice::from_ref(&first), "yes");
        case.say("s2", std::slice::from_ref(&first), "yes");
        case.say("s1", &[json!({ "role": "user", "content": [text("# the date"), text("do two")] })], "yes");
    }),
    (2, "agents of a session have a conversation each", "A* B* C* A B", |case| {
        let agent = |name: &'static str| vec![("x-claude-code-session-id", "s"), ("x-claude-code-agent-id", name)];
        case.say("s", &[user("hi")], "hello");
        case.ask(CLAUDE, &agent("a"), &[user("hi")], &[text("hello")]);
        case.ask(CLAUDE, &agent("b"), &[user("hi")], &[text("hello")]);
        case.say("s", &[user("hi"), model("hello"), user("on")], "yes");
        case.ask(CLAUDE, &agent("a"), &[user("hi"), model("hello"), user("on")], &[text("yes")]);
        assert!(case.tags(1).contains(&"branch:a".to_owned()) && case.tags(1).contains(&"kind:agent".to_owned()));
        assert!(case.tags(1).contains(&format!("started-by:{}", case.letters[0])), "{:?}", case.tags(1));
    }),
    (2, "Codex's agents share a session, not a thread", "A* B* A B", |case| {
        let of = |thread: &'static str| vec![("session-id", "s"), ("thread-id", thread)];
        let said = |text: &str| Wire::Responses.text(text, 1);
        let on = |case: &mut Case, thread| {
            let list = [item("user", "hi"), said("hello")[0].clone(), item("user", "on")];
            case.ask(CODEX, &of(thread), &list, &said("yes"));
        };
        case.ask(CODEX, &of("s"), &[item("user", "hi")], &said("hello"));
        case.ask(CODEX, &of("t"), &[item("user", "hi")], &said("hello"));
        on(case, "s");
        on(case, "t");
    }),
    (2, "a session that begins with another one's history leaves it", "A* A B< B A", |case| {
        case.say("s1", &[user("hi")], "hello");
        case.say("s1", &[user("hi"), model("hello"), user("on")], "yes");
        case.say("s2", &[user("hi"), model("hello"), user("on"), model("yes"), user("other")], "no");
        case.say(
            "s2",
            &[user("hi"), model("hello"), user("on"), model("yes"), user("other"), model("no"), user("x")],
            "y",
        );
        case.say("s1", &[user("hi"), model("hello"), user("on"), model("yes"), user("mine")], "no");
        assert_eq!(case.shown(0).last().unwrap(), "assistant: no");
        assert_eq!(case.shown(1).len(), 8);
    }),
    (2, "a client names its conversation", "A* A B*", |case| {
        let of = |name: &'static str| vec![("x-convo-conversation", name)];
        case.ask(CHAT, &of("chat-7"), &[user("hi")], &[model("hello")]);
        case.ask(CHAT, &of("chat-7"), &[user("hi"), model("hello"), user("on")], &[model("yes")]);
        case.ask(CHAT, &of("chat-8"), &[user("hi")], &[model("hello")]);
        let named = case.recorder.client().get("/api/v1/conversations/chat-7").ok();
        assert_eq!(named["conversation"], json!(case.letters[0]));
    }),
    (3, "one prompt of many people, and the same short answer", "A* B* C* C", |case| {
        for _ in 0..3 {
            case.chat(&[user("Is it up?")], &json!({}), "Yes.");
        }
        case.chat(&[user("Is it up?"), model("Yes."), user("Sure?")], &json!({}), "Yes.");
    }),
    (3, "users are never joined", "A* B* A C*", |case| {
        let long = "An answer that is long enough to be nobody else's, whoever it is that asks for it.";
        case.chat(&[user("hi")], &json!({ "user": "ada" }), long);
        case.chat(&[user("hi")], &json!({ "user": "bob" }), "short");
        case.chat(&[user("hi"), model(long), user("on")], &json!({ "user": "ada" }), "yes");
        case.chat(&[user("hi"), model(long), user("on")], &json!({ "user": "eve" }), "yes");
    }),
    (3, "what stands around the messages tells short answers apart", "A* B* A B", |case| {
        let of = |system: &str| json!({ "system": system });
        let on = |case: &mut Case, system: &str| {
            let list = [user("hi"), model("Yes."), user("on")];
            case.ask_with(CLAUDE, &[], &list, &of(system), &[text("ok")], &Whole);
        };
        case.ask_with(CLAUDE, &[], &[user("hi")], &of("one"), &[text("Yes.")], &Whole);
        case.ask_with(CLAUDE, &[], &[user("hi")], &of("two"), &[text("Yes.")], &Whole);
        on(case, "one");
        on(case, "two");
    }),
    (3, "equal answers of other people, with ids that any call may have", "A* B* A B", |case| {
        let of = |system: &str| json!({ "system": system, "tools": [{ "name": "Bash" }] });
        let called = call("functions.Bash:0", json!({}));
        let on = |case: &mut Case, system: &str| {
            let given = json!({ "role": "user", "content": [result("functions.Bash:0", system)] });
            let list = [user("hi"), json!({ "role": "assistant", "content": [called] }), given];
            case.ask_with(CLAUDE, &[], &list, &of(system), &[text("ok")], &Whole);
        };
        for system in ["ada", "bob"] {
            case.ask_with(CLAUDE, &[], &[user("hi")], &of(system), std::slice::from_ref(&called), &Whole);
        }
        on(case, "ada");
        on(case, "bob");
    }),
    (3, "of equal answers that of the same system and tools counts first", "A* B* A B", |case| {
        let long = "An answer that is long enough to be nobody else's, and that two people get, word by word.";
        let system = |name: &str| json!({ "role": "system", "content": name });
        for name in ["ada", "bob"] {
            case.chat(&[system(name), user("hi")], &json!({}), long);
        }
        for name in ["ada", "bob"] {
            case.chat(&[system(name), user("hi"), model(long), user("on")], &json!({}), "ok");
        }
    }),
    (3, "two models that are asked side by side, and two people who get one answer", "A* B* A B C* D* D C", |case| {
        let of = |model: &str| json!({ "model": model });
        for name in ["m1", "m2"] {
            case.chat(&[user("hi")], &of(name), "Hello!");
        }
        for name in ["m1", "m2"] {
            case.chat(&[user("hi"), model("Hello!"), user("on")], &of(name), "ok");
        }
        for _ in 0..2 {
            case.chat(&[user("hello")], &of("m1"), "Hello!");
        }
        for more in ["one", "two"] {
            case.chat(&[user("hello"), model("Hello!"), user(more)], &of("m1"), "ok");
        }
    }),
    (3, "Claude Code named its session in a text", "A* A A A!", |case| {
        let of = |system: &str| {
            let id = "user_ab12_account__session_11111111-2222-3333-4444-555555555555";
            json!({ "metadata": { "user_id": id }, "system": system })
        };
        let called = json!({ "role": "assistant", "content": [call("t1", json!({}))] });
        let given = |text: &str| json!({ "role": "user", "content": [result("t1", text)] });
        case.ask_with(CLAUDE, &[], &[user("hi")], &of("one"), &[call("t1", json!({}))], &Whole);
        let list = [user("hi"), called.clone(), given("a long result")];
        case.ask_with(CLAUDE, &[], &list, &of("two"), &[text("ok")], &Whole);
        let list = [user("hi"), called, given("[cleared]"), model("ok"), user("on")];
        case.ask_with(CLAUDE, &[], &list, &of("three"), &[], &Status(529));
        case.ask_with(CLAUDE, &[], &list, &of("four"), &[text("yes")], &Whole);
        assert!(case.tags(0).contains(&"session:11111111-2222-3333-4444-555555555555".to_owned()));
    }),
    (
        4,
        "a call that got no answer is asked again, streamed or not; after a whole answer it forks",
        "A* A! A! B<",
        |case| {
            case.ask_with(CLAUDE, &session("s"), &[user("hi")], &json!({}), &[], &Status(529));
            case.ask_with(CLAUDE, &session("s"), &[user("hi")], &json!({}), &[text("hello you")], &Cut(4));
            let more = json!({ "stream": false });
            case.ask_with(CLAUDE, &session("s"), &[user("hi")], &more, &[text("hello you")], &Whole);
            assert_eq!(case.shown(0), ["user: hi", "assistant: hello you"]);
            case.say("s", &[user("hi")], "hello again");
            assert_eq!(case.shown(1), ["user: hi", "assistant: hello again"]);
        },
    ),
    (4, "the fields of a repeated call stand in another order", "A* A!", |case| {
        let more = [json!({ "client_metadata": { "a": 1, "b": 2 } }), json!({ "client_metadata": { "b": 2, "a": 1 } })];
        let of = [("session-id", "s")];
        case.ask_with(CODEX, &of, &[item("user", "hi")], &more[0], &[], &Status(500));
        case.ask_with(CODEX, &of, &[item("user", "hi")], &more[1], &Wire::Responses.text("hello", 1), &Whole);
    }),
    (5, "the echo says which of two attempts lives", "A* A! A B< A", both_attempts),
    (6, "of a cut answer the finished blocks come back", "A* A", |case| {
        let blocks = [text("one. "), text("two and more")];
        // Up to the middle of the second text.
        case.ask_with(CLAUDE, &session("s"), &[user("hi")], &json!({}), &blocks, &Cut(11));
        let kept = json!({ "role": "assistant", "content": [text("one. ")] });
        case.say("s", &[user("hi"), kept, user("on")], "yes");
        assert_eq!(case.shown(0), ["user: hi", "assistant: one.", "user: on", "assistant: yes"]);
    }),
    (6, "the text as far as it was shown is a message of its own", "A* A", |case| {
        let blocks =
            [json!({ "type": "thinking", "thinking": "hm", "signature": "sig" }), text("one two three four five")];
        case.ask_with(CLAUDE, &session("s"), &[user("hi")], &json!({}), &blocks, &Cut(12));
        let thought = json!({ "role": "assistant", "content": [blocks[0].clone()] });
        let list = [user("hi"), thought, model("one two"), user("[Request interrupted by user]\n"), user("new")];
        case.say("s", &list, "yes");
        let shown = case.shown(0);
        assert_eq!(
            shown,
            ["user: hi", "assistant: one two", "user: [Request interrupted by user]\nnew", "assistant: yes"]
        );
        let messages = case.recorder.messages(&case.letters[0]);
        assert_eq!(messages[1]["chunks"][0]["signature"], "sig", "{messages:?}");
    }),
    (6, "words in the place of an answer that nobody said", "A* A", |case| {
        case.ask_with(CLAUDE, &session("s"), &[user("hi")], &json!({}), &[text("one two")], &Cut(3));
        case.say("s", &[user("hi"), model("No response requested."), user("on")], "yes");
        let shown = case.shown(0);
        assert_eq!(shown, ["user: hi", "assistant: No response requested.", "user: on", "assistant: yes"]);
    }),
    (6, "what was finished of a cut answer is in what is asked again", "A* A! A", |case| {
        let of = [("session-id", "s")];
        let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E1" });
        let said = Wire::Responses.text("hello", 1);
        let both = [reasoning.clone(), said[0].clone()];
        // The reasoning is whole, the message is not.
        case.ask_with(CODEX, &of, &[item("user", "hi")], &json!({}), &both, &Cut(5));
        let mut echoed = reasoning.clone();
        echoed["content"] = Value::Null;
        let second =
            [json!({ "type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "E2" }), said[0].clone()];
        case.ask(CODEX, &of, &[item("user", "hi"), echoed.clone()], &second);
        let list = [item("user", "hi"), echoed, second[0].clone(), said[0].clone(), item("user", "on")];
        case.ask(CODEX, &of, &list, &said);
    }),
    (6, "an answer again leaves hidden what its client had not kept", "A* A B<", |case| {
        let blocks = [text("I look."), call("t1", json!({ "command": "ls" }))];
        // Up to the middle of the call.
        case.ask_with(CLAUDE, &session("s"), &[user("hi")], &json!({}), &blocks, &Cut(6));
        let kept = json!({ "role": "assistant", "content": [text("I look.")] });
        let list = [user("hi"), kept, user("on")];
        case.say("s", &list, "one");
        assert_eq!(case.shown(0), ["user: hi", "assistant: I look.", "user: on", "assistant: one"]);
        case.say("s", &list, "two");
        assert_eq!(case.shown(1), ["user: hi", "assistant: I look.", "user: on", "assistant: two"]);
    }),
    (6, "a client's note at the end of a text that it stopped", "A* A", |case| {
        case.ask_with(CLAUDE, &session("s"), &[user("hi")], &json!({}), &[text("one two three")], &Cut(4));
        let said = format!("{}\n\n[Response interrupted by user]", "one two three".get(..6).unwrap());
        case.say("s", &[user("hi"), model(&said), user("on")], "yes");
        assert_eq!(case.shown(0), ["user: hi", &format!("assistant: {said}"), "user: on", "assistant: yes"]);
    }),
    (6, "a whole answer is no other's beginning", "A* B*", |case| {
        case.say("s", &[user("hi")], "hello you there");
        case.say("s", &[user("hi"), model("hello"), user("on")], "yes");
    }),
    (7, "what clients add and leave out does not count", "A* A A", |case| {
        let marked = |text: &str| json!({ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } });
        case.ask(
            CLAUDE,
            &session("s"),
            &[json!({ "role": "user", "content": [marked("hi")] })],
            &[call("t1", json!({}))],
        );
        let called = json!({ "role": "assistant", "content": [call("t1", json!({}))] });
        let mut answered = result("t1", "ok");
        answered["is_error"] = json!(false);
        answered["cache_control"] = json!({ "type": "ephemeral" });
        let given = |result: &Value| json!({ "role": "user", "content": [result] });
        case.ask(
            CLAUDE,
            &session("s"),
            &[user("hi"), called.clone(), given(&answered)],
            &[json!({ "type": "thinking", "thinking": "hm", "signature": "g" }), text("done")],
        );
        // Without the thinking.
        let list = [user("hi"), called, given(&result("t1", "ok")), model("done"), user("on")];
        case.ask(CLAUDE, &session("s"), &list, &[text("yes")]);
    }),
    (8, "where messages and parts begin does not count", "A* A A A", |case| {
        case.ask(
            CLAUDE,
            &session("s"),
            &[json!({ "role": "user", "content": [text("a"), text("b")] })],
            &[text("x"), text("y")],
        );
        case.say("s", &[user("ab"), model("x"), model("y"), user("c"), user("d")], "z");
        // What the model is to go on with, and its answer, come back as one.
        let on = json!({ "role": "user", "content": [text("c"), text("d")] });
        case.say("s", &[user("a"), user("b"), model("xy"), on, model("z"), user("e"), model("Once")], " upon");
        let list = [user("ab"), model("xy"), user("cd"), model("z"), user("e"), model("Once upon"), user("f")];
        case.say("s", &list, "end");
        assert_eq!(case.shown(0).len(), 8, "{:?}", case.shown(0));
    }),
    (8, "an answer that the model goes on with stays", "A* A A A", |case| {
        let search =
            json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": { "query": "x" } });
        let found = json!({ "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] });
        let first = [text("I search."), search.clone()];
        let said = |blocks: &[Value]| json!({ "role": "assistant", "content": blocks });
        case.ask(CLAUDE, &session("s"), &[user("hi")], &first);
        case.ask(CLAUDE, &session("s"), &[user("hi"), said(&first)], &[found.clone(), text("It is so.")]);
        let whole = said(&[text("I search."), search, found, text("It is so.")]);
        let list = [user("hi"), whole.clone(), user("on")];
        case.ask_with(CLAUDE, &session("s"), &list, &json!({}), &[], &Status(529));
        case.say("s", &[user("hi"), whole, user("on"), user("more")], "yes");
        let shown = case.shown(0);
        assert!(shown[1].starts_with("assistant: I search."), "{shown:?}");
        assert!(shown.iter().any(|line| line.contains("It is so.")), "{shown:?}");
    }),
    (8, "three parts of an answer, each without the white space at its end", "A* A A A", |case| {
        case.say("s", &[user("hi")], "aaa ");
        case.say("s", &[user("hi"), model("aaa")], " bbb ");
        case.say("s", &[user("hi"), model("aaa bbb")], " ccc");
        case.say("s", &[user("hi"), model("aaa bbb ccc"), user("on")], "ok");
        let shown = case.shown(0);
        assert_eq!(shown.concat().matches("aaa").count(), 1, "{shown:?}");
        assert!(["bbb", "ccc"].iter().all(|said| shown.concat().contains(said)), "{shown:?}");
    }),
    (9, "white space at the end of the model's text does not count, at the user's it does", "A* A B*", |case| {
        case.say("s", &[user("hi")], "I run it. \n");
        case.say("s", &[user("hi"), model("I run it."), user("on")], "yes");
        case.say("s", &[user("hi "), model("I run it."), user("on")], "yes");
    }),
    (10, "a call's id counts if the provider gave it", "A* A B*", |case| {
        let called = |id: &str| json!({ "role": "assistant", "content": [call(id, json!({ "a": 1 }))] });
        let given = |id: &str| json!({ "role": "user", "content": [result(id, "ok")] });
        case.ask(CLAUDE, &session("s"), &[user("hi")], &[call("t1", json!({ "a": 1 }))]);
        case.ask(CLAUDE, &session("s"), &[user("hi"), called("t1"), given("t1")], &[text("done")]);
        case.ask(CLAUDE, &session("s"), &[user("hi"), called("t2"), given("t2")], &[text("done")]);
    }),
    (10, "an id that the client made up does not count", "A* A A", |case| {
        let path = "/v1beta/models/gemini-3:streamGenerateContent?alt=sse";
        let user = |text: &str| json!({ "role": "user", "parts": [{ "text": text }] });
        let call = |id: Option<&str>| {
            let mut call = json!({ "functionCall": { "name": "f", "args": { "n": 1 } } });
            if let Some(id) = id {
                call["functionCall"]["id"] = json!(id);
            }
            call
        };
        let turn = |id: &str| {
            let answered = json!({ "functionResponse": { "id": id, "name": "f", "response": { "ok": true } } });
            [json!({ "role": "model", "parts": [call(Some(id))] }), json!({ "role": "user", "parts": [answered] })]
        };
        case.ask(path, &[], &[user("hi")], &[call(None)]);
        let [called, given] = turn("made_up_1");
        case.ask(path, &[], &[user("hi"), called, given], &[json!({ "text": "done " })]);
        let [called, given] = turn("made_up_2");
        let model = json!({ "role": "model", "parts": [{ "text": "done" }] });
        case.ask(path, &[], &[user("hi"), called, given, model, user("on")], &[json!({ "text": "yes" })]);
    }),
    (10, "items come back without the ids that the provider gave them", "A* A A", |case| {
        let search = |id: Option<&str>, query: &str| {
            let mut item = json!({ "type": "web_search_call", "status": "completed", "action": { "type": "search", "query": query } });
            if let Some(id) = id {
                item["id"] = json!(id);
            }
            item
        };
        let said = Wire::Responses.text("It is so.", 1);
        let mut bare = said[0].clone();
        bare.as_object_mut().unwrap().remove("id");
        case.ask(CODEX, &[("session-id", "s")], &[item("user", "hi")], &[search(Some("ws_1"), "x"), said[0].clone()]);
        let mut list = vec![item("user", "hi"), search(None, "x"), bare.clone(), item("user", "on")];
        case.ask(CODEX, &[("session-id", "s")], &list, &[search(Some("ws_2"), "y"), said[0].clone()]);
        list.extend([search(None, "y"), bare, item("user", "more")]);
        case.ask(CODEX, &[("session-id", "s")], &list, &said);
    }),
    (10, "arguments are values", "A* A", |case| {
        let of = [("x-session-id", "s")];
        let call = |arguments: &str| {
            json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "c1", "type": "function",
                "function": { "name": "f", "arguments": arguments } }] })
        };
        case.ask(CHAT, &of, &[user("hi")], &[call(r#"{"n": 1.0, "big": 9223372036854775807, "e": "\u00e9"}"#)]);
        let given = json!({ "role": "tool", "tool_call_id": "c1", "content": "ok" });
        let echoed = call(r#"{"n":1,"big":9223372036854775808,"e":"é"}"#);
        case.ask(CHAT, &of, &[user("hi"), echoed, given], &[model("done")]);
    }),
    (10, "equal texts with other ids are another conversation", "A* B*", |case| {
        let with = |id: &str| json!({ "type": "message", "id": id, "role": "user", "content": [{ "type": "input_text", "text": "hi" }] });
        let of = [("session-id", "s")];
        case.ask_with(CODEX, &of, &[with("msg_1")], &json!({}), &[], &Status(500));
        case.ask(CODEX, &of, &[with("msg_2")], &Wire::Responses.text("hello", 1));
    }),
    (11, "results come in the order in which tools end", "A* A A", |case| {
        let calls = [call("t1", json!({})), call("t2", json!({}))];
        let called = json!({ "role": "assistant", "content": calls });
        let given = |ids: [&str; 2]| json!({ "role": "user", "content": ids.map(|id| result(id, id)) });
        case.ask(CLAUDE, &session("s"), &[user("hi")], &calls);
        case.ask(CLAUDE, &session("s"), &[user("hi"), called.clone(), given(["t2", "t1"])], &[text("done")]);
        case.say("s", &[user("hi"), called, given(["t1", "t2"]), model("done"), user("on")], "yes");
    }),
    (
        11,
        "calls of one answer come back in turn, each with its result; or only the first of them",
        "A* A A B* B",
        |case| {
            let [one, two] = ["toolu_01A09q90q", "toolu_01A09q91q"].map(|id| call(id, json!({ "id": id })));
            let said = |call: &Value| json!({ "role": "assistant", "content": [call] });
            let given =
                |call: &Value| json!({ "role": "user", "content": [result(call["id"].as_str().unwrap(), "ok")] });
            let mut list = vec![user("hi"), said(&one), given(&one), said(&two), given(&two)];
            case.ask(CLAUDE, &session("s"), &[user("hi")], &[one.clone(), two.clone()]);
            case.say("s", &list, "done");
            list.extend([model("done"), user("on")]);
            case.say("s", &list, "yes");
            assert_eq!(
                case.shown(0).iter().filter(|line| line.starts_with("result")).count(),
                2,
                "{:?}",
                case.shown(0)
            );
            case.ask(CLAUDE, &session("t"), &[user("hi")], &[one.clone(), two.clone()]);
            case.say("t", &[user("hi"), said(&one), given(&one)], "done");
            assert_eq!(case.shown(1).iter().filter(|line| line.starts_with("call")).count(), 1, "{:?}", case.shown(1));
        },
    ),
    (12, "a reference stands for what has its id", "A* A", |case| {
        let said = Wire::Responses.text("hello", 1);
        case.ask(CODEX, &[], &[item("user", "hi")], &said);
        let reference = json!({ "type": "item_reference", "id": said[0]["id"] });
        case.ask(CODEX, &[], &[item("user", "hi"), reference, item("user", "on")], &Wire::Responses.text("yes", 2));
    }),
    (12, "a request goes on after the response that it names", "A* A A! B< C*", |case| {
        let said = |text: &str| Wire::Responses.text(text, 9);
        let after = |id: &str| json!({ "previous_response_id": id });
        case.ask(CODEX, &[], &[item("user", "hi")], &said("hello"));
        case.ask_with(CODEX, &[], &[item("user", "on")], &after("resp_1"), &[], &Status(500));
        case.ask_with(CODEX, &[], &[item("user", "on")], &after("resp_1"), &said("yes"), &Whole);
        assert_eq!(case.shown(0), ["user: hi", "assistant: hello", "user: on", "assistant: yes"]);
        case.ask_with(CODEX, &[], &[item("user", "other")], &after("resp_1"), &said("no"), &Whole);
        assert_eq!(case.shown(1), ["user: hi", "assistant: hello", "user: other", "assistant: no"]);
        case.ask_with(CODEX, &[], &[item("user", "on")], &after("resp_unknown"), &said("yes"), &Whole);
        assert!(case.tags(2).contains(&"parent-unknown".to_owned()), "{:?}", case.tags(2));
    }),
    (12, "a provider's conversation holds what came before", "A* A B*", |case| {
        let of = |name: &str| json!({ "conversation": name });
        let said = |text: &str| Wire::Responses.text(text, 9);
        case.ask_with(CODEX, &[], &[item("user", "hi")], &of("conv_1"), &said("hello"), &Whole);
        case.ask_with(CODEX, &[], &[item("user", "on")], &of("conv_1"), &said("yes"), &Whole);
        case.ask_with(CODEX, &[], &[item("user", "on")], &of("conv_2"), &said("yes"), &Whole);
        assert_eq!(case.shown(0), ["user: hi", "assistant: hello", "user: on", "assistant: yes"]);
    }),
    (13, "a rewritten past goes on, and is not stored again", "A* A A~ A", |case| {
        let calls = json!({ "role": "assistant", "content": [call("t1", json!({}))] });
        let given = |text: &str| json!({ "role": "user", "content": [result("t1", text)] });
        case.ask(CLAUDE, &session("s"), &[user("hi")], &[call("t1", json!({}))]);
        case.say("s", &[user("hi"), calls.clone(), given("a long result")], "done");
        let cleared = [user("hi"), calls, given("[cleared]"), model("done"), user("on")];
        case.say("s", &cleared, "yes");
        let mut on = cleared.to_vec();
        on.extend([model("yes"), user("more")]);
        case.say("s", &on, "end");
        let shown = case.shown(0);
        assert_eq!(shown[2..4], ["result a long result", "assistant: done"], "{shown:?}");
        assert_eq!(shown.len(), 8, "{shown:?}");
    }),
    (13, "beside a call of the same session, and in another window", "A* A B* A~ C< A~", |case| {
        let tools = json!({ "tools": [{ "name": "Bash" }] });
        let called = json!({ "role": "assistant", "content": [call("t1", json!({}))] });
        let given = |text: &str| json!({ "role": "user", "content": [result("t1", text)] });
        let ask = |case: &mut Case, list: &[Value], more: &Value, said: Value| {
            case.ask_with(CLAUDE, &session("s"), list, more, &[said], &Whole);
        };
        ask(case, &[user("hi")], &tools, call("t1", json!({})));
        ask(case, &[user("hi"), called.clone(), given("a long result")], &tools, text("one"));
        // A tool asks a model.
        ask(case, &[user("a page")], &json!({}), text("it says this"));
        assert!(case.tags(1).contains(&"kind:side".to_owned()), "{:?}", case.tags(1));
        let mut list = vec![user("hi"), called, given("[cleared]"), model("one"), user("on")];
        ask(case, &list, &tools, text("two"));
        let mut other = list.clone();
        other[4] = user("other");
        ask(case, &other, &tools, text("three"));
        list[2] = given("[cleared again]");
        list.extend([model("two"), user("more")]);
        ask(case, &list, &tools, text("four"));
    }),
    (14, "what the provider left out of the request is in the answer", "A*", |case| {
        let edits = json!({ "applied_edits": [{ "type": "clear_tool_uses_20250919", "cleared_tool_uses": 3 }] });
        let mut events = Wire::Anthropic.events(&[text("hello")], 1);
        let at = events.len() - 2;
        let delta = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "context_management": edits,
            "usage": { "output_tokens": 5 } });
        events[at] = format!("event: message_delta\ndata: {delta}\n\n");
        let more = json!({ "context_management": { "edits": [{ "type": "clear_tool_uses_20250919" }] } });
        let headers = [("x-claude-code-session-id", "s"), ("anthropic-beta", "context-management-2025-06-27")];
        let body = Case::body(CLAUDE, &[user("hi")], &more);
        let exchange = case.recorder.ask(CLAUDE, &headers, &body, Reply::of_events(&events)).exchange;
        case.draw(&exchange);
        let answer = &case.recorder.messages(&case.letters[0])[1];
        assert!(answer.to_string().contains("cleared_tool_uses"), "{answer}");
        assert_eq!(answer["convo"]["headers"]["anthropic-beta"], "context-management-2025-06-27");
        assert_eq!(answer["convo"]["fields"]["context_management"]["is"], more["context_management"]);
    }),
    (15, "of two calls at one place one goes on, and one leaves", "A* A B<", |case| {
        case.say("s", &[user("hi")], "hello");
        let list = |text: &str| [user("hi"), model("hello"), user(text)];
        let begin = |case: &Case, said: &str, list: &[Value], number: usize| {
            let events = Wire::Anthropic.events(&[text(said)], number);
            let reply =
                events[1..].iter().fold(Reply::stream().then(&events[0]).wait(1), |reply, event| reply.then(event));
            let body = Case::body(CLAUDE, list, &json!({})).to_string();
            case.recorder.begin(case.recorder.client(), CLAUDE, &session("s"), body.as_bytes(), reply.end())
        };
        let mut first = begin(case, "one", &list("a"), 10);
        first.until(b"message_start");
        // It is stored beside the traffic: the second one comes after it.
        case.recorder.placed(first.answer.header("x-convo-exchange").unwrap());
        let mut second = begin(case, "two", &list("b"), 11);
        second.until(b"message_start");
        case.recorder.go_on();
        for mut open in [first, second] {
            let is_whole = open.end();
            case.draw(&passed(open, is_whole).exchange);
        }
        assert_eq!(case.shown(0), ["user: hi", "assistant: hello", "user: a", "assistant: one"]);
        assert_eq!(case.shown(1), ["user: hi", "assistant: hello", "user: b", "assistant: two"]);
    }),
    (15, "all choices are stored, and the echo says which one lives", "A* A", |case| {
        let chunk = |index: usize, delta: Value, finish: Option<&str>| {
            let choice = json!({ "index": index, "delta": delta, "finish_reason": finish });
            format!("data: {}\n\n", json!({ "id": "chatcmpl-1", "model": "m", "choices": [choice] }))
        };
        let mut events = Vec::new();
        for (index, said) in [(0, "zero"), (1, "one"), (0, " is"), (1, " too")] {
            events.push(chunk(index, json!({ "content": said }), None));
        }
        events.extend([0, 1].map(|index| chunk(index, json!({}), Some("stop"))));
        events.push("data: [DONE]\n\n".to_owned());
        let of = [("x-session-id", "s")];
        let body = Case::body(CHAT, &[user("hi")], &json!({ "n": 2 }));
        let exchange = case.recorder.ask(CHAT, &of, &body, Reply::of_events(&events)).exchange;
        case.draw(&exchange);
        let said = case.recorder.messages(&case.letters[0]);
        let texts: Vec<_> = said.iter().map(|message| message["chunks"][0]["text"].as_str().unwrap()).collect();
        assert_eq!(texts, ["hi", "zero is", "one too"]);
        assert_eq!(said[2]["convo"], json!({ "exchange": exchange, "choice": 1 }));
        case.ask(CHAT, &of, &[user("hi"), model("one too"), user("on")], &[model("yes")]);
        assert_eq!(case.shown(0), ["user: hi", "assistant: one too", "user: on", "assistant: yes"]);
    }),
    (15, "of an answer again the choice that lives is shown, not the others", "A* A B<", |case| {
        let chunk = |index: usize, delta: Value, finish: Option<&str>| {
            let choice = json!({ "index": index, "delta": delta, "finish_reason": finish });
            format!("data: {}\n\n", json!({ "id": "chatcmpl-1", "model": "m", "choices": [choice] }))
        };
        let said = |index: usize, said: &str| chunk(index, json!({ "content": said }), None);
        let end = |index: usize| chunk(index, json!({}), Some("stop"));
        let events = [said(0, "zero"), said(1, "one"), end(0), end(1), "data: [DONE]\n\n".to_owned()];
        let of = [("x-session-id", "s")];
        let body = Case::body(CHAT, &[user("hi")], &json!({ "n": 2 }));
        let exchange = case.recorder.ask(CHAT, &of, &body, Reply::of_events(&events)).exchange;
        case.draw(&exchange);
        for answer in ["a", "b"] {
            case.ask(CHAT, &of, &[user("hi"), model("one"), user("on")], &[model(answer)]);
        }
        assert_eq!(case.shown(1), ["user: hi", "assistant: one", "user: on", "assistant: b"]);
    }),
    (
        16,
        "what the system says at the beginning of a chat surrounds it, where no session is named",
        "A* A~ A~",
        |case| {
            let long = |number: u32| {
                format!("Answer {number}, and it is long enough to be nobody else's, whoever it is that asks.")
            };
            let mut list = vec![user("hi")];
            for number in 0..3 {
                let system = json!({ "role": "system", "content": format!("It is 10:0{number}.") });
                case.chat(&[&[system], &list[..]].concat(), &json!({}), &long(number));
                list.extend([model(&long(number)), user("on")]);
            }
            assert_eq!(case.shown(0).len(), 7, "{:?}", case.shown(0));
            let answer = case.recorder.messages(&case.letters[0]).pop().unwrap();
            assert!(answer["convo"]["rewritten"]["items"].get("0").is_some(), "{answer}");
        },
    ),
    (16, "messages of the system in the middle are part of the order", "A* A B*", |case| {
        let system = |text: &str| json!({ "role": "system", "content": text });
        case.say("s", &[user("hi"), system("skills")], "hello");
        case.say("s", &[user("hi"), system("skills"), model("hello"), user("on"), system("more")], "yes");
        case.say("t", &[user("hi"), model("hello"), user("on")], "yes");
    }),
    (17, "what is no call of a model is no conversation", "", |case| {
        let paths =
            ["/v1/messages/count_tokens", "/v1/embeddings", "/v1beta/models/m:countTokens", "/v1/files", "/v1/batches"];
        for path in paths {
            let passed =
                case.recorder.ask(path, &session("s"), &json!({ "messages": [user("hi")] }), Reply::json(&json!({})));
            assert_eq!(passed.status, 200, "{path}");
            let found = case.recorder.client().get(&format!("/api/v1/exchanges/{}", passed.exchange));
            assert_eq!(found.status, 404, "{path}: {}", found.text());
        }
        assert!(case.recorder.conversations().is_empty());
    }),
];

/// Both attempts end whole, and the client kept the first one, then goes on from the second in another tab.
fn both_attempts(case: &mut Case) {
    let begin = |case: &Case, said: &str, number: usize| {
        let events = Wire::Anthropic.events(&[text(said)], number);
        let reply = events[1..].iter().fold(Reply::stream().then(&events[0]).wait(1), |reply, event| reply.then(event));
        let body = Case::body(CLAUDE, &[user("hi")], &json!({})).to_string();
        case.recorder.begin(case.recorder.client(), CLAUDE, &session("s"), body.as_bytes(), reply.end())
    };
    let mut first = begin(case, "the first", 1);
    first.until(b"message_start");
    // It is stored beside the traffic: the second one comes after it.
    case.recorder.placed(first.answer.header("x-convo-exchange").unwrap());
    let mut second = begin(case, "the second", 2);
    second.until(b"message_start");
    // Both ask before either has an answer.
    case.recorder.placed(second.answer.header("x-convo-exchange").unwrap());
    case.recorder.go_on();
    for mut open in [first, second] {
        let is_whole = open.end();
        case.draw(&passed(open, is_whole).exchange);
    }
    case.say("s", &[user("hi"), model("the first"), user("on")], "yes");
    assert_eq!(case.shown(0), ["user: hi", "assistant: the first", "user: on", "assistant: yes"]);
    case.say("s", &[user("hi"), model("the second"), user("other")], "no");
    assert_eq!(case.shown(1), ["user: hi", "assistant: the second", "user: other", "assistant: no"]);
    case.say("s", &[user("hi"), model("the first"), user("on"), model("yes"), user("more")], "end");
}

/// Each row is drawn as it says.
pub(super) fn check(rows: &[Row]) {
    let mut wrong = Vec::new();
    for (point, what, wanted, calls) in rows {
        let outcome = std::panic::catch_unwind(|| {
            let mut case = Case::open();
            calls(&mut case);
            case.drawn.join(" ")
        });
        match outcome {
            Ok(drawn) if drawn == *wanted => {}
            Ok(drawn) => wrong.push(format!("{point}, {what}: drawn {drawn}, wanted {wanted}")),
            Err(_) => wrong.push(format!("{point}, {what}: above")),
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn each_point_of_what_makes_a_conversation_holds() {
    check(ROWS);
    let points: std::collections::BTreeSet<u32> = ROWS.iter().map(|(point, ..)| *point).collect();
    assert!(points.into_iter().eq(1..=17));
}

/// What is done with calls whose client names no session.
#[test]
fn settings_say_what_is_done_without_a_session() {
    for (setting, drawn) in [("match", ["new", "continued"]), ("new", ["new", "new"]), ("none", ["", ""])] {
        let recorder = Recorder::with("memory:", &format!("without_session = \"{setting}\"\n"), &[]);
        let wire = Wire::Chat;
        let first = vec![user("hi")];
        let answer = "A long answer of a model, that nobody else has given by chance, word by word.";
        let second = vec![user("hi"), model(answer), user("on")];
        let ask = |list: &[Value], headers: &[(&str, &str)]| {
            let reply = Reply::json(&wire.whole(&[model(answer)], list.len()));
            let body = json!({ "model": "m", "messages": list });
            recorder.settled(&recorder.ask(CHAT, headers, &body, reply).exchange)
        };
        let got = [ask(&first, &[]), ask(&second, &[])];
        assert_eq!(
            got.clone().map(|settled| settled["how"].as_str().unwrap_or_default().to_owned()),
            drawn,
            "{setting}"
        );
        let state = if setting == "none" { "no_session" } else { "complete" };
        assert!(got.iter().all(|settled| settled["state"] == state), "{setting}: {got:?}");
        // Who names a session has it.
        let named = [ask(&first, &[("x-session-id", "s")]), ask(&second, &[("x-session-id", "s")])];
        assert_eq!((&named[0]["how"], &named[1]["how"]), (&json!("new"), &json!("continued")), "{setting}");
    }
}
