//! The parameters after a path's `?`.

use super::refusal::Refusal;

/// The parameters, in order. A name may occur several times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn new(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// The last value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All values of a name.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The fields of an object that is given as `NAME[FIELD]=VALUE`.
    pub(crate) fn fields(&self, name: &str) -> Vec<(String, String)> {
        let field = |(known, value): &(String, String)| Some((field_of(known, name)?.to_owned(), value.clone()));
        self.0.iter().filter_map(field).collect()
    }

    /// Without the fields of a form that were left blank.
    pub(crate) fn filled(&self) -> Self {
        Self(self.0.iter().filter(|(_, value)| !value.trim().is_empty()).cloned().collect())
    }

    /// With a value for a name that has none.
    pub(crate) fn or(mut self, name: &str, value: &str) -> Self {
        if self.get(name).is_none() {
            self.0.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The value of a name that may occur once.
    fn only(&self, name: &str) -> Result<Option<&str>, Refusal> {
        match self.all(name).as_slice() {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(Refusal::invalid(name, "invalid_type", format!("Invalid '{name}': it is given more than once."))),
        }
    }

    /// A value that can be parsed.
    pub(crate) fn parse<T: std::str::FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, Refusal> {
        let read =
            |text: &str| text.parse().map_err(|_| Refusal::value(name, &format!("{text:?} is not a {expected}")));
        self.only(name)?.map(read).transpose()
    }

    /// All values of a name, each as often as it is given, and several of them with commas between.
    pub(crate) fn parses<T: std::str::FromStr>(&self, name: &str, expected: &str) -> Result<Vec<T>, Refusal> {
        let wrong = |text: &str| Refusal::value(name, &format!("{text:?}: expected {expected}"));
        let values = self.all(name).into_iter().flat_map(|value| value.split(','));
        values.map(|text| text.parse().map_err(|_| wrong(text))).collect()
    }

    /// A number between bounds.
    pub(crate) fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.only(name)? else { return Ok(None) };
        let Ok(number) = text.parse::<i128>() else {
            let message = format!("Invalid type for '{name}': expected an integer, but got {text:?} instead.");
            return Err(Refusal::invalid(name, "invalid_type", message));
        };
        let (bound, code, limit) = match number {
            _ if number < i128::from(least) => (">=", "integer_below_min_value", least),
            _ if number > i128::from(most) => ("<=", "integer_above_max_value", most),
            _ => return Ok(u64::try_from(number).ok()),
        };
        let what = if bound == ">=" { "below minimum" } else { "above maximum" };
        let message = format!(
            "Invalid '{name}': integer {what} value. Expected a value {bound} {limit}, but got {number} instead."
        );
        Err(Refusal::invalid(name, code, message))
    }

    /// Fails on a name that is not among these: a misspelt parameter must not be ignored. `NAME[]` is each field of an object.
    pub(crate) fn check(&self, known: &[&str]) -> Result<(), Refusal> {
        let is_known = |name: &str, known: &str| {
            known == name || known.strip_suffix("[]").is_some_and(|object| field_of(name, object).is_some())
        };
        match self.0.iter().find(|(name, _)| !known.iter().any(|known| is_known(name, known))) {
            None => Ok(()),
            Some((name, _)) => {
                let message = format!("Unknown parameter: '{name}'. Known are: {}.", known.join(", "));
                Err(Refusal::invalid(name, "unknown_parameter", message))
            }
        }
    }
}

/// The field that a parameter `NAME[FIELD]` is.
fn field_of<'a>(parameter: &'a str, object: &str) -> Option<&'a str> {
    parameter.strip_prefix(object)?.strip_prefix('[')?.strip_suffix(']')
}
