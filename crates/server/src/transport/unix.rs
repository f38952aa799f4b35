//! The unix socket that the server listens on, and its file.
//!
//! The file outlives a server that was killed. A server that starts removes it only if nobody
//! listens there: it connects, and only a refusal shows that. Two servers that start at once would
//! each find the file unused, so a server holds a lock on the folder until it listens.

use super::Address;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};
use std::fmt::{self, Write};
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};

/// Clients that wait to be accepted, as many as Tokio lets wait for TCP.
const BACKLOG: i32 = 1024;

/// How long a server that starts waits for another that starts with the same folder, and how often
/// it looks.
const LOCK_TIME: Duration = Duration::from_secs(5);
const LOCK_LOOK: Duration = Duration::from_millis(10);

/// The permissions of a unix socket's file: a user who may write to it may connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketMode(u32);

impl SocketMode {
    /// The server's own user.
    pub const OWNER: Self = Self(0o700);
}

impl fmt::Display for SocketMode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:o}", self.0)
    }
}

impl FromStr for SocketMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_octal = !text.is_empty() && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        let mode = u32::from_str_radix(text, 8).ok().filter(|_| is_octal);
        mode.filter(|mode| *mode <= 0o777).map(Self).ok_or_else(|| {
            format!("'{text}' is not a mode; write 700, 770 or 777, in octal digits")
        })
    }
}

/// A unix socket to listen on.
#[derive(Clone, Debug)]
pub struct UnixSocket {
    /// Its file.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: SocketMode,
}

/// Why the server does not listen on a unix socket.
#[derive(Debug, Error)]
pub enum UnixError {
    /// The system does not let it.
    #[error("cannot listen on {}: {source} (--unix-socket)", path.display())]
    Io {
        /// The file of the socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another server listens there.
    #[error("cannot listen on {}: another server listens there (--unix-socket)", path.display())]
    InUse {
        /// The file of the socket.
        path: PathBuf,
    },
    /// There is a file of another kind.
    #[error("cannot listen on {}: it is there, and is no socket (--unix-socket)", path.display())]
    NoSocket {
        /// The file.
        path: PathBuf,
    },
}

/// A listener on a unix socket. Its file goes with it.
#[derive(Debug)]
pub(crate) struct UnixAcceptor {
    listener: UnixListener,
    /// As clients see it.
    address: Arc<str>,
    _file: SocketFile,
}

impl UnixAcceptor {
    /// Listens, watched by this thread's event loop.
    pub(crate) fn bind(socket: &UnixSocket) -> Result<Self, UnixError> {
        let path = &socket.path;
        let failed = |source| UnixError::Io {
            path: path.clone(),
            source,
        };
        let folder = path.parent().filter(|one| !one.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        // Released when the folder is closed.
        lock(&folder).map_err(failed)?;
        remove_if_stale(path)?;
        let (listener, file) = listen(socket).map_err(failed)?;
        let listener = UnixListener::from_std(listener).map_err(failed)?;
        Ok(Self {
            listener,
            address: Address::of_path(path),
            _file: file,
        })
    }

    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }

    pub(crate) fn address(&self) -> &Arc<str> {
        &self.address
    }
}

/// Waits a little for the lock of a folder.
fn lock(folder: &File) -> io::Result<()> {
    let deadline = Instant::now() + LOCK_TIME;
    while let Err(error) = flock(folder, FlockOperation::NonBlockingLockExclusive) {
        if error != Errno::WOULDBLOCK {
            // This file system has no locks. Then one server at a time should start.
            break;
        }
        if Instant::now() >= deadline {
            let text = "another process holds a lock on its folder";
            return Err(io::Error::new(ErrorKind::WouldBlock, text));
        }
        thread::sleep(LOCK_LOOK);
    }
    Ok(())
}

/// Makes the file of a socket, and listens once it has its mode: nobody can connect before.
fn listen(socket: &UnixSocket) -> io::Result<(std::os::unix::net::UnixListener, SocketFile)> {
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    listener.bind(&SockAddr::unix(&socket.path)?)?;
    let file = SocketFile::of(&socket.path)?;
    fs::set_permissions(&socket.path, Permissions::from_mode(socket.mode.0))?;
    listener.listen(BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok((listener.into(), file))
}

/// Removes the file of a socket on which nobody listens.
fn remove_if_stale(path: &Path) -> Result<(), UnixError> {
    let failed = |source| UnixError::Io {
        path: path.to_owned(),
        source,
    };
    let kind = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !kind.is_socket() {
        return Err(UnixError::NoSocket {
            path: path.to_owned(),
        });
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            tracing::warn!("{}: nobody listens there, removed", path.display());
            fs::remove_file(path).map_err(failed)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        // Also one that takes no more clients, or lets this user not in.
        _ => Err(UnixError::InUse {
            path: path.to_owned(),
        }),
    }
}

/// The file of a socket, removed when dropped unless another is in its place.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Ok(there) = fs::symlink_metadata(&self.path)
            && (there.dev(), there.ino()) == (self.device, self.inode)
        {
            // If the system does not let it, the next server finds the file unused.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A path as one word of text: bytes that no printed path has are escaped.
pub(crate) fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for part in path.as_os_str().as_bytes().utf8_chunks() {
        for letter in part.valid().chars() {
            if letter.is_whitespace() || letter.is_control() {
                let mut bytes = [0; 4];
                for byte in letter.encode_utf8(&mut bytes).bytes() {
                    // Writing to a string does not fail.
                    let _ = write!(text, "\\x{byte:02x}");
                }
            } else {
                text.push(letter);
            }
        }
        for byte in part.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal_and_for_people_only() {
        for text in ["0", "600", "700", "777"] {
            assert_eq!(text.parse::<SocketMode>().unwrap().to_string(), text);
        }
        assert_eq!("0770".parse::<SocketMode>().unwrap().to_string(), "770");
        for wrong in ["", "rwx", "8", "1000", "4755", "-7", "+7", "0o7", "7 "] {
            let error = wrong.parse::<SocketMode>().unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn a_socket_has_its_mode_and_goes_with_its_server() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let socket = UnixSocket {
            path: path.clone(),
            mode: SocketMode(0o640),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("an event loop");
        let _loop = runtime.enter();
        let bind = || UnixAcceptor::bind(&socket);
        let first = bind().expect("nobody is there");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert!(matches!(bind(), Err(UnixError::InUse { .. })));
        // As if it had been killed: the file stays.
        let kept = folder.path().join("kept");
        fs::hard_link(&path, &kept).expect("a second name");
        drop(first);
        assert!(!path.exists());
        fs::rename(&kept, &path).expect("the file is back");
        let second = bind().expect("nobody listens");
        // Another has taken its place.
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "").expect("written");
        drop(second);
        assert!(path.exists(), "it is not the server's");
        assert!(matches!(bind(), Err(UnixError::NoSocket { .. })));
    }

    #[test]
    fn a_path_is_one_word() {
        assert_eq!(escaped(Path::new("/run/x.sock")), "/run/x.sock");
        assert_eq!(escaped(Path::new("a\nb c")), "a\\x0ab\\x20c");
        let raw = std::ffi::OsStr::from_bytes(b"a\xffb");
        assert_eq!(escaped(Path::new(raw)), "a\\xffb");
    }
}
