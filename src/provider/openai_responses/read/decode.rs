//! Responses, whole (`response`) or streamed (`response.*` events).
//!
//! An item grows by deltas and comes whole at its end: what the deltas left open (its id, signature, annotations) comes
//! from there. Fields that repeat the request are left out; others that are not known here become fields of the message's
//! metadata. Sources: API reference, "The response object" and "Streaming events"; types of the official Python SDK
//! (openai 2.54.0).

use super::growing::Growing;
use crate::json::fields::{Fields, string};
use crate::model::extra::Owner;
use crate::model::{Body, Metadata};
use crate::provider::openai_responses::manner::{Manner, PROVIDER};
use crate::provider::read::answer::{Answer, Decode};
use crate::provider::target::Target;

/// Fields of a response that repeat the request, or say nothing of the message.
const OF_THE_REQUEST: &[&str] = &[
    "object",
    "output_text",
    "background",
    "billing",
    "completed_at",
    "content_filters",
    "conversation",
    "frequency_penalty",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
/// Events that say nothing more than those around them.
const ECHOES: &[&str] = &[
    "response.content_part.added",
    "response.content_part.done",
    "response.output_text.done",
    "response.output_text.annotation.added",
    "response.refusal.done",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.done",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_part.done",
    "response.reasoning_summary_text.done",
    "response.reasoning_text.done",
    "keepalive",
];
/// How events of hosted tools begin: their items come whole.
const OF_HOSTED_TOOLS: &[&str] = &[
    "response.web_search_call.",
    "response.file_search_call.",
    "response.code_interpreter_call",
    "response.image_generation_call.",
    "response.mcp_call",
    "response.mcp_list_tools.",
    "response.computer_call.",
    "response.shell_call_",
    "response.apply_patch_call_",
    "response.compaction.",
];

pub(crate) fn decoder(target: Target) -> Box<dyn Decode> {
    let provider = Manner::of(target).providers.first().copied().unwrap_or(PROVIDER);
    Box::new(Response { provider, items: Growing::default() })
}

/// A decoder of responses.
#[derive(Debug)]
struct Response {
    provider: &'static str,
    items: Growing,
}

impl Decode for Response {
    fn provider(&self) -> &'static str {
        self.provider
    }

    fn take(&mut self, event: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool {
        let kind = fields.peek("type").and_then(string).unwrap_or_else(|| event.to_owned());
        if fields.peek("object").is_some_and(|raw| raw.get() == "\"response\"")
            || fields.peek("output").is_some_and(|raw| raw.get().starts_with('['))
        {
            self.response(std::mem::take(fields), answer);
            return true;
        }
        match kind.as_str() {
            "response.created"
            | "response.in_progress"
            | "response.queued"
            | "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => match fields.object("response") {
                Some(response) => self.response(response, answer),
                None => return false,
            },
            "response.output_item.added" => self.items.added(fields, answer),
            "response.output_item.done" => self.items.done(fields, answer),
            kind if kind.ends_with(".delta") => return self.items.delta(kind, fields, answer) || is_hosted(kind),
            kind => return ECHOES.contains(&kind) || is_hosted(kind),
        }
        true
    }

    fn finish(&mut self, _: &mut Answer) {}
}

fn is_hosted(kind: &str) -> bool {
    OF_HOSTED_TOOLS.iter().any(|start| kind.starts_with(start))
}

impl Response {
    /// A response: as it begins, or as it ends, with all of its items.
    fn response(&mut self, mut fields: Fields<'_>, answer: &mut Answer) {
        let status = fields.string("status").unwrap_or_default();
        let items = fields.array("output").unwrap_or_default();
        let has_items = !items.is_empty();
        let usage = fields.take("usage");
        let error = fields.object("error");
        let incomplete = fields.object("incomplete_details").and_then(|mut details| details.string("reason"));
        if fields.peek("store").is_some_and(|raw| raw.get() == "false") {
            self.items.set_unkept();
        }
        begin(fields, answer);
        for (index, raw) in (0..).zip(items) {
            self.items.whole(index, raw, answer);
        }
        if let Some(usage) = usage {
            answer.usage(usage);
        }
        if let Some(error) = error {
            answer.fail(failure(error));
        }
        match status.as_str() {
            "completed" | "cancelled" => {
                answer.stop(&status);
                answer.complete();
            }
            "incomplete" => answer.stop(incomplete.as_deref().unwrap_or("length")),
            "failed" => answer.stop("error"),
            "queued" | "in_progress" => {}
            // Other servers have other words for an answer that is whole (recorded: pydantic-ai
            // test_openai_responses_verbosity).
            other if has_items && !other.is_empty() => {
                answer.stop(other);
                answer.complete();
            }
            _ => {}
        }
    }
}

fn begin(mut fields: Fields<'_>, answer: &mut Answer) {
    OF_THE_REQUEST.iter().for_each(|name| _ = fields.take(name));
    if answer.has_begun() {
        return;
    }
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (id, model) = (filled(fields.string("id")), filled(fields.string("model")));
    let extra = fields.extra(Owner::Message);
    answer.begin(Metadata { id, model, extra, ..Metadata::default() });
}

fn failure(mut error: Fields<'_>) -> Body {
    let message = error.text("message").unwrap_or_else(|| "the response failed".to_owned());
    Body::Error { message, code: error.text("code") }
}
