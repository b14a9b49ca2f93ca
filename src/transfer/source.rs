//! Where exports come from: a file, a folder of files, an archive, stdin.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};

#[cfg(feature = "archives")]
use super::archive::Archive;
use super::values::{ATTACHMENT, FILES};
use crate::error::{Error, Result};

/// The deepest nesting of folders.
const DEPTH: usize = 32;

/// An export, opened.
pub(crate) struct Source {
    place: Place,
    /// The files in it that may hold conversations.
    pub(crate) documents: Vec<Document>,
    /// Names of files that are skipped unread.
    pub(crate) passed_over: Vec<(String, &'static str)>,
    /// Bytes of all documents.
    pub(crate) bytes: u64,
    names: OnceCell<(usize, HashSet<String>)>,
}

enum Place {
    Files {
        /// Names of the files beside the documents, for attachments.
        others: Vec<PathBuf>,
        /// What stdin held, until it is read.
        _spooled: Option<tempfile::NamedTempFile>,
    },
    #[cfg(feature = "archives")]
    Archive(Box<Archive>),
}

/// A file that may hold conversations.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its name in messages.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    at: At,
}

#[derive(Debug)]
enum At {
    Path(PathBuf),
    /// The number of an archive's entry.
    #[cfg(feature = "archives")]
    Entry(usize),
}

