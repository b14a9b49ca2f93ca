//! What was redacted is in no answer, however it was stored, and whoever shares it.

use std::time::Duration;

use conversation_store::model::{
    Audio, Body, Chunk, Extra, File, FinishReason, Image, Json, Message, Metadata, Native, Output, Part, PartBody, Role,
};
use conversation_store::provider::{PromptOptions, render};
use conversation_store::{AppendOptions, Conversation, Error, ListQuery, Store, next_step};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::common::prompts::targets;
use crate::common::{cases, config};
use crate::place::Place;
use crate::said::{load, user, with_key};

crate::tests![
    no_answer_holds_what_was_redacted,
    a_repeated_append_neither_proves_nor_restores_what_was_redacted,
    what_may_quote_it_is_named_and_goes_with_its_conversation,
    a_record_that_a_fork_parts_is_rewritten_whole,
];

/// What is redacted. Fragments part it into its halves.
const SECRET: &str = "zq7xk9vw";
const HALVES: [&str; 2] = ["zq7x", "k9vw"];

/// Kinds of chunks.
const KINDS: usize = 12;

/// A message whose content is redacted, and how it came into the store.
#[derive(Clone, Debug)]
struct Plan {
    role: Role,
    /// The kinds of its chunks.
    kinds: Vec<usize>,
    /// The chunk that is redacted, or all of them.
    chunk: Option<usize>,
    /// Whether it is written in fragments, each half of a text in its own.
    streamed: bool,
    /// Whether it shares its record with others.
    among_others: bool,
    /// How many of its entries a fork shares.
    shared: Option<u64>,
    /// Whether it is redacted through the fork.
    through_fork: bool,
    /// Whether the parent is deleted before.
    orphaned: bool,
}

