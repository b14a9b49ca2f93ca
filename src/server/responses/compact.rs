//! A history as the summary that its model writes. The summary is sealed: clients give it back as it is, and no one else reads it.

use std::sync::Arc;

use axum::body::Body;
use http_body_util::{BodyExt as _, Limited};
use serde_json::json;

use super::about::ResponseId;
use super::asked::Asked;
use super::calls::{reach, unwritten};
use super::encoder::{seconds, usage};
use super::models::At;
use super::parameters;
use super::place::Placed;
use super::reach::Reach;
use super::sealed::{Seal, Sealed};
use super::tools::HostedTools;
use crate::history::{Conversation, MessageState, StoredMessage};
use crate::json::object::merged;
use crate::model::{Body as ChunkBody, ConversationId, FinishReason, Message, Timestamp};
use crate::provider::{TokenCounts, decode, render};
use crate::server::app::{Call, Streaming, ok};
use crate::server::body::{self, Bounds};
use crate::server::refusal::Refusal;

/// What the model is asked.
const ASKED: &str = "Summarize this conversation so that it can go on from the summary alone, without its messages. Keep what \
    was asked, what was decided, names, numbers, paths, the state of the work, and what is still to do. Answer with the summary only.";
/// What is before it when it is sent.
const SUMMARY: &str = "Summary of the conversation up to here:\n\n";
/// Fields that mean nothing to a summary: no tool is called, and no form is kept.
const UNUSED: [&str; 7] = ["tools", "tool_choice", "parallel_tool_calls", "text", "include", "stream", "background"];

pub(super) fn compact(call: Call, body: Body) -> Streaming {
    Box::pin(async move {
        let promised = call.header("content-length").and_then(|length| length.parse().ok());
        let held = body::read(&call.app, &call.caller.owner, body, promised, Bounds::of(&call.app)).await?;
        let _stream = call.app.streams.begin(&call.caller.key)?.with(call.app.upstreams.begin()?);
        let (reach, app, held) = (reach(&call), Arc::clone(&call.app), Arc::new(held));
        let (asking, bytes) = (call.clone(), Arc::clone(&held));
        let (at, request) = app.pool.run(move || prepared(&asking, &reach, &bytes.bytes)).await?;
        let answer = at.send(at.request(&call, request)?).await?;
        let most = app.config.limits.body_bytes;
        let whole = Limited::new(answer.into_body(), most).collect().await;
        let whole =
            whole.map_err(|error| Refusal::new(502, "upstream_cut", format!("the summary was cut: {error}")))?;
        let message = decode(at.target, &whole.to_bytes())?;
        let text: String = message
            .chunks
            .iter()
            .filter_map(|chunk| match &chunk.body {
                ChunkBody::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        // What was cut off takes no history's place.
        if text.trim().is_empty() || message.finish_reason != Some(FinishReason::Stop) {
            let why = message.finish_reason.as_ref().map_or("no reason", FinishReason::as_str);
            return Err(Refusal::new(502, "no_summary", format!("the model wrote no whole summary: {why}")));
        }
        let asking = call.clone();
        let seal = app.pool.run(move || Seal::open(&asking.app, &asking.caller.owner)).await?;
        let sealed = seal.seal(&Sealed::Summary { text: format!("{SUMMARY}{text}") });
        let id = ResponseId { conversation: ConversationId::new(), message: 0 };
        let counts = message.usage.as_ref().and_then(TokenCounts::of).unwrap_or_default();
        ok(&json!({
            "id": id.to_string(),
            "object": "response.compaction",
            "created_at": seconds(Timestamp::now()),
            "output": [{ "id": id.of_item("cmp", 0), "type": "compaction", "encrypted_content": sealed }],
            "usage": usage(counts),
        }))
    })
}

fn prepared(call: &Call, reach: &Reach, body: &[u8]) -> Result<(At, Vec<u8>), Refusal> {
    let mut asked = Asked::read(call, body)?;
    asked.is_stored = false;
    UNUSED.iter().for_each(|name| _ = asked.fields.remove(*name));
    let at = At::of(&call.app, &asked.model)?;
    let text = body::text(body)?;
    let rendered =
        parameters::rendered(&asked.fields, text, at.target, &at.model, HostedTools::Refuse, at.context_tokens)?;
    let placed = Placed::find(call, reach, &asked, at.name())?;
    let mut messages = rendered.tools.sent_in(placed.conversation(asked.instructions.as_deref())).into_messages();
    let next = messages.last().map_or(0, |last| last.index + 1);
    messages.push(StoredMessage::new(next, MessageState::Complete, Message::user(ASKED)));
    let prompt = render(at.target, &Conversation::new(messages), &rendered.options)?;
    let body = merged(&prompt.request, rendered.fields).map_err(unwritten)?;
    Ok((at, body))
}
