//! Invites in the Kargo API: identified by their code.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use base::entropy;
use model::access::{Action, SubjectKind, Verb};
use model::{Time, invite};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use wire::invite::InviteStatus;

use super::user::UserResponse;
use crate::body::{Json, OptionalJson};
use crate::caller::{Call, From as Address, authorization};
use crate::page::Query;
use crate::platform::invite::status;
use crate::{App, Problem, account, sign_up};

/// Options for an invite.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = KargoInviteWanted)]
pub(crate) struct InviteRequest {
    /// Lifetime of the code in seconds; defaults to seven days.
    expires_in: Option<i64>,
    /// Role of users who redeem the code: `viewer`, `member` (the default), or `owner`, which only
    /// owners may give. A reopened code keeps its role.
    role: Option<String>,
    /// Code to reopen instead of creating a new one.
    code: Option<String>,
}

/// An active invite code.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoInvite)]
pub(crate) struct InviteResponse {
    /// Invite code. Returned only once.
    code: String,
    /// Expiry time.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Time,
}

/// Code to check.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CodeQuery {
    /// Invite code.
    code: Option<String>,
}

/// Redemption of an invite: creates a user in the inviting organization.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoJoin)]
pub(crate) struct Join {
    /// Username, unique ignoring case.
    username: String,
    /// Password of at least the configured minimum length.
    password: String,
    /// Display name; defaults to the username.
    display_name: Option<String>,
    /// Invite code; may also be given as `?code=` or as the bearer value.
    code: Option<String>,
}

/// Creates an invite code; with `code` in the body, reopens that one.
#[utoipa::path(patch, path = "/organization/invite/", tag = "invite", request_body = Option<InviteRequest>,
    responses((status = 201, body = InviteResponse, description = "Active invite code"), Problem))]
pub(crate) async fn invite_open(
    Call(app, caller): Call,
    OptionalJson(request): OptionalJson<InviteRequest>,
) -> Result<(StatusCode, Answer<InviteResponse>), Problem> {
    let max = app.settings.invite_max_life;
    let life = invite::check_lifetime("expires_in", request.expires_in, max)?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let (invite, code) = match request.code {
        None => {
            let role = account::invited_role(&caller, request.role.as_deref())?;
            account::invite(&app, &mut tx, &caller, role, life).await?
        }
        Some(code) => {
            let found = store::invite::find(&mut tx, &entropy::hash(code.trim())).await?;
            let own = found.filter(|invite| invite.organization_id == caller.user.organization_id);
            let invite = own.ok_or_else(|| {
                Problem::new(
                    StatusCode::NOT_FOUND,
                    "Your organization has no invite with this code.",
                )
            })?;
            caller.may(Action::new(SubjectKind::Invite, Verb::Update))?;
            sign_up::may_invite(&app, &caller)?;
            account::must_keep_role(invite.role, request.role.as_deref())?;
            (store::invite::reopen(&mut tx, caller.own(), invite.id, life).await?, code)
        }
    };
    tx.commit().await?;
    Ok((StatusCode::CREATED, Answer(InviteResponse { code, expires_at: invite.expires_at })))
}

/// Returns the status of an invite code.
#[utoipa::path(get, path = "/organization/invite/", tag = "invite", security(()), params(CodeQuery),
    responses((status = 200, body = InviteStatus, description = "Status"), Problem))]
pub(crate) async fn invite_show(
    State(app): State<App>,
    Query(query): Query<CodeQuery>,
) -> Result<Answer<InviteStatus>, Problem> {
    let code =
        query.code.ok_or_else(|| Problem::field("code", "is required: ?code=<invite code>"))?;
    status(&app, code).await.map(Answer)
}

/// Redeems an invite code: creates a user in the inviting organization.
#[utoipa::path(post, path = "/organization/invite/", tag = "invite", security(()), params(CodeQuery),
    request_body = Join, responses((status = 201, body = UserResponse, description = "User created"), Problem))]
pub(crate) async fn invite_use(
    State(app): State<App>,
    Address(from): Address,
    headers: HeaderMap,
    Query(query): Query<CodeQuery>,
    Json(join): Json<Join>,
) -> Result<(StatusCode, Answer<UserResponse>), Problem> {
    let bearer =
        authorization(&headers).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let bearer = bearer.map(|(_, value)| value.to_owned());
    let code = join.code.clone().or(query.code).or(bearer).ok_or_else(|| {
        Problem::field(
            "code",
            "is required: the invite code in the body, as ?code= or as the bearer value",
        )
    })?;
    let display_name = join.display_name.as_deref();
    let request =
        account::UserRequest { username: &join.username, password: &join.password, display_name };
    let user = account::redeem(&app, from, &code, &request).await?;
    Ok((StatusCode::CREATED, Answer(user.into())))
}
