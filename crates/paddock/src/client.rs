//! The command-line client: command tree and dispatch.
//!
//! The client uses the HTTP API only, with the types of `wire`; it never opens a database.

mod account;
mod admin;
mod call;
mod cluster;
mod config;
mod credential;
mod demo;
mod deployment;
mod env;
mod error;
mod events;
mod follow;
mod format;
mod graph;
mod hint;
mod http;
mod image;
mod invite;
mod lines;
mod login;
mod member;
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
mod token;
mod wait;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};

use config::Session;
use error::Error;
use http::Api;
use print::{Output, Printer};

const HEADING: &str = "Global options";

/// Options of every client command.
#[derive(Args)]
pub(crate) struct Global {
    /// URL of the server [default: that of the last login, or http://127.0.0.1:8001]
    #[arg(long, global = true, env = "PADDOCK_SERVER", value_name = "URL", help_heading = HEADING)]
    pub(crate) server: Option<String>,
    /// Output format; json prints the server's response unchanged
    #[arg(short, long, global = true, value_enum, default_value_t, value_name = "FORMAT", help_heading = HEADING)]
    output: Output,
    /// Timeout of each request, in seconds
    #[arg(long, global = true, env = "PADDOCK_TIMEOUT", default_value_t = 30, value_name = "SECONDS", help_heading = HEADING,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

/// Client commands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Log in and store the token
    Login(login::Args),
    /// Log out and revoke the token
    #[command(after_help = "Example:\n  paddock logout")]
    Logout,
    /// Show the current user and server
    #[command(after_help = "Example:\n  paddock whoami")]
    Whoami,
    /// Change your password, or set a new one with a reset code
    #[command(subcommand, after_help = "Example:\n  paddock password change")]
    Password(account::Command),
    /// Create, list and revoke tokens of users and service accounts
    #[command(subcommand, after_help = "Example:\n  paddock token create laptop --expires 30d")]
    Token(token::Command),
    /// Manage the organization, its members and invites
    #[command(subcommand, after_help = "Example:\n  paddock org create acme --username ann")]
    Org(org::Command),
    /// Manage clusters
    #[command(subcommand, after_help = "Example:\n  paddock cluster list")]
    Cluster(cluster::Command),
    /// Deploy an image (shortcut for deployment create)
    Deploy(deployment::Deploy),
    /// Manage deployments
    #[command(subcommand, after_help = "Example:\n  paddock deployment list")]
    Deployment(deployment::Command),
    /// Load, list and delete images that need no registry
    #[command(subcommand, after_help = "Example:\n  paddock image load web.tar")]
    Image(image::Command),
    /// Manage environment templates
    #[command(subcommand, after_help = "Example:\n  paddock template publish examples/web-shop")]
    Template(template::Command),
    /// Manage environments, created from one or more templates
    #[command(
        subcommand,
        after_help = "Example:\n  paddock env apply shop --template web-shop --wait"
    )]
    Env(env::Command),
    /// Manage instances of managed services
    Service(Box<service::Args>),
    /// Manage service accounts, the credentials of programs
    ServiceAccount(service_account::Args),
    /// Manage your organization's credentials for Consul, Vault, Terraform and registries
    #[command(subcommand, after_help = "Example:\n  paddock credential list")]
    Credential(credential::Command),
    /// Log in to image registries, for your organization's deployments
    #[command(
        subcommand,
        after_help = "Example:\n  paddock registry login registry.example.com --username ci"
    )]
    Registry(credential::Registry),
    /// Show quota and usage per service
    #[command(after_help = "Example:\n  paddock quota")]
    Quota,
    /// List pending deployments in queue order
    Queue(queue::Args),
    /// Search by name, id, tag or description
    Search(search::Args),
    /// Show dependencies or dependents of an object
    Graph(graph::Args),
    /// List events, or follow them with -f
    Events(events::Args),
    /// Create an example of everything: a cluster, a deployment, an instance and an environment
    Demo(demo::Args),
    /// Administer the platform: quota, instances of all users, denied owners
    #[command(subcommand, after_help = "Example:\n  paddock admin quota list")]
    Admin(Box<admin::Command>),
}

/// Runs a command and returns its exit code.
pub(crate) async fn run(global: Global, command: Command) -> ExitCode {
    let mut printer = Printer::stdout(global.output);
    exit(dispatch(global, command, &mut printer).await)
}

/// Prints the completion script of `shell` for the whole command tree.
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
    let timeout = Duration::from_secs(global.timeout);
    let api = Api::new(session.server.clone(), session.token.clone(), timeout)?;
    match command {
        Command::Login(args) => login::run(args, &api, session, printer).await,
        Command::Logout => login::logout(&api, session, printer).await,
        Command::Whoami => login::whoami(&api, printer).await,
        Command::Password(command) => account::run(command, &api, session, printer).await,
        Command::Token(command) => token::run(command, &api, printer).await,
        Command::Org(command) => org::run(command, &api, session, printer).await,
        Command::Cluster(command) => cluster::run(command, &api, printer).await,
        Command::Deploy(args) => deployment::deploy(args, &api, printer).await,
        Command::Deployment(command) => deployment::run(command, &api, printer).await,
        Command::Image(command) => image::run(command, &api, printer).await,
        Command::Template(command) => template::run(command, &api, printer).await,
        Command::Env(command) => env::run(command, &api, printer).await,
        Command::Service(args) => service::run(*args, &api, printer).await,
        Command::ServiceAccount(args) => service_account::run(args, &api, printer).await,
        Command::Credential(command) => credential::run(command, &api, printer).await,
        Command::Registry(command) => credential::run_registry(command, &api, printer).await,
        Command::Quota => quota::run(&api, printer).await,
        Command::Queue(args) => queue::run(args, &api, printer).await,
        Command::Search(args) => search::run(args, &api, printer).await,
        Command::Graph(args) => graph::run(args, &api, printer).await,
        Command::Events(args) => events::run(args, &api, printer).await,
        Command::Demo(args) => demo::run(args, api, session, timeout, printer).await,
        Command::Admin(command) => admin::run(*command, &api, printer).await,
    }
}
