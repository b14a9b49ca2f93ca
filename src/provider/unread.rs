//! Wires whose answers and requests are not read yet.

use super::ingest::fields::Fields;
use super::ingest::{Answer, Decode};
use super::{Parsed, Target};
use crate::error::{Error, Result};
use crate::model::Body;

#[derive(Debug)]
struct Unread(Target);

/// A decoder that gives an error chunk.
pub(super) fn decoder(target: Target) -> Box<dyn Decode> {
    Box::new(Unread(target))
}

impl Decode for Unread {
    fn provider(&self) -> &'static str {
        ""
    }

    fn take(&mut self, _: &str, _: &mut Fields<'_>, _: &mut Answer) -> bool {
        false
    }

    fn finish(&mut self, answer: &mut Answer) {
        answer.fail(Body::Error { message: format!("answers of {} are not read", self.0), code: None });
    }
}

/// An error.
pub(super) fn parse(target: Target, _: &mut Fields<'_>) -> Result<Parsed> {
    Err(Error::InvalidInput(format!("requests of {target} are not read")))
}
