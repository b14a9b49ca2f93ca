//! The pages: the store for people, as HTML that the server writes. Each page is useful without scripts.
//!
//! `frame` (what all pages share), `escape` (what makes any text harmless), `guard` (what a browser may do with them), `assets`.
//! `list`, `conversation`, `log`, `prompt`, `repair` and `login` are the pages; `message` and `json_lines` are what several of them
//! show. They read by the same functions as the native API, so a page shows nothing that the API would not.
//!
//! **To add a page**: a row here, its handler, its template in `templates/`, and a line in `tests/pages/pages.test.mjs`.

mod assets;
mod conversation;
mod escape;
mod frame;
mod guard;
mod json_lines;
mod list;
mod log;
mod login;
mod message;
mod prompt;
mod repair;
mod words;

pub(crate) use frame::refused;
pub(crate) use guard::{Asked, not_embedded, protect, same_origin};

use super::app::Handler;
use super::keys::Scope;
use super::native::events::events;
use super::route::{Content, Route, Verb};

/// HTML out. These routes are not in the OpenAPI document: they are for people.
const fn row(verb: Verb, path: &'static str, handler: Handler) -> Route {
    const PAGE: Content = Content { media_type: frame::HTML, schema: "", example: "", optional: false };
    Route {
        verb,
        path,
        id: "",
        summary: "",
        scope: Scope::Read,
        parameters: &[],
        body: None,
        answer: PAGE,
        refusals: &[],
        handler,
    }
}

/// The pages of those who are logged in.
pub(crate) const ROUTES: &[Route] = &[
    row(Verb::Get, "/pages", Handler::Store(list::list)),
    row(Verb::Get, "/pages/conversations/{conversation}", Handler::Store(conversation::conversation)),
    row(Verb::Get, "/pages/conversations/{conversation}/events", Handler::Stream(events)),
    row(Verb::Get, "/pages/conversations/{conversation}/log", Handler::Store(log::log)),
    row(Verb::Get, "/pages/conversations/{conversation}/prompt", Handler::Store(prompt::prompt)),
    row(Verb::Get, "/pages/repair", Handler::Store(repair::form)),
    row(Verb::Post, "/pages/repair", Handler::Store(repair::repair)),
];

/// What everybody may reach.
pub(crate) const DOOR: &[Route] = &[
    row(Verb::Get, "/", Handler::Store(login::home)),
    row(Verb::Get, "/pages/login", Handler::Store(login::form)),
    row(Verb::Post, "/pages/login", Handler::Store(login::login)),
    row(Verb::Post, "/pages/logout", Handler::Store(login::logout)),
    row(Verb::Get, "/pages/assets/{asset}", Handler::Store(assets::asset)),
];
