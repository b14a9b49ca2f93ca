//! What the name of a model says about it.

/// A family of models, and the versions from which on its members differ.
struct Family {
    name: &'static str,
    /// The first to refuse a final assistant message.
    no_prefill: Version,
    /// The first to take messages of the role system.
    system_role: Version,
    /// The first to decide itself how much it thinks, to think unless it is asked not to, and to think always.
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "only a server sends requests of its own"))]
    thinks: [Version; 3],
}

/// Major and minor. Dates are none.
type Version = (u8, u8);

/// From reports, see AN-04 and AN-34; of thinking: platform.claude.com, thinking and migration guides.
const FAMILIES: &[Family] = &[
    Family { name: "opus", no_prefill: (4, 6), system_role: (4, 8), thinks: [(4, 6), (5, 0), (5, 5)] },
    Family { name: "sonnet", no_prefill: (4, 6), system_role: (5, 5), thinks: [(4, 6), (5, 0), (5, 5)] },
    Family { name: "haiku", no_prefill: (5, 0), system_role: (5, 0), thinks: [(5, 0), (5, 0), (99, 0)] },
    Family { name: "fable", no_prefill: (0, 0), system_role: (0, 0), thinks: [(0, 0); 3] },
    Family { name: "mythos", no_prefill: (0, 0), system_role: (5, 0), thinks: [(0, 0); 3] },
];

/// Does the model refuse a final assistant message? `None` where its name does not tell.
pub(super) fn refuses_prefill(model: &str) -> Option<bool> {
    is_from(model, |family| family.no_prefill)
}

/// Does the model take messages of the role system? `None` where its name does not tell.
pub(super) fn takes_system_role(model: &str) -> Option<bool> {
    is_from(model, |family| family.system_role)
}

/// How a model is asked to think.
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinks {
    /// It does not.
    Never,
    /// With a number of tokens. Also models whose names say nothing.
    Budget,
    /// With an effort, if it is asked to.
    IfAsked,
    /// With an effort, unless it is asked not to.
    UnlessAsked,
    /// With an effort; at least between its calls of tools.
    BetweenTools,
    /// With an effort, always.
    Always,
}

#[cfg(feature = "server")]
pub(crate) fn thinks(model: &str) -> Thinks {
    let is_from = |at: usize| is_from(model, |family| family.thinks.get(at).copied().unwrap_or((99, 0)));
    match [0, 1, 2].map(is_from) {
        [.., Some(true)] if words(model).contains(&"sonnet") => Thinks::BetweenTools,
        [.., Some(true)] => Thinks::Always,
        [_, Some(true), _] => Thinks::UnlessAsked,
        [Some(true), ..] => Thinks::IfAsked,
        [Some(false), ..] if is_before(model, (3, 7)) => Thinks::Never,
        _ => Thinks::Budget,
    }
}

/// How many tokens an answer may have where the request does not say it. The wire wants a number, and refuses one that is larger
/// than what the model can write (platform.claude.com, models overview).
pub(crate) fn answer_tokens(model: &str) -> u64 {
    let is_opus = words(model).contains(&"opus");
    match is_from(model, |_| (4, 5)) {
        Some(true) => 64_000,
        Some(false) if is_before(model, (3, 5)) => 4_096,
        Some(false) if is_before(model, (3, 7)) => 8_192,
        Some(false) if !is_opus => 64_000,
        _ => 32_000,
    }
}

/// Does the model keep to the schemas of tools that are strict? `None` where its name does not tell.
#[cfg(feature = "server")]
pub(crate) fn takes_strict(model: &str) -> Option<bool> {
    is_from(model, |_| (4, 5))
}

/// Is it one of the models whose version came first, before this one?
fn is_before(model: &str, version: Version) -> bool {
    let mut rest = words(model).into_iter().skip_while(|word| *word != "claude").skip(1);
    match rest.next() {
        Some("instant") => true,
        Some(major) => number(major).is_some_and(|major| {
            let minor = rest.next().and_then(number).unwrap_or(0);
            (major, minor) < version
        }),
        None => false,
    }
}

