//! What the tests of this folder share with those of `tests/`: a PostgreSQL server of their own.

#[path = "../../tests/common/place.rs"]
mod place;
#[path = "../../tests/common/postgres.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
pub(super) mod postgres;
#[cfg(unix)]
#[path = "../../tests/postgres/proxy.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
pub(super) mod proxy;
