//! The conversations of a database of either generation.

use std::collections::BTreeMap;

use super::{responses, threads};
use crate::transfer::database::{Database, text};
use crate::transfer::foreign::{Foreign, Taken};
use crate::transfer::format::Context;

pub(super) fn read(database: &Database, _: &Context<'_>, take: &mut dyn FnMut(Taken) -> bool) -> rusqlite::Result<()> {
    for (id, name) in conversations(database)? {
        database.next_conversation();
        let mut foreign = Foreign::new(if id.is_empty() { "without-a-conversation".to_owned() } else { id.clone() });
        foreign.title = name;
        responses::read(database, &id, &mut foreign)?;
        threads::read(database, &id, &mut foreign)?;
        if !take(database.whole(foreign)) {
            break;
        }
    }
    Ok(())
}

/// The ids and names of all conversations, in the order of their ids, which is that of time.
fn conversations(database: &Database) -> rusqlite::Result<BTreeMap<String, Option<String>>> {
    const SOURCES: &[(&str, &str)] = &[
        (
            "responses",
            "SELECT DISTINCT r.conversation_id AS id, c.name AS name FROM responses r \
             LEFT JOIN conversations c ON c.id = r.conversation_id",
        ),
        ("turns", "SELECT DISTINCT thread_id AS id FROM turns"),
        ("threads", "SELECT id, name FROM threads"),
    ];
    let mut found = BTreeMap::new();
    for (table, sql) in SOURCES {
        for mut row in database.all(&[table], sql, "")? {
            let (id, name) = (text(&mut row, "id").unwrap_or_default(), text(&mut row, "name"));
            let known: &mut Option<String> = found.entry(id).or_default();
            *known = name.or(known.take());
        }
    }
    Ok(found)
}
