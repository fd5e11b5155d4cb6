//! The search language of lists.

use serde::Deserialize;

/// How a column is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub enum Op {
    /// `=`
    #[serde(rename = "=")]
    Eq,
    /// `<>`
    #[serde(rename = "<>")]
    Ne,
    /// `LIKE`, with `%` and `_`
    #[serde(rename = "like")]
    Like,
    /// `ILIKE`: the same whatever the case
    #[serde(rename = "ilike")]
    ILike,
    /// `IN` and `NOT IN`
    #[serde(rename = "in")]
    In,
}

impl Op {
    /// All of them.
    pub const ALL: [Op; 5] = [Op::Eq, Op::Ne, Op::Like, Op::ILike, Op::In];
}
