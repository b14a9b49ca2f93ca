//! Fragments of one chunk become the chunk.

use super::{Body, Chunk};

/// Why a fragment does not belong to a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misfit {
    /// It is of another kind.
    #[error("it is of another kind than the fragments before it")]
    OtherKind,
    /// It comes whole: only text, thinking text and arguments grow.
    #[error("a chunk of this kind comes whole, in one piece")]
    ComesWhole,
    /// It gives a second value for something that is said once.
    #[error("it says again what was said before: an id, a name, a signature, native data and unknown fields come once")]
    SaidTwice,
}

impl Chunk {
    /// Appends a fragment. The chunk is as before if it does not fit.
    pub(crate) fn push_fragment(&mut self, fragment: Self) -> Result<(), Misfit> {
        self.check_fragment(&fragment)?;
        take(&mut self.id, fragment.id);
        take(&mut self.native, fragment.native);
        if self.extra.is_empty() {
            self.extra = fragment.extra;
        }
        match (&mut self.body, fragment.body) {
            (Body::Text { text, annotations }, Body::Text { text: more, annotations: new }) => {
                text.push_str(&more);
                take(annotations, new);
            }
            (
                Body::Thinking { text, signature, redacted },
                Body::Thinking { text: more, signature: new_signature, redacted: new_redacted },
            ) => {
                text.push_str(&more);
                take(signature, new_signature);
                take(redacted, new_redacted);
            }
            (Body::Refusal { text }, Body::Refusal { text: more }) => text.push_str(&more),
            (
                Body::ToolCall { id, name, arguments, signature, server },
                Body::ToolCall {
                    id: new_id,
                    name: new_name,
                    arguments: more,
                    signature: new_signature,
                    server: new_server,
                },
            ) => {
                arguments.push_str(&more);
                if id.is_empty() {
                    *id = new_id;
                }
                if name.is_empty() {
                    *name = new_name;
                }
                take(signature, new_signature);
                *server |= new_server;
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a fragment fits.
    pub(crate) fn check_fragment(&self, fragment: &Self) -> Result<(), Misfit> {
        let said_twice = match (&self.body, &fragment.body) {
            (Body::Text { annotations: a, .. }, Body::Text { annotations: b, .. }) => a.is_some() && b.is_some(),
            (Body::Thinking { signature: a, redacted: c, .. }, Body::Thinking { signature: b, redacted: d, .. }) => {
                a.is_some() && b.is_some() || c.is_some() && d.is_some()
            }
            (Body::Refusal { .. }, Body::Refusal { .. }) => false,
            (
                Body::ToolCall { id: a, name: c, signature: e, .. },
                Body::ToolCall { id: b, name: d, signature: f, .. },
            ) => differs(a, b) || differs(c, d) || e.is_some() && f.is_some(),
            (a, b) if a.kind() != b.kind() => return Err(Misfit::OtherKind),
            _ => return Err(Misfit::ComesWhole),
        };
        let said_twice = said_twice
            || self.id.is_some() && fragment.id.is_some()
            || self.native.is_some() && fragment.native.is_some()
            || !self.extra.is_empty() && !fragment.extra.is_empty();
        if said_twice { Err(Misfit::SaidTwice) } else { Ok(()) }
    }

    /// The chunk without the text that grows: enough to check fragments against.
    pub(crate) fn shape(&self) -> Self {
        let mut shape = self.clone();
        match &mut shape.body {
            Body::Text { text, .. }
            | Body::Thinking { text, .. }
            | Body::Refusal { text }
            | Body::ToolCall { arguments: text, .. } => text.clear(),
            _ => {}
        }
        shape
    }

    /// The text that grows; empty for a chunk that comes whole.
    #[cfg(feature = "server")]
    pub(crate) fn growing(&self) -> &str {
        match &self.body {
            Body::Text { text, .. }
            | Body::Thinking { text, .. }
            | Body::Refusal { text }
            | Body::ToolCall { arguments: text, .. } => text,
            _ => "",
        }
    }
}

/// Some servers repeat id and name with every fragment.
fn differs(before: &str, now: &str) -> bool {
    !before.is_empty() && !now.is_empty() && before != now
}

fn take<T>(slot: &mut Option<T>, new: Option<T>) {
    if slot.is_none() {
        *slot = new;
    }
}
