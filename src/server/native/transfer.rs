//! Import and export: files of other programs, in and out.

use std::io::Write as _;

use axum::http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;

use super::parameters;
use crate::error::Error;
use crate::server::app::{Call, Outcome, ok, reply};
use crate::server::refusal::Refusal;
use crate::transfer::{self, Branches, FORMATS, ImportOptions, ImportSummary, Imported, Input, Progress};

/// Conversations of one answer: the sum counts all.
const LISTED: usize = 1_000;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Import")]
pub(super) struct Import {
    /// The first 1,000 of the conversations.
    conversations: Vec<Imported>,
    sum: ImportSummary,
    /// What somebody should know.
    notes: Vec<String>,
}

pub(super) fn import(call: &Call, body: &[u8]) -> Outcome {
    call.query.check(&["format", "branches", "limit"])?;
    let branches = match call.query.get("branches") {
        None | Some("all") => Branches::All,
        Some("current") => Branches::Current,
        Some(_) => return Err(Refusal::value("branches", "expected all or current")),
    };
    let options = ImportOptions {
        format: call.query.get("format").map(str::to_owned),
        owner: Some(call.caller.owner.clone()),
        limit: call.query.number("limit", 1, u64::MAX)?,
        branches,
    };
    // An archive, and a format whose conversations are in several lines, is read more than once.
    let cannot = || Error::io("keep the import in a temporary file");
    let mut file = tempfile::NamedTempFile::new().map_err(cannot())?;
    file.write_all(body).and_then(|()| file.flush()).map_err(cannot())?;
    let (mut conversations, mut notes) = (Vec::new(), Vec::new());
    let sum =
        transfer::import(Some(call.store()), Input::Path(file.path()), &options, &mut |progress| match progress {
            Progress::Conversation(imported) if conversations.len() < LISTED => conversations.push(imported.clone()),
            Progress::Note(note) if notes.len() < LISTED => notes.push(note.to_owned()),
            _ => {}
        })?;
    ok(&Import { conversations, sum, notes })
}

/// The names of the formats that can be written.
pub(super) fn written() -> Vec<&'static str> {
    FORMATS.iter().filter(|format| format.is_written()).map(|format| format.name).collect()
}

pub(super) fn export(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["format"])?;
    let format = call.query.get("format").unwrap_or("transcript");
    let Some(known) = FORMATS.iter().find(|known| known.name == format && known.is_written()) else {
        return Err(Refusal::value("format", &format!("expected one of {}", written().join(", "))));
    };
    let mut file = Vec::new();
    let summary = transfer::export(call.store(), [parameters::name(call)], format, &mut file, &mut |_| ())?;
    let extension = known.extension().unwrap_or("txt");
    let mut answer = reply(200, "application/octet-stream", file);
    let headers = answer.headers_mut();
    // A browser keeps it, and shows nothing of it here.
    let name = HeaderValue::try_from(format!("attachment; filename=\"conversation.{extension}\""));
    if let Ok(name) = name {
        headers.insert(HeaderName::from_static("content-disposition"), name);
    }
    headers
        .insert(HeaderName::from_static("x-convo-left-out"), HeaderValue::from(summary.left_out.values().sum::<u64>()));
    Ok(answer)
}
