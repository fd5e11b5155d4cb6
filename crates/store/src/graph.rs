//! What depends on what: neighbours of subjects, many at once, level by level.
//!
//! Both ends of an edge must be there and be seen by whoever asks. Who needs is always somebody's; what is
//! needed may be shared.

mod after;

use model::event::Kind;
use model::finding::Document;
use model::graph::{Direction, Edge, Found, Graph, Growing, KINDS, MAX_EDGES, Node, Why};
use model::{OrganizationId, Xid};

use crate::db::{Row, Select, batches, readable};
use crate::{Error, Read, Result, Scope, finding};
use after::Sequence;

/// How many of one name are told apart.
const MOST_NAMED: i64 = 10;

/// How a subject is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// By its id.
    Id(Xid),
    /// By its kind and its name; a template's is `name@version`.
    Named(Kind, String),
}

/// All that a kind of edge is about.
struct Relation {
    from: Kind,
    to: Kind,
    why: Why,
    /// Who needs and what is needed; `s` is who needs. It ends inside a `WHERE`.
    sql: &'static str,
    /// Who needs, and what is needed, as columns.
    columns: [&'static str; 2],
}

const RELATIONS: [Relation; 7] = [
    Relation {
        from: Kind::Environment,
        to: Kind::Template,
        why: Why::MadeFrom,
        sql: "SELECT DISTINCT u.environment_id, u.template_id FROM environment_template u \
              JOIN environment s ON s.id = u.environment_id WHERE s.destroyed_at IS NULL",
        columns: ["u.environment_id", "u.template_id"],
    },
    Relation {
        from: Kind::Environment,
        to: Kind::Resource,
        why: Why::Has,
        sql: "SELECT DISTINCT s.environment_id, s.id FROM resource s WHERE s.deleted_at IS NULL",
        columns: ["s.environment_id", "s.id"],
    },
    Relation {
        from: Kind::Resource,
        to: Kind::Deployment,
        why: Why::Made,
        sql: "SELECT DISTINCT s.id, s.link_id FROM resource s WHERE s.deleted_at IS NULL \
              AND s.link_id IS NOT NULL AND s.link_kind = 'deployment'",
        columns: ["s.id", "s.link_id"],
    },
    Relation {
        from: Kind::Resource,
        to: Kind::Instance,
        why: Why::Made,
        sql: "SELECT DISTINCT s.id, s.link_id FROM resource s WHERE s.deleted_at IS NULL \
              AND s.link_id IS NOT NULL AND s.link_kind = 'instance'",
        columns: ["s.id", "s.link_id"],
    },
    Relation {
        from: Kind::Deployment,
        to: Kind::Cluster,
        why: Why::RunsOn,
        sql: "SELECT DISTINCT p.deployment_id, p.cluster_id FROM replica p \
              JOIN deployment s ON s.id = p.deployment_id WHERE s.deleted_at IS NULL \
              AND s.instance_id IS NULL AND s.reserved IS NULL AND p.cluster_id IS NOT NULL",
        columns: ["p.deployment_id", "p.cluster_id"],
    },
    Relation {
        from: Kind::Deployment,
        to: Kind::Cluster,
        why: Why::PinnedTo,
        sql: "SELECT DISTINCT s.id, s.pinned_to FROM deployment s WHERE s.deleted_at IS NULL \
              AND s.instance_id IS NULL AND s.reserved IS NULL AND s.pinned_to IS NOT NULL",
        columns: ["s.id", "s.pinned_to"],
    },
    Relation {
        from: Kind::Instance,
        to: Kind::Cluster,
        why: Why::RunsOn,
        sql: "SELECT DISTINCT s.id, s.cluster_id FROM instance s WHERE s.deleted_at IS NULL \
              AND s.cluster_id IS NOT NULL",
        columns: ["s.id", "s.cluster_id"],
    },
];

/// The one subject that is named so.
pub async fn find(read: &mut Read, scope: Scope, subject: &Subject) -> Result<Node> {
    match subject {
        Subject::Id(id) => {
            for kind in KINDS {
                if let Some(found) = seen(read, scope, kind, &[*id]).await?.pop() {
                    return Ok(found);
                }
            }
            Err(Error::not_found("subject", id))
        }
        Subject::Named(kind, name) => named(read, scope, *kind, name).await,
    }
}

async fn named(read: &mut Read, scope: Scope, kind: Kind, name: &str) -> Result<Node> {
    let own = scope.organization();
    let mut found = finding::named(read, kind, own, name, MOST_NAMED).await?;
    // Whoever has one of their own means that one.
    if own.is_some() && found.iter().any(|one| one.organization == own) {
        found.retain(|one| one.organization == own);
    }
    match found.len() {
        0 => Err(Error::not_found(kind.as_str(), name)),
        1 => Ok(node(found.remove(0))),
        _ => {
            let ids: Vec<String> = found.iter().map(|one| one.id.to_string()).collect();
            let several =
                format!("several are called {name}; give the id of one: {}", ids.join(", "));
            Err(model::Invalid::new("subject", several).into())
        }
    }
}

/// What is around a subject, up to so many steps away.
pub async fn around(
    read: &mut Read,
    scope: Scope,
    subject: Node,
    direction: Direction,
    depth: usize,
) -> Result<Graph> {
    let mut growing = Growing::new(subject, direction);
    let mut after = Sequence::default();
    for _ in 0..depth {
        let level = growing.next_level();
        if level.is_empty() {
            break;
        }
        let mut found = Vec::new();
        for (kind, ids) in level.into_values() {
            found.extend(neighbours(read, scope, direction, kind, &ids).await?);
            if kind == Kind::Resource {
                found.extend(after.neighbours(read, direction, &ids).await?);
            }
        }
        let mut new = Vec::new();
        for (kind, ids) in growing.strangers(&found).into_values() {
            new.extend(seen(read, scope, kind, &ids).await?);
        }
        growing.add(&found, new);
    }
    let mut graph = growing.done();
    graph.is_truncated |= after.is_cut();
    Ok(graph)
}

/// The edges of some subjects of one kind, in one direction.
async fn neighbours(
    read: &mut Read,
    scope: Scope,
    direction: Direction,
    kind: Kind,
    ids: &[Xid],
) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for relation in &RELATIONS {
        let [from, to] = relation.columns;
        let (near, column, far) = match direction {
            Direction::Dependencies => (relation.from, from, relation.to),
            Direction::Dependents => (relation.to, to, relation.from),
        };
        if near != kind {
            continue;
        }
        let edges = edges(read, scope.organization(), relation, column, ids).await?;
        found.extend(edges.into_iter().map(|edge| Found { edge, kind: far }));
    }
    Ok(found)
}

