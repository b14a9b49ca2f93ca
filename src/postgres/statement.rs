//! What a statement is given: values with their types, so that it needs no preparation, and one round trip.

use tokio_postgres::types::{ToSql, Type};

/// A statement, and what it is given.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) sql: &'static str,
    values: Vec<Value>,
    /// Whether it may be sent again where nobody knows whether it took effect.
    pub(super) is_repeatable: bool,
    /// Whether a caller has to know that it may have taken effect.
    pub(super) writes: bool,
    /// Whether it is planned for its values each time, also where statements are prepared.
    pub(super) is_planned_anew: bool,
}

/// A value of a statement.
#[derive(Debug)]
pub(super) enum Value {
    Number(Option<i64>),
    Kind(i16),
    Flag(bool),
    Bytes(Option<Vec<u8>>),
    AllBytes(Option<Vec<Vec<u8>>>),
    SomeBytes(Vec<Option<Vec<u8>>>),
    Numbers(Vec<i64>),
    Flags(Vec<bool>),
    Float(f64),
}

impl Statement {
    /// A statement that changes nothing, or the same once and twice.
    pub(super) const fn repeatable(sql: &'static str) -> Self {
        Self { sql, values: Vec::new(), is_repeatable: true, writes: false, is_planned_anew: false }
    }

    /// A statement that is sent once.
    pub(super) const fn once(sql: &'static str) -> Self {
        Self { sql, values: Vec::new(), is_repeatable: false, writes: true, is_planned_anew: false }
    }

    /// Lets the caller know that it may have taken effect, though it may be sent again.
    pub(super) const fn writing(mut self) -> Self {
        self.writes = true;
        self
    }

    /// Lets it be planned for its values each time: a plan for any values would be wrong for some.
    pub(super) const fn planned_anew(mut self) -> Self {
        self.is_planned_anew = true;
        self
    }

    /// Adds a value.
    pub(super) fn with(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// The values, with their types.
    pub(super) fn typed(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.values.iter().map(Value::typed).collect()
    }
}

impl Value {
    fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Number(value) => (value, Type::INT8),
            Self::Kind(value) => (value, Type::INT2),
            Self::Flag(value) => (value, Type::BOOL),
            Self::Bytes(value) => (value, Type::BYTEA),
            Self::AllBytes(value) => (value, Type::BYTEA_ARRAY),
            Self::SomeBytes(value) => (value, Type::BYTEA_ARRAY),
            Self::Numbers(value) => (value, Type::INT8_ARRAY),
            Self::Flags(value) => (value, Type::BOOL_ARRAY),
            Self::Float(value) => (value, Type::FLOAT8),
        }
    }
}

/// A number as the database has it: none that the store counts is larger.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(Some(signed(number)))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<u64>> for Value {
    fn from(number: Option<u64>) -> Self {
        Self::Number(number.map(signed))
    }
}

impl From<i16> for Value {
    fn from(kind: i16) -> Self {
        Self::Kind(kind)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(Some(bytes.to_vec()))
    }
}

impl<const N: usize> From<&[u8; N]> for Value {
    fn from(bytes: &[u8; N]) -> Self {
        Self::Bytes(Some(bytes.to_vec()))
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl From<Option<Vec<u8>>> for Value {
    fn from(bytes: Option<Vec<u8>>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        Self::Bytes(text.map(|text| text.as_bytes().to_vec()))
    }
}

impl From<Vec<Vec<u8>>> for Value {
    fn from(bytes: Vec<Vec<u8>>) -> Self {
        Self::AllBytes(Some(bytes))
    }
}

impl From<Option<Vec<Vec<u8>>>> for Value {
    fn from(bytes: Option<Vec<Vec<u8>>>) -> Self {
        Self::AllBytes(bytes)
    }
}

impl From<Vec<Option<Vec<u8>>>> for Value {
    fn from(bytes: Vec<Option<Vec<u8>>>) -> Self {
        Self::SomeBytes(bytes)
    }
}

impl From<&[u64]> for Value {
    fn from(numbers: &[u64]) -> Self {
        Self::Numbers(numbers.iter().copied().map(signed).collect())
    }
}

impl From<Vec<i64>> for Value {
    fn from(numbers: Vec<i64>) -> Self {
        Self::Numbers(numbers)
    }
}

impl From<Vec<bool>> for Value {
    fn from(flags: Vec<bool>) -> Self {
        Self::Flags(flags)
    }
}
