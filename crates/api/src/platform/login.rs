//! Signing in and out.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use model::event::Kind;
use store::{event, token};
use wire::user::{Credentials, Session};

use crate::body::Json;
use crate::caller::{Caller, From};
use crate::{App, Problem, account};

/// Signs in.
#[utoipa::path(post, path = "/api/v1/login", tag = "sign-in", security(()), request_body = Credentials,
    responses((status = 200, body = Session, description = "Signed in"), Problem))]
pub(crate) async fn login(
    State(app): State<App>,
    from: From,
    Json(who): Json<Credentials>,
) -> Result<Answer<Session>, Problem> {
    let user = account::verify(&app, &who.username, &who.password, from.0).await?;
    let (token, expires_at) = account::sign_in(&app, &user).await?;
    Ok(Answer(Session { token, expires_at, user: user.into() }))
}

/// Signs out: the token ends at once, everywhere.
#[utoipa::path(post, path = "/api/v1/logout", tag = "sign-in",
    responses((status = 204, description = "Signed out"), Problem))]
pub(crate) async fn logout(State(app): State<App>, caller: Caller) -> Result<StatusCode, Problem> {
    if let Some(hash) = &caller.token {
        let mut tx = app.db.begin(caller.actor()).await?;
        token::delete(&mut tx, hash).await?;
        // Other replicas learn from the event that they must forget the token.
        let (id, owner) = (caller.user.id, Some(caller.user.organization_id));
        event::append(&mut tx, Kind::User, id, owner, "signed_out", &caller.user).await?;
        tx.commit().await?;
        app.cache.clear();
    }
    Ok(StatusCode::NO_CONTENT)
}