fn plan() -> impl Strategy<Value = Plan> {
    let kinds = prop::collection::vec(0..KINDS, 1..4);
    let role = prop::sample::select(vec![Role::User, Role::Assistant, Role::Tool, Role::System]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (role, kinds, prop::option::of(0..3_usize), prop::option::of(0..9_u64), flags).prop_map(
        |(role, kinds, chunk, shared, (streamed, among_others, through_fork, orphaned))| {
            let chunk = chunk.map(|chunk| chunk % kinds.len());
            Plan { role, kinds, chunk, streamed, among_others, shared, through_fork, orphaned }
        },
    )
}

fn json(said: &str) -> Json {
    Json::new(serde_json::json!({ "said": said }).to_string()).unwrap()
}

fn extra(said: &str) -> Extra {
    let mut extra = Extra::new();
    extra.push("x_said", json(said));
    extra
}

fn native(said: &str) -> Option<Native> {
    Some(Native { wire: "transcript".to_owned(), json: json(said) })
}

fn body(kind: usize, said: &str) -> Body {
    let (text, some) = (said.to_owned(), Some(said.to_owned()));
    let image = Image { url: format!("https://x.invalid/{said}"), mime_type: some.clone() };
    let audio = Audio { url: some.clone(), data: some.clone(), mime_type: some.clone(), transcript: some.clone() };
    let file = File { name: some.clone(), url: some.clone(), data: some.clone(), mime_type: some.clone() };
    let result = |output| Body::ToolResult {
        tool_call_id: "c1".to_owned(),
        name: Some("ls".to_owned()),
        output,
        is_error: None,
    };
    match kind {
        0 => Body::Text { text, annotations: Some(json(said)) },
        1 => Body::Thinking { text, signature: some.clone(), redacted: some },
        2 => Body::Refusal { text },
        3 => Body::ToolCall {
            id: "c1".to_owned(),
            name: "ls".to_owned(),
            arguments: json(said).as_str().to_owned(),
            signature: some,
            server: false,
        },
        4 => result(Output::Text(text)),
        5 => {
            let parts = [
                PartBody::Text { text },
                PartBody::Image(image),
                PartBody::Audio(audio),
                PartBody::File(file),
                PartBody::Json { json: json(said) },
                PartBody::Unknown { kind: "x_part".to_owned() },
            ];
            result(Output::Parts(parts.map(|body| Part { body, extra: extra(said) }).into()))
        }
        6 => Body::Image(image),
        7 => Body::Audio(audio),
        8 => Body::File(file),
        9 => Body::Error { message: text, code: some },
        10 => Body::Opaque { provider: "openai".to_owned(), kind: "x_block".to_owned(), json: json(said) },
        _ => Body::Unknown { kind: "x_kind".to_owned() },
    }
}

fn chunk(kind: usize, said: &str) -> Chunk {
    // The provider's item, which a text has, may be of several texts.
    let of_item = if [0, 2].contains(&kind) { SECRET } else { said };
    Chunk { body: body(kind, said), id: None, native: native(of_item), extra: extra(said) }
}

impl Plan {
    /// What a chunk says: those that stay say something else.
    fn said(&self, at: usize) -> &'static str {
        if self.chunk.is_none_or(|chunk| chunk == at) { SECRET } else { "kept" }
    }

    fn metadata(&self) -> Metadata {
        Metadata { native: native(SECRET), extra: extra(SECRET), model: Some("m-1".to_owned()), ..Metadata::default() }
    }

    fn finish(&self) -> (Option<FinishReason>, Option<Json>) {
        (Some(FinishReason::Other(format!("blocked: {SECRET}"))), Some(json(SECRET)))
    }

    fn message(&self) -> Message {
        let chunks = self.kinds.iter().enumerate().map(|(at, kind)| chunk(*kind, self.said(at)));
        let mut message = Message::new(self.role, chunks);
        message.metadata = self.metadata();
        (message.finish_reason, message.usage) = self.finish();
        message
    }

    /// Writes the message; it is the second.
    fn write(&self, store: &Store, name: &str) {
        if !self.streamed {
            let around = if self.among_others { vec![self.message(), user("after")] } else { vec![self.message()] };
            store.append_with(name, &around, &with_key("request")).unwrap();
            return;
        }
        let mut writer = store.begin(name, self.role, self.metadata()).unwrap();
        // The fragments of a text come in turn with those of the others.
        for half in [0, 1] {
            for (at, kind) in self.kinds.iter().enumerate() {
                let is_text = [0, 1, 2].contains(kind);
                let said = match self.said(at) {
                    SECRET if is_text => HALVES[half],
                    said => said,
                };
                let delta = match (half, kind) {
                    (0, kind) => chunk(*kind, said),
                    // What is no text comes once.
                    (_, 0) => Chunk::text(said),
                    (_, 1) => Chunk::thinking(said),
                    (_, 2) => Chunk::from(Body::Refusal { text: said.to_owned() }),
                    _ => continue,
                };
                writer.push(u32::try_from(at).unwrap(), delta).unwrap();
            }
            if !self.among_others {
                store.sync().unwrap();
            }
        }
        let (reason, usage) = self.finish();
        writer.finish(reason, usage).unwrap();
    }

    fn chunk_index(&self) -> Option<u32> {
        self.chunk.map(|chunk| u32::try_from(chunk).unwrap())
    }
}

/// Everything that a store answers, and what is made of it, as text.
fn answers(store: &Store, names: &[&str], place: &Place) -> String {
    read(store, names, place) + &made(store, names)
}

/// An answer, as a line.
fn line(what: &str, answer: &dyn std::fmt::Debug) -> String {
    format!("{what}: {answer:?}\n")
}

/// Everything that a store answers.
fn read(store: &Store, names: &[&str], place: &Place) -> String {
    let mut all = String::new();
    let mut add = |what: &str, answer: &dyn std::fmt::Debug| all.push_str(&line(what, answer));
    for name in names {
        add("load", &store.load(*name));
        add("load_strict", &store.load_strict(*name));
        add("load_raw", &store.load_raw(*name));
        add("load_newest", &store.load_newest(*name, 5));
        add("messages", &store.messages(*name, 0, 100));
        add("newest_messages", &store.newest_messages(*name, 100));
        add("entries", &store.entries(*name, .., 1_000));
        add("newest_entries", &store.newest_entries(*name, 1_000));
        add("describe", &store.describe(*name));
        add("metadata", &store.metadata(*name));
        add("find_item", &store.find_item(*name, SECRET));
        // What is refused is not quoted either.
        add("rewind", &store.rewind(*name, 1_000));
        add("remove", &store.remove(*name, 1, Some(1_000)));
        add("redact", &store.redact(*name, 1, Some(1_000)));
        add("summarize", &store.summarize(*name, 1_000, "x"));
        add("append", &store.append_with(*name, &[user("x")], &with_key("request")));
        if let Ok(mut tail) = store.tail(*name, 0) {
            add("tail", &tail.next(Duration::from_secs(5)));
        }
    }
    add("list", &store.list(&ListQuery::new()));
    add("unfinished", &store.unfinished());
    add("find_item_everywhere", &store.find_item_everywhere(SECRET));
    add("health", &store.health());
    add("verify", &store.verify(|_, _| ()));
    let file = place.file();
    add("backup", &store.backup(&file, |_, _| ()));
    add("file", &String::from_utf8_lossy(&std::fs::read(&file).unwrap()));
    std::fs::remove_file(&file).unwrap();
    all
}

