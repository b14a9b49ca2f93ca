//! What may happen to the log, and how often.

use proptest::prelude::*;
use proptest::string::string_regex;

use super::super::model;
use super::NAMES;
use crate::model::{Chunk, Message, Role};

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
    },
    Push {
        writer: usize,
        chunk: u32,
        text: String,
    },
    PushOther {
        writer: usize,
        chunk: u32,
    },
    Finish {
        writer: usize,
    },
    Abandon {
        writer: usize,
    },
    /// Messages and seqs are counted from the end: 0 is after it.
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
    Title {
        at: usize,
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
    Sync,
    Reopen,
    PowerCut,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Expect {
    Any,
    New,
    Actual,
    Wrong,
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let short = string_regex("[a-zé\u{0}\u{1f600}]{0,6}").unwrap();
    let text = prop_oneof![20 => short, 1 => Just("x".repeat(70_000))];
    let item = prop::option::weighted(0.2, prop::sample::select(ITEMS.to_vec()));
    let chunk = (0..4, text, item.clone()).prop_map(|(kind, text, item)| {
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
    let message = (role, prop::collection::vec(chunk, 0..4), model, created_at, item).prop_map(
        |(role, chunks, model, created_at, item)| {
            let mut message = model::message(role, chunks, model, created_at);
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
    let delta = string_regex("[a-z]{0,5}").unwrap();
    let role = prop::sample::select(vec![Role::Assistant, Role::Tool, Role::User]);
    let expected = prop_oneof![
        6 => Just(Expect::Any),
        1 => Just(Expect::New),
        2 => Just(Expect::Actual),
        1 => Just(Expect::Wrong),
    ];
    let key = prop::option::weighted(0.3, 0..3_u8);
    prop_oneof![
        8 => (at.clone(), messages(), any::<bool>(), expected, key)
            .prop_map(|(at, messages, buffered, expected, key)| Op::Append { at, messages, buffered, expected, key }),
        4 => (at.clone(), role).prop_map(|(at, role)| Op::Begin { at, role }),
        8 => (writer.clone(), chunk.clone(), delta).prop_map(|(writer, chunk, text)| Op::Push { writer, chunk, text }),
        1 => (writer.clone(), chunk).prop_map(|(writer, chunk)| Op::PushOther { writer, chunk }),
        2 => writer.clone().prop_map(|writer| Op::Finish { writer }),
        2 => writer.prop_map(|writer| Op::Abandon { writer }),
        3 => (at.clone(), 0..6_u64).prop_map(|(at, to)| Op::Rewind { at, to }),
        2 => (at.clone(), 0..8_u64).prop_map(|(at, through)| Op::Summarize { at, through }),
        3 => (at.clone(), prop::option::of(0..8_usize), 0..NAMES).prop_map(|(at, seq, child)| Op::Fork { at, seq, child }),
        1 => at.clone().prop_map(|at| Op::Title { at }),
        2 => (at.clone(), 0..3_u8, any::<bool>()).prop_map(|(at, tag, remove)| Op::Tag { at, tag, remove }),
        1 => at.clone().prop_map(|at| Op::Delete { at }),
        2 => (at, 0..6_u64, prop::option::of(0..3_u32))
            .prop_map(|(at, message, chunk)| Op::Redact { at, message, chunk }),
        2 => Just(Op::Sync),
        1 => Just(Op::Reopen),
        1 => Just(Op::PowerCut),
    ]
}
