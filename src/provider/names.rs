//! Targets by their names.

use std::str::FromStr;

use super::target::Target;
use super::{DIALECTS, WIRES};

/// There is no such target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownTarget {
    /// No wire has this name.
    #[error("unknown wire `{0}`; {known}", known = known_wires(.0))]
    Wire(String),
    /// No dialect has this name.
    #[error("unknown dialect `{name}` of {wire}; known are {known}", known = known_dialects(.wire))]
    Dialect {
        /// The name that was asked for.
        name: String,
        /// The wire it was asked of.
        wire: &'static str,
    },
    /// The dialect belongs to another wire.
    #[error("`{dialect}` is a dialect of {its_wire}, not of {wire}")]
    OtherWire {
        /// The dialect that was asked for.
        dialect: &'static str,
        /// Its wire.
        its_wire: &'static str,
        /// The wire it was asked of.
        wire: &'static str,
    },
}

impl Target {
    /// The same wire, in the dialect of this name.
    ///
    /// # Errors
    ///
    /// [`UnknownTarget`] if there is no such dialect, or if it belongs to another wire.
    pub fn with_dialect(self, name: &str) -> Result<Self, UnknownTarget> {
        let wire = self.wire().name;
        let mut named = DIALECTS.iter().filter(|dialect| dialect.name == name);
        let elsewhere = named.clone().next();
        match named.find(|dialect| dialect.wire == wire).or(elsewhere) {
            None => Err(UnknownTarget::Dialect { name: name.to_owned(), wire }),
            Some(dialect) if dialect.wire != wire => {
                Err(UnknownTarget::OtherWire { dialect: dialect.name, its_wire: dialect.wire, wire })
            }
            Some(dialect) => Ok(self.speaking(dialect)),
        }
    }
}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, UnknownTarget> {
        let (name, dialect) = text.split_once('/').map_or((text, None), |(name, dialect)| (name, Some(dialect)));
        let Some(wire) = WIRES.iter().find(|wire| wire.name == name) else {
            // What a server of that name speaks unless something else is said.
            let is_chat = |known: &&super::Dialect| known.name == name && known.wire == Self::OPENAI_CHAT.wire().name;
            return match DIALECTS.iter().find(is_chat).filter(|_| dialect.is_none()) {
                Some(dialect) => Ok(Self::OPENAI_CHAT.speaking(dialect)),
                None => Err(UnknownTarget::Wire(name.to_owned())),
            };
        };
        let target = Self::of(wire);
        dialect.map_or(Ok(target), |dialect| target.with_dialect(dialect))
    }
}

/// What to give in place of a name that no wire has: it may be a dialect's.
fn known_wires(name: &str) -> String {
    let dialects = DIALECTS.iter().filter(|dialect| dialect.name == name);
    let targets: Vec<_> = dialects.map(|dialect| format!("`{}/{name}`", dialect.wire)).collect();
    if !targets.is_empty() {
        return format!("it is a dialect: {}", targets.join(" or "));
    }
    format!("known are {}", WIRES.iter().map(|wire| wire.name).collect::<Vec<_>>().join(", "))
}

fn known_dialects(wire: &str) -> String {
    let names = DIALECTS.iter().filter(|dialect| dialect.wire == wire).map(|dialect| dialect.name);
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::openai_chat;
    use crate::provider::target::Wire;

    #[test]
    fn a_target_reads_as_it_is_written() -> Result<(), UnknownTarget> {
        let wires = WIRES.iter().map(|wire| wire.name.to_owned());
        for name in wires.chain(DIALECTS.iter().map(|dialect| format!("{}/{}", dialect.wire, dialect.name))) {
            assert_eq!(name.parse::<Target>()?.to_string(), name);
        }
        Ok(())
    }

    #[test]
    fn a_dialect_of_chat_needs_no_wire() {
        for (name, target) in
            [("deepseek", "openai-chat/deepseek"), ("ollama", "openai-chat/ollama"), ("azure", "openai-chat/azure")]
        {
            assert_eq!(name.parse::<Target>().map(|target| target.to_string()), Ok(target.to_owned()));
        }
        // Amazon has a wire of its own, too.
        let bedrock = "bedrock".parse::<Target>().err().map(|error| error.to_string());
        assert_eq!(bedrock.as_deref(), Some("unknown wire `bedrock`; it is a dialect: `anthropic/bedrock`"));
        assert!("deepseek/".parse::<Target>().is_err() && "deepseek/x".parse::<Target>().is_err());
    }

    #[test]
    fn unknown_names_are_told_what_is_known() {
        let wires = known_wires("");
        let dialects = known_dialects("openai-chat");
        assert!(wires.starts_with("known are openai-chat, ") && dialects.starts_with("deepseek, "));
        let table = [
            ("chat", format!("unknown wire `chat`; {wires}")),
            ("", format!("unknown wire ``; {wires}")),
            ("openai-chat/x", format!("unknown dialect `x` of openai-chat; known are {dialects}")),
            ("openai-chat/", format!("unknown dialect `` of openai-chat; known are {dialects}")),
        ];
        for (name, wanted) in table {
            assert_eq!(name.parse::<Target>().err().map(|error| error.to_string()), Some(wanted));
        }
    }

    #[test]
    fn a_dialect_stays_on_its_wire() {
        static OTHER: Wire = Wire { name: "other", ..openai_chat::WIRE };
        let error = Target::of(&OTHER).with_dialect("deepseek").map(|_| ());
        let message = error.map_or_else(|error| error.to_string(), |()| String::new());
        assert_eq!(message, "`deepseek` is a dialect of openai-chat, not of other");
    }
}
