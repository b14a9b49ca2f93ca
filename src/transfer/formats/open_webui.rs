//! Open WebUI's chats, as it exports and imports them.
//!
//! Source: Open WebUI's `models/chats.py`, LibreChat's fixture of an export, and converters; see `docs/transfer.md`.

use std::io::{self, Write};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::documents::place_of;
use super::items::{parsed, segments};
use super::markdown::words;
use crate::json::fields::{Fields, array, is_empty, string};
use crate::model::extra::json as kept;
use crate::model::{Body, Chunk, Message, Output, Role};
#[cfg(feature = "archives")]
use crate::transfer::database::{self, Database, text};
use crate::transfer::foreign::{Broken, Foreign, Node, Skipped, Taken};
use crate::transfer::format::{Context, Format, Head, Outgoing, Reader, Tables, Writer};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "open-webui",
    about: "Open WebUI's chats",
    read: Some(Reader::Each { recognise, read }),
    tables: Some(Tables {
        #[cfg(feature = "archives")]
        recognise: |database| Ok(database.has(&["auth", "chat"])),
        #[cfg(feature = "archives")]
        read: read_tables,
    }),
    write: Some(Writer { frame: ["[", ",\n", "]\n"], extension: "json", write }),
};

fn recognise(head: &Head<'_>) -> bool {
    let is_chat = |fields: &Fields<'_>| {
        let history = fields.peek("history").and_then(Fields::of);
        history.is_some_and(|history| history.peek("messages").is_some())
    };
    // The oldest chats are only a list of messages.
    let is_list = |chat: &Fields<'_>| chat.peek("messages").and_then(array).is_some();
    let is_either = |chat: Fields<'_>| is_chat(&chat) || is_list(&chat);
    head.any(|fields| is_chat(fields) || fields.peek("chat").and_then(Fields::of).is_some_and(is_either))
}

/// `webui.db`: each row of `chat` has the fields of a chat of the export.
#[cfg(feature = "archives")]
fn read_tables(
    database: &Database,
    context: &Context<'_>,
    take: &mut dyn FnMut(Taken) -> bool,
) -> rusqlite::Result<()> {
    const YES_OR_NO: &[&str] = &["archived", "pinned"];
    let ids = database.all(&["chat"], "SELECT id FROM chat ORDER BY created_at, id", "")?;
    for id in ids.into_iter().filter_map(|mut row| text(&mut row, "id")) {
        database.next_conversation();
        let Some(row) = database.all(&["chat"], "SELECT * FROM chat WHERE id = ?1", &id)?.pop() else { continue };
        let field = |(name, value): (String, rusqlite::types::Value)| {
            let json = database::json(value)?.as_str().to_owned();
            let is_yes_or_no = YES_OR_NO.contains(&name.as_str());
            let json = if is_yes_or_no { (json == "1").to_string() } else { json };
            Some(format!("{}:{json}", json!(name)))
        };
        let fields: Vec<String> = row.into_iter().filter_map(field).collect();
        let chat = read(&format!("{{{}}}", fields.join(",")), context);
        if !take(chat.map_err(|broken| Broken { id: Some(id), ..broken })) {
            break;
        }
    }
    Ok(())
}

fn read(text: &str, context: &Context<'_>) -> Taken {
    let mut fields = Fields::read(text).map_err(|error| Broken::new(error.to_string()))?;
    let id = fields.string("id").filter(|id| !id.is_empty());
    // Old exports are only the chat.
    let inner = fields.object("chat");
    let (mut chat, outer) = match inner {
        Some(chat) => (chat, Some(fields)),
        None => (fields, None),
    };
    let mut outer = outer.unwrap_or_default();
    let title = take::title(&mut outer, "title").or_else(|| take::title(&mut chat, "title"));
    let broken = |why: &str| Broken { id: id.clone(), title: title.clone(), why: why.to_owned() };
    let mut history = chat.object("history");
    let messages = history.as_mut().and_then(|history| history.object("messages"));
    // A flat copy of the shown branch; the oldest chats have nothing else.
    let list = chat.array("messages");
    if messages.is_none() && list.is_none() {
        return Err(broken("it has no messages"));
    }
    let mut foreign = Foreign::new(id.clone().unwrap_or_else(|| context.unnamed()));
    foreign.title.clone_from(&title);
    let shown = history.as_mut().and_then(|history| history.string("currentId"));
    foreign.shown = shown.or_else(|| chat.string("currentId")).or_else(|| chat.string("branchPointMessageId"));
    take::tag_if(&outer, "archived", "archived", &mut foreign);
    take::tag_if(&outer, "pinned", "pinned", &mut foreign);
    let meta = outer.peek("meta").and_then(Fields::of);
    take::tags_of(meta.and_then(|meta| meta.peek("tags")), &mut foreign);
    take::tags_of(chat.peek("tags"), &mut foreign);
    for (id, raw) in messages.into_iter().flat_map(Fields::rest) {
        message(&id, raw, None, &mut foreign);
    }
    if foreign.nodes.is_empty() {
        for (at, raw) in list.unwrap_or_default().into_iter().enumerate() {
            let id = Fields::of(raw).and_then(|mut fields| fields.string("id")).unwrap_or_else(|| at.to_string());
            let before = foreign.nodes.last().map(|node| node.id.clone());
            message(&id, raw, before, &mut foreign);
        }
    }
    for fields in [chat, outer] {
        for (name, json) in take::rest(fields).iter() {
            foreign.rest.push(name, json.clone());
        }
    }
    Ok(foreign)
}

