//! `convo migrate`: one role makes the tables, another one uses them.

use std::process::Command;

use conversation_store::model::{Message, Metadata, Role};
use conversation_store::{Error, Store, StoreOptions};

use crate::common::postgres::{Server, schema};

const DOCUMENTED: &str = include_str!("../../src/docs/postgres.md");

/// The statements of the documentation, as `psql` runs them, for each database.
fn statements() -> Vec<(String, String)> {
    let (_, sql) = DOCUMENTED.split_once("```sql\n").unwrap();
    let (sql, _) = sql.split_once("```").unwrap();
    let (mut database, mut found) = ("postgres".to_owned(), Vec::new());
    let lines: Vec<&str> = sql.lines().filter(|line| !line.starts_with("--")).collect();
    for statement in lines.join("\n").split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        let statement = match statement.strip_prefix("\\c ") {
            Some(rest) => {
                let (name, rest) = rest.split_once('\n').unwrap();
                name.clone_into(&mut database);
                rest
            }
            None => statement,
        };
        found.push((database.clone(), statement.to_owned()));
    }
    found
}

/// Runs `convo`: its exit code, what it prints, and what it reports.
fn convo(url: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("convo"));
    let output = command.args(arguments).env("CONVO_STORE", url).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A server with the roles of the documentation, and the URLs of both.
fn with_roles() -> (Server, String, String) {
    let server = Server::start(&[]).unwrap();
    for (database, statement) in statements() {
        server.run_in(&database, &statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    let url = |role: &str| format!("postgres://{role}@127.0.0.1:{}/chats", server.port);
    let urls = (url("convo_owner"), url("convo"));
    (server, urls.0, urls.1)
}

#[test]
fn the_documented_roles_make_and_use_a_store() {
    if crate::running().is_none() {
        return;
    }
    let (server, owner, user) = with_roles();
    // The role that uses the store may not make it.
    let refused = Store::open(&user).unwrap_err();
    assert!(matches!(&refused, Error::InvalidInput(said) if said.contains("convo migrate")), "{refused}");
    let (exit, _, reported) = convo(&user, &["migrate"]);
    assert!(exit == Some(2) && reported.contains("permission denied"), "{reported}");
    assert_eq!(convo(&owner, &["migrate"]), (Some(0), "{\"from\":0,\"to\":1}\n".to_owned(), String::new()));
    assert_eq!(convo(&owner, &["migrate"]).1, "{\"from\":1,\"to\":1}\n");

    // All that a store does, it may.
    let store = StoreOptions::new().with_create(false).open(&user).unwrap();
    store.append("chat", &[Message::user("a"), Message::user("b")]).unwrap();
    let writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.finish(None, None).unwrap();
    store.fork_to("chat", None, "fork").unwrap();
    store.redact("chat", 0, None).unwrap();
    store.rewind("chat", 1).unwrap();
    store.delete("chat").unwrap();
    store.set_title("fork", Some("a title")).unwrap();
    assert_eq!(store.describe("fork").unwrap().messages, 3);
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    drop(store);
    let dir = crate::common::tempdir().unwrap();
    let file = dir.path().join("backup");
    Store::open(&user).unwrap().backup(&file, |_, _| ()).unwrap();
    Store::open(&user).unwrap().delete("fork").unwrap();
    assert_eq!(Store::restore(&file, &user, |_, _| ()).unwrap().conversations, 1);

    // And nothing of what makes it.
    for change in [
        "DROP TABLE cs_key",
        "ALTER TABLE cs_key ADD COLUMN more integer",
        "CREATE TABLE more ()",
        "TRUNCATE cs_record",
        "CREATE OR REPLACE FUNCTION cs_minute_v1(p_micros bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 0'",
    ] {
        let refused =
            server.run_in("chats", &format!("SET ROLE convo; SET search_path TO chats; {change}")).unwrap_err();
        let code = refused.code().map(tokio_postgres::error::SqlState::code);
        assert_eq!(code, Some("42501"), "{change}: {refused}");
    }
}

/// A schema says which programs it is for: those of a later version, of this one, and of the one before it.
#[test]
fn programs_of_two_versions_use_one_schema() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let schema = schema(&url);
    Store::open(&url).unwrap().append("chat", &[Message::user("a")]).unwrap();
    let set = |version: i32, oldest: i32| {
        server.run(&format!("UPDATE {schema}.cs_schema SET version = {version}, oldest = {oldest}")).unwrap();
    };
    // A later program has updated it, and lets this one go on. This one does not undo it.
    set(2, 1);
    assert_eq!(Store::open(&url).unwrap().load("chat").unwrap().messages().len(), 1);
    let migration = Store::migrate(&url).unwrap();
    assert_eq!((migration.from, migration.to), (2, 2));
    // A still later one does not.
    set(3, 2);
    for refused in [Store::open(&url).map(|_| ()), Store::migrate(&url).map(|_| ())] {
        assert!(matches!(refused, Err(Error::UnsupportedVersion { found: 3, supported: 1, .. })), "{refused:?}");
    }
    set(1, 1);
    assert_eq!(Store::open(&url).unwrap().load("chat").unwrap().messages().len(), 1);
    let other = Store::migrate("sled:nowhere").unwrap_err();
    assert!(matches!(&other, Error::InvalidInput(_)), "{other}");
}

#[test]
fn health_has_the_rows_and_sizes_of_the_tables() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let store = Store::open(&url).unwrap();
    for number in 0..7 {
        let said = vec![Message::user("a"); 2];
        store.append(format!("chat {number}"), &said).unwrap();
        store.append(format!("chat {number}"), &said).unwrap();
    }
    server.run("ANALYZE").unwrap();
    let size = store.size().unwrap();
    let rows = |name: &str| size.tables.iter().find(|table| table.name == name).unwrap().rows;
    assert_eq!((size.conversations, rows("cs_conversation"), rows("cs_record"), rows("cs_key")), (7, 7, 14, 0));
    assert!(size.tables.iter().all(|table| table.name.starts_with("cs_") && table.bytes > 0), "{size:?}");
    assert_eq!(size.bytes, Some(size.tables.iter().map(|table| table.bytes).sum()));
    // The tests' server does not sync: that is a finding.
    let (exit, printed, _) = convo(&url, &["health", "--json"]);
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((exit, &printed["size"]["conversations"]), (Some(1), &serde_json::json!(7)));
    assert!(printed["warnings"][0].as_str().unwrap().starts_with("fsync is off"), "{printed}");
}
