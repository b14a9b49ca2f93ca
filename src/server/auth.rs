//! The caller, by the key that came with the request.

use axum::http::HeaderMap;

use super::app::{App, Caller};
use super::keys::Scope;
use super::refusal::Refusal;

/// The caller: the owner comes from the key alone.
pub(crate) fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Refusal> {
    let Some(keys) = &app.keys else {
        return Ok(Caller { key: "none".to_owned(), owner: String::new(), scopes: Scope::ALL.to_vec() });
    };
    let Some(value) = headers.get("authorization") else {
        let message = "You didn't provide a key: send it as the header `Authorization: Bearer KEY`.";
        return Err(Refusal::new(401, "invalid_api_key", message));
    };
    let text = value.to_str().unwrap_or_default();
    let secret = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let key = secret.and_then(|(_, secret)| keys.find(secret.trim()));
    let wrong = || Refusal::new(401, "invalid_api_key", "Incorrect or expired key provided.");
    let key = key.ok_or_else(wrong)?;
    Ok(Caller { key: key.id.clone(), owner: key.owner.clone(), scopes: key.scopes.clone() })
}
