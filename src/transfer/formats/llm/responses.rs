//! What versions up to 0.31 wrote: a row of `responses` for each answer, with its prompt.

use super::row::{attached, keep_rest, time, usage};
use crate::model::{Chunk, Message, Output, Role};
use crate::transfer::database::{Database, Row, text};
use crate::transfer::foreign::{Foreign, Node};
use crate::transfer::take;

/// Adds the responses of a conversation. One that is a turn too is left to its thread, which has more of it.
pub(super) fn read(database: &Database, id: &str, foreign: &mut Foreign) -> rusqlite::Result<()> {
    let is_turn = if database.has(&["turns"]) { " AND id NOT IN (SELECT id FROM turns)" } else { "" };
    let sql =
        format!("SELECT * FROM responses WHERE coalesce(conversation_id, '') = ?1{is_turn} ORDER BY datetime_utc, id");
    let mut system = String::new();
    for row in database.all(&["responses"], &sql, id)? {
        response(database, row, &mut system, foreign)?;
    }
    Ok(())
}

fn response(database: &Database, mut row: Row, system: &mut String, foreign: &mut Foreign) -> rusqlite::Result<()> {
    let id = text(&mut row, "id").unwrap_or_else(|| foreign.nodes.len().to_string());
    let time = time(&mut row);
    let mut messages = Vec::new();
    let fragments = |table: &str| {
        let sql = format!(
            "SELECT f.content AS content FROM {table} p JOIN fragments f ON f.id = p.fragment_id \
             WHERE p.response_id = ?1 ORDER BY p.\"order\""
        );
        let rows = database.all(&[table, "fragments"], &sql, &id)?;
        Ok::<_, rusqlite::Error>(rows.into_iter().filter_map(|mut row| text(&mut row, "content")).collect::<Vec<_>>())
    };
    let mut instructions = fragments("system_fragments")?;
    instructions.extend(text(&mut row, "system"));
    let instructions = instructions.join("\n\n");
    // Each response repeats the instructions; they are written when they change.
    if !instructions.is_empty() && instructions != *system {
        messages.push(Message::system(instructions.clone()));
        *system = instructions;
    }
    let sql = "SELECT * FROM tool_results WHERE response_id = ?1 ORDER BY id";
    for mut result in database.all(&["tool_results"], sql, &id)? {
        let (call, name) = (text(&mut result, "tool_call_id").unwrap_or_default(), text(&mut result, "name"));
        let failed = text(&mut result, "exception").map(|_| true);
        let output = Output::Text(text(&mut result, "output").unwrap_or_default());
        messages.push(Message::new(Role::Tool, [take::result(&call, name, output, failed).into()]));
    }
    let mut asked: Vec<Chunk> = fragments("prompt_fragments")?.into_iter().map(Chunk::text).collect();
    asked.extend(text(&mut row, "prompt").map(Chunk::text));
    let sql = "SELECT a.* FROM prompt_attachments p JOIN attachments a ON a.id = p.attachment_id \
               WHERE p.response_id = ?1 ORDER BY p.\"order\"";
    asked.extend(database.all(&["prompt_attachments", "attachments"], sql, &id)?.into_iter().map(attached));
    let sql = "SELECT a.* FROM tool_results t JOIN tool_results_attachments p ON p.tool_result_id = t.id \
               JOIN attachments a ON a.id = p.attachment_id WHERE t.response_id = ?1 ORDER BY t.id, p.\"order\"";
    let of_results = ["tool_results", "tool_results_attachments", "attachments"];
    asked.extend(database.all(&of_results, sql, &id)?.into_iter().map(attached));
    if !asked.is_empty() {
        messages.push(Message::new(Role::User, asked));
    }
    let mut said: Vec<Chunk> = text(&mut row, "reasoning").map(Chunk::thinking).into_iter().collect();
    said.extend(text(&mut row, "response").map(Chunk::text));
    let sql = "SELECT * FROM tool_calls WHERE response_id = ?1 ORDER BY id";
    for mut call in database.all(&["tool_calls"], sql, &id)? {
        let mut next = |name: &str| text(&mut call, name).unwrap_or_default();
        said.push(Chunk::tool_call(next("tool_call_id"), next("name"), next("arguments")));
    }
    if said.is_empty() {
        foreign.skip("empty_message");
    } else {
        let mut answer = Message::new(Role::Assistant, said);
        answer.metadata.id = Some(id.clone());
        let resolved = text(&mut row, "resolved_model");
        answer.metadata.model = resolved.or_else(|| text(&mut row, "model"));
        answer.usage = usage(&mut row);
        row.remove("conversation_id");
        keep_rest(row, &mut answer);
        messages.push(answer);
    }
    for message in &mut messages {
        message.metadata.created_at = time;
    }
    let parent = foreign.nodes.last().map(|node| node.id.clone());
    foreign.nodes.push(Node { id, parent, messages });
    Ok(())
}
