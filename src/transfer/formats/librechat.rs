//! LibreChat's exports: one conversation a file, as a list of messages or as a tree.
//!
//! Source: LibreChat's fixture `librechat-export.json` and its importers; see `docs/transfer.md`.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::json::fields::{Fields, is_empty, string};
use crate::json::text::Strings;
use crate::model::extra::Owner;
use crate::model::{Chunk, FinishReason, Message, Output, Role};
use crate::transfer::foreign::{Broken, Foreign, Node, Taken};
use crate::transfer::format::{Context, Format, Head, Reader};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "librechat",
    about: "LibreChat's exports",
    read: Some(Reader::Each { recognise, read }),
    tables: None,
    write: None,
};

fn recognise(head: &Head<'_>) -> bool {
    head.any(|fields| {
        let has = |name| fields.peek(name).is_some_and(|raw| raw.get().starts_with('['));
        fields.peek("conversationId").is_some() && (has("messages") || has("messagesTree"))
    })
}

fn read(text: &str, context: &Context<'_>) -> Taken {
    let (flat, lifted) = lift_children(text);
    let mut fields = Fields::read(&flat).map_err(|error| Broken::new(error.to_string()))?;
    let id = fields.string("conversationId").unwrap_or_else(|| context.unnamed());
    let mut foreign = Foreign::new(id);
    foreign.title = take::title(&mut fields, "title");
    take::tags_of(fields.peek("tags"), &mut foreign);
    let model = fields.peek("options").and_then(Fields::of).and_then(|mut options| options.string("model"));
    let lists = ["messages", "messagesTree"].map(|name| fields.array(name).unwrap_or_default());
    let lifted: Vec<Box<RawValue>> = lifted.into_iter().filter_map(|text| RawValue::from_string(text).ok()).collect();
    // A reader that skips an empty message attaches its followers to its parent: the tree does that.
    for raw in lists.into_iter().flatten().chain(lifted.iter().map(AsRef::as_ref)) {
        message(raw, model.as_deref(), &mut foreign);
    }
    let times: HashMap<String, Option<crate::model::Timestamp>> = foreign
        .nodes
        .iter()
        .map(|node| (node.id.clone(), node.messages.first().and_then(|message| message.metadata.created_at)))
        .collect();
    // Children come after all others of their depth: the order is by time.
    foreign.nodes.sort_by_key(|node| times.get(&node.id).copied().flatten());
    foreign.rest = take::rest(fields);
    Ok(foreign)
}

/// Takes messages out of the `children` of messages, however deep they are nested: returns the text with those lists
/// empty, and the messages that were in them. One pass, without recursion.
fn lift_children(text: &str) -> (String, Vec<String>) {
    /// An open bracket: where the text inside goes, and whether it is a list of children.
    struct Open {
        is_children: bool,
        is_child: bool,
    }
    let mut lifted = Vec::new();
    let mut outs: Vec<String> = vec![String::new()];
    let mut open: Vec<Open> = Vec::new();
    let (mut strings, mut begun, mut copied) = (Strings::default(), 0, 0);
    // The last string, and whether a colon follows it.
    let mut key = "";
    let mut is_key = false;
    let mut copy = |outs: &mut Vec<String>, to: usize, from: usize| {
        if let (Some(out), Some(part)) = (outs.last_mut(), text.get(copied..to)) {
            out.push_str(part);
        }
        copied = from;
    };
    for (at, byte) in text.bytes().enumerate() {
        let was_inside = strings.has_begun();
        let is_outside = strings.is_outside(char::from(byte));
        match (was_inside, strings.has_begun()) {
            (false, true) => begun = at + 1,
            (true, false) => (key, is_key) = (text.get(begun..at).unwrap_or_default(), false),
            _ => {}
        }
        if !is_outside {
            continue;
        }
        let in_children = open.last().is_some_and(|open| open.is_children);
        match byte {
            b':' => is_key = true,
            b'[' => {
                let is_children = is_key && key == "children";
                open.push(Open { is_children, is_child: false });
                is_key = false;
            }
            b'{' => {
                if in_children {
                    copy(&mut outs, at, at);
                    outs.push(String::new());
                }
                open.push(Open { is_children: false, is_child: in_children });
                is_key = false;
            }
            b']' | b'}' => {
                let closed = open.pop();
                if closed.is_some_and(|closed| closed.is_child) {
                    copy(&mut outs, at + 1, at + 1);
                    lifted.extend(outs.pop());
                }
                is_key = false;
            }
            // Commas between children are dropped with them.
            b',' if in_children => copy(&mut outs, at, at + 1),
            b',' => is_key = false,
            _ => {}
        }
    }
    copy(&mut outs, text.len(), text.len());
    (outs.into_iter().next().unwrap_or_default(), lifted)
}

