//! The `tremula` command.

#![forbid(unsafe_code)]

mod backup;
#[cfg(feature = "jetstream")]
mod cluster;
mod generate;
mod log;
#[cfg(feature = "top")]
mod top;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use mimalloc::MiMalloc;
use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;
use tremula_server::cli::ServeArgs;
use tremula_server::settings::{self, SettingsError};
use tremula_server::transfer::{self, ExportArgs, ImportArgs, TransferError};
use tremula_sync::counting_allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator<MiMalloc> = CountingAllocator::new(MiMalloc);

/// An in-memory store for programs that use every core.
#[derive(Parser)]
#[command(name = "tremula", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve an ordered table over the Redis protocol.
    Serve(Box<ServeArgs>),
    /// Check and show the settings of `serve`.
    #[command(subcommand)]
    Config(Config),
    /// Copy what a server keeps, while it runs.
    Backup(backup::Backup),
    /// Make a directory for serve from a backup, as it was at its end or at some time before.
    Restore(backup::Restore),
    /// Import keys and values from a file of Redis, or from a Redis server, into a directory.
    Import(ImportArgs),
    /// Export keys and values of a directory, or of a server, as lines.
    Export(ExportArgs),
    /// Check, print and repair a log in files that no server has open.
    #[command(subcommand)]
    Log(log::Log),
    /// Watch a server in a terminal.
    #[cfg(feature = "top")]
    Top(top::Top),
    /// Three nodes and three servers of NATS on this machine, to try a group out.
    #[cfg(feature = "jetstream")]
    #[command(subcommand)]
    Cluster(cluster::Cluster),
    /// Write manual pages or completions, for packages.
    #[command(subcommand, hide = true)]
    Generate(generate::Generate),
    /// Says that the lab is a command of its own.
    #[command(hide = true, disable_help_flag = true)]
    Lab {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

#[derive(Subcommand)]
enum Config {
    /// Check a file of settings, without serving.
    Check {
        /// The file, in TOML
        file: PathBuf,
    },
    /// Show every setting, with its meaning, its value and where that comes from.
    #[command(disable_help_flag = true)]
    Show {
        /// The flags of serve, with --config for a file
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FLAGS"
        )]
        flags: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let command = settings::with_variables(Cli::command());
    let given: Vec<_> = env::args_os().collect();
    let parsed = settings::parse(&command, &given);
    let cli = parsed.and_then(|matches| {
        let values = settings::values(&command, &matches);
        Ok((Cli::from_arg_matches(&matches)?, values))
    });
    match cli.and_then(|(cli, values)| run(cli, values, &command)) {
        Ok(code) => code,
        Err(SettingsError::CommandLine(error))
            if !error.use_stderr()
                || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            error.exit()
        }
        Err(error) => {
            // `--help` has the rest.
            eprintln!("error: {}; see --help", settings::in_one_line(&error));
            ExitCode::from(2)
        }
    }
}

/// The settings of `serve`, from where they came at the start.
fn read_again(command: &clap::Command) -> Result<ServeArgs, SettingsError> {
    let given: Vec<_> = env::args_os().collect();
    let matches = settings::parse(command, &given)?;
    match Cli::from_arg_matches(&matches)?.command {
        Command::Serve(arguments) => Ok(*arguments),
        _ => Err(clap::Error::new(ErrorKind::InvalidSubcommand).into()),
    }
}

/// Prints why it failed, if it did.
fn ended(result: Result<(), TransferError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has seen enough.
        Err(TransferError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(
    cli: Cli,
    values: Vec<(String, String)>,
    command: &clap::Command,
) -> Result<ExitCode, SettingsError> {
    match cli.command {
        Command::Serve(arguments) => {
            let command = command.clone();
            let again = move || read_again(&command);
            Ok(tremula_server::cli::run(*arguments, values, again))
        }
        Command::Config(Config::Check { file }) => {
            let count = settings::check(command, &file)?;
            let plural = if count == 1 { "" } else { "s" };
            println!("{}: {count} setting{plural}, all right", file.display());
            Ok(ExitCode::SUCCESS)
        }
        Command::Config(Config::Show { flags }) => {
            print!("{}", settings::show(command, &flags)?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Backup(command) => Ok(backup::run_backup(&command)),
        Command::Restore(command) => Ok(backup::run_restore(&command)),
        Command::Import(arguments) => {
            let (mut out, mut errors) = (io::stdout(), io::stderr());
            Ok(ended(transfer::import(&arguments, &mut out, &mut errors)))
        }
        Command::Export(arguments) => {
            let (mut out, mut errors) = (BufWriter::new(io::stdout()), io::stderr());
            Ok(ended(transfer::export(&arguments, &mut out, &mut errors)))
        }
        Command::Log(command) => Ok(log::run(command)),
        #[cfg(feature = "top")]
        Command::Top(command) => Ok(top::run(&command)),
        Command::Generate(what) => Ok(generate::run(&what, command)),
        #[cfg(feature = "jetstream")]
        Command::Cluster(command) => Ok(cluster::run(&command)),
        Command::Lab { arguments } => {
            let command = [&["tremula-lab".to_owned()], &arguments[..]].concat();
            eprintln!(
                "error: the lab is a command of its own; use: {}",
                command.join(" ")
            );
            Ok(ExitCode::from(2))
        }
    }
}
