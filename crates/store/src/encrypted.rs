//! Encrypted values in all tables, page by page, and their replacement by values of another key.
//!
//! A value is replaced only if it has not changed since it was read: the condition is the lock.
//! Replacing a value is no change of its subject: no event, no new generation.

use model::credential::System;
use model::deployment::Spec;
use model::operation::Subject;
use model::{ClusterId, DeploymentId, InstanceId, OrganizationId, ResourceId};

use crate::db::{Json, params, sql};
use crate::{Error, Read, Result, Tx};

/// Number of rows per page.
pub const PAGE: i64 = 200;

/// The spec of a deployment, as it is stored.
#[derive(Debug, Clone)]
pub struct StoredSpec {
    /// The deployment.
    pub id: DeploymentId,
    /// The spec.
    pub spec: Spec,
    /// Whether the deployment belongs to an instance, or reserves capacity for one.
    pub is_internal: bool,
    /// Whether the deployment is deleted.
    pub is_deleted: bool,
    text: String,
}

/// A page of the specs with environment variables or encrypted values, after that deployment.
pub async fn specs(read: &mut Read, after: &str) -> Result<Vec<StoredSpec>> {
    let sql = sql!(
        "SELECT id, spec, instance_id, reserved, deleted_at FROM deployment WHERE id > $1 ",
        "AND (spec NOT LIKE '%\"env\":{}%' OR spec LIKE '%\"sealed_%') ORDER BY id LIMIT $2"
    );
    let rows = read.all(sql, params![after, PAGE]).await?;
    rows.into_iter()
        .map(|mut row| {
            let (id, text): (_, String) = (row.take()?, row.take()?);
            let instance: Option<String> = row.take()?;
            let reserved: Option<String> = row.take()?;
            let deleted_at: Option<i64> = row.take()?;
            let spec = serde_json::from_str(&text)
                .map_err(|error| Error::Database(format!("spec of deployment {id}: {error}")))?;
            let is_internal = instance.is_some() || reserved.is_some();
            Ok(StoredSpec { id, spec, is_internal, is_deleted: deleted_at.is_some(), text })
        })
        .collect()
}

/// Replaces a spec. Returns whether it was unchanged.
pub async fn set_spec(tx: &mut Tx, old: &StoredSpec, new: &Spec) -> Result<bool> {
    let sql = sql!("UPDATE deployment SET spec = $3 WHERE id = $1 AND spec = $2");
    Ok(tx.run(sql, params![old.id, old.text, Json(new)]).await? == 1)
}

/// A page of the encrypted SSO clients of instances, after that instance.
pub async fn sso_clients(read: &mut Read, after: &str) -> Result<Vec<(InstanceId, String)>> {
    let sql = sql!(
        "SELECT id, sealed FROM instance WHERE id > $1 AND sealed IS NOT NULL ORDER BY id LIMIT $2"
    );
    let rows = read.all(sql, params![after, PAGE]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Replaces the encrypted SSO client of an instance. Returns whether it was unchanged.
pub async fn set_sso_client(tx: &mut Tx, id: InstanceId, old: &str, new: &str) -> Result<bool> {
    let sql = sql!("UPDATE instance SET sealed = $3 WHERE id = $1 AND sealed = $2");
    Ok(tx.run(sql, params![id, old, new]).await? == 1)
}

/// A page of the encrypted secrets of operations, after that subject and name: subject, name and
/// ciphertext.
pub async fn secrets(
    read: &mut Read,
    (subject, name): (&str, &str),
) -> Result<Vec<(Subject, String, String)>> {
    let sql = sql!(
        "SELECT s.subject_id, s.name, s.sealed, c.id FROM operation_secret s ",
        "LEFT JOIN cluster c ON c.id = s.subject_id WHERE s.subject_id > $1 ",
        "OR (s.subject_id = $1 AND s.name > $2) ORDER BY s.subject_id, s.name LIMIT $3"
    );
    let rows = read.all(sql, params![subject, name, PAGE]).await?;
    rows.into_iter()
        .map(|mut row| {
            let (id, name, sealed): (ResourceId, _, _) = (row.take()?, row.take()?, row.take()?);
            let cluster: Option<ClusterId> = row.take()?;
            let subject = cluster.map_or(Subject::Resource(id), Subject::Cluster);
            Ok((subject, name, sealed))
        })
        .collect()
}

/// Replaces an encrypted secret of an operation. Returns whether it was unchanged.
pub async fn set_secret(
    tx: &mut Tx,
    subject: Subject,
    name: &str,
    [old, new]: [&str; 2],
) -> Result<bool> {
    let sql = sql!(
        "UPDATE operation_secret SET sealed = $4 WHERE subject_id = $1 AND name = $2 AND sealed = $3"
    );
    Ok(tx.run(sql, params![subject, name, old, new]).await? == 1)
}

/// The secret of an organization's credential, as it is stored.
#[derive(Debug, Clone)]
pub struct StoredCredential {
    /// The organization.
    pub organization: OrganizationId,
    /// The system.
    pub system: System,
    /// The name.
    pub name: String,
    /// The ciphertext.
    pub sealed: String,
}

/// A page of the organizations' credentials, after that organization, system and name.
pub async fn credentials(
    read: &mut Read,
    after: Option<&StoredCredential>,
) -> Result<Vec<StoredCredential>> {
    let (organization, system, name) = match after {
        Some(last) => (last.organization.to_string(), last.system.as_str(), last.name.as_str()),
        None => (String::new(), "", ""),
    };
    let sql = sql!(
        "SELECT organization_id, system, name, sealed FROM credential WHERE organization_id > $1 ",
        "OR (organization_id = $1 AND (system > $2 OR (system = $2 AND name > $3))) ",
        "ORDER BY organization_id, system, name LIMIT $4"
    );
    let rows = read.all(sql, params![organization, system, name, PAGE]).await?;
    rows.into_iter()
        .map(|mut row| {
            let (organization, system): (_, String) = (row.take()?, row.take()?);
            let invalid = |_| Error::Database("invalid credential system".into());
            let system = system.parse().map_err(invalid)?;
            Ok(StoredCredential { organization, system, name: row.take()?, sealed: row.take()? })
        })
        .collect()
}

/// Replaces the secret of a credential. Returns whether it was unchanged.
pub async fn set_credential(tx: &mut Tx, old: &StoredCredential, new: &str) -> Result<bool> {
    let sql = sql!(
        "UPDATE credential SET sealed = $5 WHERE organization_id = $1 AND system = $2 ",
        "AND name = $3 AND sealed = $4"
    );
    let StoredCredential { organization, system, name, sealed } = old;
    let kind = system.as_str();
    Ok(tx.run(sql, params![organization, kind, name, sealed, new]).await? == 1)
}
