//! Conversations as sessions that another program goes on with.

use conversation_store::model::{Body, Chunk, Message, Role};
use conversation_store::transfer::{Agent, hand_over};
use conversation_store::{Error, Store};
use serde_json::{Value, json};

use super::{conversations, into};

/// A conversation that a vendor's model and another one's had a part in, as a proxy records it.
fn stored(provider: &str) -> Store {
    let store = Store::open("memory:").unwrap();
    let signed = Body::Thinking { text: "hm".to_owned(), signature: Some("c2ln".to_owned()), redacted: None };
    let mut called = Message::assistant([
        signed.into(),
        Chunk::text("I look."),
        Chunk::tool_call("call_1", "shell", r#"{"cmd":"ls"}"#),
    ]);
    called.metadata.provider = Some(provider.to_owned());
    called.metadata.model = Some("m-1".to_owned());
    let mut answer = Message::assistant([Chunk::text("It is a.txt.")]);
    answer.metadata.provider = Some("mistral".to_owned());
    let reminded = Message::new(Role::User, [Chunk::text("<system-reminder>now</system-reminder>\nWhat is here?")]);
    let context = Message::user("<environment_context>\n<cwd>/x</cwd></environment_context>");
    let allowed = Message::user("<permissions instructions>ask</permissions instructions>");
    let log = [
        Message::system("You are another program."),
        context,
        allowed,
        reminded,
        called,
        Message::tool("call_1", "a.txt"),
        answer,
    ];
    store.append("chat", &log).unwrap();
    store
}

fn lines(store: &Store, agent: Agent) -> (tempfile::TempDir, Vec<Value>) {
    let home = crate::common::tempdir().unwrap();
    let session = hand_over(store, "chat", agent, home.path(), "/home/ada/my app".as_ref()).unwrap();
    let id = session.session.to_string();
    let place = session.file.strip_prefix(home.path()).unwrap().to_str().unwrap().to_owned();
    match agent {
        Agent::ClaudeCode => assert_eq!(place, format!("projects/-home-ada-my-app/{id}.jsonl")),
        _ => assert!(place.starts_with("sessions/20") && place.ends_with(&format!("-{id}.jsonl")), "{place}"),
    }
    assert!(session.command.ends_with(&format!(" {id}")));
    assert_eq!((session.summary.left_out["system_message"], session.summary.left_out["scaffolding"]), (1, 3));
    let text = std::fs::read_to_string(&session.file).unwrap();
    (home, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn claude_code_gets_messages_of_its_api() {
    let (_home, all) = lines(&stored("openai"), Agent::ClaudeCode);
    let said: Vec<&Value> = all.iter().filter(|line| line.get("message").is_some()).collect();
    let contents: Vec<_> =
        said.iter().map(|line| (line["type"].as_str().unwrap(), line["message"]["content"].clone())).collect();
    let text = |text: &str| json!({ "type": "text", "text": text });
    let call = json!({ "type": "tool_use", "id": "call_1", "name": "shell", "input": { "cmd": "ls" } });
    // Another vendor's proof of its thinking is left out.
    assert_eq!(contents[1], ("assistant", json!([text("I look."), call])));
    let result = &contents[2].1[0];
    assert_eq!((&result["type"], &result["tool_use_id"]), (&json!("tool_result"), &json!("call_1")));
    assert_eq!(contents[3], ("assistant", json!([text("It is a.txt.")])));
    assert!(contents[0].1.to_string().contains("What is here?") && !contents[0].1.to_string().contains("reminder"));
    let ids: Vec<&Value> = said.iter().map(|line| &line["uuid"]).collect();
    let parents: Vec<&Value> = said.iter().map(|line| &line["parentUuid"]).collect();
    assert_eq!((parents[0], &parents[1..]), (&Value::Null, &ids[..3]));
    assert!(said.iter().all(|line| line["cwd"] == "/home/ada/my app" && line["sessionId"] == said[0]["sessionId"]));
    // Its own vendor's is kept.
    let (_home, all) = lines(&stored("anthropic"), Agent::ClaudeCode);
    assert_eq!(all[1]["message"]["content"][0], json!({ "type": "thinking", "thinking": "hm", "signature": "c2ln" }));
}

#[test]
fn codex_gets_items_of_its_api() {
    for (provider, thinks) in [("anthropic", false), ("openai", true)] {
        let (_home, all) = lines(&stored(provider), Agent::Codex);
        let meta = &all[0];
        assert_eq!((&meta["type"], &meta["payload"]["cwd"]), (&json!("session_meta"), &json!("/home/ada/my app")));
        let items: Vec<&Value> =
            all.iter().filter(|line| line["type"] == "response_item").map(|line| &line["payload"]).collect();
        let kinds: Vec<&str> = items.iter().map(|item| item["type"].as_str().unwrap()).collect();
        let reasoning = if thinks { &["reasoning"][..] } else { &[] };
        let wanted =
            [&["message"], reasoning, &["message", "function_call", "function_call_output", "message"]].concat();
        assert_eq!(kinds, wanted, "{provider}");
        assert!(
            items.iter().all(|item| item["type"] == "reasoning" || item.get("id").is_none()),
            "ids are of the session before"
        );
        if thinks {
            assert_eq!(items[1]["encrypted_content"], "c2ln");
        }
        let shown: Vec<_> = all
            .iter()
            .filter(|line| line["type"] == "event_msg")
            .map(|line| line["payload"]["message"].as_str().unwrap())
            .collect();
        assert_eq!(shown, ["What is here?", "I look.", "It is a.txt."]);
    }
}

#[test]
fn each_session_is_a_new_one_and_is_read_again() {
    let store = stored("openai");
    let home = crate::common::tempdir().unwrap();
    for agent in Agent::ALL {
        let sessions = [(); 2].map(|()| hand_over(&store, "chat", agent, home.path(), "/w".as_ref()).unwrap());
        assert_ne!(sessions[0].file, sessions[1].file);
        let other = Store::open("memory:").unwrap();
        into(&other, "session.jsonl", std::fs::read(&sessions[0].file).unwrap()).summary.unwrap();
        let [id] = conversations(&other)[..] else { panic!("one conversation") };
        let key = other.describe(id).unwrap().key.unwrap();
        assert_eq!(key, format!("{}:{}", agent.as_str(), sessions[0].session));
        assert_eq!("claude-code".parse::<Agent>().unwrap(), Agent::ClaudeCode);
    }
    store.append("empty", &[Message::system("Be brief.")]).unwrap();
    for agent in Agent::ALL {
        let nothing = hand_over(&store, "empty", agent, home.path(), "/w".as_ref());
        assert!(matches!(nothing, Err(Error::NothingToSend(_))), "{nothing:?}");
    }
}
