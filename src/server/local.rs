//! Who may ask a server that needs no keys: programs on this machine, and no page of another site.
//!
//! A browser sends what any site wants, also to `localhost`. Two facts give the site away: the name by which it found
//! the server (a site may give its own name the address 127.0.0.1), and the origin of a request that it makes itself.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::uri::Authority;

use super::app::App;
use super::refusal::Refusal;

/// Refuses what a page of another site asks for, if no key is needed.
pub(crate) fn is_welcome(app: &App, headers: &HeaderMap) -> Result<(), Refusal> {
    if app.keys.is_some() {
        return Ok(());
    }
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("(not text)"));
    let (host, origin) = (text("host"), text("origin"));
    if let Some(host) = host.filter(|host| !app.config.auth.insecure_no_auth && !is_this_machine(host)) {
        let message = format!(
            "This server needs no keys, so it is there for localhost alone, and was asked for as {host:?}. Create a key with \
             `convo keys create`, or accept everybody with --insecure-no-auth."
        );
        return Err(Refusal::new(403, "unknown_host", message));
    }
    let Some(origin) = origin else { return Ok(()) };
    if is_of_host(origin, host) || app.config.server.cors_origins.iter().any(|known| known == origin) {
        return Ok(());
    }
    let message =
        format!("Pages of {origin:?} may not use this server. `server.cors_origins` names the origins that may.");
    Err(Refusal::new(403, "foreign_origin", message))
}

/// Whether an origin is that of the host that was asked.
pub(crate) fn is_of_host(origin: &str, host: Option<&str>) -> bool {
    origin.split_once("://").is_some_and(|(_, authority)| Some(authority) == host)
}

/// Whether a name can mean nothing but this machine.
fn is_this_machine(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    match name.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => {
            let name = name.to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for host in [
            "localhost",
            "LocalHost:8080",
            "app.localhost:1",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:80",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "evil.example:8080",
            "localhost.evil.example",
            "evillocalhost",
            "10.0.0.1",
            "0.0.0.0:8080",
            "[::]:80",
            "",
            "a b",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