/// What is made of the conversations that a store loads: prompts and exports.
fn made(store: &Store, names: &[&str]) -> String {
    let mut all = String::new();
    let mut add = |what: &str, answer: &dyn std::fmt::Debug| all.push_str(&line(what, answer));
    for name in names {
        let Ok(loaded) = store.load(*name) else { continue };
        add("next", &next_step(&loaded));
        for target in targets() {
            let prompt = render(target, &loaded, &PromptOptions::new())
                .map(|prompt| (prompt.request.to_string(), prompt.report));
            add("prompt", &prompt);
        }
        #[cfg(feature = "transfer")]
        for format in conversation_store::transfer::FORMATS.iter().filter(|format| format.extension().is_some()) {
            let mut text = Vec::new();
            let summary =
                conversation_store::transfer::export(store, [(*name).into()], format.name, &mut text, &mut |_| ());
            add(format.name, &(summary, String::from_utf8_lossy(&text)));
        }
    }
    all
}

/// The lines of what was answered that hold what was redacted.
fn quoting(answers: &str) -> Vec<&str> {
    answers.lines().filter(|line| HALVES.iter().any(|half| line.contains(half))).collect()
}

fn run(place: &Place, plan: &Plan) -> Result<(), TestCaseError> {
    let store = place.store();
    store.append("chat", &[user("before")]).unwrap();
    plan.write(&store, "chat");
    let last = store.describe("chat").unwrap().last_seq;
    let forked = plan.shared.map(|shared| store.fork_to("chat", Some((1 + shared).min(last)), "fork").unwrap());
    let mut kept: Vec<Conversation> = ["chat", "fork"].iter().filter_map(|name| store.load(*name).ok()).collect();
    let before = read(&store, &["chat"], place);
    prop_assert!(!quoting(&before).is_empty());
    #[cfg(feature = "search")]
    let index = {
        let index = conversation_store::search::SearchIndex::in_memory(Default::default()).unwrap();
        index.refresh(&store, "").unwrap();
        index
    };
    let mut names = vec!["chat", "fork"];
    if forked.is_some() && plan.through_fork && plan.orphaned {
        names.remove(0);
        kept.remove(0);
        store.delete("chat").unwrap();
    }
    let through = if forked.is_some() && (plan.through_fork) { "fork" } else { "chat" };
    match store.redact(through, 1, plan.chunk_index()) {
        // The fork has nothing of it: its parent has, or nobody. What is known of the message may still quote it.
        Err(Error::NotFound { .. }) if through == "fork" => {
            let (name, chunk) = if names.len() == 1 { ("fork", None) } else { ("chat", plan.chunk_index()) };
            let redacted = store.redact(name, 1, chunk);
            prop_assert!(redacted.is_ok() || names.len() == 1, "{:?}", redacted);
        }
        redacted => {
            let redacted = redacted.unwrap();
            prop_assert_eq!(redacted.summaries, Vec::<u64>::new());
        }
    }
    let mut after = answers(&store, &names, place);
    for kept in &mut kept {
        store.refresh(kept).unwrap();
        after.push_str(&format!("kept: {kept:?}\n"));
    }
    #[cfg(feature = "search")]
    for words in [SECRET, HALVES[0], "kept"] {
        let query = conversation_store::search::SearchQuery::new(words);
        // What was asked for is not shown by a hit.
        for hit in store.search(&index, &query).unwrap().hits {
            after.push_str(&format!("search: {hit:?}\n"));
        }
    }
    prop_assert_eq!(quoting(&after), Vec::<&str>::new());
    prop_assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    drop(store);
    place.clear();
    Ok(())
}

fn no_answer_holds_what_was_redacted(place: &Place) {
    let default = if place.survives() { 12 } else { 60 };
    TestRunner::new(config(cases("CONVO_CASES", default)))
        .run(&plan(), |plan| run(place, &plan))
        .unwrap_or_else(|error| panic!("{error}"));
}

