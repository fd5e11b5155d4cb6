//! Order of resources in environments. An environment refers to them by name, so it is read as a
//! whole and cached while a graph is built.

use std::collections::{BTreeMap, HashMap, HashSet};

use model::Xid;
use model::event::Kind;
use model::graph::{Direction, Edge, MAX_EDGES, Neighbour, Relation};
use serde::Deserialize;

use crate::db::{Json, Row, Select, batches, params, readable, sql};
use crate::{Read, Result};

/// The resources read so far.
#[derive(Default)]
pub(super) struct Sequence {
    /// Resources of environments that were read.
    loaded: HashSet<Xid>,
    /// Edges of each resource: to its predecessors, and to its successors.
    before: HashMap<Xid, Vec<Xid>>,
    after: HashMap<Xid, Vec<Xid>>,
    /// Number of edges.
    edges: usize,
    is_truncated: bool,
}

/// A resource, as far as needed here.
struct Part {
    id: Xid,
    name: String,
    after: Vec<String>,
}

/// The predecessors in a node.
#[derive(Deserialize)]
struct Order {
    after: Vec<String>,
}

impl Sequence {
    /// The edges of these resources to other resources.
    pub(super) async fn neighbours(
        &mut self,
        read: &mut Read,
        direction: Direction,
        ids: &[Xid],
    ) -> Result<Vec<Neighbour>> {
        let new: Vec<Xid> = ids.iter().filter(|id| !self.loaded.contains(id)).copied().collect();
        self.read(read, &new).await?;
        let near = match direction {
            Direction::Dependencies => &self.before,
            Direction::Dependents => &self.after,
        };
        let edges =
            ids.iter().flat_map(|id| near.get(id).into_iter().flatten().map(|far| (*id, *far)));
        let found = edges.map(|(near, far)| {
            let (from, to) = match direction {
                Direction::Dependencies => (near, far),
                Direction::Dependents => (far, near),
            };
            Neighbour { edge: Edge { from, to, relation: Relation::After }, kind: Kind::Resource }
        });
        Ok(found.collect())
    }

    /// Whether resources were skipped because the graph has too many edges.
    pub(super) fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Reads the environments of these resources one by one, to limit the memory.
    async fn read(&mut self, read: &mut Read, ids: &[Xid]) -> Result<()> {
        let mut environments = Vec::new();
        for ids in batches(ids) {
            let select = Select::new("SELECT DISTINCT environment_id FROM resource WHERE ");
            let rows = select.one_of("id", &ids).all(read).await?;
            environments.extend(readable(rows, |mut row| row.take::<Xid>()));
        }
        environments.sort_unstable();
        environments.dedup();
        for environment in environments {
            if self.edges > MAX_EDGES {
                self.is_truncated = true;
                break;
            }
            let sql = sql!(
                "SELECT id, name, node FROM resource WHERE environment_id = $1 AND deleted_at IS NULL ",
                "ORDER BY id"
            );
            let rows = read.all(sql, params![environment]).await?;
            self.add(&readable(rows, from_row));
        }
        Ok(())
    }

    /// Adds the resources of an environment.
    fn add(&mut self, parts: &[Part]) {
        let named: BTreeMap<&str, Xid> =
            parts.iter().map(|part| (part.name.as_str(), part.id)).collect();
        for part in parts.iter().filter(|part| self.loaded.insert(part.id)) {
            for name in &part.after {
                let Some(first) = named.get(name.as_str()) else { continue };
                self.before.entry(part.id).or_default().push(*first);
                self.after.entry(*first).or_default().push(part.id);
                self.edges += 1;
            }
        }
    }
}

fn from_row(mut row: Row) -> Result<Part> {
    let (id, name) = (row.take()?, row.take()?);
    Ok(Part { id, name, after: row.take::<Json<Order>>()?.0.after })
}
