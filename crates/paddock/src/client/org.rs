//! Organizations: making one, joining one, and who is in it.

use serde_json::json;
use wire::invite::Redemption;
use wire::organization::{Founded, NewOrganization, Organization};
use wire::user::User;

use super::call::Call;
use super::config::Session;
use super::error::Error;
use super::format;
use super::http::Api;
use super::invite;
use super::login;
use super::page::{self, Limit};
use super::password;
use super::print::Printer;
use super::table::{self, Table};

/// `paddock org …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Makes an organization and its owner, and signs in
    #[command(after_help = "Example:\n  paddock org create acme --username ann")]
    Create {
        /// What the organization is called
        name: String,
        #[command(flatten)]
        user: NewUser,
    },
    /// Shows the organization of who is signed in
    #[command(after_help = "Example:\n  paddock org show")]
    Show,
    /// Lists who is in the organization
    #[command(after_help = "Example:\n  paddock org members -o json")]
    Members {
        #[command(flatten)]
        limit: Limit,
    },
    /// Makes an invite, or looks after those that were made
    Invite(invite::Args),
    /// Joins an organization with an invite, and signs in
    #[command(after_help = "Example:\n  paddock org join CODE --username bob")]
    Join {
        /// The code of the invite
        code: String,
        #[command(flatten)]
        user: NewUser,
    },
}

/// Somebody who has no account yet.
#[derive(clap::Args)]
pub(crate) struct NewUser {
    /// The name to sign in with
    #[arg(long)]
    username: String,
    /// The name that others see
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,
    #[command(flatten)]
    password: password::Source,
}

/// Carries out one of the commands.
pub(crate) async fn run(
    command: Command,
    api: &Api,
    session: Session,
    printer: &mut Printer,
) -> Result<(), Error> {
    match command {
        Command::Create { name, user } => create(api, session, printer, &name, user).await,
        Command::Show => show(api, printer).await,
        Command::Members { limit } => members(api, printer, limit.limit).await,
        Command::Invite(args) => invite::run(args, api, printer).await,
        Command::Join { code, user } => join(api, session, printer, &code, user).await,
    }
}

/// Makes an organization with its first owner, who is then signed in.
async fn create(
    api: &Api,
    mut session: Session,
    printer: &mut Printer,
    name: &str,
    user: NewUser,
) -> Result<(), Error> {
    let password = user.password.read_new()?;
    let owner = wire::user::NewUser {
        username: user.username.clone(),
        password: password.clone(),
        display_name: user.display_name,
    };
    let body = json!(NewOrganization { name: name.into(), owner });
    let answer = api.send(&Call::post(&["organizations"], Some(body)).open()).await?;
    login::sign_in_new(api, &mut session, printer, &user.username, &password).await?;
    printer.answer(&answer, || {
        let Founded { organization, .. } = api.read(&answer)?;
        Ok(Table::new(&["ID", "NAME", "OWNER"])
            .row([organization.id.to_string(), organization.name, user.username])
            .render())
    })
}

/// Makes a user in the organization that the code comes from, who is then signed in.
async fn join(
    api: &Api,
    mut session: Session,
    printer: &mut Printer,
    code: &str,
    user: NewUser,
) -> Result<(), Error> {
    let password = user.password.read_new()?;
    let body = json!(Redemption {
        code: code.into(),
        username: user.username.clone(),
        password: password.clone(),
        display_name: user.display_name,
    });
    let answer = api.send(&Call::post(&["invites", "redeem"], Some(body)).open()).await?;
    login::sign_in_new(api, &mut session, printer, &user.username, &password).await?;
    printer.answer(&answer, || Ok(user_table(&[api.read(&answer)?])))
}

/// Shows the organization of the caller.
async fn show(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let me: User = api.read(&api.send(&Call::get(&["users", "me"])).await?)?;
    let answer = api.send(&Call::get(&["organizations", &me.organization_id.to_string()])).await?;
    printer.answer(&answer, || {
        let organization: Organization = api.read(&answer)?;
        Ok(organization_fields(organization))
    })
}

/// Lists the users of the caller's organization.
async fn members(api: &Api, printer: &mut Printer, limit: usize) -> Result<(), Error> {
    page::list(api, Call::get(&["users"]), limit).await?.print(api, printer, user_table)
}

fn organization_fields(organization: Organization) -> String {
    let members = organization.members.into_iter().flatten().map(|user| user.username);
    table::fields(&[
        ("ID", organization.id.to_string()),
        ("NAME", organization.name),
        ("DEPLOYMENTS", organization.deployments.to_string()),
        ("MEMBERS", format::join(members)),
        ("CREATED", format::timestamp(organization.created_at)),
    ])
}

fn user_table(users: &[User]) -> String {
    table::of(
        users,
        &[
            ("ID", |user| user.id.to_string()),
            ("USERNAME", |user| user.username.clone()),
            ("ROLE", |user| user.role.clone()),
            ("CREATED", |user| format::timestamp(user.created_at)),
            ("DISPLAY NAME", |user| user.display_name.clone()),
        ],
    )
}
