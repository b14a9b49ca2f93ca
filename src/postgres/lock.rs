//! Locks of the log's own data.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock. A thread that panicked while it held it left what it guards as it was between two whole steps.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
