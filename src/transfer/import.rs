//! An export, of any format, into a store.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use serde::Serialize;

use super::FORMATS;
#[cfg(feature = "archives")]
use super::database::Database;
use super::foreign::{Broken, Foreign, Skipped, Taken};
#[cfg(feature = "archives")]
use super::format::Tables;
use super::format::{Context, Format, Reader};
use super::groups::{Groups, last_values};
use super::keep::{self, Branches, Kept};
use super::recognise::{Known, recognise};
use super::source::{Document, Source};
use super::values::{LIMIT, Value, Values};
use crate::error::{Error, Result};
use crate::json;
use crate::model::{ConversationId, Name};
use crate::store::Store;

/// The first bytes of a SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// The location of an export.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// A file, a folder of files, or a zip archive.
    Path(&'a Path),
    /// The process's stdin: a file or an archive.
    Stdin,
}

/// Options of an import. By default the format is recognised, and everything is imported, without an owner.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The format's name; absent: it is recognised from the file.
    pub format: Option<String>,
    /// The owner of the imported conversations.
    pub owner: Option<String>,
    /// Which branches to import.
    pub branches: Branches,
    /// The most conversations to import.
    pub limit: Option<u64>,
}

impl ImportOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the format, by its name in [`FORMATS`](super::FORMATS).
    #[must_use]
    pub fn with_format(mut self, format: impl Into<String>) -> Self {
        self.format = Some(format.into());
        self
    }

    /// Sets the owner of the imported conversations.
    #[must_use]
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets which branches are imported.
    #[must_use]
    pub const fn with_branches(mut self, branches: Branches) -> Self {
        self.branches = branches;
        self
    }

    /// Sets the most conversations to import.
    #[must_use]
    pub const fn with_limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }
}

/// A conversation that was imported, or failed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Imported {
    /// Its id in the export, if it has one.
    pub source_id: Option<String>,
    /// Its id in the store.
    pub conversation: Option<ConversationId>,
    /// Its key in the store.
    pub key: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Messages of the shown branch.
    pub messages: u64,
    /// Forks for the other branches.
    pub branches: u64,
    /// What was not imported unchanged: the count of each kind.
    pub skipped: Skipped,
    /// Why it was not imported, or not completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Messages that were not stored before.
    #[serde(skip)]
    pub added: u64,
}

