//! Deletion of everything that an organization has.

use model::OrganizationId;
use model::environment::Reason;
use model::event::Actor;
use model::reason::Requester;
use store::{
    Db, Error, Page, Result, Scope, cluster, deployment, environment, instance, organization,
};

use crate::environment as commands;

/// Number of subjects per call; the caller repeats the call until nothing is left.
const BATCH: i64 = 500;

/// Requests the deletion of an organization's contents, dependents first: environments, then
/// instances and deployments, then clusters. Idempotent.
pub async fn request_deletion(
    db: &Db,
    actor: Actor,
    id: OrganizationId,
    by: &Requester,
) -> Result<()> {
    let contents = organization::contents(&mut db.read().await?, id).await?;
    if contents.environments > 0 {
        return destroy_environments(db, actor, id, by).await;
    }
    if contents.instances > 0 || contents.deployments > 0 {
        delete_instances(db, actor, id, by).await?;
        return delete_deployments(db, actor, id).await;
    }
    delete_clusters(db, actor, id).await
}

async fn destroy_environments(
    db: &Db,
    actor: Actor,
    id: OrganizationId,
    by: &Requester,
) -> Result<()> {
    let scope = Scope::Organization(id);
    let filter = environment::Filter::default();
    let page = Page::first(BATCH);
    for found in environment::list(&mut db.read().await?, scope, &filter, &page).await? {
        let mut tx = db.begin(actor).await?;
        let reason = Reason::DeletionRequested { by: Some(by.clone()) };
        let destroyed = async {
            let mut locked = environment::lock(&mut tx, scope, found.id).await?;
            commands::destroy(&mut tx, &mut locked, reason).await
        };
        unless_gone(destroyed.await)?;
        tx.commit().await?;
    }
    Ok(())
}

async fn delete_instances(db: &Db, actor: Actor, id: OrganizationId, by: &Requester) -> Result<()> {
    let scope = Scope::Organization(id);
    let filter = instance::Filter::default();
    let page = Page::first(BATCH);
    for found in instance::list(&mut db.read().await?, scope, &filter, &page).await? {
        let mut tx = db.begin(actor).await?;
        unless_gone(instance::request_delete(&mut tx, scope, found.id, by.clone()).await)?;
        tx.commit().await?;
    }
    Ok(())
}

async fn delete_deployments(db: &Db, actor: Actor, id: OrganizationId) -> Result<()> {
    let scope = Scope::Organization(id);
    let filter = deployment::Filter::default();
    let page = Page::first(BATCH);
    let found = deployment::list(&mut db.read().await?, scope, &filter, &page).await?;
    for found in found.iter().filter(|found| found.instance_id.is_none()) {
        let mut tx = db.begin(actor).await?;
        unless_gone(deployment::request_delete(&mut tx, scope, found.id).await)?;
        tx.commit().await?;
    }
    Ok(())
}

async fn delete_clusters(db: &Db, actor: Actor, id: OrganizationId) -> Result<()> {
    let scope = Scope::Organization(id);
    let filter = cluster::Filter { only_own: true, ..cluster::Filter::default() };
    let page = Page::first(BATCH);
    for found in cluster::list(&mut db.read().await?, scope, &filter, &page).await? {
        let mut tx = db.begin(actor).await?;
        unless_gone(cluster::request_delete(&mut tx, &found, false).await)?;
        tx.commit().await?;
    }
    Ok(())
}

/// A subject that was deleted since it was listed is no error.
fn unless_gone<T>(outcome: Result<T>) -> Result<()> {
    match outcome {
        Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
