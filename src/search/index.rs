//! An index: where it is, and whether it is of this version.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{fmt, fs, io};

use tantivy::directory::error::LockError;
use tantivy::{Index, IndexReader, ReloadPolicy, TantivyError};

use super::document;
use super::document::Fields;
use super::words::{self, Language, Stems, Words};
use crate::error::{Error, Result};

/// The file that marks a directory as an index; how its content begins, before the language.
const MARKER: &str = "CONVERSATION-SEARCH";
const VERSION: &str = "conversation-store search\nversion 3\nlanguage ";

/// A full-text index of conversations.
///
/// All of it is derived from a store. It may be deleted: the next search makes it again. One index belongs to one store.
///
/// ```
/// use conversation_store::Store;
/// use conversation_store::model::Message;
/// use conversation_store::search::{Language, SearchIndex, SearchQuery};
///
/// let store = Store::open("memory:")?;
/// let index = SearchIndex::in_memory(Language::default())?; // on disk: SearchIndex::open("convo.db.search")
/// store.append("chat-42", &[Message::user("Why does the build fail?")])?;
///
/// let page = store.search(&index, &SearchQuery::new("builds"))?;
/// assert_eq!(page.hits[0].key.as_deref(), Some("chat-42"));
/// assert_eq!(page.hits[0].message_index, Some(0));
/// # Ok::<(), conversation_store::Error>(())
/// ```
pub struct SearchIndex {
    /// Absent: it is in memory.
    directory: Option<PathBuf>,
    pub(super) index: Index,
    pub(super) reader: IndexReader,
    pub(super) fields: Fields,
    pub(super) stems: Stems,
    /// Held while the index is brought up to date.
    pub(super) refreshing: Mutex<()>,
}

impl fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchIndex").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl SearchIndex {
    /// Opens the index in a directory in the language that it has, and creates it in English if it does not exist. An index that
    /// cannot be read, or that another version wrote, is removed and begun again.
    ///
    /// # Errors
    /// `InvalidInput` if the directory holds something else; `Io`.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_in(directory, None)
    }

    /// As [`SearchIndex::open`], in a language. An index in another one is removed and begun again. `None`: in the language that it
    /// has.
    ///
    /// # Errors
    /// As [`SearchIndex::open`].
    pub fn open_in(directory: impl AsRef<Path>, language: Option<Language>) -> Result<Self> {
        let directory = directory.as_ref();
        let failed = |error| Error::io(format!("open the search index {}", directory.display()))(error);
        let marker = directory.join(MARKER);
        match fs::read_to_string(&marker) {
            Ok(marked) => {
                let known = marked.strip_prefix(VERSION).and_then(|name| name.trim_end().parse::<Language>().ok());
                if let Some(known) = known.filter(|known| language.is_none_or(|language| language == *known)) {
                    let opened = guarded(|| Index::open_in_dir(directory));
                    match opened.and_then(|index| Self::new(Some(directory), index, known)) {
                        Ok(index) => return Ok(index),
                        Err(error @ Error::Busy(_)) => return Err(error),
                        Err(_) => {}
                    }
                }
                fs::remove_dir_all(directory).map_err(failed)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => check_vacant(directory).map_err(failed)??,
            Err(error) => return Err(failed(error)),
        }
        let language = language.unwrap_or_default();
        create_private(directory).map_err(failed)?;
        fs::write(marker, format!("{VERSION}{}\n", language.name())).map_err(failed)?;
        Self::new(Some(directory), guarded(|| Index::create_in_dir(directory, document::schema()))?, language)
    }

    /// An empty index in memory. It is lost when it is dropped.
    ///
    /// # Errors
    /// `Io`.
    pub fn in_memory(language: Language) -> Result<Self> {
        Self::new(None, Index::create_in_ram(document::schema()), language)
    }

    fn new(directory: Option<&Path>, index: Index, language: Language) -> Result<Self> {
        let fields = Fields::of(&index.schema()).ok_or_else(|| damaged("it has other fields"))?;
        let stems = Stems::new(language);
        index.tokenizers().register(words::NAME, Words(None));
        index.tokenizers().register(words::STEMS, Words(Some(stems)));
        let reader = guarded(|| index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into())?;
        Ok(Self { directory: directory.map(Path::to_owned), index, reader, fields, stems, refreshing: Mutex::new(()) })
    }
}

/// Fails if the directory holds anything.
fn check_vacant(directory: &Path) -> io::Result<Result<()>> {
    let first = match fs::read_dir(directory) {
        Ok(mut entries) => entries.next(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok(match first {
        None => Ok(()),
        Some(_) => Err(Error::InvalidInput(format!(
            "{} is not a search index: it holds other files; name a new or empty directory",
            directory.display()
        ))),
    })
}

/// Creates a directory that only its user can read: it holds the words of conversations.
fn create_private(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Calls the index. It may panic when its files are damaged: that ends here, as an error.
pub(super) fn guarded<T>(call: impl FnOnce() -> tantivy::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(TantivyError::LockFailure(LockError::LockBusy, _))) => {
            Err(Error::Busy("another process writes the search index".to_owned()))
        }
        Ok(Err(TantivyError::IoError(error))) => {
            Err(Error::io("use the search index")(io::Error::new(error.kind(), error)))
        }
        Ok(Err(error)) => Err(damaged(&error.to_string())),
        Err(_) => Err(damaged("it panicked")),
    }
}

/// The error of an index whose files are damaged.
fn damaged(problem: &str) -> Error {
    let detail = format!("the search index: {problem}; remove its directory: the next search makes it again");
    Error::Corrupt { conversation: None, seq: None, detail }
}

/// What the store has, or nothing if that is gone, was replaced, or is damaged.
pub(super) fn found<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(
            Error::NotFound { .. }
            | Error::StaleCursor { .. }
            | Error::CursorOutOfRange { .. }
            | Error::Corrupt { .. }
            | Error::UnsupportedVersion { .. },
        ) => Ok(None),
        Err(error) => Err(error),
    }
}
