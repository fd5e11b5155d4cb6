//! Documents for the search index: a few columns of each subject, the same for all kinds.
//!
//! An unreadable row is skipped.

use std::collections::BTreeMap;

use model::event::Kind;
use model::search_index::Document;
use model::{OrganizationId, Xid};
use serde::Deserialize;

use crate::db::{Json, Row, Select, Value, batches, readable};
use crate::{Error, Read, Result};

/// A page of the documents of a kind, by id.
#[derive(Debug)]
pub struct Page {
    /// The readable ones.
    pub documents: Vec<Document>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}

/// A page of all subjects of a kind, after an id.
pub async fn page(read: &mut Read, kind: Kind, after: Option<String>, limit: i64) -> Result<Page> {
    let rows = select(kind)?
        .and("s.id > ?", after.as_ref())
        .then("ORDER BY s.id LIMIT ?", &limit)
        .all(read)
        .await?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|count| count >= limit);
    let next = rows.last().and_then(id_of).filter(|_| is_full);
    Ok(Page { documents: readable(rows, |row| from_row(kind, row)), next })
}

/// The subjects of a kind with these ids, as far as they exist.
pub async fn by_ids(read: &mut Read, kind: Kind, ids: &[Xid]) -> Result<Vec<Document>> {
    let mut found = Vec::new();
    for ids in batches(ids) {
        let rows = select(kind)?.text(" AND ").one_of("s.id", &ids).all(read).await?;
        found.extend(readable(rows, |row| from_row(kind, row)));
    }
    Ok(found)
}

/// The visible subjects of a kind with that name, at most `limit`, by id.
pub async fn by_name(
    read: &mut Read,
    kind: Kind,
    seen_by: Option<OrganizationId>,
    name: &str,
    limit: i64,
) -> Result<Vec<Document>> {
    let called = match kind {
        Kind::Template => "s.name || '@' || s.version = ?",
        Kind::User => "s.username = ?",
        _ => "s.name = ?",
    };
    let visible = match kind {
        Kind::Organization => "s.id = ?",
        _ => "(s.organization_id = ? OR s.organization_id IS NULL)",
    };
    let name = name.to_owned();
    let rows = select(kind)?
        .and(called, Some(&name))
        .and(visible, seen_by.as_ref())
        .then("ORDER BY s.id LIMIT ?", &limit)
        .all(read)
        .await?;
    Ok(readable(rows, |row| from_row(kind, row)))
}

/// Id, owner, name, description, tags, status: always in this order.
fn select(kind: Kind) -> Result<Select<'static>> {
    let sql = match kind {
        Kind::Organization => {
            "SELECT s.id, s.id, s.name, '', '{}', NULL FROM organization s WHERE s.deleted_at IS NULL"
        }
        Kind::User => {
            "SELECT s.id, s.organization_id, s.username, s.display_name, '{}', NULL FROM \"user\" s \
             WHERE s.deleted_at IS NULL AND s.kind = 'person'"
        }
        Kind::Cluster => {
            "SELECT s.id, s.organization_id, s.name, s.cloud_provider || ' ' || s.region, s.labels, s.status \
             FROM cluster s WHERE s.deleted_at IS NULL"
        }
        // Deployments of instances and reservations are not visible to users.
        Kind::Deployment => {
            "SELECT s.id, s.organization_id, s.name, COALESCE(s.image, ''), s.labels, s.status \
             FROM deployment s WHERE s.deleted_at IS NULL AND s.instance_id IS NULL AND s.reserved IS NULL"
        }
        Kind::Instance => {
            "SELECT s.id, s.organization_id, s.name, s.kind || ' ' || s.instance_type, '{}', s.status \
             FROM instance s WHERE s.deleted_at IS NULL"
        }
        Kind::Template => {
            "SELECT s.id, s.organization_id, s.name || '@' || s.version, s.description, s.tags, \
             CASE WHEN s.deprecated_at IS NULL THEN 'published' ELSE 'deprecated' END \
             FROM template s WHERE s.deleted_at IS NULL"
        }
        Kind::Environment => {
            "SELECT s.id, s.organization_id, s.name, s.description, s.tags, s.status \
             FROM environment s WHERE s.destroyed_at IS NULL"
        }
        // Description and tags of a resource are part of its node.
        Kind::Resource => {
            "SELECT s.id, s.organization_id, s.name, s.executor, s.node, s.status \
             FROM resource s WHERE s.deleted_at IS NULL"
        }
        Kind::Invite | Kind::Pool => {
            return Err(Error::Database(format!("{kind} is not searchable")));
        }
    };
    Ok(Select::new(sql))
}

/// The id of a row, whether or not the rest is readable.
fn id_of(row: &Row) -> Option<String> {
    match row.0.as_slice().first() {
        Some(Value::Text(id)) => Some(id.clone().into_owned()),
        _ => None,
    }
}

fn from_row(kind: Kind, mut row: Row) -> Result<Document> {
    let mut document = Document {
        kind,
        id: row.take()?,
        organization: row.take()?,
        name: row.take::<String>()?.into(),
        description: row.take::<String>()?.into(),
        tags: Box::default(),
        status: None,
    };
    if document.description == document.name {
        document.description = Box::default();
    }
    if kind == Kind::Resource {
        let annotations = row.take::<Json<Annotations>>()?.0;
        document.tags = pairs(annotations.tags);
        if !annotations.description.is_empty() {
            document.description = annotations.description.into();
        }
    } else {
        document.tags = pairs(row.take::<Json<_>>()?.0);
    }
    document.status = row.take::<Option<String>>()?.map(Into::into);
    Ok(document)
}

/// Description and tags of a node.
#[derive(Deserialize)]
struct Annotations {
    description: String,
    tags: BTreeMap<String, String>,
}

fn pairs(tags: BTreeMap<String, String>) -> Box<[(Box<str>, Box<str>)]> {
    tags.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}
