//! Endpoints of deployments on the server's machine, which their organization may call.

use model::OrganizationId;
use port::{Endpoints, Fault, PortFuture};
use store::Db;

/// Reads endpoints from the database.
pub struct LocalEndpoints(Db);

impl LocalEndpoints {
    /// Endpoints of the deployments in this database.
    pub fn new(db: Db) -> Self {
        Self(db)
    }
}

impl Endpoints for LocalEndpoints {
    fn is_own<'a>(
        &'a self,
        organization: OrganizationId,
        endpoint: &'a str,
    ) -> PortFuture<'a, bool> {
        Box::pin(async move {
            let unavailable = |error: store::Error| Fault::Unavailable(error.to_string());
            let mut read = self.0.read().await.map_err(unavailable)?;
            let own = store::deployment::replica::local_endpoints(&mut read, organization).await;
            Ok(own.map_err(unavailable)?.iter().any(|own| own == endpoint))
        })
    }
}
