//! Bytes that nobody would send.

use conversation_store::model::Message;
use conversation_store::provider::Event;
use proptest::prelude::*;

use crate::common::{cases, config, prompts};
use crate::ingest::{Merged, events};

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
    const EVENTS: &[&str] = &[
        "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\"}}\n\n",
        "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"d\",\"name\":\"g\"}}\n\n",
        "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{}\"}\n\n",
        "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"é\"}\n\n",
        "data: {\"type\":\"response.refusal.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"no\"}\n\n",
        "data: {\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"summary_index\":1,\"delta\":\"hm\"}\n\n",
        "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"e\",\"name\":\"h\",\"arguments\":\"{}\",\"namespace\":\"n\"}}\n\n",
        "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"msg_1\",\"type\":\"message\",\"phase\":\"commentary\",\"content\":[{\"type\":\"output_text\",\"text\":\"éa\",\"annotations\":[{}]},{\"type\":\"refusal\",\"refusal\":\"n\"}]}}\n\n",
        "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"summary\":[{\"text\":\"hm\"}],\"encrypted_content\":\"e\"}}\n\n",
        "data: {\"type\":\"response.completed\",\"output_index\":0,\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"web_search_call\"},1,{\"role\":\"user\",\"content\":null}]}}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\",\"thought\":true},{\"text\":\"\",\"thoughtSignature\":\"c2ln\"}]}}]}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\"}},{\"functionCall\":1},{},null]},\"finishReason\":\"STOP\"}]}\n\n",
        "data: {\"promptFeedback\":{\"blockReason\":\"OTHER\"},\"usageMetadata\":{}}\n\n",
    ];
    let piece = prop_oneof![
        3 => proptest::sample::select(EVENTS).prop_map(|event| event.as_bytes().to_vec()),
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
