//! The locks, waits, threads and clock of the commit path: the system's. In this crate's own tests a scheduler may
//! replace them: it decides which thread runs when, and has its own clock.

#[cfg(test)]
pub(crate) mod scheduled;

#[cfg(not(test))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread::{JoinHandle, Thread, current, park},
};

#[cfg(test)]
pub(crate) use scheduled::{Condvar, JoinHandle, Mutex, MutexGuard, Thread, current, now, park, spawn};

/// The time now.
#[cfg(not(test))]
pub(crate) fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// A new thread.
#[cfg(not(test))]
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run)
}
