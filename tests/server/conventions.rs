//! What people expect of a small server of data.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::openssl::{is_there, openssl};
use crate::common::running::{Running, create_key, run};
use crate::openai::conversation;
use crate::streams::config;

#[test]
fn an_open_address_needs_keys() {
    let (exit, _, error) = run(&["--store", "memory:", "serve", "--listen", "0.0.0.0:0"], &[]);
    assert_eq!(exit, Some(2), "{error}");
    assert!(error.contains("convo keys create"), "{error}");
    let (exit, _, error) = run(&["serve", "--listen", "0.0.0.0:0", "--insecure-no-auth", "--check-config"], &[]);
    assert_eq!(exit, Some(0), "{error}");
    let (exit, _, error) =
        run(&["--store", "memory:", "serve", "--listen", "127.0.0.1:0", "--keys", "/none/keys.json"], &[]);
    assert_eq!(exit, Some(2), "{error}");
    assert!(error.contains("/none/keys.json"), "{error}");
}

#[test]
fn settings_are_checked() {
    let file = config("[limits]\nbody_bytes = 5\n");
    let (exit, printed, _) = run(&["serve", "--config", &file, "--print-config"], &[("CONVO_LIMITS__REQUESTS", "7")]);
    assert_eq!(exit, Some(0));
    assert!(printed.contains("body_bytes = 5") && printed.contains("requests = 7"), "{printed}");
    let wrong = config("[limits]\nbody = 5\n");
    let (exit, _, error) = run(&["serve", "--config", &wrong, "--check-config"], &[]);
    assert!(exit == Some(2) && error.contains("line 2") && error.contains("body"), "{error}");
    let (exit, _, error) = run(&["serve", "--check-config"], &[("CONVO_LOG__LEVEL", "loud=loud")]);
    assert!(exit == Some(2) && error.contains("log.level"), "{error}");
    for (name, value, said) in [
        ("CONVO_LIMITS__HEADER_SECONDS", "9223372036854775807", "limits.header_seconds"),
        ("CONVO_LIMITS__LEASE_SECONDS", "2", "limits.lease_seconds"),
        ("CONVO_LIMITS__STORE_THREADS", "9223372036854775807", "limits.store_threads"),
        ("CONVO_PAGES__SESSION_HOURS", "9223372036854775807", "pages.session_hours"),
        ("CONVO_SERVER__CORS_ORIGINS", "[\"https://chat.example/\"]", "https://chat.example/"),
        ("CONVO_SERVER__CORS_ORIGINS", "[\"httpx://chat.example\"]", "httpx://chat.example"),
        ("CONVO_AUTH__KEYS_FILE", "/none/keys.json", "/none/keys.json"),
    ] {
        let (exit, _, error) = run(&["serve", "--check-config"], &[(name, value)]);
        assert!(exit == Some(2) && error.contains(said), "{name}={value}: {error}");
    }
    let pem = config("-----BEGIN CERTIFICATE-----\n");
    let tls = [("CONVO_SERVER__TLS_CERTIFICATE", pem.as_str()), ("CONVO_SERVER__TLS_KEY", pem.as_str())];
    let (exit, _, error) = run(&["serve", "--check-config"], &tls);
    assert!(exit == Some(2) && error.contains(&pem), "{error}");
    let (exit, document, _) = run(&["openapi"], &[]);
    assert!(exit == Some(0) && document.contains("\"openapi\": \"3.1.0\""));
}

