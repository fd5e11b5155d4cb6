//! Users and organizations in the Kargo API.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use model::user::{Role, User};
use model::{OrganizationId, Time, UserId};
use serde::{Deserialize, Serialize};
use store::Page;
use utoipa::ToSchema;

use crate::account::UserRequest;
use crate::body::Json;
use crate::caller::{Call, Caller, From as Address};
use crate::page::MAX_LIMIT;
use crate::sign_up::Founder;
use crate::{App, Problem, account};

/// A user and an organization to create.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoSignUp)]
pub(crate) struct SignUp {
    /// User to create.
    user: NewUser,
    /// Organization to create.
    organization: NewOrganization,
}

/// A user to create.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoNewUser)]
struct NewUser {
    /// Username, unique ignoring case.
    username: String,
    /// Password of at least the configured minimum length.
    password: String,
    /// Display name; defaults to the username.
    display_name: Option<String>,
}

/// An organization to create.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoNewOrganization)]
struct NewOrganization {
    /// Name.
    name: String,
}

/// Credentials to log in.
#[derive(Deserialize, ToSchema)]
#[schema(as = KargoCredentials)]
pub(crate) struct Credentials {
    /// Username, ignoring case.
    username: String,
    /// The password.
    password: String,
}

/// A login session.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoSession)]
pub(crate) struct Session {
    /// Bearer token for the `Authorization` header.
    token: String,
    /// Expiry time.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Time,
}

/// A user.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoUser)]
pub(crate) struct UserResponse {
    /// Unique identifier.
    #[schema(value_type = String)]
    id: UserId,
    /// Username.
    username: String,
    /// Display name.
    display_name: String,
    /// Role: `owner`, `member` or `viewer`.
    #[schema(value_type = String)]
    role: Role,
    /// Owning organization.
    #[schema(value_type = String)]
    organization_id: OrganizationId,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl From<User> for UserResponse {
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
    /// Unique identifier.
    #[schema(value_type = String)]
    id: OrganizationId,
    /// Name.
    name: String,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// Users of the organization.
    members: Vec<UserResponse>,
}

/// A new user and its organization.
#[derive(Serialize, ToSchema)]
#[schema(as = KargoSignedUp)]
pub(crate) struct SignedUp {
    /// User, who owns the organization.
    user: UserResponse,
    /// Organization.
    organization: Organization,
}

/// Creates a user and an organization owned by the user.
///
/// Without authentication if sign-up is open, otherwise only for the platform administrator.
#[utoipa::path(put, path = "/user/create/", tag = "user", security(()), request_body = SignUp,
    responses((status = 201, body = SignedUp, description = "Created"), Problem))]
pub(crate) async fn user_create(
    State(app): State<App>,
    founder: Founder,
    Json(new): Json<SignUp>,
) -> Result<(StatusCode, Answer<SignedUp>), Problem> {
    let owner = new.user.request();
    let fields = ["organization.name", "user"];
    let (created, user) =
        account::create_organization(&app, &founder, &new.organization.name, &owner, fields)
            .await?;
    let (id, name, created_at) = (created.id, created.name, created.created_at);
    let members = vec![user.clone().into()];
    let organization = Organization { id, name, created_at, members };
    Ok((StatusCode::CREATED, Answer(SignedUp { user: user.into(), organization })))
}

impl NewUser {
    fn request(&self) -> UserRequest<'_> {
        let display_name = self.display_name.as_deref();
        UserRequest { username: &self.username, password: &self.password, display_name }
    }
}

/// Logs in with username and password.
#[utoipa::path(post, path = "/user/login/", tag = "user", security(()), request_body = Credentials,
    responses((status = 200, body = Session, description = "Logged in"), Problem))]
pub(crate) async fn user_login(
    State(app): State<App>,
    from: Address,
    Json(credentials): Json<Credentials>,
) -> Result<Answer<Session>, Problem> {
    let user = account::verify(&app, &credentials.username, &credentials.password, from.0).await?;
    let (token, expires_at) = account::create_token(&app, &user).await?;
    Ok(Answer(Session { token, expires_at }))
}

/// Returns the caller.
#[utoipa::path(get, path = "/user/", tag = "user",
    responses((status = 200, body = UserResponse, description = "The caller"), Problem))]
pub(crate) async fn user_show(caller: Caller) -> Answer<UserResponse> {
    Answer(caller.user.into())
}

/// Returns the caller's organization with its members.
#[utoipa::path(get, path = "/organization/", tag = "organization",
    responses((status = 200, body = Organization, description = "The organization"), Problem))]
pub(crate) async fn organization_show(
    Call(app, caller): Call,
) -> Result<Answer<Organization>, Problem> {
    let mut read = app.db.read().await?;
    let id = caller.user.organization_id;
    let found = store::organization::get(&mut read, caller.own(), id).await?;
    let members = store::user::list(&mut read, caller.own(), &Page::first(MAX_LIMIT)).await?;
    let members = members.into_iter().map(UserResponse::from).collect();
    Ok(Answer(Organization { id, name: found.name, created_at: found.created_at, members }))
}
