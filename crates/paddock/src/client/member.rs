//! `paddock org`: members of the organization, and its deletion.

use std::time::Duration;

use wire::organization::{Organization, OrganizationContents};
use wire::page::List;
use wire::user::{User, UserChange};

use super::account;
use super::call::{Call, request};
use super::config::Session;
use super::error::Error;
use super::http::Api;
use super::print::Printer;
use super::prompt;

/// Interval between two requests while the organization's objects are being deleted.
const POLL: Duration = Duration::from_secs(1);

/// The user with that name, whom the caller may see.
pub(crate) async fn find(api: &Api, username: &str) -> Result<User, Error> {
    let call = Call::get(&["users"]).query("username", Some(username));
    let mut found: List<User> = api.read(&api.send(&call).await?)?;
    found.items.pop().ok_or_else(|| {
        Error::failed_with_hint(
            format!("no user {username:?}"),
            r#"run "paddock org members" to see the members of your organization"#,
        )
    })
}

/// Changes the role of a member.
pub(crate) async fn set_role(
    api: &Api,
    printer: &mut Printer,
    username: &str,
    role: &str,
) -> Result<(), Error> {
    let change = UserChange { role: Some(role.into()), ..UserChange::default() };
    self::change(api, printer, username, &change, &format!("role of {username} is {role}")).await
}

/// Changes the user with that name.
pub(crate) async fn change(
    api: &Api,
    printer: &mut Printer,
    username: &str,
    change: &UserChange,
    note: &str,
) -> Result<(), Error> {
    let user = find(api, username).await?;
    let call = Call::patch(&["users", &user.id.to_string()], request(change));
    printer.response_or_note(&api.send(&call).await?, note)
}

/// Removes a member.
pub(crate) async fn remove(
    api: &Api,
    printer: &mut Printer,
    username: &str,
    yes: bool,
) -> Result<(), Error> {
    let user = find(api, username).await?;
    let name = user.username;
    prompt::confirm(&format!("Remove {name} and revoke {name}'s tokens and invites?"), yes)?;
    let response = api.send(&Call::delete(&["users", &user.id.to_string()])).await?;
    printer.response_or_note(&response, &format!("{name} removed"))
}

/// Resets the password of a member.
pub(crate) async fn reset_password(
    api: &Api,
    printer: &mut Printer,
    username: &str,
    yes: bool,
) -> Result<(), Error> {
    let user = find(api, username).await?;
    let name = &user.username;
    let question = format!("Reset the password of {name} and revoke {name}'s sessions and tokens?");
    prompt::confirm(&question, yes)?;
    account::reset(api, printer, &user).await
}

/// Leaves the organization: deletes the caller's user.
pub(crate) async fn leave(
    api: &Api,
    mut session: Session,
    printer: &mut Printer,
    yes: bool,
) -> Result<(), Error> {
    prompt::confirm("Leave the organization and delete your user?", yes)?;
    let response = api.send(&Call::delete(&["users", "me"])).await?;
    session.remove_token()?;
    printer.response_or_note(&response, "left the organization")
}

/// Deletes the caller's organization.
pub(crate) async fn delete(
    api: &Api,
    mut session: Session,
    printer: &mut Printer,
    name: &str,
    (force, yes): (bool, bool),
) -> Result<(), Error> {
    let me: User = api.read(&api.send(&Call::get(&["users", "me"])).await?)?;
    let id = me.organization_id.to_string();
    let own: Organization = api.read(&api.send(&Call::get(&["organizations", &id])).await?)?;
    if own.name != name {
        return Err(Error::failed(format!(
            "your organization is {:?}, not {name:?}; nothing was deleted",
            own.name
        )));
    }
    let with = if force { ", everything in it" } else { "" };
    prompt::confirm(&format!("Delete organization {name}{with} and all of its users?"), yes)?;
    let cascade = force.then_some(true);
    let call = Call::delete(&["organizations", &id]).query("cascade", cascade);
    let mut last = String::new();
    loop {
        let response = api.send(&call).await.map_err(hint_force)?;
        if response.body.is_empty() {
            session.remove_token()?;
            return printer.response_or_note(&response, &format!("organization {name} deleted"));
        }
        let left = remaining(&api.read(&response)?);
        if left != last {
            printer.note(&format!("deleting {left}"));
            last = left;
        }
        tokio::time::sleep(POLL).await;
    }
}

fn hint_force(error: Error) -> Error {
    match error.status() {
        Some(409) => error.or_hint("use --force to delete everything in the organization"),
        _ => error,
    }
}

fn remaining(contents: &OrganizationContents) -> String {
    let counts = [
        (contents.environments, "environments"),
        (contents.instances, "instances"),
        (contents.deployments, "deployments"),
        (contents.clusters, "clusters"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_names_what_is_left() {
        let contents =
            OrganizationContents { environments: 0, instances: 1, deployments: 2, clusters: 0 };
        assert_eq!(remaining(&contents), "1 instances, 2 deployments");
    }
}