#[test]
fn health_needs_no_key() {
    let (server, clients) = Running::with_keys(&[("ada", "admin"), ("ada", "read")]);
    for path in ["/healthz", "/livez", "/readyz", "/version", "/openapi.json"] {
        server.client.get(path).ok();
    }
    assert_eq!(server.client.get("/metrics").code(401), "invalid_api_key");
    assert_eq!(clients[1].get("/metrics").code(403), "missing_scope");
    assert_eq!(clients[0].get("/metrics").status, 200);
    // A server that ends is alive, and not ready.
    let file = config("[server]\ndrain_seconds = 60\n");
    let server = Running::start("memory:", &["--config", &file]);
    server.signal("TERM");
    let begun = Instant::now();
    while server.client.get("/readyz").status == 200 {
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    assert_eq!(server.client.get("/readyz").of(503)["problems"], json!(["draining"]));
    server.client.get("/livez").ok();
}

#[test]
fn the_admin_address_has_health_and_metrics_alone() {
    let server = Running::start("memory:", &["--admin-listen", "127.0.0.1:0"]);
    let admin = server.admin.as_ref().unwrap();
    assert!(admin.get("/metrics").text().contains("# EOF"));
    admin.get("/readyz").ok();
    assert_eq!(admin.get("/v1/conversations").status, 404);
}

#[test]
fn keys_come_and_go() {
    let (server, clients) = Running::with_keys(&[("ada", "read")]);
    clients[0].get("/v1/conversations").ok();
    let keys = server.keys();
    let keys = keys.to_str().unwrap();
    let new = server.client.with_key(&create_key(&server.keys(), "grace", "read"));
    let noticed = |client: &crate::common::http::Client, status: u16| {
        let begun = Instant::now();
        while client.get("/v1/conversations").status != status {
            assert!(begun.elapsed() < Duration::from_secs(30), "{status}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    noticed(&new, 200);
    let (_, listed, _) = run(&["keys", "list", "--keys", keys, "--json"], &[]);
    let ids: Vec<String> = listed
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 2);
    assert!(!listed.contains("sha256") && !listed.contains(clients[0].key.as_deref().unwrap()));
    let (exit, _, _) = run(&["keys", "revoke", &ids[0], "--keys", keys], &[]);
    assert_eq!(exit, Some(0));
    noticed(&clients[0], 401);
    noticed(&new, 200);
    let (exit, _, error) = run(&["keys", "revoke", &ids[0], "--keys", keys], &[]);
    assert!(exit == Some(2) && error.contains(&ids[0]), "{error}");
    // A file that is broken takes no key away.
    std::fs::write(keys, "{").unwrap();
    let begun = Instant::now();
    while !server.log().contains("the keys cannot be read again") {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(20));
    }
    new.get("/v1/conversations").ok();
}

#[test]
fn keys_end() {
    let dir = crate::common::tempdir().unwrap();
    let keys = dir.path().join("keys.json");
    let keys = keys.to_str().unwrap();
    for expires in ["2020-01-01", "2020-01-01T00:00:00Z"] {
        let (exit, secret, _) = run(&["keys", "create", "--keys", keys, "--owner", "ada", "--expires", expires], &[]);
        assert_eq!(exit, Some(0));
        let server = Running::start("memory:", &["--keys", keys]);
        assert_eq!(server.client.with_key(secret.trim()).get("/v1/conversations").code(401), "invalid_api_key");
    }
    for wrong in [&["--expires", "soon"][..], &["--scopes", "write"], &["--owner", " "]] {
        let (exit, _, _) = run(&[&["keys", "create", "--keys", keys, "--owner", "ada"], wrong].concat(), &[]);
        assert_eq!(exit, Some(2), "{wrong:?}");
    }
}

#[test]
fn request_ids() {
    let server = Running::open();
    let of = |id: &str| {
        let answer = server.client.send("GET", "/v1/conversations", &[("x-request-id", id)], b"");
        answer.header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(of("mine-1.2_3"), "mine-1.2_3");
    for unsafe_id in ["", "a b", "a\"b", &"x".repeat(129)] {
        assert!(of(unsafe_id).starts_with("req_"), "{unsafe_id:?}");
    }
    assert_ne!(of(""), of(""));
    assert!(server.log_so_far().contains("mine-1.2_3"));
}

#[test]
fn limits_of_bodies() {
    // The earlier name of `held_bytes`.
    let file = config("[limits]\nbody_bytes = 1000\nbodies_bytes = 20000\n");
    let server = Running::start("memory:", &["--config", &file]);
    let path = format!("{}/items", conversation(&server.client));
    let item = |size: usize| json!({ "items": [{ "role": "user", "content": "x".repeat(size) }] }).to_string();
    server.client.send("POST", &path, &[], item(900).as_bytes()).ok();
    assert_eq!(server.client.send("POST", &path, &[], item(1_000).as_bytes()).code(413), "body_too_large");
    // Also without a length that is promised.
    let mut stream = server.client.connect().unwrap();
    let head = server.client.head("POST", &path, &[("transfer-encoding", "chunked"), ("connection", "close")]);
    stream.write_all(head.as_bytes()).unwrap();
    let body = item(2_000);
    stream.write_all(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes()).unwrap();
    assert_eq!(crate::common::http::read(&mut std::io::BufReader::new(stream)).unwrap().code(413), "body_too_large");
    // Many bodies that never end hold no more than they may together, and others are told to come back.
    let mut held = Vec::new();
    for _ in 0..30 {
        let mut stream = server.client.connect().unwrap();
        let head = server.client.head("POST", &path, &[("content-length", "999")]);
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&[b' '; 990]).unwrap();
        held.push(stream);
    }
    // One owner's share is three quarters: seven of them twice, as they grow. And the one that asks.
    in_flight(&server, 8);
    let answer = server.client.send("POST", &path, &[], item(500).as_bytes());
    assert_eq!((answer.code(503).as_str(), answer.header("retry-after")), ("busy", Some("1")));
    let begun = Instant::now();
    drop(held);
    while server.client.send("POST", &path, &[], item(500).as_bytes()).status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the room does not come back");
    }
    // A head that is too large is refused too.
    let large = "x".repeat(200_000);
    let answer = server.client.try_send("GET", "/v1/conversations", &[("x-large", &large)], b"");
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status == 431));
}

