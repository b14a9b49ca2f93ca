//! What may happen to a store, and how often.

use proptest::prelude::*;
use proptest::string::string_regex;

use super::{NAMES, plain};
use conversation_store::model::{Chunk, Message, Role};

/// The item ids of providers.
pub(super) const ITEMS: [&str; 3] = ["item 0", "item 1", ""];

#[derive(Clone, Debug)]
pub(super) enum Op {
    Append {
        at: usize,
        messages: Vec<Message>,
        buffered: bool,
        expected: Expect,
        key: Option<u8>,
    },
    Begin {
        at: usize,
        role: Role,
        item: Option<&'static str>,
        expected: Expect,
        key: Option<u8>,
    },
    /// Deltas, then the end of the message, perhaps.
    Push {
        writer: usize,
        deltas: Vec<(u32, String)>,
        end: Option<End>,
    },
    PushOther {
        writer: usize,
        chunk: u32,
    },
    /// Messages and seqs are counted from the end: 0 is behind it.
    Rewind {
        at: usize,
        to: u64,
    },
    Summarize {
        at: usize,
        through: u64,
    },
    Fork {
        at: usize,
        seq: Option<usize>,
        child: usize,
    },
    Remove {
        at: usize,
        message: u64,
        chunk: Option<u32>,
    },
    Create {
        at: usize,
        tags: Vec<u8>,
        metadata: Option<u8>,
    },
    Title {
        at: usize,
        title: Option<&'static str>,
    },
    Metadata {
        at: usize,
        metadata: u8,
    },
    /// Adds or removes a tag.
    Tag {
        at: usize,
        tag: u8,
        remove: bool,
    },
    Delete {
        at: usize,
    },
    Redact {
        at: usize,
        message: u64,
        chunk: Option<u32>,
    },
    Reopen,
}

/// How a message that is written ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Finish,
    Drop,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Expect {
    Any,
    New,
    Actual,
    Wrong,
}

fn item() -> impl Strategy<Value = Option<&'static str>> {
    prop::option::weighted(0.2, prop::sample::select(ITEMS.to_vec()))
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let short = string_regex("[a-zé\u{0}\u{1f600}]{0,6}").unwrap();
    let text = prop_oneof![20 => short, 1 => Just("x".repeat(20_000))];
    let chunk = (0..4, text, item()).prop_map(|(kind, text, item)| {
        let chunk = match kind {
            0 => Chunk::thinking(text),
            1 => Chunk::tool_call("call", "tool", text),
            2 => Chunk::tool_result("call", text),
            _ => Chunk::text(text),
        };
        Chunk { id: item.map(str::to_owned), ..chunk }
    });
    let role = prop::sample::select(Role::ALL.to_vec());
    let model = prop::option::weighted(0.2, Just("m-1".to_owned()));
    let created_at = prop::option::weighted(0.2, Just(1_000_000_i64));
    let message = (role, prop::collection::vec(chunk, 0..4), model, created_at, item()).prop_map(
        |(role, chunks, model, created_at, item)| {
            let mut message = plain::message(role, chunks, model, created_at);
            message.metadata.id = item.map(str::to_owned);
            message
        },
    );
    prop::collection::vec(message, 1..4)
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    // Most of it happens to two conversations, so that much happens to each.
    let at = prop_oneof![4 => Just(0), 2 => Just(1), 2 => 0..NAMES];
    let writer = 0..4_usize;
    let chunk = 0..3_u32;
    let delta = (chunk.clone(), string_regex("[a-z]{0,5}").unwrap());
    let deltas = prop::collection::vec(delta, 0..4);
    let end = prop_oneof![4 => Just(None), 1 => Just(Some(End::Finish)), 1 => Just(Some(End::Drop))];
    let role = prop::sample::select(vec![Role::Assistant, Role::Tool, Role::User]);
    let expected = prop_oneof![
        6 => Just(Expect::Any),
        1 => Just(Expect::New),
        2 => Just(Expect::Actual),
        1 => Just(Expect::Wrong),
    ];
    let key = prop::option::weighted(0.3, 0..3_u8);
    prop_oneof![
        8 => (at.clone(), messages(), any::<bool>(), expected.clone(), key.clone())
            .prop_map(|(at, messages, buffered, expected, key)| Op::Append { at, messages, buffered, expected, key }),
        4 => (at.clone(), role, item(), expected, key)
            .prop_map(|(at, role, item, expected, key)| Op::Begin { at, role, item, expected, key }),
        10 => (writer.clone(), deltas, end).prop_map(|(writer, deltas, end)| Op::Push { writer, deltas, end }),
        1 => (writer, chunk).prop_map(|(writer, chunk)| Op::PushOther { writer, chunk }),
        3 => (at.clone(), 0..6_u64).prop_map(|(at, to)| Op::Rewind { at, to }),
        3 => (at.clone(), 0..8_u64, prop::option::of(0..3_u32))
            .prop_map(|(at, message, chunk)| Op::Remove { at, message, chunk }),
        2 => (at.clone(), 0..8_u64).prop_map(|(at, through)| Op::Summarize { at, through }),
        3 => (at.clone(), prop::option::of(0..12_usize), 0..NAMES).prop_map(|(at, seq, child)| Op::Fork { at, seq, child }),
        1 => (at.clone(), prop::collection::vec(0..3_u8, 0..3), prop::option::of(0..3_u8))
            .prop_map(|(at, tags, metadata)| Op::Create { at, tags, metadata }),
        1 => (at.clone(), prop::option::of(Just("a title"))).prop_map(|(at, title)| Op::Title { at, title }),
        1 => (at.clone(), 0..3_u8).prop_map(|(at, metadata)| Op::Metadata { at, metadata }),
        2 => (at.clone(), 0..3_u8, any::<bool>()).prop_map(|(at, tag, remove)| Op::Tag { at, tag, remove }),
        1 => at.clone().prop_map(|at| Op::Delete { at }),
        2 => (at, 0..6_u64, prop::option::of(0..3_u32))
            .prop_map(|(at, message, chunk)| Op::Redact { at, message, chunk }),
        1 => Just(Op::Reopen),
    ]
}