async fn edges(
    read: &mut Read,
    own: Option<OrganizationId>,
    relation: &Relation,
    column: &str,
    ids: &[Xid],
) -> Result<Vec<Edge>> {
    let most = i64::try_from(MAX_EDGES).unwrap_or(i64::MAX);
    let mut edges = Vec::new();
    for ids in batches(ids) {
        let rows = Select::new(relation.sql)
            .and("s.organization_id = ?", own.as_ref())
            .text(" AND ")
            .one_of(column, &ids)
            .then("ORDER BY 1, 2 LIMIT ?", &most)
            .all(read)
            .await?;
        let edge =
            |mut row: Row| Ok(Edge { from: row.take()?, to: row.take()?, why: relation.why });
        edges.extend(readable(rows, edge));
    }
    Ok(edges)
}

/// Those of these that are there and may be seen.
async fn seen(read: &mut Read, scope: Scope, kind: Kind, ids: &[Xid]) -> Result<Vec<Node>> {
    let own = scope.organization();
    let is_seen =
        |one: &Document| own.is_none() || one.organization.is_none() || one.organization == own;
    let found = finding::some(read, kind, ids).await?;
    Ok(found.into_iter().filter(is_seen).map(node).collect())
}

fn node(document: Document) -> Node {
    Node {
        id: document.id,
        kind: document.kind,
        name: document.name.into(),
        status: document.status.map(Into::into),
    }
}
