//! A server that speaks TLS, and whom a client trusts.

use crate::common::openssl::{is_there, openssl};
use crate::common::running::{Running, run};

/// A client speaks to whom the system's roots vouch for, under the name that it was given; to anybody else it says nothing.
#[test]
fn a_certificate_is_checked() {
    if !is_there() {
        return;
    }
    let dir = crate::common::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(dir.path().join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    for root in ["root", "other"] {
        openssl(
            dir.path(),
            &format!("req -x509 -newkey rsa:2048 -nodes -subj /CN={root} -days 1 -keyout {root}.key -out {root}.pem"),
            "",
        );
    }
    openssl(dir.path(), "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out asked.pem", "");
    openssl(
        dir.path(),
        "x509 -req -in asked.pem -CA root.pem -CAkey root.key -CAcreateserial -days 1 -extfile names -out cert.pem",
        "",
    );
    let config = format!("[server]\ntls_certificate = {:?}\ntls_key = {:?}\n", path("cert.pem"), path("key.pem"));
    std::fs::write(dir.path().join("config.toml"), config).unwrap();
    let server = Running::start("memory:", &["--config", &path("config.toml")]);
    let port = server.client.address.rsplit(':').next().unwrap().to_owned();
    let message = path("message");
    std::fs::write(&message, r#"{"role":"user","chunks":[{"type":"text","text":"hello"}]}"#).unwrap();
    let append = |host: &str, root: &str| {
        let url = format!("https://{host}:{port}");
        run(&["--store", &url, "append", "chat", &message], &[("SSL_CERT_FILE", &path(root))])
    };
    let (code, _, stderr) = append("localhost", "root.pem");
    assert_eq!(code, Some(0), "{stderr}");
    for (host, root) in [("localhost", "other.pem"), ("127.0.0.1", "root.pem")] {
        let (code, _, stderr) = append(host, root);
        assert!(code == Some(2) && stderr.contains("certificate"), "{host}, {root}: {code:?} {stderr}");
    }
    let url = format!("https://localhost:{port}");
    let (code, shown, stderr) =
        run(&["--store", &url, "--json", "show", "chat"], &[("SSL_CERT_FILE", &path("root.pem"))]);
    assert_eq!((code, shown.lines().count()), (Some(0), 1), "{stderr}");
    // Without TLS it hears nothing that it understands.
    let (code, _, stderr) = run(&["--store", &format!("http://localhost:{port}"), "list"], &[]);
    assert_eq!(code, Some(2), "{stderr}");
}
