//! What is recorded of the calls that pass.

use std::sync::Arc;

use super::exchange::{Asked, Passed};
use crate::server::app::App;
use crate::server::refusal::Refusal;

/// A call that is being recorded.
#[derive(Debug)]
pub(crate) struct Recording;

/// Begins to record a call. It never waits: what is stored is stored beside the traffic.
pub(crate) fn record(_app: &Arc<App>, _asked: Asked) -> Recording {
    Recording
}

impl Recording {
    /// Takes what passes. It never waits; what there is no room for is left out, and the recording says so.
    pub(crate) fn pass(&self, _passed: Passed) {}

    /// Returns once the user's part is durable: with `record = "required"` nothing goes upstream before.
    pub(crate) async fn kept(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Returns once somebody stopped this answer from elsewhere: by the API, perhaps of another server of the same store.
    pub(crate) async fn stopped(&self) {
        std::future::pending().await
    }
}
