//! Bytes that nobody would send.

use conversation_store::model::Message;
use conversation_store::provider::Event;
use proptest::prelude::*;

use crate::common::{cases, config, prompts};
use crate::{Merged, events};

/// Whatever the bytes: no panic, one beginning, one end, and deltas that a writer takes.
#[test]
fn any_bytes_are_taken() {
    const PIECES: &[&str] = &[
        "data: ",
        "data:",
        "event: error",
        "\n",
        "\r\n",
        "\r",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\ud83d",
        "\\",
        "null",
        "0",
        "\"choices\":",
        "\"delta\":",
        "\"message\":",
        "\"index\":",
        "\"content\":",
        "\"tool_calls\":",
        "\"function\":",
        "\"id\":",
        "\"name\":",
        "\"arguments\":",
        "\"error\":",
        "\"usage\":",
        "\"audio\":",
        "[DONE]",
        "\"x\"",
        "{}",
        "[]",
        "\u{feff}",
        "é",
        "{\"choices\":[{\"delta\":",
        "{\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]}",
        "{\"content\":\"a\"}",
        "}]}\n\n",
        "{\"audio\":{\"data\":\"Q\"}}",
        "{\"function_call\":{\"arguments\":1}}",
        "{\"tool_calls\":[1,{},{\"id\":\"a\",\"custom\":{}}]}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\",\"image_url\":\"b\"},null,1]}",
    ];
    let piece = prop_oneof![
        9 => proptest::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..4),
    ];
    let bytes = proptest::collection::vec(piece, 0..40);
    let mut runner = proptest::test_runner::TestRunner::new(config(cases("CONVO_HOSTILE_CASES", 500)));
    runner
        .run(&bytes, |pieces| {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            for target in prompts::targets() {
                let found = events(target, &pieces);
                assert!(
                    matches!(found.first(), Some(Event::Begin(_)))
                        && matches!(found.last(), Some(Event::Finish { .. }))
                );
                assert_eq!(found.iter().filter(|event| !matches!(event, Event::Delta { .. })).count(), 2);
                let whole = pieces.concat();
                assert_eq!(found, events(target, &[&whole]));
                let merged = Merged { events: found, finished: true };
                let message = merged.stored().message;
                assert_eq!(Message::from_json(&message.to_json()).unwrap().to_json(), message.to_json());
            }
            Ok(())
        })
        .unwrap();
}
