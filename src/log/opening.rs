//! How a log is opened.

use std::sync::Arc;

use crate::model::Timestamp;

/// Where a store's times come from.
pub(crate) type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How a log is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Nothing is written, not even that the store was opened.
    pub(crate) read_only: bool,
    /// A store that went back is written on from where it is.
    pub(crate) accept_loss: bool,
}