fn words(model: &str) -> Vec<&str> {
    model.split(|letter: char| !letter.is_ascii_alphanumeric()).collect()
}

/// Is the model of its family's `first` version, or a later one? Names read `claude-opus-4-6-20260101`, also after
/// a vendor's prefix; up to Claude 3 the version came first, `claude-3-5-sonnet`.
fn is_from(model: &str, first: impl Fn(&Family) -> Version) -> Option<bool> {
    let words = words(model);
    let after = |name: &str| words.iter().position(|word| *word == name).map(|at| words.iter().skip(at + 1));
    if after("claude").and_then(|mut rest| rest.next()).is_some_and(|next| *next == "instant" || number(next).is_some())
    {
        return Some(false);
    }
    let (family, mut rest) = FAMILIES.iter().find_map(|family| Some((family, after(family.name)?)))?;
    if first(family) == (0, 0) {
        return Some(true);
    }
    let major = rest.next().and_then(|word| number(word))?;
    let minor = rest.next().and_then(|word| number(word)).unwrap_or(0);
    Some((major, minor) >= first(family))
}

/// Of one or two digits.
fn number(word: &str) -> Option<u8> {
    (word.len() <= 2).then(|| word.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_versions() {
        let table = [
            ("claude-3-5-sonnet-20241022", Some(false), Some(false)),
            ("claude-instant-1.2", Some(false), Some(false)),
            ("claude-opus-4-20250514", Some(false), Some(false)),
            ("claude-sonnet-4-5", Some(false), Some(false)),
            ("anthropic/claude-sonnet-4.6", Some(true), Some(false)),
            ("us.anthropic.claude-opus-4-8-20260401-v1:0", Some(true), Some(true)),
            ("claude-haiku-4-5@20251001", Some(false), Some(false)),
            ("claude-sonnet-5", Some(true), Some(false)),
            ("claude-sonnet-5-5", Some(true), Some(true)),
            ("claude-fable", Some(true), Some(true)),
            ("claude-mythos-preview", Some(true), None),
            ("opus", None, None),
            ("gpt-5", None, None),
            ("", None, None),
        ];
        for (name, prefill, system) in table {
            assert_eq!((refuses_prefill(name), takes_system_role(name)), (prefill, system), "{name}");
        }
    }

    #[cfg(feature = "server")]
    #[test]
    fn names_tell_how_a_model_thinks() {
        use Thinks::{Always, BetweenTools, Budget, IfAsked, Never, UnlessAsked};
        let table = [
            ("claude-3-opus-20240229", Never, 4_096, Some(false)),
            ("claude-3-5-haiku-20241022", Never, 8_192, Some(false)),
            ("claude-3-7-sonnet-latest", Budget, 64_000, Some(false)),
            ("claude-opus-4-1-20250805", Budget, 32_000, Some(false)),
            ("claude-sonnet-4-20250514", Budget, 64_000, Some(false)),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", Budget, 64_000, Some(true)),
            ("claude-opus-4-5", Budget, 64_000, Some(true)),
            ("claude-sonnet-4-6", IfAsked, 64_000, Some(true)),
            ("claude-opus-4-8", IfAsked, 64_000, Some(true)),
            ("claude-opus-5", UnlessAsked, 64_000, Some(true)),
            ("claude-haiku-5-5", UnlessAsked, 64_000, Some(true)),
            ("claude-sonnet-5-5", BetweenTools, 64_000, Some(true)),
            ("claude-opus-5-5", Always, 64_000, Some(true)),
            ("claude-fable-5", Always, 64_000, Some(true)),
            ("claude-mythos-preview", Always, 32_000, None),
            ("kimi-k2", Budget, 32_000, None),
            ("", Budget, 32_000, None),
        ];
        for (name, expected, tokens, strict) in table {
            assert_eq!((thinks(name), answer_tokens(name), takes_strict(name)), (expected, tokens, strict), "{name}");
        }
    }
}
