//! Password resets: an owner gets a code, with which the user sets a new password.

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use base::entropy;
use model::UserId;
use model::event::Actor;
use model::user::{self, Access};
use store::password_reset;
use wire::password::{PasswordRedemption, PasswordReset};
use wire::user::User;

use crate::body::Json;
use crate::caller::Call;
use crate::page::id;
use crate::password::Lane;
use crate::{App, Problem};

/// Lifetime of a code.
const CODE_LIFE: Duration = Duration::from_hours(24);

/// Resets the password of another user, and revokes its sessions and tokens.
///
/// The response is the only one that contains the code, with which the user sets a new password
/// within a day.
#[utoipa::path(post, path = "/api/v1/users/{id}/password-reset", tag = "users",
    params(("id" = String, Path, description = "User ID")),
    responses((status = 201, body = PasswordReset, description = "Reset"), Problem))]
pub(crate) async fn password_reset_create(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<(StatusCode, Answer<PasswordReset>), Problem> {
    let id: UserId = id("user", &text)?;
    let code = entropy::secret(app.db.entropy());
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = store::user::get(&mut tx, caller.scope(), id).await?;
    caller.must_have_full_scope("reset passwords")?;
    if id == caller.user.id {
        let detail =
            "Change your own password with PATCH /api/v1/users/me and the current password.";
        return Err(Problem::conflict(detail));
    }
    if found.access != Access::Tenant {
        caller.must_be_admin("reset the passwords of administrators and auditors")?;
    }
    let expires_at = tx.now() + CODE_LIFE;
    let hash = entropy::hash(&code);
    let user = password_reset::create(&mut tx, caller.scope(), id, &hash, expires_at).await?;
    tx.commit().await?;
    app.cache.clear();
    let reset = PasswordReset { user_id: id, username: user.username, code, expires_at };
    Ok((StatusCode::CREATED, Answer(reset)))
}

/// Redeems the code of a password reset: sets a new password.
#[utoipa::path(post, path = "/api/v1/password-resets/redeem", tag = "users", security(()),
    request_body = PasswordRedemption,
    responses((status = 200, body = User, description = "Password set"), Problem))]
pub(crate) async fn password_reset_redeem(
    State(app): State<App>,
    Json(request): Json<PasswordRedemption>,
) -> Result<Answer<User>, Problem> {
    user::password("password", &request.password, app.settings.password_min)?;
    let hash = entropy::hash(request.code.trim());
    must_be_valid(&app, &hash).await?;
    // Check again after waiting for the permit: of many requests with one code, one needs a hash.
    let permit = app.passwords.permit(Lane::Login).await?;
    must_be_valid(&app, &hash).await?;
    let password = app.passwords.hash(permit, app.db.entropy(), &request.password).await?;
    let mut tx = app.db.begin(Actor::Anonymous).await?;
    let user = password_reset::redeem(&mut tx, &hash, password).await?;
    tx.commit().await?;
    app.cache.clear();
    Ok(Answer(user.into()))
}

async fn must_be_valid(app: &App, hash: &str) -> Result<(), Problem> {
    let mut read = app.db.read().await?;
    if password_reset::is_valid(&mut read, hash, app.db.now()).await? {
        return Ok(());
    }
    let detail = "No password reset has this code, or it has expired. Ask an owner of the \
                  organization for a new one.";
    Err(Problem::new(StatusCode::NOT_FOUND, detail))
}
