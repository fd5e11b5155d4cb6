//! Paging: by `limit` and `after`, or by page number in the Kargo API.

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

/// Maximum page size.
pub(crate) const MAX_LIMIT: i64 = 1000;

/// Requested page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Page size, from 1 to 1000.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000, default = 100)]
    limit: Option<String>,
    /// Last ID of the previous page.
    after: Option<String>,
}

impl PageQuery {
    pub(crate) fn page(&self) -> Result<Page, Problem> {
        let limit = number("limit", self.limit.as_deref(), 100, 1, MAX_LIMIT)?;
        if let Some(after) = &self.after
            && Xid::from_str(after).is_err()
        {
            return Err(Problem::field("after", "must be the `next` value of the previous page"));
        }
        // One more item than requested, to detect whether more follow.
        Ok(Page { after: self.after.clone(), limit: limit + 1, skip: 0 })
    }
}

/// Parses a boolean query parameter; false if omitted.
pub(crate) fn flag(field: &str, text: Option<&str>) -> Result<bool, Problem> {
    match text {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Problem::field(field, "must be true or false")),
    }
}

/// Paging of the Kargo API: `page` counts from 0, `offset` is the number of items per page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NumberedPageQuery {
    /// Page number, starting at 0.
    #[param(value_type = Option<i64>, minimum = 0, default = 0)]
    page: Option<String>,
    /// Number of items per page, from 1 to 1000.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000, default = 20)]
    offset: Option<String>,
}

impl NumberedPageQuery {
    pub(crate) fn page(&self) -> Result<Page, Problem> {
        let limit = number("offset", self.offset.as_deref(), 20, 1, MAX_LIMIT)?;
        let page = number("page", self.page.as_deref(), 0, 0, i64::MAX / MAX_LIMIT)?;
        Ok(Page { after: None, limit, skip: page * limit })
    }
}

/// A page of a list with the total number of items.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NumberedList<T> {
    /// Page number, starting at 0.
    page: i64,
    /// Number of items per page.
    offset: i64,
    /// Total number of items.
    total: i64,
    /// The items.
    items: Vec<T>,
}

impl<T> NumberedList<T> {
    pub(crate) fn new(items: Vec<T>, page: &Page, total: i64) -> Self {
        Self { page: page.skip / page.limit, offset: page.limit, total, items }
    }
}

/// Parses a bounded integer query parameter, or returns the default.
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

/// Query parameters as text, with errors as problem documents.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let axum::extract::Query(map) = axum::extract::Query::<
            std::collections::BTreeMap<String, String>,
        >::try_from_uri(&parts.uri)
        .map_err(|_| Problem::field("query", "is malformed"))?;
        let unprintable = map.iter().find(|(_, value)| value.chars().any(char::is_control));
        if let Some((field, _)) = unprintable {
            return Err(Problem::field(field, "control characters are not allowed"));
        }
        let json = serde_json::to_vec(&map).expect("text to text");
        parse(&json).map(Self)
    }
}

/// Parses an ID from a path. An invalid ID is not found.
pub(crate) fn id<T: FromStr>(kind: &str, text: &str) -> Result<T, Problem> {
    text.trim().parse().map_err(|_| Problem::not_found(kind, text))
}

/// Parses an ID from a query parameter.
pub(crate) fn id_field<T: FromStr>(field: &str, text: &str) -> Result<T, Problem> {
    text.trim().parse().map_err(|_| Problem::field(field, "is not an ID; IDs have 20 characters"))
}
