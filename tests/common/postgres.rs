//! A PostgreSQL server of the tests' own: one for each test binary, in a directory of its own, gone with the binary however
//! that ends.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Set, a missing server is an error, and so is a missing pooler.
pub(crate) const REQUIRED: &str = "CONVO_REQUIRE_POSTGRES";

/// Runs until its standard input ends, which is when the tests end. Each line there is a signal that ends the server, which is
/// started again. With the connection of a primary, the server is its standby. With a directory for its log of writes, that is
/// there, and not among its data. All others begin with a copy of one template.
const RUN: &str = r#"
make() {
    "$BIN/initdb" -D "$1" -U postgres --auth=trust --no-sync --locale=C -E UTF8 ${WAL:+-X "$WAL"} \
        >"$DIR/initdb.log" 2>&1 || exit 1
}
if [ -n "$PRIMARY" ]; then
    "$BIN/pg_basebackup" -d "$PRIMARY" -D "$DIR/data" -R -c fast --no-sync >"$DIR/initdb.log" 2>&1 || exit 1
elif [ -n "$WAL" ]; then
    make "$DIR/data"
else
    [ -d "$TEMPLATE" ] || make "$TEMPLATE"
    cp -a "$TEMPLATE" "$DIR/data" >>"$DIR/initdb.log" 2>&1 || exit 1
fi
run() {
    "$BIN/postgres" -D "$DIR/data" -k "$DIR" -p "$PORT" -c listen_addresses=127.0.0.1 -c max_connections=400 -c fsync=off \
        -c shared_buffers=64MB -c autovacuum_naptime=5s "$@" >>"$DIR/server.log" 2>&1 &
    server=$!
}
run "$@"
while read -r signal; do
    kill "-$signal" $server
    wait $server
    run "$@"
done
kill -QUIT $server
wait $server
# A server that was killed leaves this file, and a piece of shared memory that is named there.
left=$(sed -n '7s/.* //p' "$DIR/data/postmaster.pid")
[ -z "$left" ] || ipcrm -m "$left"
rm -rf "$DIR"
"#;

/// A server that runs.
pub(crate) struct Server {
    pub(crate) port: u16,
    dir: PathBuf,
    /// Ends the server when its input ends.
    running: Child,
}

impl Drop for Server {
    /// Waits until it has ended: nothing is written to it any more.
    fn drop(&mut self) {
        drop(self.running.stdin.take());
        let _ = self.running.wait();
    }
}

/// The server of this test binary, or why there is none.
static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();

/// The server of this test binary; or why there is none.
pub(crate) fn server() -> Result<&'static Server, String> {
    let server = SERVER.get_or_init(|| Server::start(&[]));
    match server {
        Err(reason) if std::env::var_os(REQUIRED).is_some() => panic!("{REQUIRED} is set, but {reason}"),
        server => server.as_ref().map_err(Clone::clone),
    }
}

/// Why there is no server, for tests that are skipped without one.
pub(crate) fn missing() -> Option<String> {
    server().err()
}

/// The schema that a URL of a server names.
pub(crate) fn schema(url: &str) -> &str {
    url.split_once("search_path%3D").unwrap().1.split('&').next().unwrap()
}

/// Removes all that is in a store that is closed, and leaves its tables: to make them takes long.
pub(crate) fn empty(url: &str) {
    if let Some(list) = url.strip_prefix("shards:") {
        let list = fs::read_to_string(list).unwrap();
        list.lines().filter(|line| !line.starts_with('#')).for_each(empty);
        return;
    }
    let role = || url.strip_prefix("postgres://").unwrap().split('@').next().unwrap();
    let schema = if url.contains("search_path") { schema(url) } else { role() };
    // What says whose tables they are stays, and which buckets are here.
    let sql = format!(
        "SET session_replication_role = replica;
        DO $$ DECLARE t regclass; BEGIN
            FOR t IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = '{schema}'::regnamespace AND c.relkind IN ('r', 'p')
                AND NOT c.relispartition AND c.relname NOT IN ('cs_schema', 'cs_shards', 'cs_bucket')
            LOOP EXECUTE 'DELETE FROM ' || t; END LOOP;
        END $$"
    );
    server().unwrap().run(&sql).unwrap();
}

