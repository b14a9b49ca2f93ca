//! Who may do what: keys, of which the file holds only hashes; and sessions of keys, which log in at the pages.
//!
//! A session has a random id, which the browser keeps in a cookie. The key itself is not in the cookie: the server knows which
//! key the session is of, and looks at each request whether that key is still valid. Sessions are in memory alone: they end with
//! the server.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use crate::log::Limits;
use crate::log::locked;
use crate::model::Timestamp;

/// What owners begin with that no key has: the server keeps data of its own under them.
pub(crate) const RESERVED: &str = "convo:";

/// What a key permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scope {
    /// To read the owner's conversations.
    Read,
    /// To create conversations and to add to them.
    Append,
    /// To remove, redact and delete.
    Delete,
    /// To check and back up the whole store, to read its metrics, and to look at what any owner has.
    Admin,
    /// To act for any owner, whom each request names.
    Impersonate,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 5] = [Self::Read, Self::Append, Self::Delete, Self::Admin, Self::Impersonate];

    /// The scope's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Append => "append",
            Self::Delete => "delete",
            Self::Admin => "admin",
            Self::Impersonate => "impersonate",
        }
    }

    /// The scope of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }
}

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Key {
    /// Its name in logs.
    pub id: String,
    /// The owner whose conversations it opens.
    pub owner: String,
    /// What it permits.
    pub scopes: Vec<Scope>,
    /// The SHA-256 of the secret, in hexadecimal digits.
    sha256: String,
    /// When it was created, RFC 3339.
    pub created_at: String,
    /// When it expires, RFC 3339; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Whether items come as a provider accepts them, unless a request says otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repaired: bool,
}

/// What a key has beside its owner and its scopes.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct KeyOptions {
    /// When it expires; absent: never.
    pub expires_at: Option<Timestamp>,
    /// Whether items of the Conversations API come as a provider accepts them, unless a request says otherwise.
    pub repaired: bool,
}

impl KeyOptions {
    /// A key that does not expire, and gets items as they are stored.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets when it expires.
    #[must_use]
    pub const fn with_expires_at(mut self, at: Timestamp) -> Self {
        self.expires_at = Some(at);
        self
    }

    /// Sets whether items come as a provider accepts them.
    #[must_use]
    pub const fn with_repaired(mut self, repaired: bool) -> Self {
        self.repaired = repaired;
        self
    }
}

impl Key {
    /// Whether it has expired.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        // A time that cannot be read expires the key: a typo must not make it live for ever.
        self.expires_at.as_ref().is_some_and(|at| at.parse::<Timestamp>().map_or(true, |at| at <= now))
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    keys: Vec<Key>,
}

/// The prefix of every secret, so that a search for leaked secrets finds it.
const SECRET: &str = "convo_";

/// A file of keys. It is written whole, so that a reader sees the old file or the new one.
#[derive(Clone, Debug)]
pub struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    /// The file at a path, which need not exist yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Creates a key, and returns its secret, which is stored nowhere else.
    ///
    /// # Errors
    /// `InvalidInput` if the file is not a file of keys, or the owner is blank; `LimitExceeded`; `Io`.
    pub fn create(&self, owner: &str, scopes: &[Scope], options: &KeyOptions) -> Result<(Key, String)> {
        check_owner(owner)?;
        if scopes.is_empty() {
            return Err(Error::InvalidInput("a key needs a scope".to_owned()));
        }
        let (id, secret) = (random::<6>()?, random::<32>()?);
        let secret = format!("{SECRET}{}", URL_SAFE_NO_PAD.encode(secret));
        let mut scopes = scopes.to_vec();
        scopes.sort_unstable();
        scopes.dedup();
        let key = Key {
            id: format!("key_{}", hex(&id)),
            owner: owner.to_owned(),
            scopes,
            sha256: digest(&secret),
            created_at: Timestamp::now().to_string(),
            expires_at: options.expires_at.map(|at| at.to_string()),
            repaired: options.repaired,
        };
        let _alone = self.alone()?;
        let mut listed = self.read(true)?;
        listed.keys.push(key.clone());
        self.write(&listed)?;
        Ok((key, secret))
    }

    /// All keys.
    ///
    /// # Errors
    /// `InvalidInput` if the file is not a file of keys; `Io`.
    pub fn list(&self) -> Result<Vec<Key>> {
        Ok(self.read(false)?.keys)
    }

    /// Revokes a key. Servers notice within two seconds.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` if the file is not a file of keys; `Io`.
    pub fn revoke(&self, id: &str) -> Result<Key> {
        let _alone = self.alone()?;
        let mut listed = self.read(false)?;
        let at = listed.keys.iter().position(|key| key.id == id);
        let at = at.ok_or_else(|| Error::NotFound { what: format!("key {id}") })?;
        let key = listed.keys.remove(at);
        self.write(&listed)?;
        Ok(key)
    }

    /// Keeps other programs from changing the file until it is dropped: none undoes what another one does.
    fn alone(&self) -> Result<File> {
        let path = self.path.with_extension("lock");
        let cannot = |error| Error::io(format!("lock {}", path.display()))(error);
        // Another user may have made it: reading is enough for the lock.
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                File::options().create(true).truncate(false).write(true).open(&path)
            }
            opened => opened,
        };
        let file = file.map_err(cannot)?;
        file.lock().map_err(cannot)?;
        Ok(file)
    }

    fn read(&self, may_miss: bool) -> Result<Listed> {
        let shown = self.path.display();
        match fs::read_to_string(&self.path) {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|error| Error::InvalidInput(format!("{shown} is not a file of keys: {error}"))),
            Err(error) if may_miss && error.kind() == ErrorKind::NotFound => Ok(Listed::default()),
            Err(error) => Err(Error::io(format!("read the keys in {shown}"))(error)),
        }
    }

    fn write(&self, listed: &Listed) -> Result<()> {
        let cannot = |error| Error::io(format!("write the keys to {}", self.path.display()))(error);
        let text = serde_json::to_string_pretty(listed).map_err(|error| cannot(error.into()))?;
        let new = self.path.with_extension("new");
        // What an interrupted write left harms nobody.
        let _ = fs::remove_file(&new);
        let mut file = private(&new).map_err(cannot)?;
        file.write_all(text.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(cannot)?;
        file.sync_all().map_err(cannot)?;
        fs::rename(&new, &self.path).map_err(cannot)?;
        let directory = self.path.parent().filter(|directory| !directory.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all()).map_err(cannot)
    }
}

