//! What a URL says: where the database is, and how it is used.

use std::net::IpAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::error::{Error, Result};

/// The schemes of a URL.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Whether a URL names a database.
pub(crate) fn is_postgres(url: &str) -> bool {
    SCHEMES.iter().any(|scheme| url.starts_with(scheme))
}

/// Where a database is, and how it is used. Its password is in `config` alone, which never shows it.
#[derive(Debug)]
pub(super) struct Url {
    pub(super) config: Config,
    /// Host, port and database, for people.
    pub(super) shown: String,
    /// The file of certificates that are trusted, in place of the system's.
    pub(super) roots: Option<PathBuf>,
    /// Connections at most.
    pub(super) pool: usize,
    /// How long a call waits, for a connection and for its answer.
    pub(super) timeout: Duration,
    /// How long one step of a backup or a restore may take.
    pub(super) step: Duration,
    /// Whether statements are prepared, once a connection. None: they are if each connection is one of the server itself.
    pub(super) prepared: Option<bool>,
    /// How long a message stays open after its program was heard of last.
    pub(super) lease: Duration,
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let problem = |problem: &str| Error::InvalidInput(format!("a store URL of PostgreSQL: {problem}"));
        let (place, options) = text.split_once('?').unwrap_or((text, ""));
        let (mut sslmode, mut roots, mut prepared) = (None, None, None);
        let (mut pool, mut timeout, mut lease) =
            (usual_pool(processors()), Duration::from_secs(15), Duration::from_secs(60));
        let mut step = Duration::from_secs(300);
        let mut theirs = Vec::new();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or_else(|| problem("an option is NAME=VALUE"))?;
            let number = |most: u64| match value.parse::<u64>() {
                Ok(number) if (1..=most).contains(&number) => Ok(number),
                _ => Err(problem(&format!("{name}={value}: expected a number from 1 to {most}"))),
            };
            match name {
                "sslmode" => sslmode = Some(value),
                "sslrootcert" => roots = Some(PathBuf::from(value)),
                "pool" => pool = usize::try_from(number(1000)?).unwrap_or(pool),
                "prepared" => {
                    prepared = match value {
                        "true" => Some(true),
                        "false" => Some(false),
                        _ => return Err(problem(&format!("prepared={value}: expected true or false"))),
                    };
                }
                "timeout_seconds" => timeout = Duration::from_secs(number(3600)?),
                "step_seconds" => step = Duration::from_secs(number(86_400)?),
                "lease_seconds" => lease = Duration::from_secs(number(3600)?),
                _ => theirs.push(option),
            }
        }
        let plain = if theirs.is_empty() { place.to_owned() } else { format!("{place}?{}", theirs.join("&")) };
        // What the parser says may quote the URL, and the URL may hold a password.
        let mut config = Config::from_str(&plain).map_err(|_| {
            problem("it cannot be read; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE, with options after a `?`")
        })?;
        if config.get_hosts().is_empty() {
            return Err(problem("the host is missing"));
        }
        config.ssl_mode(match sslmode {
            Some("disable") => SslMode::Disable,
            // Where there is TLS, the certificate is checked, and the name of the host.
            Some("require" | "verify-full") => SslMode::Require,
            Some(other) => {
                return Err(problem(&format!("sslmode={other}: expected disable, require or verify-full")));
            }
            None if config.get_hosts().iter().all(is_here)
                && config.get_hostaddrs().iter().all(IpAddr::is_loopback) =>
            {
                SslMode::Disable
            }
            None => SslMode::Require,
        });
        if config.get_application_name().is_none() {
            config.application_name("conversation-store");
        }
        if config.get_connect_timeout().is_none() {
            // One that does not answer leaves time for the others.
            let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX);
            config.connect_timeout((timeout / hosts.max(1)).max(Duration::from_secs(1)));
        }
        let shown = shown(&config);
        Ok(Self { config, shown, roots, pool, timeout, step, prepared, lease })
    }
}

/// Processors of this machine.
pub(super) fn processors() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Connections of one process at most, where nobody says how many: a server does more at one time no faster.
fn usual_pool(processors: usize) -> usize {
    (4 * processors).clamp(8, 32)
}

/// Whether a host is this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn shown(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    let hosts: Vec<_> = hosts.collect();
    let ports: Vec<_> = config.get_ports().iter().map(|port| format!(":{port}")).collect();
    let database = config.get_dbname().map_or_else(String::new, |name| format!("/{name}"));
    format!("{}{}{database}", hosts.join(","), ports.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_database_and_how_it_is_used() {
        let url =
            "postgres://ada:secret@db.example.org:5433/chats?pool=4&lease_seconds=2&target_session_attrs=read-write";
        let url = Url::parse(url).unwrap();
        assert_eq!((url.pool, url.lease, url.shown.as_str()), (4, Duration::from_secs(2), "db.example.org:5433/chats"));
        assert_eq!(url.config.get_connect_timeout(), Some(&Duration::from_secs(15)));
        // One host that does not answer leaves time for the other two.
        let url = Url::parse("postgres://a,b,c/chats").unwrap();
        assert!(url.lease > Duration::from_secs(30), "a usual failover is shorter than a lease");
        assert_eq!(url.config.get_connect_timeout(), Some(&Duration::from_secs(5)));
        for (url, mode) in [
            ("postgres://localhost/chats", SslMode::Disable),
            ("postgres://localhost/chats?hostaddr=10.0.0.5", SslMode::Require),
        ] {
            assert_eq!(Url::parse(url).unwrap().config.get_ssl_mode(), mode, "{url}");
        }
        assert_eq!(url.config.get_ssl_mode(), SslMode::Require);
        assert!(!format!("{url:?}").contains("secret"));
        for here in ["localhost", "127.0.0.1", "[::1]"] {
            let url = Url::parse(&format!("postgresql://{here}/chats")).unwrap();
            assert_eq!(url.config.get_ssl_mode(), SslMode::Disable, "{here}");
        }
        assert_eq!(Url::parse("postgres:///chats?host=/run/pg").unwrap().config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn a_pool_is_as_large_as_the_machine_has_processors_for() {
        let found = [1, 2, 4, 8, 64].map(usual_pool);
        assert_eq!(found, [8, 8, 16, 32, 32]);
        assert_eq!(Url::parse("postgres://localhost/chats").unwrap().pool, usual_pool(processors()));
    }

    #[test]
    fn what_is_wrong_with_a_url_is_reported_without_its_password() {
        for (url, said) in [
            ("postgres://ada:secret@h/d?pool=0", "pool=0"),
            ("postgres://ada:secret@h/d?pool", "NAME=VALUE"),
            ("postgres://ada:secret@h/d?sslmode=prefer", "sslmode=prefer"),
            ("postgres://ada:secret@h:port/d", "cannot be read"),
            ("postgres://ada:secret@h/d?unheard_of=secret", "cannot be read"),
            ("postgres:///d", "host is missing"),
        ] {
            let error = Url::parse(url).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains("secret"), "{url}: {error}");
        }
    }
}
