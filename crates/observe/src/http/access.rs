//! What a visitor may do: the token of the start, and logins.

use crate::observed::{Refusal, Visitor};
use rand::RngExt;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 24;

/// Logins that are remembered. With one more, the oldest is forgotten.
const MOST_LOGINS: usize = 64;

/// How long a login lasts without being used.
const LOGIN_LASTS: Duration = Duration::from_secs(12 * 60 * 60);

/// Wrong passwords and tokens that are looked at in a minute. Further ones are refused unseen.
const MOST_FAILURES: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);

struct Login {
    token: String,
    user: String,
    used: Instant,
}

/// The tokens that are valid.
pub(crate) struct Gate {
    /// That of the start, if something writes.
    token: Option<String>,
    logins: Mutex<VecDeque<Login>>,
    failures: Mutex<VecDeque<Instant>>,
}

impl Gate {
    pub(crate) fn new(has_token: bool) -> Self {
        Self {
            token: has_token.then(new_token),
            logins: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Whose request has this token.
    ///
    /// # Errors
    ///
    /// It is no valid token, or too many were wrong.
    pub(crate) fn visitor(&self, token: Option<&str>) -> Result<Visitor, Refusal> {
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            return Ok(Visitor::Reader);
        };
        let is = |known: &str| bool::from(known.as_bytes().ct_eq(token.as_bytes()));
        if self.token.as_deref().is_some_and(is) {
            return Ok(Visitor::Owner);
        }
        let now = Instant::now();
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        logins.retain(|login| now.duration_since(login.used) < LOGIN_LASTS);
        if let Some(login) = logins.iter_mut().find(|login| is(&login.token)) {
            login.used = now;
            return Ok(Visitor::User(login.user.clone()));
        }
        drop(logins);
        self.try_again()?;
        self.failed();
        Err(Refusal::Unproved(
            "the token is not valid: it is printed at the start of the server; or log in"
                .to_owned(),
        ))
    }

    /// Lets a visitor in that has proved to be a user. Returns the token.
    pub(crate) fn let_in(&self, user: String) -> String {
        let token = new_token();
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        logins.push_back(Login {
            token: token.clone(),
            user,
            used: Instant::now(),
        });
        if logins.len() > MOST_LOGINS {
            logins.pop_front();
        }
        token
    }

    /// Whether a further password or token is looked at now.
    ///
    /// # Errors
    ///
    /// Too many have failed.
    pub(crate) fn try_again(&self) -> Result<(), Refusal> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        while failures
            .front()
            .is_some_and(|failed| failed.elapsed() >= MINUTE)
        {
            failures.pop_front();
        }
        if failures.len() < MOST_FAILURES {
            return Ok(());
        }
        Err(Refusal::TooOften(format!(
            "{MOST_FAILURES} passwords or tokens were wrong within a minute; try again later"
        )))
    }

    /// Notes that a password or a token was wrong.
    pub(crate) fn failed(&self) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push_back(Instant::now());
        if failures.len() > MOST_FAILURES {
            failures.pop_front();
        }
    }
}

impl Gate {
    /// Takes back the last failure: what was tried was right.
    pub(crate) fn forgive(&self) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.pop_back();
    }
}

fn new_token() -> String {
    let bytes: [u8; TOKEN_BYTES] = rand::rng().random();
    crate::map::hex(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_and_another_is_not() {
        let gate = Gate::new(true);
        let token = gate.token().expect("a token").to_owned();
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert_eq!(gate.visitor(None), Ok(Visitor::Reader));
        assert_eq!(gate.visitor(Some("")), Ok(Visitor::Reader));
        assert_eq!(gate.visitor(Some(&token)), Ok(Visitor::Owner));
        let own = gate.let_in("ann".to_owned());
        assert_eq!(
            gate.visitor(Some(&own)),
            Ok(Visitor::User("ann".to_owned()))
        );
        assert!(matches!(
            gate.visitor(Some(&token[1..])),
            Err(Refusal::Unproved(_))
        ));
        assert!(Gate::new(false).token().is_none());
    }

    #[test]
    fn after_some_wrong_tokens_no_more_are_looked_at_but_right_ones_work() {
        let gate = Gate::new(true);
        for _ in 0..MOST_FAILURES {
            assert!(matches!(
                gate.visitor(Some("guess")),
                Err(Refusal::Unproved(_))
            ));
        }
        assert!(matches!(
            gate.visitor(Some("guess")),
            Err(Refusal::TooOften(_))
        ));
        assert!(gate.try_again().is_err());
        let token = gate.token().expect("a token").to_owned();
        assert_eq!(gate.visitor(Some(&token)), Ok(Visitor::Owner));
    }

    #[test]
    fn the_oldest_login_is_forgotten() {
        let gate = Gate::new(false);
        let first = gate.let_in("first".to_owned());
        let tokens: Vec<_> = (0..MOST_LOGINS)
            .map(|_| gate.let_in("one".to_owned()))
            .collect();
        assert!(gate.visitor(Some(&first)).is_err());
        assert!(gate.visitor(Some(&tokens[0])).is_ok());
    }
}
