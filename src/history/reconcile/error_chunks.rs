use super::super::group::StoredMessage;
use super::super::report::{Fact, ReportLine};
use crate::model::Body;

/// A failed generation is visible to people who look at the log, never to a provider.
pub(super) fn remove(mut messages: Vec<StoredMessage>, report: &mut Vec<ReportLine>) -> Vec<StoredMessage> {
    for stored in &mut messages {
        for (at, chunk) in stored.message.chunks.iter().enumerate() {
            if matches!(chunk.body, Body::Error { .. }) {
                report.push(ReportLine::chunk(Fact::ErrorRemoved, stored, at));
            }
        }
        stored.retain(|chunk| !matches!(chunk.body, Body::Error { .. }));
    }
    messages
}