/// `before`: the message before it in a list, where its fields name none.
fn message(id: &str, raw: &RawValue, before: Option<String>, foreign: &mut Foreign) {
    let Some(mut fields) = Fields::of(raw) else { return foreign.skip("message_that_is_no_object") };
    let parent = fields.string("parentId").filter(|parent| !parent.is_empty()).or(before);
    fields.take("childrenIds");
    fields.take("id");
    let name = fields.string("role").unwrap_or_default();
    let role = Role::from_name(&name).unwrap_or_else(|| {
        foreign.skip("unknown_role_taken_for_user");
        Role::User
    });
    let content = fields.take("content").map(crate::json::fields::text).unwrap_or_default();
    let output: Vec<String> = fields.array("output").unwrap_or_default().into_iter().map(item).collect();
    let mut messages = Vec::new();
    if output.is_empty() {
        let chunks = if role == Role::Assistant { folded(&content, id) } else { said(content) };
        messages = take::messages(role, chunks);
    } else {
        let items: Vec<(&str, ())> = output.iter().map(|item| (item.as_str(), ())).collect();
        for (segment, ()) in segments(&items) {
            messages.extend(parsed(&segment, foreign));
        }
        // These items have the form of OpenAI's, but do not come from it.
        messages.iter_mut().for_each(disown);
        messages.retain(|message| !message.chunks.is_empty());
    }
    if let Some(error) = fields.peek("error").filter(|raw| !is_empty(raw) && raw.get() != "false") {
        let said = Fields::of(error).and_then(|mut fields| fields.string("content"));
        let error = Chunk::error(said.unwrap_or_else(|| crate::json::fields::text(error)));
        match messages.last_mut().filter(|last| last.role == role) {
            Some(last) => last.chunks.push(error),
            None => messages.push(Message::new(role, [error])),
        }
    }
    for raw in fields.array("files").unwrap_or_default() {
        let Some(chunk) = file(raw) else { continue };
        match messages.first_mut().filter(|first| first.role == role) {
            Some(first) => first.chunks.push(chunk),
            None => messages.insert(0, Message::new(role, [chunk])),
        }
    }
    if messages.is_empty() {
        foreign.skip("empty_message");
    }
    let created_at = take::moment_of(&mut fields, "timestamp");
    let model = fields.string("model");
    for message in &mut messages {
        message.metadata.created_at = created_at;
        if message.role == Role::Assistant {
            message.metadata.model.clone_from(&model);
        }
    }
    if let Some(first) = messages.first_mut() {
        first.metadata.id = Some(id.to_owned());
    }
    if let Some(last) = messages.iter_mut().rev().find(|message| message.role == Role::Assistant) {
        last.usage = fields.take("usage").and_then(kept);
    }
    fields.drop_if(|_, raw| is_empty(raw));
    take::keep(fields, messages.first_mut());
    foreign.nodes.push(Node { id: id.to_owned(), parent, messages });
}

/// An item without the fields that are null.
fn item(raw: &RawValue) -> String {
    let Some(fields) = Fields::of(raw) else { return raw.get().to_owned() };
    let pairs: Vec<String> = fields.rest().map(|(name, raw)| format!("{}:{raw}", json!(name))).collect();
    format!("{{{}}}", pairs.join(","))
}

fn disown(message: &mut Message) {
    message.metadata.provider = None;
    for chunk in &mut message.chunks {
        if let Some(native) = chunk.native.take() {
            chunk.extra.push("item", native.json);
        }
        if let Body::Opaque { provider, .. } = &mut chunk.body {
            FORMAT.name.clone_into(provider);
        }
    }
}

fn said(text: String) -> Vec<Chunk> {
    if text.is_empty() { Vec::new() } else { vec![Chunk::text(text)] }
}

