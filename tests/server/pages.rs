//! The pages, without a browser: who may see them, what is in them, and that nothing in them is obeyed. What only a browser shows
//! is in tests/pages.

use std::io::BufReader;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::http::{Answer, Client, read};
use crate::common::running::{Running, create_key, run};
use crate::common::uploads::Upload;
use crate::streams::config;

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml");
const HOSTILE: &str = "<script>alert(1)</script>\" onerror='x' &amp;\u{202e}";

/// What a browser sends.
struct Visitor {
    client: Client,
    cookie: Option<String>,
}

impl Visitor {
    fn new(client: &Client) -> Self {
        Self { client: Client { key: None, ..client.clone() }, cookie: None }
    }

    /// Somebody who is logged in with the key of a client.
    #[track_caller]
    fn of(client: &Client) -> Self {
        let mut visitor = Self::new(client);
        let answer = visitor.log_in(client.key.as_deref().unwrap());
        assert_eq!(answer.status, 303, "{}", answer.text());
        let cookie = answer.header("set-cookie").unwrap();
        visitor.cookie = cookie.split(';').next().map(str::to_owned);
        visitor
    }

    fn log_in(&self, key: &str) -> Answer {
        self.post("/pages/login", &format!("key={key}&next=%2Fpages"))
    }

    fn send(&self, method: &str, path: &str, more: &[(&str, &str)], body: &str) -> Answer {
        let mut headers = vec![HTML];
        headers.extend(self.cookie.as_deref().map(|cookie| ("cookie", cookie)));
        headers.extend(more);
        self.client.send(method, path, &headers, body.as_bytes())
    }

    fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    fn post(&self, path: &str, form: &str) -> Answer {
        let origin = format!("http://{}", self.client.address);
        self.send("POST", path, &[("origin", &origin), ("content-type", "application/x-www-form-urlencoded")], form)
    }

    /// The HTML of a page that has to be there.
    #[track_caller]
    fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        protected(&answer);
        answer.text()
    }
}

/// A page: HTML that loads nothing from elsewhere and is not kept.
#[track_caller]
fn protected(answer: &Answer) {
    let policy = answer.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    let html = answer.text();
    assert!(!html.contains("<style") && !html.contains(" style=") && !html.contains("<script>"), "{html}");
    for script in html.split("<script").skip(1) {
        let is_ours = [" src=\"/pages/assets/", " src=\"/docs/"].iter().any(|begin| script.starts_with(begin));
        assert!(is_ours, "{script}");
    }
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn user(words: &str) -> Value {
    json!({ "role": "user", "chunks": [text(words)] })
}

#[track_caller]
/// Of each target its name, the report of a prompt for it, and the page that shows this prompt. The form leaves fields empty.
fn prompts(client: &Client, visitor: &Visitor, id: &str) -> Vec<(String, Value, String)> {
    let targets = client.get("/api/v1/targets").ok();
    let prompt = |target: &Value| {
        let target = target.as_str().unwrap();
        let query = format!("for={}&model=m", target.replace('/', "%2F"));
        let report = client.get(&format!("/api/v1/conversations/{id}/prompt?{query}")).ok()["report"].clone();
        let html = visitor.page(&format!("/pages/conversations/{id}/prompt?{query}&last=&thinking="));
        (target.to_owned(), report, html)
    };
    targets["targets"].as_array().unwrap().iter().map(prompt).collect()
}

fn append(client: &Client, conversation: &str, messages: &Value) -> String {
    let receipt = client.post(&format!("/api/v1/conversations/{conversation}/messages"), messages).ok();
    receipt["conversation"].as_str().unwrap().to_owned()
}

pub(crate) const PAGES: &[&str] = &[
    "/pages",
    "/pages?q=hello",
    "/pages?tag=x",
    "/pages/conversations/ID",
    "/pages/conversations/ID?hidden=1",
    "/pages/conversations/ID?from=0&whole=1",
    "/pages/conversations/ID/log",
    "/pages/conversations/ID/log?since=1",
    "/pages/conversations/ID/prompt",
    "/pages/conversations/ID/prompt?for=gemini&model=&last=1",
    "/pages/usage",
    "/pages/usage?days=7",
    "/pages/repair",
];

#[test]
fn every_page_is_protected() {
    let (server, clients) = Running::with_keys(&[("ada", "read,append")]);
    let id = append(&clients[0], "chat", &user("hello"));
    let (inside, outside) = (Visitor::of(&clients[0]), Visitor::new(&server.client));
    for path in PAGES {
        let path = path.replace("ID", &id);
        assert!(inside.page(&path).contains("Log out"), "{path}");
        // Who is not logged in is led to the login, and from there back.
        let answer = outside.get(&path);
        let next: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
        assert_eq!((answer.status, answer.header("location")), (303, Some(&*format!("/pages/login?next={next}"))));
        assert!(!answer.text().contains("hello"));
        // A script gets no redirection.
        assert_eq!(outside.client.get(&path).status, 401);
    }
    assert_eq!(outside.client.get(&format!("/pages/conversations/{id}/events")).status, 401);
    let login = outside.page("/pages/login?next=%2Fpages%2Frepair");
    assert!(login.contains("value=\"/pages/repair\""), "{login}");
    let answer = inside.get("/pages/login?next=%2Fpages%2Frepair");
    assert_eq!((answer.status, answer.header("location")), (303, Some("/pages/repair")));
    assert_eq!(outside.get("/").header("location"), Some("/pages"));
    // Without keys nobody logs in.
    let open = Running::open();
    let id = append(&open.client, "chat", &user("hello"));
    for path in PAGES {
        let html = Visitor::new(&open.client).page(&path.replace("ID", &id));
        assert!(!html.contains("Log out"), "{path}");
    }
    assert_eq!(Visitor::new(&open.client).get("/pages/login").header("location"), Some("/pages"));
}

#[test]
fn only_pages_take_the_cookie() {
    let (_server, clients) = Running::with_keys(&[("ada", "read,append,delete,admin")]);
    let id = append(&clients[0], "chat", &user("hello"));
    let visitor = Visitor::of(&clients[0]);
    let cookie = visitor.cookie.clone().unwrap();
    for path in
        ["/v1/conversations", "/api/v1/conversations", &format!("/api/v1/conversations/{id}/events"), "/metrics"]
    {
        assert_eq!(
            visitor.client.send("GET", path, &[("cookie", &cookie)], b"").code(401),
            "invalid_api_key",
            "{path}"
        );
    }
    // And pages take no key: a program that sends one is no person.
    assert_eq!(clients[0].get("/pages").status, 401);
    // The key is not in the cookie, and what the cookie holds is no key.
    let (_, value) = cookie.split_once('=').unwrap();
    assert!(!clients[0].key.as_ref().unwrap().contains(value));
    assert_eq!(visitor.client.with_key(value).get("/v1/conversations").code(401), "invalid_api_key");
    let answer = visitor.log_in(clients[0].key.as_deref().unwrap());
    let set = answer.header("set-cookie").unwrap();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/pages", "Max-Age=43200"] {
        assert!(set.contains(attribute), "{set}");
    }
    assert!(!set.contains("Secure"), "{set}");
    // A logout ends the session itself.
    let out = visitor.post("/pages/logout", "");
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(visitor.get("/pages").status, 303);
}

