//! Organizations: making one, joining one, and who is in it.

use serde::Deserialize;
use serde_json::json;

use super::call::Call;
use super::config::Session;
use super::error::Error;
use super::format;
use super::http::Api;
use super::invite;
use super::login::{self, User};
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

#[derive(Deserialize)]
struct Organization {
    id: String,
    name: String,
    #[serde(default)]
    deployments: Option<u64>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    members: Vec<User>,
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
    #[derive(Deserialize)]
    struct Created {
        organization: Organization,
    }
    let password = user.password.read_new()?;
    let mut owner = json!({ "username": user.username, "password": password });
    if let Some(display_name) = user.display_name {
        owner["display_name"] = display_name.into();
    }
    let body = json!({ "name": name, "owner": owner });
    let answer = api.send(&Call::post(&["organizations"], Some(body)).open()).await?;
    login::sign_in_new(api, &mut session, printer, &user.username, &password).await?;
    printer.answer(&answer, || {
        let Created { organization } = api.read(&answer)?;
        Ok(Table::new(&["ID", "NAME", "OWNER"])
            .row([organization.id, organization.name, user.username])
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
    let mut body = json!({ "code": code, "username": user.username, "password": password });
    if let Some(display_name) = user.display_name {
        body["display_name"] = display_name.into();
    }
    let answer = api.send(&Call::post(&["invites", "redeem"], Some(body)).open()).await?;
    login::sign_in_new(api, &mut session, printer, &user.username, &password).await?;
    printer.answer(&answer, || Ok(user_table(&[api.read(&answer)?])))
}

/// Shows the organization of the caller.
async fn show(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let me: User = api.read(&api.send(&Call::get(&["users", "me"])).await?)?;
    let id = me
        .organization_id
        .ok_or_else(|| Error::failed(format!("{} belongs to no organization", me.username)))?;
    let answer = api.send(&Call::get(&["organizations", &id])).await?;
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
    let members = organization.members.into_iter().map(|user| user.username);
    table::fields(&[
        ("ID", organization.id),
        ("NAME", organization.name),
        ("DEPLOYMENTS", organization.deployments.map(|n| n.to_string()).unwrap_or_default()),
        ("MEMBERS", format::join(members)),
        ("CREATED", format::time(organization.created_at.as_deref())),
    ])
}

fn user_table(users: &[User]) -> String {
    let table = Table::new(&["ID", "USERNAME", "ROLE", "CREATED", "DISPLAY NAME"]);
    let row = |table: Table, user: &User| {
        table.row([
            user.id.clone(),
            user.username.clone(),
            user.role.clone(),
            format::time(user.created_at.as_deref()),
            format::optional(user.display_name.as_ref()),
        ])
    };
    users.iter().fold(table, row).render()
}
