//! Signing in and joining: what both API families do the same way.

use std::net::IpAddr;
use std::time::Duration;

use axum::http::StatusCode;
use base::entropy;
use model::event::Actor;
use model::invite::Invite;
use model::organization::{self, Organization};
use model::user::{self, Access, NewUser, Role, User};
use model::{Invalid, Time, name};
use store::{Tx, invite, token};

use crate::{App, Problem};

/// A user as someone asks for it.
pub(crate) struct Wanted<'a> {
    pub(crate) username: &'a str,
    pub(crate) password: &'a str,
    pub(crate) display_name: Option<&'a str>,
}

impl Wanted<'_> {
    fn check(&self, app: &App) -> Result<NewUser, Invalid> {
        let new = NewUser::check(self.username, self.display_name);
        let password = user::password("password", self.password, app.settings.password_min);
        match (new, password) {
            (Ok(new), Ok(())) => Ok(new),
            (new, password) => {
                let wrong =
                    new.err().into_iter().chain(password.err()).flat_map(|invalid| invalid.0);
                Err(Invalid(wrong.collect()))
            }
        }
    }
}

/// Who signs in with that name and password. Wrong tries are counted.
pub(crate) async fn verify(
    app: &App,
    username: &str,
    password: &str,
    from: IpAddr,
) -> Result<User, Problem> {
    let key: String = name::fold(username).chars().take(64).collect();
    app.throttle.check(&key, from, app.db.now())?;
    // With many in line, others may have failed by now: guessing all at once is no way round.
    let turn = app.passwords.turn().await;
    app.throttle.check(&key, from, app.db.now())?;
    let (user, hash) = credentials(app, username).await?.unzip();
    let is_right = app.passwords.verify(turn, password, hash).await;
    let now = app.db.now();
    match user.filter(|_| is_right) {
        Some(user) => {
            app.throttle.succeeded(&key, from, now);
            Ok(user)
        }
        None => {
            app.throttle.failed(&key, from, now);
            Err(Problem::unauthenticated("User name or password is wrong."))
        }
    }
}

/// The user of that name. What can't be a name is nobody's, and the database is not asked.
async fn credentials(app: &App, username: &str) -> Result<Option<(User, String)>, Problem> {
    let Ok(username) = user::username("username", username) else { return Ok(None) };
    Ok(store::user::credentials(&mut app.db.read().await?, &username).await?)
}

/// A new token for a user, and its end. It is shown once; only its hash is kept.
pub(crate) async fn sign_in(app: &App, user: &User) -> Result<(String, Time), Problem> {
    let secret = entropy::secret(app.db.entropy());
    let mut tx = app.db.begin(Actor::User(user.id)).await?;
    let expires_at = tx.now() + app.settings.token_life;
    token::create(&mut tx, user.id, &entropy::hash(&secret), expires_at).await?;
    tx.commit().await?;
    Ok((secret, expires_at))
}

/// Makes an organization and its owner, both or neither. `parents` are the request's own words.
pub(crate) async fn found(
    app: &App,
    organization_name: &str,
    owner: &Wanted<'_>,
    parents: [&str; 2],
) -> Result<(Organization, User), Problem> {
    let [name_field, owner_field] = parents;
    let name = organization::name(name_field, organization_name);
    let new = owner.check(app).map_err(|invalid| invalid.within(owner_field));
    let (name, new) = match (name, new) {
        (Ok(name), Ok(new)) => (name, new),
        (name, new) => {
            let wrong = name.err().into_iter().chain(new.err()).flat_map(|invalid| invalid.0);
            return Err(Invalid(wrong.collect()).into());
        }
    };
    let turn = app.passwords.turn().await;
    let hash = app.passwords.hash(turn, app.db.entropy(), owner.password).await?;
    let mut tx = app.db.begin(Actor::Anonymous).await?;
    let organization = store::organization::create(&mut tx, &name)
        .await
        .map_err(|error| named(error, name_field))?;
    let user =
        store::user::create(&mut tx, organization.id, &new, &hash, Role::Owner, Access::Tenant)
            .await
            .map_err(|error| named(error, &format!("{owner_field}.username")))?;
    tx.commit().await?;
    Ok((organization, user))
}

/// What is taken, by the request's own word for it.
fn named(error: store::Error, field: &str) -> Problem {
    match error {
        store::Error::Taken { .. } => Problem::taken(field),
        other => other.into(),
    }
}

/// Makes a new invite and its code, which is shown once.
pub(crate) async fn invite(
    app: &App,
    tx: &mut Tx,
    by: &User,
    life: Duration,
) -> Result<(Invite, String), Problem> {
    let code = entropy::secret(app.db.entropy());
    let hash = entropy::hash(&code);
    let invite = invite::create(tx, by.organization_id, by.id, &hash, life).await?;
    Ok((invite, code))
}

/// The invite of a code.
pub(crate) async fn invite_of(app: &App, code: &str) -> Result<Invite, Problem> {
    let found = invite::find(&mut app.db.read().await?, &entropy::hash(code.trim())).await?;
    found.ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "There is no invite with this code; ask for a new one.")
    })
}

/// Makes a user in the organization that invites, and uses the invite up: both or neither.
pub(crate) async fn redeem(app: &App, code: &str, wanted: &Wanted<'_>) -> Result<User, Problem> {
    let new = wanted.check(app)?;
    usable(app, code).await?;
    // Hashing takes its time; with many in line, somebody else may have used the code by now.
    let turn = app.passwords.turn().await;
    let invite = usable(app, code).await?;
    let hash = app.passwords.hash(turn, app.db.entropy(), wanted.password).await?;
    let mut tx = app.db.begin(Actor::Anonymous).await?;
    let user = store::user::create(
        &mut tx,
        invite.organization_id,
        &new,
        &hash,
        Role::Member,
        Access::Tenant,
    )
    .await?;
    invite::redeem(&mut tx, invite.id, user.id).await?;
    tx.commit().await?;
    Ok(user)
}

async fn usable(app: &App, code: &str) -> Result<Invite, Problem> {
    let invite = invite_of(app, code).await?;
    if invite.used_by.is_some() {
        return Err(Problem::conflict("This invite was used already; ask an owner to re-open it."));
    }
    if invite.is_expired(app.db.now()) {
        return Err(Problem::new(
            StatusCode::GONE,
            "This invite has expired; ask an owner to re-open it.",
        ));
    }
    Ok(invite)
}
