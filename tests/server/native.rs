//! The native API.

use serde_json::{Value, json};

use crate::common::http::Client;
use crate::common::running::Running;
use crate::openai::conversation;

const CHAT: &str = "/api/v1/conversations/chat-42";

fn user(text: &str) -> Value {
    json!({ "role": "user", "chunks": [{ "type": "text", "text": text }] })
}

fn say(client: &Client, path: &str, text: &str) -> Value {
    client.post(&format!("{path}/messages"), &user(text)).ok()
}

#[test]
fn messages_are_appended_and_read() {
    let server = Running::open();
    let client = &server.client;
    let receipt = say(client, CHAT, "one");
    assert_eq!(
        (&receipt["first_seq"], &receipt["message_indexes"], &receipt["durable"]),
        (&json!(1), &json!([0]), &json!(true))
    );
    let many = client.post(&format!("{CHAT}/messages"), &json!([user("two"), user("three")])).ok();
    assert_eq!(many["message_indexes"], json!([1, 2]));
    let lines = format!("{}\n\n{}\n", user("four"), user("five"));
    let lines =
        client.send("POST", &format!("{CHAT}/messages"), &[("content-type", "application/x-ndjson")], lines.as_bytes());
    assert_eq!(lines.ok()["message_indexes"], json!([3, 4]));
    let texts = |query: &str| {
        let list = client.get(&format!("{CHAT}/messages{query}")).ok();
        let text = |message: &Value| message["chunks"][0]["text"].as_str().unwrap().to_owned();
        list["messages"].as_array().unwrap().iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(texts(""), ["one", "two", "three", "four", "five"]);
    assert_eq!(
        (texts("?from=1&limit=2"), texts("?newest=1")),
        (vec!["two".to_owned(), "three".to_owned()], vec!["five".to_owned()])
    );
    assert_eq!(client.get(&format!("{CHAT}/messages/2")).ok()["chunks"][0]["text"], "three");
    let page = client.get(&format!("{CHAT}/messages?limit=2")).ok();
    assert_eq!((&page["next"], client.get(&format!("{CHAT}/messages?from=3")).ok().get("next")), (&json!(2), None));
    for query in ["limit=1&limit=2", "newest=1&limit=x", "newest=1&from=-1", "newest=1&newest=1"] {
        client.get(&format!("{CHAT}/messages?{query}")).code(400);
    }
    client.get(&format!("{CHAT}/messages/9")).code(404);
    client.get(&format!("{CHAT}/messages/x")).code(400);
    let entries = client.get(&format!("{CHAT}/entries?since=3&limit=1")).ok();
    assert_eq!(
        entries["entries"].as_array().unwrap().iter().map(|entry| entry["seq"].as_u64().unwrap()).collect::<Vec<_>>(),
        [4]
    );
    assert_eq!(client.get(&format!("{CHAT}/entries?since=99")).code(410), "cursor_out_of_range");
    let table = [
        (json!([]), "invalid_input"),
        (json!({ "role": "bot", "chunks": [] }), "invalid_value"),
        (json!([user("x"), { "role": "user", "chunks": [{ "type": "text" }] }]), "invalid_value"),
        (json!({ "role": "user", "chunks": [], "conversation": "other" }), "invalid_value"),
    ];
    for (body, code) in table {
        assert_eq!(client.post(&format!("{CHAT}/messages"), &body).code(400), code, "{body}");
    }
    let answer = client
        .post(&format!("{CHAT}/messages"), &json!([user("x"), { "role": "user", "chunks": [{ "type": "text" }] }]));
    assert_eq!(answer.json()["error"]["param"], "messages[1].chunks[0].text");
    client.send("POST", &format!("{CHAT}/messages"), &[], b"{").code(400);
    client.get(&format!("{CHAT}/messages?newst=1")).code(400);
    assert_eq!(texts("").len(), 5);
}

#[test]
fn half_characters_and_depth_are_the_same_in_every_form_of_an_append() {
    let server = Running::open();
    let client = &server.client;
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let message = |text: &str, more: &str| {
        format!(r#"{{"role":"user","chunks":[{{"type":"text","text":"{text}","mine":{more}}}],"of_mine":{more}}}"#)
    };
    let half = r#"{"a":"\ud800"}"#;
    /// A name, a type of body, and the body that has a message in this form.
    type Form = (&'static str, &'static str, fn(&str) -> String);
    let forms: [Form; 4] = [
        ("one", "application/json", str::to_owned),
        ("array", "application/json", |message| format!("[{message}]")),
        ("lines", "application/x-ndjson", |message| format!("{message}\n")),
        ("changing", "application/json", |message| format!(r#"{{"messages":[{message}],"title":"t"}}"#)),
    ];
    for (name, kind, form) in forms {
        let path = format!("/api/v1/conversations/{name}/messages");
        let send = |message: &str| client.send("POST", &path, &[("content-type", kind)], form(message).as_bytes());
        // What is unknown is kept as it is, also where half a character in a text is replaced.
        assert_eq!(send(&message("whole", half)).ok().get("report"), None, "{name}");
        let report = send(&message(r"a\ud800b", half)).ok()["report"].clone();
        assert_eq!(report[0]["rule"], "surrogate_replaced", "{name}: {report}");
        assert_eq!(report[0]["place"], "messages[0].chunks[0]", "{name}: {report}");
        send(&message("deep", &deep(128))).ok();
        let stored = client.get(&path).text();
        assert_eq!(stored.matches(&format!(r#""of_mine":{half}"#)).count(), 2, "{name}: {stored}");
        assert!(stored.contains("a\u{fffd}b") && stored.contains(r#""text":"a\ud800b""#), "{name}: {stored}");
        // Each message has its own depth; what is too deep is named, and nothing is stored.
        let refused = send(&message("deeper", &deep(129)));
        assert_eq!(refused.code(400), "invalid_value", "{name}");
        assert_eq!(refused.json()["error"]["param"], "messages[0].chunks[0].mine", "{name}: {}", refused.text());
        assert_eq!(client.get(&path).text(), stored, "{name}");
    }
    // What has no room for half a character says where it is.
    let places = [
        ("POST", "/api/v1/conversations/one/messages", r#"{"messages":[],"title":"a\ud800"}"#, "title"),
        (
            "POST",
            "/api/v1/conversations/one/messages",
            r#"{"messages":[],"tags":{"add":["x","\udfff"]}}"#,
            "tags.add[1]",
        ),
        (
            "POST",
            "/api/v1/conversations/one/messages",
            r#"{"messages":[],"metadata":{"a":[{"\ud800":1}]}}"#,
            "metadata.a[0].<key>",
        ),
        ("PUT", "/api/v1/conversations/one/metadata", r#"{"a":{"b":"\ud800"}}"#, "a.b"),
        ("PUT", "/api/v1/conversations/one/title", r#"{"title":"\ud800"}"#, "title"),
        ("POST", "/v1/conversations", r#"{"items":[{"role":"user","content":"a\ud800"}]}"#, "items[0].content"),
    ];
    let before = client.get("/api/v1/conversations/one").text();
    for (verb, path, body, place) in places {
        let refused = client.send(verb, path, &[], body.as_bytes());
        assert_eq!(refused.code(400), "invalid_json", "{body}");
        assert_eq!(refused.json()["error"]["param"], place, "{}", refused.text());
    }
    let metadata = format!(r#"{{"messages":[],"metadata":{{"a":{}}}}}"#, deep(128));
    assert_eq!(
        client.send("POST", "/api/v1/conversations/one/messages", &[], metadata.as_bytes()).code(400),
        "invalid_json"
    );
    assert_eq!(client.get("/api/v1/conversations/one").text(), before);
}

#[test]
fn appends_expect_and_repeat() {
    let server = Running::open();
    let client = &server.client;
    let append = |query: &str, key: Option<&str>, text: &str| {
        let headers: Vec<_> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
        client.send("POST", &format!("{CHAT}/messages{query}"), &headers, user(text).to_string().as_bytes())
    };
    append("?expect=new", None, "a").ok();
    assert_eq!(append("?expect=new", None, "a").code(409), "name_taken");
    let stale = append("?expect=0", None, "b");
    assert_eq!((stale.code(412).as_str(), &stale.json()["error"]["details"]["actual"]), ("stale_head", &json!(1)));
    let first = append("?expect=1", Some("k"), "b").ok();
    let again = append("?expect=1", Some("k"), "b").ok();
    assert_eq!((&again["first_seq"], &again["duplicate"]), (&first["first_seq"], &json!(true)));
    assert_eq!(append("", Some("k"), "c").code(422), "key_reused");
    // SDKs would try a conflict again, of their own accord.
    assert_eq!(append("?expect=new", None, "a").header("x-should-retry"), Some("false"));
    append("?expect=x", None, "a").code(400);
    let cursor = |client: &Client| client.get(&format!("{CHAT}/entries")).ok()["cursor"].as_str().unwrap().to_owned();
    let (old, last) = (cursor(client), client.get(CHAT).ok()["last_seq"].as_u64().unwrap());
    append(&format!("?expect={old}"), None, "c").ok();
    assert_eq!(append(&format!("?expect={old}"), None, "c").code(412), "stale_head");
    client.delete(CHAT).ok();
    (0..last).for_each(|_| _ = append("", None, "another's").ok());
    assert_eq!(append(&format!("?expect={old}"), None, "c").code(410), "stale_cursor");
    append(&format!("?expect={}", cursor(client)), None, "c").ok();
    assert_eq!(append("?durability=buffered", None, "d").ok()["durable"], false);
    append("?durability=lazy", None, "d").code(400);
}

#[test]
fn conversations_have_titles_tags_and_metadata() {
    let server = Running::open();
    let client = &server.client;
    let made = client
        .post(
            "/api/v1/conversations",
            &json!({ "key": "chat-42", "title": "Plans", "tags": ["work"], "metadata": { "b": 1, "a": 2 } }),
        )
        .ok();
    assert_eq!((&made["title"], &made["tags"], &made["key"]), (&json!("Plans"), &json!(["work"]), &json!("chat-42")));
    assert_eq!(client.post("/api/v1/conversations", &json!({ "key": "chat-42" })).code(409), "name_taken");
    client.post("/api/v1/conversations", &json!({ "kye": "x" })).code(400);
    client.put(&format!("{CHAT}/title"), &json!({ "title": "Other" })).ok();
    client.put(&format!("{CHAT}/metadata"), &json!({ "c": [1] })).ok();
    assert_eq!(client.put(&format!("{CHAT}/metadata"), &json!([])).code(400), "invalid_type");
    let tags = client.post(&format!("{CHAT}/tags"), &json!({ "add": ["later"], "remove": ["work"] })).ok();
    assert_eq!(tags["tags"], json!(["later"]));
    let now = client.get(CHAT).ok();
    assert_eq!(
        (&now["title"], &now["tags"], &now["metadata"]),
        (&json!("Other"), &json!(["later"]), &json!({ "c": [1] }))
    );
    let list =
        |query: &str| client.get(&format!("/api/v1/conversations?{query}")).ok()["items"].as_array().unwrap().len();
    assert_eq!((list("tag=later"), list("tag=work"), list("title=oth"), list("title=x")), (1, 0, 1, 0));
    assert_eq!(client.delete(CHAT).ok()["deleted"], true);
    client.get(CHAT).code(404);
}

#[test]
fn pages_of_the_list() {
    let server = Running::open();
    let client = &server.client;
    for at in 0..12 {
        say(client, &format!("/api/v1/conversations/c{at}"), "x");
    }
    let (mut keys, mut after) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/api/v1/conversations?limit=5{after}")).ok();
        keys.extend(page["items"].as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(keys, (0..12).rev().map(|at| format!("c{at}")).collect::<Vec<_>>());
}

#[test]
fn forks_rewinds_and_removals() {
    let server = Running::open();
    let client = &server.client;
    ["one", "two", "three"].iter().for_each(|text| _ = say(client, CHAT, text));
    let fork = client.post(&format!("{CHAT}/fork"), &json!({ "at_seq": 2, "key": "fork" })).ok();
    assert_eq!((&fork["parent"]["at_seq"], &fork["messages"]), (&json!(2), &json!(2)));
    let count = |path: &str| client.get(&format!("{path}/messages")).ok()["messages"].as_array().unwrap().len();
    assert_eq!(count("/api/v1/conversations/fork"), 2);
    client.post(&format!("{CHAT}/rewind"), &json!({ "to": 2 })).ok();
    client.post(&format!("{CHAT}/rewind"), &json!({ "to": 7 })).code(404);
    client.delete(&format!("{CHAT}/messages/0")).ok();
    client.delete(&format!("{CHAT}/messages/0?chunk=x")).code(400);
    assert_eq!(count(CHAT), 1);
    client.post(&format!("{CHAT}/summaries"), &json!({ "through": 1, "text": "They counted." })).ok();
    assert_eq!(client.delete(CHAT).ok()["deleted"], true);
    assert_eq!(count("/api/v1/conversations/fork"), 2, "a fork keeps what it shares");
    assert_eq!(client.post(&format!("{CHAT}/messages"), &user("x")).code(409), "shared_by_forks");
}

/// What is redacted is gone from what both APIs show, and so are the parts of an item, one by one.
#[test]
fn a_redaction_erases() {
    let server = Running::open();
    let (client, path) = (&server.client, conversation(&server.client));
    let parts = json!([{ "type": "input_text", "text": "secret one" }, { "type": "input_text", "text": "two" }]);
    let items = json!([
        { "role": "user", "content": parts },
        { "type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{\"secret\": 1}" },
        { "role": "assistant", "content": "secret three" },
    ]);
    client.post(&format!("{path}/items"), &json!({ "items": items })).ok();
    let native = path.replace("/v1/", "/api/v1/");
    let redact = |message: u32, chunk: u32| {
        client.post(&format!("{native}/messages/{message}/redact?chunk={chunk}"), &json!({})).ok()
    };
    for (message, chunk) in [(0, 0), (1, 0), (1, 1)] {
        redact(message, chunk);
    }
    let listed = client.get(&format!("{path}/items?order=asc")).ok();
    assert!(!listed.to_string().contains("secret"), "{listed}");
    assert!(listed.to_string().contains("two") && listed["data"].as_array().unwrap().len() == 3, "{listed}");
    for place in ["messages", "entries"] {
        let shown = client.get(&format!("{native}/{place}")).text();
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[test]
fn prompts_and_next_steps() {
    let server = Running::open();
    let client = &server.client;
    let call = json!({ "role": "assistant", "chunks": [{ "type": "tool_call", "id": "c1", "name": "ls", "arguments": "{}" }] });
    say(client, CHAT, "list");
    client.post(&format!("{CHAT}/messages"), &call).ok();
    let next = client.get(&format!("{CHAT}/next")).ok();
    assert_eq!((&next["step"], &next["calls"][0]["name"]), (&json!("run_tools"), &json!("ls")));
    let prompt = client.get(&format!("{CHAT}/prompt?for=openai-chat&model=gpt-5")).ok();
    assert_eq!(prompt["request"]["messages"][2]["role"], "tool", "an open call is answered");
    assert_eq!(prompt["report"].as_array().unwrap().len(), 1, "and reported");
    let tools = json!({ "tools": [{ "name": "ls", "parameters": { "type": "object" } }] });
    let with = client.post(&format!("{CHAT}/prompt?for=anthropic&window_tokens=1000"), &tools).ok();
    assert_eq!(with["request"]["tools"][0]["name"], "ls");
    let full = json!({ "role": "tool", "chunks": [{ "type": "tool_result", "tool_call_id": "c1", "content": "a long list" }] });
    client.post(&format!("{CHAT}/messages"), &full).ok();
    let short = client.get(&format!("{CHAT}/prompt?for=openai-chat&max_result_bytes=6")).ok();
    let result = short["request"]["messages"][2]["content"].as_str().unwrap();
    assert!(result.starts_with("a long\n") && result.contains('5'), "{result}");
    let thought = json!({ "role": "assistant", "chunks": [{ "type": "thinking", "text": "hm" }, { "type": "text", "text": "Two." }] });
    client.post(&format!("{CHAT}/messages"), &thought).ok();
    let thinks = |query: &str| {
        let prompt = client.get(&format!("{CHAT}/prompt?for=openai-chat&thinking=tagged{query}")).ok();
        prompt["request"].to_string().contains("<think>")
    };
    assert!(thinks("") && thinks("&thinking_turns=1") && !thinks("&thinking_turns=0"));
    for query in ["max_result_bytes=-1", "max_result_bytes=x", "thinking_turns=-1", "thinking_turns=1&thinking_turns=2"]
    {
        client.get(&format!("{CHAT}/prompt?for=anthropic&{query}")).code(400);
    }
    for query in ["", "?for=openai", "?for=anthropic&last=0", "?for=anthropic&thinking=x", "?for=anthropic&lst=1"] {
        client.get(&format!("{CHAT}/prompt{query}")).code(400);
    }
    client.post("/api/v1/conversations", &json!({ "key": "empty" })).ok();
    assert_eq!(client.get("/api/v1/conversations/empty/prompt?for=anthropic").code(422), "nothing_to_send");
}

#[test]
fn what_one_api_writes_the_other_reads() {
    let server = Running::open();
    let client = &server.client;
    say(client, CHAT, "hello");
    let answer = json!({ "role": "assistant", "chunks": [
        { "type": "thinking", "text": "Hm", "signature": "s" }, { "type": "text", "text": "I look." },
        { "type": "tool_call", "id": "c1", "name": "ls", "arguments": "{ }" },
        { "type": "opaque", "provider": "anthropic", "kind": "x", "json": {} } ] });
    client.post(&format!("{CHAT}/messages"), &answer).ok();
    client
        .post(
            &format!("{CHAT}/messages"),
            &json!({ "role": "tool", "chunks": [{ "type": "tool_result", "tool_call_id": "c1", "content": "a b" }] }),
        )
        .ok();
    let id = client.get(CHAT).ok()["conversation"].as_str().unwrap().replace('-', "");
    let path = format!("/v1/conversations/conv_{id}");
    let items = client.get(&format!("{path}/items?order=asc")).ok();
    let kinds: Vec<_> = items["data"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "reasoning", "message", "function_call", "function_call_output"]);
    for item in items["data"].as_array().unwrap() {
        assert_eq!(&client.get(&format!("{path}/items/{}", item["id"].as_str().unwrap())).ok(), item);
    }
    // Page by page of one, in both orders, they come once each.
    for order in ["asc", "desc"] {
        let (mut seen, mut after) = (0, String::new());
        loop {
            let page = client.get(&format!("{path}/items?limit=1&order={order}{after}")).ok();
            seen += 1;
            if page["has_more"] == false {
                break;
            }
            after = format!("&after={}", page["last_id"].as_str().unwrap());
        }
        assert_eq!(seen, 5, "{order}");
    }
    // One item of the answer is removed: the others stay.
    client.delete(&format!("{path}/items/{}", items["data"][1]["id"].as_str().unwrap())).ok();
    let chunks = client.get(&format!("{CHAT}/messages/1")).ok()["chunks"].as_array().unwrap().len();
    assert_eq!(chunks, 3);
    // Ids may repeat in what came otherwise: pages go on all the same.
    let same = json!({ "role": "assistant", "chunks": [{ "type": "text", "text": "x", "id": "msg_same" }] });
    for _ in 0..3 {
        client.post("/api/v1/conversations/same/messages", &same).ok();
    }
    let id = client.get("/api/v1/conversations/same").ok()["conversation"].as_str().unwrap().replace('-', "");
    let (mut pages, mut after) = (0, String::new());
    loop {
        let page = client.get(&format!("/v1/conversations/conv_{id}/items?limit=1&order=asc{after}")).ok();
        pages += 1;
        if page["has_more"] == false || pages > 5 {
            break;
        }
        after = format!("&after={}", page["last_id"].as_str().unwrap());
    }
    assert_eq!(pages, 3);
    let found = client.get("/api/v1/find?item=msg_same").ok();
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
}

#[test]
fn requests_are_checked_and_repaired() {
    let server = Running::open();
    let client = &server.client;
    let refused = json!({ "messages": [{ "role": "user", "content": "hi" }, { "role": "tool", "tool_call_id": "c", "content": "x" }] });
    let checked = client.post("/api/v1/check?for=openai-chat", &refused).ok();
    assert_eq!((&checked["accepted"], &checked["findings"][0]["rule"]), (&json!(false), &json!("OC-08")));
    let repaired = client.post("/api/v1/repair?for=openai-chat", &refused).ok();
    assert_eq!(repaired["report"][0]["rule"], "orphan_result_removed");
    let accepted = client.post("/api/v1/check?for=openai-chat", &repaired["request"]).ok();
    assert_eq!(accepted["accepted"], true);
    let moved = client.post("/api/v1/repair?from=openai-chat&for=anthropic", &refused).ok();
    assert_eq!(moved["request"]["messages"][0]["role"], "user");
    client.send("POST", "/api/v1/check?for=openai-chat", &[], b"{").code(400);
    let targets = client.get("/api/v1/targets").ok();
    for target in targets["targets"].as_array().unwrap() {
        client.post(&format!("/api/v1/check?for={}", target.as_str().unwrap()), &json!([])).ok();
    }
}

/// Who could make a conversation of any id could take the one that another owner's key stands for.
#[test]
fn a_key_makes_a_conversation_and_an_id_does_not() {
    let (_server, clients) = Running::with_keys(&[("ada", "read,append"), ("grace", "read,append")]);
    let [ada, grace] = &clients[..] else { panic!() };
    let id = say(grace, CHAT, "x")["conversation"].as_str().unwrap().to_owned();
    for id in [id.as_str(), "0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b"] {
        assert_eq!(ada.post(&format!("/api/v1/conversations/{id}/messages"), &user("x")).code(404), "not_found");
        ada.post("/api/v1/conversations", &json!({ "key": id })).code(400);
        ada.post(&format!("{CHAT}/fork"), &json!({ "key": id })).code(400);
    }
    let mine = say(ada, CHAT, "mine")["conversation"].as_str().unwrap().to_owned();
    assert_ne!(mine, id);
    assert_eq!(say(ada, &format!("/api/v1/conversations/{mine}"), "more")["message_indexes"], json!([1]));
}

#[test]
fn a_backup_is_whole() {
    let server = Running::durable(&[]);
    let client = &server.client;
    say(client, CHAT, "kept");
    let verified = client.post("/api/v1/admin/verify", &json!({})).ok();
    assert_eq!((&verified["conversations"], &verified["problems"]), (&json!(1), &json!([])));
    assert_eq!(client.get("/api/v1/admin/health").ok()["disk_full"], false);
    let backup = client.get("/api/v1/admin/backup");
    assert_eq!(backup.status, 200);
    let file = server.dir.path().join("backup");
    std::fs::write(&file, &backup.body).unwrap();
    let backup = format!("backup:{}", file.display());
    let (exit, shown, error) = crate::common::running::run(&["--store", &backup, "--json", "show", "chat-42"], &[]);
    assert_eq!(exit, Some(0), "{error}");
    assert!(shown.contains("kept"), "{shown}");
}

/// A page ends with the message that fills its bytes, also where one append wrote all messages, and goes on after what is
/// hidden.
#[test]
fn pages_of_messages_end_early() {
    const SIZES: [usize; 6] = [9_000_000, 1, 9_000_000, 1, 1_000_000, 17_000_000];
    let server = Running::open();
    let client = &server.client;
    let pages = |path: &str| {
        let (mut pages, mut from) = (Vec::new(), 0);
        loop {
            let page = client.get(&format!("{path}/messages?from={from}&limit=1000")).ok();
            let messages = page["messages"].as_array().unwrap();
            pages.push(messages.iter().map(|message| message["index"].as_u64().unwrap()).collect::<Vec<_>>());
            assert!(pages.len() < 10, "{pages:?}");
            let Some(next) = page["next"].as_u64() else { return pages };
            from = next;
        }
    };
    for size in SIZES {
        say(client, CHAT, &"x".repeat(size));
    }
    assert_eq!(pages(CHAT), [vec![0, 1, 2], vec![3, 4, 5]]);
    client.delete(&format!("{CHAT}/messages/1")).ok();
    assert_eq!(pages(CHAT), [vec![0, 2], vec![3, 4, 5]]);
    client.delete(&format!("{CHAT}/messages/5")).ok();
    assert_eq!(pages(CHAT), [vec![0, 2], vec![3, 4]]);
    let other = "/api/v1/conversations/chat-43";
    let all: Vec<Value> = (0..1_000).map(|_| user("short")).collect();
    client.post(&format!("{other}/messages"), &json!(all)).ok();
    let read = pages(other);
    assert_eq!((read.len(), read.concat()), (1, (0..1_000).collect::<Vec<u64>>()));
}

/// Messages, and what changes with them: all or none, once.
#[test]
fn an_append_changes_the_conversation_with_it() {
    let server = Running::open();
    let client = &server.client;
    let append = |query: &str, key: Option<&str>, body: &Value| {
        let headers: Vec<_> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
        client.send("POST", &format!("{CHAT}/messages{query}"), &headers, body.to_string().as_bytes())
    };
    let first = json!({
        "messages": [user("one"), user("two")], "title": "Plans", "tags": { "add": ["a", "b"] }, "metadata": { "n": 1 },
    });
    let receipt = append("?expect=new", Some("k"), &first).ok();
    assert_eq!((&receipt["message_indexes"], &receipt["last_seq"]), (&json!([0, 1]), &json!(3)));
    let known = || {
        let chat = client.get(CHAT).ok();
        (chat["title"].clone(), chat["tags"].clone(), chat["metadata"].clone(), chat["last_seq"].clone())
    };
    assert_eq!(known(), (json!("Plans"), json!(["a", "b"]), json!({ "n": 1 }), json!(3)));
    append("?expect=3", None, &json!({ "messages": [], "metadata": { "n": 2 }, "tags": { "remove": ["a"] } })).ok();
    assert_eq!(known(), (json!("Plans"), json!(["b"]), json!({ "n": 2 }), json!(4)));
    // A repetition changes nothing; other content is none; what is refused leaves nothing.
    assert_eq!(append("?expect=new", Some("k"), &first).ok()["duplicate"], true);
    let mut other = first.clone();
    other["metadata"] = json!({ "n": 3 });
    assert_eq!(append("", Some("k"), &other).code(422), "key_reused");
    assert_eq!(append("?expect=3", None, &other).code(412), "stale_head");
    for body in [
        json!({ "messages": [user("x"), { "role": "bot", "chunks": [] }], "title": "t" }),
        json!({ "messages": [], "metadata": [] }),
        json!({ "messages": [user("x")], "tags": { "add": [" "] } }),
        json!({ "messages": [user("x")], "titel": "t" }),
        json!({ "messages": user("x") }),
        json!({ "messages": [] }),
    ] {
        append("", None, &body).code(400);
    }
    assert_eq!(known(), (json!("Plans"), json!(["b"]), json!({ "n": 2 }), json!(4)));
    // A message may have a field of this name.
    let mut message = user("three");
    message["messages"] = json!([]);
    append("", None, &message).ok();
}

#[test]
fn lists_are_filtered_and_sorted() {
    let server = Running::open();
    let client = &server.client;
    for (key, color) in [("app:1", "red"), ("app:2", "blue"), ("other", "red")] {
        let body = json!({ "messages": [user(key)], "metadata": { "color": color, "n": 1 } });
        client.post(&format!("/api/v1/conversations/{key}/messages"), &body).ok();
    }
    let keys = |query: &str| -> Vec<String> {
        let page = client.get(&format!("/api/v1/conversations?{query}")).ok();
        page["items"].as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(keys("key_prefix=app%3A"), ["app:2", "app:1"]);
    assert_eq!(keys("sort=oldest"), ["app:1", "app:2", "other"]);
    assert_eq!(keys("sort=created&metadata%5Bcolor%5D=red"), ["other", "app:1"]);
    assert_eq!(keys("metadata[n]=1&metadata[color]=blue"), ["app:2"]);
    assert_eq!(keys("until=2000-01-01"), [""; 0]);
    assert_eq!(keys("since=2000-01-01T00:00:00Z&limit=1"), ["other"]);
    for query in ["sort=title", "since=yesterday", "forked_from=app", "metadata=red", "metadata.color=red"] {
        client.get(&format!("/api/v1/conversations?{query}")).code(400);
    }
    // Under /v1, a conversation may be named by its key, and by its UUID.
    let id = client.get("/api/v1/conversations/other").ok()["conversation"].as_str().unwrap().to_owned();
    let conv = format!("conv_{}", id.replace('-', ""));
    for name in [&*id, "other", &*conv] {
        assert_eq!(client.get(&format!("/v1/conversations/{name}")).ok()["id"], *conv, "{name}");
        let after = client.get(&format!("/v1/conversations?after={name}")).ok();
        assert_eq!(after["data"].as_array().unwrap().len(), 2, "{name}");
    }
    client.get("/v1/conversations/absent").code(404);
}

#[test]
fn a_providers_messages_are_appended_as_they_are() {
    let server = Running::open();
    let client = &server.client;
    let request = json!({ "model": "m", "temperature": 1, "messages": [
        { "role": "user", "content": "What time is it?" },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": "clock", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "noon" }] },
    ] });
    let path = format!("{CHAT}/messages?from=anthropic&expect=new");
    let receipt = client.post(&path, &request).ok();
    assert_eq!((&receipt["message_indexes"], receipt.get("report")), (&json!([0, 1, 2]), None));
    let prompt = client.get(&format!("{CHAT}/prompt?for=anthropic")).ok();
    assert_eq!(prompt["request"]["messages"][1], request["messages"][1]);
    client.post(&path, &request).code(409);
    let more = json!([{ "role": "user", "content": "thanks", "strange": 1 }]);
    client.post(&format!("{CHAT}/messages?from=openai-chat"), &more).ok();
    client.post(&format!("{CHAT}/messages?from=nobody"), &more).code(400);
    assert_eq!(client.get(CHAT).ok()["messages"], 4);
}

#[test]
fn what_is_exported_is_imported_elsewhere() {
    let (one, other) = (Running::open(), Running::open());
    say(&one.client, CHAT, "hello");
    let file = one.client.get(&format!("{CHAT}/export"));
    assert_eq!((file.status, file.header("x-convo-left-out")), (200, Some("0")));
    assert!(one.client.get(&format!("{CHAT}/export?format=markdown")).text().contains("hello"));
    one.client.get(&format!("{CHAT}/export?format=sled")).code(400);
    one.client.get("/api/v1/conversations/absent/export").code(404);
    let import = |query: &str| other.client.send("POST", &format!("/api/v1/import{query}"), &[], &file.body);
    let first = import("").ok();
    assert_eq!((&first["sum"]["added"], &first["conversations"][0]["key"]), (&json!(1), &json!("chat-42")));
    assert_eq!(import("?format=transcript&branches=current").ok()["sum"]["added"], 0);
    let times = |server: &Running| server.client.get(CHAT).ok()["created_at"].as_str().unwrap().to_owned();
    assert_eq!(times(&one), times(&other));
    import("?format=pears").code(400);
    other.client.send("POST", "/api/v1/import", &[], b"[{\"apples\": 1}]").code(400);
}
