//! The settings of one upstream.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::wrong::{YEAR, invalid};
use crate::error::Result;

/// A server of models, to which `/proxy/NAME` leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Upstream {
    /// Its name in paths: lower-case letters, digits, `-` and `_`.
    pub name: String,
    /// Where it is: `https://api.openai.com`. What follows `/proxy/NAME` comes after it. A well-known name needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Which dialect it speaks, where that is not its wire's own: `openai-chat/vllm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// Whether what `/v1` does not serve itself goes there. At most one does.
    pub default: bool,
    /// The variable of the environment that holds a key of it, for callers who send none of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// Whether calls of models are recorded: `yes`; `no`; `required`, a call is refused whose request cannot be stored.
    pub record: Record,
    /// What is done with calls whose client names no session: `match`, they go on with a conversation that they are seen to
    /// continue; `new`, each begins a conversation; `none`, they are not recorded.
    pub without_session: WithoutSession,
    /// Whether histories that the upstream refuses are repaired: `never`; `refused`, if it answers 400 and a rule is broken, the
    /// repaired request is sent once; `always`, a request that breaks a rule is repaired before it is sent.
    pub repair: Repair,
    /// What happens to an answer that is recorded, and whose client has gone: `drain`, it is read to its end, or until the
    /// client goes on with a part of it; `cancel`.
    pub on_disconnect: OnDisconnect,
    /// Seconds that an answer without a client is read: 600.
    pub drain_seconds: u64,
    /// Bytes that an answer without a client may have: 64 MiB.
    pub drain_bytes: u64,
    /// Whether its name may lead to addresses that are not of the internet: `10.1.2.3`. A URL that names such an address may.
    pub private_addresses: bool,
    /// Seconds in which an answer must begin: 1,800.
    pub answer_seconds: u64,
    /// Seconds in which the next piece of an answer must come: 600.
    pub idle_seconds: u64,
}

/// Whether calls of models are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Record {
    /// They are, and a call passes also if it cannot be stored.
    #[default]
    Yes,
    /// They are not.
    No,
    /// They are: what the user says is durable before it goes on.
    Required,
}

/// What is done with calls whose client names no session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WithoutSession {
    /// They go on with a conversation that they are seen to continue.
    #[default]
    Match,
    /// Each begins a conversation.
    New,
    /// They are not recorded.
    None,
}

/// Whether histories are repaired on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Repair {
    /// They are not.
    #[default]
    Never,
    /// They are when the upstream has refused one.
    Refused,
    /// They are before they are sent.
    Always,
}

/// What happens to an answer whose client has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OnDisconnect {
    /// It is read to its end.
    #[default]
    Drain,
    /// It ends.
    Cancel,
}

impl Default for Upstream {
    fn default() -> Self {
        Self {
            name: String::new(),
            url: None,
            wire: None,
            default: false,
            key_env: None,
            record: Record::default(),
            without_session: WithoutSession::default(),
            repair: Repair::default(),
            on_disconnect: OnDisconnect::default(),
            drain_seconds: 600,
            drain_bytes: 64 * 1024 * 1024,
            private_addresses: false,
            answer_seconds: 1_800,
            idle_seconds: 600,
        }
    }
}

impl Upstream {
    /// An upstream of this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    pub(crate) const fn drain(&self) -> Duration {
        Duration::from_secs(self.drain_seconds)
    }

    pub(crate) const fn answer(&self) -> Duration {
        Duration::from_secs(self.answer_seconds)
    }

    pub(crate) const fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_seconds)
    }

    /// Fails on settings of one upstream that cannot be served.
    fn check(&self) -> Result<()> {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        if self.name.is_empty() || self.name.len() > 64 || !self.name.bytes().all(is_name) {
            return Err(invalid("upstream.name", &format!("{:?}: expected a-z, 0-9, - and _, at most 64", self.name)));
        }
        match [self.drain_seconds, self.answer_seconds, self.idle_seconds].into_iter().find(|seconds| *seconds > YEAR) {
            Some(_) => Err(invalid("upstream", &format!("a time may be a year at most: {YEAR} seconds"))),
            None => Ok(()),
        }
    }
}

/// Fails on upstreams that cannot be served together.
pub(super) fn check(upstreams: &[Upstream]) -> Result<()> {
    for (number, upstream) in upstreams.iter().enumerate() {
        upstream.check()?;
        if upstreams.iter().take(number).any(|other| other.name == upstream.name) {
            return Err(invalid("upstream.name", &format!("{:?} is there twice", upstream.name)));
        }
    }
    if upstreams.iter().filter(|upstream| upstream.default).count() > 1 {
        return Err(invalid("upstream.default", "one upstream may be the default"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_are_checked() {
        let up = || Upstream::new("up");
        assert!(check(&[up(), Upstream::new("other")]).is_ok());
        let table = [
            (vec![Upstream::new("Up")], "expected a-z"),
            (vec![up(), up()], "is there twice"),
            (
                vec![Upstream { default: true, ..up() }, Upstream { default: true, ..Upstream::new("b") }],
                "one upstream",
            ),
            (vec![Upstream { drain_seconds: YEAR + 1, ..up() }], "a year at most"),
        ];
        for (upstreams, problem) in table {
            let error = check(&upstreams).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
