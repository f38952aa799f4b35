//! Users in a file: a line each, as `ACL LIST` shows them.

use super::password::Password;
use super::{
    ByName, DEFAULT, LONGEST_WORD, SetError, User, Users, has_blanks, join_selectors, words,
};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Bytes of a file of users, or of a password file.
const LONGEST: u64 = 64 << 20;

/// Why a file of users or passwords is not taken. Nothing of it is.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A line is wrong.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The file is too long.
    #[error("{}: it has more than {LONGEST} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The password file holds no password.
    #[error("{}: its first line is empty; it is the password", path.display())]
    NoPassword {
        /// The file.
        path: PathBuf,
    },
}

impl FileError {
    fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Io { path, source }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let is_long = fs::metadata(path).map_err(|error| FileError::io(path, error))?;
    if is_long.len() > LONGEST {
        let path = path.to_owned();
        return Err(FileError::TooLong { path });
    }
    fs::read(path).map_err(|error| FileError::io(path, error))
}

impl fmt::Display for SetError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(word, why) => write!(out, "'{}': {why}", word.escape_ascii()),
            Self::Unmatched(word) => write!(
                out,
                "Unmatched parenthesis in acl selector starting at '{}'.",
                word.escape_ascii()
            ),
            Self::TooManyUsers(most) => write!(
                out,
                "there are {most} users already, as many as there may be (--max-users)"
            ),
        }
    }
}

/// Reads the lines of a file.
fn parse(
    path: &Path,
    text: &[u8],
    most_users: usize,
    opens_channels: bool,
) -> Result<ByName, FileError> {
    let mut by_name = BTreeMap::new();
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let wrong = |problem| FileError::Line {
            path: path.to_owned(),
            line: number + 1,
            problem,
        };
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let mut parts = words(line);
        if parts.next() != Some(b"user") {
            return Err(wrong("a line begins with 'user' and a name".to_owned()));
        }
        let name = parts
            .next()
            .ok_or_else(|| wrong("the name behind 'user' is missing".to_owned()))?;
        if let Some(problem) = name_problem(name) {
            return Err(wrong(problem));
        }
        let mut user = User::new(name, opens_channels);
        if by_name.contains_key(name) {
            let name = name.escape_ascii();
            return Err(wrong(format!(
                "Duplicate user '{name}' found. A user can only be defined once in config files"
            )));
        }
        for word in join_selectors(parts).map_err(|error| wrong(error.to_string()))? {
            let done = user.apply(&word);
            done.map_err(|why| wrong(SetError::Rule(word, why).to_string()))?;
        }
        if by_name.len() >= most_users {
            return Err(wrong(SetError::TooManyUsers(most_users).to_string()));
        }
        by_name.insert(Arc::clone(&user.name), Arc::new(user));
    }
    Ok(by_name)
}

/// The password in the first line of a file.
fn password(path: &Path) -> Result<Password, FileError> {
    let text = read(path)?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let password = line.strip_suffix(b"\r").unwrap_or(line);
    if password.is_empty() {
        let path = path.to_owned();
        return Err(FileError::NoPassword { path });
    }
    Ok(Password::of(password))
}

impl Users {
    /// Takes the users of a file, and gives the default user the password in the first line of
    /// another. From then on both can be read again, and the file of users written.
    ///
    /// # Errors
    ///
    /// [`FileError`], and then nothing has changed.
    pub(crate) fn use_files(
        &mut self,
        users: Option<PathBuf>,
        password: Option<PathBuf>,
    ) -> Result<(), FileError> {
        (self.file, self.password_file) = (users, password);
        self.load().map(drop)
    }

    /// The file of users.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether there is something to [`load`](Self::load).
    pub(crate) fn have_files(&self) -> bool {
        self.file.is_some() || self.password_file.is_some()
    }

    /// Reads the files again. Returns the names of the users who are no longer what they were.
    ///
    /// A default user who is not in the file stays as he is, so that such a file does not let
    /// anybody in.
    ///
    /// # Errors
    ///
    /// [`FileError`], and then nothing has changed.
    pub(crate) fn load(&self) -> Result<Vec<Arc<[u8]>>, FileError> {
        let (most, opens) = (self.most_users, self.opens_channels());
        let from_file = |path: &PathBuf| parse(path, &read(path)?, most, opens);
        let from_file = self.file.as_ref().map(from_file).transpose()?;
        let password = self.password_file.as_deref().map(password).transpose()?;
        Ok(self.write(|by_name| {
            let mut next = from_file.unwrap_or_else(|| by_name.clone());
            let default = next.get(DEFAULT).or_else(|| by_name.get(DEFAULT)).cloned();
            let mut default = default.unwrap_or_else(|| Arc::new(User::default_user()));
            if let Some(password) = password {
                Arc::make_mut(&mut default).set_password(password);
            }
            next.insert(Arc::clone(&default.name), default);
            let changed = by_name.iter().filter(|(name, user)| {
                next.get(*name)
                    .is_none_or(|other| other.describe() != user.describe())
            });
            let changed = changed.map(|(name, _)| Arc::clone(name)).collect();
            *by_name = next;
            changed
        }))
    }

    /// Writes all users to the file: to another beside it first, which then takes its place.
    ///
    /// # Errors
    ///
    /// [`FileError`], and then the file is as it was.
    pub(crate) fn save(&self) -> Result<(), FileError> {
        let Some(path) = &self.file else {
            return Ok(());
        };
        let mut text = Vec::new();
        // One at a time writes the file beside it, because the lock is held.
        self.read(|by_name| {
            for user in by_name.values() {
                text.extend_from_slice(b"user ");
                text.extend_from_slice(&user.describe());
                text.push(b'\n');
            }
        });
        replace(path, &text).map_err(|error| FileError::io(path, error))
    }
}

/// Puts a file with this text in the place of another, so that either the old or the new one is
/// there after a crash.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// Why a name cannot be a user's, in Redis's words where it has them.
pub(crate) fn name_problem(name: &[u8]) -> Option<String> {
    if name.is_empty() || has_blanks(name) {
        Some("Usernames can't contain spaces or null characters".to_owned())
    } else if name.len() > LONGEST_WORD {
        Some(format!("a username has at most {LONGEST_WORD} bytes"))
    } else {
        None
    }
}
