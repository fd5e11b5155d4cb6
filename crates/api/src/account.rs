//! Logins, organizations and invites: operations shared by the API families.

use std::net::IpAddr;
use std::time::Duration;

use axum::http::StatusCode;
use base::entropy;
use base::locks::named_lock;
use model::access::{Action, SubjectKind, Verb};
use model::event::Actor;
use model::invite::Invite;
use model::organization::{self, Organization};
use model::user::{self, Access, NewUser, Role, User};
use model::{Invalid, Time, name};
use store::{Tx, invite, token};

use crate::caller::Caller;
use crate::password::Lane;
use crate::sign_up::{self, Founder};
use crate::{App, Problem};

/// Requested user account.
pub(crate) struct UserRequest<'a> {
    pub(crate) username: &'a str,
    pub(crate) password: &'a str,
    pub(crate) display_name: Option<&'a str>,
}

impl UserRequest<'_> {
    fn check(&self, app: &App) -> Result<NewUser, Invalid> {
        let new = NewUser::check(self.username, self.display_name);
        let password = user::password("password", self.password, app.settings.password_min);
        match (new, password) {
            (Ok(new), Ok(())) => Ok(new),
            (new, password) => {
                let errors =
                    new.err().into_iter().chain(password.err()).flat_map(|invalid| invalid.0);
                Err(Invalid(errors.collect()))
            }
        }
    }
}

/// Returns the user with this name and password. Failed attempts are counted.
pub(crate) async fn verify(
    app: &App,
    username: &str,
    password: &str,
    from: IpAddr,
) -> Result<User, Problem> {
    let key: String = name::fold(username).chars().take(64).collect();
    app.throttle.check(&key, from, app.db.now())?;
    // Check again after waiting for the permit: attempts sent in parallel may have failed by now.
    let permit = app.passwords.permit(Lane::Login).await?;
    app.throttle.check(&key, from, app.db.now())?;
    let (user, hash) = credentials(app, username).await?.unzip();
    let is_right = app.passwords.verify(permit, password, hash).await;
    let now = app.db.now();
    match user.filter(|_| is_right) {
        Some(user) => {
            app.throttle.succeeded(&key, from, now);
            Ok(user)
        }
        None => {
            app.throttle.failed(&key, from, now);
            Err(Problem::unauthenticated("Invalid username or password."))
        }
    }
}

/// Returns the user with this name. An invalid name belongs to no user and causes no query.
async fn credentials(app: &App, username: &str) -> Result<Option<(User, String)>, Problem> {
    let Ok(username) = user::username("username", username) else { return Ok(None) };
    Ok(store::user::credentials(&mut app.db.read().await?, &username).await?)
}

/// Creates a login token. Returns it once with its expiry; only its hash is stored.
pub(crate) async fn create_token(app: &App, user: &User) -> Result<(String, Time), Problem> {
    let secret = entropy::secret(app.db.entropy());
    let mut tx = app.db.begin(Actor::User(user.id)).await?;
    let expires_at = tx.now() + app.settings.token_life;
    token::create(&mut tx, user.id, &entropy::hash(&secret), expires_at).await?;
    tx.commit().await?;
    Ok((secret, expires_at))
}

/// Creates an organization and its owner in one transaction. `parents` are the request's field
/// names.
pub(crate) async fn create_organization(
    app: &App,
    founder: &Founder,
    organization_name: &str,
    owner: &UserRequest<'_>,
    parents: [&str; 2],
) -> Result<(Organization, User), Problem> {
    let [name_field, owner_field] = parents;
    let name = organization::name(name_field, organization_name);
    let new = owner.check(app).map_err(|invalid| invalid.within(owner_field));
    let (name, new) = match (name, new) {
        (Ok(name), Ok(new)) => (name, new),
        (name, new) => {
            let errors = name.err().into_iter().chain(new.err()).flat_map(|invalid| invalid.0);
            return Err(Invalid(errors.collect()).into());
        }
    };
    app.edge.admit_sign_up(founder.from)?;
    let permit = app.passwords.permit(Lane::SignUp).await?;
    let hash = app.passwords.hash(permit, app.db.entropy(), owner.password).await?;
    let mut tx = app.db.begin(founder.actor).await?;
    let organization = store::organization::create(&mut tx, &name)
        .await
        .map_err(|error| rename_conflict(error, name_field))?;
    let user =
        store::user::create(&mut tx, organization.id, &new, &hash, Role::Owner, Access::Tenant)
            .await
            .map_err(|error| rename_conflict(error, &format!("{owner_field}.username")))?;
    tx.commit().await?;
    Ok((organization, user))
}

