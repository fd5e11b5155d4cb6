//! Organizations.

pub(crate) mod deletion;

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use model::deployment::{self, MAX_PRIORITY};
use model::{Invalid, OrganizationId};
use store::{Page, Scope};
use wire::organization::{CreatedOrganization, NewOrganization, Organization, OrganizationChange};
use wire::user::User;

use crate::account::UserRequest;
use crate::body::Json;
use crate::caller::Call;
use crate::etag::{IfMatch, etag};
use crate::page::{List, MAX_LIMIT, PageQuery, Query, id};
use crate::sign_up::Founder;
use crate::{App, Problem, account};

/// Creates an organization and its first owner.
///
/// Without authentication if sign-up is open, otherwise only for the platform administrator.
#[utoipa::path(post, path = "/api/v1/organizations", tag = "organizations", security(()),
    request_body = NewOrganization,
    responses((status = 201, body = CreatedOrganization, description = "Created"), Problem))]
pub(crate) async fn organization_create(
    State(app): State<App>,
    founder: Founder,
    Json(new): Json<NewOrganization>,
) -> Result<(StatusCode, Answer<CreatedOrganization>), Problem> {
    let owner = UserRequest {
        username: &new.owner.username,
        password: &new.owner.password,
        display_name: new.owner.display_name.as_deref(),
    };
    let (organization, user) =
        account::create_organization(&app, &founder, &new.name, &owner, ["name", "owner"]).await?;
    let created = CreatedOrganization { organization: organization.into(), user: user.into() };
    Ok((StatusCode::CREATED, Answer(created)))
}

/// Lists the caller's organization; all organizations for the platform administrator.
#[utoipa::path(get, path = "/api/v1/organizations", tag = "organizations", params(PageQuery),
    responses((status = 200, body = List<Organization>, description = "A page of the list"), Problem))]
pub(crate) async fn organization_list(
    Call(app, caller): Call,
    Query(paging): Query<PageQuery>,
) -> Result<Answer<List<Organization>>, Problem> {
    let page = paging.page()?;
    let found = store::organization::list(&mut app.db.read().await?, caller.scope(), &page).await?;
    let items = found.into_iter().map(Organization::from).collect();
    Ok(Answer(List::new(items, &page, |o| o.id.to_string())))
}

/// Returns an organization with its members.
#[utoipa::path(get, path = "/api/v1/organizations/{id}", tag = "organizations",
    params(("id" = String, Path, description = "Organization ID")),
    responses((status = 200, body = Organization, description = "The organization"), Problem))]
pub(crate) async fn organization_get(
    Call(app, caller): Call,
    Path(text): Path<String>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id = id("organization", &text)?;
    let mut read = app.db.read().await?;
    let found = store::organization::get(&mut read, caller.scope(), id).await?;
    let members =
        store::user::list(&mut read, Scope::Organization(id), &Page::first(MAX_LIMIT)).await?;
    let members = Some(members.into_iter().map(User::from).collect());
    let generation = found.generation;
    Ok((etag(generation), Answer(Organization { members, ..found.into() })))
}

/// Updates an organization's name; its priority ceiling and weight for the platform administrator.
#[utoipa::path(patch, path = "/api/v1/organizations/{id}", tag = "organizations",
    params(("id" = String, Path, description = "Organization ID"),
        ("If-Match" = Option<String>, Header, description = "ETag; the update fails if it does not match")),
    request_body = OrganizationChange,
    responses((status = 200, body = Organization, description = "Updated"), Problem))]
pub(crate) async fn organization_update(
    Call(app, caller): Call,
    Path(text): Path<String>,
    if_match: IfMatch,
    Json(change): Json<OrganizationChange>,
) -> Result<impl IntoResponse + use<>, Problem> {
    let id: OrganizationId = id("organization", &text)?;
    let name = change.name.as_deref().map(|text| model::organization::name("name", text));
    let name = name.transpose()?;
    change.weight.map(model::organization::check_weight).transpose()?;
    change.max_priority.flatten().map(max_priority).transpose()?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = store::organization::get(&mut tx, caller.scope(), id).await?;
    if_match.check(found.generation)?;
    let mut changed = found;
    if change.max_priority.is_some() || change.weight.is_some() {
        caller.must_be_admin("set the priority ceiling and the weight of an organization")?;
        let (ceiling, weight) = (change.max_priority, change.weight);
        changed = store::organization::set_share(&mut tx, id, ceiling, weight).await?;
    }
    if let Some(name) = name {
        changed = store::organization::set_name(&mut tx, id, &name).await?;
    }
    tx.commit().await?;
    Ok((etag(changed.generation), Answer(Organization::from(changed))))
}

/// Checks a priority ceiling.
fn max_priority(ceiling: i64) -> Result<(), Invalid> {
    deployment::check_priority(ceiling).map_err(|_| {
        Invalid::new(
            "max_priority",
            format!("must be from -{MAX_PRIORITY} to {MAX_PRIORITY}, not {ceiling}"),
        )
    })
}
