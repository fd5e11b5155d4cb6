//! Lists of instances.
//!
//! The platform's API filters, and the API of each kind searches and orders. Whichever was asked, what is
//! shown are instances as the platform's API tells them: one form for all.

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

/// Which instances are listed, and in which order.
#[derive(clap::Args)]
pub(crate) struct Filter {
    /// Only those with this status
    #[arg(long, value_parser = statuses())]
    status: Option<String>,
    /// Only those of this owner, by user name
    #[arg(long, value_name = "USERNAME")]
    owner: Option<String>,
    /// Only those on this cluster, by name or id
    #[arg(long, value_name = "NAME-OR-ID")]
    cluster: Option<String>,
    /// Only those that this is true of, such as "name like 'a%' and region = us-east-1"
    #[arg(long, value_name = "EXPRESSION")]
    search: Option<String>,
    /// In which order, such as "region, name desc" [default: oldest first]
    #[arg(long, value_name = "COLUMNS")]
    order: Option<String>,
}

fn statuses() -> PossibleValuesParser {
    Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().into()
}

/// The organization's instances of one kind.
pub(crate) async fn of_tenant(
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
    let chosen = chosen(api, service, &[&plural], filter).await?;
    in_order(api, page::list(api, call, usize::MAX).await?, &chosen, limit)
}

/// The instances of all organizations, kind after kind; for administrators.
pub(crate) async fn of_all(
    api: &Api,
    services: &[Kind],
    filter: &Filter,
    limit: usize,
) -> Result<List, Error> {
    let mut chosen_ids = Vec::new();
    for service in services {
        let plural = plural(api, service).await?;
        chosen_ids.extend(chosen(api, service, &["admin", &plural], filter).await?);
    }
    let call = filter.call(api).await?;
    in_order(api, page::list(api, call, usize::MAX).await?, &chosen_ids, limit)
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

/// The most that the API of a kind gives at once.
const MAX_PAGE: usize = 10_000;

/// The ids of those that the API of the kind finds, in its order.
async fn chosen(
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
        ids.extend(page.items.into_iter().map(|one| one.id));
        if is_last || ids.len() >= page.total {
            break;
        }
    }
    Ok(ids)
}

/// Those of the list that were chosen, in the order of the choice.
fn in_order(api: &Api, all: List, chosen: &[String], limit: usize) -> Result<List, Error> {
    let ids = all.read::<Subject>(api)?.into_iter().map(|one| one.id);
    let place: BTreeMap<String, usize> = ids.zip(0..).collect();
    let places: Vec<usize> = chosen.iter().filter_map(|id| place.get(id).copied()).collect();
    Ok(all.pick(&places, limit))
}
