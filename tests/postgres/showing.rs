//! `convo show --follow`: what others write is printed as it comes, over connections that stay.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use conversation_store::Store;
use conversation_store::model::{Chunk, Message, Metadata, Role};
use serde_json::Value;

use crate::common::program::convo;
use crate::outcomes::through;
use crate::proxy::Proxy;

/// Fewer than there are messages to print: one for a read, one for a look for news, and one to spare.
const CONNECTIONS: usize = 3;

#[test]
fn a_conversation_is_followed_over_connections_that_stay() {
    let Some(server) = crate::running() else { return };
    let proxy = Proxy::start(server.port);
    let url = through(&proxy, server);
    let store = Store::open(&url.replace(&format!(":{}/", proxy.port), &format!(":{}/", server.port))).unwrap();
    store.append("chat", &[Message::user("0")]).unwrap();
    let mut child =
        convo(&["--json", "--store", &url, "show", "chat", "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || {
        let message: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        (message["index"].as_u64().unwrap(), message["chunks"][0]["text"].as_str().unwrap().to_owned())
    };
    assert_eq!(next(), (0, "0".to_owned()));
    for index in (1..9).step_by(2) {
        store.append("chat", &[Message::user(index.to_string())]).unwrap();
        assert_eq!(next(), (index, index.to_string()));
        // A message that is streamed is printed once it is whole.
        let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
        for part in ["a", "b", "c"] {
            writer.push(0, Chunk::text(part)).unwrap();
            store.sync().unwrap();
        }
        writer.finish(None, None).unwrap();
        assert_eq!(next(), (index + 1, "abc".to_owned()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(proxy.connections() <= CONNECTIONS, "{} connections", proxy.connections());
}
