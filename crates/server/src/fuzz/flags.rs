//! The command line of `tremula serve`.

use crate::cli::ServeArgs;
use clap::error::{ContextKind, ErrorKind};
use clap::{Args, Command, FromArgMatches};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

/// The most words of a command line.
const MOST_WORDS: usize = 24;

/// Words of a command line, a line each.
///
/// An error names the flag or the word that is wrong. Limits that are taken mean the same when they
/// are printed and given again.
///
/// # Panics
///
/// One of these does not hold.
pub fn flags(data: &[u8]) {
    // No word of a command line holds a zero byte, and errors show no other control characters.
    if data
        .iter()
        .any(|byte| byte.is_ascii_control() && *byte != b'\n')
    {
        return;
    }
    let words = data.split(|byte| *byte == b'\n').take(MOST_WORDS);
    let words: Vec<OsString> = words
        .map(|word| OsStr::from_bytes(word).to_owned())
        .collect();
    let parsed = match parse(&words) {
        Ok(parsed) => parsed,
        Err(error) => return names_a_word(&error, &words),
    };
    let limits = &parsed.limits;
    for bytes in [
        limits.max_argument,
        limits.max_query_buffer,
        limits.max_output_buffer,
        limits.clients.max_client_buffers,
        limits.clients.soft_output_buffer,
        limits.terms.max_term,
        limits.turn.max_gathered,
    ] {
        assert_eq!(bytes.to_string().parse(), Ok(bytes));
    }
    let time = limits.turn.time;
    assert_eq!(time.to_string().parse(), Ok(time));
    assert!((1..=1024).contains(&parsed.threads.unwrap_or(1)));
    assert!((1..=1_000_000).contains(&limits.max_clients));
    assert!((1 << 6..=1 << 50).contains(&limits.max_argument.0));
    assert!((1 << 10..=1 << 50).contains(&limits.max_output_buffer.0));
    assert!((1 << 10..=512 << 30).contains(&limits.terms.max_term.0));
    assert!((1..=10_000_000).contains(&limits.terms.max_term_depth));
    let _ = limits.clients.denied();
    let again = [
        format!("--max-argument={}", limits.max_argument),
        format!("--max-output-buffer={}", limits.max_output_buffer),
        format!("--max-term={}", limits.terms.max_term),
        format!("--turn={time}"),
    ];
    let again = parse(&again.map(OsString::from)).map(|again| again.limits);
    let Ok(again) = again else {
        panic!("limits that are printed are taken");
    };
    assert_eq!(again.max_argument, limits.max_argument);
    assert_eq!(again.max_output_buffer, limits.max_output_buffer);
    assert_eq!(again.terms.max_term, limits.terms.max_term);
    assert_eq!(again.turn.time, time);
}

fn parse(words: &[OsString]) -> Result<ServeArgs, clap::Error> {
    static COMMAND: OnceLock<Command> = OnceLock::new();
    let command = COMMAND.get_or_init(|| {
        let mut command = ServeArgs::augment_args(Command::new("serve").no_binary_name(true));
        command.build();
        command
    });
    let matches = command.clone().try_get_matches_from(words)?;
    ServeArgs::from_arg_matches(&matches)
}

/// An error says which flag or which word is wrong, unless it is the help that was asked for.
fn names_a_word(error: &clap::Error, words: &[OsString]) {
    let text = error.to_string();
    if error.kind() == ErrorKind::DisplayHelp {
        assert!(
            words
                .iter()
                .any(|word| word == "--help" || word.as_bytes().starts_with(b"-h"))
        );
        return;
    }
    assert!(text.starts_with("error: "), "{text}");
    // The parser of the command line does not say which value is not UTF-8.
    let is_text = words.iter().all(|word| word.to_str().is_some());
    if error.kind() == ErrorKind::InvalidUtf8 && !is_text {
        return;
    }
    let is_named = |word: &OsString| {
        let word = word.to_string_lossy();
        let name = word.split('=').next().unwrap_or_default();
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let parts = name.split(|letter| !is_plain(letter));
        let part = parts.max_by_key(|part| part.len()).unwrap_or_default();
        text.contains(part)
    };
    let flag = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    let has_flag = flag.is_some_and(|flag| text.contains(&flag));
    assert!(has_flag || words.iter().any(is_named), "{words:?}: {text}");
}
