//! A store as a whole: opened, repaired, verified, backed up.

pub(crate) mod backup;
pub(crate) mod catch_up;
pub(crate) mod interrupt;
pub(crate) mod open;
pub(crate) mod rebuild;
pub(crate) mod verify;
