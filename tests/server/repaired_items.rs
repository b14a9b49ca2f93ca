//! Items of damaged histories, as a provider accepts them.

use std::collections::HashSet;

use conversation_store::provider::{Target, check};
use serde_json::{Value, json};

use crate::common::http::Client;
use crate::common::running::Running;

/// The histories that broke real products, each as a conversation: by its name.
fn damaged(client: &Client) -> Vec<String> {
    let cases = include_str!("../fixtures/corruption.jsonl").lines();
    let cases = cases.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut names = Vec::new();
    for case in cases {
        let name = case["id"].as_str().unwrap().to_owned();
        // What no store takes is another matter.
        let stored = client.post(&format!("/api/v1/conversations/{name}/messages"), &case["history"]);
        if stored.status == 200 {
            names.push(name);
        }
    }
    assert!(names.len() > 90, "{}", names.len());
    names
}

/// All pages of a list.
fn listed(client: &Client, path: &str, order: &str, limit: usize, repaired: bool) -> Vec<Value> {
    let (mut items, mut after) = (Vec::new(), String::new());
    loop {
        let query = format!("order={order}&limit={limit}&repaired={repaired}&after={after}");
        let page = client.get(&format!("{path}/items?{query}")).ok();
        assert_eq!(page["data"].as_array().unwrap().len().min(limit), page["data"].as_array().unwrap().len());
        items.extend(page["data"].as_array().unwrap().iter().cloned());
        if page["has_more"] == false {
            return items;
        }
        after = page["last_id"].as_str().unwrap().to_owned();
    }
}

fn ids(items: &[Value]) -> Vec<&str> {
    // Reasoning may go without its id.
    let has_id = |item: &&Value| item["type"] != "reasoning" || item.get("id").is_some();
    items.iter().filter(has_id).map(|item| item["id"].as_str().unwrap()).collect()
}

fn is_made_up(id: &str) -> bool {
    id.contains("_madeup_")
}

#[test]
fn every_damaged_history_is_accepted_and_stays_what_is_stored() {
    let server = Running::open();
    let client = &server.client;
    let (mut refused, mut made_up, mut deleted) = (0, 0, 0);
    for name in damaged(client) {
        let path = format!("/v1/conversations/{name}");
        let stored = listed(client, &path, "asc", 100, false);
        let items = listed(client, &path, "asc", 100, true);
        let next = json!({ "type": "message", "role": "user", "content": "And now?" });
        let is_accepted = |items: &[Value]| {
            let input: Vec<&Value> = items.iter().chain([&next]).collect();
            let request = json!({ "model": "gpt-5", "input": input, "store": false }).to_string();
            let found = check(Target::OPENAI_RESPONSES, &request).unwrap();
            let found: Vec<_> = found.into_iter().filter(|finding| finding.level.is_refused()).collect();
            (found.is_empty(), found)
        };
        refused += usize::from(!is_accepted(&stored).0);
        let (accepted, why) = is_accepted(&items);
        assert!(accepted, "{name}: {why:?} {items:?}");
        // From call to call, and page by page in both orders.
        let mut turned = listed(client, &path, "desc", 3, true);
        turned.reverse();
        assert_eq!((&listed(client, &path, "asc", 2, true), &turned), (&items, &items), "{name}");
        assert_eq!(ids(&items).iter().collect::<HashSet<_>>().len(), ids(&items).len(), "{name}: an id is there twice");
        // What is not made up is stored, and named by its id or by its place.
        for id in ids(&items) {
            let item = client.get(&format!("{path}/items/{id}?repaired=false"));
            assert_eq!(item.status, 200, "{name} {id}");
            assert_eq!(item.json()["id"].as_str().is_some_and(is_made_up), is_made_up(id), "{name} {id}");
            if is_made_up(id) {
                made_up += 1;
                assert_eq!(client.delete(&format!("{path}/items/{id}")).code(400), "item_made_up");
            }
        }
        // The last one that is stored is deleted, and what is left is accepted again.
        if let Some(last) = ids(&items).into_iter().rev().find(|id| !is_made_up(id)) {
            client.delete(&format!("{path}/items/{last}")).ok();
            deleted += 1;
            let left = listed(client, &path, "asc", 100, false);
            assert!(left != stored && left.len() + 1 >= stored.len(), "{name} {last}");
            let (accepted, why) = is_accepted(&listed(client, &path, "asc", 100, true));
            assert!(accepted, "{name}: {why:?}");
        }
    }
    assert!(refused > 10 && made_up > 10 && deleted > 90, "{refused} {made_up} {deleted}");
}

