//! The dependency graph: neighbours of subjects, in batches, level by level.
//!
//! Both ends of an edge must exist and be visible to the caller. A dependent always has an owner;
//! its dependency may be shared.

mod after;

use model::event::Kind;
use model::graph::{
    Direction, Edge, Graph, GraphBuilder, KINDS, MAX_EDGES, Neighbour, Node, Relation,
};
use model::search_index::Document;
use model::{OrganizationId, Xid};

use crate::db::{Row, Select, batches, readable};
use crate::{Error, Read, Result, Scope, search_index};
use after::Sequence;

/// Maximum number of ids listed for an ambiguous name.
const MAX_NAMED: i64 = 10;

/// Reference to a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Id.
    Id(Xid),
    /// Kind and name; of a template `name@version`.
    Named(Kind, String),
}

/// A kind of edge.
struct EdgeQuery {
    from: Kind,
    to: Kind,
    relation: Relation,
    /// Selects dependents and dependencies; `s` is the dependent. Ends inside a `WHERE`.
    sql: &'static str,
    /// The columns of the dependent and the dependency.
    columns: [&'static str; 2],
}

const EDGE_QUERIES: [EdgeQuery; 7] = [
    EdgeQuery {
        from: Kind::Environment,
        to: Kind::Template,
        relation: Relation::MadeFrom,
        sql: "SELECT DISTINCT u.environment_id, u.template_id FROM environment_template u \
              JOIN environment s ON s.id = u.environment_id WHERE s.destroyed_at IS NULL",
        columns: ["u.environment_id", "u.template_id"],
    },
    EdgeQuery {
        from: Kind::Environment,
        to: Kind::Resource,
        relation: Relation::Has,
        sql: "SELECT DISTINCT s.environment_id, s.id FROM resource s WHERE s.deleted_at IS NULL",
        columns: ["s.environment_id", "s.id"],
    },
    EdgeQuery {
        from: Kind::Resource,
        to: Kind::Deployment,
        relation: Relation::Made,
        sql: "SELECT DISTINCT s.id, s.link_id FROM resource s WHERE s.deleted_at IS NULL \
              AND s.link_id IS NOT NULL AND s.link_kind = 'deployment'",
        columns: ["s.id", "s.link_id"],
    },
    EdgeQuery {
        from: Kind::Resource,
        to: Kind::Instance,
        relation: Relation::Made,
        sql: "SELECT DISTINCT s.id, s.link_id FROM resource s WHERE s.deleted_at IS NULL \
              AND s.link_id IS NOT NULL AND s.link_kind = 'instance'",
        columns: ["s.id", "s.link_id"],
    },
    EdgeQuery {
        from: Kind::Deployment,
        to: Kind::Cluster,
        relation: Relation::RunsOn,
        sql: "SELECT DISTINCT p.deployment_id, p.cluster_id FROM replica p \
              JOIN deployment s ON s.id = p.deployment_id WHERE s.deleted_at IS NULL \
              AND s.instance_id IS NULL AND s.reserved IS NULL AND p.cluster_id IS NOT NULL",
        columns: ["p.deployment_id", "p.cluster_id"],
    },
    EdgeQuery {
        from: Kind::Deployment,
        to: Kind::Cluster,
        relation: Relation::PinnedTo,
        sql: "SELECT DISTINCT s.id, s.pinned_to FROM deployment s WHERE s.deleted_at IS NULL \
              AND s.instance_id IS NULL AND s.reserved IS NULL AND s.pinned_to IS NOT NULL",
        columns: ["s.id", "s.pinned_to"],
    },
    EdgeQuery {
        from: Kind::Instance,
        to: Kind::Cluster,
        relation: Relation::RunsOn,
        sql: "SELECT DISTINCT s.id, s.cluster_id FROM instance s WHERE s.deleted_at IS NULL \
              AND s.cluster_id IS NOT NULL",
        columns: ["s.id", "s.cluster_id"],
    },
];

/// Resolves a reference to one subject.
pub async fn find(read: &mut Read, scope: Scope, subject: &Subject) -> Result<Node> {
    match subject {
        Subject::Id(id) => {
            for kind in KINDS {
                if let Some(found) = visible(read, scope, kind, &[*id]).await?.pop() {
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
    let mut found = search_index::by_name(read, kind, own, name, MAX_NAMED).await?;
    // An organization's own subject takes precedence over a shared one.
    if own.is_some() && found.iter().any(|document| document.organization == own) {
        found.retain(|document| document.organization == own);
    }
    match found.len() {
        0 => Err(Error::not_found(kind.as_str(), name)),
        1 => Ok(node(found.remove(0))),
        _ => {
            let ids: Vec<String> = found.iter().map(|document| document.id.to_string()).collect();
            let several = format!("{name} is ambiguous; use one of these ids: {}", ids.join(", "));
            Err(model::Invalid::new("subject", several).into())
        }
    }
}

/// The graph around a subject, up to `depth` levels.
pub async fn around(
    read: &mut Read,
    scope: Scope,
    subject: Node,
    direction: Direction,
    depth: usize,
) -> Result<Graph> {
    let mut growing = GraphBuilder::new(subject, direction);
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
        for (kind, ids) in growing.new_neighbours(&found).into_values() {
            new.extend(visible(read, scope, kind, &ids).await?);
        }
        growing.add(&found, new);
    }
    let mut graph = growing.build();
    graph.is_truncated |= after.is_truncated();
    Ok(graph)
}

/// The edges of some subjects of one kind, in one direction.
async fn neighbours(
    read: &mut Read,
    scope: Scope,
    direction: Direction,
    kind: Kind,
    ids: &[Xid],
) -> Result<Vec<Neighbour>> {
    let mut found = Vec::new();
    for query in &EDGE_QUERIES {
        let [from, to] = query.columns;
        let (near, column, far) = match direction {
            Direction::Dependencies => (query.from, from, query.to),
            Direction::Dependents => (query.to, to, query.from),
        };
        if near != kind {
            continue;
        }
        let edges = edges(read, scope.organization(), query, column, ids).await?;
        found.extend(edges.into_iter().map(|edge| Neighbour { edge, kind: far }));
    }
    Ok(found)
}

async fn edges(
    read: &mut Read,
    own: Option<OrganizationId>,
    query: &EdgeQuery,
    column: &str,
    ids: &[Xid],
) -> Result<Vec<Edge>> {
    let most = i64::try_from(MAX_EDGES).unwrap_or(i64::MAX);
    let mut edges = Vec::new();
    for ids in batches(ids) {
        let rows = Select::new(query.sql)
            .and("s.organization_id = ?", own.as_ref())
            .text(" AND ")
            .one_of(column, &ids)
            .then("ORDER BY 1, 2 LIMIT ?", &most)
            .all(read)
            .await?;
        let edge = |mut row: Row| {
            Ok(Edge { from: row.take()?, to: row.take()?, relation: query.relation })
        };
        edges.extend(readable(rows, edge));
    }
    Ok(edges)
}

/// The subjects with these ids that exist and are visible.
async fn visible(read: &mut Read, scope: Scope, kind: Kind, ids: &[Xid]) -> Result<Vec<Node>> {
    let own = scope.organization();
    let is_visible = |document: &Document| {
        own.is_none() || document.organization.is_none() || document.organization == own
    };
    let found = search_index::by_ids(read, kind, ids).await?;
    Ok(found.into_iter().filter(is_visible).map(node).collect())
}

fn node(document: Document) -> Node {
    Node {
        id: document.id,
        kind: document.kind,
        name: document.name.into(),
        status: document.status.map(Into::into),
    }
}