/// A picture by its data or address, a document by its name.
fn file(raw: &RawValue) -> Option<Chunk> {
    let mut fields = Fields::of(raw)?;
    let kind = fields.string("type").unwrap_or_default();
    let url = fields.string("url").or_else(|| fields.string("id")).unwrap_or_default();
    let chunk =
        if kind == "image" { Chunk::image(url) } else { take::document(None, &url, fields.string("name"), None) };
    Some(take::with_rest(fields, chunk.body))
}

/// A text in which thinking and calls are folded: `<details type="reasoning">…</details>`.
fn folded(content: &str, id: &str) -> Vec<Chunk> {
    const MARK: &str = "<details type=\"";
    let mut chunks = Vec::new();
    let mut rest = content;
    let mut searched = 0;
    while let Some(place) = rest.get(searched..).and_then(|rest| rest.find(MARK)).map(|place| place + searched) {
        let (before, begun) =
            (rest.get(..place).unwrap_or_default(), rest.get(place + MARK.len()..).unwrap_or_default());
        let Some((kind, tail)) = begun.split_once('"') else { break };
        if !matches!(kind, "reasoning" | "tool_calls") {
            // Other blocks stay text.
            searched = place + MARK.len();
            continue;
        }
        searched = 0;
        let Some((attributes, tail)) = tail.split_once('>') else { break };
        let Some((inside, after)) = tail.split_once("</details>") else { break };
        chunks.extend(said(before.trim_end_matches('\n').to_owned()));
        let inside = inside.split_once("</summary>").map_or(inside, |(_, inside)| inside);
        let attribute = |name: &str| {
            let (_, value) = attributes.split_once(&format!("{name}=\""))?;
            value.split_once('"').map(|(value, _)| unescape(value))
        };
        if kind == "reasoning" {
            // Newer versions escape the marks of the lines, too.
            let inside = unescape(inside.trim());
            let lines = inside.lines().map(|line| line.strip_prefix("> ").or(line.strip_prefix('>')).unwrap_or(line));
            chunks.push(Chunk::thinking(lines.collect::<Vec<_>>().join("\n")));
        } else {
            let call = attribute("id").unwrap_or_else(|| format!("{id}:{}", chunks.len()));
            let name = attribute("name").unwrap_or_default();
            chunks.push(Chunk::tool_call(&call, &name, unquoted(attribute("arguments"))));
            if attribute("done").as_deref() != Some("false") {
                let output = Output::Text(unquoted(attribute("result").or_else(|| Some(inside.trim().to_owned()))));
                chunks.push(take::result(&call, Some(name), output, None).into());
            }
        }
        rest = after.trim_start_matches('\n');
    }
    chunks.extend(said(rest.to_owned()));
    chunks
}

/// The text of a JSON string, or any other as it is.
fn unquoted(text: Option<String>) -> String {
    let text = text.unwrap_or_default();
    RawValue::from_string(text.clone()).ok().and_then(|raw| string(&raw)).unwrap_or(text)
}