pub(crate) fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn revoke_all(server: &Running) {
    let keys = server.keys();
    let keys = keys.to_str().unwrap();
    let (_, listed, _) = run(&["keys", "list", "--keys", keys, "--json"], &[]);
    for line in listed.lines() {
        let id = serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        assert_eq!(run(&["keys", "revoke", &id, "--keys", keys], &[]).0, Some(0));
    }
}

#[test]
fn a_session_ends_with_its_key() {
    let (server, clients) = Running::with_keys(&[("ada", "read,append")]);
    let visitor = Visitor::of(&clients[0]);
    visitor.page("/pages");
    revoke_all(&server);
    until("the session goes on", || visitor.get("/pages").status == 303);
    // As does a key that expires.
    let keys = server.keys();
    let soon = (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(4)).to_string();
    let args =
        ["keys", "create", "--keys", keys.to_str().unwrap(), "--owner", "ada", "--scopes", "read", "--expires", &soon];
    let (exit, secret, error) = run(&args, &[]);
    assert_eq!(exit, Some(0), "{error}");
    let short = server.client.with_key(secret.trim());
    until("the key is not noticed", || short.get("/v1/conversations").status == 200);
    let visitor = Visitor::of(&short);
    visitor.page("/pages");
    until("the session outlives its key", || visitor.get("/pages").status == 303);
}

#[test]
fn a_follower_ends_with_its_key() {
    let (server, clients) = Running::with_keys(&[("ada", "read,append")]);
    let id = append(&clients[0], "chat", &user("hello"));
    let visitor = Visitor::of(&clients[0]);
    let cookie = visitor.cookie.clone().unwrap();
    let mut page = visitor.client.follow(&format!("/pages/conversations/{id}/events"), &[("cookie", &cookie)]);
    let mut key = clients[0].follow(&format!("/api/v1/conversations/{id}/events"), &[]);
    let other = visitor.client.with_key(&create_key(&server.keys(), "ada", "read,append"));
    until("the key is not noticed", || other.get("/v1/conversations").status == 200);
    for events in [&mut page, &mut key] {
        assert_eq!(events.next().unwrap().id, Some(1));
    }
    // A logout ends what the session follows, and not what the key does.
    visitor.post("/pages/logout", "");
    append(&other, "chat", &user("secret to the session"));
    assert_eq!(page.next().unwrap().data["reason"], "unauthorized");
    assert_eq!(key.next().unwrap().id, Some(2));
    let (_, listed, _) = run(&["keys", "list", "--keys", server.keys().to_str().unwrap(), "--json"], &[]);
    let first = serde_json::from_str::<Value>(listed.lines().next().unwrap()).unwrap();
    run(&["keys", "revoke", first["id"].as_str().unwrap(), "--keys", server.keys().to_str().unwrap()], &[]);
    until("the key is still valid", || clients[0].get("/v1/conversations").status == 401);
    append(&other, "chat", &user("secret to the key"));
    let last = key.next().unwrap();
    assert_eq!((last.name.as_str(), &last.data["reason"]), ("close", &json!("unauthorized")));
}

#[test]
fn sessions_end_when_they_are_over() {
    let file = config("[pages]\nsession_hours = 0\n");
    let dir = crate::common::tempdir().unwrap();
    let keys = dir.path().join("keys.json");
    let secret = create_key(&keys, "ada", "read");
    let server = Running::start("memory:", &["--config", &file, "--keys", keys.to_str().unwrap()]);
    let visitor = Visitor::of(&server.client.with_key(&secret));
    assert_eq!(visitor.get("/pages").status, 303);
}

#[test]
fn a_login_needs_a_key_that_reads() {
    let (server, clients) = Running::with_keys(&[("ada", "append")]);
    let visitor = Visitor::new(&server.client);
    for (key, why) in [("", "wrong"), ("convo_wrong", "wrong"), (clients[0].key.as_deref().unwrap(), "scope read")] {
        let answer = visitor.log_in(key);
        assert_eq!((answer.status, answer.header("set-cookie")), (401, None), "{key}");
        assert!(answer.text().contains(why) && (key.is_empty() || !answer.text().contains(key)), "{}", answer.text());
        protected(&answer);
    }
    // A login leads to no other site.
    let reader = create_key(&server.keys(), "ada", "read");
    until("the key is not noticed", || visitor.log_in(&reader).status == 303);
    for next in ["https://evil.example", "//evil.example", "/\\evil.example", "/pages/../x%0d%0aset-cookie:a=b"] {
        let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
        let answer = visitor.post("/pages/login", &format!("key={reader}&next={next}"));
        let location = answer.header("location").unwrap();
        assert!(location == "/pages" || location.starts_with("/pages/"), "{location}");
    }
    assert!(!server.log_so_far().contains(&reader), "a key is in the log");
}

#[test]
fn the_cookie_is_secure_over_tls() {
    let (_server, clients) = Running::with_keys(&[("ada", "read")]);
    let visitor = Visitor::new(&clients[0]);
    // A proxy speaks TLS: the browser states the origin that it sees.
    let origin = format!("https://{}", visitor.client.address);
    let headers = [("origin", &*origin), ("sec-fetch-site", "same-origin")];
    let form = format!("key={}", clients[0].key.as_deref().unwrap());
    let answer = visitor.send("POST", "/pages/login", &headers, &form);
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Secure-convo_session=") && cookie.ends_with("; Secure"), "{cookie}");
    let visitor = Visitor { cookie: cookie.split(';').next().map(str::to_owned), ..visitor };
    visitor.page("/pages");
}

#[test]
fn another_owners_pages_are_as_those_that_are_not_there() {
    let (_server, clients) = Running::with_keys(&[("ada", "read,append"), ("grace", "read,append")]);
    let id = append(&clients[0], "secret-key", &user("the-secret-words"));
    let absent = "00000000-0000-7000-8000-000000000000";
    let grace = Visitor::of(&clients[1]);
    for path in PAGES.iter().chain(&["/pages/conversations/ID/events"]) {
        if !path.contains("ID") {
            assert!(!grace.get(path).text().contains("the-secret-words"), "{path}");
            continue;
        }
        let (foreign, none) = (grace.get(&path.replace("ID", &id)), grace.get(&path.replace("ID", absent)));
        assert_eq!(foreign.status, 404, "{path}");
        protected(&foreign);
        assert_eq!(foreign.text().replace(&id, "ID"), none.text().replace(absent, "ID"), "{path}");
    }
    assert_eq!(grace.get("/pages/conversations/secret-key").status, 404, "the same key of another owner");
}

