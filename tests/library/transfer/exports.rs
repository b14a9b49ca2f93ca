//! What real exports hold beside texts, format by format: each is imported as what it is, or kept and named.

use conversation_store::model::{Body, Chunk, FinishReason, Message, Output};
use serde_json::{Value, json};

use super::hostile::zipped;
use super::{Run, assert_works, imported, messages, unanswered};

/// Imports, checks that everything renders, and gives the conversation of this key.
fn said(name: &str, text: impl AsRef<[u8]>, key: &str) -> (Vec<Message>, Run) {
    let (store, run) = imported(name, text);
    assert_eq!(run.summary.as_ref().unwrap().failed, 0, "{:?}", run.conversations);
    assert_works(&store);
    (messages(&store, key), run)
}

/// `role:kind kind` of each message.
fn kinds(said: &[Message]) -> Vec<String> {
    let kinds = |message: &Message| message.chunks.iter().map(|chunk| chunk.body.kind()).collect::<Vec<_>>().join(" ");
    said.iter().map(|message| format!("{}:{}", message.role, kinds(message))).collect()
}

fn chunks(said: &[Message]) -> impl Iterator<Item = &Chunk> {
    said.iter().flat_map(|message| &message.chunks)
}

/// A chain of ChatGPT's messages: role and name, recipient, content, metadata.
fn chatgpt(all: &[(&str, &str, Value, Value)]) -> String {
    let mut mapping = serde_json::Map::new();
    mapping.insert("n0".to_owned(), json!({"id": "n0", "message": null, "parent": null, "children": ["n1"]}));
    for (at, (author, recipient, content, metadata)) in (1..).zip(all) {
        let (role, name) = author.split_once(' ').unwrap_or((author, ""));
        let message = json!({
            "id": format!("n{at}"), "author": {"role": role, "name": name, "metadata": {}}, "create_time": 1.7e9,
            "content": content, "status": "finished_successfully", "end_turn": true, "weight": 1.0,
            "metadata": metadata, "recipient": recipient, "channel": null,
        });
        let node =
            json!({"id": format!("n{at}"), "message": message, "parent": format!("n{}", at - 1), "children": []});
        mapping.insert(format!("n{at}"), node);
    }
    json!([{"title": "T", "conversation_id": "c", "gizmo_id": "g-1", "current_node": format!("n{}", all.len()), "mapping": mapping}])
        .to_string()
}

