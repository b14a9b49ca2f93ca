//! Lines of a transcript: each is a message or an error; a message reads back as it was written, and out of a store as it
//! went in.

use conversation_store::model::{Line, Message};
use conversation_store::{Error, Store};

/// Takes the bytes as the lines of a transcript.
pub fn holds(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let messages: Vec<Message> = text.lines().filter_map(read).collect();
    if messages.is_empty() {
        return;
    }
    let store = Store::open("memory:").unwrap();
    match store.append("c", &messages) {
        Ok(_) => {}
        Err(Error::LimitExceeded { .. }) => return,
        Err(error) => panic!("{error}"),
    }
    let log = store.load_raw("c").unwrap();
    for (stored, given) in log.iter().zip(&messages) {
        let mut message = stored.message.clone();
        message.metadata.created_at = given.metadata.created_at;
        assert_eq!(message, *given);
    }
    assert_eq!(log.len(), messages.len());
}

fn read(text: &str) -> Option<Message> {
    let line = match Line::from_json(text) {
        Ok(line) => line,
        Err(error) => {
            assert!(error.column <= text.chars().count() + 1, "{error}");
            return None;
        }
    };
    let written = serde_json::to_string(&line).unwrap();
    let again = Line::from_json(&written).unwrap();
    assert_eq!((&again.conversation, &again.message), (&line.conversation, &line.message), "{written}");
    Some(line.message)
}
