//! What the name of a model says about it.

/// Do the model's function calls come back with signatures? `None` where its name does not tell.
pub(super) fn wants_signatures(model: &str) -> Option<bool> {
    version(model).map(|version| version >= (3, 0))
}

/// Does the model refuse a conversation that ends with its own turn? `None` where its name does not tell.
pub(super) fn refuses_model_last(model: &str) -> Option<bool> {
    let (_, rest) = model.split_once("gemini-")?;
    let takes = version(model).is_some_and(|version| version <= (3, 1)) || rest.starts_with("pro-latest");
    Some(!takes)
}

/// How a model is asked to think.
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinks {
    /// It does not.
    Never,
    /// With a number of tokens; of some models it may be none.
    Budget { may_be_none: bool },
    /// With a level. Also models whose names say nothing.
    Level,
}

#[cfg(feature = "server")]
pub(crate) fn thinks(model: &str) -> Thinks {
    match version(model) {
        Some(version) if version < (2, 5) => Thinks::Never,
        Some(version) if version < (3, 0) => Thinks::Budget { may_be_none: !model.contains("pro") },
        _ => Thinks::Level,
    }
}

/// Major and minor, of names such as `gemini-2.5-pro`, also after a vendor's prefix.
fn version(model: &str) -> Option<(u8, u8)> {
    let (_, rest) = model.split_once("gemini-")?;
    let number = rest.split('-').next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_versions() {
        let table = [
            ("gemini-1.5-pro", Some(false), Some(false)),
            ("models/gemini-2.5-flash", Some(false), Some(false)),
            ("gemini-3-pro-preview", Some(true), Some(false)),
            ("gemini-3", Some(true), Some(false)),
            ("gemini-3.1-pro", Some(true), Some(false)),
            ("gemini-3.5-flash", Some(true), Some(true)),
            ("gemini-pro-latest", None, Some(false)),
            ("gemini-flash-latest", None, Some(true)),
            ("gpt-5", None, None),
            ("", None, None),
        ];
        for (name, signatures, last) in table {
            assert_eq!((wants_signatures(name), refuses_model_last(name)), (signatures, last), "{name}");
        }
    }

    #[cfg(feature = "server")]
    #[test]
    fn names_tell_how_a_model_thinks() {
        let table = [
            ("gemini-2.0-flash", Thinks::Never),
            ("models/gemini-2.5-flash", Thinks::Budget { may_be_none: true }),
            ("gemini-2.5-pro", Thinks::Budget { may_be_none: false }),
            ("gemini-3-pro-preview", Thinks::Level),
            ("gemini-flash-latest", Thinks::Level),
            ("", Thinks::Level),
        ];
        for (name, expected) in table {
            assert_eq!(thinks(name), expected, "{name}");
        }
    }
}