/// A key is answered as before, whatever is given with it: the answer says nothing of what was there.
fn a_repeated_append_neither_proves_nor_restores_what_was_redacted(place: &Place) {
    let store = place.store();
    let message = || Message::new(Role::User, [Chunk::text("kept"), Chunk::text(SECRET)]);
    for (key, chunk) in [("whole", None), ("chunk", Some(1))] {
        let receipt = store.append_with("chat", &[message()], &with_key(key)).unwrap();
        let guess = store.append_with("chat", &[user("a guess")], &with_key(key));
        assert!(matches!(guess, Err(Error::KeyReused { .. })), "{guess:?}");
        store.redact("chat", receipt.message_indexes[0], chunk).unwrap();
        let answered = |said: Message| {
            let receipt = store.append_with("chat", &[said], &with_key(key)).unwrap();
            (receipt.first_seq, receipt.last_seq, receipt.message_indexes, receipt.duplicate)
        };
        let before = (receipt.first_seq, receipt.last_seq, receipt.message_indexes, true);
        assert_eq!([answered(message()), answered(user("a guess"))], [before.clone(), before]);
    }
    let begun = |key: &str, metadata: Metadata| {
        store.begin_with("chat", Role::Assistant, metadata, &AppendOptions::new().with_idempotency_key(key))
    };
    let metadata = || Metadata { extra: extra(SECRET), ..Metadata::default() };
    let begun_message = match begun("stream", metadata()).unwrap() {
        conversation_store::Begun::Writer(writer) => writer,
        other => panic!("{other:?}"),
    };
    let index = begun_message.message_index();
    begun_message.finish(None, None).unwrap();
    store.redact("chat", index, None).unwrap();
    for metadata in [metadata(), Metadata::default()] {
        assert!(matches!(begun("stream", metadata), Ok(conversation_store::Begun::Duplicate(_))));
    }
    assert_eq!(load(&store, "chat").join(" "), "[redacted] [redacted] kept [redacted]");
    assert_eq!(quoting(&answers(&store, &["chat"], place)), Vec::<&str>::new());
}

/// What the caller wrote about the conversation stays: the caller learns where it is. A fork at the seq before the first of it has
/// none of it, and it goes with the conversation.
fn what_may_quote_it_is_named_and_goes_with_its_conversation(place: &Place) {
    let store = place.store();
    store.append("chat", &[user("before"), user(SECRET), user("after")]).unwrap();
    let titled = store.set_title("chat", Some(SECRET)).unwrap().last_seq;
    store.tag("chat", &[SECRET]).unwrap();
    let tagged = store.describe("chat").unwrap().last_seq;
    let known = store.set_metadata("chat", &json(SECRET)).unwrap().last_seq;
    store.summarize("chat", 0, "of what came before").unwrap();
    let summary = store.summarize("chat", 2, SECRET).unwrap().last_seq;
    let redacted = store.redact("chat", 1, None).unwrap();
    assert_eq!((redacted.meta, redacted.summaries), (vec![titled, tagged, known], vec![summary]));
    store.fork_to("chat", Some(titled - 1), "fork").unwrap();
    assert_ne!(quoting(&answers(&store, &["chat"], place)), Vec::<&str>::new());
    store.delete("chat").unwrap();
    assert_eq!(load(&store, "fork"), ["before", "[redacted]", "after"]);
    assert_eq!(quoting(&answers(&store, &["fork"], place)), Vec::<&str>::new());
}

/// Of the record that the fork parts, only what the fork does not read is of the chunk.
fn a_record_that_a_fork_parts_is_rewritten_whole(place: &Place) {
    let store = place.store();
    store.append("chat", &[user("before")]).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(1, Chunk::text(HALVES[0])).unwrap();
    store.sync().unwrap();
    writer.push(0, Chunk::text("kept")).unwrap();
    writer.push(1, Chunk::text(HALVES[1])).unwrap();
    writer.finish(None, None).unwrap();
    store.fork_to("chat", Some(4), "fork").unwrap();
    assert_eq!(load(&store, "fork"), ["before", "kept", HALVES[0]]);
    store.redact("fork", 1, Some(1)).unwrap();
    for name in ["chat", "fork"] {
        assert_eq!(load(&store, name), ["before", "kept", "[redacted]"], "{name}");
    }
    assert_eq!(quoting(&answers(&store, &["chat", "fork"], place)), Vec::<&str>::new());
}
