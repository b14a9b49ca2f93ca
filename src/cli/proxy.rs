//! The proxy before servers of models, on this machine.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use conversation_store::server::{Config, KNOWN_UPSTREAMS, KnownUpstream, LogFormat, LogLines, Server, Upstream};
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::Output;
use super::serve::{address, bind, give_memory_back, read};
use super::text;

/// What the clients of a server take that nobody knows.
const COMPATIBLE: (&str, &str) = ("OPENAI_BASE_URL", "/v1");

/// Keep what programs say to models: point their base URL here, and nothing else changes
#[derive(Debug, clap::Args)]
#[command(after_help = help())]
pub(super) struct Args {
    /// The server of models
    name: Option<String>,
    /// Where it is, if it is not at its well-known address: https://HOST, without /v1
    #[arg(long, value_name = "URL", requires = "name")]
    url: Option<String>,
    /// The dialect that it speaks, if that is not the one of its wire: `convo targets` lists them
    #[arg(long, value_name = "TARGET", requires = "name")]
    wire: Option<String>,
    /// The address of the proxy; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
}

/// Where it listens, once it does.
#[derive(Serialize)]
struct Listening<'a> {
    listening: &'a str,
    store: &'a str,
    /// A variable of the environment, and its value for each server of models.
    export: BTreeMap<&'static str, BTreeMap<&'a str, String>>,
}

fn help() -> String {
    let names: Vec<&str> = KNOWN_UPSTREAMS.iter().map(|known| known.name).collect();
    format!(
        "\
Examples:
  convo proxy anthropic
  convo proxy openai --listen 127.0.0.1:9000
  convo proxy mine --url http://127.0.0.1:8000
  ANTHROPIC_BASE_URL=http://127.0.0.1:8080/proxy/anthropic claude

Requests and answers pass byte for byte. What was said is stored: calls, results, thinking and branches, too. Keys of providers \
pass, and are stored nowhere.

It prints the line that points a client here. Then it prints a line for each call: the conversation, what the request was to it \
(new, continued, forked, attempt), the state of the answer, tokens in and out, and the time it took. `convo show CONVERSATION` and \
the pages at / show what was said.

NAME is one of: {}; or any other name, with --url. Without NAME all of these are there. `convo serve --config FILE` has more \
settings, with [[upstream]] for each server of models. SIGTERM and SIGINT end it.",
        names.join(", ")
    )
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let mut config = settings(args)?;
    if output.is_text() {
        config.log.format = LogFormat::Calls;
    }
    Server::check(&config)?;
    let _lines = LogLines::begin(&config.log)?;
    give_memory_back();
    #[cfg(feature = "search")]
    if config.pages.search_index.is_none() {
        config.pages.search_index = super::search::beside(location)?;
    }
    let store = location.url()?.into_owned();
    let names: Vec<String> = config.upstreams.iter().map(|upstream| upstream.name.clone()).collect();
    let server = bind(location.create()?, config)?;
    let listening = format!("http://{}", server.address()?);
    let mut export: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for name in &names {
        let known = known(name);
        let (variable, path) = known.map_or(COMPATIBLE, |known| (known.variable, known.path));
        export.entry(variable).or_default().insert(&**name, format!("{listening}/proxy/{name}{path}"));
    }
    let shown = Listening { listening: &listening, store: &store, export };
    output.result(&shown, || lines(&shown))?;
    output.flush()?;
    server.run()?;
    Ok(Exit::Done)
}

fn lines(listening: &Listening<'_>) -> String {
    let Listening { listening, store, export } = listening;
    let mut lines = format!("recording into {}; the pages are at {listening}\n", text::printable(store));
    lines.push_str("point a program here, and start it:\n");
    for (variable, urls) in export {
        // One URL is shown for each variable: the others differ from it in the name alone.
        let mut names = KNOWN_UPSTREAMS.iter().map(|known| known.name).filter_map(|name| urls.get_key_value(name));
        if let Some((_, url)) = names.next().or_else(|| urls.first_key_value()) {
            lines.push_str(&format!("  export {variable}={url}\n"));
        }
        let others: Vec<&str> = names.map(|(name, _)| *name).collect();
        if !others.is_empty() {
            lines.push_str(&format!("    or with one of: {}\n", others.join(", ")));
        }
    }
    lines
}

fn known(name: &str) -> Option<&'static KnownUpstream> {
    KNOWN_UPSTREAMS.iter().find(|known| known.name == name)
}

fn settings(args: &Args) -> Result<Config, Failure> {
    let mut config = read(None)?;
    if let Some(listen) = args.listen {
        config.server.listen = listen;
    }
    config.upstreams = match &args.name {
        Some(name) => {
            let mut upstream = Upstream::new(name);
            upstream.url.clone_from(&args.url);
            upstream.wire.clone_from(&args.wire);
            upstream.default = true;
            vec![upstream]
        }
        None => KNOWN_UPSTREAMS
            .iter()
            .filter(|known| !known.url.ends_with(&format!("//{}", config.server.listen)))
            .map(|known| {
                let mut upstream = Upstream::new(known.name);
                upstream.default = known.name == "openai";
                upstream
            })
            .collect(),
    };
    Ok(config)
}
