//! Users and organizations, as the Kargo API has them.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use model::user::{Role, User};
use model::{OrganizationId, Time, UserId};
use serde::{Deserialize, Serialize};
use store::Page;
use utoipa::ToSchema;

use crate::account::Wanted;
use crate::body::Json;
use crate::caller::{Call, Caller, From as Address};
use crate::page::MAX_LIMIT;
use crate::{App, Problem, account};

/// A user and the organization to make for it.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoSignUp)]
pub(crate) struct SignUp {
    /// Who signs up.
    user: NewUser,
    /// The organization to make.
    organization: NewOrganization,
}

/// A user to make.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoNewUser)]
struct NewUser {
    /// The name to sign in with, unique when case is ignored.
    username: String,
    /// The password: any text that is long enough.
    password: String,
    /// The name that others see; the username when it is left out.
    display_name: Option<String>,
}

/// An organization to make.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoNewOrganization)]
struct NewOrganization {
    /// Its name.
    name: String,
}

/// Who signs in.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoCredentials)]
pub(crate) struct Credentials {
    /// The name to sign in with; case does not matter.
    username: String,
    /// The password.
    password: String,
}

/// A sign-in.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoSession)]
pub(crate) struct Session {
    /// Send it as `Authorization: Bearer …`.
    token: String,
    /// When it ends.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Time,
}

/// A user.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoUser)]
pub(crate) struct Shown {
    /// Its id.
    #[schema(value_type = String)]
    id: UserId,
    /// The name that it signs in with.
    username: String,
    /// The name that others see.
    display_name: String,
    /// `owner` or `member`.
    #[schema(value_type = String)]
    role: Role,
    /// The organization that it belongs to.
    #[schema(value_type = String)]
    organization_id: OrganizationId,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl From<User> for Shown {
    fn from(u: User) -> Self {
        Self {
            id: u.id,
            username: u.username,
            display_name: u.display_name,
            role: u.role,
            organization_id: u.organization_id,
            created_at: u.created_at,
        }
    }
}

/// An organization.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoOrganization)]
pub(crate) struct Organization {
    /// Its id.
    #[schema(value_type = String)]
    id: OrganizationId,
    /// Its name.
    name: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// Its users.
    members: Vec<Shown>,
}

/// What was made.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoSignedUp)]
pub(crate) struct SignedUp {
    /// The user, who owns the organization.
    user: Shown,
    /// The organization.
    organization: Organization,
}

/// Creates a user and its organization, which it owns.
#[utoipa::path(put, path = "/user/create/", tag = "user", security(()), request_body = SignUp,
    responses((status = 201, body = SignedUp, description = "Created"), Problem))]
pub(crate) async fn user_create(
    State(app): State<App>,
    Json(new): Json<SignUp>,
) -> Result<(StatusCode, Answer<SignedUp>), Problem> {
    let owner = new.user.wanted();
    let words = ["organization.name", "user"];
    let (made, user) = account::found(&app, &new.organization.name, &owner, words).await?;
    let (id, name, created_at) = (made.id, made.name, made.created_at);
    let members = vec![user.clone().into()];
    let organization = Organization { id, name, created_at, members };
    Ok((StatusCode::CREATED, Answer(SignedUp { user: user.into(), organization })))
}

impl NewUser {
    fn wanted(&self) -> Wanted<'_> {
        let display_name = self.display_name.as_deref();
        Wanted { username: &self.username, password: &self.password, display_name }
    }
}

/// Signs in.
#[utoipa::path(post, path = "/user/login/", tag = "user", security(()), request_body = Credentials,
    responses((status = 200, body = Session, description = "Signed in"), Problem))]
pub(crate) async fn user_login(
    State(app): State<App>,
    from: Address,
    Json(who): Json<Credentials>,
) -> Result<Answer<Session>, Problem> {
    let user = account::verify(&app, &who.username, &who.password, from.0).await?;
    let (token, expires_at) = account::sign_in(&app, &user).await?;
    Ok(Answer(Session { token, expires_at }))
}

/// Shows the caller.
#[utoipa::path(get, path = "/user/", tag = "user",
    responses((status = 200, body = Shown, description = "The caller"), Problem))]
pub(crate) async fn user_show(caller: Caller) -> Answer<Shown> {
    Answer(caller.user.into())
}

/// Shows the caller's organization with its members.
#[utoipa::path(get, path = "/organization/", tag = "organization",
    responses((status = 200, body = Organization, description = "The organization"), Problem))]
pub(crate) async fn organization_show(
    Call(app, caller): Call,
) -> Result<Answer<Organization>, Problem> {
    let mut read = app.db.read().await?;
    let id = caller.user.organization_id;
    let found = store::organization::get(&mut read, caller.own(), id).await?;
    let members = store::user::list(&mut read, caller.own(), &Page::first(MAX_LIMIT)).await?;
    let members = members.into_iter().map(Shown::from).collect();
    Ok(Answer(Organization { id, name: found.name, created_at: found.created_at, members }))
}
