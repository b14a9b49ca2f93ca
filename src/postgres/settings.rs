//! What of the server's settings does not go with the promise that nothing acknowledged is lost. They may change at any time, and
//! a standby that takes over may have others, so they are read again and again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;
use tokio_postgres::Row;

use super::database::Database;
use super::gate::Gate;
use super::rows::get;
use super::schema;
use super::statement::Statement;
use crate::error::Result;
use crate::log::locked;

/// The settings, as they were when they were read last.
pub(super) struct Settings {
    database: Arc<Database>,
    warnings: Mutex<Vec<String>>,
}

impl Settings {
    pub(super) fn read(database: Arc<Database>) -> Result<Self> {
        let row = database.row(Statement::repeatable(READ))?;
        let settings = Self { database, warnings: Mutex::default() };
        settings.note(warnings(&row)?);
        Ok(settings)
    }

    /// What does not go with the promise.
    pub(super) fn warnings(&self) -> Vec<String> {
        locked(&self.warnings).clone()
    }

    /// Reads them again, until the log is closed.
    pub(super) async fn watch(settings: Arc<Self>, gate: Arc<Gate>, pause: Duration) {
        while !gate.is_closed() {
            sleep(pause).await;
            let read = settings.database.calls().row(&Statement::repeatable(READ)).await;
            match read.and_then(|row| warnings(&row)) {
                Ok(warnings) => settings.note(warnings),
                Err(error) => tracing::debug!("the settings of PostgreSQL could not be read: {error}"),
            }
        }
    }

    fn note(&self, warnings: Vec<String>) {
        let known = std::mem::replace(&mut *locked(&self.warnings), warnings.clone());
        for warning in warnings.iter().filter(|warning| !known.contains(warning)) {
            tracing::warn!("PostgreSQL at {}: {warning}", self.database.calls().shown);
        }
    }
}

const READ: &str = "SELECT current_setting('synchronous_commit') AS synchronous_commit, current_setting('fsync') AS fsync, \
                    current_setting('full_page_writes') AS full_page_writes, \
                    current_setting('synchronous_standby_names') AS standbys, \
                    current_setting('client_min_messages') AS messages, \
                    coalesce(obj_description(to_regclass('cs_schema'), 'pg_class'), '') AS functions";

fn warnings(row: &Row) -> Result<Vec<String>> {
    let setting = |name: &str| get::<String>(row, name);
    let mut warnings = Vec::new();
    match setting("synchronous_commit")?.as_str() {
        "off" => warnings.push(
            "synchronous_commit is off: a crash of the server takes what was acknowledged in its last moments"
                .to_owned(),
        ),
        "local" if !setting("standbys")?.is_empty() => warnings.push(
            "synchronous_commit is local: the loss of the primary takes what was acknowledged and not replicated yet"
                .to_owned(),
        ),
        _ => {}
    }
    if setting("messages")? == "error" && !setting("standbys")?.is_empty() {
        warnings.push(
            "client_min_messages is error: the server does not say so where somebody cancels a commit's wait for the standbys, \
             and it is taken for replicated"
                .to_owned(),
        );
    }
    for (name, said) in [
        ("fsync", "fsync is off: a power cut takes what was acknowledged, or the whole database"),
        ("full_page_writes", "full_page_writes is off: a power cut may damage the database"),
    ] {
        if setting(name)? == "off" {
            warnings.push(said.to_owned());
        }
    }
    if setting("functions")? != format!("functions {}", schema::functions()) {
        warnings.push(
            "the functions in the database are those of another build of this version: `convo migrate` replaces them"
                .to_owned(),
        );
    }
    Ok(warnings)
}
