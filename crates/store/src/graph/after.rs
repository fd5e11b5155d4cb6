//! Which resources are made after which. An environment says that by names, all at once: what is read of it
//! is kept for as long as a graph grows.

use std::collections::{BTreeMap, HashMap, HashSet};

use model::Xid;
use model::event::Kind;
use model::graph::{Direction, Edge, Found, MAX_EDGES, Why};
use serde::Deserialize;

use crate::db::{Json, Row, Select, batches, params, readable, sql};
use crate::{Read, Result};

/// What is known so far.
#[derive(Default)]
pub(super) struct Sequence {
    /// Resources of environments that were read.
    known: HashSet<Xid>,
    /// The edges of each resource: to those before it, and from those after it.
    before: HashMap<Xid, Vec<Xid>>,
    after: HashMap<Xid, Vec<Xid>>,
    /// How many edges that is.
    edges: usize,
    is_cut: bool,
}

/// A resource, as far as it matters here.
struct Part {
    id: Xid,
    name: String,
    after: Vec<String>,
}

/// What a node says of those before it.
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
    ) -> Result<Vec<Found>> {
        let new: Vec<Xid> = ids.iter().filter(|id| !self.known.contains(id)).copied().collect();
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
            Found { edge: Edge { from, to, why: Why::After }, kind: Kind::Resource }
        });
        Ok(found.collect())
    }

    /// Was something not read because a graph can't have so many edges?
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Reads the environments of these resources: one after the other, for all that each of them has is in
    /// memory meanwhile.
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
                self.is_cut = true;
                break;
            }
            let sql = sql!(
                "SELECT id, name, node FROM resource WHERE environment_id = $1 AND deleted_at IS NULL ",
                "ORDER BY id"
            );
            let rows = read.all(sql, params![environment]).await?;
            self.learn(&readable(rows, from_row));
        }
        Ok(())
    }

    /// Takes in the resources of one environment.
    fn learn(&mut self, parts: &[Part]) {
        let named: BTreeMap<&str, Xid> =
            parts.iter().map(|part| (part.name.as_str(), part.id)).collect();
        for part in parts.iter().filter(|part| self.known.insert(part.id)) {
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
