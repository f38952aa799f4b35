//! Servers of NATS with TLS, that let in only those with credentials which an operator has given.

use crate::cluster::spawn_nats;
use crate::support::resp::{Connection, encode};
use crate::support::tls::Authority;
use crate::support::{Server, eventually, free_address};
use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair;
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A claim of NATS (a JSON web token) about `about`, signed by `by`.
fn signed(by: &KeyPair, about: &KeyPair, name: &str, what: &Value) -> String {
    let head = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let claim = json!({
        "jti": name, "name": name, "iat": 0,
        "iss": by.public_key(), "sub": about.public_key(), "nats": what,
    });
    let encoded = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let signed = format!("{}.{}", encoded(&head), encoded(&claim));
    let signature = by.sign(signed.as_bytes()).expect("a key that signs");
    format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature))
}

/// An operator of servers, and the account in which the group's stream is.
struct Operator {
    operator: KeyPair,
    account: KeyPair,
}

impl Operator {
    fn new() -> Self {
        Self {
            operator: KeyPair::new_operator(),
            account: KeyPair::new_account(),
        }
    }

    /// Writes the credentials of a new user.
    fn user(&self, path: PathBuf) -> PathBuf {
        let user = KeyPair::new_user();
        let what = json!({
            "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1,
            "pub": {}, "sub": {},
        });
        let token = signed(&self.account, &user, "node", &what);
        let seed = user.seed().expect("a key that signs");
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        fs::write(&path, text).expect("a file");
        path
    }

    /// The configuration of a server.
    fn server(&self, address: SocketAddr, folder: &Path, [file, key]: &[String; 2]) -> String {
        let system = KeyPair::new_account();
        let account = |keys, name, streams| {
            let limits = json!({
                "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
                "wildcards": true, "conn": -1, "leaf": -1, "mem_storage": streams,
                "disk_storage": streams, "streams": streams, "consumer": streams,
            });
            let what = json!({"type": "account", "version": 2, "limits": limits});
            signed(&self.operator, keys, name, &what)
        };
        let operator = signed(
            &self.operator,
            &self.operator,
            "operator",
            &json!({"type": "operator", "version": 2}),
        );
        format!(
            "listen: \"{address}\"\njetstream {{ store_dir: \"{}\" }}\n\
             tls {{ cert_file: \"{file}\", key_file: \"{key}\" }}\n\
             operator: \"{operator}\"\nsystem_account: {system}\nresolver: MEMORY\n\
             resolver_preload {{ {}: \"{}\", {system}: \"{}\" }}\n",
            folder.join("streams").display(),
            self.account.public_key(),
            account(&self.account, "group", -1),
            account(&system, "system", 0),
            system = system.public_key(),
        )
    }
}

/// A node, and the file with its log.
struct Node {
    server: Server,
    address: SocketAddr,
    log: PathBuf,
}

impl Node {
    fn new(folder: &Path, name: &str, nats: SocketAddr, flags: &[&str]) -> Self {
        let address = free_address();
        let log = folder.join(format!("{name}.log"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        command
            .args(["serve", "--port", &address.port().to_string()])
            .args(["--replicate", &format!("tls://{nats}"), "--node", name])
            .args(flags)
            .arg("--log-file")
            .arg(&log)
            .arg("--dir")
            .arg(folder.join(name));
        let server = Server::of(&mut command);
        Self {
            server,
            address,
            log,
        }
    }

    fn logs(&self, what: &str) -> bool {
        let _ = &self.server;
        fs::read_to_string(&self.log).is_ok_and(|log| log.contains(what))
    }

    fn takes_a_write(&self) -> bool {
        let Some(mut connection) = Connection::try_new(self.address) else {
            return false;
        };
        connection.send(&encode(&["set", "a", "1"]));
        connection.reply_or_end().as_deref() == Some(b"+OK\r\n")
    }
}

#[test]
fn a_node_uses_tls_and_credentials_and_says_why_it_is_not_let_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let authority = Authority::new(folder, "ours");
    let foreign = Authority::new(folder, "foreign");
    let (operator, another) = (Operator::new(), Operator::new());
    let credentials = operator.user(folder.join("right.creds"));
    let wrong = another.user(folder.join("wrong.creds"));
    let nats = free_address();
    let config = folder.join("nats.conf");
    let text = operator.server(nats, folder, &authority.sign("nats"));
    fs::write(&config, text).expect("a file");
    let _nats = spawn_nats(vec!["--config".to_owned(), config.display().to_string()]);

    let certificate = authority.certificate();
    let unknown = foreign.certificate();
    let credentials = credentials.to_str().expect("text");
    let wrong = wrong.to_str().expect("text");
    let right = ["--nats-ca", &certificate, "--nats-credentials", credentials];
    let node = Node::new(folder, "right", nats, &right);
    eventually("the node leads", || node.takes_a_write());

    let flags = ["--nats-ca", &unknown, "--nats-credentials", credentials];
    let node = Node::new(folder, "distrustful", nats, &flags);
    eventually("it does not trust the server", || {
        node.logs("lets this node in") && node.logs("UnknownIssuer")
    });
    assert!(!node.takes_a_write());

    for (name, more) in [
        ("stranger", &["--nats-credentials", wrong][..]),
        ("nobody", &[]),
    ] {
        let flags = [&["--nats-ca", certificate.as_str()], more].concat();
        let node = Node::new(folder, name, nats, &flags);
        eventually("the server does not know it", || {
            node.logs("lets this node in") && node.logs("authorization violation")
        });
        assert!(!node.takes_a_write());
    }
}

#[test]
fn a_file_of_credentials_that_is_none_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let not_there = folder.path().join("not_there");
    let empty = folder.path().join("empty");
    fs::write(&empty, "").expect("a file");
    for file in [not_there, empty] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        let output = command
            .args(["serve", "--replicate", "tls://127.0.0.1:1", "--port"])
            .arg(free_address().port().to_string())
            .args(["--node", "a", "--group", "g", "--nats-credentials"])
            .arg(&file)
            .arg("--dir")
            .arg(folder.path().join("node"))
            .stdin(Stdio::null())
            .output()
            .expect("the command runs");
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(!output.status.success(), "{said}");
        assert!(said.contains(file.to_str().expect("text")), "{said}");
    }
}
