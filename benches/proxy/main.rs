//! What the proxy costs: `cargo bench --bench proxy --features server`. Streams of an answer through `convo proxy`, which records
//! them on sled, beside the same through a proxy of the same library that only copies bytes, beside none, and beside the Responses
//! API over the same model, in rounds in turn: the time to the first piece of an answer and to its end, at 1, 64 and 512 streams
//! at one time, and the memory of each proxy for a stream. The streams of a round begin at one moment (`burst`), or one after the
//! other over the time of an answer (`spread`). Each asks a question of its own; with `-- same` all ask the same one. `-- 64` measures
//! only that many streams. `added p99` is what a round has more at the 99th percentile of the first piece than the round of the proxy
//! that copies: the median of the rounds, and their quartiles. The model gives a piece each 30 milliseconds. Client, model and proxies
//! run on the same cores. `CONVO_BENCH_DIR` is where the store is.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, missing_docs, reason = "a benchmark")]

use std::convert::Infallible;
use std::future::Future;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::time::{Sleep, sleep};

/// Set in the process that copies bytes: where it copies them to.
const COPIES: &str = "CONVO_BENCH_COPIES";
/// Which of the ways copies.
const COPYING: usize = 1;
const PIECES: usize = 20;
const PAUSE: Duration = Duration::from_millis(30);
/// How long an answer takes.
const ANSWER: Duration = PAUSE.saturating_mul(PIECES as u32);
/// Calls of a way, as far as the fewest and the most rounds allow: of 300, three decide the 99th percentile.
const CALLS: usize = 1_280;
const FEWEST_ROUNDS: usize = 5;
const MOST_ROUNDS: usize = 40;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if let Ok(to) = std::env::var(COPIES) {
        runtime.block_on(copy(to));
        return;
    }
    let model = runtime.block_on(model());
    let folder = std::env::var("CONVO_BENCH_DIR").map_or_else(|_| tempfile::tempdir(), tempfile::tempdir_in).unwrap();
    let mut plain = Command::new(std::env::current_exe().unwrap());
    let plain = Running::start(plain.env(COPIES, format!("http://{model}")), |line| line.to_owned());
    let mut convo = Command::new(env!("CARGO_BIN_EXE_convo"));
    let store = format!("sled:{}", folder.path().join("store").display());
    convo.args(["--store", &store, "--json", "proxy", "mine", "--listen", "127.0.0.1:0"]);
    convo.args(["--url", &format!("http://{model}")]).env("CONVO_LOG__LEVEL", "warn");
    let convo = Running::start(&mut convo, listening);
    let settings = folder.path().join("convo.toml");
    let upstream = format!("[[upstream]]\nname = \"mine\"\nurl = \"http://{model}\"\nwire = \"anthropic\"\n");
    std::fs::write(&settings, upstream).unwrap();
    let mut responses = Command::new(env!("CARGO_BIN_EXE_convo"));
    let store = format!("sled:{}", folder.path().join("responses").display());
    responses.args(["--store", &store, "--json", "serve", "--listen", "127.0.0.1:0", "--config"]).arg(&settings);
    let responses = Running::start(responses.env("CONVO_LOG__LEVEL", "warn"), listening);
    let ways = [
        ("none", format!("http://{model}/v1/messages"), None),
        ("copies", format!("{}/v1/messages", plain.url), Some(&plain)),
        ("convo", format!("{}/proxy/mine/v1/messages", convo.url), Some(&convo)),
        ("responses", format!("{}/v1/responses", responses.url), Some(&responses)),
    ];
    println!("| streams | begin | proxy | first piece p50, p99 | added p99 | end p50, p99 | memory for a stream |");
    println!("|---:|---|---|---|---|---|---|");
    let wanted: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let rows = [(1, false), (64, false), (64, true), (512, false), (512, true)];
    for (streams, spread) in rows.into_iter().filter(|(streams, _)| wanted.is_empty() || wanted.contains(streams)) {
        let mut times = ways.each_ref().map(|_| (Vec::new(), Vec::new()));
        // The 99th percentile of each round.
        let mut latest = ways.each_ref().map(|_| Vec::new());
        let mut grown = [0_u64; 4];
        let rounds = (CALLS / streams).clamp(FEWEST_ROUNDS, MOST_ROUNDS);
        for round in 0..=rounds {
            for (at, (_, url, running)) in ways.iter().enumerate() {
                let before = running.map(|running| running.reset());
                let (mut firsts, ends) = runtime.block_on(calls(url, streams, spread));
                // The first round opens connections.
                if round > 0 {
                    latest[at].push(milliseconds(&mut firsts, 0.99));
                    times[at].0.extend(firsts);
                    times[at].1.extend(ends);
                    if let (Some(running), Some(before)) = (running, before) {
                        grown[at] = grown[at].max(running.memory("VmHWM").saturating_sub(before));
                    }
                }
            }
        }
        let begin = if spread { "spread" } else { "burst" };
        for (at, (name, _, running)) in ways.iter().enumerate() {
            let shown = |times: &mut Vec<Duration>| {
                format!("{:.2} ms, {:.2} ms", milliseconds(times, 0.5), milliseconds(times, 0.99))
            };
            let (first, end) = (shown(&mut times[at].0), shown(&mut times[at].1));
            let added = match at > COPYING && streams > 1 {
                true => {
                    quartiles(latest[at].iter().zip(&latest[COPYING]).map(|(this, copied)| this - copied).collect())
                }
                false => String::new(),
            };
            let memory = running.map_or_else(String::new, |_| format!("{} KiB", grown[at] / 1024 / streams as u64));
            println!("| {streams} | {begin} | {name} | {first} | {added} | {end} | {memory} |");
        }
    }
}

