//! Encrypted state of operations: credentials of external systems, and the state of adapters.

use std::collections::BTreeMap;

use model::operation::Subject;

use crate::db::{params, sql};
use crate::{Error, Read, Result, Tx};

/// All secrets of a subject, encrypted, by name.
pub async fn list(
    read: &mut Read,
    subject: impl Into<Subject>,
) -> Result<BTreeMap<String, String>> {
    let subject = subject.into();
    let sql = sql!("SELECT name, sealed FROM operation_secret WHERE subject_id = $1");
    let rows = read.all(sql, params![subject]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Persists secrets of an operation. Fails if another server has acquired the lease since `fence`.
pub async fn set(
    tx: &mut Tx,
    subject: impl Into<Subject>,
    fence: i64,
    sealed: &BTreeMap<String, String>,
) -> Result<()> {
    let subject = subject.into();
    for (name, sealed) in sealed {
        let sql = match subject {
            Subject::Cluster(_) => sql!(
                "INSERT INTO operation_secret (subject_id, name, sealed) ",
                "SELECT id, $3, $4 FROM cluster WHERE id = $1 AND fence = $2 ",
                "ON CONFLICT (subject_id, name) DO UPDATE SET sealed = excluded.sealed"
            ),
            Subject::Resource(_) => sql!(
                "INSERT INTO operation_secret (subject_id, name, sealed) ",
                "SELECT id, $3, $4 FROM resource WHERE id = $1 AND fence = $2 ",
                "ON CONFLICT (subject_id, name) DO UPDATE SET sealed = excluded.sealed"
            ),
        };
        if tx.run(sql, params![subject, fence, name, sealed]).await? == 0 {
            return Err(Error::Conflict(format!("another server has taken over {subject}")));
        }
    }
    Ok(())
}

/// Persists secrets of a user, regardless of the lease.
pub async fn set_unfenced(
    tx: &mut Tx,
    subject: impl Into<Subject>,
    sealed: &BTreeMap<String, String>,
) -> Result<()> {
    let subject = subject.into();
    for (name, sealed) in sealed {
        let sql = sql!(
            "INSERT INTO operation_secret (subject_id, name, sealed) VALUES ($1, $2, $3) ",
            "ON CONFLICT (subject_id, name) DO UPDATE SET sealed = excluded.sealed"
        );
        tx.run(sql, params![subject, name, sealed]).await?;
    }
    Ok(())
}

/// Deletes all secrets of a subject.
pub async fn delete_all(tx: &mut Tx, subject: impl Into<Subject>) -> Result<()> {
    let subject = subject.into();
    tx.run(sql!("DELETE FROM operation_secret WHERE subject_id = $1"), params![subject])
        .await
        .map(drop)
}