#[test]
fn an_admin_looks_at_what_any_owner_has() {
    let keys = [("ada", "read,append"), ("grace", "read,append,delete"), ("root", "read,append,admin")];
    let (server, clients) = Running::with_keys(&keys);
    let id = append(&clients[0], "secret-key", &json!([user("the-secret-words"), user("more")]));
    clients[0].post("/api/v1/conversations/secret-key/tags", &json!({ "add": ["cold"] })).ok();
    append(&clients[2], "own", &user("what root said"));
    let [ada, grace, root] = [0, 1, 2].map(|at| Visitor::of(&clients[at]));
    // Only who may name an owner is asked for one.
    assert!(root.page("/pages").contains("name=\"owner\"") && !ada.page("/pages").contains("name=\"owner\""));
    assert_eq!(grace.get("/pages?owner=ada").status, 403);
    let own = root.page("/pages?owner=");
    assert!(own.contains("what root said") && !own.contains("the-secret-words"), "{own}");
    let list = root.page("/pages?owner=ada");
    assert!(list.contains("the-secret-words") && !list.contains("what root said"), "{list}");
    // Its links stay with the owner, and the page says who is logged in.
    assert!(list.contains("/pages?tag=cold&amp;owner=ada") && list.contains("<bdi>root</bdi>"), "{list}");
    assert!(root.page("/pages?tag=cold&owner=ada").contains("the-secret-words"));
    if cfg!(feature = "search") {
        assert!(root.page("/pages?q=secret&owner=ada").contains("<mark>secret</mark>"));
    }
    for path in PAGES.iter().filter(|path| path.contains("ID")) {
        let answer = root.get(&path.replace("ID", &id));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    let page = root.page(&format!("/pages/conversations/{id}"));
    assert!(page.contains("of <bdi>ada</bdi>"), "{page}");
    // A key is the reader's own, and a change needs its scope.
    assert_eq!(root.get("/pages/conversations/secret-key").status, 404);
    assert_eq!(root.post(&format!("/pages/conversations/{id}/change"), "do=delete").status, 403);
    let forked = root.post(&format!("/pages/conversations/{id}/change"), "do=fork&message=0");
    assert_eq!(forked.status, 303, "{}", forked.text());
    let owners = |visitor: &Visitor| visitor.page("/pages").matches("the-secret-words").count();
    assert_eq!((owners(&ada), owners(&root)), (2, 0), "a fork belongs to the owner of its parent");
    // The audit: who looked at what is another's, and changed it.
    let log = server.log_so_far();
    let audit: Vec<&str> = log.lines().filter(|line| line.contains("on behalf")).collect();
    for (route, status) in [("/pages", 200), ("/pages/conversations/{conversation}/change", 303)] {
        let wanted = [format!("\"route\":\"{route}\""), format!("\"status\":{status}"), "\"owner\":\"ada\"".to_owned()];
        assert!(audit.iter().any(|line| wanted.iter().all(|part| line.contains(part))), "{route}: {log}");
    }
    assert!(!audit.iter().any(|line| line.contains("\"owner\":\"root\"")), "{log}");
}

#[test]
fn forms_come_from_the_pages_alone() {
    let (server, clients) = Running::with_keys(&[("ada", "read")]);
    let visitor = Visitor::of(&clients[0]);
    let own = format!("http://{}", visitor.client.address);
    let foreign: &[&[(&str, &str)]] = &[
        &[],
        &[("origin", "null")],
        &[("origin", "https://evil.example")],
        &[("origin", "http://127.0.0.1:1")],
        &[("sec-fetch-site", "cross-site"), ("origin", &own)],
        &[("sec-fetch-site", "same-site"), ("origin", &own)],
        &[("sec-fetch-site", "none")],
    ];
    for headers in foreign {
        for path in ["/pages/repair", "/pages/login", "/pages/logout"] {
            let answer = visitor.send("POST", path, headers, &format!("key={}", clients[0].key.as_deref().unwrap()));
            assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{path} {headers:?}");
            protected(&answer);
        }
    }
    visitor.page("/pages");
    // Another site may link to a page, and not load it.
    let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    assert_eq!(visitor.send("GET", "/pages", &link, "").status, 200);
    for mode in ["no-cors", "cors"] {
        let load = [("sec-fetch-site", "same-site"), ("sec-fetch-mode", mode)];
        assert_eq!(visitor.send("GET", "/pages", &load, "").status, 403);
    }
    assert!(server.admin.is_none());
}

#[test]
fn errors_are_pages() {
    let file = config("[limits]\nrequests_per_second = 3\nbody_bytes = 1000\n");
    let server = Running::start("memory:", &["--config", &file]);
    let visitor = Visitor::new(&server.client);
    let refused = (0..20).map(|_| visitor.get("/pages")).find(|answer| answer.status == 429).unwrap();
    assert_eq!(refused.header("retry-after"), Some("1"));
    protected(&refused);
    assert!(refused.text().contains("Too many requests"), "{}", refused.text());
    // The login and the files of a page count for nobody.
    assert!((0..20).all(|_| visitor.get("/pages/assets/style.css").status == 200));
    let server = Running::start("memory:", &["--config", &config("[limits]\nbody_bytes = 1000\n")]);
    let visitor = Visitor::new(&server.client);
    let long = format!("request={}", "x".repeat(2_000));
    for (answer, status) in [
        (visitor.post("/pages/repair", &long), 413),
        (visitor.get("/pages/none"), 404),
        (visitor.get("/none"), 404),
        (visitor.get("/pages/conversations/none"), 404),
        (visitor.get("/pages/conversations/%ff"), 400),
        (visitor.get("/pages?limit=1"), 400),
        (visitor.get("/pages?after=x"), 400),
        (visitor.get("/pages/assets/none"), 404),
        (visitor.send("DELETE", "/pages", &[], ""), 405),
        (visitor.post("/pages", ""), 405),
    ] {
        assert_eq!(answer.status, status, "{}", answer.text());
        protected(&answer);
        assert!(answer.text().contains("<h1>"), "{}", answer.text());
    }
    // A program gets JSON where there is no page.
    assert_eq!(server.client.get("/none").code(404), "not_found");
    let id = append(&server.client, "chat", &user("hello"));
    assert_eq!(visitor.get(&format!("/pages/conversations/{id}?from=x")).status, 400);
    assert_eq!(visitor.get(&format!("/pages/conversations/{id}/log?since=99")).status, 410);
    assert_eq!(visitor.get(&format!("/pages/conversations/{id}/events?since=99")).status, 410);
}

#[test]
fn what_was_said_is_text() {
    let server = Running::open();
    let (visitor, h) = (Visitor::new(&server.client), HOSTILE);
    let chunks = json!([
        text(h), { "type": "thinking", "text": h, "redacted": h }, { "type": "refusal", "text": h },
        { "type": "tool_call", "id": h, "name": h, "arguments": h }, { "type": "image", "url": h },
        { "type": "image", "url": format!("data:image/png;base64,\"{h}") },
        { "type": "image", "url": "data:image/svg+xml;base64,AAAA" }, { "type": "image", "url": "javascript:alert(1)" },
        { "type": "image", "url": "https://tracker.example/a.png" }, { "type": "image", "url": format!("https://a.example/{h}") },
        { "type": "audio", "url": "javascript:alert(1)" }, { "type": "audio", "data": "AAAA", "transcript": h },
        { "type": "file", "name": h, "url": "data:text/html,<script>1</script>" }, { "type": "file", "url": "javascript:alert(1)" },
        { "type": "error", "message": h, "code": h }, { "type": "opaque", "provider": h, "kind": h, "json": { "a": h } },
    ]);
    let mut assistant =
        json!({ "role": "assistant", "chunks": chunks, "model": h, "provider": h, "turn_id": h, "finish_reason": h });
    assistant["usage"] = json!({ "input_tokens": 1, "output_tokens": 2, "a": h });
    let result = json!({ "type": "tool_result", "tool_call_id": h, "name": h, "content": [
        { "type": "text", "text": h }, { "type": "image", "url": "https://tracker.example/b.png" }, { "type": "json", "json": { "a": h } },
    ] });
    let messages = json!([user(h), assistant, { "role": "tool", "chunks": [result] }]);
    let id = append(&server.client, "chat", &messages);
    let path = format!("/api/v1/conversations/{id}");
    server.client.put(&format!("{path}/title"), &json!({ "title": h })).ok();
    server.client.put(&format!("{path}/metadata"), &json!({ "a": h })).ok();
    server.client.post(&format!("{path}/tags"), &json!({ "add": [h] })).ok();
    server.client.post(&format!("{path}/summaries"), &json!({ "through": 0, "text": h })).ok();
    let word: String = form_urlencoded::byte_serialize(h.as_bytes()).collect();
    let more = [
        format!("/pages?q={word}"),
        format!("/pages?tag={word}"),
        "/pages/conversations/ID/prompt?for=anthropic".to_owned(),
        "/pages/conversations/ID/prompt?for=openai-responses".to_owned(),
    ];
    for path in PAGES.iter().map(|path| (*path).to_owned()).chain(more) {
        let html = visitor.page(&path.replace("ID", &id));
        assert!(!html.contains("<script>") && !html.contains("onerror='"), "{path}: {html}");
        assert!(!html.contains('\u{202e}'), "{path}");
        for attribute in ["href=\"", "src=\"", "action=\""] {
            for value in html.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap()) {
                let is_ours = ["/pages", "#", "?"].iter().any(|begin| value.starts_with(begin));
                let is_ours = is_ours || ["/docs", "/openapi.json"].contains(&value);
                let is_data = attribute == "src=\"" && value.starts_with("data:image/png;base64,");
                let is_link = attribute == "href=\"" && value.starts_with("https://");
                assert!(is_ours || is_data || is_link, "{path}: {attribute}{value}");
            }
        }
    }
    let form: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("request", &format!("</textarea>{h}"))
        .append_pair("for", h)
        .finish();
    let html = visitor.post("/pages/repair", &form).text();
    assert!(!html.contains("</textarea><") && !html.contains("<script>"), "{html}");
    // Errors have what was asked for.
    let html = visitor.get(&format!("/pages/conversations/{word}")).text();
    assert!(!html.contains("<script>") && html.contains("&lt;script&gt;"), "{html}");
}

