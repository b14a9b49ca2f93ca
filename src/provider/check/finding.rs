//! What is wrong with a request, where, and what to do about it.

use std::fmt;

use serde::Serialize;

/// One place of a request that breaks a rule.
///
/// Serialized with the keys `rule`, `level`, `place`, `problem`, `cure`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Finding {
    /// Id of the broken rule, for example `OC-07`; see [`Wire::rules`](crate::provider::Wire::rules).
    pub rule: &'static str,
    /// Whether the request is refused. For a few rules it depends on the case, and may differ from the rule's own level.
    pub level: Level,
    /// Path into the request, for example `messages[3].tool_calls`; empty for the request as a whole.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do about it.
    pub cure: &'static str,
}

impl Finding {
    /// The same, but this is what it leads to here.
    pub(crate) fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// The name of the field that it is on: the last of its place.
    pub(crate) fn field(&self) -> &str {
        self.place.rsplit('.').next().unwrap_or_default()
    }
}

/// What a broken rule leads to. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The target answers 400 or 422: its documents say so, or a recording shows it.
    Hard,
    /// People report that the target refuses it. Written `hard?`.
    #[serde(rename = "hard?")]
    Reported,
    /// Accepted, but with a loss, deprecated, or refused by some deployments only.
    Soft,
    /// A field, a type or a value that the rules do not know. Providers add some every month: it may well be accepted.
    Unknown,
}

impl Level {
    /// Whether it counts as refused: `hard` and `hard?` do.
    ///
    /// ```
    /// use conversation_store::provider::Level;
    ///
    /// assert!(Level::Hard.is_refused() && Level::Reported.is_refused());
    /// assert!(!Level::Soft.is_refused() && !Level::Unknown.is_refused());
    /// ```
    #[must_use]
    pub const fn is_refused(self) -> bool {
        matches!(self, Self::Hard | Self::Reported)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Hard => "hard",
            Self::Reported => "hard?",
            Self::Soft => "soft",
            Self::Unknown => "unknown",
        })
    }
}

/// Two lines: the place, the rule, its level and the problem; then the cure.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "request" } else { &self.place };
        write!(f, "{place}: {} ({}): {}\n  cure: {}", self.rule, self.level, self.problem, self.cure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINDING: Finding = Finding {
        rule: "OC-01",
        level: Level::Hard,
        place: String::new(),
        problem: String::new(),
        cure: "send an object",
    };

    #[test]
    fn people_read_place_rule_problem_cure() {
        let whole = Finding { problem: "not an object".into(), ..FINDING };
        assert_eq!(whole.to_string(), "request: OC-01 (hard): not an object\n  cure: send an object");
        let part = Finding { place: "messages".into(), level: Level::Soft, ..whole };
        assert_eq!(part.to_string(), "messages: OC-01 (soft): not an object\n  cure: send an object");
    }

    #[test]
    fn programs_read_five_keys() -> Result<(), serde_json::Error> {
        let wanted = r#"{"rule":"OC-01","level":"hard","place":"","problem":"","cure":"send an object"}"#;
        assert_eq!(serde_json::to_string(&FINDING)?, wanted);
        for level in [Level::Hard, Level::Reported, Level::Soft, Level::Unknown] {
            assert_eq!(serde_json::to_string(&level)?, format!("\"{level}\""));
        }
        Ok(())
    }
}
