//! The `paddock` binary: parses the command line and runs the selected command.

mod client;
mod remote_agent;
mod runtime;
mod server;
mod settings;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// One control plane for clusters, deployments, services and environments.
#[derive(Parser)]
#[command(name = "paddock", version, after_help = AFTER_HELP)]
struct Cli {
    #[command(flatten)]
    global: client::Global,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Exit codes: 0 success, 1 failure (the error is on stderr), 2 invalid command line.

Environment variables: PADDOCK_SERVER, PADDOCK_TOKEN (instead of \"paddock login\"),
PADDOCK_PASSWORD, PADDOCK_CONFIG_DIR (directory of client.toml).

Example:
  paddock org create acme --username ann
  paddock cluster create prod --cpu 4 --ram 8Gi --wait
  paddock deploy nginx:1 --name web --cpu 500m --ram 256Mi --port 80 --wait";

#[derive(Subcommand)]
enum Command {
    /// Run the server: APIs, console, workers and the local agent
    #[command(
        after_help = "Example:\n  paddock server --listen 127.0.0.1:8001 --data-dir ./paddock-data"
    )]
    Server(Box<settings::Args>),
    /// Run the agent of one cluster, connected to the server over HTTPS
    #[command(after_help = remote_agent::AFTER_HELP)]
    Agent(Box<remote_agent::Args>),
    /// Print the OpenAPI document of an API family
    #[command(after_help = "Example:\n  paddock openapi platform > platform.json")]
    Openapi {
        /// API family: `platform`, `kargo` or `fleet`
        family: String,
    },
    #[command(flatten)]
    Client(Box<client::Command>),
    /// Print the completion script of a shell
    #[command(
        after_help = "Example:\n  paddock completions bash > ~/.local/share/bash-completion/completions/paddock"
    )]
    Completions {
        /// Shell that loads the script
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    // The container runtime re-executes this binary to pull images and to supervise containers.
    if let Some(code) = ::runtime::child_main() {
        return code;
    }
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    let cli = Cli::parse();
    // Fails only if a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match cli.command {
        Command::Server(args) => exit_code(server::run(*args).await),
        Command::Agent(args) => exit_code(remote_agent::run(*args, cli.global.server).await),
        Command::Openapi { family } => exit_code(print_document(&family)),
        Command::Client(command) => client::run(cli.global, *command).await,
        Command::Completions { shell } => client::print_completions(shell, Cli::command()),
    }
}

/// Prints an error to stderr and maps the outcome to an exit code.
fn exit_code(outcome: anyhow::Result<()>) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    let _ = writeln!(std::io::stderr(), "error: {error:#}");
    ExitCode::FAILURE
}

fn print_document(family: &str) -> anyhow::Result<()> {
    let documents = api::documents();
    let Some((_, document)) = documents.iter().find(|(name, _)| *name == family) else {
        anyhow::bail!(
            "unknown API family {family:?}; use one of {}",
            documents.map(|d| d.0).join(", ")
        );
    };
    let text = serde_json::to_string_pretty(document)?;
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        check(&Cli::command());
    }

    fn check(command: &clap::Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Example:\n"), "{} has no example", command.get_name());
        command.get_subcommands().for_each(check);
    }
}
