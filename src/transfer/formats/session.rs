//! What a session that another program goes on with has of a conversation: what was said, without what the program before it said
//! to its own model.

use crate::history::{Conversation, StoredMessage};
use crate::log::replay::spoken;
use crate::model::{Body, Chunk, Role};
use crate::transfer::foreign::Skipped;

/// How texts begin that a program writes in the user's name.
const SCAFFOLDING: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<skills_instructions>",
    "<permissions instructions>",
    "<system-reminder>",
];

/// The conversation without its instructions: the program that goes on has its own.
pub(crate) fn said(messages: &[StoredMessage], skipped: &mut Skipped) -> Conversation {
    let mut count = |kind: &str, count: usize| {
        if count > 0 {
            *skipped.entry(kind.to_owned()).or_default() += count as u64;
        }
    };
    let mut kept = Vec::new();
    for stored in messages {
        if stored.message.role == Role::System {
            count("system_message", 1);
            continue;
        }
        let is_said = |at: usize| {
            let chunk = stored.message.chunks.get(at);
            stored.message.role != Role::User
                || !chunk.is_some_and(|chunk| is_scaffolding(chunk) && after(chunk).is_none())
        };
        let mut said = stored.select(is_said);
        count("scaffolding", stored.message.chunks.len() - said.message.chunks.len());
        for chunk in
            said.message.chunks.iter_mut().filter(|chunk| stored.message.role == Role::User && is_scaffolding(chunk))
        {
            count("scaffolding", 1);
            if let Some(words) = after(chunk) {
                chunk.body = Body::Text { text: words, annotations: None };
            }
        }
        if !said.message.chunks.is_empty() || stored.message.chunks.is_empty() {
            kept.push(said);
        }
    }
    Conversation::new(kept)
}

/// What a person wrote after what a program put before it, in the same text.
fn after(chunk: &Chunk) -> Option<String> {
    let Body::Text { text, .. } = &chunk.body else { return None };
    // What it does not know as a program's it gives whole.
    spoken(text).filter(|words| words.len() < text.trim_start().len()).map(str::to_owned)
}

/// Whether a program wrote a text in the user's name, or the beginning of it.
pub(crate) fn is_scaffolding(chunk: &Chunk) -> bool {
    match &chunk.body {
        Body::Text { text, .. } => SCAFFOLDING.iter().any(|mark| text.trim_start().starts_with(mark)),
        _ => false,
    }
}