/// Replaces the field name of a uniqueness conflict by the request's own.
fn rename_conflict(error: store::Error, field: &str) -> Problem {
    match error {
        store::Error::AlreadyExists { .. } => Problem::taken(field),
        other => other.into(),
    }
}

/// Creates an invite and its code, which is returned only once.
pub(crate) async fn invite(
    app: &App,
    tx: &mut Tx,
    caller: &Caller,
    role: Role,
    life: Duration,
) -> Result<(Invite, String), Problem> {
    sign_up::may_invite(app, caller)?;
    let by = &caller.user;
    let code = entropy::secret(app.db.entropy());
    let hash = entropy::hash(&code);
    let invite = invite::create(tx, by.organization_id, by.id, &hash, role, life).await?;
    Ok((invite, code))
}

/// The role that an invite of the caller gives: only owners make owners.
pub(crate) fn invited_role(caller: &Caller, text: Option<&str>) -> Result<Role, Problem> {
    let role = text.map_or(Ok(Role::Member), str::parse::<Role>)?;
    if role == Role::Owner && !caller.allows(Action::new(SubjectKind::Invite, Verb::Administer)) {
        return Err(Problem::forbidden_field("role", "only an owner may invite owners"));
    }
    Ok(role)
}

/// Fails if another role is requested for a reopened invite, whose code is known by now.
pub(crate) fn must_keep_role(role: Role, requested: Option<&str>) -> Result<(), Problem> {
    if requested.is_none_or(|text| text == role.as_str()) {
        return Ok(());
    }
    let why = format!("is {role} and stays so when the invite is reopened; create a new invite");
    Err(Problem::field("role", why))
}

/// Returns the invite with this code.
pub(crate) async fn invite_by_code(app: &App, code: &str) -> Result<Invite, Problem> {
    let invite = invite::find(&mut app.db.read().await?, &entropy::hash(code.trim())).await?;
    invite.ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "No invite has this code. Ask an owner for a new one.")
    })
}

/// Creates a user in the inviting organization and marks the invite as redeemed, in one
/// transaction.
pub(crate) async fn redeem(
    app: &App,
    from: IpAddr,
    code: &str,
    request: &UserRequest<'_>,
) -> Result<User, Problem> {
    sign_up::may_join(app)?;
    let new = request.check(app)?;
    redeemable(app, code).await?;
    // One at a time: of many requests with one code, only the first needs a hash.
    let lock = named_lock(&app.redemptions, &entropy::hash(code.trim()));
    let _lock = lock.lock().await;
    redeemable(app, code).await?;
    app.edge.admit_sign_up(from)?;
    // Check again after waiting for the permit: the code may have been redeemed meanwhile.
    let permit = app.passwords.permit(Lane::SignUp).await?;
    let invite = redeemable(app, code).await?;
    let hash = app.passwords.hash(permit, app.db.entropy(), request.password).await?;
    let mut tx = app.db.begin(Actor::Anonymous).await?;
    let user = store::user::create(
        &mut tx,
        invite.organization_id,
        &new,
        &hash,
        invite.role,
        Access::Tenant,
    )
    .await?;
    invite::redeem(&mut tx, invite.id, user.id).await?;
    tx.commit().await?;
    Ok(user)
}

async fn redeemable(app: &App, code: &str) -> Result<Invite, Problem> {
    let invite = invite_by_code(app, code).await?;
    if invite.used_by.is_some() {
        return Err(Problem::conflict(
            "The invite was already redeemed. Ask an owner to reopen it.",
        ));
    }
    if invite.is_expired(app.db.now()) {
        return Err(Problem::new(
            StatusCode::GONE,
            "The invite has expired. Ask an owner to reopen it.",
        ));
    }
    Ok(invite)
}
