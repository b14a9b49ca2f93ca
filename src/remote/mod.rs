//! The log over HTTP: what a client of a server asks, what it is answered, and in which bytes. Described in `docs/http-api.md`.
//!
//! A body ([`body`]) is JSON, then bytes. The JSON is one of the structs of [`call`]; the bytes are records, sealed as they
//! are on disk, so that both ends check them. Errors keep their kind and their fields ([`failure`]). [`client`] is the log of a
//! store `http://...`; the server's side is in `server/remote/`, which knows this room, as its routes are those of a server.
//!
//! **To add a call**: its structs in `call`, its row and handler in `server/remote/`, and its client in `client/`.

pub(crate) mod body;
pub(crate) mod call;
#[cfg(feature = "client")]
pub(crate) mod client;
pub(crate) mod failure;

/// The version of the calls. A server refuses a client of another one.
pub(crate) const PROTOCOL: u32 = 1;
/// Where the calls are: the path of one is this, and its name.
#[cfg(feature = "client")]
pub(crate) const PATH: &str = "/api/v1/log/";
/// The type of a body.
pub(crate) const MEDIA_TYPE: &str = "application/octet-stream";
