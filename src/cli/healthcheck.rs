use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use conversation_store::server::Config;
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::output::Output;
use super::serve;
use super::values::seconds;

const EXAMPLES: &str = "\
Examples:
  convo healthcheck
  convo healthcheck --config convo.toml

In a Dockerfile: HEALTHCHECK CMD [\"convo\", \"healthcheck\"]

Asks the server of the same settings on this machine: those of --config, then CONVO_TABLE__NAME in the environment. It asks \
server.admin_listen if that is set, which a server that speaks TLS needs. Exit code 0 if the server is ready, 1 if it is not, \
or does not answer: what Docker expects.";

/// Ask the server on this machine whether it is ready, as a container's HEALTHCHECK does
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The address of the server; by default that of the settings
    #[arg(long, value_name = "ADDRESS", value_parser = serve::address)]
    listen: Option<SocketAddr>,
    /// A file of settings, TOML
    #[arg(long, value_name = "FILE", env = "CONVO_CONFIG")]
    config: Option<PathBuf>,
    /// Ask only whether the process answers, not whether the store can be written
    #[arg(long)]
    live: bool,
    /// How long to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    timeout: Duration,
}

/// What the server answered.
#[derive(Serialize)]
struct Shown {
    healthy: bool,
    answer: String,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Outcome {
    let Config { server, .. } = serve::read(args.config.as_deref())?;
    let address = match (args.listen, server.admin_listen) {
        (Some(listen), _) => listen,
        (None, Some(admin)) => admin,
        (None, None) if server.tls_key.is_some() => {
            return Err(Failure::usage(
                "the server speaks TLS: its health is asked on server.admin_listen, which is not set",
            ));
        }
        (None, None) => server.listen,
    };
    let path = if args.live { "/livez" } else { "/readyz" };
    let shown = match ask(reachable(address), path, args.timeout) {
        Ok(answer) => Shown { healthy: answer.starts_with("HTTP/1.1 200 "), answer: body(&answer).to_owned() },
        Err(error) => Shown { healthy: false, answer: format!("{address}: {error}") },
    };
    output.result(&shown, || shown.answer.clone())?;
    Ok(if shown.healthy { Exit::Done } else { Exit::Findings })
}

/// Where a server that listens on all addresses is reached.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The whole answer to one request: the server closes the connection after it.
fn ask(address: SocketAddr, path: &str, timeout: Duration) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(64 * 1024).read_to_string(&mut answer)?;
    Ok(answer)
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or(answer, |(_, body)| body)
}
