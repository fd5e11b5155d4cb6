//! Cluster pools: settings, decisions and their reasons.

use std::collections::BTreeMap;

use axum::Json as Answer;
use engine::scaling::{PoolObservation, observe};
use model::Resources;
use wire::scaling::{PendingRequests, Pool, Pools, Settings};

use crate::Problem;
use crate::caller::Call;

/// Lists the cluster pools with their decisions and reasons. For the platform administrator and
/// auditors.
#[utoipa::path(get, path = "/api/v1/fleet/scaling", tag = "admin",
    responses((status = 200, body = Pools, description = "Cluster pools"), Problem))]
pub(crate) async fn scaling_list(Call(app, _): Call) -> Result<Answer<Pools>, Problem> {
    let mut items = Vec::new();
    for pool in app.rules.pools().iter() {
        let found = observe(&app.db, &app.rules, &app.placement, &pool.name).await?;
        items.extend(found.map(response));
    }
    Ok(Answer(Pools { items }))
}

fn response(look: PoolObservation) -> Pool {
    let mut clusters = BTreeMap::new();
    for cluster in &look.clusters {
        *clusters.entry(cluster.status.to_string()).or_default() += 1;
    }
    let mut reserved = Resources::default();
    let nodes = look.input.clusters.iter().flat_map(|cluster| &cluster.nodes);
    nodes.for_each(|node| reserved.add(&node.reserved));
    let state = look.state;
    Pool {
        name: state.name,
        decision: state.decision,
        reason: state.reason,
        since: state.decided_at,
        next_look: state.look_again,
        wish: state.memory.wish.map(|wish| wish.to_string()),
        last_grown_at: state.memory.grown_at,
        last_shrunk_at: state.memory.shrunk_at,
        dry_run: look.pool.dry_run,
        clusters,
        used: look.input.consumed(),
        free: look.input.free(),
        reserved,
        waiting: look.input.waiting.into_iter().map(PendingRequests::from).collect(),
        settings: Settings::from(look.pool),
    }
}
