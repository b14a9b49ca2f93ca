//! Upstreams that speak TLS, and HTTP/2; and those whose key the server holds.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Request, Response, Version};
use bytes::Bytes;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::common::http::Client;
use crate::common::openssl::{is_there, openssl};
use crate::common::running::Running;

/// What an upstream was asked.
struct Asked {
    version: Version,
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

/// A certificate of localhost, in `cert.pem` and `key.pem`, that `root.pem` vouches for.
fn make_certificates(dir: &Path) {
    std::fs::write(dir.join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    openssl(dir, "req -x509 -newkey rsa:2048 -nodes -subj /CN=root -days 1 -keyout root.key -out root.pem", "");
    openssl(dir, "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out asked.pem", "");
    let sign =
        "x509 -req -in asked.pem -CA root.pem -CAkey root.key -CAcreateserial -days 1 -extfile names -out cert.pem";
    openssl(dir, sign, "");
}

/// The events of an answer.
fn events(count: usize) -> Vec<String> {
    let piece = |at: usize| {
        let delta =
            json!({ "id": "c", "model": "m-1", "choices": [{ "index": 0, "delta": { "content": format!("{at} ") } }] });
        format!("data: {delta}\n\n")
    };
    let end = json!({ "id": "c", "model": "m-1", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let mut all: Vec<_> = (0..count).map(piece).collect();
    all.push(format!("data: {end}\n\ndata: [DONE]\n\n"));
    all
}

/// An upstream at a port that speaks TLS and these protocols. A request whose path has `cut` is answered in part.
fn serve(dir: &Path, protocols: &[&[u8]]) -> (tokio::runtime::Runtime, u16, Receiver<Asked>) {
    let certificates = CertificateDer::pem_file_iter(dir.join("cert.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(dir.join("key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = config.with_single_cert(certificates, key).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (say, asked) = channel();
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, say) = (acceptor.clone(), say.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let is_2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let service = service_fn(move |request| answer(request, say.clone()));
                let stream = TokioIo::new(stream);
                if is_2 {
                    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                        .serve_connection(stream, service)
                        .await;
                } else {
                    let _ = hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await;
                }
            });
        }
    });
    (runtime, port, asked)
}

type Answer = Response<StreamBody<Pieces>>;
type Piece = Result<Frame<Bytes>, std::io::Error>;

async fn answer(request: Request<Incoming>, say: std::sync::mpsc::Sender<Asked>) -> Result<Answer, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let is_cut = head.uri.path().contains("cut");
    let path = head.uri.path_and_query().unwrap().to_string();
    let _ = say.send(Asked { version: head.version, path, headers: head.headers, body });
    let (send, pieces) = mpsc::channel(1);
    tokio::spawn(async move {
        for event in events(if is_cut { 3 } else { 300 }) {
            if is_cut && event.contains("[DONE]") {
                let _ = send.send(Err(std::io::Error::other("cut"))).await;
                return;
            }
            if send.send(Ok(Frame::data(event.into()))).await.is_err() {
                return;
            }
        }
    });
    Ok(Response::builder().header("content-type", "text/event-stream").body(StreamBody::new(Pieces(pieces))).unwrap())
}

struct Pieces(mpsc::Receiver<Piece>);

impl futures_core::Stream for Pieces {
    type Item = Piece;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Piece>> {
        self.0.poll_recv(context)
    }
}

/// A server before that upstream, with more lines for it and these variables.
fn before(dir: &Path, port: u16, more: &str, environment: &[(&str, &str)]) -> Running {
    let file = dir.join("convo.toml");
    std::fs::write(&file, format!("[[upstream]]\nname = \"up\"\nurl = \"https://localhost:{port}\"\n{more}")).unwrap();
    Running::start_in_environment("memory:", &["--config", file.to_str().unwrap()], environment)
}

