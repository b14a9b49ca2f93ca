//! Every route, every set of scopes, and everything that may name what another owner has: the answer is that of what does not
//! exist. The routes come from the OpenAPI document and from the table of the log's calls, so a new one is covered by itself.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use conversation_store::model::{Chunk, ConversationId, Json, Message, Metadata, Name, Role};
use conversation_store::server::{Config, KeyFile, KeyOptions, Scope, Server};
use conversation_store::{AppendOptions, ListQuery, NewConversation, Store};
use serde_json::{Value, json};

use crate::client::{cut, frame};
use crate::owners::{Route, routes};

/// What must never be seen: in a message, a title, a tag, metadata and an id of an item.
const SECRETS: &[&str] = &["the-secret-words", "the-secret-title", "the-secret-tag", "the-secret-value"];
const ITEM: &str = "msg_secret";
const NO_ITEM: &str = "msg_absent";

/// Numbers that differ in each run of a round, and are the same in each run of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Another's conversation, and one that does not exist, named alike.
struct Twins {
    foreign: [String; 2],
    absent: [String; 2],
    /// As keys, both are the caller's own, who may have made them both meanwhile.
    are_own: bool,
}

impl Twins {
    /// By id: as UUID and as the OpenAI API writes it.
    fn ids(foreign: ConversationId, absent: ConversationId) -> Self {
        let forms = |id: ConversationId| [id.to_string(), format!("conv_{}", id.to_string().replace('-', ""))];
        Self { foreign: forms(foreign), absent: forms(absent), are_own: false }
    }
}

/// An id of version 7 that was made three days ago.
fn old_id(byte: u8) -> ConversationId {
    let mut bytes = *ConversationId::new().as_bytes();
    let made = u64::from_be_bytes([0, 0, bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]]) - 3 * 86_400_000;
    bytes[..6].copy_from_slice(&made.to_be_bytes()[2..]);
    bytes[15] = byte;
    ConversationId::from_bytes(bytes)
}

/// Writes what must not be seen.
fn secret(store: &Store, name: &Name) {
    let mut new = NewConversation::new();
    (new.title, new.tags) = (Some(SECRETS[1].to_owned()), vec![SECRETS[2].to_owned()]);
    new.metadata = Some(Json::new(json!({ "a": SECRETS[3] }).to_string()).unwrap());
    store.create(name, &new).unwrap();
    let mut message = Message::user(SECRETS[0]);
    message.metadata.id = Some(ITEM.to_owned());
    store.append_with(name, &[message], &AppendOptions::new().with_idempotency_key("used")).unwrap();
    let mut writer = store.begin(name, Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text(SECRETS[0])).unwrap();
    // It is interrupted, and then among what is unfinished.
    drop(writer);
    store.sync().unwrap();
}

