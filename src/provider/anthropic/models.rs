//! What the name of a model says about it.

/// A family of models, and the versions from which on its members differ.
struct Family {
    name: &'static str,
    /// The first to refuse a final assistant message.
    no_prefill: Version,
    /// The first to take messages of the role system.
    system_role: Version,
}

/// Major and minor. Dates are none.
type Version = (u8, u8);

/// From reports, see AN-04 and AN-34.
const FAMILIES: &[Family] = &[
    Family { name: "opus", no_prefill: (4, 6), system_role: (4, 8) },
    Family { name: "sonnet", no_prefill: (4, 6), system_role: (5, 5) },
    Family { name: "haiku", no_prefill: (5, 0), system_role: (5, 0) },
    Family { name: "fable", no_prefill: (0, 0), system_role: (0, 0) },
    Family { name: "mythos", no_prefill: (0, 0), system_role: (5, 0) },
];

/// Does the model refuse a final assistant message? `None` where its name does not tell.
pub(super) fn refuses_prefill(model: &str) -> Option<bool> {
    is_from(model, |family| family.no_prefill)
}

/// Does the model take messages of the role system? `None` where its name does not tell.
pub(super) fn takes_system_role(model: &str) -> Option<bool> {
    is_from(model, |family| family.system_role)
}

/// Is the model of its family's `first` version, or a later one? Names read `claude-opus-4-6-20260101`, also after
/// a vendor's prefix; up to Claude 3 the version came first, `claude-3-5-sonnet`.
fn is_from(model: &str, first: fn(&Family) -> Version) -> Option<bool> {
    let words: Vec<_> = model.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
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
}
