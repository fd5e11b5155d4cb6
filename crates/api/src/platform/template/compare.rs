//! Two versions of a template: what is different, and what that means for environments.

use axum::Json as Answer;
use axum::extract::Path;
use engine::environment::{Change as Wish, plan_change};
use model::environment::Environment;
use model::template::{self, Act};
use serde::Deserialize;
use store::Read;
use store::template::Published;
use utoipa::IntoParams;
use wire::environment::plan::{Step, Summary};
use wire::template::{FieldChange, Impact, TemplateDiff, Touched};

use super::{of_version, versions};
use crate::Problem;
use crate::caller::{Call, Caller};
use crate::page::Query;

/// So many environments are looked at.
const MAX_ENVIRONMENTS: i64 = 500;

/// Which versions are compared.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Versions {
    /// The version to compare.
    #[param(required = true, value_type = String)]
    from: Option<String>,
    /// The version to compare it with.
    #[param(required = true, value_type = String)]
    to: Option<String>,
}

/// What is different between two versions of a template.
#[utoipa::path(get, path = "/api/v1/templates/{reference}/diff", tag = "templates",
    params(("reference" = String, Path, description = "The template's name"), Versions),
    responses((status = 200, body = TemplateDiff, description = "What is different"), Problem))]
pub(crate) async fn template_diff(
    Call(app, caller): Call,
    Path(name): Path<String>,
    Query(asked): Query<Versions>,
) -> Result<Answer<TemplateDiff>, Problem> {
    let (from, to) = both(&mut app.db.read().await?, &caller, &name, asked).await?;
    let changes = template::diff(&from.template, &to.template).into_iter();
    let changes = changes.map(FieldChange::from);
    Ok(Answer(TemplateDiff {
        name,
        changes: changes.chain(files_differ(&from, &to)).collect(),
        from: from.template.version,
        to: to.template.version,
    }))
}

/// Files are compared as a whole.
fn files_differ(from: &Published, to: &Published) -> Option<FieldChange> {
    let print = |of: &Published| Some(of.files_print.clone()).filter(|text| !text.is_empty());
    (from.files_print != to.files_print).then(|| FieldChange {
        path: "files".into(),
        from: print(from).into(),
        to: print(to).into(),
    })
}

/// What would be done in environments that are made from one version of a template if they moved to
/// another one. Nothing is changed.
#[utoipa::path(get, path = "/api/v1/templates/{reference}/impact", tag = "templates",
    params(("reference" = String, Path, description = "The template's name"), Versions),
    responses((status = 200, body = Impact, description = "What would be done"), Problem))]
pub(crate) async fn template_impact(
    Call(app, caller): Call,
    Path(name): Path<String>,
    Query(asked): Query<Versions>,
) -> Result<Answer<Impact>, Problem> {
    let mut read = app.db.read().await?;
    let (from, to) = both(&mut read, &caller, &name, asked).await?;
    let mut environments = Vec::new();
    for one in made_from(&mut read, &caller, &from).await? {
        environments.push(touched(&mut read, one, &from, &to).await?);
    }
    let (from, to) = (from.template.version, to.template.version);
    Ok(Answer(Impact { name, from, to, environments }))
}

/// The environments that are made from this version: from the caller's own template, or from the shared one
/// of the same name, which they stay with.
async fn made_from(
    read: &mut Read,
    caller: &Caller,
    from: &Published,
) -> Result<Vec<Environment>, Problem> {
    let mut all = Vec::new();
    for one in versions(read, caller, &from.template.name).await? {
        if one.version == from.template.version {
            let scope = caller.scope();
            let made = store::environment::made_from(read, scope, one.id, MAX_ENVIRONMENTS);
            all.extend(made.await?);
        }
    }
    all.sort_unstable_by_key(|one| one.id);
    all.truncate(usize::try_from(MAX_ENVIRONMENTS).unwrap_or(usize::MAX));
    Ok(all)
}

async fn both(
    read: &mut Read,
    caller: &Caller,
    name: &str,
    asked: Versions,
) -> Result<(Published, Published), Problem> {
    versions(read, caller, name).await?;
    let given = |field, version: Option<String>| {
        version.ok_or_else(|| Problem::field(field, "must be given: a version of the template"))
    };
    let (from, to) = (given("from", asked.from)?, given("to", asked.to)?);
    let from = of_version(read, caller, name, &from).await?;
    Ok((from, of_version(read, caller, name, &to).await?))
}

async fn touched(
    read: &mut Read,
    now: Environment,
    from: &Published,
    to: &Published,
) -> Result<Touched, Problem> {
    let (old, new) = (from.reference(), to.reference());
    let moved = |one: &String| if *one == old { new.clone() } else { one.clone() };
    let templates = Some(now.templates.iter().map(moved).collect());
    let change = Wish { templates, ..Wish::default() };
    let deprecated = |why| format!("{new} is deprecated: {why}");
    let (plan, problem) = match plan_change(read, &now, &change).await {
        Err(store::Error::Invalid(invalid)) => (None, Some(invalid.to_string())),
        other => (Some(other?.plan), to.deprecated_why.as_ref().map(deprecated)),
    };
    let summary = plan.as_ref().map(Summary::from);
    let hash = plan.as_ref().map(|plan| plan.hash.clone());
    let steps = plan.into_iter().flat_map(|plan| plan.steps);
    Ok(Touched {
        id: now.id,
        name: now.name,
        status: now.status.to_string(),
        hash,
        summary,
        steps: steps.filter(|step| step.act != Act::Nothing).map(Step::from).collect(),
        problem,
    })
}
