//! Login and logout.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use model::event::Kind;
use store::{event, token};
use wire::user::{Credentials, Session};

use crate::body::Json;
use crate::caller::{Caller, From};
use crate::{App, Problem, account};

/// Logs in with username and password.
#[utoipa::path(post, path = "/api/v1/login", tag = "sign-in", security(()), request_body = Credentials,
    responses((status = 200, body = Session, description = "Logged in"), Problem))]
pub(crate) async fn login(
    State(app): State<App>,
    from: From,
    Json(credentials): Json<Credentials>,
) -> Result<Answer<Session>, Problem> {
    let user = account::verify(&app, &credentials.username, &credentials.password, from.0).await?;
    let (token, expires_at) = account::create_token(&app, &user).await?;
    Ok(Answer(Session { token, expires_at, user: user.into() }))
}

/// Logs out: revokes the token in all replicas.
#[utoipa::path(post, path = "/api/v1/logout", tag = "sign-in",
    responses((status = 204, description = "Logged out"), Problem))]
pub(crate) async fn logout(State(app): State<App>, caller: Caller) -> Result<StatusCode, Problem> {
    if let Some(hash) = &caller.token {
        let mut tx = app.db.begin(caller.actor()).await?;
        token::delete(&mut tx, hash).await?;
        // The event makes other replicas drop the token from their caches.
        let (id, owner) = (caller.user.id, Some(caller.user.organization_id));
        event::append(&mut tx, Kind::User, id, owner, "signed_out", &caller.user).await?;
        tx.commit().await?;
        app.cache.clear();
    }
    Ok(StatusCode::NO_CONTENT)
}
