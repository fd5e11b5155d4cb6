//! Statements that are put together: a fixed text and the conditions that the caller asked for.

use super::value::{Param, Row, Value};
use crate::{Read, Result, Tx};

/// A statement that grows by conditions. Only texts of this crate go in; users' values are bound.
#[derive(Debug)]
pub struct Select<'a> {
    sql: String,
    params: Vec<Value<'a>>,
}

impl<'a> Select<'a> {
    /// Begins with a text that ends inside a `WHERE`.
    pub(crate) fn new(sql: &str) -> Self {
        Self { sql: sql.to_owned(), params: Vec::new() }
    }

    /// Adds `AND <condition>` with the value in the place of every `?`, if there is a value.
    pub(crate) fn and<P: Param>(mut self, condition: &str, value: Option<&'a P>) -> Self {
        if let Some(value) = value {
            self.sql.push_str(" AND ");
            self.push(condition, value.value());
        }
        self
    }

    /// Adds text with the value in the place of every `?`.
    pub(crate) fn then<P: Param>(mut self, text: &str, value: &'a P) -> Self {
        self.sql.push(' ');
        self.push(text, value.value());
        self
    }

    fn push(&mut self, text: &str, value: Value<'a>) {
        self.params.push(value);
        self.sql.push_str(&text.replace('?', &format!("${}", self.params.len())));
    }

    /// Adds text with a value of the caller's making in the place of every `?`.
    pub(crate) fn bound(mut self, text: &str, value: Value<'a>) -> Self {
        self.push(text, value);
        self
    }

    /// Adds that a column has one of these values.
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

    /// Runs it; its rows.
    pub(crate) async fn all(self, read: &mut Read) -> Result<Vec<Row>> {
        read.all(&self.sql, &self.params).await
    }

    /// Runs one that gives no rows; how many it changed.
    pub(crate) async fn run(self, tx: &mut Tx) -> Result<u64> {
        tx.run(&self.sql, &self.params).await
    }

    /// Its text.
    pub(crate) fn sql(self) -> String {
        self.sql
    }
}

/// How many subjects one statement asks for; what is asked for is filled up to one of these, so
/// that there are few different statements.
const BATCHES: [usize; 3] = [1, 8, 64];

/// The ids in parts, each of one of few sizes; the last is repeated to fill a part.
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