#[test]
fn chatgpt_with_voice_canvas_browsing_and_code() {
    let text = |text: &str| json!({"content_type": "text", "parts": [text]});
    let export = chatgpt(&[
        (
            "user",
            "all",
            json!({"content_type": "user_editable_context", "user_profile": "I bake.", "user_instructions": "Be brief."}),
            json!({"is_user_system_message": true}),
        ),
        (
            "user",
            "all",
            json!({"content_type": "multimodal_text", "parts": [
                {"content_type": "audio_transcription", "text": "Look at this", "direction": "in", "decoding_id": null},
                {"content_type": "real_time_user_audio_video_asset_pointer", "frames_asset_pointers": [],
                    "audio_asset_pointer": {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_sound", "format": "wav"}},
                {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_picture", "width": 1, "height": 1},
            ]}),
            json!({"attachments": [
                {"id": "file_picture", "name": "cake.png", "mime_type": "image/png"},
                {"id": "file-paper", "name": "paper.pdf", "mime_type": "application/pdf"},
            ]}),
        ),
        (
            "assistant",
            "all",
            json!({"content_type": "thoughts", "thoughts": [{"summary": "Looking", "content": "A cake."}], "source_analysis_msg_id": "x"}),
            json!({}),
        ),
        ("assistant", "all", json!({"content_type": "reasoning_recap", "content": "Thought for 3 seconds"}), json!({})),
        (
            "assistant",
            "web.run",
            json!({"content_type": "code", "language": "unknown", "text": "{\"q\":\"cakes\"}"}),
            json!({}),
        ),
        (
            "tool web.run",
            "all",
            json!({"content_type": "tether_browsing_display", "result": "L1: cakes", "summary": "", "assets": null}),
            json!({}),
        ),
        (
            "tool web.run",
            "all",
            json!({"content_type": "tether_quote", "url": "https://example.org", "domain": "example.org", "text": "A quote", "title": "Cakes"}),
            json!({}),
        ),
        ("assistant", "python", json!({"content_type": "code", "language": "python", "text": "1/0"}), json!({})),
        (
            "tool python",
            "all",
            json!({"content_type": "execution_output", "text": "ZeroDivisionError"}),
            json!({"aggregate_result": {"status": "failed"}}),
        ),
        ("assistant", "browser", json!({"content_type": "code", "language": "unknown", "text": "open()"}), json!({})),
        (
            "tool browser",
            "all",
            json!({"content_type": "system_error", "name": "ToolError", "text": "Timed out"}),
            json!({}),
        ),
        ("assistant", "canmore.create_textdoc", text("{\"name\":\"cake\",\"type\":\"document\"}"), json!({})),
        ("tool canmore.create_textdoc", "all", text(""), json!({"canvas": {"textdoc_id": "d"}})),
        ("assistant", "all", json!({"content_type": "super_widget", "widgets": []}), json!({})),
        (
            "assistant",
            "all",
            text("Done."),
            json!({"model_slug": "gpt-5", "finish_details": {"type": "stop"}, "citations": [{"a": 1}]}),
        ),
    ]);
    let zip = zipped(&[
        ("conversations.json", export.as_bytes()),
        ("message_feedback.json", b"[]"),
        ("shared_conversations.json", br#"[{"id": "s", "conversation_id": "c", "title": "T", "is_anonymous": true}]"#),
        ("file_picture-cake.png", b"picture"),
        ("c/audio/file_sound.wav", b"sound"),
        ("file-paper-paper.pdf", b"paper"),
    ]);
    let (said, run) = said("export.zip", zip, "chatgpt:c");
    let wanted = [
        "system:text",
        "user:text audio image file",
        "assistant:thinking",
        "assistant:thinking",
        "assistant:tool_call",
        "tool:tool_result",
        "tool:text",
        "assistant:tool_call",
        "tool:tool_result",
        "assistant:tool_call",
        "tool:tool_result error",
        "assistant:tool_call",
        "tool:tool_result",
        "assistant:opaque",
        "assistant:text",
    ];
    assert_eq!(kinds(&said), wanted);
    assert!(unanswered(&said).is_empty());
    // What is in the archive is inline, each file once.
    assert!(matches!(&said[1].chunks[1].body, Body::Audio(audio) if audio.data.as_deref() == Some("c291bmQ=")));
    assert!(matches!(&said[1].chunks[2].body, Body::Image(image) if image.url.starts_with("data:image/png;base64,")));
    assert!(
        matches!(&said[1].chunks[3].body, Body::File(file) if file.data.is_some() && file.name.as_deref() == Some("paper.pdf"))
    );
    let failed = |chunk: &Chunk| matches!(&chunk.body, Body::ToolResult { is_error: Some(true), output: Output::Text(text), .. } if text == "Timed out");
    assert!(failed(&said[10].chunks[0]), "{:?}", said[10]);
    assert_eq!(said[14].metadata.model.as_deref(), Some("gpt-5"));
    assert_eq!(run.conversations[0].skipped["content_kept_as_it_is:super_widget"], 1);
    assert!(run.notes.iter().any(|note| note.contains("shared_conversations.json")), "{:?}", run.notes);
}

#[test]
fn claude_ai_with_tools_files_and_flags() {
    let message = |uuid: &str, sender: &str, text: &str, content: Value, more: Value| {
        let mut message = json!({"uuid": uuid, "sender": sender, "text": text, "content": content,
            "created_at": "2026-01-02T03:04:05.000000Z", "attachments": [], "files": []});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    };
    let export = json!([{"uuid": "c", "name": "", "summary": "s", "account": {"uuid": "a"}, "chat_messages": [
        message("m1", "human", "", json!([{"type": "text", "text": "Read these", "citations": []}]), json!({
            "attachments": [{"file_name": "notes.txt", "file_size": 5, "file_type": "txt", "extracted_content": "notes"}],
            "files": [{"file_name": "a.png", "file_uuid": "f1"}, {"file_name": "b.pdf"}],
        })),
        message("m2", "assistant", "This block is not supported on your current device yet.", json!([
            {"type": "thinking", "thinking": "Hm.", "summaries": [{"summary": "s"}], "cut_off": false, "signature": "SIG"},
            {"type": "tool_use", "id": null, "name": "web_search", "input": {"query": "q"}, "message": "Searching"},
            {"type": "tool_result", "tool_use_id": null, "name": "web_search", "content": [{"type": "knowledge", "title": "t", "url": "u"}], "is_error": false},
            {"type": "token_budget"},
            {"type": "flag", "flag": "x", "helpline": null},
        ]), json!({})),
        message("m3", "human", "Only the old text", json!([]), json!({})),
        message("m4", "assistant", "Said beside the thinking", json!([{"type": "thinking", "thinking": "So."}]), json!({})),
    ]}]);
    let zip = zipped(&[
        ("conversations.json", export.to_string().as_bytes()),
        ("users.json", br#"[{"uuid": "a", "full_name": "Ada", "email_address": "ada@example.org"}]"#),
        ("projects.json", br#"[{"uuid": "p", "name": "P", "docs": []}]"#),
    ]);
    let (said, run) = said("data.zip", zip, "claude-ai:c");
    let wanted = [
        "user:text file image file",
        "assistant:thinking tool_call",
        "tool:tool_result",
        "assistant:opaque opaque",
        "user:text",
        "assistant:thinking text",
    ];
    assert_eq!(kinds(&said), wanted);
    assert!(unanswered(&said).is_empty());
    assert!(matches!(&said[1].chunks[0].body, Body::Thinking { signature: Some(proof), .. } if proof == "SIG"));
    assert_eq!(run.summary.unwrap().skipped["file_not_recognised"], 2);
    for name in ["users.json", "projects.json"] {
        assert!(run.notes.iter().any(|note| note.contains(name)), "{:?}", run.notes);
    }
}

#[test]
fn claude_code_with_compaction_and_bookkeeping() {
    let line = |uuid: &str, parent: Value, more: Value| {
        let mut line = json!({"uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": "2026-01-02T03:04:05.006Z",
            "isSidechain": false, "userType": "external", "cwd": "/w", "version": "2.0.0", "gitBranch": "main"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line.to_string()
    };
    let user = |content: Value| json!({"type": "user", "message": {"role": "user", "content": content}});
    let lines = [
        json!({"type": "summary", "summary": "Fixed it", "leafUuid": "u9"}).to_string(),
        json!({"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}, "isSnapshotUpdate": false}).to_string(),
        json!({"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "timestamp": "2026-01-02T03:04:05.006Z"}).to_string(),
        line("u1", json!(null), json!({"type": "user", "isMeta": true, "message": {"role": "user", "content": "Caveat: local commands"}})),
        line("u2", json!("u1"), user(json!("<command-name>/clear</command-name>"))),
        line("u3", json!("u2"), json!({"type": "system", "subtype": "local_command", "content": "x", "level": "info"})),
        line("u4", json!("u3"), user(json!([{"type": "text", "text": "Fix it"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AQI="}}]))),
        line("u5", json!("u4"), json!({"type": "assistant", "requestId": "r", "message": {"id": "msg", "role": "assistant", "model": "claude-sonnet-5",
            "content": [{"type": "thinking", "thinking": "Hm.", "signature": "SIG"}], "stop_reason": null, "usage": {"input_tokens": 1}}})),
        line("u6", json!("u5"), json!({"type": "assistant", "requestId": "r", "message": {"id": "msg", "role": "assistant", "model": "claude-sonnet-5",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}], "stop_reason": "tool_use", "usage": {"input_tokens": 1}}})),
        line("u7", json!("u6"), json!({"type": "user", "toolUseResult": {"stdout": "a"}, "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}]}})),
        line("u8", json!(null), json!({"type": "system", "subtype": "compact_boundary", "logicalParentUuid": "u7", "content": "Conversation compacted"})),
        line("u9", json!("u8"), json!({"type": "user", "isCompactSummary": true, "message": {"role": "user", "content": "This session is continued"}})),
        line("ua", json!("u9"), json!({"type": "assistant", "isApiErrorMessage": true, "message": {"id": "m2", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}})),
    ];
    let (said, run) = said("s.jsonl", lines.join("\n"), "claude-code:s");
    let wanted = [
        "user:text",
        "user:text",
        "user:text image",
        "assistant:thinking tool_call",
        "tool:tool_result",
        "user:text",
        "assistant:text",
    ];
    assert_eq!(kinds(&said), wanted);
    assert_eq!((run.conversations[0].title.as_deref(), run.conversations[0].branches), (Some("Fixed it"), 0));
    let skipped = &run.conversations[0].skipped;
    for kind in ["file-history-snapshot", "queue-operation"] {
        assert_eq!(skipped[&format!("line_of_kind:{kind}")], 1, "{skipped:?}");
    }
    assert_eq!(skipped["line_of_kind:system"], 2);
}

/// Each line began a branch of its own: eleven conversations of one message each.
#[test]
fn claude_code_without_parents_is_one_conversation_in_the_order_of_its_lines() {
    let line = |at: usize, role: &str, content: Value| {
        json!({"type": role, "uuid": format!("u{at}"), "parentUuid": null, "sessionId": "s", "isSidechain": false,
            "message": {"role": role, "id": format!("m{at}"), "content": content}})
    };
    let call = |id: &str| json!([{"type": "tool_use", "id": id, "name": "ls", "input": {}}]);
    let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": "src"}]);
    let lines = [
        line(0, "user", json!("What is here?")),
        line(1, "assistant", call("t1")),
        line(2, "user", result("t1")),
        line(3, "assistant", call("t2")),
        line(4, "user", result("t2")),
        line(5, "assistant", json!([{"type": "text", "text": "src"}])),
    ];
    let (said, run) = said("s.jsonl", lines.map(|line| line.to_string()).join("\n"), "claude-code:s");
    let wanted = [
        "user:text",
        "assistant:tool_call",
        "tool:tool_result",
        "assistant:tool_call",
        "tool:tool_result",
        "assistant:text",
    ];
    assert_eq!(kinds(&said), wanted);
    assert_eq!(run.conversations[0].branches, 0);
}

#[test]
fn the_file_of_a_sub_agent_keeps_its_other_lines_counted() {
    let lines = [
        json!({"type": "user", "uuid": "a1", "parentUuid": null, "sessionId": "s", "agentId": "x", "isSidechain": true, "message": {"role": "user", "content": "Search"}}),
        json!({"type": "progress", "uuid": "a2", "parentUuid": "a1", "sessionId": "s", "agentId": "x", "isSidechain": true}),
    ];
    let (said, run) = said("agent-x.jsonl", lines.map(|line| line.to_string()).join("\n"), "claude-code:s:x");
    assert_eq!(kinds(&said), ["user:text"]);
    assert_eq!(run.conversations[0].skipped["line_of_kind:progress"], 1);
}

/// A sub-agent's lines are one conversation, whatever stands between them; and a last line that says nothing hides nothing.
#[test]
fn claude_code_with_lines_that_say_nothing_between_and_behind() {
    let line = |kind: &str, uuid: &str, parent: Value, more: Value| {
        let mut line = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line.to_string()
    };
    let said_by = |role: &str, text: &str| json!({"isSidechain": true, "agentId": "x", "message": {"role": role, "content": text}});
    let attached = || json!({"isSidechain": true, "agentId": "x", "attachment": {"type": "skills"}});
    let lines = [
        line("user", "a1", json!(null), said_by("user", "Search")),
        line("attachment", "a2", json!("a1"), attached()),
        line("attachment", "a3", json!("a2"), attached()),
        line("assistant", "a4", json!("a3"), said_by("assistant", "Found")),
    ];
    let (agent, run) = said("agent-x.jsonl", lines.join("\n"), "claude-code:s:x");
    assert_eq!(
        (kinds(&agent), run.conversations.len()),
        (vec!["user:text".to_owned(), "assistant:text".to_owned()], 1)
    );
    assert_eq!((run.conversations[0].branches, run.conversations[0].skipped["line_of_kind:attachment"]), (0, 2));
    for parent in [json!(null), json!("of another session")] {
        let own = |role: &str, text: &str| json!({"isSidechain": false, "message": {"role": role, "content": text}});
        let lines = [
            line("user", "u1", json!(null), own("user", "Hi")),
            line("assistant", "u2", json!("u1"), own("assistant", "Hello")),
            line("system", "u3", parent, json!({"isSidechain": false, "subtype": "local_command"})),
        ];
        let (main, run) = said("s.jsonl", lines.join("\n"), "claude-code:s");
        assert_eq!((kinds(&main).len(), run.conversations[0].branches), (2, 0));
    }
}

/// What a person types while the model works is in a line of its own kind; a line that is there twice is one line.
#[test]
fn claude_code_with_words_from_the_queue_and_lines_twice() {
    let line = |kind: &str, uuid: &str, parent: Value, more: Value| {
        let mut line = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line.to_string()
    };
    let said_by = |role: &str, text: &str| json!({"message": {"role": role, "content": text}});
    let queued = |mode: &str, origin: &str, text: &str| json!({"attachment": {"type": "queued_command", "commandMode": mode, "origin": {"kind": origin}, "prompt": text}});
    let lines = [
        line("user", "u1", json!(null), said_by("user", "Fix it")),
        line("assistant", "u2", json!("u1"), said_by("assistant", "Fixed")),
        line("attachment", "u3", json!("u2"), queued("prompt", "human", "and check the tests too")),
        line("attachment", "u4", json!("u3"), queued("task-notification", "task", "a task ended")),
        line("assistant", "u5", json!("u4"), said_by("assistant", "They pass")),
    ];
    let twice = [lines.clone(), lines].concat();
    let (said, run) = said("s.jsonl", twice.join("\n"), "claude-code:s");
    assert_eq!(kinds(&said), ["user:text", "assistant:text", "user:text", "assistant:text"]);
    assert!(matches!(&said[2].chunks[0].body, Body::Text { text, .. } if text == "and check the tests too"));
    let one = &run.conversations[0];
    assert_eq!((one.branches, one.skipped["repeated_line"], one.skipped["line_of_kind:attachment"]), (0, 5, 1));
}

/// The blocks of one answer may stand before and after a result: what it cost is said once.
#[test]
fn claude_code_counts_an_answer_once() {
    let line = |role: &str, uuid: &str, parent: Value, content: Value, output: u64| {
        json!({"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": {"role": role, "id": "m1",
            "content": content, "usage": {"input_tokens": 100, "output_tokens": output}}})
    };
    let lines = [
        line("user", "u1", json!(null), json!("Hi"), 0),
        line("assistant", "u2", json!("u1"), json!([{"type": "tool_use", "id": "t1", "name": "ls", "input": {}}]), 5),
        line("user", "u3", json!("u2"), json!([{"type": "tool_result", "tool_use_id": "t1", "content": "src"}]), 0),
        line("assistant", "u4", json!("u3"), json!([{"type": "tool_use", "id": "t2", "name": "ls", "input": {}}]), 9),
    ];
    let (said, _) = said("s.jsonl", lines.map(|line| line.to_string()).join("\n"), "claude-code:s");
    let counted: Vec<_> =
        said.iter().filter_map(|message| message.usage.as_ref().map(|usage| usage.as_str())).collect();
    assert_eq!(counted, [r#"{"input_tokens":100,"output_tokens":9}"#]);
}

#[test]
fn a_last_line_that_is_cut_off_is_counted() {
    let line = |uuid: &str| {
        json!({"type": "user", "uuid": uuid, "sessionId": "s", "message": {"role": "user", "content": "Hi"}})
            .to_string()
    };
    let whole = [line("u1"), line("u2")].join("\n");
    let (_, run) = imported("s.jsonl", whole.split_at(whole.len() - 5).0);
    let summary = run.summary.unwrap();
    assert_eq!((summary.added, summary.skipped["line_cut_off"]), (1, 1));
}

/// A turn that was taken back is a fork.
#[test]
fn codex_with_a_turn_that_was_taken_back() {
    let line = |kind: &str, payload: Value| json!({"type": kind, "payload": payload}).to_string();
    let message = |role: &str, text: &str| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        line("response_item", json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}))
    };
    let lines = [
        line("session_meta", json!({"id": "s"})),
        message("user", "<environment_context>x</environment_context>"),
        message("user", "one"),
        message("assistant", "right"),
        message("user", "two"),
        message("assistant", "wrong"),
        line("event_msg", json!({"type": "thread_rolled_back", "num_turns": 1})),
        message("user", "three"),
        message("assistant", "good"),
    ];
    let (store, run) = imported("s.jsonl", lines.join("\n"));
    assert_eq!((run.conversations[0].messages, run.conversations[0].branches, run.notes.len()), (5, 1, 0));
    let texts = |name: &str| -> Vec<String> {
        let text = |message: Message| match &message.chunks[0].body {
            Body::Text { text, .. } => text.clone(),
            other => panic!("{other:?}"),
        };
        messages(&store, name).into_iter().skip(1).map(text).collect()
    };
    assert_eq!(texts("codex:s"), ["one", "right", "three", "good"]);
    assert_eq!(texts("codex:s:4"), ["one", "right", "two", "wrong"]);
}

#[test]
fn codex_with_events_compaction_and_its_own_calls() {
    let line = |kind: &str, payload: Value| {
        json!({"timestamp": "2026-01-02T03:04:05.006Z", "type": kind, "payload": payload}).to_string()
    };
    let item = |payload: Value| line("response_item", payload);
    let lines = [
        line(
            "session_meta",
            json!({"id": "s", "cwd": "/w", "originator": "codex_cli_rs", "cli_version": "0.50", "model_provider": "openai", "base_instructions": {"text": "x"}}),
        ),
        item(
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>x</environment_context>"}]}),
        ),
        line("turn_context", json!({"turn_id": "t1", "cwd": "/w", "model": "gpt-5-codex", "effort": "high"})),
        item(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]})),
        line("event_msg", json!({"type": "user_message", "message": "Fix it"})),
        item(
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}], "content": null, "encrypted_content": "ENC"}),
        ),
        item(
            json!({"type": "local_shell_call", "call_id": "l1", "status": "completed", "action": {"type": "exec", "command": ["ls"]}}),
        ),
        item(json!({"type": "function_call_output", "call_id": "l1", "output": "a"})),
        item(
            json!({"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin", "status": "completed"}),
        ),
        item(json!({"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"})),
        item(json!({"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}})),
        item(json!({"type": "ghost_snapshot", "ghost_commit": {"id": "x"}})),
        item(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]})),
        line(
            "event_msg",
            json!({"type": "token_count", "info": {"last_token_usage": {"input_tokens": 7}}, "rate_limits": null}),
        ),
        line("event_msg", json!({"type": "turn_aborted", "reason": "interrupted"})),
        line("compacted", json!({"message": "So far: fixed.", "replacement_history": []})),
        line("world_state", json!({"x": 1})),
        item(
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "On we go."}]}),
        ),
    ];
    let (said, run) = said("rollout-x.jsonl", lines.join("\n"), "codex:s");
    assert!(
        chunks(&said)
            .any(|chunk| matches!(&chunk.body, Body::Thinking { signature: Some(proof), .. } if proof == "ENC"))
    );
    assert!(unanswered(&said).is_empty(), "{:?}", kinds(&said));
    assert!(said[0].metadata.extra.get("scaffolding").is_some());
    assert!(said.iter().any(|message| message.usage.is_some()));
    assert!(said.iter().any(|message| message.metadata.model.as_deref() == Some("gpt-5-codex")));
    let words = chunks(&said).filter_map(|chunk| match &chunk.body {
        Body::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let words: Vec<_> = words.collect();
    assert_eq!(
        words,
        ["<environment_context>x</environment_context>", "Fix it", "Done.", "So far: fixed.", "On we go."]
    );
    let skipped = &run.conversations[0].skipped;
    for kind in ["event:user_message", "event:turn_aborted", "line_of_kind:world_state"] {
        assert_eq!(skipped[kind], 1, "{skipped:?}");
    }
}

#[test]
fn librechat_with_parts_of_agents() {
    let export = json!({"conversationId": "c", "endpoint": "agents", "title": "T", "exportAt": "x", "branches": true, "recursive": true,
    "options": {"model": "agent_1"}, "messagesTree": [
    {"messageId": "m1", "parentMessageId": "00000000-0000-0000-0000-000000000000", "text": "Hi", "isCreatedByUser": true, "sender": "User",
        "createdAt": "2026-01-02T03:04:05.000Z", "files": [{"file_id": "f", "filepath": "/images/x.png", "type": "image/png", "filename": "x.png"}], "children": [
        {"messageId": "m2", "parentMessageId": "m1", "text": "", "isCreatedByUser": false, "sender": "Agent", "createdAt": "2026-01-02T03:04:06.000Z", "unfinished": true,
            "content": [
                {"type": "think", "think": "Hm."},
                {"type": "text", "text": {"value": "Let me look.", "annotations": []}, "tool_call_ids": ["t1"]},
                {"type": "tool_call", "tool_call": {"id": "t1", "name": "search", "args": "{\"q\":1}", "type": "tool_call", "progress": 1, "output": "found"}},
                {"type": "agent_update", "agent_update": {"index": 1, "runId": "r", "agentId": "agent_2"}},
                {"type": "error", "error": "Overloaded"},
                {"type": "text", "text": "So."},
            ], "children": []},
        {"messageId": "m3", "parentMessageId": "m1", "text": "Broke", "error": true, "finish_reason": "length", "isCreatedByUser": false, "createdAt": "2026-01-02T03:04:07.000Z", "children": []},
    ]}]});
    let (store, run) = imported("x.json", export.to_string());
    assert_works(&store);
    assert_eq!(run.conversations[0].branches, 1);
    let all: Vec<_> = super::conversations(&store).into_iter().flat_map(|id| store.load_raw(id).unwrap()).collect();
    let all: Vec<Message> = all.into_iter().map(|stored| stored.message).collect();
    let reasons: Vec<_> = all.iter().filter_map(|message| message.finish_reason.clone()).collect();
    for wanted in [FinishReason::Length, FinishReason::Interrupted] {
        assert!(reasons.contains(&wanted), "{reasons:?}");
    }
    let kinds = kinds(&all);
    for wanted in [
        "user:text image",
        "assistant:thinking text tool_call",
        "tool:tool_result",
        "assistant:opaque error text",
        "assistant:error",
    ] {
        assert!(kinds.iter().any(|kind| kind == wanted), "{wanted}: {kinds:?}");
    }
}

#[test]
fn open_webui_with_folded_blocks_sources_and_files() {
    let content = "<details type=\"reasoning\" done=\"true\" duration=\"2\">\n<summary>Thought</summary>\n> Hm.\n</details>\n\
        <details type=\"code_interpreter\" done=\"true\">\n<summary>Analyzed</summary>\n1\n</details>\nThen:\n\
        <details type=\"tool_calls\" done=\"true\" id=\"c1\" name=\"f\" arguments=\"&quot;{}&quot;\" result=\"&quot;2&quot;\">\n<summary>Ran</summary>\n</details>\nEnd";
    let export = json!([{"id": "w", "user_id": "u", "title": "T", "archived": true, "pinned": true, "meta": {"tags": ["a"]}, "chat": {"title": "T", "history": {"currentId": "b", "messages": {
        "a": {"id": "a", "parentId": null, "childrenIds": ["b"], "role": "user", "content": "Hi", "timestamp": 1_700_000_000,
            "files": [{"type": "file", "id": "f", "name": "n.pdf", "url": "f", "file": {"id": "f", "data": {"content": "text"}}}, {"type": "image", "url": "data:image/png;base64,AQI="}]},
        "b": {"id": "b", "parentId": "a", "childrenIds": [], "role": "assistant", "content": content, "model": "m", "done": true,
            "sources": [{"source": {"name": "n.pdf"}}], "usage": {"total_tokens": 3}, "statusHistory": [{"done": true}]},
    }}}}]);
    let (said, run) = said("x.json", export.to_string(), "open-webui:w");
    let wanted = ["user:text file image", "assistant:thinking text tool_call", "tool:tool_result", "assistant:text"];
    assert_eq!(kinds(&said), wanted, "{said:?}");
    assert!(said[1].metadata.extra.get("sources").is_some());
    assert!(run.conversations[0].skipped.is_empty());
}

#[test]
fn open_webui_of_the_first_versions() {
    let export = json!([{"id": "w", "title": "T", "chat": {"messages": [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello", "model": "m"}, {"role": "user", "content": "Bye"},
    ]}}]);
    let (said, run) = said("x.json", export.to_string(), "open-webui:w");
    assert_eq!(kinds(&said), ["user:text", "assistant:text", "user:text"], "{said:?}");
    assert_eq!((run.conversations[0].branches, run.conversations[0].skipped.len()), (0, 0));
}

#[test]
fn ai_sdk_of_version_4_and_5() {
    let of_4 = json!([
        {"id": "1", "createdAt": "2026-01-02T03:04:05.000Z", "role": "user", "content": "Hi", "experimental_attachments": [{"name": "x.png", "contentType": "image/png", "url": "data:image/png;base64,AQI="}]},
        {"id": "2", "role": "assistant", "content": "Sunny.", "reasoning": "Hm.", "toolInvocations": [
            {"state": "result", "step": 0, "toolCallId": "c1", "toolName": "weather", "args": {"at": 1}, "result": {"sky": "clear"}},
            {"state": "call", "step": 1, "toolCallId": "c2", "toolName": "tide", "args": {}}]},
        {"id": "3", "role": "assistant", "content": "And so.", "reasoning": "Well.", "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "reasoning": "Well.", "details": [{"type": "text", "text": "Well.", "signature": "SIG"}]},
            {"type": "tool-invocation", "toolInvocation": {"state": "result", "step": 0, "toolCallId": "c3", "toolName": "weather", "args": {}, "result": "clear"}},
            {"type": "source", "source": {"sourceType": "url", "id": "s", "url": "https://example.org"}},
            {"type": "file", "mimeType": "image/png", "data": "AQI="},
            {"type": "text", "text": "And so."}]},
    ]);
    let (four, _) = said("four.json", of_4.to_string(), "ai-sdk:four");
    let wanted = [
        "user:text image",
        "assistant:thinking tool_call",
        "tool:tool_result",
        "assistant:tool_call text",
        "assistant:thinking tool_call opaque image",
        "tool:tool_result",
        "assistant:text",
    ];
    assert_eq!(kinds(&four), wanted);
    assert!(chunks(&four).any(|chunk| matches!(&chunk.body, Body::ToolCall { name, arguments, .. } if name == "weather" && arguments == "{\"at\":1}")));
    assert!(
        chunks(&four)
            .any(|chunk| matches!(&chunk.body, Body::Thinking { signature: Some(proof), .. } if proof == "SIG"))
    );
    let of_5 = json!({"id": "chat", "title": "T", "messages": [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hi"}, {"type": "file", "mediaType": "application/pdf", "filename": "x.pdf", "url": "https://example.org/x.pdf"}]},
        {"id": "2", "role": "assistant", "metadata": {"model": "gpt-5"}, "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "Hm.", "state": "done", "providerMetadata": {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "ENC"}}},
            {"type": "tool-weather", "toolCallId": "c1", "state": "output-error", "input": {}, "errorText": "no"},
            {"type": "dynamic-tool", "toolName": "mcp", "toolCallId": "c2", "state": "output-available", "input": {}, "output": [1]},
            {"type": "tool-later", "toolCallId": "c3", "state": "approval-requested", "input": {}, "approval": {"id": "a"}},
            {"type": "source-url", "sourceId": "s", "url": "https://example.org"},
            {"type": "data-chart", "data": {"x": 1}},
            {"type": "text", "text": "So.", "state": "done"}]},
    ]});
    let (five, run) = said("five.json", of_5.to_string(), "ai-sdk:chat");
    let wanted = [
        "user:text file",
        "assistant:thinking tool_call tool_call tool_call opaque opaque",
        "tool:tool_result",
        "tool:tool_result",
        "assistant:text",
    ];
    assert_eq!(kinds(&five), wanted);
    assert_eq!(run.conversations[0].title.as_deref(), Some("T"));
    assert_eq!(five[1].metadata.provider.as_deref(), Some("openai"));
    assert!(matches!(&five[1].chunks[0].body, Body::Thinking { signature: Some(proof), .. } if proof == "ENC"));
}

#[test]
fn langchain_in_each_of_its_forms() {
    let call = json!([{"name": "f", "args": {"x": 1}, "id": "c1", "type": "tool_call"}]);
    let to_dict = json!([
        {"type": "human", "data": {"content": "Hi", "type": "human"}},
        {"type": "ai", "data": {"content": "", "tool_calls": call, "additional_kwargs": {"reasoning_content": "Hm."}, "type": "ai"}},
        {"type": "tool", "data": {"content": "2", "tool_call_id": "c1", "status": "success", "type": "tool"}},
    ]);
    let dumpd = |class: &str, kwargs: Value| json!({"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", class], "kwargs": kwargs});
    let constructors = json!([
        dumpd("HumanMessage", json!({"content": "Hi", "type": "human"})),
        dumpd(
            "AIMessageChunk",
            json!({"content": "", "tool_calls": call, "additional_kwargs": {"reasoning_content": "Hm."}, "type": "AIMessageChunk"})
        ),
        dumpd("ToolMessage", json!({"content": "2", "tool_call_id": "c1", "status": "success", "type": "tool"})),
    ]);
    let flat = json!({"messages": [
        {"content": "Hi", "additional_kwargs": {}, "response_metadata": {}, "type": "human", "id": "1"},
        {"content": "", "additional_kwargs": {"reasoning_content": "Hm."}, "response_metadata": {}, "type": "ai", "tool_calls": call, "id": "2"},
        {"content": "2", "additional_kwargs": {}, "response_metadata": {}, "type": "tool", "tool_call_id": "c1", "id": "3"},
    ], "remaining_steps": 3});
    for export in [to_dict, constructors, flat] {
        let (said, run) = said("x.json", export.to_string(), "langchain:x");
        assert_eq!(kinds(&said), ["user:text", "assistant:thinking tool_call", "tool:tool_result"], "{export}");
        assert!(unanswered(&said).is_empty());
        assert!(run.conversations[0].skipped.is_empty());
    }
    let unknown = json!([dumpd("HumanMessage", json!({"content": "Hi"})), dumpd("RemoveMessage", json!({"id": "1"}))]);
    let (_, run) = said("x.json", unknown.to_string(), "langchain:x");
    assert_eq!(run.conversations[0].skipped["message_of_kind:constructor"], 1);
}

#[test]
fn sharegpt_in_its_spellings() {
    for (name, text) in [
        ("conversations", json!([{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}])),
        ("items", json!([{"from": "user", "value": "Hi"}, {"from": "chatgpt", "value": "Ho"}])),
        ("conversations", json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}])),
    ] {
        let (said, _) = said("x.json", json!([{"id": "s", name: text}]).to_string(), "sharegpt:s");
        assert_eq!(kinds(&said), ["user:text", "assistant:text"]);
    }
}