/// So far up in the order of the times.
fn milliseconds(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3
}

/// The median, and the first and the third quartile.
fn quartiles(mut of: Vec<f64>) -> String {
    of.sort_unstable_by(f64::total_cmp);
    let at = |share: usize| of[(of.len() - 1) * share / 4];
    format!("{:.2} ms ({:.2} to {:.2})", at(2), at(1), at(3))
}

/// Where `convo` listens, as its first line says.
fn listening(line: &str) -> String {
    let said: serde_json::Value = serde_json::from_str(line).unwrap();
    said["listening"].as_str().unwrap().to_owned()
}

/// A proxy in a process of its own.
struct Running {
    child: Child,
    url: String,
}

impl Running {
    fn start(command: &mut Command, url: impl Fn(&str) -> String) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, url: url(line.trim()) }
    }

    /// Forgets its highest memory: what it takes now.
    fn reset(&self) -> u64 {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
        self.memory("VmRSS")
    }

    /// Bytes.
    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// So many calls at one time: the times to the first piece and to the end of each.
async fn calls(url: &str, streams: usize, spread: bool) -> (Vec<Duration>, Vec<Duration>) {
    let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let uri: Uri = url.parse().unwrap();
    let running: Vec<_> = (0..streams)
        .map(|stream| {
            let (client, uri) = (client.clone(), uri.clone());
            let wait = if spread { ANSWER * stream as u32 / streams as u32 } else { Duration::ZERO };
            tokio::spawn(async move {
                sleep(wait).await;
                call(&client, uri).await
            })
        })
        .collect();
    let mut times = Vec::new();
    for running in running {
        times.push(running.await.unwrap());
    }
    times.into_iter().unzip()
}

async fn call(client: &Client<HttpConnector, Full<Bytes>>, uri: Uri) -> (Duration, Duration) {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let same = std::env::args().any(|arg| arg == "same");
    let number = if same { 0 } else { ASKED.fetch_add(1, Ordering::Relaxed) };
    let text = format!("What is in folder {number}? ").repeat(40);
    let body = if uri.path().ends_with("/responses") {
        serde_json::json!({ "model": "mine/m-1", "max_output_tokens": 100, "stream": true, "input": text })
    } else {
        let messages = [serde_json::json!({ "role": "user", "content": text })];
        serde_json::json!({ "model": "m-1", "max_tokens": 100, "stream": true, "messages": messages })
    };
    let request = Request::post(uri).header("x-api-key", "sk-1").body(Full::from(body.to_string())).unwrap();
    let begun = Instant::now();
    let mut answer = client.request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut first = None;
    while let Some(frame) = answer.frame().await {
        frame.unwrap();
        first.get_or_insert_with(|| begun.elapsed());
    }
    (first.unwrap(), begun.elapsed())
}

/// A stream of Anthropic Messages, a piece at a time.
struct Answer {
    given: usize,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(pause) = &mut self.pause {
            if pause.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.pause = None;
        }
        let at = self.given;
        self.given += 1;
        let event = match at {
            0 => {
                let message = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[],"usage":{"input_tokens":9,"output_tokens":1}}"#;
                let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
                format!("data: {{\"type\":\"message_start\",\"message\":{message}}}\n\ndata: {start}\n\n")
            }
            PIECES => {
                let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":20}}"#;
                format!(
                    "data: {{\"type\":\"content_block_stop\",\"index\":0}}\n\ndata: {end}\n\ndata: {{\"type\":\"message_stop\"}}\n\n"
                )
            }
            at if at > PIECES => return Poll::Ready(None),
            _ => {
                let delta = r#"{"type":"text_delta","text":" a few words of it"}"#;
                format!("data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{delta}}}\n\n")
            }
        };
        self.pause = Some(Box::pin(sleep(PAUSE)));
        Poll::Ready(Some(Ok(Frame::data(event.into()))))
    }
}

/// A model, and where it is.
async fn model() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, |request: Request<Incoming>| async move {
        request.into_body().collect().await.unwrap();
        let answer = Response::builder().header("content-type", "text/event-stream");
        answer.body(Answer { given: 0, pause: None }).unwrap()
    }));
    address
}

/// Copies what comes to another server, and its answer back.
async fn copy(to: String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    let client: Client<HttpConnector, Incoming> = Client::builder(TokioExecutor::new()).build_http();
    serve(listener, move |mut request: Request<Incoming>| {
        let client = client.clone();
        *request.uri_mut() = format!("{to}{}", request.uri().path()).parse().unwrap();
        async move { client.request(request).await.unwrap() }
    })
    .await;
}

async fn serve<B, F>(listener: TcpListener, answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static)
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync,
    F: Future<Output = Response<B>> + Send,
{
    let answer = Arc::new(answer);
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let answer = Arc::clone(&answer);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let answered = answer(request);
                async { Ok::<_, Infallible>(answered.await) }
            });
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