impl Source {
    /// Opens a file, a folder or an archive.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let cannot = |error| Error::InvalidInput(format!("cannot read {shown}: {error}"));
        let metadata = fs::metadata(path).map_err(cannot)?;
        if metadata.is_dir() { Self::folder(path) } else { Self::file(path, shown.clone(), None).map_err(cannot)? }
    }

    /// Stores everything that can be read: an export may have to be read twice.
    pub(crate) fn spool(mut input: impl Read) -> Result<Self> {
        let cannot = Error::io("cannot keep what was read from stdin");
        let mut spooled = || {
            let mut file = tempfile::Builder::new().prefix("convo-import").tempfile()?;
            io::copy(&mut input, file.as_file_mut())?;
            file.as_file_mut().flush()?;
            Ok(file)
        };
        let spooled = spooled().map_err(cannot)?;
        let path = spooled.path().to_owned();
        Self::file(&path, "stdin".to_owned(), Some(spooled)).map_err(Error::io("cannot read stdin"))?
    }

    fn file(path: &Path, name: String, spooled: Option<tempfile::NamedTempFile>) -> io::Result<Result<Self>> {
        let mut file = File::open(path)?;
        let mut magic = [0; 4];
        let read = file.read(&mut magic)?;
        if magic.get(..read) == Some(b"PK\x03\x04") || magic.get(..read) == Some(b"PK\x05\x06") {
            return Ok(Self::archive(path, &name));
        }
        let bytes = file.metadata()?.len();
        let folder = path.parent().filter(|_| spooled.is_none()).map(Path::to_owned);
        let mut others = Vec::new();
        if let Some(folder) = folder {
            let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
            let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(FILES);
            others.extend(entries.map(|entry| entry.path()).filter(|other| other != path));
        }
        let documents = vec![Document { name, bytes, at: At::Path(path.to_owned()) }];
        Ok(Ok(Self {
            place: Place::Files { others, _spooled: spooled },
            documents,
            passed_over: Vec::new(),
            bytes,
            names: OnceCell::new(),
        }))
    }

    fn folder(path: &Path) -> Result<Self> {
        let mut source = Self {
            place: Place::Files { others: Vec::new(), _spooled: None },
            documents: Vec::new(),
            passed_over: Vec::new(),
            bytes: 0,
            names: OnceCell::new(),
        };
        let mut others = Vec::new();
        let mut folders = vec![(path.to_owned(), 0)];
        let mut files = Vec::new();
        while let Some((folder, depth)) = folders.pop() {
            let cannot = |error| Error::InvalidInput(format!("cannot read {}: {error}", folder.display()));
            for entry in fs::read_dir(&folder).map_err(cannot)? {
                let entry = entry.map_err(cannot)?;
                // A link is not followed: it may lead out of the folder, or back into it.
                match entry.file_type().map_err(cannot)? {
                    kind if kind.is_dir() && depth < DEPTH => folders.push((entry.path(), depth + 1)),
                    kind if kind.is_file() && files.len() < FILES => files.push(entry.path()),
                    _ => source.passed_over.push((entry.path().display().to_string(), "no file")),
                }
            }
        }
        files.sort();
        for path in files {
            let name = path.display().to_string();
            if may_hold(&name) {
                let bytes = fs::metadata(&path).map(|metadata| metadata.len()).unwrap_or_default();
                source.bytes += bytes;
                source.documents.push(Document { name, bytes, at: At::Path(path.clone()) });
            }
            others.push(path);
        }
        source.place = Place::Files { others, _spooled: None };
        Ok(source)
    }

    #[cfg(feature = "archives")]
    fn archive(path: &Path, name: &str) -> Result<Self> {
        let (archive, entries, passed_over) = Archive::open(path, name, may_hold)?;
        let document = |entry: super::archive::Entry| {
            let name = format!("{name}/{}", entry.name);
            Document { name, bytes: entry.bytes, at: At::Entry(entry.index) }
        };
        let mut documents: Vec<Document> = entries.into_iter().map(document).collect();
        documents.sort_by(|a, b| a.name.cmp(&b.name));
        let bytes = documents.iter().map(|document| document.bytes).sum();
        Ok(Self { place: Place::Archive(Box::new(archive)), documents, passed_over, bytes, names: OnceCell::new() })
    }

    #[cfg(not(feature = "archives"))]
    fn archive(_: &Path, name: &str) -> Result<Self> {
        Err(Error::InvalidInput(format!("{name}: a zip archive; {}", super::values::WITHOUT_ARCHIVES)))
    }

    /// The name of a document without its extension: conversations without ids are named by it. If several have the same, the
    /// folders that are not those of all documents are before it.
    pub(crate) fn id_of(&self, document: &Document) -> String {
        let path = Path::new(&document.name);
        let Some(stem) = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()) else {
            return document.name.clone();
        };
        if !self.names().1.contains(&stem) {
            return stem;
        }
        let folders = path.parent().map_or(0, |folder| folder.components().count());
        let below = path.components().take(folders).skip(self.names().0);
        let folders: Vec<String> = below.map(|folder| folder.as_os_str().to_string_lossy().into_owned()).collect();
        [folders, vec![stem]].concat().join("/")
    }

    /// How many folders all documents have in common, and the names that several have.
    fn names(&self) -> &(usize, HashSet<String>) {
        self.names.get_or_init(|| {
            let (mut once, mut often) = (HashSet::new(), HashSet::new());
            let mut common: Option<Vec<Component<'_>>> = None;
            for path in self.documents.iter().map(|document| Path::new(&document.name)) {
                let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
                if !once.insert(stem.clone()) {
                    often.insert(stem);
                }
                let folders: Vec<Component<'_>> = path.parent().into_iter().flat_map(Path::components).collect();
                match &mut common {
                    None => common = Some(folders),
                    Some(common) => {
                        let same = common.iter().zip(&folders).take_while(|(one, other)| one == other).count();
                        common.truncate(same);
                    }
                }
            }
            (common.map_or(0, |common| common.len()), often)
        })
    }

    /// Reads a document from its beginning.
    pub(crate) fn read<T>(&self, document: &Document, read: impl FnOnce(&mut dyn BufRead) -> T) -> Result<T> {
        let cannot =
            |error: &dyn std::fmt::Display| Error::InvalidInput(format!("cannot read {}: {error}", document.name));
        match (&document.at, &self.place) {
            (At::Path(path), _) => {
                let file = File::open(path).map_err(|error| cannot(&error))?;
                Ok(read(&mut BufReader::with_capacity(1 << 16, file)))
            }
            #[cfg(feature = "archives")]
            (At::Entry(index), Place::Archive(archive)) => {
                archive.read(*index, |input| read(input)).map_err(|error| cannot(&error))
            }
            #[cfg(feature = "archives")]
            (At::Entry(_), Place::Files { .. }) => Err(cannot(&"it is in no archive")),
        }
    }

    /// A document as a file: one of an archive is written to a temporary folder. The log of a database, which is the file
    /// beside it whose name ends with `-wal`, goes with it.
    #[cfg(feature = "archives")]
    pub(crate) fn on_disk(&self, document: &Document) -> Result<OnDisk> {
        const NAME: &str = "database";
        let index = match &document.at {
            At::Path(path) => return Ok(OnDisk { path: path.clone(), _folder: None }),
            At::Entry(index) => *index,
        };
        let folder = tempfile::Builder::new().prefix("convo-import").tempdir();
        let folder = folder.map_err(Error::io("cannot create a temporary folder"))?;
        let write = |document: &Document, name: &str| {
            let path = folder.path().join(name);
            let written = self.read(document, |input| io::copy(input, &mut File::create(&path)?))?;
            written.map_err(|error| Error::InvalidInput(format!("cannot read {}: {error}", document.name)))?;
            Ok(path)
        };
        let path = write(document, NAME)?;
        let log = match &self.place {
            Place::Archive(archive) => archive.beside(index, "-wal"),
            Place::Files { .. } => None,
        };
        if let Some(log) = log {
            let log = Document { name: format!("{}-wal", document.name), bytes: 0, at: At::Entry(log) };
            write(&log, &format!("{NAME}-wal"))?;
        }
        Ok(OnDisk { path, _folder: Some(folder) })
    }

    /// The file that came with a document, whose name holds this id: its name, and its content if it is not too large.
    pub(crate) fn find(&self, id: &str) -> Option<(String, Vec<u8>)> {
        if id.len() < 4 {
            return None;
        }
        let mut content = Vec::new();
        match &self.place {
            Place::Files { others, .. } => {
                let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
                let path = others.iter().find(|path| name(path).is_some_and(|name| is_of(&name, id)))?;
                let file = File::open(path).ok()?;
                if file.metadata().ok()?.len() > ATTACHMENT {
                    return None;
                }
                file.take(ATTACHMENT).read_to_end(&mut content).ok()?;
                Some((name(path)?, content))
            }
            #[cfg(feature = "archives")]
            Place::Archive(archive) => archive.find(|name| is_of(name.rsplit('/').next().unwrap_or(name), id)),
        }
    }
}

/// A document as a file, for a reader that needs one.
#[cfg(feature = "archives")]
pub(crate) struct OnDisk {
    pub(crate) path: PathBuf,
    /// The folder of a document from an archive; it is removed with this value.
    _folder: Option<tempfile::TempDir>,
}

/// Whether a file's name begins with an id: `file-abc.png`, `file-abc-photo.png`.
fn is_of(name: &str, id: &str) -> bool {
    name.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']))
}

/// Whether a file of this name may hold conversations.
fn may_hold(name: &str) -> bool {
    let extension = Path::new(name).extension().map(|extension| extension.to_string_lossy().to_lowercase());
    extension
        .is_some_and(|extension| ["json", "jsonl", "ndjson", "db", "sqlite", "sqlite3"].contains(&extension.as_str()))
}