#[test]
fn calls_stand_beside_their_results() {
    let server = Running::open();
    let call = |id: &str| json!({ "type": "tool_call", "id": id, "name": "look", "arguments": "{}" });
    let result = |id: &str, content: &str| json!({ "type": "tool_result", "tool_call_id": id, "content": content });
    let messages = json!([
        user("one"), { "role": "assistant", "chunks": [call("a"), call("b")] },
        { "role": "tool", "chunks": [result("b", "of-b"), result("a", "of-a")] },
        { "role": "tool", "chunks": [result("c", "of-none")] },
        // The same id, in another turn.
        { "role": "assistant", "chunks": [call("a")] }, { "role": "tool", "chunks": [result("a", "of-second-a")] },
    ]);
    let id = append(&server.client, "chat", &messages);
    let html = Visitor::new(&server.client).page(&format!("/pages/conversations/{id}"));
    let part = |index: usize| html.split("<article").nth(index + 1).unwrap().split("</article>").next().unwrap();
    let at = |part: &str, words: &str| part.find(words).unwrap_or_else(|| panic!("{words}: {part}"));
    assert!(at(part(1), "id=\"m1-0\"") < at(part(1), "of-a") && at(part(1), "of-a") < at(part(1), "id=\"m1-1\""));
    assert!(at(part(1), "of-b") > at(part(1), "id=\"m1-1\"") && !part(1).contains("of-second-a"));
    assert!(!part(2).contains("of-a") && part(2).contains("#m1") && part(3).contains("of-none"));
    assert!(part(4).contains("of-second-a") && part(5).contains("#m4"));
}

/// Halves of one answer are one: also where a page begins with the second half, as the live view asks for it.
#[test]
fn what_goes_on_with_an_answer_has_no_heading_of_its_own() {
    let server = Running::open();
    let half =
        |words: &str, reason: &str| json!({ "role": "assistant", "finish_reason": reason, "chunks": [text(words)] });
    let messages = json!([user("go"), half("Once upon a ti", "length"), half("me.", "stop"), half("More.", "stop")]);
    let id = append(&server.client, "chat", &messages);
    let visitor = Visitor::new(&server.client);
    for from in 0..4 {
        let html = visitor.page(&format!("/pages/conversations/{id}?from={from}"));
        for index in from..4 {
            let article = html.split("<article ").find(|part| part.contains(&format!("id=\"m{index}\""))).unwrap();
            let head = article.split("</header>").next().unwrap();
            assert_eq!(head.contains(" continues"), index == 2, "{from}: {head}");
            assert_eq!(head.contains("class=\"role\""), index != 2, "{from}: {head}");
        }
    }
}

/// From a sub-agent's conversation to the message that started it, and back; an owner's links lead to nobody else's.
#[test]
fn sub_agents_are_linked() {
    let (_server, clients) = Running::with_keys(&[("ada", "read,append"), ("bob", "read,append")]);
    let id = append(&clients[0], "chat", &user("Look into it."));
    let tag = |client: &Client, name: &str| {
        append(client, name, &user(&format!("I am {name}")));
        let tags = json!({ "add": [format!("started-by:{id}"), format!("started-by:{id}/0"), format!("started-by:{id}/0/c1")] });
        client.post(&format!("/api/v1/conversations/{name}/tags"), &tags).ok();
        let found = client.get(&format!("/api/v1/conversations/{name}")).ok();
        found["conversation"].as_str().unwrap().to_owned()
    };
    let (helper, stranger) = (tag(&clients[0], "helper"), tag(&clients[1], "stranger"));
    let (ada, bob) = (Visitor::of(&clients[0]), Visitor::of(&clients[1]));
    let chat = ada.page(&format!("/pages/conversations/{id}"));
    assert!(
        chat.contains(&format!("<a href=\"/pages/conversations/{helper}\" dir=\"auto\">I am helper</a>")),
        "{chat}"
    );
    assert!(!chat.contains(&stranger), "{chat}");
    let page = ada.page(&format!("/pages/conversations/{helper}"));
    assert!(page.contains(&format!("Started by <a href=\"/pages/conversations/{id}?from=0#m0\"")), "{page}");
    let page = bob.page(&format!("/pages/conversations/{stranger}"));
    assert!(
        page.contains("Started by a conversation that is gone, message 0") && !page.contains("Look into it"),
        "{page}"
    );
}

#[test]
fn hidden_messages_need_a_request() {
    let server = Running::open();
    let two = json!({ "role": "user", "chunks": [text("first-chunk"), text("second-chunk")] });
    let id = append(
        &server.client,
        "chat",
        &json!([two, user("removed-words"), user("redacted-words"), user("rewound-words")]),
    );
    let path = format!("/api/v1/conversations/{id}");
    server.client.delete(&format!("{path}/messages/0?chunk=1")).ok();
    server.client.delete(&format!("{path}/messages/1")).ok();
    server.client.post(&format!("{path}/messages/2/redact"), &json!(null)).ok();
    server.client.post(&format!("{path}/rewind"), &json!({ "to": 3 })).ok();
    append(&server.client, "chat", &user("later-words"));
    let visitor = Visitor::new(&server.client);
    let shown = visitor.page(&format!("/pages/conversations/{id}"));
    assert!(shown.contains("first-chunk") && shown.contains("later-words"));
    for hidden in ["second-chunk", "removed-words", "redacted-words", "rewound-words"] {
        assert!(!shown.contains(hidden), "{hidden}");
    }
    let all = visitor.page(&format!("/pages/conversations/{id}?hidden=1"));
    for hidden in [
        "second-chunk",
        "removed-words",
        "rewound-words",
        "later-words",
        "chunk 1 removed at seq",
        "rewound at seq",
        "redacted at seq",
    ] {
        assert!(all.contains(hidden), "{hidden}: {all}");
    }
    assert!(!all.contains("redacted-words"), "what is erased is erased");
}