/// Fails on an owner that no key, and no request, may have.
pub(crate) fn check_owner(owner: &str) -> Result<()> {
    if owner.trim().is_empty() {
        return Err(Error::InvalidInput("an owner has a name that is not blank".to_owned()));
    }
    if owner.starts_with(RESERVED) {
        return Err(Error::InvalidInput(format!("owners that begin with {RESERVED:?} are the server's own")));
    }
    if owner.len() > Limits::NAME_BYTES {
        let (actual, limit) = (format!("{} bytes", owner.len()), format!("{} bytes", Limits::NAME_BYTES));
        return Err(Error::LimitExceeded { what: "an owner", actual, limit });
    }
    Ok(())
}

/// A new file that only its user can read.
fn private(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

pub(crate) fn random<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let cannot = |error: getrandom::Error| Error::io("get randomness")(std::io::Error::other(error.to_string()));
    getrandom::fill(&mut bytes).map_err(cannot)?;
    Ok(bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    // Each request has its key's hash, and an id.
    let digit = |four: u8| char::from_digit(u32::from(four), 16).unwrap_or_default();
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// The SHA-256 of a secret, in hexadecimal digits.
pub(crate) fn digest(secret: &str) -> String {
    hex(&hash(secret))
}

/// The keys that a server accepts: those of the file, read again when it changes.
#[derive(Debug)]
pub(crate) struct Keys {
    file: KeyFile,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    version: Option<Version>,
    /// By the hash of the secret. A secret has 256 random bits: the time of a look-up reveals nothing about it.
    keys: HashMap<String, Arc<Key>>,
}

/// What changes when a file is written.
type Version = (SystemTime, u64, u64);

impl Keys {
    /// Reads the file, which must exist.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let keys = Self { file: KeyFile::new(path), known: RwLock::default() };
        keys.reload()?;
        Ok(keys)
    }

    /// Reads the file again if it changed. After an error the earlier keys stay.
    pub(crate) fn reload(&self) -> Result<bool> {
        let path = &self.file.path;
        let metadata = fs::metadata(path).map_err(Error::io(format!("read the keys in {}", path.display())))?;
        let version = metadata.modified().ok().map(|at| (at, metadata.len(), inode(&metadata)));
        if version.is_some() && self.known.read().unwrap_or_else(PoisonError::into_inner).version == version {
            return Ok(false);
        }
        let listed = self.file.list()?.into_iter().filter(|key| !key.owner.starts_with(RESERVED));
        let keys = listed.map(|key| (key.sha256.clone(), Arc::new(key))).collect();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Known { version, keys };
        Ok(true)
    }

    /// The key whose secret has this digest, unless it has expired.
    pub(crate) fn find_digest(&self, digest: &str) -> Option<Arc<Key>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let key = known.keys.get(digest)?;
        (!key.is_expired(Timestamp::now())).then(|| Arc::clone(key))
    }
}

#[cfg(unix)]
fn inode(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &fs::Metadata) -> u64 {
    0
}

/// The most sessions of one key, and of all keys. When there are more, the oldest ends.
const OF_KEY: usize = 32;
const ALL: usize = 4_096;

/// A session: the digest of its id.
pub(crate) type SessionId = String;

/// The sessions that have begun and not ended.
#[derive(Debug)]
pub(crate) struct Sessions {
    lasts: Duration,
    /// By the digest of the id: the time of a look-up reveals nothing about an id.
    open: Mutex<HashMap<SessionId, Session>>,
}