#[test]
fn slow_clients_are_cut_off() {
    let file = config("[limits]\nheader_seconds = 1\nidle_seconds = 1\n");
    let server = Running::start("memory:", &["--config", &file]);
    let path = format!("{}/items", conversation(&server.client));
    // A head that does not end, and a body that does not.
    let mut head = server.client.connect().unwrap();
    head.write_all(b"GET /v1/conversations HTTP/1.1\r\nx-slow: ").unwrap();
    let mut body = server.client.connect().unwrap();
    body.write_all(server.client.head("POST", &path, &[("content-length", "100")]).as_bytes()).unwrap();
    body.write_all(b"{").unwrap();
    let mut rest = Vec::new();
    // The end of the connection, by whatever name.
    let _ = head.read_to_end(&mut rest);
    let refused = crate::common::http::read(&mut std::io::BufReader::new(body)).unwrap();
    assert_eq!(refused.code(408), "slow_body");
    server.client.get(&path).ok();
}

#[test]
fn too_many_requests() {
    let file = config("[limits]\nrequests_per_second = 5\n");
    let server = Running::start("memory:", &["--config", &file]);
    let answers: Vec<_> = (0..30).map(|_| server.client.get("/v1/conversations")).collect();
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!((refused.code(429).as_str(), refused.header("retry-after")), ("rate_limit_exceeded", Some("1")));
    assert!(answers.iter().take(5).all(|answer| answer.status == 200));
    let file = config("[limits]\nrequests = 1\n");
    let server = Running::start("memory:", &["--config", &file]);
    let path = format!("{}/items", conversation(&server.client));
    // What needs no key takes no room from what needs one.
    let mut stranger = server.client.connect().unwrap();
    stranger.write_all(server.client.head("GET", "/", &[("content-length", "9")]).as_bytes()).unwrap();
    in_flight(&server, 2);
    server.client.get("/v1/conversations").ok();
    drop(stranger);
    in_flight(&server, 1);
    // Neither does a body that does not arrive.
    let mut stream = server.client.connect().unwrap();
    stream.write_all(server.client.head("POST", &path, &[("content-length", "9")]).as_bytes()).unwrap();
    in_flight(&server, 2);
    server.client.get("/v1/conversations").ok();
    let begun = Instant::now();
    let refused = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (refused, client, path) = (&refused, &server.client, &path);
        for _ in 0..8 {
            scope.spawn(move || {
                while !refused.load(Ordering::Relaxed) {
                    assert!(begun.elapsed() < Duration::from_secs(60), "none is refused");
                    let answer = client.get(path);
                    if answer.status != 200 {
                        assert_eq!((answer.code(503).as_str(), answer.header("retry-after")), ("busy", Some("1")));
                        refused.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    server.client.get("/livez").ok();
}

/// Waits until as many requests are being answered, and stay so.
fn in_flight(server: &Running, count: usize) {
    let wanted = format!("convo_requests_in_flight {count}\n");
    let (begun, mut times) = (Instant::now(), 0);
    while times < 20 {
        times = if server.client.get("/metrics").text().contains(&wanted) { times + 1 } else { 0 };
        assert!(begun.elapsed() < Duration::from_secs(30), "{}", server.client.get("/metrics").text());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn browsers_are_told_only_what_is_allowed() {
    let ask = |server: &Running, origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,x-stainless-os"),
        ];
        let answer = server.client.send("OPTIONS", "/v1/conversations", &headers, b"");
        answer.header("access-control-allow-origin").map(str::to_owned)
    };
    assert_eq!(ask(&Running::open(), "https://chat.example"), None);
    let file = config("[server]\ncors_origins = [\"https://chat.example\"]\n");
    let server = Running::start("memory:", &["--config", &file]);
    assert_eq!(ask(&server, "https://chat.example").as_deref(), Some("https://chat.example"));
    assert_eq!(ask(&server, "https://evil.example"), None);
    let answer = server.client.send("GET", "/v1/conversations", &[("origin", "https://chat.example")], b"");
    assert!(answer.header("access-control-expose-headers").unwrap().contains("x-request-id"));
}

#[test]
fn without_keys_other_sites_are_refused() {
    let file = config("[server]\ncors_origins = [\"https://chat.example\"]\n");
    let insecure = format!("{file}.insecure");
    std::fs::write(&insecure, "[auth]\ninsecure_no_auth = true\n").unwrap();
    let closed = Running::start("memory:", &["--config", &file]);
    let open = Running::start("memory:", &["--config", &insecure]);
    let (keyed, clients) = Running::with_keys(&[("ada", "read,append")]);
    let own = format!("http://{}", closed.client.address);
    // The name that was asked, the origin, and whether the server without keys answers; the one that accepts everybody; and
    // the one with keys.
    type Row<'a> = (&'a [(&'a str, &'a str)], [bool; 3]);
    let table: [Row<'_>; 9] = [
        (&[], [true, true, true]),
        (&[("host", "localhost:8080")], [true, true, true]),
        (&[("host", "[::1]:8080")], [true, true, true]),
        (&[("host", "evil.example:8080")], [false, true, true]),
        (&[("host", "evil.example"), ("origin", "http://evil.example")], [false, true, true]),
        (&[("origin", "https://evil.example")], [false, false, true]),
        (&[("origin", "null")], [false, false, true]),
        (&[("origin", "https://chat.example")], [true, false, true]),
        (&[("origin", &own)], [true, false, true]),
    ];
    let paths = ["/v1/conversations", "/api/v1/conversations", "/healthz", "/openapi.json", "/pages", "/none"];
    for (headers, expected) in table {
        for (client, is_expected) in [&closed.client, &open.client, &clients[0]].into_iter().zip(expected) {
            // As a form of another site can be sent: the browser asks nobody before it.
            let plain = [headers, &[("content-type", "text/plain")]].concat();
            let stored = |client: &crate::common::http::Client| {
                client.get("/v1/conversations").ok()["data"].as_array().unwrap().len()
            };
            let before = stored(client);
            let posted = client.send("POST", "/v1/conversations", &plain, b"{}");
            assert_eq!(posted.status == 200, is_expected, "{headers:?}: {}", posted.text());
            assert_eq!(stored(client), before + usize::from(is_expected), "{headers:?}");
            for path in paths {
                let answer = client.send("GET", path, headers, b"");
                assert_eq!(answer.status != 403, is_expected, "{path}, {headers:?}: {}", answer.text());
            }
        }
    }
    // What a page of another site loads without an origin: only a link that a person follows is answered.
    for (mode, destination, is_answered) in [
        ("no-cors", "empty", false),
        ("no-cors", "image", false),
        ("navigate", "object", false),
        ("navigate", "iframe", false),
        ("navigate", "document", true),
    ] {
        for site in ["cross-site", "same-site"] {
            let headers = [("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", destination)];
            for path in paths {
                let answer = closed.client.send("GET", path, &headers, b"");
                assert_eq!(answer.status != 403, is_answered, "{path}, {headers:?}: {}", answer.text());
                assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
                assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{path}");
            }
            assert_eq!(closed.client.send("POST", "/api/v1/admin/backup", &headers, b"{}").status, 403);
        }
    }
    let forged = closed.client.send("GET", "/v1/conversations", &[("origin", &own.replace("http", "evil"))], b"");
    assert_eq!(forged.code(403), "foreign_origin");
    let refused = closed.client.send("GET", "/v1/conversations", &[("host", "evil.example")], b"");
    assert_eq!(refused.code(403), "unknown_host");
    assert!(refused.text().contains("convo keys create"), "{}", refused.text());
    let page = closed.client.send("GET", "/pages", &[("host", "evil.example"), ("accept", "text/html")], b"");
    assert!(page.status == 403 && page.header("content-type").unwrap().starts_with("text/html"), "{page:?}");
    drop(keyed);
}

/// A program that reads the log may stand still: lines are dropped then, and no request waits for it.
#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_convo"))
        .args(["--json", "--store", "memory:", "serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let listening: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = listening["listening"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let client = crate::common::http::Client { address, key: None };
    // More lines than the pipe and the server hold.
    for _ in 0..6_000 {
        assert_eq!(client.get("/v1/conversations").status, 200);
    }
    let metrics = client.get("/metrics").text();
    let dropped = metrics.lines().find_map(|line| line.strip_prefix("convo_log_lines_dropped_total ")).unwrap();
    assert!(dropped.parse::<u64>().unwrap() > 0, "{dropped}");
    let status = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert!(status.success());
    let begun = Instant::now();
    while server.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn logs_have_no_content() {
    let server = Running::durable(&[]);
    let item = json!({ "items": [{ "role": "user", "content": "the-secret-words" }], "metadata": { "a": "the-secret-words" } });
    server.client.post("/v1/conversations", &item).ok();
    server
        .client
        .post("/v1/conversations", &json!({ "items": [{ "role": "the-secret-words", "content": "" }] }))
        .code(400);
    server.client.get("/api/v1/conversations/the-secret-words").code(404);
    let log = server.log_so_far();
    assert!(!log.contains("the-secret-words"), "{log}");
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        if line["message"] == "request" {
            assert!(
                line["request_id"].is_string() && line["status"].is_u64() && line["milliseconds"].is_f64(),
                "{line}"
            );
        }
    }
    assert!(log.contains("/v1/conversations") && log.contains("{conversation}"));
}

#[test]
fn metrics_count() {
    let server = Running::open();
    let path = conversation(&server.client);
    let item = json!({ "items": [{ "role": "user", "content": "x" }] });
    server.client.post(&format!("{path}/items"), &item).ok();
    server.client.get("/v1/conversations/conv_x").code(404);
    let orphan = r#"{"messages":[{"role":"user","content":"hi"},{"role":"tool","tool_call_id":"x","content":"y"}]}"#;
    let orphan: serde_json::Value = serde_json::from_str(orphan).unwrap();
    server.client.post("/api/v1/repair?for=openai-chat", &orphan).ok();
    let metrics = server.client.get("/metrics").text();
    for line in [
        "convo_requests_total{route=\"POST /v1/conversations/{conversation}/items\",status=\"200\"} 1",
        "convo_requests_total{route=\"GET /v1/conversations/{conversation}\",status=\"404\"} 1",
        "convo_messages_appended_total 1",
        "convo_request_seconds_count 4",
        "convo_prompt_report_lines_total{rule=\"orphan_result_removed\"} 1",
        "convo_conversations 1",
        "convo_open_files ",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

/// The program speaks TLS itself where no proxy does.
#[test]
fn tls_is_spoken() {
    if !is_there() {
        return;
    }
    let dir = crate::common::tempdir().unwrap();
    openssl(
        dir.path(),
        "req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 1 -keyout key.pem -out cert.pem",
        "",
    );
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let file =
        config(&format!("[server]\ntls_certificate = {:?}\ntls_key = {:?}\n", path("cert.pem"), path("key.pem")));
    let server = Running::start("memory:", &["--config", &file]);
    let request = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let words = format!("s_client -connect {} -quiet -ign_eof -CAfile cert.pem", server.client.address);
    let answer = openssl(dir.path(), &words, request);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // A session's cookie has a name that browsers take only over TLS, and no other counts.
    let (server, clients) = Running::with_keys_on("memory:", &[("ada", "read")], &["--config", &file]);
    let words = format!("s_client -connect {} -quiet -ign_eof -CAfile cert.pem", server.client.address);
    let form = format!("key={}", clients[0].key.as_deref().unwrap());
    let login = format!(
        "POST /pages/login HTTP/1.1\r\nhost: localhost\r\nsec-fetch-site: same-origin\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    );
    let answer = openssl(dir.path(), &words, &login);
    let (_, cookie) = answer.split_once("__Secure-convo_session=").unwrap();
    let session = cookie.split(';').next().unwrap();
    for (name, status) in [("__Secure-convo_session", "200"), ("convo_session", "401")] {
        let request =
            format!("GET /pages HTTP/1.1\r\nhost: localhost\r\ncookie: {name}={session}\r\nconnection: close\r\n\r\n");
        let answer = openssl(dir.path(), &words, &request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{name}: {answer}");
    }
}

#[test]
fn a_container_asks_for_health() {
    let mut server = Running::start("memory:", &["--admin-listen", "127.0.0.1:0"]);
    let check = |args: &[&str], environment: &[(&str, &str)]| {
        let (exit, answer, error) = run(&[&["--json", "healthcheck"], args].concat(), environment);
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer} {error}"));
        assert_eq!(answer["healthy"], exit == Some(0), "{answer}");
        (exit, answer["answer"].to_string())
    };
    let (main, admin) = (server.client.address.clone(), server.admin.as_ref().unwrap().address.clone());
    assert_eq!(check(&["--listen", &main], &[]).0, Some(0));
    assert_eq!(check(&["--live"], &[("CONVO_SERVER__LISTEN", &main)]).0, Some(0));
    // The admin address counts first; a server on all addresses is asked on this machine.
    let everywhere = admin.replace("127.0.0.1", "0.0.0.0");
    let of_admin = [("CONVO_SERVER__LISTEN", "127.0.0.1:1"), ("CONVO_SERVER__ADMIN_LISTEN", &*everywhere)];
    assert_eq!(check(&[], &of_admin).0, Some(0));
    let tls = [("CONVO_SERVER__TLS_KEY", "key.pem"), ("CONVO_SERVER__TLS_CERTIFICATE", "chain.pem")];
    let (exit, _, error) = run(&["healthcheck"], &tls);
    assert!(exit == Some(2) && error.contains("server.admin_listen"), "{error}");
    server.kill();
    let (exit, answer) = check(&["--listen", &main], &[]);
    assert!(exit == Some(1) && answer.contains(&main), "{answer}");
    let draining = Running::start("memory:", &["--config", &config("[server]\ndrain_seconds = 60\n")]);
    draining.signal("TERM");
    let begun = Instant::now();
    while draining.client.get("/readyz").status == 200 {
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    let (exit, answer) = check(&["--listen", &draining.client.address], &[]);
    assert!(exit == Some(1) && answer.contains("draining"), "{answer}");
    assert_eq!(check(&["--live", "--listen", &draining.client.address], &[]).0, Some(0));
}
