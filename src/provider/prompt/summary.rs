//! The summary in place of what it covers.

use std::borrow::Cow;

use crate::history::Conversation;
use crate::history::report::Fact;
use crate::history::{Calls, ReportLine, Site};
use crate::history::{MessageState, StoredMessage, Summary};
use crate::model::{Message, Role};

/// What comes before a summary in a prompt.
const HEADING: &str = "Summary of the conversation up to here:";

/// The messages of a prompt: a summary, said by the user, where the first message was that it covers. System messages
/// stay, and a result goes where its call goes.
pub(crate) fn summarized<'a>(conversation: &'a Conversation, report: &mut Vec<ReportLine>) -> Cow<'a, [StoredMessage]> {
    let messages = conversation.messages();
    let Some(summary) = conversation.summary() else { return Cow::Borrowed(messages) };
    let through = summary.through;
    let calls = Calls::pair(messages).into_calls();
    let is_covered = |stored: &StoredMessage| stored.index <= through && stored.message.role != Role::System;
    let mut standing = Some(message(summary));
    let mut out = Vec::new();
    for (message, stored) in messages.iter().enumerate() {
        let goes = |chunk: usize| {
            let call = calls.get(&Site { message, chunk }).and_then(|call| messages.get(call.message));
            is_covered(call.unwrap_or(stored))
        };
        let left = stored.select(|chunk| !goes(chunk));
        if left.message.chunks.len() < stored.message.chunks.len() || stored.index > through {
            out.extend(standing.take());
        }
        if stored.index > through {
            for chunk in (0..stored.message.chunks.len()).filter(|chunk| goes(*chunk)) {
                report.push(ReportLine::chunk(Fact::CallSummarized, stored, chunk));
            }
        }
        if !left.message.chunks.is_empty() {
            out.push(left);
        }
    }
    out.extend(standing);
    let line = ReportLine::new(Fact::Summarized { seq: summary.seq });
    report.push(ReportLine { message_index: Some(through), ..line });
    Cow::Owned(out)
}

fn message(summary: &Summary) -> StoredMessage {
    let Summary { seq, through, text } = summary;
    StoredMessage {
        index: *through,
        state: MessageState::Synthetic,
        first_seq: *seq,
        last_seq: *seq,
        chunk_indexes: vec![0],
        message: Message::user(format!("{HEADING}\n\n{text}")),
    }
}
