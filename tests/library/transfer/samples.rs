//! The samples of all formats: what each is recognised as, and what it comes to.

use conversation_store::Store;
use conversation_store::transfer::{FORMATS, ImportOptions};

use super::{assert_works, conversations as conversations_of, count, run, sample, unanswered};

const ROLLOUT: &str = "rollout-2026-04-05T06-07-00-44444444-4444-4444-8444-444444444444.jsonl";

/// File, first key, conversations, failed, messages, branches, calls, thinking.
type Row = (&'static str, &'static str, [u64; 4], [usize; 2]);

const SAMPLES: &[Row] = &[
    ("transcript.jsonl", "?", [1, 0, 9, 0], [2, 4]),
    ("chatgpt-conversations.json", "chatgpt:00000000-0000-4000-8000-00000000c001", [1, 1, 4, 1], [1, 1]),
    ("claude-ai-conversations.json", "claude-ai:11111111-1111-4111-8111-111111111111", [1, 0, 4, 0], [1, 1]),
    ("claude-code-session.jsonl", "claude-code:33333333-3333-4333-8333-333333333333", [1, 0, 4, 0], [1, 1]),
    (ROLLOUT, "codex:44444444-4444-4444-8444-444444444444", [1, 0, 7, 0], [2, 1]),
    ("rows.jsonl", "rows:r-2", [2, 0, 6, 0], [1, 1]),
    ("open-webui-export.json", "open-webui:ow-1", [1, 0, 2, 1], [0, 1]),
    ("librechat-export.json", "librechat:conv-lc-1", [1, 0, 4, 1], [1, 1]),
    ("openai-finetune.jsonl", "openai-finetune:openai-finetune#0", [3, 0, 9, 0], [1, 0]),
    ("openai-dpo.jsonl", "openai-finetune:openai-dpo", [1, 0, 2, 1], [0, 0]),
    ("sharegpt.json", "sharegpt:row_0", [2, 0, 8, 0], [1, 0]),
    ("ai-sdk-uimessages.json", "ai-sdk:ai-sdk-uimessages", [1, 0, 4, 0], [1, 1]),
    ("langchain-messages.json", "langchain:langchain-messages", [1, 0, 4, 0], [1, 0]),
    ("pydantic-ai-messages.json", "pydantic-ai:pydantic-ai-messages", [1, 0, 5, 0], [1, 1]),
    ("openai-responses-items.json", "openai-items:openai-responses-items", [1, 0, 2, 0], [0, 1]),
];

#[test]
fn samples_are_taken_and_render_for_every_target() {
    println!("sample | conversations | messages | branches | calls | reasoning | skipped");
    for (file, key, [conversations, failed, said, branches], [calls, thinking]) in SAMPLES {
        let store = Store::open("memory:").unwrap();
        let run = run(Some(&store), &sample(file), &ImportOptions::default());
        let summary = run.summary.unwrap_or_else(|error| panic!("{file}: {error}"));
        println!(
            "{file} | {} | {} | {} | {} | {} | {:?}",
            summary.conversations,
            summary.messages,
            summary.branches,
            count(&store, "tool_call"),
            count(&store, "thinking"),
            summary.skipped
        );
        assert_eq!(run.conversations[0].key.as_deref().unwrap_or(key), *key, "{file}");
        assert_eq!((summary.conversations, summary.failed), (*conversations, *failed), "{file}");
        if *said > 0 {
            assert_eq!((summary.messages, summary.branches), (*said, *branches), "{file}");
        }
        assert_eq!((count(&store, "tool_call"), count(&store, "thinking")), (*calls, *thinking), "{file}");
        for id in conversations_of(&store) {
            let said: Vec<_> = store.load_raw(id).unwrap().into_iter().map(|stored| stored.message).collect();
            assert_eq!(unanswered(&said), [""; 0], "{file}");
        }
        assert_works(&store);
        assert_eq!(conversations + failed, run.conversations.len() as u64, "{file}");
    }
}

#[test]
fn every_format_that_is_read_has_its_sample() {
    for format in FORMATS.iter().filter(|format| format.is_read() && !["llm", "transcript"].contains(&format.name)) {
        assert!(SAMPLES.iter().any(|(_, key, ..)| key.starts_with(&format!("{}:", format.name))), "{}", format.name);
    }
}

#[test]
fn a_dry_run_counts_the_same_and_stores_nothing() {
    for (file, ..) in SAMPLES {
        let store = Store::open("memory:").unwrap();
        let dry = run(None, &sample(file), &ImportOptions::default());
        let wet = run(Some(&store), &sample(file), &ImportOptions::default());
        assert_eq!(dry.summary.unwrap(), wet.summary.unwrap(), "{file}");
        let ids = |run: &[conversation_store::transfer::Imported]| {
            run.iter().map(|imported| (imported.conversation, imported.key.clone())).collect::<Vec<_>>()
        };
        assert_eq!(ids(&dry.conversations), ids(&wet.conversations), "{file}");
    }
}

#[test]
fn a_folder_and_an_archive_are_taken_whole() {
    let store = Store::open("memory:").unwrap();
    let folder = run(Some(&store), &sample(""), &ImportOptions::default());
    let summary = folder.summary.unwrap();
    let wanted: u64 = SAMPLES.iter().map(|(_, _, [conversations, ..], _)| conversations).sum();
    assert_eq!((summary.conversations, summary.failed), (wanted, 1), "{:?}", folder.notes);
}
