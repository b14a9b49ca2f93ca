//! What version 0.32 writes: a tree of messages, each with its parts, shared by threads; and the turns of a thread.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::row::{NAME, attached, keep_rest, time, usage};
use crate::json::fields::Fields;
use crate::model::extra::Owner;
use crate::model::{Body, Chunk, Message, Output, Part, PartBody, Role, Timestamp};
use crate::transfer::database::{Database, Row, text};
use crate::transfer::foreign::{Foreign, Node};
use crate::transfer::take;

/// A message's row: its id, and the message that it follows.
struct Link {
    hash: String,
    parent: Option<String>,
    row: Row,
}

/// Adds the messages of a thread after the responses of the same conversation: the end of the thread is what was shown,
/// turns that end elsewhere are branches.
pub(super) fn read(database: &Database, id: &str, foreign: &mut Foreign) -> rusqlite::Result<()> {
    if !database.has(&["messages", "parts"]) {
        return Ok(());
    }
    let before = foreign.nodes.len();
    let mut seen = HashSet::new();
    for mut turn in database.all(&["turns"], "SELECT * FROM turns WHERE thread_id = ?1 ORDER BY id", id)? {
        let tip = text(&mut turn, "tip_message_hash");
        let asked = text(&mut turn, "parent_message_hash");
        let time = time(&mut turn);
        let links = chain(database, tip, &mut seen)?;
        let links = if foreign.nodes.len() == before { after_responses(database, links, foreign)? } else { links };
        // What comes after the prompt's last message is the answer.
        let is_asked = |link: &Link| asked.as_ref() == Some(&link.hash);
        let answered = links.iter().position(is_asked).map_or(0, |place| place + 1);
        let mut answer = Vec::new();
        for (place, link) in links.into_iter().enumerate() {
            push(database, link, time, foreign)?;
            if place >= answered {
                answer.push(foreign.nodes.len() - 1);
            }
        }
        of_turn(turn, &answer, foreign);
    }
    let sql = "SELECT tip_message_hash, forked_from FROM threads WHERE id = ?1";
    if let Some(mut thread) = database.all(&["threads"], sql, id)?.pop() {
        let tip = text(&mut thread, "tip_message_hash");
        for link in chain(database, tip.clone(), &mut seen)? {
            push(database, link, None, foreign)?;
        }
        foreign.shown = tip.filter(|tip| foreign.nodes.iter().any(|node| node.id == *tip));
        if let Some(json) = text(&mut thread, "forked_from").and_then(|from| take::json_of(&from)) {
            foreign.rest.push("forked_from", json);
        }
    }
    Ok(())
}

/// The messages that end with this one and were not seen yet, oldest first.
fn chain(database: &Database, tip: Option<String>, seen: &mut HashSet<String>) -> rusqlite::Result<Vec<Link>> {
    let mut links = Vec::new();
    let mut at = tip;
    while let Some(hash) = at.take_if(|hash| !seen.contains(hash)) {
        let Some(mut row) = database.all(&["messages"], "SELECT * FROM messages WHERE hash = ?1", &hash)?.pop() else {
            break;
        };
        seen.insert(hash.clone());
        let parent = text(&mut row, "parent_hash");
        at.clone_from(&parent);
        links.push(Link { hash, parent, row });
    }
    links.reverse();
    Ok(links)
}

/// The first turn after an upgrade repeats what `responses` hold already: what comes after that. If it does not repeat
/// them, all of it follows them.
fn after_responses(database: &Database, mut links: Vec<Link>, foreign: &Foreign) -> rusqlite::Result<Vec<Link>> {
    let Some(last) = foreign.nodes.last() else { return Ok(links) };
    let answers = |node: &Node| node.messages.iter().filter(|message| message.role == Role::Assistant).count();
    let count: usize = foreign.nodes.iter().map(answers).sum();
    let is_answer = |link: &&(usize, String)| link.1 == Role::Assistant.as_str();
    let roles = links.iter().map(|link| match link.row.get("role") {
        Some(rusqlite::types::Value::Text(role)) => role.clone(),
        _ => String::new(),
    });
    let roles: Vec<(usize, String)> = roles.enumerate().collect();
    let place = count.checked_sub(1).and_then(|nth| roles.iter().filter(is_answer).nth(nth)).map(|(place, _)| *place);
    if let Some(link) = place.and_then(|place| Some((place, links.get(place)?))) {
        let (place, link) = link;
        let chunks = parts(database, &link.hash)?;
        if words(&chunks) == last.messages.last().map(|message| words(&message.chunks)).unwrap_or_default() {
            links.drain(..=place);
        }
    }
    if let Some(first) = links.first_mut() {
        first.parent = Some(last.id.clone());
    }
    Ok(links)
}