#[derive(Debug)]
struct Session {
    /// The digest of the key's secret.
    key: String,
    begun: Instant,
}

impl Sessions {
    pub(crate) fn new(lasts: Duration) -> Self {
        Self { lasts, open: Mutex::default() }
    }

    /// Begins a session of a key; returns what the cookie holds.
    pub(crate) fn begin(&self, key: &str, now: Instant) -> Result<String> {
        let id = URL_SAFE_NO_PAD.encode(random::<32>()?);
        let mut open = locked(&self.open);
        open.retain(|_, session| now.saturating_duration_since(session.begun) < self.lasts);
        while open.values().filter(|session| session.key == key).count() >= OF_KEY {
            end_oldest(&mut open, |session| session.key == key);
        }
        while open.len() >= ALL {
            end_oldest(&mut open, |_| true);
        }
        open.insert(digest(&id), Session { key: key.to_owned(), begun: now });
        Ok(id)
    }

    /// The session of a cookie, if it has not ended, and its key.
    pub(crate) fn find(&self, cookie: &str, now: Instant) -> Option<(SessionId, String)> {
        let id = digest(cookie);
        let key = self.key_of(&id, now)?;
        Some((id, key))
    }

    /// The digest of the secret of a session's key, if the session has not ended.
    pub(crate) fn key_of(&self, id: &SessionId, now: Instant) -> Option<String> {
        let open = locked(&self.open);
        let session = open.get(id).filter(|session| now.saturating_duration_since(session.begun) < self.lasts)?;
        Some(session.key.clone())
    }

    pub(crate) fn end(&self, id: &SessionId) {
        locked(&self.open).remove(id);
    }

    pub(crate) const fn lasts(&self) -> Duration {
        self.lasts
    }
}

fn end_oldest(open: &mut HashMap<SessionId, Session>, among: impl Fn(&Session) -> bool) {
    let candidates = open.iter().filter(|(_, session)| among(session));
    if let Some(oldest) = candidates.min_by_key(|(_, session)| session.begun).map(|(id, _)| id.clone()) {
        open.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_opens_until_it_is_revoked_or_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.json");
        let file = KeyFile::new(&path);
        let (ada, secret) = file.create("ada", &[Scope::Read, Scope::Append], &KeyOptions::new()).unwrap();
        let (_, ended) =
            file.create("ada", &Scope::ALL, &KeyOptions::new().with_expires_at(Timestamp::from_micros(0))).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&secret) && secret.len() > 40, "the file holds hashes");
        let keys = Keys::open(&path).unwrap();
        let find = |secret: &str| keys.find_digest(&digest(secret));
        assert_eq!(find(&secret).map(|key| key.owner.clone()).as_deref(), Some("ada"));
        assert!(find(&ended).is_none() && find("convo_other").is_none() && find(&ada.sha256).is_none());
        assert!(!keys.reload().unwrap(), "nothing changed");
        file.revoke(&ada.id).unwrap();
        assert!(find(&secret).is_some() && keys.reload().unwrap() && find(&secret).is_none());
        assert!(matches!(file.revoke(&ada.id), Err(Error::NotFound { .. })));
        // A broken file revokes nothing.
        let (_, secret) = file.create("grace", &[Scope::Read], &KeyOptions::new()).unwrap();
        keys.reload().unwrap();
        fs::write(&path, "{").unwrap();
        assert!(keys.reload().is_err() && find(&secret).is_some());
        #[cfg(unix)]
        {
            file.create("x", &[Scope::Read], &KeyOptions::new()).unwrap_err();
            fs::remove_file(&path).unwrap();
            file.create("x", &[Scope::Read], &KeyOptions::new()).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn sessions_end_by_time_by_number_and_by_request() {
        let (sessions, now) = (Sessions::new(Duration::from_secs(60)), Instant::now());
        let after = |seconds| now + Duration::from_secs(seconds);
        let first = sessions.begin("k", now).unwrap();
        assert_eq!(sessions.find(&first, after(59)).map(|(_, key)| key).as_deref(), Some("k"));
        assert!(sessions.find(&first, after(60)).is_none() && sessions.find("other", now).is_none());
        let (id, _) = sessions.find(&first, now).unwrap();
        assert!(sessions.find(&id, now).is_none(), "what is in memory opens nothing");
        let others: Vec<String> = (0..OF_KEY as u64).map(|at| sessions.begin("k", after(at + 1)).unwrap()).collect();
        assert!(sessions.find(&first, after(1)).is_none(), "the oldest of the key has ended");
        assert!(others.iter().all(|other| sessions.find(other, after(40)).is_some()));
        for at in 0..ALL {
            sessions.begin(&at.to_string(), after(40)).unwrap();
        }
        assert!(others.iter().all(|other| sessions.find(other, after(40)).is_none()), "there is a bound");
        let last = sessions.begin("last", after(40)).unwrap();
        let (id, _) = sessions.find(&last, after(40)).unwrap();
        sessions.end(&id);
        assert!(sessions.find(&last, after(40)).is_none());
    }
}
