//! What the engine holds of conversations: read, compared, derived again.

pub(crate) mod damage;
pub(crate) mod files;
pub(crate) mod forks;
pub(crate) mod heads;
pub(crate) mod incarnation;
pub(crate) mod items;
pub(crate) mod receipts;
pub(crate) mod records;
pub(crate) mod segments;