/// One answer: its status, and its body, but for that of a stream of events.
fn ask(address: SocketAddr, key: &str, behalf: &str, asked: &Asked) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let Asked { verb, target, headers, body } = asked;
    let length = body.len();
    let head = format!("{verb} {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n");
    stream.write_all(format!("{head}{headers}{behalf}authorization: Bearer {key}\r\n\r\n").as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let (mut answer, mut piece) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let read = stream.read(&mut piece).unwrap();
        answer.extend_from_slice(&piece[..read]);
        let is_stream = answer.windows(17).any(|window| window == b"text/event-stream");
        if read == 0 || is_stream {
            break;
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// The calls of the log, which are in no document.
fn calls() -> Vec<Route> {
    let table = include_str!("../../src/server/remote/mod.rs");
    let calls = table.split("Route::post(\"").skip(1).map(|row| {
        let (path, rest) = row.split_once("\", Scope::").unwrap();
        let (path, scope) = (path.to_owned(), rest.split_once(',').unwrap().0.to_lowercase());
        Route { verb: "POST".to_owned(), path, scope, parameters: Vec::new(), example: Value::Null }
    });
    let calls: Vec<Route> = calls.collect();
    assert_eq!(calls.len(), table.matches("/api/v1/log/").count(), "a row is not read");
    calls
}

/// The records in which a client of the log sends a message, and the beginning of one.
fn sent(address: &str, key: &Path) -> [Vec<u8>; 2] {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let url = cut::through(address, {
        let requests = Arc::clone(&requests);
        move |request, answer| {
            requests.lock().unwrap().push(request.to_vec());
            Some(answer)
        }
    });
    let store = Store::open(&format!("{url}?key_file={}", key.display())).unwrap();
    store.append("own", &[Message::user("hello")]).unwrap();
    drop(store.begin("own", Role::User, Metadata::default()).unwrap());
    store.close().unwrap();
    let requests = requests.lock().unwrap();
    ["append", "begin"].map(|call| {
        let head = format!("POST /api/v1/log/{call} ");
        let request = requests.iter().find(|request| request.starts_with(head.as_bytes())).unwrap();
        let body = request.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        let (length, rest) = request[body..].split_first_chunk().unwrap();
        rest[usize::try_from(u32::from_be_bytes(*length)).unwrap()..].to_vec()
    })
}

/// A request, complete but for the key.
#[derive(PartialEq)]
struct Asked {
    verb: String,
    target: String,
    headers: String,
    body: Vec<u8>,
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// A request to a documented route that names a conversation, and an item.
fn documented(
    route: &Route,
    form: &[String; 2],
    item: &str,
    cursor: &str,
    names_owner: bool,
    dice: &mut Dice,
) -> Asked {
    let id = if route.path.starts_with("/v1") { &form[1] } else { &form[dice.below(2)] };
    let path = route.path.replace("{conversation}", &encoded(id)).replace("{item}", item).replace("{message}", "0");
    let (mut query, mut headers) = (Vec::new(), String::new());
    for parameter in &route.parameters {
        let [name, place] = ["name", "in"].map(|field| parameter[field].as_str().unwrap());
        let value = match name {
            "for" | "from" => "openai-chat",
            "item" => item,
            "after" if route.path.starts_with("/v1") => id.as_str(),
            "after" => cursor,
            "Idempotency-Key" => "used",
            "tag" => SECRETS[2],
            "title" => SECRETS[1],
            "owner" if names_owner => "ada",
            _ => continue,
        };
        if matches!(name, "after" | "tag" | "title" | "owner" | "Idempotency-Key") && dice.once_in(2) {
            continue;
        }
        match place {
            "query" => query.push(format!("{name}={}", encoded(value))),
            "header" => headers.push_str(&format!("{name}: {value}\r\n")),
            // Filled in above.
            _ => assert_eq!(place, "path"),
        }
    }
    let body = match route.example.clone() {
        Value::Null => Vec::new(),
        Value::String(bytes) => bytes.into_bytes(),
        mut body => {
            // Bodies may name a conversation, too.
            if let (Value::Object(fields), true) = (&mut body, dice.once_in(3)) {
                let name = if fields.contains_key("role") { "conversation" } else { "key" };
                fields.insert(name.to_owned(), id.as_str().into());
            }
            body.to_string().into_bytes()
        }
    };
    let target = format!("{path}?{}", query.join("&"));
    Asked { verb: route.verb.clone(), target, headers, body }
}

/// A request to a call of the log.
fn framed(
    route: &Route,
    form: &[String; 2],
    [message, beginning]: &[Vec<u8>; 2],
    incarnation: u64,
    cursor: &str,
    dice: &mut Dice,
) -> Asked {
    let owner = ["ada", "grace"][dice.below(2)];
    let name = if dice.once_in(2) { json!({ "name": form[0] }) } else { json!({ "name": form[0], "owner": owner }) };
    let id = form[0].parse().unwrap_or(ConversationId::from_bytes([0; 16]));
    let of = json!({ "id": id.to_string(), "incarnation": incarnation });
    let (one, begun) = (message.clone(), beginning.clone());
    let new = json!({ "name": ConversationId::new().to_string() });
    let expected = [json!("any"), json!("new"), json!({ "at": 3 })][dice.below(3)].clone();
    let key = [Value::Null, json!("used")][dice.below(2)].clone();
    let append = json!({ "name": name, "expected": expected, "key": key, "buffered": false });
    let to = [
        json!({ "title": "x" }),
        json!({ "tags": { "remove": [SECRETS[2]], "add": ["x"] } }),
        json!({ "metadata": "{}" }),
        json!({ "rewind": { "to": 0 } }),
        json!({ "remove": { "message": 0, "chunk": null } }),
        json!({ "summarize": { "through": 0, "text": "x" } }),
    ];
    let (head, bytes) = match route.path.trim_start_matches("/api/v1/log/") {
        "hello" => (json!({ "protocol": 1 }), Vec::new()),
        "append" => (append, one),
        "append_changing" => {
            let changing = json!({
                "append": append, "title": "x", "add_tags": ["x"], "remove_tags": [SECRETS[2]], "metadata": "{}",
            });
            (changing, if dice.once_in(2) { one } else { Vec::new() })
        }
        "begin" => (append, begun),
        "push" => (json!({ "writer": "00", "number": 1, "chunk_index": 0 }), one),
        "finish" => (json!({ "writer": "00" }), begun),
        "keep" | "drop" => (json!({ "writers": ["00"] }), Vec::new()),
        "create" => (json!({ "name": name, "title": null, "tags": [], "metadata": null }), Vec::new()),
        "change" => (json!({ "name": name, "to": to[dice.below(to.len())] }), Vec::new()),
        "fork" if dice.once_in(2) => (json!({ "parent": name, "at_seq": 1, "child": new }), Vec::new()),
        "fork" => (json!({ "parent": { "name": "own" }, "at_seq": 1, "child": name }), Vec::new()),
        "delete" => (json!({ "name": name, "at": null }), Vec::new()),
        "redact" => (json!({ "name": name, "message": 0, "chunk": null }), Vec::new()),
        "sync" | "conversations" | "unfinished" | "size" => (json!({}), Vec::new()),
        "view" => (json!({ "name": name }), Vec::new()),
        "read" => (json!({ "of": of, "first": 1, "last": 9, "descending": false, "bytes": 1_000 }), Vec::new()),
        "since" => (json!({ "of": of, "commit": 0 }), Vec::new()),
        "item" => (json!({ "of": of, "item": ITEM }), Vec::new()),
        "list" => {
            let after = [Value::Null, json!(cursor)][dice.below(2)].clone();
            (json!({ "owner": owner, "limit": 9, "after": after, "title": null, "tags": [] }), Vec::new())
        }
        "wait" => (json!({ "name": name, "incarnation": incarnation, "seq": 1, "milliseconds": 1 }), Vec::new()),
        other => panic!("the call {other} of the log is not covered: give it a body here"),
    };
    let body = frame(head.to_string().as_bytes(), &bytes);
    Asked { verb: route.verb.clone(), target: route.path.clone(), headers: String::new(), body }
}

/// An answer without what was asked for, and without times and numbers that are new in each answer.
fn shape((status, text): &(u16, String), form: &[String; 2]) -> (u16, String) {
    let mut text = text.clone();
    for id in form {
        text = text.replace(id.as_str(), "ID");
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(value) if *status == 200 => (*status, kinds(&value).to_string()),
        _ if *status == 200 => (*status, String::new()),
        _ => (*status, text),
    }
}

/// The kinds of all values.
fn kinds(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), kinds(value))).collect(),
        Value::Array(values) => values.iter().map(kinds).collect(),
        Value::String(_) => json!("text"),
        Value::Number(_) => json!("number"),
        other => other.clone(),
    }
}

