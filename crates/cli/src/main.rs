//! The `tremula` command.

#![forbid(unsafe_code)]

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;
use std::process::ExitCode;
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
    Serve(Box<tremula_server::cli::ServeArgs>),
    /// Says that the lab is a command of its own.
    #[command(hide = true, disable_help_flag = true)]
    Lab {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error)
            if error.use_stderr()
                && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            // Prints one line with the error. `--help` has the rest.
            let text = error.to_string();
            let words: Vec<_> = text
                .lines()
                .take_while(|line| !line.is_empty())
                .map(str::trim)
                .collect();
            eprintln!("{}; see --help", words.join(" "));
            return ExitCode::from(2);
        }
        Err(error) => error.exit(),
    };
    match cli.command {
        Command::Serve(arguments) => tremula_server::cli::run(*arguments),
        Command::Lab { arguments } => {
            let command = [&["tremula-lab".to_owned()], &arguments[..]].concat();
            eprintln!(
                "error: the lab is a command of its own; use: {}",
                command.join(" ")
            );
            ExitCode::from(2)
        }
    }
}
