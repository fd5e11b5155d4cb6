//! Vectors over the resource kinds of one pool: named outside, numbered columns inside.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Quantity, Resources};

/// What is asked for, as (column, thousandths). A column that is absent is not asked for, which is
/// more than zero: it may be overdrawn without being in the way.
pub(super) type Want = Arc<[(usize, i64)]>;

/// The kinds that a pool knows, in the order of their columns.
#[derive(Debug, Clone, Default)]
pub(super) struct Kinds {
    names: Vec<String>,
    columns: HashMap<String, usize>,
}

impl Kinds {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The column of a kind, made if it is new.
    fn intern(&mut self, name: &str) -> usize {
        if let Some(&column) = self.columns.get(name) {
            return column;
        }
        self.names.push(name.to_owned());
        self.columns.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// The vector in columns; every kind gets one.
    pub(super) fn learn(&mut self, vector: &Resources) -> Want {
        let named = vector.iter().filter(|(_, amount)| !amount.is_zero());
        named.map(|(kind, amount)| (self.intern(kind), amount.milli())).collect()
    }

    /// The vector in columns, or nothing when the pool has never heard of one of its kinds.
    pub(super) fn read(&self, vector: &Resources) -> Option<Want> {
        let named = vector.iter().filter(|(_, amount)| !amount.is_zero());
        named.map(|(kind, amount)| Some((*self.columns.get(kind)?, amount.milli()))).collect()
    }

    /// Columns and amounts as names and quantities.
    pub(super) fn name(&self, cells: impl Iterator<Item = (usize, i64)>) -> Resources {
        cells.map(|(k, milli)| (self.names[k].clone(), Quantity::from_milli(milli))).collect()
    }
}

/// Rows of one width in one piece of memory.
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

    /// One cell; a column that is not there yet is zero.
    pub(super) fn at(&self, i: usize, column: usize) -> i64 {
        if column < self.width { self.cells[i * self.width + column] } else { 0 }
    }

    /// Adds `want` to a row, as often as `sign`.
    pub(super) fn add(&mut self, i: usize, want: &[(usize, i64)], sign: i64) {
        let row = self.row_mut(i);
        for &(column, amount) in want {
            // Exact for all sums that a real node can hold, and no panic for absurd ones.
            row[column] = row[column].wrapping_add(sign * amount);
        }
    }

    /// Makes the rows `width` wide and `count` many; what is new is zero.
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

/// Does `want` fit into a row?
pub(super) fn fits(want: &[(usize, i64)], row: &[i64]) -> bool {
    want.iter().all(|&(column, amount)| row.get(column).is_some_and(|&have| amount <= have))
}
