//! The encrypted state of operations: what external systems are told, and what adapters persist.

use std::collections::BTreeMap;

use model::operation::Subject;

use crate::db::{params, sql};
use crate::{Error, Read, Result, Tx};

/// All secrets of a subject, encrypted, by name.
pub async fn all(read: &mut Read, of: impl Into<Subject>) -> Result<BTreeMap<String, String>> {
    let of = of.into();
    let sql = sql!("SELECT name, sealed FROM operation_secret WHERE subject_id = $1");
    let rows = read.all(sql, params![of]).await?;
    rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
}

/// Persists what an operation gave. Fails if another server has taken over since `fence` was given out.
pub async fn set(
    tx: &mut Tx,
    of: impl Into<Subject>,
    fence: i64,
    sealed: &BTreeMap<String, String>,
) -> Result<()> {
    let of = of.into();
    for (name, sealed) in sealed {
        let sql = match of {
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
        if tx.run(sql, params![of, fence, name, sealed]).await? == 0 {
            return Err(Error::Conflict(format!("another server has taken over {of}")));
        }
    }
    Ok(())
}

/// Persists what a user gave, whichever server operates on the subject.
pub async fn put(
    tx: &mut Tx,
    of: impl Into<Subject>,
    sealed: &BTreeMap<String, String>,
) -> Result<()> {
    let of = of.into();
    for (name, sealed) in sealed {
        let sql = sql!(
            "INSERT INTO operation_secret (subject_id, name, sealed) VALUES ($1, $2, $3) ",
            "ON CONFLICT (subject_id, name) DO UPDATE SET sealed = excluded.sealed"
        );
        tx.run(sql, params![of, name, sealed]).await?;
    }
    Ok(())
}

/// Deletes all secrets of a subject.
pub async fn forget(tx: &mut Tx, of: impl Into<Subject>) -> Result<()> {
    let of = of.into();
    tx.run(sql!("DELETE FROM operation_secret WHERE subject_id = $1"), params![of]).await.map(drop)
}