#[test]
fn long_texts_are_cut() {
    let server = Running::open();
    let long = "x".repeat(100_000);
    let id = append(&server.client, "chat", &json!([user(&long), user("short")]));
    let visitor = Visitor::new(&server.client);
    let html = visitor.page(&format!("/pages/conversations/{id}"));
    assert!(!html.contains(&long) && html.contains("34,464 more bytes"), "{}", html.len());
    assert!(html.contains(&format!("/pages/conversations/{id}?from=0&amp;whole=1#m0")));
    assert!(visitor.page(&format!("/pages/conversations/{id}?from=0&whole=1")).contains(&long));
    // A page ends early, and the next one goes on.
    let many: Vec<Value> = (0..60).map(|at| user(&format!("line-{at}. {long}"))).collect();
    let id = append(&server.client, "many", &json!(many));
    let html = visitor.page(&format!("/pages/conversations/{id}?from=0"));
    let count = html.matches("<article").count();
    assert!((2..50).contains(&count) && html.contains(&format!("?from={count}\"")), "{count}");
    let html = visitor.page(&format!("/pages/conversations/{id}"));
    assert!(html.contains("line-59.") && html.matches("<article").count() < 50);
}

#[test]
fn live_pages_know_where_to_go_on() {
    let server = Running::open();
    let call = json!({ "type": "tool_call", "id": "a", "name": "look", "arguments": "{}" });
    let id = append(&server.client, "chat", &json!([user("one"), { "role": "assistant", "chunks": [call] }]));
    let visitor = Visitor::new(&server.client);
    let path = format!("/pages/conversations/{id}");
    let value = |html: &str, name: &str| html.split(name).nth(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    let html = visitor.page(&path);
    assert_eq!(value(&html, "data-settled=\"").as_deref(), Some("1"), "the call has no result yet");
    let cursor = value(&html, "data-cursor=\"").unwrap();
    let mut events = visitor.client.follow(&format!("{path}/events?since={cursor}"), &[]);
    let result = json!({ "type": "tool_result", "tool_call_id": "a", "content": "done" });
    append(&server.client, "chat", &json!({ "role": "tool", "chunks": [result] }));
    let event = events.next().unwrap();
    assert_eq!((event.id, &event.data["message_index"]), (Some(3), &json!(2)));
    let html = visitor.page(&path);
    assert_eq!(value(&html, "data-settled=\"").as_deref(), Some("3"));
    // A page in the middle is not live.
    let many: Vec<Value> = (0..80).map(|at| user(&format!("line {at}"))).collect();
    append(&server.client, "chat", &json!(many));
    let html = visitor.page(&format!("{path}?from=0"));
    assert!(!html.contains("data-cursor") && !html.contains("live.js") && html.contains("?from=50"));
}

#[test]
fn a_damaged_page_is_no_page() {
    let server = Running::open();
    let visitor = Visitor::new(&server.client);
    for path in ["/pages/assets/..%2f..%2fmod.rs", "/pages/assets/style.css%00", "/pages/conversations/", "/pages/"] {
        let answer = visitor.get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {}", answer.status);
    }
    for form in [
        "request=%ff%fe",
        "request=",
        "request=%00&for=openai-chat",
        "for=x",
        "%%%",
        &format!("request={}", "[".repeat(5_000)),
    ] {
        let answer = visitor.post("/pages/repair", form);
        assert!((400..500).contains(&answer.status), "{form}: {}", answer.status);
        protected(&answer);
    }
}

#[test]
fn searches_find_only_the_owners() {
    let (_server, clients) = Running::with_keys(&[("ada", "read,append"), ("grace", "read,append")]);
    append(&clients[0], "a", &json!([user("nothing"), user("the winter cache is cold")]));
    append(&clients[1], "b", &user("the winter of grace"));
    let (ada, grace) = (Visitor::of(&clients[0]), Visitor::of(&clients[1]));
    let found = ada.page("/pages?q=winter");
    if cfg!(feature = "search") {
        assert!(found.contains("the <mark>winter</mark> cache is cold") && found.contains("?from=1#m1"), "{found}");
        assert!(found.contains("1 hit<") && !found.contains("of grace"));
        assert!(grace.page("/pages?q=cache").contains("0 hits"));
        // What cannot be searched is said on the page, where it can be corrected.
        assert!(ada.page("/pages?q=%22").contains("role=\"alert\""));
    }
    // Tags narrow the list.
    clients[0].post("/api/v1/conversations/a/tags", &json!({ "add": ["cold"] })).ok();
    assert!(
        ada.page("/pages?tag=cold").contains("nothing")
            && ada.page("/pages?tag=warm").contains("There is nothing here")
    );
    for at in 0..60 {
        append(&clients[1], &format!("many-{at}"), &user(&format!("note {at}")));
    }
    let first = grace.page("/pages");
    let next = first.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    let second = grace.page(&next);
    assert!(
        first.contains("note 59")
            && !first.contains("note 5<")
            && second.contains("note 5<")
            && second.contains("the winter of grace")
    );
}

#[test]
fn the_list_is_filtered_and_says_how_each_conversation_ended() {
    let server = Running::open();
    let visitor = Visitor::new(&server.client);
    for (key, color, reason) in [("app/1", "red", "stop"), ("app/2", "blue", "error"), ("other", "red", "interrupted")]
    {
        let answer = json!({ "role": "assistant", "chunks": [text("fine")], "model": format!("m-{key}"), "finish_reason": reason,
            "usage": { "input_tokens": 1834, "output_tokens": 21 } });
        append(&server.client, &key.replace('/', "%2F"), &json!([user(&format!("about {key}")), answer]));
        let about = json!({ "messages": [], "metadata": { "color": color } });
        server.client.post(&format!("/api/v1/conversations/{}/messages", key.replace('/', "%2F")), &about).ok();
    }
    let all = visitor.page("/pages");
    assert!(all.contains("m-app/1") && all.contains("1,834 tokens in, 21 out"), "{all}");
    assert!(all.contains("state failed") && all.contains("state interrupted"), "{all}");
    let listed = |query: &str| -> Vec<&str> {
        let page = visitor.page(&format!("/pages?{query}"));
        let mut found: Vec<(usize, &str)> = ["app/1", "app/2", "other"]
            .into_iter()
            .filter_map(|key| Some((page.find(&format!(">about {key}<"))?, key)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, key)| key).collect()
    };
    assert_eq!(listed("sort=oldest"), ["app/1", "app/2", "other"]);
    assert_eq!(listed("key=app%2F"), ["app/2", "app/1"]);
    assert_eq!(listed("field=color%3Dred&key=&tag=&since=&until="), ["other", "app/1"]);
    assert_eq!((listed("until=2000-01-01"), listed("since=2000-01-01").len()), (vec![], 3));
    assert!(visitor.page("/pages?field=color").contains("role=\"alert\""));
    assert_eq!(visitor.get("/pages?sort=title").status, 400);
    if cfg!(feature = "search") {
        let none = visitor.page("/pages?q=fine&until=2000-01-01");
        assert!(none.contains("0 hits") && visitor.page("/pages?q=fine").contains("3 hits"), "{none}");
        assert!(visitor.page("/pages?q=fine&key=app").contains("role=\"alert\""));
    }
}

#[test]
fn a_conversation_leads_to_its_forks() {
    let server = Running::open();
    let id = append(&server.client, "chat", &json!([user("one"), user("two")]));
    server.client.post("/api/v1/conversations/chat/fork", &json!({ "key": "branch", "at_seq": 1 })).ok();
    let visitor = Visitor::new(&server.client);
    let page = visitor.page("/pages/conversations/chat");
    let fork = server.client.get("/api/v1/conversations/branch").ok();
    let link = format!("href=\"/pages/conversations/{}\"", fork["conversation"].as_str().unwrap());
    assert!(page.contains(&link) && page.contains("at seq 1"), "{page}");
    let back = visitor.page("/pages/conversations/branch");
    assert!(back.contains("Forked from") && back.contains(&format!("href=\"/pages/conversations/{id}\"")), "{back}");
}

#[test]
fn each_report_line_is_shown_once() {
    let server = Running::open();
    let call =
        |id: &str, arguments: &str| json!({ "type": "tool_call", "id": id, "name": "look up", "arguments": arguments });
    let messages = json!([
        user("hi"), { "role": "assistant", "model": "gpt-5", "provider": "openai", "chunks": [call("a", "{"), call("b", "{}")] },
        { "role": "tool", "chunks": [{ "type": "tool_result", "tool_call_id": "a", "content": "ok" }] },
        { "role": "assistant", "chunks": [{ "type": "error", "message": "overloaded" }] }, user("and?"),
        { "role": "assistant", "chunks": [{ "type": "thinking", "text": "hm" }, text("yes")] }, user("go on"),
    ]);
    let id = append(&server.client, "chat", &messages);
    let visitor = Visitor::new(&server.client);
    for (target, report, html) in prompts(&server.client, &visitor, &id) {
        assert_eq!(html.matches("class=\"note ").count(), report.as_array().unwrap().len(), "{target}");
        let notes = |index: u64| {
            html.split(&format!("id=\"m{index}\""))
                .nth(1)
                .map_or(0, |part| part.split("</article>").next().unwrap().matches("class=\"note ").count())
        };
        for index in [1, 3] {
            let wanted = report.as_array().unwrap().iter().filter(|line| line["message_index"] == index).count();
            assert_eq!(notes(index), wanted, "{target}, message {index}");
        }
    }
    let problem = visitor.page(&format!("/pages/conversations/{id}/prompt?for=none"));
    assert!(problem.contains("role=\"alert\"") && problem.contains("go on"), "{problem}");
    // The form has all options that the API has, and keeps what was chosen.
    let chosen = "for=anthropic&thinking_turns=0&max_result_bytes=1&finished_tools=flatten";
    let form = visitor.page(&format!("/pages/conversations/{id}/prompt?{chosen}"));
    let document = server.client.get("/openapi.json").ok();
    let parameters = document["paths"]["/api/v1/conversations/{conversation}/prompt"]["get"]["parameters"].clone();
    let options = parameters.as_array().unwrap().iter().filter(|parameter| parameter["in"] == "query");
    let missing: Vec<_> = options.filter(|option| !form.contains(&format!("name={}", option["name"]))).collect();
    assert!(missing.is_empty() && form.contains("name=\"max_result_bytes\" value=\"1\""), "{missing:?}: {form}");
    assert!(form.contains("<option value=\"flatten\" selected>"), "{form}");
    // What no control offers is refused, as the API does.
    assert_eq!(visitor.get(&format!("/pages/conversations/{id}/prompt?for=gemini&lst=1")).status, 400);
}

/// A mark of the request, and the note that it leads to: its number, its word, and the severity of the note.
fn marks(html: &str) -> Vec<(usize, String, String)> {
    let note = |number: &str| {
        let before = html.split(&format!("\" id=\"r{number}\"")).next().unwrap();
        before.rsplit("class=\"note ").next().unwrap().to_owned()
    };
    let mark = |part: &str| {
        let number = part.split('"').next().unwrap();
        let word = part.split('>').nth(1).unwrap().split('<').next().unwrap();
        assert!(part.contains(&format!("href=\"#r{number}\"")), "{part}");
        (number.parse().unwrap(), word.to_owned(), note(number))
    };
    html.split("<a class=\"mark\" id=\"s").skip(1).map(mark).collect()
}

#[test]
fn the_request_is_marked_where_it_is_not_as_it_is_stored() {
    let server = Running::open();
    let call =
        |id: &str, arguments: &str| json!({ "type": "tool_call", "id": id, "name": "look", "arguments": arguments });
    let failed = json!({ "type": "error", "message": "overloaded-words" });
    let messages = json!([
        user("hi"), { "role": "assistant", "chunks": [call("a", "{"), call("b", "{}")] },
        { "role": "tool", "chunks": [{ "type": "tool_result", "tool_call_id": "a", "content": "ok" }] },
        { "role": "assistant", "chunks": [text("fine"), failed] }, user("go on"),
        { "role": "tool", "chunks": [{ "type": "tool_result", "tool_call_id": "x", "content": "result-of-none" }] },
        { "role": "assistant", "chunks": [text("later-words")] }, user("well?"),
    ]);
    let id = append(&server.client, "chat", &messages);
    let visitor = Visitor::new(&server.client);
    for (target, report, html) in prompts(&server.client, &visitor, &id) {
        // Each change has its mark, and no other thing has one.
        let words = [("lost", "removed"), ("changed", "altered"), ("moved", "moved"), ("added", "added")];
        let changes = report.as_array().unwrap().iter().filter(|line| line["severity"] != "note");
        let marks = marks(&html);
        assert_eq!(marks.len(), changes.count(), "{target}: {report:#} {html}");
        for (number, word, severity) in marks {
            assert!(words.contains(&(&*severity, &*word)), "{target}, {number}: {word} {severity}");
        }
        // What was left out is there to be read, after what stands before it.
        let sent = html.split("<h2 id=\"sent\">").nth(1).unwrap().split("<details").next().unwrap();
        let at = |words: &str| sent.find(words).unwrap_or_else(|| panic!("{target}, {words}: {sent}"));
        assert!(
            at("fine") < at("<del>overloaded-words</del>") && at("<del>overloaded-words</del>") < at("go on"),
            "{target}"
        );
        assert!(
            at("go on") < at("<del>result-of-none</del>") && at("<del>result-of-none</del>") < at("later-words"),
            "{target}"
        );
        // The result that nobody recorded is one value, marked as a whole.
        let made = sent.split("<div").find(|line| line.contains("Interrupted: ")).unwrap();
        assert!(made.contains(" added\""), "{target}: {made}");
    }
    // What is sent as it is stored has no mark.
    let id = append(
        &server.client,
        "clean",
        &json!([user("hi"), { "role": "assistant", "chunks": [text("hello")] }, user("bye")]),
    );
    let html = visitor.page(&format!("/pages/conversations/{id}/prompt"));
    assert!(html.contains("Nothing was left out") && !html.contains("class=\"mark\""), "{html}");
}

#[test]
fn base64_is_shortened_where_it_is_sent() {
    let server = Running::open();
    // The beginning of a picture of one pixel.
    let data = format!("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB{}", "AAAA".repeat(600));
    let picture = json!({ "type": "image", "url": format!("data:image/png;base64,{data}") });
    let id = append(&server.client, "chat", &json!({ "role": "user", "chunks": [text("look"), picture] }));
    let visitor = Visitor::new(&server.client);
    for target in ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse"] {
        let html = visitor.page(&format!("/pages/conversations/{id}/prompt?for={target}"));
        let sent = html.split("<h2 id=\"sent\">").nth(1).unwrap();
        let (lines, copy) = sent.split_once("<details").unwrap();
        assert!(lines.contains("more bytes of base64") && !lines.contains(&data), "{target}: {lines}");
        assert!(copy.contains(&data), "{target}: what is copied is whole");
    }
}

