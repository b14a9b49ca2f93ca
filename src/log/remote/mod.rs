//! A log at the other end of a connection: what the client of a server asks, what it is answered, and in which bytes.
//! Described in `docs/http-api.md`.
//!
//! A body is a [`frame`]: JSON, then bytes. The JSON is one of the structs of [`call`]; the bytes are records, sealed as they
//! are on disk, so that both ends check them. Errors keep their kind and their fields ([`failure`]).

pub(crate) mod call;
pub(crate) mod failure;
pub(crate) mod frame;
pub(crate) mod messages;

/// The version of the calls. A server refuses a client of another one.
pub(crate) const PROTOCOL: u32 = 1;
/// Where the calls are: the path of one is this, and its name.
#[cfg(feature = "client")]
pub(crate) const PATH: &str = "/api/v1/log/";
/// The type of a body.
pub(crate) const MEDIA_TYPE: &str = "application/octet-stream";
