//! Two owners never see each other: every route, every scope, ids that are another's.

use conversation_store::server::openapi;
use serde_json::{Value, json};

use crate::common::http::{Answer, Client};
use crate::common::running::Running;
use crate::documented::operations;

/// What is said in the conversation that must not be seen.
const SECRET: &str = "the-secret-words";

/// A route.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) scope: String,
    /// As the document has them.
    pub(crate) parameters: Vec<Value>,
    /// A body that it takes; null if it takes none.
    pub(crate) example: Value,
}

/// The routes of the document.
pub(crate) fn routes() -> Vec<Route> {
    let document = serde_json::from_str(&openapi()).unwrap();
    let of = |(verb, path, operation): (String, String, Value)| {
        let about = operation["description"].as_str().unwrap();
        let scope = about.strip_prefix("Scope: ").unwrap().strip_suffix('.').unwrap().to_owned();
        let parameters = operation["parameters"].as_array().unwrap().clone();
        let content = operation.pointer("/requestBody/content").and_then(Value::as_object);
        let example = content.map(|content| content.values().next().unwrap()["example"].clone()).unwrap_or_default();
        Route { verb: verb.to_uppercase(), path, scope, parameters, example }
    };
    let routes: Vec<Route> = operations(&document).into_iter().map(of).collect();
    assert!(routes.len() > 30);
    routes
}

impl Route {
    fn send(&self, client: &Client, conversation: &str, item: &str) -> Answer {
        let path = self.path.replace("{conversation}", conversation).replace("{item}", item).replace("{message}", "0");
        let wanted =
            self.parameters.iter().filter(|parameter| parameter["in"] == "query" && parameter["required"] == true);
        let query: Vec<String> =
            wanted.map(|parameter| format!("{}=openai-chat", parameter["name"].as_str().unwrap())).collect();
        let body = match &self.example {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            json => json.to_string(),
        };
        client.send(&self.verb, &format!("{path}?{}", query.join("&")), &[], body.as_bytes())
    }
}

/// A conversation with a secret: its ids in both APIs, its key, and an item.
fn secret(client: &Client, key: &str) -> ([String; 3], String) {
    let message = json!({ "role": "user", "id": "msg_secret", "chunks": [{ "type": "text", "text": SECRET }] });
    let receipt = client.post(&format!("/api/v1/conversations/{key}/messages"), &message).ok();
    let native = receipt["conversation"].as_str().unwrap().to_owned();
    (["conv_".to_owned() + &native.replace('-', ""), native, key.to_owned()], "msg_secret".to_owned())
}

/// An answer, without the ids that were asked for.
fn shape(answer: &Answer, ids: &[&str]) -> (u16, String) {
    let mut text = answer.text();
    for id in ids {
        text = text.replace(id, "ID");
        if let Ok(uuid) = id.trim_start_matches("conv_").parse::<uuid::Uuid>() {
            text = text.replace(&uuid.to_string(), "ID");
        }
    }
    (answer.status, text)
}

#[test]
fn a_foreign_id_is_as_one_that_is_not_there() {
    let (_server, clients) =
        Running::with_keys(&[("ada", "read,append,delete,admin"), ("grace", "read,append,delete,admin")]);
    let [ada, grace] = &clients[..] else { panic!() };
    let (ids, item) = secret(ada, "secret-key");
    let before = ada.get("/api/v1/conversations/secret-key/entries").text();
    let absent = ["conv_00000000000070008000000000000000", "00000000-0000-7000-8000-000000000000"];
    let mut looked = 0;
    for route in routes() {
        for (id, absent) in ids.iter().zip(absent) {
            if !route.path.contains("{conversation}") {
                let answer = route.send(grace, id, &item);
                assert!(
                    route.path.contains("/admin/") || !answer.text().contains(SECRET),
                    "{} {}",
                    route.verb,
                    route.path
                );
                continue;
            }
            let (foreign, none) = (route.send(grace, id, &item), route.send(grace, absent, &item));
            let place = format!("{} {} {id}", route.verb, route.path);
            assert_eq!(foreign.status, 404, "{place}: {}", foreign.text());
            assert_eq!(shape(&foreign, &[id]), shape(&none, &[absent]), "{place}");
            looked += 1;
        }
    }
    assert!(looked > 50, "{looked}");
    assert_eq!(ada.get("/api/v1/conversations/secret-key/entries").text(), before, "nothing was changed");
    // The same key is another conversation of another owner.
    let mine = json!({ "role": "user", "chunks": [{ "type": "text", "text": "mine" }] });
    let receipt = grace.post("/api/v1/conversations/secret-key/messages", &mine).ok();
    assert_ne!(receipt["conversation"].as_str(), Some(&*ids[1]));
}

