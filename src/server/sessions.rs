//! Who is logged in at the pages.
//!
//! A session has a random id, which the browser keeps in a cookie. The key itself is not in the cookie: the server knows which
//! key the session is of, and looks at each request whether that key is still valid. Sessions are in memory alone: they end with
//! the server.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::keys::{digest, random};
use crate::error::Result;

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
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
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
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let session = open.get(id).filter(|session| now.saturating_duration_since(session.begun) < self.lasts)?;
        Some(session.key.clone())
    }

    pub(crate) fn end(&self, id: &SessionId) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
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
