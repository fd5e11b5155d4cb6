//! Comparison of template versions and its impact on environments.

use axum::Json as Answer;
use axum::extract::Path;
use engine::environment::{Change as EnvironmentChange, plan_change};
use model::environment::Environment;
use model::template::{self, Act};
use serde::Deserialize;
use store::Read;
use store::template::Published;
use utoipa::IntoParams;
use wire::environment::plan::{Step, Summary};
use wire::template::{AffectedEnvironment, FieldChange, Impact, TemplateDiff};

use super::{by_version, versions};
use crate::Problem;
use crate::caller::{Call, Caller};
use crate::page::Query;

/// Maximum number of environments in an impact report.
const MAX_ENVIRONMENTS: i64 = 500;

/// Versions to compare.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Versions {
    /// Old version.
    #[param(required = true, value_type = String)]
    from: Option<String>,
    /// New version.
    #[param(required = true, value_type = String)]
    to: Option<String>,
}

/// Compares two versions of a template.
#[utoipa::path(get, path = "/api/v1/templates/{reference}/diff", tag = "templates",
    params(("reference" = String, Path, description = "Template name"), Versions),
    responses((status = 200, body = TemplateDiff, description = "Differences"), Problem))]
pub(crate) async fn template_diff(
    Call(app, caller): Call,
    Path(name): Path<String>,
    Query(query): Query<Versions>,
) -> Result<Answer<TemplateDiff>, Problem> {
    let (from, to) = version_pair(&mut app.db.read().await?, &caller, &name, query).await?;
    let changes = template::diff(&from.template, &to.template).into_iter();
    let changes = changes.map(FieldChange::from);
    Ok(Answer(TemplateDiff {
        name,
        changes: changes.chain(file_change(&from, &to)).collect(),
        from: from.template.version,
        to: to.template.version,
    }))
}

/// Compares the files as a whole.
fn file_change(from: &Published, to: &Published) -> Option<FieldChange> {
    let print =
        |published: &Published| Some(published.files_print.clone()).filter(|text| !text.is_empty());
    (from.files_print != to.files_print).then(|| FieldChange {
        path: "files".into(),
        from: print(from).into(),
        to: print(to).into(),
    })
}

/// Plans the impact of moving environments from one version of a template to another.
///
/// Nothing is changed.
#[utoipa::path(get, path = "/api/v1/templates/{reference}/impact", tag = "templates",
    params(("reference" = String, Path, description = "Template name"), Versions),
    responses((status = 200, body = Impact, description = "Impact"), Problem))]
pub(crate) async fn template_impact(
    Call(app, caller): Call,
    Path(name): Path<String>,
    Query(query): Query<Versions>,
) -> Result<Answer<Impact>, Problem> {
    let mut read = app.db.read().await?;
    let (from, to) = version_pair(&mut read, &caller, &name, query).await?;
    let mut environments = Vec::new();
    for environment in made_from(&mut read, &caller, &from).await? {
        environments.push(impact_on(&mut read, environment, &from, &to).await?);
    }
    let (from, to) = (from.template.version, to.template.version);
    Ok(Answer(Impact { name, from, to, environments }))
}

/// Returns the environments that use this version: of the caller's own template, or of the shared
/// one of the same name.
async fn made_from(
    read: &mut Read,
    caller: &Caller,
    from: &Published,
) -> Result<Vec<Environment>, Problem> {
    let mut all = Vec::new();
    for version in versions(read, caller, &from.template.name).await? {
        if version.version == from.template.version {
            let scope = caller.scope();
            let made =
                store::environment::using_template(read, scope, version.id, MAX_ENVIRONMENTS);
            all.extend(made.await?);
        }
    }
    all.sort_unstable_by_key(|environment| environment.id);
    all.truncate(usize::try_from(MAX_ENVIRONMENTS).unwrap_or(usize::MAX));
    Ok(all)
}

async fn version_pair(
    read: &mut Read,
    caller: &Caller,
    name: &str,
    query: Versions,
) -> Result<(Published, Published), Problem> {
    versions(read, caller, name).await?;
    let given = |field, version: Option<String>| {
        version.ok_or_else(|| Problem::field(field, "is required: a version of the template"))
    };
    let (from, to) = (given("from", query.from)?, given("to", query.to)?);
    let from = by_version(read, caller, name, &from).await?;
    Ok((from, by_version(read, caller, name, &to).await?))
}

async fn impact_on(
    read: &mut Read,
    environment: Environment,
    from: &Published,
    to: &Published,
) -> Result<AffectedEnvironment, Problem> {
    let (old, new) = (from.reference(), to.reference());
    let updated = |name: &String| if *name == old { new.clone() } else { name.clone() };
    let templates = Some(environment.templates.iter().map(updated).collect());
    let change = EnvironmentChange { templates, ..EnvironmentChange::default() };
    let deprecated = |why| format!("{new} is deprecated: {why}");
    let (plan, problem) = match plan_change(read, &environment, &change).await {
        Err(store::Error::Invalid(invalid)) => (None, Some(invalid.to_string())),
        other => (Some(other?.plan), to.deprecated_why.as_ref().map(deprecated)),
    };
    let summary = plan.as_ref().map(Summary::from);
    let hash = plan.as_ref().map(|plan| plan.hash.clone());
    let steps = plan.into_iter().flat_map(|plan| plan.steps);
    Ok(AffectedEnvironment {
        id: environment.id,
        name: environment.name,
        status: environment.status.to_string(),
        hash,
        summary,
        steps: steps.filter(|step| step.act != Act::Nothing).map(Step::from).collect(),
        problem,
    })
}
