//! Builds statements from a fixed text and optional conditions.

use super::value::{Param, Row, Value};
use crate::{Read, Result, Tx};

/// A statement under construction. Only texts of this crate go in; users' values are bound.
#[derive(Debug)]
pub struct Select<'a> {
    sql: String,
    params: Vec<Value<'a>>,
}

impl<'a> Select<'a> {
    /// Starts with a text that ends inside a `WHERE`.
    pub(crate) fn new(sql: &str) -> Self {
        Self { sql: sql.to_owned(), params: Vec::new() }
    }

    /// Adds `AND <condition>` with the value in place of every `?`, if there is a value.
    pub(crate) fn and<P: Param>(mut self, condition: &str, value: Option<&'a P>) -> Self {
        if let Some(value) = value {
            self.sql.push_str(" AND ");
            self.push(condition, value.value());
        }
        self
    }

    /// Adds text with the value in place of every `?`.
    pub(crate) fn then<P: Param>(mut self, text: &str, value: &'a P) -> Self {
        self.sql.push(' ');
        self.push(text, value.value());
        self
    }

    fn push(&mut self, text: &str, value: Value<'a>) {
        self.params.push(value);
        self.sql.push_str(&text.replace('?', &format!("${}", self.params.len())));
    }

    /// Adds text with an owned value in place of every `?`.
    pub(crate) fn bound(mut self, text: &str, value: Value<'a>) -> Self {
        self.push(text, value);
        self
    }

    /// Adds `column IN (values)`.
    pub(crate) fn one_of<P: Param>(mut self, column: &str, values: &'a [P]) -> Self {
        self.sql.push_str(column);
        for (i, value) in values.iter().enumerate() {
            self.sql.push_str(if i == 0 { " IN (" } else { ", " });
            self.push("?", value.value());
        }
        self.text(")")
    }

    /// Adds plain text.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.sql.push_str(text);
        self
    }

    /// Runs the statement and returns its rows.
    pub(crate) async fn all(self, read: &mut Read) -> Result<Vec<Row>> {
        read.all(&self.sql, &self.params).await
    }

    /// Runs the statement and returns the number of changed rows.
    pub(crate) async fn run(self, tx: &mut Tx) -> Result<u64> {
        tx.run(&self.sql, &self.params).await
    }

    /// The text.
    pub(crate) fn sql(self) -> String {
        self.sql
    }
}

/// Batch sizes of ids; a batch is padded to one of them, to limit the number of statements.
const BATCHES: [usize; 3] = [1, 8, 64];

/// Splits the ids into batches; the last id is repeated as padding.
pub(crate) fn batches<T: Copy>(ids: &[T]) -> Vec<Vec<T>> {
    let largest = BATCHES[BATCHES.len() - 1];
    let parts = ids.chunks(largest).map(|part| {
        let size = BATCHES.into_iter().find(|size| *size >= part.len()).unwrap_or(largest);
        let mut part = part.to_vec();
        let last = part[part.len() - 1];
        part.resize(size, last);
        part
    });
    parts.collect()
}
