//! PgBouncer before the server of a test binary. It gives each transaction one of few connections, and ends with the binary.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::postgres::{REQUIRED, Server, as_user, free_port, server, unused_name};

/// Runs until its standard input ends.
const RUN: &str = r#"
"$BIN" "$DIR/pgbouncer.ini" >"$DIR/log" 2>&1 &
pooler=$!
read -r end
kill -KILL $pooler
wait $pooler
rm -rf "$DIR"
"#;

/// Connections to the server for each role.
pub(crate) const CONNECTIONS: usize = 4;

/// A PgBouncer that runs.
pub(crate) struct Bouncer {
    pub(crate) port: u16,
    pub(crate) server: &'static Server,
    /// Ends it when it is dropped.
    _running: Child,
}

/// The PgBouncer of this test binary; or why there is none.
pub(crate) fn bouncer() -> Result<&'static Bouncer, String> {
    static BOUNCER: OnceLock<Result<Bouncer, String>> = OnceLock::new();
    match BOUNCER.get_or_init(Bouncer::start) {
        Err(reason) if std::env::var_os(REQUIRED).is_some() => panic!("{REQUIRED} is set, but {reason}"),
        bouncer => bouncer.as_ref().map_err(Clone::clone),
    }
}

/// Why there is none, for tests that are skipped without one.
pub(crate) fn missing() -> Option<String> {
    bouncer().err()
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}

impl Bouncer {
    fn start() -> Result<Self, String> {
        let server = server()?;
        let bin = program().ok_or("PgBouncer is not installed here")?;
        let dir = tempfile::Builder::new().prefix("convo-pgbouncer").tempdir_in(super::place::quick());
        let dir = dir.map_err(|error| error.to_string())?.keep();
        let port = free_port();
        // Roles are looked up in the database. Those of stores that are closed give their connections to others.
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {dir}/users\nauth_user = postgres\n\
             pool_mode = transaction\ndefault_pool_size = {CONNECTIONS}\nmax_db_connections = 100\n\
             max_client_conn = 900\n",
            server.port,
            dir = dir.display(),
        );
        fs::write(dir.join("pgbouncer.ini"), settings).unwrap();
        fs::write(dir.join("users"), "\"postgres\" \"\"\n").unwrap();
        Server::own(&dir);
        let mut command = Command::new("sh");
        command.args(["-c", RUN]).env("BIN", bin).env("DIR", &dir);
        command.current_dir(&dir).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let running = as_user(&mut command).spawn().map_err(|error| error.to_string())?;
        let bouncer = Self { port, server, _running: running };
        let until = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > until {
                let said = fs::read_to_string(dir.join("log")).unwrap_or_default();
                return Err(format!("PgBouncer does not start: {said}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(bouncer)
    }

    /// The URL of a store that nobody has made: a role with a schema of its own, as the URL cannot name one.
    pub(crate) fn url(&self) -> String {
        let name = unused_name();
        let role = format!(
            "CREATE ROLE {name} LOGIN; CREATE SCHEMA {name} AUTHORIZATION {name}; ALTER ROLE {name} SET search_path = {name}"
        );
        self.server.run(&role).unwrap();
        format!("postgres://{name}@127.0.0.1:{}/postgres", self.port)
    }
}
