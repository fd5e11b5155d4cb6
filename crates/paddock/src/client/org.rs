//! `paddock org`: manages the organization and its members.

use serde_json::json;
use wire::invite::Redemption;
use wire::organization::{CreatedOrganization, NewOrganization, Organization};
use wire::user::User;

use super::call::Call;
use super::config::Session;
use super::error::Error;
use super::format;
use super::hint;
use super::http::Api;
use super::invite;
use super::login;
use super::member;
use super::page::{self, Limit};
use super::password;
use super::print::Printer;
use super::table::{self, Table};

const ROLE_HELP: &str = "\
viewer  reads everything of the organization
member  also creates, changes and deletes
owner   also manages members, invites and credentials of agents

Example:
  paddock org set-role bob viewer";

/// `paddock org …`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Create an organization with an owner, and log in as the owner
    #[command(after_help = "Example:\n  paddock org create acme --username ann")]
    Create {
        /// Name of the organization
        name: String,
        #[command(flatten)]
        user: NewUser,
    },
    /// Show your organization
    #[command(after_help = "Example:\n  paddock org show")]
    Show,
    /// List the members of your organization
    #[command(after_help = "Example:\n  paddock org members -o json")]
    Members {
        #[command(flatten)]
        limit: Limit,
    },
    /// Change the role of a member
    #[command(after_help = ROLE_HELP)]
    SetRole {
        /// User name
        username: String,
        /// Role: viewer, member or owner
        role: String,
    },
    /// Remove a member; revokes the member's tokens and invites
    #[command(visible_alias = "rm", after_help = "Example:\n  paddock org remove bob --yes")]
    Remove {
        /// User name
        username: String,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
    /// Reset the password of a member; shows a code with which the member sets a new one
    #[command(after_help = "\
The member's sessions and tokens are revoked. The code is shown only once and works for a day.

Example:
  paddock org reset-password bob")]
    ResetPassword {
        /// User name
        username: String,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
    /// Leave the organization and delete your user
    #[command(after_help = "Example:\n  paddock org leave --yes")]
    Leave {
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
    /// Delete the organization with all of its users
    #[command(after_help = "\
The organization must have no environments, instances, deployments and clusters, unless --force
deletes them.

Example:
  paddock org delete acme --force --yes")]
    Delete {
        /// Name of your organization
        name: String,
        /// Delete everything in the organization first, and wait for it
        #[arg(long)]
        force: bool,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
    /// Create, list, check, reopen or revoke invites
    Invite(invite::Args),
    /// Join an organization with an invite code, and log in
    #[command(after_help = "Example:\n  paddock org join CODE --username bob")]
    Join {
        /// Invite code
        code: String,
        #[command(flatten)]
        user: NewUser,
    },
}

/// A user to create.
#[derive(clap::Args)]
pub(crate) struct NewUser {
    /// User name
    #[arg(long)]
    username: String,
    /// Display name
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,
    #[command(flatten)]
    password: password::Source,
}

/// Runs a command.
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
        Command::SetRole { username, role } => {
            member::set_role(api, printer, &username, &role).await
        }
        Command::Remove { username, yes } => member::remove(api, printer, &username, yes).await,
        Command::ResetPassword { username, yes } => {
            member::reset_password(api, printer, &username, yes).await
        }
        Command::Leave { yes } => member::leave(api, session, printer, yes).await,
        Command::Delete { name, force, yes } => {
            member::delete(api, session, printer, &name, (force, yes)).await
        }
        Command::Invite(args) => invite::run(args, api, printer).await,
        Command::Join { code, user } => join(api, session, printer, &code, user).await,
    }
}

/// Creates an organization with its first owner, and logs in as the owner.
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
    let mut call = Call::post(&["organizations"], Some(body));
    // The administrator needs the token unless sign-up is open.
    if session.token.is_none() {
        call = call.without_token();
    }
    let response = api.send(&call).await.map_err(hint::for_sign_up)?;
    login::log_in_new_user(api, &mut session, printer, &user.username, &password).await?;
    printer.response(&response, || {
        let CreatedOrganization { organization, .. } = api.read(&response)?;
        Ok(Table::new(&["ID", "NAME", "OWNER"])
            .row([organization.id.to_string(), organization.name, user.username])
            .render())
    })
}

/// Creates a user in the organization of the invite, and logs in as that user.
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
    let response =
        api.send(&Call::post(&["invites", "redeem"], Some(body)).without_token()).await?;
    login::log_in_new_user(api, &mut session, printer, &user.username, &password).await?;
    printer.response(&response, || Ok(user_table(&[api.read(&response)?])))
}

/// Shows the organization of the caller.
async fn show(api: &Api, printer: &mut Printer) -> Result<(), Error> {
    let me: User = api.read(&api.send(&Call::get(&["users", "me"])).await?)?;
    let response =
        api.send(&Call::get(&["organizations", &me.organization_id.to_string()])).await?;
    printer.response(&response, || {
        let organization: Organization = api.read(&response)?;
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
        ("MAX PRIORITY", organization.max_priority.map_or("default".into(), |max| max.to_string())),
        ("WEIGHT", organization.weight.to_string()),
        ("MEMBERS", format::join(members)),
        ("CREATED", format::timestamp(organization.created_at)),
    ])
}

fn user_table(users: &[User]) -> String {
    table::render(
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
