//! The pages: the store for people, as HTML that the server writes. Each page is useful without scripts.
//!
//! `frame` (what all pages share, and what a browser may do with them), `words`. `list`, `conversation`, `change`, `log`,
//! `prompt` (with repairs), `request`, `usage` and `login` are the pages; `message`, `prose` (Markdown) and `json_lines` are
//! what several of them show; `sent` finds what a report is about in a request. They read by the same functions as the native
//! API, so a page shows nothing that the API would not. `viewer` shows the OpenAPI document.
//!
//! **To add a page**: a row here, its handler, its template in `templates/`, and a line in `tests/pages/pages.test.mjs`.

mod change;
mod conversation;
mod frame;
mod json_lines;
mod list;
mod log;
mod login;
mod message;
mod prompt;
mod prose;
mod request;
mod sent;
mod usage;
#[cfg(feature = "viewer")]
mod viewer;
mod words;

pub(crate) use frame::{Asked, not_embedded, protect, refused, same_origin};

use super::app::Handler;
use super::keys::Scope;
use super::native::events::events;
use super::route::Route;
use frame::for_its_owner;

/// The pages of those who are logged in. They are not in the OpenAPI document: they are for people.
pub(crate) const ROUTES: &[Route] = &[
    Route::get("/pages", Scope::Read, Handler::Store(list::list)),
    Route::get("/pages/conversations/{conversation}", Scope::Read, Handler::Store(conversation::conversation)),
    Route::get("/pages/conversations/{conversation}/change", Scope::Read, Handler::Store(change::question)),
    Route::post("/pages/conversations/{conversation}/change", Scope::Append, Handler::Store(change::change)),
    Route::post("/pages/conversations/{conversation}/stop", Scope::Append, Handler::Store(conversation::stop)),
    Route::get(
        "/pages/conversations/{conversation}/events",
        Scope::Read,
        Handler::Stream(|call, body| {
            Box::pin(async move {
                let asked = call.clone();
                let call = call.app.pool.run(move || for_its_owner(&asked)).await?;
                events(call, body).await
            })
        }),
    ),
    Route::get("/pages/conversations/{conversation}/log", Scope::Read, Handler::Store(log::log)),
    Route::get("/pages/conversations/{conversation}/prompt", Scope::Read, Handler::Store(prompt::prompt)),
    Route::get("/pages/exchanges/{exchange}/request", Scope::Read, Handler::Store(request::request)),
    Route::get("/pages/usage", Scope::Read, Handler::Store(usage::usage)),
    Route::get("/pages/repair", Scope::Read, Handler::Store(prompt::repair_form)),
    Route::post("/pages/repair", Scope::Read, Handler::Store(prompt::repair)),
];

/// What everybody may reach.
pub(crate) const DOOR: &[Route] = &[
    Route::get("/", Scope::Read, Handler::Store(login::home)),
    Route::get("/pages/login", Scope::Read, Handler::Store(login::form)),
    Route::post("/pages/login", Scope::Read, Handler::Store(login::login)),
    Route::post("/pages/logout", Scope::Read, Handler::Store(login::logout)),
    Route::get("/pages/assets/{asset}", Scope::Read, Handler::Store(frame::asset)),
    #[cfg(feature = "viewer")]
    Route::get("/docs", Scope::Read, Handler::Store(viewer::viewer)),
    #[cfg(feature = "viewer")]
    Route::get("/docs/{file}", Scope::Read, Handler::Stream(viewer::file)),
];
