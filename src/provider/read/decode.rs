//! What a wire knows of its answers.

use std::fmt;

use super::answer::Answer;
use crate::json::fields::Fields;

/// What a wire's JSON says.
pub(crate) trait Decode: fmt::Debug + Send {
    /// Whose answers these are: the provider whose thinking is this target's own.
    fn provider(&self) -> &'static str;

    /// Takes an object: a whole answer, or an event of a stream, whose name may be empty. Takes the fields that it knows
    /// out of `fields`. False: it knows nothing of such an object. An `error` field may be left for the caller.
    fn take(&mut self, event: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool;

    /// Says what was held back until the end.
    fn finish(&mut self, answer: &mut Answer);
}
