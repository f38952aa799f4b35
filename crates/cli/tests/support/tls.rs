//! Certificates and clients of TLS, by `openssl`.

use super::{PATIENCE, Server, run};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// A folder with an authority, and certificates that it has signed.
pub(crate) struct Authority {
    folder: PathBuf,
}

impl Authority {
    /// Makes an authority in a folder that is made for it.
    pub(crate) fn new(parent: &Path, name: &str) -> Self {
        let folder = parent.join(name);
        fs::create_dir(&folder).expect("a folder");
        let authority = Self { folder };
        let subject = format!("/CN=Authority {name}");
        authority.request("ca", &["-subj", &subject]);
        authority
    }

    /// Signs a certificate for this machine, and returns its file and that of its key.
    pub(crate) fn sign(&self, name: &str) -> [String; 2] {
        let (authority, key) = (self.certificate(), self.file("ca.key"));
        let subject = format!("/CN={name}");
        self.request(
            name,
            &[
                "-subj",
                &subject,
                "-CA",
                &authority,
                "-CAkey",
                &key,
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ],
        );
        [format!("{name}.pem"), format!("{name}.key")].map(|file| self.file(&file))
    }

    /// The authority's own certificate.
    pub(crate) fn certificate(&self) -> String {
        self.file("ca.pem")
    }

    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.folder.join(name);
        path.to_str().expect("text").to_owned()
    }

    fn request(&self, name: &str, more: &[&str]) {
        let mut command = openssl(&["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]);
        command
            .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
            .args(["-out", &self.file(&format!("{name}.pem"))])
            .args(["-keyout", &self.file(&format!("{name}.key"))])
            .args(more);
        succeed(&mut command);
    }
}

pub(crate) fn openssl(arguments: &[&str]) -> Command {
    let mut command = Command::new("openssl");
    command.args(arguments);
    command
}

pub(crate) fn succeed(command: &mut Command) {
    let output = run(command, b"");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
}

impl Server {
    /// Where it listens with TLS.
    pub(crate) fn tls_address(&self) -> SocketAddr {
        let (before, _) = self.ready_line.split_once(" with TLS").expect("TLS");
        let word = before.rsplit(' ').next();
        word.and_then(|word| word.parse().ok()).expect("an address")
    }

    /// A client of the port with TLS: `redis-cli`, with these files.
    pub(crate) fn redis_cli(&self, authority: &Authority, files: Option<&[String; 2]>) -> Command {
        let mut command = Command::new("redis-cli");
        let address = self.tls_address();
        command
            .args(["-h", &address.ip().to_string()])
            .args(["-p", &address.port().to_string()])
            .args(["--tls", "--cacert", &authority.certificate()]);
        if let Some([certificate, key]) = files {
            command.args(["--cert", certificate, "--key", key]);
        }
        command
    }
}

/// A way through TLS for a client without: what it sends to an address comes to the server
/// encrypted, by `openssl s_client`.
pub(crate) struct Tunnel {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Tunnel {
    /// One connection to a server of the authority.
    pub(crate) fn new(to: SocketAddr, authority: &Authority, files: Option<&[String; 2]>) -> Self {
        let mut command = openssl(&["s_client", "-quiet", "-verify_return_error"]);
        command
            .args(["-connect", &to.to_string()])
            .args(["-CAfile", &authority.certificate()]);
        if let Some([certificate, key]) = files {
            command.args(["-cert", certificate, "-key", key]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl is installed: apt-get install openssl");
        let input = child.stdin.take().expect("its input is piped");
        let output = child.stdout.take().expect("its output is piped");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        thread::spawn(move || {
            let (stream, _) = listener.accept().expect("the test connects");
            stream.set_nodelay(true).expect("no delay");
            let back = stream.try_clone().expect("another descriptor");
            thread::spawn(move || {
                carry(output, &back);
                // The test may have closed.
                let _ = back.shutdown(Shutdown::Both);
            });
            carry(&stream, input);
        });
        Self { child, address }
    }

    pub(crate) fn connect(&self) -> super::resp::Connection {
        super::resp::Connection::new(self.address)
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Carries bytes until one side ends.
fn carry(mut from: impl Read, mut to: impl Write) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(read) = from.read(&mut bytes) {
        if read == 0 || to.write_all(&bytes[..read]).is_err() || to.flush().is_err() {
            break;
        }
    }
}

/// All bytes until the other side closes.
pub(crate) fn rest(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut bytes = Vec::new();
    // A reset is an end as well.
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => panic!("{error}"),
        _ => bytes,
    }
}
