//! Invites, as the Kargo API has them: the code is the only handle.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use base::entropy;
use model::{Time, invite};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use wire::invite::InviteStatus;

use super::user::Shown;
use crate::body::{Json, OptionalJson};
use crate::caller::{Call, authorization};
use crate::page::Query;
use crate::platform::invite::status;
use crate::{App, Problem, account};

/// What kind of invite is wanted.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = KargoInviteWanted)]
pub(crate) struct Wanted {
    /// How long the code shall work, in seconds; seven days when it is left out.
    expires_in: Option<i64>,
    /// Re-open this code instead of making a new one.
    code: Option<String>,
}

/// A code that works now.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoInvite)]
pub(crate) struct Opened {
    /// The code. It is shown only here.
    code: String,
    /// When it stops working.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Time,
}

/// Which code is meant.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Code {
    /// The invite's code.
    code: Option<String>,
}

/// Who joins.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoJoin)]
pub(crate) struct Join {
    /// The name to sign in with, unique when case is ignored.
    username: String,
    /// The password: any text that is long enough.
    password: String,
    /// The name that others see; the username when it is left out.
    display_name: Option<String>,
    /// The invite's code; it may also be given as `?code=` or as the bearer value.
    code: Option<String>,
}

/// Generates an invite code; with `code` in the body, re-opens that one.
#[utoipa::path(patch, path = "/organization/invite/", tag = "invite", request_body = Option<Wanted>,
    responses((status = 201, body = Opened, description = "The code works now"), Problem))]
pub(crate) async fn invite_open(
    Call(app, caller): Call,
    OptionalJson(wanted): OptionalJson<Wanted>,
) -> Result<(StatusCode, Answer<Opened>), Problem> {
    let life = invite::life("expires_in", wanted.expires_in)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let (invite, code) = match wanted.code {
        None => account::invite(&app, &mut tx, &caller.user, life).await?,
        Some(code) => {
            let found = store::invite::find(&mut tx, &entropy::hash(code.trim())).await?;
            let own = found.filter(|invite| invite.organization_id == caller.user.organization_id);
            let invite = own.ok_or_else(|| {
                Problem::new(
                    StatusCode::NOT_FOUND,
                    "Your organization has no invite with this code.",
                )
            })?;
            caller.must_be_owner()?;
            (store::invite::reopen(&mut tx, caller.own(), invite.id, life).await?, code)
        }
    };
    tx.commit().await?;
    Ok((StatusCode::CREATED, Answer(Opened { code, expires_at: invite.expires_at })))
}

/// Verifies whether a code is active.
#[utoipa::path(get, path = "/organization/invite/", tag = "invite", security(()), params(Code),
    responses((status = 200, body = InviteStatus, description = "Its status"), Problem))]
pub(crate) async fn invite_show(
    State(app): State<App>,
    Query(query): Query<Code>,
) -> Result<Answer<InviteStatus>, Problem> {
    let code =
        query.code.ok_or_else(|| Problem::field("code", "give the invite's code as ?code="))?;
    status(&app, code).await.map(Answer)
}

/// Uses a code: makes a user in the organization that invites.
#[utoipa::path(post, path = "/organization/invite/", tag = "invite", security(()), params(Code),
    request_body = Join, responses((status = 201, body = Shown, description = "Joined"), Problem))]
pub(crate) async fn invite_use(
    State(app): State<App>,
    headers: HeaderMap,
    Query(query): Query<Code>,
    Json(join): Json<Join>,
) -> Result<(StatusCode, Answer<Shown>), Problem> {
    let bearer =
        authorization(&headers).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let bearer = bearer.map(|(_, value)| value.to_owned());
    let code = join.code.clone().or(query.code).or(bearer).ok_or_else(|| {
        Problem::field(
            "code",
            "give the invite's code in the body, as ?code= or as the bearer value",
        )
    })?;
    let display_name = join.display_name.as_deref();
    let wanted =
        account::Wanted { username: &join.username, password: &join.password, display_name };
    let user = account::redeem(&app, &code, &wanted).await?;
    Ok((StatusCode::CREATED, Answer(user.into())))
}
