use super::*;
use crate::cli::ServeArgs;
use clap::Args;

fn command() -> Command {
    let serve = ServeArgs::augment_args(Command::new(SERVE));
    with_variables(Command::new("tremula").subcommand(serve))
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tremula.toml");
    fs::write(&path, text).expect("written");
    (folder, path)
}

fn parsed(text: &str, given: &[&str]) -> Result<ArgMatches, String> {
    let (_folder, path) = file(text);
    let line = ["tremula", SERVE, "--config"]
        .map(OsString::from)
        .into_iter();
    let line = line
        .chain([path.into()])
        .chain(given.iter().map(OsString::from));
    let line: Vec<_> = line.collect();
    let matches = parse(&command(), &line).map_err(|error| error.to_string())?;
    let (_, serve) = matches.subcommand().expect("serve");
    Ok(serve.clone())
}

fn raw(matches: &ArgMatches, id: &str) -> Vec<String> {
    let values = matches.get_raw(id).into_iter().flatten();
    values
        .map(|value| value.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_flag_is_over_the_file_and_the_file_over_the_default() {
    let text = "port = 7000\nmax-term = \"1mb\"\nprotected-mode = false\ndisable = [\"ets\", \
                \"mailbox\"]\n# max-clients = 5\n";
    let matches = parsed(text, &["--port", "8000"]).expect("right");
    for (id, expected) in [
        ("port", &["8000"][..]),
        ("max_term", &["1mb"]),
        ("protected_mode", &["false"]),
        ("disable", &["ets", "mailbox"]),
        ("max_clients", &["10000"]),
    ] {
        assert_eq!(raw(&matches, id), expected, "{id}");
    }
    assert_eq!(matches.get_one::<bool>("protected_mode"), Some(&false));
    assert_eq!(
        matches.get_many::<String>("disable").map(Iterator::count),
        Some(2)
    );
    assert_eq!(matches.get_one::<usize>("max_clients"), Some(&10_000));
}

#[test]
fn what_is_wrong_in_a_file_is_named() {
    for (text, expected) in [
        ("port = \n", "tremula.toml:1: "),
        ("port = 1\nport = 2\n", "tremula.toml:2: duplicate key"),
        (
            "ports = 1\n",
            "there is no setting 'ports'; did you mean 'port'?",
        ),
        ("max_client = 1\n", "did you mean 'max-clients'?"),
        (
            "zzz = 1\n",
            "there is no setting 'zzz'; 'tremula serve --help'",
        ),
        ("config = \"x\"\n", "there is no setting 'config'"),
        ("help = true\n", "there is no setting 'help'"),
        ("port = 99999\n", "'99999' for '--port"),
        ("port = [1]\n", "port: it has one value, not a list"),
        ("[limits]\nport = 1\n", "there is no setting 'limits'"),
        (
            "[port]\nx = 1\n",
            "port: it is a text, a number, or true or false",
        ),
        ("port = 2020-01-01\n", "port: it is a text"),
        ("max-term = \"1kb0\"\n", "'1kb0'"),
        ("engine = \"fast\"\n", "'fast' for '--engine"),
    ] {
        let error = parsed(text, &[]).expect_err(text);
        assert!(error.contains(expected), "{text:?}: {error}");
        assert!(
            error.contains("tremula.toml") && !error.contains('\n'),
            "{error}"
        );
        let (_folder, path) = file(text);
        let checked = check(&command(), &path).expect_err(text).to_string();
        assert!(checked.contains(expected), "{text:?}: {checked}");
    }
    let (_folder, path) = file("port = 1\nmax-term = \"2mb\"\n");
    assert_eq!(check(&command(), &path).ok(), Some(2));
    let error = check(&command(), Path::new("/nothing/there")).expect_err("no file");
    assert!(error.to_string().starts_with("/nothing/there: "), "{error}");
    let (_folder, path) = file("strategy = \"affinity\"\n");
    let error = check(&command(), &path)
        .expect_err("it needs another")
        .to_string();
    assert!(error.contains("--cache"), "{error}");
}

/// Settings that are shown can be read again, and are then the same.
#[test]
fn what_is_shown_reads_the_same() {
    let command = command();
    let definition = command.find_subcommand(SERVE).expect("serve");
    let text = "port = 7000\nmax-term = \"1mb\"\ndisable = [\"ets\"]\nprotected-mode = false\n";
    let matches = parsed(text, &["--bind", "::1"]).expect("right");
    let (_folder, path) = file(text);
    let flags = [
        "--config".into(),
        path.into(),
        "--bind".into(),
        "::1".into(),
    ];
    let shown = show(&command, &flags).expect("right");
    assert!(shown.contains("\nport = 7000  # given\n"), "{shown}");
    assert!(
        shown.contains("\n# max-clients = 10000  # default\n"),
        "{shown}"
    );
    assert!(shown.contains("\nbind = \"::1\"  # given\n"), "{shown}");
    let again = parsed(&shown, &[]).expect("right");
    for argument in settings(definition) {
        let id = argument.get_id().as_str();
        assert_eq!(raw(&again, id), raw(&matches, id), "{id}");
    }
    // Also what is a comment reads as it is.
    let plain = shown.replace("\n# ", "\n");
    let uncommented = plain.lines().filter(|line| {
        line.split_once(" = ").is_some_and(|(name, value)| {
            !name.contains(' ') && !value.trim_start().starts_with('#')
        })
    });
    let uncommented: Vec<_> = uncommented
        // These need others, or have a default that depends on the machine.
        .filter(|line| !line.starts_with("strategy") && !line.starts_with("cache-from"))
        .map(str::to_owned)
        .collect();
    let all = parsed(&uncommented.join("\n"), &[]).expect("right");
    assert_eq!(raw(&all, "max_clients"), ["10000"]);
}

#[test]
fn every_setting_has_a_variable_and_help() {
    let command = command();
    let definition = command.find_subcommand(SERVE).expect("serve");
    let mut count = 0;
    for argument in settings(definition) {
        let name = argument.get_long().expect("a long name");
        let variable = variable(argument).expect(name);
        assert_eq!(argument.get_env(), Some(variable.as_ref()), "{name}");
        assert!(argument.get_help().is_some(), "{name}");
        count += 1;
    }
    assert!(count > 20, "{count}");
    let table = table(&command);
    assert!(table.contains("| `port` | `TREMULA_PORT` | `6380` |"));
    let readme = include_str!("../../README.md");
    assert!(
        readme.contains(&table),
        "the README has another table than:\n{table}"
    );
}
