//! The log itself, for a client that is a log to its own program: `convo --store http://...`.
//!
//! `call` reads and writes bodies, and decides whose conversation is meant; `writes` has what a client writes, `reads` what it
//! reads and waits for.
//!
//! **To add a call**: its structs in `remote/call.rs`, a row here, its handler, and its client in `remote/client/`.

mod call;
mod reads;
mod writes;

use self::call::{answer, asked};
use super::app::{Call, Handler, Outcome};
use super::keys::Scope;
use super::refusal::Refusal;
use super::route::Route;
use crate::remote::PROTOCOL;
use crate::remote::call::{Hello, Welcome};

pub(crate) use self::writes::interrupt_unheard;

/// A frame in, a frame out. These routes are not in the OpenAPI document: the client is of this crate.
pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/v1/log/hello", Scope::Read, Handler::Store(hello)),
    Route::post("/api/v1/log/append", Scope::Append, Handler::Store(writes::append)),
    Route::post("/api/v1/log/append_changing", Scope::Append, Handler::Store(writes::append_changing)),
    Route::post("/api/v1/log/begin", Scope::Append, Handler::Store(writes::begin)),
    Route::post("/api/v1/log/push", Scope::Append, Handler::Store(writes::push)),
    Route::post("/api/v1/log/finish", Scope::Append, Handler::Store(writes::finish)),
    Route::post("/api/v1/log/keep", Scope::Append, Handler::Store(writes::keep)),
    Route::post("/api/v1/log/drop", Scope::Append, Handler::Store(writes::drop)),
    Route::post("/api/v1/log/create", Scope::Append, Handler::Store(writes::create)),
    Route::post("/api/v1/log/change", Scope::Append, Handler::Store(writes::change)),
    Route::post("/api/v1/log/fork", Scope::Append, Handler::Store(writes::fork)),
    Route::post("/api/v1/log/delete", Scope::Delete, Handler::Store(writes::delete)),
    Route::post("/api/v1/log/redact", Scope::Delete, Handler::Store(writes::redact)),
    Route::post("/api/v1/log/sync", Scope::Append, Handler::Store(writes::sync)),
    Route::post("/api/v1/log/view", Scope::Read, Handler::Store(reads::view)),
    Route::post("/api/v1/log/read", Scope::Read, Handler::Store(reads::read)),
    Route::post("/api/v1/log/since", Scope::Read, Handler::Store(reads::since)),
    Route::post("/api/v1/log/item", Scope::Read, Handler::Store(reads::item)),
    Route::post("/api/v1/log/conversations", Scope::Read, Handler::Store(reads::conversations)),
    Route::post("/api/v1/log/unfinished", Scope::Read, Handler::Store(reads::unfinished)),
    Route::post("/api/v1/log/list", Scope::Read, Handler::Store(reads::list)),
    Route::post("/api/v1/log/wait", Scope::Read, Handler::Stream(reads::wait)),
    Route::post("/api/v1/log/size", Scope::Admin, Handler::Store(reads::size)),
];

/// Who the caller is, if both speak one version of the calls.
fn hello(call: &Call, body: &[u8]) -> Outcome {
    let (Hello { protocol }, _) = asked(body)?;
    if protocol != PROTOCOL {
        let what = "a call of the log";
        let error = crate::Error::UnsupportedVersion { what: what.to_owned(), found: protocol, supported: PROTOCOL };
        return Err(Refusal { status: 400, ..error.into() });
    }
    let lease_seconds = call.app.config.limits.lease_seconds;
    let owner = call.caller.owner.clone();
    answer(&Welcome { owner, is_admin: call::is_admin(call), lease_seconds }, &[])
}
