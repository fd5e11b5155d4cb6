//! Lists instances.
//!
//! The platform API filters; the API of each service kind searches and sorts. The output is always in
//! the format of the platform API.

use std::collections::BTreeMap;

use clap::builder::PossibleValuesParser;
use model::instance::Status;
use serde::Deserialize;
use wire::kind::Kind;

use super::super::call::Call;
use super::super::error::Error;
use super::super::http::Api;
use super::super::page::{self, List};
use super::super::subject::{self, CLUSTER, Subject};
use super::catalog::plural;

/// Filter and sort order of instances.
#[derive(clap::Args)]
pub(crate) struct Filter {
    /// Filter by status
    #[arg(long, value_parser = statuses())]
    status: Option<String>,
    /// Filter by owner
    #[arg(long, value_name = "USERNAME")]
    owner: Option<String>,
    /// Filter by cluster name or id
    #[arg(long, value_name = "NAME-OR-ID")]
    cluster: Option<String>,
    /// Filter expression, such as "name like 'a%' and region = us-east-1"
    #[arg(long, value_name = "EXPRESSION")]
    search: Option<String>,
    /// Sort order, such as "region, name desc" [default: oldest first]
    #[arg(long, value_name = "COLUMNS")]
    order: Option<String>,
}

fn statuses() -> PossibleValuesParser {
    Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().into()
}

/// Instances of one kind in the caller's organization.
pub(crate) async fn organization(
    api: &Api,
    service: &Kind,
    filter: &Filter,
    limit: usize,
) -> Result<List, Error> {
    let call = filter.call(api).await?.query("kind", Some(&service.name));
    if filter.search.is_none() && filter.order.is_none() {
        return page::list(api, call, limit).await;
    }
    let plural = plural(api, service).await?;
    let matches = search(api, service, &[&plural], filter).await?;
    in_order(api, page::list(api, call, usize::MAX).await?, &matches, limit)
}

/// Instances of all organizations, grouped by kind; for administrators.
pub(crate) async fn all_organizations(
    api: &Api,
    services: &[Kind],
    filter: &Filter,
    limit: usize,
) -> Result<List, Error> {
    let mut matches = Vec::new();
    for service in services {
        let plural = plural(api, service).await?;
        matches.extend(search(api, service, &["admin", &plural], filter).await?);
    }
    let call = filter.call(api).await?;
    in_order(api, page::list(api, call, usize::MAX).await?, &matches, limit)
}

impl Filter {
    async fn call(&self, api: &Api) -> Result<Call, Error> {
        let cluster_id = subject::id_if_named(api, &CLUSTER, self.cluster.as_deref()).await?;
        Ok(Call::get(&["instances"])
            .query("cluster_id", cluster_id)
            .query("status", self.status.as_ref())
            .query("owner", self.owner.as_ref()))
    }
}

/// Maximum page size of a kind's API.
const MAX_PAGE: usize = 10_000;

/// Ids of matching instances in sort order, from the kind's API.
async fn search(
    api: &Api,
    service: &Kind,
    path: &[&str],
    filter: &Filter,
) -> Result<Vec<String>, Error> {
    #[derive(Deserialize)]
    struct Page {
        total: usize,
        items: Vec<Subject>,
    }
    let order = filter.order.as_deref().unwrap_or("created_at");
    let mut ids = Vec::new();
    for number in 1.. {
        let call = Call::get(path)
            .to(&service.api)
            .query("page", Some(number))
            .query("size", Some(MAX_PAGE))
            .query("search", filter.search.as_ref())
            .query("orderBy", Some(order));
        let page: Page = api.read(&api.send(&call).await?)?;
        let is_last = page.items.is_empty();
        ids.extend(page.items.into_iter().map(|instance| instance.id));
        if is_last || ids.len() >= page.total {
            break;
        }
    }
    Ok(ids)
}

/// Selects the instances with these ids, in this order.
fn in_order(api: &Api, all: List, ids: &[String], limit: usize) -> Result<List, Error> {
    let listed = all.read::<Subject>(api)?.into_iter().map(|instance| instance.id);
    let index: BTreeMap<String, usize> = listed.zip(0..).collect();
    let indices: Vec<usize> = ids.iter().filter_map(|id| index.get(id).copied()).collect();
    Ok(all.pick(&indices, limit))
}
