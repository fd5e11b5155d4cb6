//! The client: the tree of commands, and which function carries out which.
//!
//! It knows the server by its HTTP interface alone, whose shapes are in `wire`; it never opens a
//! database.

mod admin;
mod call;
mod cluster;
mod config;
mod deployment;
mod env;
mod error;
mod events;
mod follow;
mod format;
mod graph;
mod hint;
mod http;
mod invite;
mod lines;
mod login;
mod names;
mod operation_log;
mod org;
mod page;
mod parse;
mod password;
mod print;
mod problem;
mod progress;
mod prompt;
mod queue;
mod quota;
mod resources;
#[cfg(test)]
mod sample;
mod search;
mod service;
mod service_account;
mod sse;
mod subject;
mod table;
mod template;
mod wait;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};

use config::Session;
use error::Error;
use http::Api;
use print::{Output, Printer};

const HEADING: &str = "Global options";

/// What every command of the client takes.
#[derive(Args)]
pub(crate) struct Global {
    /// Where the server is [default: the one of the last login, or http://127.0.0.1:8001]
    #[arg(long, global = true, env = "PADDOCK_SERVER", value_name = "URL", help_heading = HEADING)]
    pub(crate) server: Option<String>,
    /// How answers are printed; json is the server's answer as it came
    #[arg(short, long, global = true, value_enum, default_value_t, value_name = "FORMAT", help_heading = HEADING)]
    output: Output,
    /// How long to wait for each answer of the server, in seconds
    #[arg(long, global = true, env = "PADDOCK_TIMEOUT", default_value_t = 30, value_name = "SECONDS", help_heading = HEADING,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

/// The commands of the client.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Signs in and remembers the token
    Login(login::Args),
    /// Signs out: the token is dead at once
    #[command(after_help = "Example:\n  paddock logout")]
    Logout,
    /// Shows who is signed in, and where
    #[command(after_help = "Example:\n  paddock whoami")]
    Whoami,
    /// The organization: its members and its invites
    #[command(subcommand, after_help = "Example:\n  paddock org create acme --username ann")]
    Org(org::Command),
    /// Clusters: where things run
    #[command(subcommand, after_help = "Example:\n  paddock cluster list")]
    Cluster(cluster::Command),
    /// Deploys an image: the short way to make a deployment
    Deploy(deployment::Deploy),
    /// Deployments: what runs
    #[command(subcommand, after_help = "Example:\n  paddock deployment list")]
    Deployment(deployment::Command),
    /// Templates: what environments are made from
    #[command(subcommand, after_help = "Example:\n  paddock template publish examples/web-shop")]
    Template(template::Command),
    /// Environments: all that one or more templates say, as a whole
    #[command(
        subcommand,
        after_help = "Example:\n  paddock env apply shop --template web-shop --wait"
    )]
    Env(env::Command),
    /// Managed services: instances of the kinds that the server has
    Service(Box<service::Args>),
    /// Service accounts: what programs sign in with
    ServiceAccount(service_account::Args),
    /// What you may have of each service, and what of it you have
    #[command(after_help = "Example:\n  paddock quota")]
    Quota,
    /// What waits for room, first in line first
    Queue(queue::Args),
    /// Finds anything by its name, id, tags or description
    Search(search::Args),
    /// What something needs, and what breaks if it goes
    Graph(graph::Args),
    /// What has happened, and with -f what happens
    Events(events::Args),
    /// For the platform administrator: quota, instances of everybody, denied owners
    #[command(subcommand, after_help = "Example:\n  paddock admin quota list")]
    Admin(Box<admin::Command>),
}

/// Carries out a command and says how it went.
pub(crate) async fn run(global: Global, command: Command) -> ExitCode {
    let mut printer = Printer::stdout(global.output);
    exit(dispatch(global, command, &mut printer).await)
}

/// Prints the completions of `shell` for the whole tree of commands.
pub(crate) fn print_completions(shell: clap_complete::Shell, mut tree: clap::Command) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut tree, "paddock", &mut script);
    exit(Printer::stdout(Output::Table).bytes(&script))
}

fn exit(outcome: Result<(), Error>) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    error.report();
    error.exit_code()
}

async fn dispatch(global: Global, command: Command, printer: &mut Printer) -> Result<(), Error> {
    let session = Session::resolve(global.server)?;
    let patience = Duration::from_secs(global.timeout);
    let api = Api::new(session.server.clone(), session.token.clone(), patience)?;
    match command {
        Command::Login(args) => login::run(args, &api, session, printer).await,
        Command::Logout => login::logout(&api, session, printer).await,
        Command::Whoami => login::whoami(&api, printer).await,
        Command::Org(command) => org::run(command, &api, session, printer).await,
        Command::Cluster(command) => cluster::run(command, &api, printer).await,
        Command::Deploy(args) => deployment::deploy(args, &api, printer).await,
        Command::Deployment(command) => deployment::run(command, &api, printer).await,
        Command::Template(command) => template::run(command, &api, printer).await,
        Command::Env(command) => env::run(command, &api, printer).await,
        Command::Service(args) => service::run(*args, &api, printer).await,
        Command::ServiceAccount(args) => service_account::run(args, &api, printer).await,
        Command::Quota => quota::run(&api, printer).await,
        Command::Queue(args) => queue::run(args, &api, printer).await,
        Command::Search(args) => search::run(args, &api, printer).await,
        Command::Graph(args) => graph::run(args, &api, printer).await,
        Command::Events(args) => events::run(args, &api, printer).await,
        Command::Admin(command) => admin::run(*command, &api, printer).await,
    }
}
