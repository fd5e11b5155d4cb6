//! Conventions of all fleet endpoints: operation ID, query parameters and paging.

use std::time::Duration;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use model::kind::Kind;
use serde::Serialize;
use tower_http::cors::{Any, CorsLayer};
use utoipa::{IntoParams, ToSchema};

use super::Error;
use crate::Problem;

const OPERATION_ID: HeaderName = HeaderName::from_static("x-operation-id");
/// Maximum page size; replaces larger values.
const MAX_SIZE: i64 = 65_500;

/// Allows requests from other origins.
pub(super) fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::DELETE, Method::GET, Method::PATCH, Method::POST])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE])
        .max_age(Duration::from_mins(10))
        .vary(Vec::<HeaderName>::new())
}

/// Renders an error, if the response is one, and sets the common headers.
pub(crate) fn finish(response: &mut Response, kind: &Kind, operation_id: &str) {
    let id = HeaderValue::from_str(operation_id).expect("an id is made of letters and digits");
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Authorization"));
    headers.insert(OPERATION_ID, id);
    if let Some(error) = error(response) {
        write_error(response, kind, &error, operation_id);
    }
}

/// Returns the error of a response, if any.
fn error(response: &mut Response) -> Option<Error> {
    let extensions = response.extensions_mut();
    let fleet_error = extensions.remove::<Error>();
    let error = fleet_error.or_else(|| extensions.remove::<Problem>().map(Error::from));
    let is_written = response.headers().get(header::CONTENT_TYPE).is_some_and(|v| v == JSON);
    let status = response.status();
    error.or_else(|| (status.as_u16() >= 400 && !is_written).then(|| Error::from_status(status)))
}

const JSON: &str = "application/json";

fn write_error(response: &mut Response, kind: &Kind, error: &Error, operation_id: &str) {
    let mut operation = Some(operation_id.to_owned());
    if error.is_unauthenticated() {
        // Unauthenticated callers get no operation ID: no operation was started.
        operation = None;
        response.headers_mut().remove(&OPERATION_ID);
        let realm = format!("Bearer realm=\"{}/v1\"", kind.error_prefix);
        let realm = HeaderValue::from_str(&realm).expect("prefixes are plain text");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, realm);
    }
    let body = serde_json::to_vec(&error.envelope(kind, operation)).expect("plain data");
    *response.status_mut() = error.status();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response.headers_mut().remove(header::CONTENT_LENGTH);
    *response.body_mut() = body.into();
}

/// Query parameters. The first value of a repeated parameter counts; empty values are ignored.
pub(crate) struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let unreadable = |reason: &str| Error::unreadable(reason).into_response();
        let Query(all) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|_| unreadable("The query string is malformed."))?;
        let is_bad = |(name, value): &(String, String)| {
            name.chars().chain(value.chars()).any(char::is_control)
        };
        if all.iter().any(is_bad) {
            return Err(unreadable("The query must not contain control characters."));
        }
        Ok(Self(all))
    }
}

impl Params {
    /// Returns the value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        found.filter(|value| !value.is_empty())
    }

    /// Returns all values of a repeatable parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(key, _)| key == name);
        named.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Fails unless `async` is exactly `true`: the caller must accept asynchronous processing.
    pub(crate) fn must_be_async(&self) -> Result<(), Error> {
        if self.get("async") == Some("true") { Ok(()) } else { Err(Error::new(103, "")) }
    }

    /// Returns the requested page.
    pub(crate) fn page(&self) -> Result<Page, Error> {
        let page = self.number("page", 1)?;
        let size = self.number("size", 100)?;
        if page < 0 {
            return Err(Error::unreadable("page must not be negative; the first page is 1."));
        }
        if size == 0 {
            return Err(Error::unreadable("size must not be 0."));
        }
        Ok(Page { page, size: if (1..=MAX_SIZE).contains(&size) { size } else { MAX_SIZE } })
    }

    fn number(&self, name: &str, default: i64) -> Result<i64, Error> {
        let Some(text) = self.get(name) else { return Ok(default) };
        text.parse().map_err(|_| Error::unreadable(format!("{name} must be a whole number.")))
    }
}

/// Paging parameters.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `Params` reads it")]
pub(crate) struct Paging {
    /// Page number, starting at 1.
    #[param(minimum = 0, default = 1)]
    page: Option<i64>,
    /// Page size; negative or too large values are replaced by 65500.
    #[param(default = 100)]
    size: Option<i64>,
}