#[cfg(feature = "viewer")]
#[test]
fn the_api_is_described_to_everybody_from_the_programs_own_files() {
    let (server, _clients) = Running::with_keys(&[("ada", "read")]);
    let visitor = Visitor::new(&server.client);
    let html = visitor.page("/docs");
    let names: Vec<&str> = ["href=\"", "src=\""]
        .into_iter()
        .flat_map(|attribute| html.split(attribute).skip(1))
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert!(names.contains(&"/openapi.json") && !html.contains("://"), "{html}");
    for name in names {
        let answer = visitor.send("GET", name, &[("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "no-cors")], "");
        assert!([200, 303].contains(&answer.status) && !answer.text().is_empty() || name == "/pages", "{name}");
    }
    for (name, kind) in [("swagger-ui.css", "text/css"), ("swagger-ui-bundle.js", "text/javascript")] {
        let file = visitor.get(&format!("/docs/{name}"));
        assert_eq!((file.status, file.header("content-type")), (200, Some(kind)));
        assert_eq!(file.header("cache-control"), Some("public, max-age=86400"));
    }
    // The other files of the crate, its page with a script in it among them, are not served.
    for name in ["index.html", "oauth2-redirect.html", "swagger-ui.css.map", "..%2fdocs"] {
        assert_eq!(visitor.get(&format!("/docs/{name}")).status, 404, "{name}");
    }
    let foreign = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")];
    assert_eq!(visitor.send("GET", "/docs/swagger-ui-bundle.js", &foreign, "").status, 403);
    assert!(visitor.page("/pages/login").contains("<a href=\"/docs\">"));
    // Without pages it is not there; the document is.
    let server = Running::start("memory:", &["--config", &config("[pages]\nenabled = false\n")]);
    assert_eq!((server.client.get("/docs").status, server.client.get("/openapi.json").status), (404, 200));
}

#[test]
fn a_request_is_repaired() {
    let server = Running::open();
    let visitor = Visitor::new(&server.client);
    let repair = |target: &str, from: &str, request: &str| {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("for", target)
            .append_pair("from", from)
            .append_pair("request", request)
            .finish();
        visitor.post("/pages/repair", &form)
    };
    let orphan =
        r#"{"messages":[{"role":"user","content":"hi"},{"role":"tool","tool_call_id":"x","content":"no-call"}]}"#;
    let answer = repair("openai-chat", "", orphan);
    assert_eq!(answer.status, 200);
    protected(&answer);
    let html = answer.text();
    assert!(html.contains("class=\"note refused\"") && html.contains("The target refuses it"), "{html}");
    assert!(!html.split("id=\"copy\"").nth(1).unwrap().contains("no-call"));
    assert!(
        repair("openai-chat", "", r#"{"messages":[{"role":"user","content":"hi"}]}"#)
            .text()
            .contains("accepted as it is")
    );
    assert!(repair("anthropic", "openai-chat", orphan).text().contains("in the request for this target"));
    let wrong = repair("openai-chat", "", "{\"messages\":");
    assert_eq!(wrong.status, 400);
    assert!(
        wrong.text().contains("role=\"alert\"") && wrong.text().contains("{&quot;messages&quot;:"),
        "{}",
        wrong.text()
    );
    assert_eq!(repair("none", "", orphan).status, 400);
}

#[test]
fn pages_can_be_turned_off() {
    let server = Running::start("memory:", &["--config", &config("[pages]\nenabled = false\n")]);
    let visitor = Visitor::new(&server.client);
    for path in ["/", "/pages", "/pages/login", "/pages/assets/style.css"] {
        assert_eq!(visitor.get(path).code(404), "not_found", "{path}");
    }
}

#[test]
fn assets_are_kept_by_version() {
    let server = Running::open();
    let visitor = Visitor::new(&server.client);
    let html = visitor.page("/pages");
    let style = html.split("href=\"").find(|part| part.starts_with("/pages/assets/style.css")).unwrap();
    let named = visitor.get(style.split('"').next().unwrap());
    assert_eq!(named.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(named.header("content-type"), Some("text/css; charset=utf-8"));
    assert_eq!(visitor.get("/pages/assets/style.css").header("cache-control"), Some("no-cache"));
    assert_eq!(visitor.get("/pages/assets/live.js").header("content-type"), Some("text/javascript; charset=utf-8"));
}

#[test]
fn the_tokens_of_the_last_days_are_shown_by_day_and_model() {
    let (_server, clients) = Running::with_keys(&[("ada", "read,append"), ("grace", "read,append")]);
    let answer = |model: &str, output: u64| {
        json!({
            "role": "assistant", "model": model, "chunks": [{ "type": "text", "text": "Hi!" }],
            "usage": { "prompt_tokens": 1_000, "completion_tokens": output },
        })
    };
    for (model, output) in [("m-<1>", 20), ("m-<1>", 30), ("m-2", 4)] {
        append(&clients[0], "chat", &answer(model, output));
    }
    append(&clients[1], "chat", &answer("hers", 1));
    let html = Visitor::of(&clients[0]).page("/pages/usage");
    let rows = rows_below(&html, "Tokens by model</h2>");
    assert_eq!(rows, ["m-2 1 1,000 0 4 0", "m-&lt;1&gt; 2 2,000 0 50 0", "All 3 3,000 0 54 0"]);
    assert!(html.contains("the highest day has 3,054") && !html.contains("hers"), "{html}");
    let visitor = Visitor::of(&clients[1]);
    for (query, days) in [("", 30), ("?days=7", 7)] {
        let html = visitor.page(&format!("/pages/usage{query}"));
        let columns = html.split("<figure").skip(1).map(|chart| chart.split("</figure>").next().unwrap());
        assert_eq!(columns.map(|chart| chart.matches("<rect").count()).collect::<Vec<_>>(), [days, days]);
    }
    assert_eq!(visitor.get("/pages/usage?days=0").status, 400);
}

/// What is drawn is in words, too: the days, how long conversations are, and the kinds of errors.
#[test]
fn answers_sizes_and_errors_are_drawn_and_told() {
    let (_server, clients) = Running::with_keys(&[("ada", "read,append"), ("grace", "read,append")]);
    let failed = |code: Value| json!({ "type": "error", "message": "no", "code": code });
    let answer = |chunks: Value| json!({ "role": "assistant", "chunks": chunks });
    append(
        &clients[0],
        "a",
        &json!([user("hi"), answer(json!([failed(json!("<429>"))])), answer(json!([text("Hi!")]))]),
    );
    append(&clients[0], "b", &json!([answer(json!([failed(json!("<429>"))])), answer(json!([failed(Value::Null)]))]));
    append(&clients[0], "c", &json!([user("one"), user("two")]));
    append(&clients[1], "d", &answer(json!([failed(json!("hers"))])));
    let html = Visitor::of(&clients[0]).page("/pages/usage");
    assert_eq!(rows_below(&html, "Errors by kind</h2>"), ["&lt;429&gt; 2", "unknown 1"]);
    assert_eq!(rows_below(&html, "Sizes of conversations</h2>"), ["2 to 3 3"]);
    let days = rows_below(&html, "aria-label=\"The days\">");
    assert!(days.len() == 1 && days[0].ends_with(" 4 0 3"), "{days:?}");
    assert!(html.contains("Answers by day, UTC; the highest day has 4") && !html.contains("hers"), "{html}");
    let rows = clients[0].get("/api/v1/usage?by=error").ok()["rows"].clone();
    let found: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| (&row["error"], &row["uncounted"], &row["errors"])).collect();
    let [none, one, two, four] = [0, 1, 2, 4].map(Value::from);
    let [empty, code, unknown] = ["", "<429>", "unknown"].map(Value::from);
    assert_eq!(found, [(&empty, &four, &none), (&code, &none, &two), (&unknown, &none, &one)]);
    // Who has nothing is told so.
    let (_server, clients) = Running::with_keys(&[("ada", "read")]);
    assert!(Visitor::of(&clients[0]).page("/pages/usage").contains("No answers and no errors"));
}

/// The rows of the table after a heading, without those that name its columns.
fn rows_below(html: &str, heading: &str) -> Vec<String> {
    let table = html.split(heading).nth(1).unwrap_or_else(|| panic!("{heading}: {html}"));
    let table = table.split("</table>").next().unwrap();
    table.split("<tr>").skip(2).map(|row| tags_cut(row.split("</tr>").next().unwrap())).collect()
}

/// A row of a table without its tags.
fn tags_cut(row: &str) -> String {
    let texts = row.split('<').filter_map(|piece| piece.split_once('>')).map(|(_, text)| text.trim());
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_being_written_has_a_button_that_stops_it() {
    let (server, clients) = Running::with_keys(&[("ada", "read,append"), ("ada", "read"), ("bob", "read,append")]);
    let [writer, reader, other] = [0, 1, 2].map(|at| Visitor::of(&clients[at]));
    let mut upload = Upload::begin(&clients[0], "/api/v1/conversations/chat", &[]);
    upload.push("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"It is\"}}]}\n\n");
    let begun = Instant::now();
    let id = loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", server.log());
        let item = clients[0].get("/api/v1/conversations/chat");
        if item.status == 200 && writer.page("/pages/conversations/chat").contains("It is") {
            break item.json()["conversation"].as_str().unwrap().to_owned();
        }
    };
    let path = format!("/pages/conversations/{id}");
    let button = format!("<form class=\"stop\" method=\"post\" action=\"{path}/stop\">");
    assert!(writer.page(&path).contains(&button));
    assert!(!reader.page(&path).contains("class=\"stop\""));
    // Neither who may not write, nor another owner, nor another site stops it.
    assert_eq!(reader.post(&format!("{path}/stop"), "").status, 403);
    assert_eq!(other.post(&format!("{path}/stop"), "").status, 404);
    let foreign = [("origin", "http://evil.example"), ("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(writer.send("POST", &format!("{path}/stop"), &foreign, "").status, 403);
    upload.push("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" noon\"}}]}\n\n");
    while !writer.page(&path).contains("It is noon") {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", server.log());
    }
    let stopped = writer.post(&format!("{path}/stop"), "");
    assert_eq!((stopped.status, stopped.header("location")), (303, Some(&*path)));
    // The client has not ended it.
    let receipt = read(&mut BufReader::new(upload.0)).unwrap().ok();
    assert_eq!(receipt["finish_reason"], "interrupted");
    let page = writer.page(&path);
    assert!(page.contains("It is noon") && !page.contains("class=\"stop\""));
}

#[test]
fn the_page_of_an_answer_leads_to_its_request() {
    let wire = json!({ "id": "c-1", "model": "m-1",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "hi" } }] });
    let recorder = crate::recorded::Recorder::with("memory:", "", &["ada", "bob"]);
    let body = format!("{{\"messages\" : [{{\"role\":\"user\",\"content\":{}}}]}}", json!(HOSTILE));
    let client = &recorder.clients[0];
    let reply = crate::recorded::Reply::json(&wire);
    let mut open = recorder.begin(client, "/v1/chat/completions", &[], body.as_bytes(), reply);
    assert!(open.end());
    let exchange = crate::recorded::passed(open, true).exchange;
    let settled = recorder.settled_of(client, &exchange);
    let visitor = Visitor::of(client);
    let page = visitor.page(&format!("/pages/conversations/{}", settled["conversation"].as_str().unwrap()));
    let path = format!("/pages/exchanges/{exchange}/request");
    assert!(page.contains(&format!("href=\"{path}\"")), "{page}");
    assert!(!page.contains("&quot;sent&quot;") && !page.contains("\"sent\":"), "{page}");
    let page = visitor.page(&path);
    assert!(page.contains("Byte for byte") && page.contains("messages") && !page.contains("<script>alert"), "{page}");
    assert_eq!(Visitor::of(&recorder.clients[1]).get(&path).status, 404);
}

#[test]
fn what_is_beside_a_conversation_does_not_hide_it() {
    let (_server, clients) = Running::with_keys(&[("ada", "read,append"), ("bob", "read,append")]);
    let make = |title: &str, tags: &[&str]| {
        clients[0].post("/api/v1/conversations", &json!({ "title": title, "tags": tags })).of(200)["conversation"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let main = make("The build", &["session:s1", "kind:main"]);
    make("Of another session", &["session:s2", "kind:main"]);
    // More than a page of them, and newer.
    for number in 0..60 {
        make(&format!("agent {number}"), &["session:s1", "kind:agent", "branch:a1"]);
    }
    make("a title", &["session:s1", "kind:side"]);
    let visitor = Visitor::of(&clients[0]);
    let list = visitor.page("/pages");
    assert!(list.contains("The build") && list.contains("Of another session"), "{list}");
    assert!(!list.contains("agent 5") && !list.contains("a title") && list.contains("href=\"/pages?all=1\""), "{list}");
    let all = visitor.page("/pages?all=1");
    assert!(
        all.contains("agent 59") && all.contains("a title") && all.contains("<a href=\"/pages\">Hide sub-agents"),
        "{all}"
    );
    assert!(visitor.page("/pages?tag=kind%3Aside").contains("a title"));
    let page = visitor.page(&format!("/pages/conversations/{main}"));
    assert!(page.contains("href=\"/pages?tag=session%3As1\"") && page.contains("agent, a1"), "{page}");
    assert!(!page.contains("Of another session"));
    // Nothing says so where there is nothing of the kind.
    assert!(!Visitor::of(&clients[1]).page("/pages").contains("all=1"));
}
