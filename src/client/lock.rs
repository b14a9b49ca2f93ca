use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. What a panic left is whole: every change is one step.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
