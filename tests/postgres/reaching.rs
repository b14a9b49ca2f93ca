//! Ways to the server beside a plain connection: the socket of this machine, and TLS.

use std::process::{Command, Stdio};

use conversation_store::model::Message;
use conversation_store::{Error, Store};

use crate::common::postgres::Server;

/// A key that must be there where the tests are complete.
const REQUIRED: &str = "CONVO_REQUIRE_OPENSSL";

#[test]
fn a_socket_of_this_machine_leads_to_the_server() {
    let Some(server) = crate::running() else { return };
    let store = Store::open(&server.url_by_socket()).unwrap();
    store.append("chat", &[Message::user("a")]).unwrap();
    assert_eq!(store.load("chat").unwrap().messages().len(), 1);
}

/// The certificate is checked, and the name of the host: where one is wrong, nothing is sent.
#[test]
fn a_connection_is_encrypted_to_the_host_that_the_certificate_names() {
    if crate::running().is_none() {
        return;
    }
    let dir = crate::common::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let make = |name: &str| {
        let files = [path(&format!("{name}.pem")), path(&format!("{name}.key"))];
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]);
        command.args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]);
        command.args(["-out", &files[0], "-keyout", &files[1]]);
        let made = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        made.is_ok_and(|status| status.success()).then_some(files)
    };
    let (Some([certificate, key]), Some([other, _])) = (make("server"), make("other")) else {
        assert!(std::env::var_os(REQUIRED).is_none(), "openssl is needed");
        crate::common::skipped("TLS to PostgreSQL: openssl makes no keys here");
        return;
    };
    let settings = [format!("ssl_cert_file={certificate}"), format!("ssl_key_file={key}")];
    Server::own(dir.path());
    Server::own(key.as_ref());
    let server = Server::start(&["-c", "ssl=on", "-c", &settings[0], "-c", &settings[1]]).unwrap();
    let url = |host: &str, options: &str| server.url().replace("@127.0.0.1", &format!("@{host}")) + options;
    let trusted = format!("&sslmode=verify-full&sslrootcert={certificate}");
    let store = Store::open(&url("localhost", &trusted)).unwrap();
    store.append("chat", &[Message::user("a")]).unwrap();
    let encrypted = "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a ON a.pid = s.pid \
                     WHERE a.application_name = 'conversation-store'";
    let is_encrypted = server.with("postgres", async |client| client.query_one(encrypted, &[]).await).unwrap();
    assert_eq!(is_encrypted.get::<_, Option<bool>>(0), Some(true));
    let unknown = format!("&sslmode=require&sslrootcert={other}&timeout_seconds=1");
    for refused in [url("localhost", &unknown), url("127.0.0.1", &trusted)] {
        let error = Store::open(&refused).unwrap_err();
        assert!(matches!(&error, Error::Io { .. }) && error.to_string().contains("certificate"), "{error:?}");
    }
}