/// Marker of asynchronous requests.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query; `Params` reads it")]
pub(crate) struct Async {
    /// Must be `true`: the operation is asynchronous.
    r#async: bool,
}

/// Requested page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    page: i64,
    size: i64,
}

impl Page {
    /// Returns the page size and the number of items before this page.
    pub(crate) fn bounds(self, total: i64) -> (i64, i64) {
        let size = self.size.min(total);
        (size, (self.page - 1).max(0).saturating_mul(size))
    }
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct List<T> {
    /// Kind of the list.
    kind: String,
    /// Page number, as requested.
    page: i64,
    /// Page size, capped by the total.
    size: i64,
    /// Total number of items.
    total: i64,
    /// The items.
    items: Vec<T>,
}

impl<T> List<T> {
    /// Creates a page of a list with `total` items.
    pub(crate) fn new(kind: &str, items: Vec<T>, page: Page, total: i64) -> Self {
        let (size, _) = page.bounds(total);
        Self { kind: kind.to_owned(), page: page.page, size, total, items }
    }

    /// Creates a page with all items.
    pub(crate) fn all(kind: &str, items: Vec<T>) -> Self {
        let total = count(&items);
        Self { kind: kind.to_owned(), page: 1, size: total, total, items }
    }

    /// Creates a page from all items; the last page, and any beyond, is the whole list.
    pub(super) fn part(kind: &str, items: Vec<T>, page: &Page) -> Self {
        let total = count(&items);
        let start = (page.page - 1).max(0).saturating_mul(page.size);
        let end = start.saturating_add(page.size);
        let is_inside = |at: &usize| (start..end).contains(&i64::try_from(*at).unwrap_or(i64::MAX));
        let items: Vec<T> = if end < total {
            let numbered = items.into_iter().enumerate().filter(|(at, _)| is_inside(at));
            numbered.map(|(_, item)| item).collect()
        } else {
            items
        };
        Self { kind: kind.to_owned(), page: page.page, size: count(&items), total, items }
    }
}

fn count<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}

/// Origin of this server as the caller addresses it.
pub(crate) struct Origin(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Origin {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let scheme = text(&parts.headers, "x-forwarded-proto").filter(|scheme| *scheme == "https");
        let host = text(&parts.headers, "host").unwrap_or("localhost");
        Ok(Self(format!("{}://{host}", scheme.unwrap_or("http"))))
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str) -> Option<Page> {
        let uri = format!("/x?{query}").parse().expect("a URI");
        let Query(all) = Query::try_from_uri(&uri).expect("a query");
        Params(all).page().ok()
    }

    #[test]
    fn page_parameters_are_parsed_with_defaults() {
        for (query, expected) in [
            ("", Some((1, 100))),
            ("page=&size=", Some((1, 100))),
            ("page=0&size=5", Some((0, 5))),
            ("page=2&size=-1", Some((2, 65_500))),
            ("size=65501", Some((1, 65_500))),
            ("page=3&page=x", Some((3, 100))),
            ("page=-1", None),
            ("page=x", None),
            ("page=1.5", None),
            ("size=0", None),
            ("size=x", None),
            ("page=99999999999999999999", None),
        ] {
            let expected = expected.map(|(page, size)| Page { page, size });
            assert_eq!(page(query), expected, "{query}");
        }
    }

    #[test]
    fn page_size_is_capped_by_the_total_and_determines_the_offset() {
        for (page, size, total, expected) in [
            (1, 100, 3, (3, 0)),
            (2, 100, 3, (3, 3)),
            (2, 2, 3, (2, 2)),
            (0, 2, 3, (2, 0)),
            (5, 2, 0, (0, 0)),
            (i64::MAX, 65_500, i64::MAX, (65_500, i64::MAX)),
        ] {
            assert_eq!(Page { page, size }.bounds(total), expected, "{page} {size} {total}");
        }
    }

    #[test]
    fn last_page_of_a_complete_list_is_the_whole_list() {
        let part = |page, size| {
            let part = List::part("L", (1..=5).collect(), &Page { page, size });
            (part.items, part.size, part.total)
        };
        assert_eq!(part(1, 2), (vec![1, 2], 2, 5));
        assert_eq!(part(2, 2), (vec![3, 4], 2, 5));
        assert_eq!(part(3, 2), (vec![1, 2, 3, 4, 5], 5, 5));
        assert_eq!(part(1, 5), (vec![1, 2, 3, 4, 5], 5, 5));
    }
}
