//! Tokens for the agents of clusters.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json as Answer;
use axum::extract::Path;
use axum::http::StatusCode;
use base::entropy;
use model::Secret;
use model::cluster::{AGENT_TOKEN, Provider};
use store::agent_token;
use wire::cluster::{ClusterToken, TokenRequest};

use crate::Problem;
use crate::body::OptionalJson;
use crate::caller::Call;
use crate::page::id;
use crate::platform::cluster::provider;

/// Default time that previous tokens remain valid.
const OVERLAP_SECS: u64 = 60;
const MAX_OVERLAP_SECS: u64 = 7 * 24 * 60 * 60;

/// Creates a token for a cluster's agent; previous tokens expire soon.
///
/// Allowed for owners, and for the platform administrator on shared clusters.
#[utoipa::path(post, path = "/api/v1/clusters/{id}/token", tag = "clusters",
    params(("id" = String, Path, description = "Cluster ID")), request_body = Option<TokenRequest>,
    responses((status = 201, body = ClusterToken, description = "Created"), Problem))]
pub(crate) async fn cluster_token(
    Call(app, caller): Call,
    Path(text): Path<String>,
    OptionalJson(request): OptionalJson<TokenRequest>,
) -> Result<(StatusCode, Answer<ClusterToken>), Problem> {
    let id = id("cluster", &text)?;
    let overlap = request.overlap_secs.unwrap_or(OVERLAP_SECS);
    if overlap > MAX_OVERLAP_SECS {
        let rule = format!("must be a whole number from 0 to {MAX_OVERLAP_SECS}");
        return Err(Problem::field("overlap_secs", rule));
    }
    let token = entropy::secret(app.db.entropy());
    // If Paddock installs the agent itself, it also delivers the new token.
    let secrets = BTreeMap::from([(AGENT_TOKEN.to_owned(), Secret::new(token.as_str()))]);
    let sealed = provider::encrypt_secrets(&app, id, &secrets).await?;
    let mut tx = app.db.begin(caller.actor()).await?;
    let found = store::cluster::get(&mut tx, caller.scope(), id).await?;
    caller.may_change(&found)?;
    if found.provider == Provider::Local {
        return Err(Problem::conflict(format!(
            "Cluster {} uses the local agent; create a cluster with provider agent.",
            found.name
        )));
    }
    if found.provider.provisions() {
        store::operation::secret::set_unfenced(&mut tx, id, &sealed).await?;
        store::cluster::set_settings(&mut tx, id, &found.settings).await?;
    }
    let overlap = Duration::from_secs(overlap);
    agent_token::create(&mut tx, id, &entropy::hash(&token), overlap).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Answer(ClusterToken { cluster_id: id, token })))
}