#[test]
fn what_is_anothers_is_as_what_does_not_exist() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys.json");
    let file = KeyFile::new(&path);
    let of_grace = [Scope::Read, Scope::Append, Scope::Delete, Scope::Admin];
    let sets: Vec<Vec<Scope>> = (1..16_u32)
        .map(|set| {
            of_grace.into_iter().enumerate().filter(|(at, _)| set >> at & 1 == 1).map(|(_, scope)| scope).collect()
        })
        .collect();
    // Grace's own keys, and those of somebody who may act for every owner, and acts for her.
    let mut keys: Vec<(Vec<Scope>, String, &str)> = Vec::new();
    for scopes in sets {
        let secret = file.create("grace", &scopes, &KeyOptions::new()).unwrap().1;
        keys.push((scopes.clone(), secret, ""));
        if !scopes.contains(&Scope::Admin) {
            let scopes = [&*scopes, &[Scope::Impersonate]].concat();
            let secret = file.create("backend", &scopes, &KeyOptions::new()).unwrap().1;
            keys.push((scopes, secret, "x-convo-owner: grace\r\n"));
        }
    }
    let key_of_client = dir.path().join("key");
    std::fs::write(&key_of_client, &file.create("grace", &of_grace, &KeyOptions::new()).unwrap().1).unwrap();
    let store = Store::open("memory:").unwrap();
    let (key, old) = (Name::from("secret-key").with_owner("ada"), Name::from(old_id(1)).with_owner("ada"));
    secret(&store, &key);
    secret(&store, &old);
    store.append(Name::from("own").with_owner("grace"), &[Message::user("mine")]).unwrap();
    let twins = [
        Twins::ids(key.id(), Name::from("no-key").with_owner("ada").id()),
        Twins::ids(old.id(), old_id(2)),
        Twins {
            foreign: ["secret-key", "conv_x"].map(str::to_owned),
            absent: ["absnt-key", "conv_y"].map(str::to_owned),
            are_own: true,
        },
    ];
    let cursor = store.load(&key).unwrap().cursor().unwrap().to_string();
    let incarnation = u64::from_str_radix(cursor.split_once('-').unwrap().1, 16).unwrap();
    let cursor = store.list(&ListQuery::new().with_owner("ada").with_limit(1)).unwrap().next.unwrap().to_string();
    let before = [&key, &old].map(|name| store.load_raw(name).unwrap());
    let described = [&key, &old].map(|name| store.describe(name).unwrap());

    let mut config = Config::default();
    config.server.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    config.auth.keys_file = Some(path);
    let server = Server::bind(store.clone(), config).unwrap();
    let (address, handle) = (server.address().unwrap(), server.handle());
    let serving = std::thread::spawn(move || server.run());

    let routes = [routes(), calls()].concat();
    let records = sent(&address.to_string(), &key_of_client);
    let rounds = std::env::var("CONVO_OWNER_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
    let (mut asked, mut pairs, mut refused) = (0_u64, 0_u64, 0_u64);
    for round in 0..rounds {
        for route in &routes {
            let is_log = route.path.starts_with("/api/v1/log/");
            for (scopes, key, behalf) in &keys {
                // The log shows an admin all owners; so do the calls for admins alone.
                if scopes.contains(&Scope::Admin) && (is_log || route.scope == "admin") {
                    continue;
                }
                for (number, twins) in twins.iter().enumerate() {
                    let seed = round * 1_000_003 + asked;
                    let [one, two] = [(&twins.foreign, ITEM), (&twins.absent, NO_ITEM)].map(|(form, item)| {
                        // The same throw for both.
                        let mut dice = Dice(seed);
                        if is_log {
                            framed(route, form, &records, incarnation, &cursor, &mut dice)
                        } else {
                            // An admin may name any owner.
                            let names_owner = !scopes.contains(&Scope::Admin);
                            documented(route, form, item, &cursor, names_owner, &mut dice)
                        }
                    });
                    let [foreign, absent] = [&one, &two].map(|asked| ask(address, key, behalf, asked));
                    let place = format!("{} {} by {scopes:?}, {number}, seed {seed}", route.verb, route.path);
                    assert!(foreign.0 < 500, "{place}: {foreign:?}");
                    // After two conversations of the caller's own come others: only the status is alike.
                    let differ = twins.are_own && route.path == "/v1/conversations" && one.target.contains("after=");
                    let shaped = |answer, form, item: &str| {
                        let (status, text) = shape(answer, form);
                        (status, if differ { String::new() } else { text.replace(item, "ITEM") })
                    };
                    // A request that names nobody's conversation is the same one twice.
                    if one != two {
                        let answers = (shaped(&foreign, &twins.foreign, ITEM), shaped(&absent, &twins.absent, NO_ITEM));
                        assert_eq!(answers.0, answers.1, "{place}: another's is not as one that does not exist");
                        pairs += 1;
                    }
                    for secret in SECRETS {
                        assert!(!foreign.1.contains(secret), "{place}: {foreign:?}");
                    }
                    asked += 1;
                    refused += u64::from(foreign.0 >= 400);
                }
            }
        }
    }
    println!("{asked} requests, {refused} refused; {pairs} compared with what does not exist");
    assert!(pairs > 1_000 && refused < asked, "{asked} {pairs} {refused}");
    assert_eq!([&key, &old].map(|name| store.load_raw(name).unwrap()), before, "nothing was changed");
    assert_eq!([&key, &old].map(|name| store.describe(name).unwrap()), described);
    handle.end();
    serving.join().unwrap().unwrap();
}