/// A call, and what a tool gave for another one.
fn orphans(client: &Client) -> String {
    let made = client.post(
        "/v1/conversations",
        &json!({ "items": [
        { "role": "user", "content": "Why?" },
        { "type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "call_2", "output": "lost" },
        { "role": "user", "content": "Well?" },
    ] }),
    );
    format!("/v1/conversations/{}", made.ok()["id"].as_str().unwrap())
}

#[test]
fn who_asks_says_whether_items_are_repaired() {
    let (server, clients) = Running::with_keys(&[("ada", "read,append,delete")]);
    let ada = &clients[0];
    let path = orphans(ada);
    let kinds = |client: &Client, query: &str, header: Option<&str>| -> Vec<String> {
        let headers: Vec<_> = header.map(|value| ("x-convo-repaired", value)).into_iter().collect();
        let page = client.send("GET", &format!("{path}/items?order=asc{query}"), &headers, b"").ok();
        page["data"].as_array().unwrap().iter().map(|item| item["call_id"].as_str().unwrap_or("-").to_owned()).collect()
    };
    let (stored, repaired) = (["-", "call_1", "call_2", "-"], ["-", "call_1", "call_1", "-"]);
    assert_eq!(kinds(ada, "", None), stored);
    assert_eq!(kinds(ada, "&repaired=true", None), repaired);
    assert_eq!(kinds(ada, "", Some("true")), repaired);
    assert_eq!(kinds(ada, "&repaired=false", Some("true")), stored);
    ada.get(&format!("{path}/items?repaired=yes")).code(400);
    // The report: how long it is, and what it says.
    let page = ada.get(&format!("{path}/items?repaired=true"));
    assert!(page.json().get("report").is_none());
    let full = ada.get(&format!("{path}/items?repaired=true&include[]=convo.report"));
    let report = full.json()["report"].as_array().unwrap().clone();
    assert_eq!(page.header("x-convo-report"), Some(&*report.len().to_string()));
    assert!(report.iter().any(|line| line["rule"] == "outcome_unknown"), "{report:?}");
    assert_eq!(ada.get(&format!("{path}/items")).header("x-convo-report"), None);
    // A key of its own, and a server where every key is one.
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_convo"))
        .args(["keys", "create", "--repaired", "--owner", "ada", "--keys"])
        .arg(server.keys())
        .output()
        .unwrap();
    let key = server.client.with_key(String::from_utf8(output.stdout).unwrap().trim());
    let begun = std::time::Instant::now();
    while key.get(&path).status != 200 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "a new key is not noticed");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(kinds(&key, "", None), repaired);
    assert_eq!(kinds(&key, "", Some("false")), stored);
    let server = Running::start_in_environment("memory:", &[], &[("CONVO_OPENAI__REPAIRED_ITEMS", "true")]);
    let path = orphans(&server.client);
    let last =
        server.client.get(&format!("{path}/items?order=asc&limit=3")).ok()["last_id"].as_str().unwrap().to_owned();
    assert!(is_made_up(&last));
    // A real output takes the place of what was made up, and a page goes on after it.
    let output = json!({ "items": [{ "type": "function_call_output", "call_id": "call_1", "output": "seen" }] });
    server.client.post(&format!("{path}/items"), &output).ok();
    let rest = server.client.get(&format!("{path}/items?order=asc&after={last}")).ok();
    assert_eq!(ids(rest["data"].as_array().unwrap()).iter().filter(|id| is_made_up(id)).count(), 0);
    let all = server.client.get(&format!("{path}/items?order=asc")).ok();
    assert_eq!(all["data"][2]["output"], "seen");
}