fn settled(client: &Client, exchange: &str) -> serde_json::Value {
    let begun = Instant::now();
    loop {
        let found = client.get(&format!("/api/v1/exchanges/{exchange}")).ok();
        if found["state"] != "started" {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{found}");
    }
}

#[test]
fn an_upstream_speaks_tls_and_http_2() {
    if !is_there() {
        return;
    }
    let dir = crate::common::tempdir().unwrap();
    make_certificates(dir.path());
    let root = dir.path().join("root.pem");
    let trusting = [("SSL_CERT_FILE", root.to_str().unwrap())];
    for (protocols, version) in
        [(&[&b"h2"[..], b"http/1.1"][..], Version::HTTP_2), (&[b"http/1.1"], Version::HTTP_11), (&[], Version::HTTP_11)]
    {
        let (_runtime, port, asked) = serve(dir.path(), protocols);
        let running = before(dir.path(), port, "", &trusting);
        let body =
            "{ \"model\": \"m-1\",\"stream\" :true, \"messages\":[{\"role\":\"user\",\"content\":\"h\\u00e9\"}]}";
        let headers =
            [("authorization", "Bearer theirs"), ("x-session-id", "s"), ("connection", "x-hop"), ("x-hop", "1")];
        // Several at one time: by HTTP/2 on one connection.
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (running, headers) = (&running, &headers);
                scope.spawn(move || {
                    let path = format!("/proxy/up/v1/chat/completions?n={number}");
                    let mut open = running.client.open("POST", &path, headers, body.as_bytes());
                    assert!(open.end(), "{version:?}: {}", running.log());
                    assert_eq!(open.answer.text(), events(300).concat(), "{version:?}");
                    let exchange = open.answer.header("x-convo-exchange").unwrap();
                    assert_eq!(settled(&running.client, exchange)["state"], "complete");
                });
            }
        });
        for _ in 0..8 {
            let Asked { version: came, path, headers, body: got } =
                asked.recv_timeout(Duration::from_secs(60)).unwrap();
            assert_eq!((came, got.as_ref()), (version, body.as_bytes()));
            assert!(path.starts_with("/v1/chat/completions?n="), "{path}");
            assert_eq!(headers["authorization"], "Bearer theirs");
            assert!(!headers.contains_key("x-hop") && !headers.contains_key("connection"), "{headers:?}");
        }
        // An answer that is cut there is cut here.
        let mut open =
            running.client.open("POST", "/proxy/up/cut/chat/completions", &[("x-session-id", "t")], body.as_bytes());
        assert!(!open.end(), "{version:?}");
        assert_eq!(open.answer.text(), events(3)[..3].concat(), "{version:?}");
        assert_eq!(settled(&running.client, open.answer.header("x-convo-exchange").unwrap())["state"], "cut");
    }
    // To whom nobody vouches for nothing is said.
    let (_runtime, port, asked) = serve(dir.path(), &[b"h2"]);
    let running = before(dir.path(), port, "", &[]);
    let answer = running.client.send("POST", "/proxy/up/v1/chat/completions", &[], b"{}");
    assert_eq!(answer.code(502), "upstream_unreachable");
    assert!(asked.try_recv().is_err());
}

#[test]
fn the_server_holds_the_key_for_callers_without_one() {
    if !is_there() {
        return;
    }
    let dir = crate::common::tempdir().unwrap();
    make_certificates(dir.path());
    let root = dir.path().join("root.pem");
    let (_runtime, port, asked) = serve(dir.path(), &[b"http/1.1"]);
    let environment = [("SSL_CERT_FILE", root.to_str().unwrap()), ("THEIR_KEY", "canary-of-the-server")];
    let running = before(dir.path(), port, "key_env = \"THEIR_KEY\"\n", &environment);
    let gemini = "/v1beta/models/m:generateContent";
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);
    let table: [Row<'_>; 7] = [
        ("/v1/messages", &[], "x-api-key", "canary-of-the-server"),
        ("/v1/chat/completions", &[], "authorization", "Bearer canary-of-the-server"),
        ("/v1/responses", &[], "authorization", "Bearer canary-of-the-server"),
        (gemini, &[], "x-goog-api-key", "canary-of-the-server"),
        // Who has a key of its own is served with that.
        ("/v1/messages", &[("x-api-key", "mine")], "x-api-key", "mine"),
        ("/v1/messages", &[("authorization", "Bearer mine")], "authorization", "Bearer mine"),
        ("/v1/models", &[], "authorization", "Bearer canary-of-the-server"),
    ];
    let mut told = String::new();
    for (path, headers, name, value) in table {
        let mut open = running.client.open("POST", &format!("/proxy/up{path}"), headers, b"{}");
        assert!(open.end());
        told += &format!("{:?}{}", open.answer.headers, open.answer.text());
        let Asked { headers: came, .. } = asked.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(came[name], value, "{path} {headers:?}");
        let others = ["authorization", "x-api-key", "x-goog-api-key"].into_iter().filter(|other| *other != name);
        assert!(others.clone().all(|other| !came.contains_key(other)), "{path}: {came:?}");
    }
    // One in the query is one, too.
    assert!(running.client.open("POST", &format!("/proxy/up{gemini}?key=mine"), &[], b"{}").end());
    let Asked { path, headers, .. } = asked.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(path.ends_with("?key=mine") && !headers.contains_key("x-goog-api-key"), "{path} {headers:?}");
    told += &running.log_so_far();
    told += &running.client.get("/metrics").text();
    assert!(!told.contains("canary"), "{told}");
    // A server whose variable is empty does not start.
    let file = dir.path().join("convo.toml");
    let args = ["--store", "memory:", "serve", "--config", file.to_str().unwrap()];
    let (code, _, stderr) = crate::common::running::run(&args, &[("THEIR_KEY", "")]);
    assert!(code == Some(2) && stderr.contains("THEIR_KEY"), "{code:?} {stderr}");
}