fn words(chunks: &[Chunk]) -> String {
    let texts = chunks.iter().filter_map(|chunk| match &chunk.body {
        Body::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn push(database: &Database, mut link: Link, time: Option<Timestamp>, foreign: &mut Foreign) -> rusqlite::Result<()> {
    let name = text(&mut link.row, "role").unwrap_or_default();
    let role = Role::from_name(&name).unwrap_or_else(|| {
        foreign.skip("unknown_role_taken_for_user");
        Role::User
    });
    let mut messages = take::messages(role, parts(database, &link.hash)?);
    if messages.is_empty() {
        foreign.skip("empty_message");
    }
    for message in &mut messages {
        message.metadata.created_at = time;
    }
    if let Some(first) = messages.first_mut()
        && let Some(json) = link.row.remove("provider_metadata").and_then(crate::transfer::database::json)
    {
        first.metadata.extra.push("provider_metadata", json);
    }
    foreign.nodes.push(Node { id: link.hash, parent: link.parent, messages });
    Ok(())
}

/// What a turn's row states of its answer.
fn of_turn(mut turn: Row, answer: &[usize], foreign: &mut Foreign) {
    let resolved = text(&mut turn, "resolved_model");
    let model = resolved.or_else(|| text(&mut turn, "model"));
    let mut last = None;
    for place in answer {
        for (at, message) in
            foreign.nodes.get_mut(*place).into_iter().flat_map(|node| node.messages.iter_mut().enumerate())
        {
            if message.role == Role::Assistant {
                message.metadata.model.clone_from(&model);
                message.metadata.provider = provider(message);
                last = Some((*place, at));
            }
        }
    }
    let last = last.and_then(|(place, at)| foreign.nodes.get_mut(place)?.messages.get_mut(at));
    let Some(last) = last else { return };
    last.metadata.id = text(&mut turn, "id");
    last.usage = usage(&mut turn);
    turn.remove("thread_id");
    keep_rest(turn, last);
}

/// The provider whose data a message has.
fn provider(message: &Message) -> Option<String> {
    let named = |chunk: &Chunk| {
        let raw = chunk.extra.get("provider_metadata")?;
        let raw = RawValue::from_string(raw.as_str().to_owned()).ok()?;
        let mut names = Fields::of(&raw)?;
        names.take("llm");
        names.names().next().map(str::to_owned)
    };
    message.chunks.iter().find_map(named)
}

fn parts(database: &Database, hash: &str) -> rusqlite::Result<Vec<Chunk>> {
    let mut chunks = Vec::new();
    for row in database.all(&["parts"], "SELECT * FROM parts WHERE message_hash = ?1 ORDER BY position", hash)? {
        chunks.extend(part(database, row)?);
    }
    Ok(chunks)
}

/// A part: its type and its text have columns, anything else is in its payload.
fn part(database: &Database, mut row: Row) -> rusqlite::Result<Option<Chunk>> {
    let kind = text(&mut row, "type").unwrap_or_default();
    let name = text(&mut row, "tool_name");
    let payload = text(&mut row, "payload").unwrap_or_else(|| "{}".to_owned());
    let Ok(raw) = RawValue::from_string(payload) else {
        return Ok(Some(Chunk::text(text(&mut row, "text").unwrap_or_default())));
    };
    let mut fields = Fields::of(&raw).unwrap_or_default();
    let said = match (text(&mut row, "text"), fields.array("text_ref")) {
        (Some(text), _) => text,
        (None, Some(pieces)) => referred(database, &pieces)?,
        (None, None) => String::new(),
    };
    let body = match kind.as_str() {
        "text" if said.is_empty() => return Ok(None),
        "text" => Body::Text { text: said, annotations: None },
        "reasoning" => {
            let (id, signature) = signed(&fields);
            let body = Body::Thinking { text: said, signature, redacted: None };
            return Ok(Some(Chunk { id, ..take::with_rest(fields, body) }));
        }
        "tool_call" => {
            let id = fields.string("tool_call_id").unwrap_or_default();
            let name = fields.string("name").or(name).unwrap_or_default();
            let server = fields.take("server_executed").is_some_and(|raw| raw.get() == "true");
            let (_, signature) = signed(&fields);
            Body::ToolCall { id, name, arguments: take::arguments(fields.take("arguments")), signature, server }
        }
        "tool_result" => {
            let id = fields.string("tool_call_id").unwrap_or_default();
            let name = fields.string("name").or(name);
            let is_error = fields.peek("exception").filter(|raw| raw.get() != "null").map(|_| true);
            let text = fields.text("output").unwrap_or_default();
            let mut files = Vec::new();
            for file in fields.array("attachments").unwrap_or_default() {
                files.extend(attachment(database, file)?);
            }
            let output = if files.is_empty() { Output::Text(text) } else { with_files(text, files) };
            take::result(&id, name, output, is_error)
        }
        "attachment" => {
            let Some(mut chunk) = fields.take("attachment").map(|raw| attachment(database, raw)).transpose()?.flatten()
            else {
                return Ok(take::opaque(&raw, kind, NAME));
            };
            fields.extend(Owner::Chunk, &mut chunk.extra);
            return Ok(Some(chunk));
        }
        _ if said.is_empty() => return Ok(take::opaque(&raw, kind, NAME)),
        _ => Body::Text { text: said, annotations: None },
    };
    Ok(Some(take::with_rest(fields, body)))
}

/// Text of literal pieces, and of fragments that are stored once.
fn referred(database: &Database, pieces: &[&RawValue]) -> rusqlite::Result<String> {
    let mut said = String::new();
    for mut piece in pieces.iter().copied().filter_map(Fields::of) {
        if let Some(literal) = piece.string("literal") {
            said.push_str(&literal);
        } else if let Some(id) = piece.integer("fragment") {
            let sql = "SELECT content FROM fragments WHERE id = ?1";
            let rows = database.all(&["fragments"], sql, &id.to_string())?;
            said.extend(rows.into_iter().filter_map(|mut row| text(&mut row, "content")));
        }
    }
    Ok(said)
}

/// The item's id and the opaque proof among a part's data of its provider.
fn signed(fields: &Fields<'_>) -> (Option<String>, Option<String>) {
    const NAMES: &[&str] = &["signature", "encrypted_content", "thoughtSignature", "thought_signature"];
    let providers = fields.peek("provider_metadata").and_then(Fields::of).unwrap_or_default();
    let mut data = providers.rest().filter_map(|(_, raw)| Fields::of(raw));
    let signed = data.find(|data| NAMES.iter().any(|name| data.peek(name).is_some()));
    let mut signed = signed.unwrap_or_default();
    let signature = NAMES.iter().find_map(|name| signed.string(name)).filter(|text| !text.is_empty());
    (signed.string("id"), signature)
}

fn attachment(database: &Database, raw: &RawValue) -> rusqlite::Result<Option<Chunk>> {
    let Some(id) = Fields::of(raw).and_then(|mut fields| fields.string("id")) else { return Ok(None) };
    let mut rows = database.all(&["attachments"], "SELECT * FROM attachments WHERE id = ?1", &id)?;
    Ok(rows.pop().map(attached))
}

/// A tool's result that has files.
fn with_files(text: String, files: Vec<Chunk>) -> Output {
    let part = |chunk: Chunk| match chunk.body {
        Body::Image(image) => Some(Part::from(PartBody::Image(image))),
        Body::File(file) => Some(Part::from(PartBody::File(file))),
        _ => None,
    };
    let said = Some(text).filter(|text| !text.is_empty()).map(|text| Part::from(PartBody::Text { text }));
    Output::Parts(said.into_iter().chain(files.into_iter().filter_map(part)).collect())
}