/// What happens while an export is read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// A conversation was imported, or failed.
    Conversation(&'a Imported),
    /// Something that the user should know.
    Note(&'a str),
    /// This many bytes of that many were read.
    Bytes(u64, u64),
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ImportSummary {
    /// Conversations that were imported.
    pub conversations: u64,
    /// Conversations that failed.
    pub failed: u64,
    /// Messages of their shown branches.
    pub messages: u64,
    /// Messages that were not stored before, those of forks included.
    pub added: u64,
    /// Forks.
    pub branches: u64,
    /// What was not imported unchanged: the count of each kind.
    pub skipped: Skipped,
}

/// Imports all conversations of an export. Without a store, only counts them.
///
/// Each conversation is named `FORMAT:ID`, with the format's name and the ID of the export. A repeated import adds what
/// is new; if a conversation changed in its middle, a fork continues from there, and a note reports it. A conversation
/// that cannot be imported does not stop the others.
///
/// Cost: reading the export once or twice, with one conversation in memory at a time. Messages are durable when the
/// call returns.
///
/// ```
/// use conversation_store::Store;
/// use conversation_store::transfer::{ImportOptions, Input, import};
///
/// let file = std::env::temp_dir().join(format!("import-example-{}.json", std::process::id()));
/// # let text =
/// r#"[{"id": "7", "conversations": [{"from": "human", "value": "hello"}]}]"#;
/// # std::fs::write(&file, text).unwrap();
/// let store = Store::open("memory:")?;
/// let summary = import(Some(&store), Input::Path(&file), &ImportOptions::default(), &mut |_| ())?;
/// # std::fs::remove_file(&file).unwrap();
/// assert_eq!((summary.conversations, summary.added), (1, 1));
/// assert_eq!(store.load("sharegpt:7")?.messages().len(), 1);
/// # Ok::<(), conversation_store::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` if nothing is recognised, or the file cannot be read; any error that prevents writing to the store.
pub fn import(
    store: Option<&Store>,
    input: Input<'_>,
    options: &ImportOptions,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<ImportSummary> {
    let source = match input {
        Input::Path(path) => Source::open(path)?,
        Input::Stdin => Source::spool(std::io::stdin().lock())?,
    };
    let wanted = options.format.as_deref().map(|name| {
        let known = FORMATS.iter().find(|format| format.name == name && format.is_read());
        known.ok_or_else(|| Error::InvalidInput(format!("there is no import format {name}; {}", names())))
    });
    let wanted = wanted.transpose()?;
    let mut import =
        Import { store, options, progress, summary: ImportSummary::default(), stop: None, read: 0, all: source.bytes };
    for (name, why) in &source.passed_over {
        import.note(&format!("{name}: skipped: {why}"));
        *import.summary.skipped.entry((*why).to_owned()).or_default() += 1;
    }
    let mut recognised = 0;
    let mut looked_like = Vec::new();
    for document in &source.documents {
        if import.is_done() {
            break;
        }
        match import.document(&source, document, wanted) {
            Ok(None) => recognised += 1,
            Ok(Some(what)) => looked_like.push(format!("{}: {what}", document.name)),
            Err(error) if stops(&error) || source.documents.len() == 1 => return Err(error),
            Err(error) => {
                recognised += 1;
                import.failed(None, Broken::new(error.to_string()));
            }
        }
        import.read += document.bytes;
    }
    if let Some(error) = import.stop.take() {
        return Err(error);
    }
    if recognised == 0 && !import.is_done() {
        let what = match looked_like.as_slice() {
            [] => "no file in it may hold conversations".to_owned(),
            some => some.iter().take(5).cloned().collect::<Vec<_>>().join("; "),
        };
        return Err(Error::InvalidInput(format!("nothing was recognised: {what}; {}", names())));
    }
    for what in looked_like {
        import.note(&format!("{what}; skipped"));
        *import.summary.skipped.entry("file_not_recognised".to_owned()).or_default() += 1;
    }
    if let Some(store) = store {
        store.sync()?;
    }
    Ok(import.summary)
}

fn names() -> String {
    let names = FORMATS.iter().filter(|format| format.is_read()).map(|format| format.name);
    format!("the formats are {}", names.collect::<Vec<_>>().join(", "))
}

/// Whether nothing more can be stored.
fn stops(error: &Error) -> bool {
    matches!(
        error,
        Error::Poisoned { .. }
            | Error::OutcomeUnknown { .. }
            | Error::WentBack { .. }
            | Error::ReadOnly
            | Error::Closed
            | Error::Busy(_)
            | Error::Io { .. }
    )
}

struct Import<'a, 'p> {
    store: Option<&'a Store>,
    options: &'a ImportOptions,
    progress: &'p mut dyn FnMut(Progress<'_>),
    summary: ImportSummary,
    /// The error that ended the import.
    stop: Option<Error>,
    /// Bytes of the documents before this one, and of all documents.
    read: u64,
    all: u64,
}

impl Import<'_, '_> {
    fn note(&mut self, note: &str) {
        (self.progress)(Progress::Note(note));
    }

    fn is_done(&self) -> bool {
        let taken = self.summary.conversations + self.summary.failed;
        self.stop.is_some() || self.options.limit.is_some_and(|limit| taken >= limit)
    }

    /// Imports a document. If it is not recognised, returns what it looks like.
    fn document(
        &mut self,
        source: &Source,
        document: &Document,
        wanted: Option<&'static Format>,
    ) -> Result<Option<String>> {
        let file = source.id_of(document);
        let magic = source.read(document, |input| {
            let mut magic = [0; SQLITE.len()];
            input.read_exact(&mut magic).is_ok() && magic == SQLITE
        })?;
        if magic {
            #[cfg(feature = "archives")]
            return self.database(source, document, wanted);
            #[cfg(not(feature = "archives"))]
            return Err(Error::InvalidInput(format!(
                "{}: a SQLite database; {}",
                document.name,
                super::values::WITHOUT_ARCHIVES
            )));
        }
        let found = source.read(document, |input| recognise(input, wanted.filter(|_| source.documents.len() == 1)))?;
        let known = match found.map_err(Error::io(format!("cannot read {}", document.name)))? {
            Ok(known) => known,
            Err(what) => return Ok(Some(what)),
        };
        if wanted.is_some_and(|wanted| wanted.name != known.format.name) {
            return Ok(Some(format!("it is of the format {}", known.format.name)));
        }
        let last = match &known.format.read {
            Some(Reader::Parts { group, .. }) => source.read(document, |input| last_values(input, *group))?,
            _ => Ok(HashMap::new()),
        };
        let last = last.map_err(Error::io(format!("cannot read {}", document.name)))?;
        let context = Context { file: &file, number: 0, only: known.only, assets: source };
        source
            .read(document, |input| self.values(input, &known, context, &last))?
            .map_err(Error::io(format!("cannot read {}", document.name)))?;
        Ok(None)
    }

    #[cfg(feature = "archives")]
    fn database(
        &mut self,
        source: &Source,
        document: &Document,
        wanted: Option<&'static Format>,
    ) -> Result<Option<String>> {
        let on_disk = source.on_disk(document)?;
        let cannot = |error: rusqlite::Error| Error::InvalidInput(format!("cannot read {}: {error}", document.name));
        let database = Database::open(&on_disk.path).map_err(cannot)?;
        let file = source.id_of(document);
        let context = Context { file: &file, number: 0, only: false, assets: source };
        for format in FORMATS.iter().filter(|format| wanted.is_none_or(|wanted| wanted.name == format.name)) {
            let Some(Tables { recognise, read }) = &format.tables else { continue };
            if recognise(&database).map_err(cannot)? {
                let mut take = |taken: Taken| {
                    self.take(format.name, taken);
                    !self.is_done()
                };
                read(&database, &context, &mut take).map_err(cannot)?;
                return Ok(None);
            }
        }
        Ok(Some(format!("a database with the tables {}", database.tables().join(", "))))
    }

    fn values(
        &mut self,
        input: &mut dyn BufRead,
        known: &Known,
        mut context: Context<'_>,
        last: &HashMap<String, usize>,
    ) -> std::io::Result<()> {
        let mut values = Values::new(input);
        let mut groups = Groups::default();
        let mut number = 0;
        while let Some(value) = values.next()? {
            context.number = number;
            let place = number + 1;
            let text = match value {
                Value::Whole(bytes) => self.readable(bytes, known.format.name == keep::TRANSCRIPT),
                Value::Cut(bytes) if matches!(known.format.read, Some(Reader::Parts { .. })) => {
                    let _ = bytes;
                    groups.cut += 1;
                    number += 1;
                    continue;
                }
                Value::Cut(bytes) => {
                    self.failed(known_id(&bytes), Broken::new(format!("value {place} is cut off")));
                    number += 1;
                    continue;
                }
                Value::TooLong => {
                    self.failed(None, Broken::new(format!("value {place} is longer than {LIMIT} bytes (256 MiB)")));
                    number += 1;
                    continue;
                }
            };
            match &known.format.read {
                Some(Reader::Each { read, .. }) => {
                    self.take(known.format.name, read(&text, &context).map_err(|broken| broken.at(place)));
                    if self.is_done() {
                        return Ok(());
                    }
                }
                Some(Reader::Parts { group, read, .. }) => {
                    groups.add(*group, text, values.list());
                    for (key, parts) in groups.ready(number, last) {
                        self.group(known, &key, parts, *read, &mut groups, &context);
                        if self.is_done() {
                            return Ok(());
                        }
                    }
                }
                _ => {}
            }
            number += 1;
            (self.progress)(Progress::Bytes(
                self.read + values.position(),
                self.all.max(self.read + values.position()),
            ));
        }
        if let Some(Reader::Parts { read, .. }) = &known.format.read {
            for (key, parts) in groups.all() {
                self.group(known, &key, parts, *read, &mut groups, &context);
            }
            // After the last of them.
            if groups.cut > 0 {
                *self.summary.skipped.entry("line_cut_off".to_owned()).or_default() += groups.cut;
            }
        }
        Ok(())
    }

    fn group(
        &mut self,
        known: &Known,
        key: &str,
        parts: Option<Vec<String>>,
        read: fn(&str, Vec<String>, &Context<'_>) -> Vec<Taken>,
        groups: &mut Groups,
        context: &Context<'_>,
    ) {
        if self.is_done() {
            return;
        }
        let Some(parts) = parts else {
            let why = format!("its parts are larger than {LIMIT} bytes (256 MiB), or too far apart");
            return self.failed(Some(key.to_owned()), Broken::new(why));
        };
        let only = groups.seen == 1;
        let context = Context { number: groups.number, only, ..*context };
        groups.number += 1;
        let key = if key.starts_with(Groups::UNNAMED) { context.unnamed() } else { key.to_owned() };
        for mut taken in read(&key, parts, &context) {
            if let (Ok(foreign), true) = (&mut taken, groups.cut > 0) {
                let cut = std::mem::take(&mut groups.cut);
                *foreign.skipped.entry("line_cut_off".to_owned()).or_default() += cut;
            }
            self.take(known.format.name, taken);
        }
    }

    /// Bytes as text for a parser.
    ///
    /// The transcript's own reader handles lone surrogates, and keeps them.
    fn readable(&mut self, bytes: Vec<u8>, is_transcript: bool) -> String {
        let mut count = |kind: &str| *self.summary.skipped.entry(kind.to_owned()).or_default() += 1;
        let text = String::from_utf8(bytes).unwrap_or_else(|error| {
            count("value_that_is_not_utf8");
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        });
        if is_transcript {
            return text;
        }
        match json::replace_lone_surrogates(&text) {
            std::borrow::Cow::Borrowed(_) => text,
            std::borrow::Cow::Owned(mended) => {
                count("value_with_lone_surrogates");
                mended
            }
        }
    }

    fn take(&mut self, format: &str, taken: Taken) {
        if self.is_done() {
            return;
        }
        let mut foreign = match taken {
            Ok(foreign) => foreign,
            Err(broken) => return self.failed(None, broken),
        };
        if foreign.is_hollow {
            *self.summary.skipped.entry("file_without_messages".to_owned()).or_default() += 1;
            return self.note(&format!("{}: there are no messages in it", foreign.id));
        }
        let options = self.options;
        match keep::keep(self.store, format, options.owner.as_deref(), options.branches, &mut foreign) {
            Ok(kept) => self.kept(foreign, &kept),
            Err(error) => {
                let broken = Broken { id: Some(foreign.id), title: foreign.title, why: error.to_string() };
                self.failed(None, broken);
                if stops(&error) {
                    self.stop = Some(error);
                }
            }
        }
    }

    fn kept(&mut self, foreign: Foreign, kept: &Kept) {
        for note in &kept.notes {
            self.note(note);
        }
        let imported = Imported {
            source_id: Some(foreign.id),
            conversation: Some(kept.name.id()),
            key: kept.name.key().map(str::to_owned),
            title: foreign.title,
            messages: kept.messages,
            branches: kept.branches,
            skipped: foreign.skipped,
            error: None,
            added: kept.added,
        };
        let summary = &mut self.summary;
        summary.conversations += 1;
        summary.messages += imported.messages;
        summary.branches += imported.branches;
        summary.added += imported.added;
        for (kind, count) in &imported.skipped {
            *summary.skipped.entry(kind.clone()).or_default() += count;
        }
        (self.progress)(Progress::Conversation(&imported));
    }

    fn failed(&mut self, id: Option<String>, broken: Broken) {
        let imported = Imported {
            source_id: broken.id.or(id),
            conversation: None,
            key: None,
            title: broken.title,
            messages: 0,
            branches: 0,
            skipped: Skipped::new(),
            error: Some(broken.why),
            added: 0,
        };
        self.summary.failed += 1;
        (self.progress)(Progress::Conversation(&imported));
    }
}

impl Broken {
    /// The same, for a value that has no id.
    fn at(mut self, place: usize) -> Self {
        if self.id.is_none() {
            self.why = format!("value {place}: {}", self.why);
        }
        self
    }
}

/// The id of a truncated conversation, if it comes early in it.
fn known_id(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes.get(..bytes.len().min(1 << 16)).unwrap_or_default());
    ["\"conversation_id\"", "\"uuid\"", "\"id\""].iter().find_map(|name| {
        let rest = text.split_once(name)?.1.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        rest.split_once('"').map(|(id, _)| id.to_owned())
    })
}

/// The key under which a conversation of a format is kept.
///
/// ```
/// assert_eq!(conversation_store::transfer::key("chatgpt", "7"), "chatgpt:7".into());
/// ```
#[must_use]
pub fn key(format: &str, id: &str) -> Name {
    Name::from(keep::key(format, id))
}