/// The folder of the server's programs.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    folders.extend(versions.map(|version| version.path().join("bin")));
    let needed = ["initdb", "postgres", "pg_basebackup"];
    folders.into_iter().find(|folder| needed.iter().all(|program| folder.join(program).is_file()))
}

/// The user who may run the server, as root may not.
fn user() -> Option<(u32, u32)> {
    if fs::metadata("/proc/self").ok()?.uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").ok()?;
    ["postgres", "nobody"].into_iter().find_map(|name| {
        let mut fields = users.lines().find(|line| line.starts_with(&format!("{name}:")))?.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

/// Lets a command run as the user who may run servers.
pub(crate) fn as_user(command: &mut Command) -> &mut Command {
    match user() {
        Some((uid, gid)) => command.uid(uid).gid(gid),
        None => command,
    }
}

/// A port that is free.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap().port()
}

/// A name that no schema and no role has.
pub(crate) fn unused_name() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("s{}", MADE.fetch_add(1, Ordering::Relaxed))
}

impl Server {
    /// Starts one more server. `options`: what its settings are.
    pub(crate) fn start(options: &[&str]) -> Result<Self, String> {
        Self::start_from("", None, options)
    }

    /// As [`Server::start`], with its log of writes in an empty directory.
    pub(crate) fn start_with_wal(wal: &Path, options: &[&str]) -> Result<Self, String> {
        Self::start_from("", Some(wal), options)
    }

    /// Starts a standby of a server, which knows it by a name.
    pub(crate) fn standby_of(primary: &Self, name: &str, options: &[&str]) -> Result<Self, String> {
        Self::start_from(&primary.replication(name), None, options)
    }

    fn start_from(primary: &str, wal: Option<&Path>, options: &[&str]) -> Result<Self, String> {
        let bin = programs().ok_or("no PostgreSQL server is installed here")?;
        let dir = tempfile::Builder::new()
            .prefix("convo-pg")
            .tempdir_in(super::place::quick())
            .map_err(|error| error.to_string())?;
        let dir = dir.keep();
        let port = free_port();
        let mut command = Command::new("sh");
        command.args(["-c", RUN, "sh"]).args(options).env("BIN", bin).env("DIR", &dir).env("PORT", port.to_string());
        command.current_dir(&dir).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env("PRIMARY", primary).env("WAL", wal.unwrap_or(Path::new("")));
        // The template of the server that the tests share, which is there until they end; else one of its own.
        let shared = SERVER.get().and_then(|shared| shared.as_ref().ok());
        command.env("TEMPLATE", shared.map_or(&dir, |shared| &shared.dir).join("template"));
        Self::own(&dir);
        let running = as_user(&mut command).spawn().map_err(|error| error.to_string())?;
        let mut server = Self { port, dir, running };
        server.wait()?;
        Ok(server)
    }

    /// Gives a file to the user who runs servers.
    pub(crate) fn own(path: &Path) {
        if let Some((uid, gid)) = user() {
            chown(path, Some(uid), Some(gid)).unwrap();
        }
    }

    fn wait(&mut self) -> Result<(), String> {
        let until = Instant::now() + Duration::from_secs(60);
        while self.run("SELECT 1").is_err() {
            let ended = self.running.try_wait().ok().flatten().is_some();
            if ended || Instant::now() > until {
                let said =
                    ["initdb.log", "server.log"].map(|log| fs::read_to_string(self.dir.join(log)).unwrap_or_default());
                return Err(format!("the server does not start: {}", said.concat()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Ends the server with a signal, and starts it again: QUIT ends it as a crash does.
    pub(crate) fn restart(&mut self, signal: &str) {
        let file = self.dir.join("data/postmaster.pid");
        let before = fs::read_to_string(&file).ok();
        writeln!(self.running.stdin.as_mut().unwrap(), "{signal}").unwrap();
        while before.is_some() && fs::read_to_string(&file).ok() == before {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.wait().unwrap();
    }

    /// How a standby of this name connects to it.
    pub(crate) fn replication(&self, name: &str) -> String {
        format!("host=127.0.0.1 port={} user=postgres application_name={name}", self.port)
    }

    /// The process that all others of the server come from.
    pub(crate) fn pid(&self) -> u32 {
        let file = fs::read_to_string(self.dir.join("data/postmaster.pid")).unwrap();
        file.lines().next().unwrap().trim().parse().unwrap()
    }

    /// The URL of a store that nobody has made: a schema of the one database.
    pub(crate) fn url(&self) -> String {
        let name = unused_name();
        self.run(&format!("CREATE SCHEMA {name}")).unwrap();
        self.url_of(&name)
    }

    /// As [`Server::url`], by the server's socket on this machine.
    pub(crate) fn url_by_socket(&self) -> String {
        let (url, dir) = (self.url(), self.dir.display());
        let (_, options) = url.split_once('?').unwrap();
        format!("postgres:///postgres?user=postgres&host={dir}&port={}&{options}", self.port)
    }

    /// The URL of a sharded store that nobody has made: its list is written to a new directory. `options`: those of each
    /// cluster, each with its `&`.
    pub(crate) fn shards(&self, dir: &Path, clusters: usize, options: &str) -> String {
        fs::create_dir(dir).unwrap();
        let list = dir.join("clusters");
        let urls: String = (0..clusters).map(|_| self.url() + options + "\n").collect();
        fs::write(&list, format!("# the clusters of a test\n{urls}")).unwrap();
        format!("shards:{}", list.display())
    }

    /// The URL of the store in a schema.
    pub(crate) fn url_of(&self, schema: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?options=-csearch_path%3D{schema}", self.port)
    }

    /// Runs statements.
    pub(crate) fn run(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.run_in("postgres", sql)
    }

    /// The first value that a query gives, as text.
    pub(crate) fn value(&self, sql: &str) -> Result<Option<String>, tokio_postgres::Error> {
        self.value_by(&self.connection("postgres"), sql)
    }

    /// As [`Server::value`], through a pooler.
    pub(crate) fn value_by(&self, connection: &str, sql: &str) -> Result<Option<String>, tokio_postgres::Error> {
        Self::with_connection(connection, async |client| {
            let rows = client.simple_query(sql).await?;
            Ok(rows.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            }))
        })
    }

    /// Runs statements in a database.
    pub(crate) fn run_in(&self, database: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.with(database, async |client| client.batch_execute(sql).await)
    }

    /// Does something while somebody else has locked a table.
    pub(crate) fn with_locked<T: Send>(&self, table: &str, work: impl FnOnce() -> T + Send) -> T {
        self.within(&format!("LOCK TABLE {table}"), work)
    }

    /// Does something while somebody else has run a statement, and has not ended its transaction.
    pub(crate) fn within<T: Send>(&self, statement: &str, work: impl FnOnce() -> T + Send) -> T {
        let locked = self.with("postgres", async |client| {
            client.batch_execute(&format!("BEGIN; {statement}")).await?;
            // A store waits for its own runtime, which a thread of this one must not do.
            let done = std::thread::scope(|scope| scope.spawn(work).join().unwrap());
            client.batch_execute("COMMIT").await?;
            Ok(done)
        });
        locked.unwrap()
    }

    /// Does something with a connection to a database.
    pub(crate) fn with<T>(
        &self,
        database: &str,
        work: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, tokio_postgres::Error> {
        Self::with_connection(&self.connection(database), work)
    }

    fn connection(&self, database: &str) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname={database}", self.port)
    }

    fn with_connection<T>(
        connection: &str,
        work: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, tokio_postgres::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(connection, NoTls).await?;
            let driving = tokio::spawn(connection);
            let result = work(&client).await;
            drop(client);
            let _ = driving.await;
            result
        })
    }
}
