//! Search in lists of instances: expression, order, page.
//!
//! Columns come from the tables below, values are always bound, and the user's expression is in
//! parentheses next to the scope condition: no search can escape its scope.

use std::borrow::Cow;

use model::instance::Instance;
use model::search::{Direction, Expr, Op};

use crate::db::{Select, Value};
use crate::subject::Subject as _;
use crate::{Error, Read, Result, Scope};

/// A search.
#[derive(Debug, Clone)]
pub struct Search<'a> {
    /// Scope.
    pub scope: Scope,
    /// Kind.
    pub kind: &'a str,
    /// Expression; all instances without one.
    pub expr: Option<&'a Expr>,
    /// Order by columns of `order_column`; by name if empty.
    pub order: &'a [(String, Direction)],
}

/// A page of the results.
pub async fn list(
    read: &mut Read,
    search: &Search<'_>,
    limit: i64,
    skip: i64,
) -> Result<Vec<Instance>> {
    let own = search.scope.organization();
    let is_postgres = read.is_postgres();
    let select = Select::new(concat!(
        "SELECT ",
        super::columns!(),
        " FROM instance WHERE deleted_at IS NULL"
    ))
    .and("organization_id = ?", own.as_ref())
    .and("kind = ?", Some(&search.kind));
    let select = narrowed(select, search.expr, is_postgres)?;
    let rows = ordered(select, search.order, is_postgres)?
        .then("LIMIT ?", &limit)
        .then("OFFSET ?", &skip)
        .all(read)
        .await?;
    Ok(Instance::from_rows(rows))
}

/// Number of results.
pub async fn count(read: &mut Read, search: &Search<'_>) -> Result<i64> {
    let own = search.scope.organization();
    let is_postgres = read.is_postgres();
    let select = Select::new("SELECT COUNT(*) FROM instance WHERE deleted_at IS NULL")
        .and("organization_id = ?", own.as_ref())
        .and("kind = ?", Some(&search.kind));
    let rows = narrowed(select, search.expr, is_postgres)?.all(read).await?;
    rows.into_iter().next().map_or(Ok(0), |mut row| row.take())
}

/// Adds the user's expression in parentheses.
fn narrowed<'a>(
    select: Select<'a>,
    expr: Option<&'a Expr>,
    is_postgres: bool,
) -> Result<Select<'a>> {
    let Some(expr) = expr else { return Ok(select) };
    Ok(matching(select.text(" AND ("), expr, is_postgres)?.text(")"))
}

fn matching<'a>(select: Select<'a>, expr: &'a Expr, is_postgres: bool) -> Result<Select<'a>> {
    match expr {
        Expr::And(parts) => joined(select, parts, " AND ", is_postgres),
        Expr::Or(parts) => joined(select, parts, " OR ", is_postgres),
        Expr::Compare { column, op, value } => {
            let column = search_column(column)?;
            Ok(compared(select, column, *op, value, is_postgres))
        }
        Expr::In { column, not, values } => {
            let column = search_column(column)?;
            let select = select.text(if *not { "NOT " } else { "" });
            Ok(select.one_of(column, values))
        }
    }
}

fn joined<'a>(
    mut select: Select<'a>,
    parts: &'a [Expr],
    join: &str,
    is_postgres: bool,
) -> Result<Select<'a>> {
    for (i, part) in parts.iter().enumerate() {
        select = select.text(if i == 0 { "(" } else { join });
        select = matching(select, part, is_postgres)?;
    }
    Ok(select.text(")"))
}

fn compared<'a>(
    select: Select<'a>,
    column: &str,
    op: Op,
    value: &'a str,
    is_postgres: bool,
) -> Select<'a> {
    match op {
        Op::Eq | Op::In => select.bound(&format!("{column} = ?"), text(value)),
        Op::Ne => select.bound(&format!("{column} <> ?"), text(value)),
        Op::Like => select.bound(&format!("{column} LIKE ? ESCAPE '\\'"), pattern(value)),
        // In SQLite `LIKE` folds the case of ASCII letters only.
        Op::ILike if !is_postgres => {
            let value = pattern(&value.to_ascii_lowercase());
            select.bound(&format!("LOWER({column}) LIKE ? ESCAPE '\\'"), value)
        }
        Op::ILike => select.bound(&format!("{column} ILIKE ? ESCAPE '\\'"), pattern(value)),
    }
}

fn text(value: &str) -> Value<'_> {
    Value::Text(Cow::Borrowed(value))
}

/// Makes a pattern valid for both engines: a trailing backslash stands for itself.
fn pattern(value: &str) -> Value<'static> {
    let backslashes = value.chars().rev().take_while(|c| *c == '\\').count();
    let end = if backslashes % 2 == 1 { "\\" } else { "" };
    Value::Text(Cow::Owned(format!("{value}{end}")))
}

fn ordered<'a>(
    select: Select<'a>,
    order: &[(String, Direction)],
    is_postgres: bool,
) -> Result<Select<'a>> {
    // By code points, independent of the database's collation.
    let by_code = if is_postgres { " COLLATE \"C\"" } else { "" };
    let mut select = select.text(" ORDER BY ");
    for (column, direction) in order {
        let (column, is_text) = order_column(column, is_postgres)?;
        let way = match direction {
            Direction::Ascending => " ASC NULLS FIRST, ",
            Direction::Descending => " DESC NULLS LAST, ",
        };
        select = select.text(column).text(if is_text { by_code } else { "" }).text(way);
    }
    if order.is_empty() {
        select = select.text("name").text(by_code).text(", ");
    }
    // A total order, so that pages don't overlap.
    Ok(select.text("id"))
}

/// The column that a search refers to.
fn search_column(name: &str) -> Result<&'static str> {
    const COLUMNS: [&str; 7] =
        ["region", "name", "cloud_provider", "status", "owner", "cluster_id", "instance_type"];
    COLUMNS.into_iter().find(|column| *column == name).ok_or_else(|| unknown(name))
}

/// The column that an order refers to, and whether it is text.
fn order_column(name: &str, is_postgres: bool) -> Result<(&'static str, bool)> {
    Ok(match name {
        "cloud_provider" => ("cloud_provider", true),
        "cluster_id" => ("cluster_id", true),
        "created_at" => ("created_at", false),
        // The path ends with the id.
        "href" | "id" => ("id", true),
        "instance_type" => ("instance_type", true),
        "multi_az" => ("multi_az", false),
        "name" => ("name", true),
        "organisation_id" => ("organization_id", true),
        "owner" => ("owner", true),
        "reauthentication_enabled" => ("reauthentication", false),
        "region" => ("region", true),
        "status" => ("status", true),
        "updated_at" => ("updated_at", false),
        // Used too rarely for a column.
        "version" if is_postgres => ("(CAST(detail AS JSON) #>> '{actual,service}')", true),
        "version" => ("json_extract(detail, '$.actual.service')", true),
        "host" => ("host", true),
        _ => return Err(unknown(name)),
    })
}

fn unknown(column: &str) -> Error {
    Error::Database(format!("instances have no searchable column {column:?}"))
}
