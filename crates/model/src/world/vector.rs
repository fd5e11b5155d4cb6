//! Resource vectors of one pool: kinds are numbered columns.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Quantity, Resources};

/// Amounts as (column, thousandths). Zero amounts are left out: an overcommitted kind must not
/// block units that do not request it.
pub(super) type Amounts = Arc<[(usize, i64)]>;

/// The resource kinds of a pool in column order.
#[derive(Debug, Clone, Default)]
pub(super) struct Kinds {
    names: Vec<String>,
    columns: HashMap<String, usize>,
}

impl Kinds {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The column of a kind, added if new.
    fn column(&mut self, name: &str) -> usize {
        if let Some(&column) = self.columns.get(name) {
            return column;
        }
        self.names.push(name.to_owned());
        self.columns.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// Converts a vector to columns, adding columns for new kinds.
    pub(super) fn intern(&mut self, vector: &Resources) -> Amounts {
        let named = vector.iter().filter(|(_, amount)| !amount.is_zero());
        named.map(|(kind, amount)| (self.column(kind), amount.milli())).collect()
    }

    /// Converts a vector to columns; none if the pool lacks one of its kinds.
    pub(super) fn resolve(&self, vector: &Resources) -> Option<Amounts> {
        let named = vector.iter().filter(|(_, amount)| !amount.is_zero());
        named.map(|(kind, amount)| Some((*self.columns.get(kind)?, amount.milli()))).collect()
    }

    /// Converts columns back to names and quantities.
    pub(super) fn to_resources(&self, cells: impl Iterator<Item = (usize, i64)>) -> Resources {
        cells.map(|(k, milli)| (self.names[k].clone(), Quantity::from_milli(milli))).collect()
    }
}

/// A row-major matrix.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    width: usize,
    cells: Vec<i64>,
}

impl Rows {
    pub(super) fn row(&self, i: usize) -> &[i64] {
        &self.cells[i * self.width..(i + 1) * self.width]
    }

    pub(super) fn row_mut(&mut self, i: usize) -> &mut [i64] {
        &mut self.cells[i * self.width..(i + 1) * self.width]
    }

    /// One cell; missing columns are zero.
    pub(super) fn at(&self, i: usize, column: usize) -> i64 {
        if column < self.width { self.cells[i * self.width + column] } else { 0 }
    }

    /// Adds `demand` times `sign` to a row.
    pub(super) fn add(&mut self, i: usize, demand: &[(usize, i64)], sign: i64) {
        let row = self.row_mut(i);
        for &(column, amount) in demand {
            // Exact for all sums that a real node can hold, and no panic for absurd ones.
            row[column] = row[column].wrapping_add(sign * amount);
        }
    }

    /// Resizes to `count` rows of `width`; new cells are zero.
    pub(super) fn resize(&mut self, count: usize, width: usize) {
        if width != self.width {
            let mut wider = vec![0; count * width];
            for (i, old) in self.cells.chunks_exact(self.width.max(1)).enumerate() {
                wider[i * width..i * width + self.width].copy_from_slice(old);
            }
            *self = Self { width, cells: wider };
        }
        self.cells.resize(count * width, 0);
    }
}

/// Does `demand` fit into a row?
pub(super) fn fits(demand: &[(usize, i64)], row: &[i64]) -> bool {
    demand.iter().all(|&(column, amount)| row.get(column).is_some_and(|&have| amount <= have))
}
