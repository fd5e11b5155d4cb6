//! Pools: what may grow and shrink by itself, what was decided, and why.

use std::collections::BTreeMap;

use axum::Json as Answer;
use engine::scaling::{Look, look};
use model::Resources;
use wire::scaling::{Pool, Pools, Settings, Waits};

use crate::Problem;
use crate::caller::Call;

/// Lists what grows and shrinks by itself, with what was decided and why. For the platform administrator.
#[utoipa::path(get, path = "/api/v1/fleet/scaling", tag = "admin",
    responses((status = 200, body = Pools, description = "All pools in force"), Problem))]
pub(crate) async fn scaling_list(Call(app, caller): Call) -> Result<Answer<Pools>, Problem> {
    caller.must_be_admin("see how the fleet grows")?;
    let mut items = Vec::new();
    for pool in app.rules.pools().iter() {
        let found = look(&app.db, &app.rules, &app.outlook, &pool.name).await?;
        items.extend(found.map(shown));
    }
    Ok(Answer(Pools { items }))
}

fn shown(look: Look) -> Pool {
    let mut clusters = BTreeMap::new();
    for cluster in &look.clusters {
        *clusters.entry(cluster.status.to_string()).or_default() += 1;
    }
    let mut reserved = Resources::default();
    let nodes = look.seen.clusters.iter().flat_map(|cluster| &cluster.nodes);
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
        used: look.seen.consumed(),
        free: look.seen.free(),
        reserved,
        waiting: look.seen.waiting.into_iter().map(Waits::from).collect(),
        settings: Settings::from(look.pool),
    }
}
