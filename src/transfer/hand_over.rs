//! A conversation, handed over to a program that goes on with it: as a session in the program's own folder.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

use super::export::{ExportSummary, one, writer};
use super::format::Outgoing;
use crate::error::{Error, Result};
use crate::model::{ConversationId, Name, Timestamp};
use crate::store::Store;

/// A program that goes on with sessions that it finds in its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Agent {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
}

/// A session that a program can go on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HandedOver {
    /// The session's id.
    pub session: ConversationId,
    /// Its file.
    pub file: PathBuf,
    /// The command that goes on with it, in the folder that it was made for.
    pub command: String,
    /// What was written, and what was left out or altered.
    #[serde(flatten)]
    pub summary: ExportSummary,
}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::ClaudeCode, Self::Codex];

    /// Its name, which is that of its format: `claude-code`, `codex`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }

    /// The variable that names its folder, and the folder's name in the user's own if there is none.
    #[must_use]
    pub const fn folder(self) -> (&'static str, &'static str) {
        match self {
            Self::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude"),
            Self::Codex => ("CODEX_HOME", ".codex"),
        }
    }

    /// The command that goes on with a session.
    fn command(self, session: ConversationId) -> String {
        match self {
            Self::ClaudeCode => format!("claude -r {session}"),
            Self::Codex => format!("codex resume {session}"),
        }
    }

    /// Where its sessions of a folder are, and how their files are named.
    fn file(self, home: &Path, work: &str, session: ConversationId, now: Timestamp) -> PathBuf {
        match self {
            Self::ClaudeCode => {
                // As JavaScript counts characters.
                let units = work.encode_utf16().map(|unit| u8::try_from(unit).map_or('-', char::from));
                let folder: String = units.map(|unit| if unit.is_ascii_alphanumeric() { unit } else { '-' }).collect();
                home.join("projects").join(folder).join(format!("{session}.jsonl"))
            }
            Self::Codex => {
                let (day, time) = (now.day(), now.to_string());
                let time: String =
                    time.chars().take("2026-11-25T10:00:00".len()).map(|it| if it == ':' { '-' } else { it }).collect();
                let folder = day.split('-').fold(home.join("sessions"), |folder, part| folder.join(part));
                folder.join(format!("rollout-{time}-{session}.jsonl"))
            }
        }
    }
}

impl FromStr for Agent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|agent| agent.as_str() == text);
        known.ok_or_else(|| Error::InvalidInput(format!("{text:?}: expected claude-code or codex")))
    }
}

/// Writes a conversation of any source as a new session of a program: `home` is the program's folder, and `work` the one in
/// which the session goes on. The session has what was said, with calls and results; it has thinking only where the program's own
/// vendor signed it; it has no instructions, because the program has its own.
///
/// ```
/// use conversation_store::Store;
/// use conversation_store::model::Message;
/// use conversation_store::transfer::{Agent, hand_over};
/// # let home = tempfile::tempdir()?;
/// # let home = home.path();
///
/// let store = Store::open("memory:")?;
/// store.append("plans", &[Message::user("hello")])?;
/// let session = hand_over(&store, "plans", Agent::ClaudeCode, home, "/home/ada/app".as_ref())?;
/// assert_eq!(session.command, format!("claude -r {}", session.session));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `NotFound`; `NothingToSend` if nothing of it can be said to the program's model; `Corrupt`; `Io`.
pub fn hand_over(store: &Store, name: impl Into<Name>, agent: Agent, home: &Path, work: &Path) -> Result<HandedOver> {
    let name = name.into();
    let (session, folder) = (ConversationId::new(), work.display().to_string());
    let (item, messages) = (store.describe(&name)?, store.load_raw(&name)?);
    let outgoing = Outgoing { item, messages, session, folder };
    let mut summary = ExportSummary::default();
    let mut written = Vec::new();
    let cannot = || Error::io("cannot write the session");
    one(writer(agent.as_str())?, &outgoing, &mut written, &mut summary).map_err(cannot())?;
    let lines = written.iter().filter(|byte| **byte == b'\n').count();
    // A session of Codex has a line of its own.
    if lines <= usize::from(agent == Agent::Codex) {
        return Err(Error::NothingToSend(agent.as_str().to_owned()));
    }
    let file = agent.file(home, &outgoing.folder, session, Timestamp::now());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(cannot())?;
    }
    let mut out = BufWriter::new(create_private(&file).map_err(cannot())?);
    out.write_all(&written).and_then(|()| out.flush()).map_err(cannot())?;
    Ok(HandedOver { session, file, command: agent.command(session), summary })
}

/// A new file that only its user can read.
fn create_private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
