//! Which part of a long history is rendered.
//!
//! A history is cut before messages of the user only, so never inside a call and its results, and only where the target is
//! sent something for that message, so that no cut leaves nothing to send. What is between two such places is a *turn*.
//! Turns make up *blocks* of at most half of what the window may hold, as many turns in each as fit (a turn that is larger
//! is a block of its own), and whole blocks are left out, the oldest first, until the rest fits. So the window moves in
//! steps, two of which leave out more than half of what it may hold, and where it begins depends on what precedes and on
//! the steps that were passed: what is appended within a step goes after what was there.

use std::collections::HashSet;
use std::ops::Range;

use crate::history::{MessageState, StoredMessage};
use crate::model::{Body, Chunk, Role};

/// The turns of a reconciled conversation, by the positions of their messages. The first one holds what is before
/// the user first spoke, too.
#[derive(Debug)]
pub(crate) struct UserTurns<'a> {
    messages: &'a [StoredMessage],
    turns: Vec<Range<usize>>,
    /// Of each turn, whether the user only goes on in it: nobody has spoken in between.
    goes_on: Vec<bool>,
}

/// Where a window begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// The number of its first turn.
    pub(crate) turn: usize,
    /// Whether it holds no more than it may: else the last turn alone is more than that.
    pub(crate) fits: bool,
}

/// Whether a message is in every window: system messages, and a summary of what was said before.
pub(crate) fn is_kept(stored: &StoredMessage) -> bool {
    stored.message.role == Role::System
        || (stored.message.role == Role::User && stored.state == MessageState::Synthetic)
}

impl<'a> UserTurns<'a> {
    /// `is_sent`: whether there is something to send for a message of the user.
    pub(crate) fn of(messages: &'a [StoredMessage], is_sent: impl Fn(&StoredMessage) -> bool) -> Self {
        let (mut turns, mut goes_on) = (Vec::new(), vec![false]);
        let mut begin = 0;
        // Whether it was the user who spoke last.
        let mut last = None;
        for (at, stored) in messages.iter().enumerate().filter(|(_, stored)| !is_kept(stored)) {
            let is_users = is_users(stored);
            if is_users && !is_sent(stored) {
                continue;
            }
            if let (true, Some(last)) = (is_users, last) {
                turns.push(begin..at);
                goes_on.push(last);
                begin = at;
            }
            last = Some(is_users);
        }
        turns.push(begin..messages.len());
        Self { messages, turns, goes_on }
    }

    /// The positions of each turn's messages.
    pub(crate) fn ranges(&self) -> &[Range<usize>] {
        &self.turns
    }

    /// How many messages of the log each turn has, without those that are in every window.
    pub(crate) fn message_counts(&self) -> Vec<u64> {
        let mut seen = HashSet::new();
        let mut is_new = |stored: &&StoredMessage| {
            !is_kept(stored) && stored.state != MessageState::Synthetic && seen.insert(stored.index)
        };
        let counts = self.turns.iter().map(|turn| {
            let messages = self.messages.get(turn.clone()).unwrap_or_default();
            messages.iter().filter(&mut is_new).count() as u64
        });
        counts.collect()
    }

    /// One for each turn but those in which the user only goes on.
    pub(crate) fn user_turn_counts(&self) -> Vec<u64> {
        self.goes_on.iter().map(|goes_on| u64::from(!goes_on)).collect()
    }
}

/// Whether it is the user who speaks, not a tool.
fn is_users(stored: &StoredMessage) -> bool {
    let is_result = |chunk: &Chunk| matches!(chunk.body, Body::ToolResult { .. });
    stored.message.role == Role::User && !is_kept(stored) && !stored.message.chunks.iter().any(is_result)
}