fn message(raw: &RawValue, model: Option<&str>, foreign: &mut Foreign) {
    let Some(mut fields) = Fields::of(raw) else { return foreign.skip("message_that_is_no_object") };
    let id = fields.string("messageId").unwrap_or_else(|| foreign.nodes.len().to_string());
    let parent = fields.string("parentMessageId").filter(|parent| !parent.starts_with("00000000-0000-0000-0000-"));
    for name in ["children", "conversationId"] {
        fields.take(name);
    }
    let is_users = fields.take("isCreatedByUser").map(|raw| raw.get() == "true");
    let sender = fields.peek("sender").and_then(string).unwrap_or_default();
    let role = match is_users {
        Some(true) => Role::User,
        Some(false) => Role::Assistant,
        None if sender.eq_ignore_ascii_case("user") => Role::User,
        None => Role::Assistant,
    };
    let failed = fields.take("error").is_some_and(|raw| raw.get() == "true");
    let text = fields.string("text").unwrap_or_default();
    let mut chunks = Vec::new();
    for (number, raw) in fields.array("content").unwrap_or_default().into_iter().enumerate() {
        part(raw, &format!("{id}:{number}"), &mut chunks);
    }
    if chunks.is_empty() && !text.is_empty() {
        chunks.push(if failed { Chunk::error(text) } else { Chunk::text(text) });
    }
    for raw in ["files", "attachments"].into_iter().flat_map(|name| fields.array(name).unwrap_or_default()) {
        chunks.extend(file(raw));
    }
    let created_at = take::moment_of(&mut fields, "createdAt");
    let mut messages: Vec<Message> = take::messages(role, chunks);
    if messages.is_empty() {
        foreign.skip("empty_message");
    }
    let made_by = fields.string("model");
    let provider = fields.peek("endpoint").and_then(string);
    let is_unfinished = fields.peek("unfinished").is_some_and(|raw| raw.get() == "true");
    for message in &mut messages {
        message.metadata.created_at = created_at;
        if message.role == Role::Assistant {
            message.metadata.model = made_by.clone().or_else(|| model.map(str::to_owned));
            message.metadata.provider = provider.as_deref().map(str::to_lowercase);
        }
    }
    if let Some(last) = messages.iter_mut().rev().find(|message| message.role == Role::Assistant) {
        let reason = fields.string("finish_reason").and_then(|reason| FinishReason::given(&reason));
        last.finish_reason = if is_unfinished { Some(FinishReason::Interrupted) } else { reason };
    }
    if let Some(first) = messages.first_mut() {
        first.metadata.id = Some(id.clone());
    }
    fields.drop_if(|_, raw| is_empty(raw) || raw.get() == "false");
    take::keep(fields, messages.first_mut());
    foreign.nodes.push(Node { id, parent, messages });
}

fn part(raw: &RawValue, made: &str, chunks: &mut Vec<Chunk>) {
    let Some(mut fields) = Fields::of(raw) else { return chunks.extend(take::stray(raw, FORMAT.name)) };
    let kind = fields.string("type").unwrap_or_default();
    let text = |fields: &mut Fields<'_>, name: &str| {
        fields.string(name).or_else(|| fields.object(name).and_then(|mut inner| inner.string("value")))
    };
    let chunk = match kind.as_str() {
        "text" => text(&mut fields, "text").filter(|text| !text.is_empty()).map(Chunk::text),
        "think" => text(&mut fields, "think").map(Chunk::thinking),
        "error" => text(&mut fields, "error").or_else(|| text(&mut fields, "text")).map(Chunk::error),
        "image_url" => {
            let url = fields.object("image_url").and_then(|mut image| image.string("url"));
            url.or_else(|| fields.string("image_url")).map(Chunk::image)
        }
        "tool_call" => {
            let Some(mut call) = fields.object("tool_call") else { return };
            // Assistants hold a function's call inside.
            if let Some(function) = call.object("function") {
                let id = call.string("id");
                call = function;
                return called(call, id, made, chunks);
            }
            let id = call.string("id");
            return called(call, id, made, chunks);
        }
        _ => return chunks.extend(take::opaque(raw, kind, FORMAT.name)),
    };
    match chunk {
        Some(mut chunk) => {
            fields.extend(Owner::Chunk, &mut chunk.extra);
            chunks.push(chunk);
        }
        None if kind == "text" => {}
        None => chunks.extend(take::opaque(raw, kind, FORMAT.name)),
    }
}

fn called(mut call: Fields<'_>, id: Option<String>, made: &str, chunks: &mut Vec<Chunk>) {
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| made.to_owned());
    let name = call.string("name").unwrap_or_default();
    let given = ["args", "arguments"].iter().find_map(|name| call.take(name));
    let arguments = take::arguments(given);
    let output = call.take("output");
    call.take("type");
    chunks.push(take::with_rest(call, Chunk::tool_call(&id, &name, arguments).body));
    if let Some(output) = output {
        let output: Output = take::output(Some(output));
        chunks.push(take::result(&id, Some(name), output, None).into());
    }
}

fn file(raw: &RawValue) -> Option<Chunk> {
    let mut fields = Fields::of(raw)?;
    let name = fields.string("filename");
    let mime_type = fields.string("type").filter(|kind| kind.contains('/'));
    let url = fields.string("filepath").or_else(|| fields.string("file_id")).unwrap_or_default();
    let is_image = mime_type.as_deref().is_some_and(|mime| mime.starts_with("image/"));
    let chunk =
        if is_image { take::picture(None, &url, mime_type) } else { take::document(None, &url, name, mime_type) };
    Some(take::with_rest(fields, chunk.body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_lifted_out_of_messages_however_deep() {
        let text = r#"{"m":[{"id":1,"x":"\"children\":[{","children":[{"id":2,"children":[]},{"id":3,"children":[{"id":4}]}]}]}"#;
        let (flat, lifted) = lift_children(text);
        assert_eq!(flat, r#"{"m":[{"id":1,"x":"\"children\":[{","children":[]}]}"#);
        assert_eq!(lifted, [r#"{"id":2,"children":[]}"#, r#"{"id":4}"#, r#"{"id":3,"children":[]}"#]);
        let deep = format!("{}{}{}", r#"{"children":["#.repeat(100_000), "{}", "]}".repeat(100_000));
        assert_eq!(lift_children(&deep).1.len(), 100_000);
    }
}