fn unescape(text: &str) -> String {
    const ENTITIES: &[(&str, &str)] =
        &[("&quot;", "\""), ("&#x27;", "'"), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    ENTITIES.iter().fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}

fn write(outgoing: &Outgoing, out: &mut dyn Write, skipped: &mut Skipped) -> io::Result<()> {
    let id = outgoing.item.id.to_string();
    let title = outgoing.item.title.clone().unwrap_or_default();
    let seconds = |at: crate::model::Timestamp| at.as_micros().div_euclid(1_000_000);
    let mut messages: Vec<(String, Value)> = Vec::new();
    let mut models: Vec<String> = Vec::new();
    for stored in &outgoing.messages {
        let message = &stored.message;
        let time = message.metadata.created_at.map_or(0, seconds);
        let items = output(message, skipped);
        let text: String = message
            .chunks
            .iter()
            .filter_map(|chunk| match &chunk.body {
                Body::Text { text, .. } | Body::Refusal { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        // What tools returned belongs to the answer that requested it.
        let is_answers = matches!(message.role, Role::Assistant | Role::Tool);
        if let Some((_, last)) =
            messages.last_mut().filter(|(_, last)| is_answers && last.get("role") == Some(&json!("assistant")))
        {
            if let Some(list) = last.get_mut("output").and_then(Value::as_array_mut) {
                list.extend(items);
            }
            if let Some(Value::String(content)) = last.get_mut("content") {
                content.push_str(&text);
            }
            continue;
        }
        let role = if is_answers { "assistant" } else { message.role.as_str() };
        let key = format!("{id}-{}", stored.index);
        let mut fields = json!({
            "id": key, "parentId": messages.last().map(|(id, _)| id.clone()), "childrenIds": [],
            "role": role, "content": text, "timestamp": time,
        });
        if let Some(map) = fields.as_object_mut() {
            if is_answers {
                map.insert("output".to_owned(), json!(items));
                map.insert("done".to_owned(), json!(true));
                if let Some(model) = &message.metadata.model {
                    map.insert("model".to_owned(), json!(model));
                    if !models.contains(model) {
                        models.push(model.clone());
                    }
                }
            } else {
                map.insert("files".to_owned(), json!(files(message)));
            }
        }
        let children =
            messages.last_mut().and_then(|(_, last)| last.get_mut("childrenIds")).and_then(Value::as_array_mut);
        if let Some(children) = children {
            children.push(json!(key));
        }
        messages.push((key, fields));
    }
    let current = messages.last().map(|(id, _)| id.clone());
    let map: serde_json::Map<String, Value> = messages.into_iter().collect();
    let flat: Vec<&Value> = map.values().collect();
    let chat = json!({
        "id": id, "title": title, "models": models, "params": {}, "files": [], "tags": [],
        "history": { "currentId": current, "messages": map }, "messages": flat,
        "timestamp": outgoing.item.created_at.as_micros() / 1000,
    });
    let tags = &outgoing.item.tags;
    let exported = json!({
        "id": id, "user_id": "", "title": title, "chat": chat,
        "created_at": seconds(outgoing.item.created_at), "updated_at": seconds(outgoing.item.last_activity),
        "share_id": null, "archived": tags.iter().any(|tag| tag == "archived"),
        "pinned": tags.iter().any(|tag| tag == "pinned"), "meta": { "tags": tags }, "folder_id": null,
    });
    serde_json::to_writer(out, &exported)?;
    Ok(())
}

/// The content of an answer, or of a tool, as items.
fn output(message: &Message, skipped: &mut Skipped) -> Vec<Value> {
    let part = |text: &str| json!([{ "type": "output_text", "text": text }]);
    let mut items = Vec::new();
    if !matches!(message.role, Role::Assistant | Role::Tool) {
        return items;
    }
    for chunk in &message.chunks {
        items.push(match &chunk.body {
            Body::Thinking { text, .. } => {
                json!({ "type": "reasoning", "status": "completed", "content": part(text), "summary": null })
            }
            Body::Text { text, .. } | Body::Refusal { text } => {
                json!({ "type": "message", "role": "assistant", "status": "completed", "content": part(text) })
            }
            Body::ToolCall { id, name, arguments, .. } => {
                json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments, "status": "completed" })
            }
            Body::ToolResult { tool_call_id, output, .. } => {
                let output = json!([{ "type": "input_text", "text": words(output) }]);
                json!({ "type": "function_call_output", "call_id": tool_call_id, "output": output, "status": "completed" })
            }
            other => {
                *skipped.entry(other.kind().to_owned()).or_default() += 1;
                continue;
            }
        });
    }
    items
}

fn files(message: &Message) -> Vec<Value> {
    let file = |chunk: &Chunk| match &chunk.body {
        Body::Image(image) => Some(json!({ "type": "image", "url": image.url })),
        Body::File(file) => Some(json!({ "type": "file", "name": file.name, "url": place_of(file) })),
        _ => None,
    };
    message.chunks.iter().filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_thinking_and_calls_are_unfolded() {
        let text = "Hm.\n<details type=\"reasoning\" done=\"true\" duration=\"1\">\n<summary>Thought</summary>\n> a &lt; b\n> c\n</details>\nSo.\n\
            <details type=\"tool_calls\" done=\"true\" id=\"c1\" name=\"f\" arguments=\"&quot;{\\&quot;a\\&quot;:1}&quot;\" result=\"&quot;2&quot;\">\n<summary>Ran</summary>\n</details>\nEnd";
        let chunks = folded(text, "m");
        let wanted = [
            Chunk::text("Hm."),
            Chunk::thinking("a < b\nc"),
            Chunk::text("So."),
            Chunk::tool_call("c1", "f", "{\"a\":1}"),
            take::result("c1", Some("f".to_owned()), Output::Text("2".to_owned()), None).into(),
            Chunk::text("End"),
        ];
        assert_eq!(chunks, wanted);
        let escaped =
            "<details type=\"reasoning\" done=\"true\">\n<summary>Thought</summary>\n&gt; a &lt; b\n&gt; c\n</details>";
        assert_eq!(folded(escaped, "m"), [Chunk::thinking("a < b\nc")]);
        // Text that only looks like it stays text.
        assert_eq!(folded("<details type=\"reasoning\">", "m"), [Chunk::text("<details type=\"reasoning\">")]);
    }
}