/// Where a window of at most `limit` begins, over turns of these weights.
pub(crate) fn start(weights: &[u64], limit: u64) -> Start {
    // What is after a block's first turn, it included.
    let mut rest: u64 = weights.iter().sum();
    let mut block = 0;
    let last = weights.len().saturating_sub(1);
    for (turn, weight) in weights.iter().enumerate() {
        if turn == 0 || block + weight > limit / 2 {
            if rest <= limit {
                return Start { turn, fits: true };
            }
            block = 0;
        }
        block += weight;
        rest -= weight;
    }
    Start { turn: last, fits: weights.last().is_none_or(|weight| *weight <= limit) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Message;

    fn stored(messages: impl IntoIterator<Item = Message>) -> Vec<StoredMessage> {
        let place = |(index, message): (u64, Message)| {
            let chunk_indexes = (0..).take(message.chunks.len()).collect();
            let seq = index + 1;
            StoredMessage {
                index,
                state: MessageState::Complete,
                first_seq: seq,
                last_seq: seq,
                chunk_indexes,
                message,
            }
        };
        (0..).zip(messages).map(place).collect()
    }

    /// Nothing is sent for empty texts.
    fn of(messages: &[StoredMessage]) -> UserTurns<'_> {
        UserTurns::of(messages, |stored| stored.message.chunks != [Chunk::text("")])
    }

    #[test]
    fn a_turn_begins_where_the_user_speaks() {
        let system = || Message::new(Role::System, [Chunk::text("s")]);
        let answer = || Message::assistant([Chunk::text("a")]);
        let call = Message::assistant([Chunk::tool_call("1", "ls", "{}")]);
        let result = Message::new(Role::User, [Chunk::tool_result("1", "x"), Chunk::text("and")]);
        let messages = stored([
            system(),
            answer(),
            Message::user("a"),
            call,
            result,
            answer(),
            Message::user("b"),
            system(),
            Message::user("c"),
            answer(),
        ]);
        let turns = of(&messages);
        assert_eq!(turns.ranges(), [0..2, 2..6, 6..8, 8..10]);
        assert_eq!(turns.message_counts(), [1, 4, 1, 2]);
        assert_eq!(turns.user_turn_counts(), [1, 1, 1, 0]);
        let messages = stored([system(), system(), Message::user("a"), Message::user("b")]);
        assert_eq!(of(&messages).ranges(), [0..3, 3..4]);
        // A message for which nothing is sent begins no turn, and parts none.
        let silent = || Message::user("");
        let messages = stored([silent(), Message::user("a"), silent(), Message::user("b"), answer(), silent()]);
        let turns = of(&messages);
        assert_eq!((turns.ranges(), &turns.user_turn_counts()[..]), (&[0..3, 3..6][..], &[1, 0][..]));
        let messages = stored([Message::user("a"), answer(), silent(), Message::user("b")]);
        assert_eq!(of(&messages).user_turn_counts(), [1, 1]);
        assert_eq!(of(&[]).ranges().len(), 1);
    }

    #[test]
    fn messages_of_the_log_count_once_and_stubs_not_at_all() {
        let call = Message::assistant([Chunk::tool_call("1", "ls", "{}")]);
        let stub = Message::tool("1", "unknown");
        let mut messages = stored([Message::user("a"), call, stub, Message::assistant([Chunk::text("a")])]);
        messages[2].state = MessageState::Synthetic;
        // One message that was divided.
        messages[3].index = messages[1].index;
        assert_eq!(of(&messages).message_counts(), [2]);
    }

    #[test]
    fn whole_blocks_are_left_out() {
        let begins = |turn| Start { turn, fits: true };
        assert_eq!(start(&[], 5), begins(0));
        assert_eq!(start(&[2, 2, 2, 2], 8), begins(0));
        // Blocks of two turns.
        assert_eq!(start(&[2, 2, 2, 2, 1], 8), begins(2));
        assert_eq!(start(&[2, 2, 2, 2, 2, 2], 8), begins(2));
        assert_eq!(start(&[2, 2, 2, 2, 2, 2, 1], 8), begins(4));
        // A large turn is a block, and stays while it fits.
        assert_eq!(start(&[1, 6, 1], 8), begins(0));
        assert_eq!(start(&[1, 6, 2], 8), begins(1));
        assert_eq!(start(&[1, 6, 3], 8), begins(2));
        assert_eq!(start(&[1, 9], 8), Start { turn: 1, fits: false });
        assert_eq!(start(&[9, 1], 8), begins(1));
        assert_eq!(start(&[1, 1], 0), Start { turn: 1, fits: false });
        // The last turn fits, and begins no block.
        assert_eq!(start(&[1, 1, 1], 1), begins(2));
    }

    proptest::proptest! {
        #[test]
        fn a_window_fits_and_moves_forward_in_steps(
            weights in proptest::collection::vec(0_u64..12, 1..60), limit in 1_u64..40,
        ) {
            let mut before = Start { turn: 0, fits: true };
            let mut moves = Vec::new();
            for end in 1..=weights.len() {
                let known = &weights[..end];
                let at = start(known, limit);
                let held: u64 = known[at.turn..].iter().sum();
                proptest::prop_assert_eq!(at.fits, held <= limit);
                proptest::prop_assert!(at.fits || at.turn == end - 1);
                proptest::prop_assert!(at.turn >= before.turn);
                // It stays where it is as long as what it holds fits.
                let stays: u64 = known[before.turn..].iter().sum();
                proptest::prop_assert_eq!(at.turn == before.turn, stays <= limit || before.turn == end - 1);
                if at.turn > before.turn {
                    moves.push(at.turn);
                }
                before = at;
            }
            // What two steps leave out, but for the first turn of the next block, is more than half.
            for step in moves.windows(3) {
                let passed: u64 = weights[step[0]..=step[2]].iter().sum();
                proptest::prop_assert!(passed > limit / 2);
            }
        }
    }
}
