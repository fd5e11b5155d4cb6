//! Parts of lists: by `limit` and `after`, or by page number as the Kargo API has it.

use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use model::Xid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::Page;
use utoipa::{IntoParams, ToSchema};

use crate::Problem;
use crate::body::parse;

pub(crate) use wire::page::List;

/// The most that one answer holds.
pub(crate) const MAX_LIMIT: i64 = 1000;

/// Which part of a list is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Slice {
    /// How many at most, from 1 to 1000.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000, default = 100)]
    limit: Option<String>,
    /// The last id of the part before.
    after: Option<String>,
}

impl Slice {
    pub(crate) fn page(&self) -> Result<Page, Problem> {
        let limit = number("limit", self.limit.as_deref(), 100, 1, MAX_LIMIT)?;
        if let Some(after) = &self.after
            && Xid::from_str(after).is_err()
        {
            return Err(Problem::field(
                "after",
                "must be the id that `next` of the part before gave",
            ));
        }
        // One more than asked for, to see whether something comes after.
        Ok(Page { after: self.after.clone(), limit: limit + 1, skip: 0 })
    }
}

/// A query parameter that is `true` or `false`; false when it is left out.
pub(crate) fn flag(field: &str, text: Option<&str>) -> Result<bool, Problem> {
    match text {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Problem::field(field, "is either true or false")),
    }
}

/// The Kargo API's pages: `page` counts from 0, `offset` is the number of items per page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Numbered {
    /// Which page, from 0.
    #[param(value_type = Option<i64>, minimum = 0, default = 0)]
    page: Option<String>,
    /// How many items a page has, from 1 to 1000.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000, default = 20)]
    offset: Option<String>,
}

impl Numbered {
    pub(crate) fn page(&self) -> Result<Page, Problem> {
        let limit = number("offset", self.offset.as_deref(), 20, 1, MAX_LIMIT)?;
        let page = number("page", self.page.as_deref(), 0, 0, i64::MAX / MAX_LIMIT)?;
        Ok(Page { after: None, limit, skip: page * limit })
    }
}

/// One page of a list, with its size in all.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NumberedList<T> {
    /// Which page this is, from 0.
    page: i64,
    /// How many items a page has.
    offset: i64,
    /// How many items there are in all.
    total: i64,
    /// The items.
    items: Vec<T>,
}

impl<T> NumberedList<T> {
    pub(crate) fn new(items: Vec<T>, page: &Page, total: i64) -> Self {
        Self { page: page.skip / page.limit, offset: page.limit, total, items }
    }
}

/// A number within bounds from a query, or the default.
pub(crate) fn number(
    field: &str,
    text: Option<&str>,
    default: i64,
    min: i64,
    max: i64,
) -> Result<i64, Problem> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(default);
    };
    let parsed = text.parse().ok().filter(|n| (min..=max).contains(n));
    parsed
        .ok_or_else(|| Problem::field(field, format!("must be a whole number from {min} to {max}")))
}

/// The query, with errors as problem documents. All values are text; what they mean comes after.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let axum::extract::Query(map) = axum::extract::Query::<
            std::collections::BTreeMap<String, String>,
        >::try_from_uri(&parts.uri)
        .map_err(|_| Problem::field("query", "can't be read"))?;
        let unprintable = map.iter().find(|(_, value)| value.chars().any(char::is_control));
        if let Some((field, _)) = unprintable {
            return Err(Problem::field(field, "control characters are not allowed"));
        }
        let json = serde_json::to_vec(&map).expect("text to text");
        parse(&json).map(Self)
    }
}

/// An id from a path. What is no id names nothing.
pub(crate) fn id<T: FromStr>(kind: &str, text: &str) -> Result<T, Problem> {
    text.trim().parse().map_err(|_| Problem::not_found(kind, text))
}

/// An id from a query.
pub(crate) fn id_field<T: FromStr>(field: &str, text: &str) -> Result<T, Problem> {
    text.trim().parse().map_err(|_| Problem::field(field, "is no id; ids have 20 characters"))
}
