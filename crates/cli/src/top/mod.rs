//! `tremula top`: a server watched in a terminal, over the Redis protocol.
//!
//! | file | holds |
//! |---|---|
//! | `sample` | what a server says of itself at one moment |
//! | `model` | the difference of two samples, and what the user has chosen to see |
//! | `view` | how that looks |

mod model;
mod sample;
mod view;

use clap::Args;
use model::{Action, Model, Page};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use sample::Sample;
use std::env;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;
use tremula_server::CertificateError;
use tremula_server::transfer::{Address, Client, TransferError, Trust};

/// How wide plain text is.
const PLAIN_WIDTH: u16 = 120;

/// Watch a server: throughput, latency, memory, clients, log, group, slow log, index and its
/// hottest leaves. It only asks (INFO, SHAPE, SLOWLOG GET, CLIENT LIST); over TLS with --tls-ca.
#[derive(Args)]
pub(crate) struct Top {
    /// The server's host
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    host: String,
    /// Its port
    #[arg(short, long, value_name = "PORT", default_value_t = 6380)]
    port: u16,
    /// The user to log in as [default: the server's default user]
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,
    /// File whose first line is the user's password [default: none; the variable REDISCLI_AUTH of
    /// the environment, if it is set]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// File with the authorities whose servers are trusted, in PEM form: the connection is over TLS
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// File with the certificate of the user, for a server that asks for one
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_key"])]
    tls_cert: Option<PathBuf>,
    /// File with the private key of this certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Seconds from one look at the server to the next, from 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_interval)]
    interval: Duration,
    /// Print one frame as text, and end
    #[arg(long)]
    once: bool,
    /// Print frames as text, also on a terminal; without a terminal this is the default
    #[arg(long)]
    plain: bool,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("it is no number of seconds from 0.1 to 3600".to_owned()),
    }
}

/// Why `tremula top` ends before it is asked to.
#[derive(Debug, Error)]
enum TopError {
    #[error("{}: {source}", path.display())]
    Password {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Server(#[from] TransferError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("the terminal: {0}")]
    Terminal(#[source] io::Error),
    #[error("cannot print: {0}")]
    Print(#[source] io::Error),
}

/// Watches until the user leaves.
pub(crate) fn run(command: &Top) -> ExitCode {
    let watched = address(command).and_then(|address| {
        let mut watch = Watch::new(address, trust(command)?);
        if command.once || command.plain || !io::stdout().is_terminal() {
            print(command, &mut watch)
        } else {
            on_terminal(command, &mut watch)
        }
    });
    match watched {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has seen enough.
        Err(TopError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn address(command: &Top) -> Result<Address, TopError> {
    let password = match &command.password_file {
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|source| TopError::Password {
                path: path.clone(),
                source,
            })?;
            Some(text.lines().next().unwrap_or("").to_owned())
        }
        None => env::var("REDISCLI_AUTH").ok(),
    };
    let (host, user) = (command.host.clone(), command.user.clone());
    Ok(Address::new(host, command.port, user, password))
}

/// What a connection over TLS needs, if it is to be one.
fn trust(command: &Top) -> Result<Option<Trust>, CertificateError> {
    let own = command.tls_cert.as_deref().zip(command.tls_key.as_deref());
    let authorities = command.tls_ca.as_deref();
    authorities
        .map(|authorities| Trust::load(authorities, own))
        .transpose()
}

/// A server, and what is known of it.
struct Watch {
    address: Address,
    trust: Option<Trust>,
    client: Option<Client>,
    model: Model,
}

impl Watch {
    fn new(address: Address, trust: Option<Trust>) -> Self {
        let shown = address.shown();
        let place = shown.strip_prefix("redis://").unwrap_or(&shown);
        Self {
            model: Model::new(place.to_owned()),
            address,
            trust,
            client: None,
        }
    }

    /// Asks the server; connects first if that is necessary.
    fn look(&mut self) -> Result<(), TransferError> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => match &self.trust {
                None => Client::connect(&self.address)?,
                Some(trust) => Client::connect_over_tls(&self.address, trust)?,
            },
        };
        self.model.take(Sample::take(&mut client)?);
        // Dropped if something went wrong: the next look connects anew.
        self.client = Some(client);
        Ok(())
    }
}

/// Prints frames as text. Rates need two looks at the server.
fn print(command: &Top, watch: &mut Watch) -> Result<(), TopError> {
    watch.look()?;
    loop {
        thread::sleep(command.interval);
        watch.look()?;
        let text = view::plain(&watch.model, PLAIN_WIDTH);
        let mut out = io::stdout().lock();
        let printed = writeln!(out, "{text}").and_then(|()| out.flush());
        printed.map_err(TopError::Print)?;
        if command.once {
            return Ok(());
        }
    }
}

/// Draws on the terminal, which is as it was when this returns, and after a panic.
fn on_terminal(command: &Top, watch: &mut Watch) -> Result<(), TopError> {
    // An error that lasts, say a wrong password, is no reason for an empty screen.
    watch.look()?;
    let mut terminal = ratatui::try_init().map_err(TopError::Terminal)?;
    let mut step = || -> io::Result<bool> {
        let looked = Instant::now();
        terminal.draw(|frame| view::draw(&watch.model, frame.area(), frame.buffer_mut()))?;
        loop {
            let left = command.interval.saturating_sub(looked.elapsed());
            if !event::poll(left)? {
                break;
            }
            let goes_on = match event::read()? {
                Event::Key(key) => meaning(key).is_none_or(|action| watch.model.act(action)),
                _ => true,
            };
            if !goes_on {
                return Ok(false);
            }
            terminal.draw(|frame| view::draw(&watch.model, frame.area(), frame.buffer_mut()))?;
        }
        if !watch.model.is_paused
            && let Err(error) = watch.look()
        {
            watch.model.trouble = Some(error.to_string());
        }
        Ok(true)
    };
    let ended = loop {
        match step() {
            Ok(true) => (),
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    ratatui::restore();
    ended.map_err(TopError::Terminal)
}

/// What a key does, if it does something.
fn meaning(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if is_control => Action::Leave,
        KeyCode::Char('q') | KeyCode::Esc => Action::Leave,
        KeyCode::Char(digit @ '1'..='9') => {
            let at = digit.to_digit(10)? as usize - 1;
            Action::Show(*Page::ALL.get(at)?)
        }
        KeyCode::Tab | KeyCode::Right => Action::NextPage,
        KeyCode::BackTab | KeyCode::Left => Action::PreviousPage,
        KeyCode::Char('s') => Action::NextOrder,
        KeyCode::Char('p' | ' ') => Action::Pause,
        KeyCode::Down | KeyCode::Char('j') => Action::Down,
        KeyCode::Up | KeyCode::Char('k') => Action::Up,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_meaning() {
        let key = |code, modifiers| meaning(KeyEvent::new(code, modifiers));
        let plain = |code| key(code, KeyModifiers::NONE);
        assert_eq!(
            key(KeyCode::Char('c'), KeyModifiers::CONTROL),
            Some(Action::Leave)
        );
        assert_eq!(plain(KeyCode::Char('c')), None);
        assert_eq!(plain(KeyCode::Char('3')), Some(Action::Show(Page::Clients)));
        assert_eq!(plain(KeyCode::Char('9')), None);
        assert_eq!(plain(KeyCode::Tab), Some(Action::NextPage));
    }

    #[test]
    fn intervals_have_bounds() {
        assert_eq!(parse_interval("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "NaN", "inf", "soon", "1e9"] {
            assert!(parse_interval(wrong).is_err(), "{wrong}");
        }
    }
}