#[test]
fn an_admin_names_whose_conversations_are_listed_searched_and_counted() {
    let keys = [("ada", "read,append"), ("grace", "read,append"), ("root", "read,admin")];
    let (_server, clients) = Running::with_keys(&keys);
    let [ada, grace, root] = &clients[..] else { panic!() };
    secret(ada, "secret-key");
    let answer = json!({ "role": "assistant", "chunks": [{ "type": "text", "text": "yes" }], "model": "m-1",
        "usage": { "input_tokens": 7, "output_tokens": 1 } });
    ada.post("/api/v1/conversations/secret-key/messages", &answer).ok();
    let mut routes = vec!["/api/v1/conversations?", "/api/v1/usage?"];
    if cfg!(feature = "search") {
        routes.push("/api/v1/search?q=secret&");
    }
    for route in routes {
        let of = |client: &Client, owner: &str| client.get(&format!("{route}owner={owner}"));
        let own = ada.get(route.trim_end_matches(['?', '&'])).ok();
        assert_ne!(own, grace.get(route.trim_end_matches(['?', '&'])).ok(), "{route}");
        assert_eq!([of(root, "ada").ok(), of(ada, "ada").ok()], [own.clone(), own], "{route}");
        assert_eq!(of(grace, "ada").code(403), "missing_scope", "{route}");
        assert_eq!(of(root, "grace").ok(), grace.get(route.trim_end_matches(['?', '&'])).ok(), "{route}");
        // What the server keeps for itself is nobody's.
        assert_eq!([of(root, "").code(400), of(root, "convo:stops").code(400)], ["invalid_value"; 2], "{route}");
    }
}

#[test]
fn a_key_may_do_what_its_scopes_say() {
    let scopes = ["read", "append", "delete", "admin"];
    let owners: Vec<_> = scopes.iter().map(|scope| ("ada", *scope)).collect();
    let (server, clients) = Running::with_keys(&owners);
    let all =
        server.client.with_key(&crate::common::running::create_key(&server.keys(), "ada", "read,append,delete,admin"));
    let begun = std::time::Instant::now();
    while all.get("/api/v1/targets").status != 200 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "a new key is not noticed");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    for (at, route) in routes().into_iter().enumerate() {
        // Each route finds what it may destroy.
        let (ids, item) = secret(&all, &format!("secret-key-{at}"));
        for (scope, client) in scopes.iter().zip(&clients) {
            let place = format!("{} {} by {scope}", route.verb, route.path);
            let is_stream = route.path.ends_with("/events");
            let answer = if is_stream && route.scope == *scope {
                // It would not end.
                client.follow(&format!("/api/v1/conversations/{}/events", ids[1]), &[]);
                continue;
            } else {
                route.send(client, if route.path.starts_with("/v1") { &ids[0] } else { &ids[1] }, &item)
            };
            if route.scope == *scope {
                assert!(![401, 403].contains(&answer.status) && answer.status < 500, "{place}: {}", answer.text());
            } else {
                assert_eq!(answer.code(403), "missing_scope", "{place}");
            }
        }
        for wrong in [server.client.clone(), server.client.with_key("convo_wrong"), server.client.with_key("")] {
            let answer = route.send(&wrong, "conv_x", "x");
            assert_eq!(answer.code(401), "invalid_api_key", "{} {}", route.verb, route.path);
            assert!(answer.header("www-authenticate").is_some());
        }
    }
    for path in ["/v1/none", "/none"] {
        assert_eq!(server.client.get(path).code(401), "invalid_api_key");
    }
    let log = server.log_so_far();
    for secret in clients.iter().chain([&all]) {
        assert!(!log.contains(secret.key.as_deref().unwrap()), "a key is in the log");
    }
    assert!(!log.contains(SECRET) && !log.contains("secret-key"), "content is in the log");
}

#[test]
fn lists_show_only_the_owners() {
    let (_server, clients) = Running::with_keys(&[("ada", "read,append"), ("grace", "read,append")]);
    let [ada, grace] = &clients[..] else { panic!() };
    let (ids, _) = secret(ada, "secret-key");
    grace.post("/v1/conversations", &json!({})).ok();
    for path in ["/v1/conversations", "/api/v1/conversations", "/api/v1/find?item=msg_secret", "/api/v1/unfinished"] {
        let text = grace.get(path).text();
        assert!(ids.iter().all(|id| !text.contains(id.as_str())), "{path}: {text}");
    }
    assert!(ada.get("/api/v1/find?item=msg_secret").text().contains(&ids[1]));
    assert_eq!(ada.get("/v1/conversations").ok()["data"].as_array().unwrap().len(), 1);
    // What begins after an id of another's tells nothing of it.
    let after = |id: &str| shape(&grace.get(&format!("/v1/conversations?after={id}")), &[id]);
    assert_eq!(after(&ids[0]), after("conv_00000000000070008000000000000000"));
}
