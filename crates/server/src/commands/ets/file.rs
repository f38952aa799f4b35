//! Tables in files of one directory, which is set when the server starts.

use super::super::{Context, Failure, Outcome};
use super::call::{Call, answer, bad, text_of};
use crate::memory::TERM_FACTOR;
use crate::resp::Arguments;
use std::path::{Component, Path, PathBuf};
use tremula_table::term::Atom;
use tremula_table::{FileProblem, Term};

/// The file in the server's directory that an argument names. A name is one component of a path, so
/// it cannot lead out of the directory.
fn path(call: &Call<'_>, argument: usize) -> Result<PathBuf, Failure> {
    // The disk may take its time.
    call.is_long(true)?;
    let term = call.term(argument)?;
    // A file is not a table's that is open to the user, until it is read; and may take its place.
    call.may_use_files()?;
    let Some(directory) = &call.server.table_directory else {
        let refused = "ERR this server keeps no files of tables; --table-directory names a \
                       directory for them";
        return Err(Failure::Text(refused));
    };
    let name = text_of(term).filter(|name| is_file_name(name));
    let name = name.ok_or_else(|| {
        bad(
            call.function,
            argument,
            format_args!("{term} is not the name of a file: without a path, and not hidden"),
        )
    })?;
    Ok(directory.join(name))
}

fn is_file_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let is_one = matches!(
        (components.next(), components.next()),
        (Some(Component::Normal(only)), None) if only == name
    );
    is_one && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// Erlang's `{error, Reason}`. A problem of a file is the value of a call, not an error of the
/// call. A text replaces Erlang's terms for the problem.
fn failed(problem: &FileProblem, of_table: &str, of_file: &str) -> Result<Term, Failure> {
    let reason = match problem {
        FileProblem::Table(_) => atom(of_table)?,
        other => Term::tuple([atom(of_file)?, Term::binary(other.to_string().as_bytes())]),
    };
    Ok(error(reason))
}

fn error(reason: Term) -> Term {
    Term::tuple([Atom::ERROR.into(), reason])
}

fn atom(name: &str) -> Result<Term, Failure> {
    Term::atom(name).map_err(|_| Failure::Text("ERR there is no room for another atom"))
}

/// `ETS.TAB2FILE table file`.
pub(in super::super) fn tab2file(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    answer(context, arguments, 2, |call| {
        let path = path(call, 2)?;
        let Some(table) = call.find(call.term(1)?)? else {
            return Ok(error(atom("badtab")?));
        };
        match table.tab2file(path, &[]) {
            Ok(()) => Ok(Atom::OK.into()),
            Err(error) => failed(&error.problem, "badtab", "file_error"),
        }
    })
}

/// `ETS.FILE2TAB file`. The table keeps its access. A public one belongs to the server, another to
/// the connection.
pub(in super::super) fn file2tab(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    context.session.ets.admit_table(context.server)?;
    let mut made = None;
    let outcome = answer(context, arguments, 1, |call| {
        let path = path(call, 1)?;
        // A file that is not there has an error of its own.
        let length = path.metadata().map_or(0, |file| file.len());
        if !call
            .server
            .memory
            .has_room(length.saturating_mul(TERM_FACTOR))
        {
            return Err(Failure::OUT_OF_MEMORY);
        }
        let owner = call.unchecked_owner();
        let table = match call.commit(|effects| owner.file2tab_unless_public(effects, path))? {
            Ok(table) => table,
            Err(error) => return failed(&error.problem, "cannot_create_table", "read_error"),
        };
        // A file written by Erlang may hold a table that is not found by its name.
        let named = call.unchecked_owner().whereis(table.name().text());
        let name = match named {
            Some(named) if named.id() == table.id() => Term::from(table.name()),
            _ => table.id().into(),
        };
        made = Some(table.id());
        Ok(Term::tuple([Atom::OK.into(), name]))
    });
    context.session.ets.made.extend(made);
    outcome
}

/// `ETS.TABFILE_INFO file`.
pub(in super::super) fn tabfile_info(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
) -> Outcome {
    answer(context, arguments, 1, |call| {
        match call.server.store.tables().tabfile_info(path(call, 1)?) {
            Ok(info) => Ok(Term::tuple([Atom::OK.into(), info.to_term()])),
            Err(error) => failed(&error.problem, "badtab", "read_error"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::is_file_name;

    #[test]
    fn nothing_leads_out_of_the_directory() {
        for name in ["ages.tab", "ages", "a b", "ä..b"] {
            assert!(is_file_name(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "../x",
            "/etc/passwd",
            "a/b",
            "a/",
            "./a",
            ".a",
            "a\0",
            "..\\x",
        ] {
            assert!(!is_file_name(name), "{name}");
        }
    }
}
