//! Requests that a page of another site makes a browser send (CSRF).
//!
//! A browser says where a request comes from (`Sec-Fetch-Site`, `Origin`) and asks first before it
//! sends a method, header or content type that a form cannot. Only credentials that the browser adds
//! by itself are at risk: Basic. A bearer token is always added by a program.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, header};

use crate::Problem;
use crate::caller::authorization;

/// Any value of this header proves that a program sent the request.
const PROOF: &str = "x-requested-with";
/// Content types that a form of another site can send without asking.
const FORM_TYPES: [&str; 4] =
    ["", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded"];

/// Rejects a state-changing request of another site. With `allow_bearer`, a request with a bearer
/// token may come from any site: the API answers other origins.
pub(super) fn check_origin(request: &Request, allow_bearer: bool) -> Result<(), Problem> {
    let scheme = authorization(request.headers()).map(|(scheme, _)| scheme);
    let is_bearer = scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"));
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if is_safe || (allow_bearer && is_bearer) || is_same_origin(request) {
        return Ok(());
    }
    Err(Problem::forbidden(
        "The request comes from a page of another site; only pages of this server may change anything.",
    ))
}

/// Whether a browser reports a page of this server, or nothing.
fn is_same_origin(request: &Request) -> bool {
    let headers = request.headers();
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(site) = text("sec-fetch-site") {
        // Another port of this host is another origin: it may belong to a tenant's container.
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text("origin") else { return true };
    let from = origin.split_once("://").map(|(_, authority)| authority);
    let own = request.uri().authority().map(Authority::as_str).or_else(|| text("host"));
    from.zip(own).is_some_and(|(from, own)| from.eq_ignore_ascii_case(own))
}

/// Rejects Basic credentials that a browser may have added by itself to a form of another site.
pub(crate) fn check_ambient(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let is_form = FORM_TYPES.iter().any(|form| kind.eq_ignore_ascii_case(form));
    if *method != Method::POST || !is_form || headers.contains_key(PROOF) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "A POST with Basic credentials needs the header Content-Type: application/json, or any \
         X-Requested-With header; or log in and send a bearer token.",
    ))
}

/// Whether a browser sent the request. It would ask its user for a password on a Basic challenge,
/// and add it to every later request.
pub(super) fn is_browser(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    headers.contains_key("sec-fetch-mode")
        || headers.contains_key(header::ORIGIN)
        || agent.is_some_and(|agent| agent.starts_with("Mozilla/"))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(method: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().method(method).uri("/api/v1/clusters");
        for (name, value) in headers.iter().chain(&[("host", "127.0.0.1:8001")]) {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn only_own_pages_change_anything() {
        let own = ("origin", "http://127.0.0.1:8001");
        for (headers, is_allowed) in [
            (&[][..], true),
            (&[own], true),
            (&[own, ("sec-fetch-site", "same-origin")], true),
            // A proxy replaced the host.
            (&[("origin", "https://paddock.example"), ("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[own, ("sec-fetch-site", "same-site")], false),
            (&[("origin", "http://127.0.0.1:9999")], false),
            (&[("origin", "http://evil.example")], false),
            (&[("origin", "null")], false),
        ] {
            for method in ["POST", "PUT", "PATCH", "DELETE"] {
                let outcome = check_origin(&request(method, headers), false);
                assert_eq!(outcome.is_ok(), is_allowed, "{method} {headers:?}");
            }
            assert!(check_origin(&request("GET", headers), false).is_ok(), "{headers:?}");
        }
    }

    #[test]
    fn bearer_token_is_accepted_from_any_site_where_the_api_allows_other_origins() {
        let site = ("sec-fetch-site", "cross-site");
        for (value, is_allowed) in [("Bearer t0ken", true), ("Basic YTpi", false)] {
            let request = request("POST", &[site, ("authorization", value)]);
            assert_eq!(check_origin(&request, true).is_ok(), is_allowed, "{value}");
            assert!(check_origin(&request, false).is_err(), "{value}");
        }
    }

    #[test]
    fn form_with_basic_credentials_needs_a_proof_of_its_program() {
        for (kind, is_allowed) in [
            (None, false),
            (Some("text/plain;charset=UTF-8"), false),
            (Some("application/x-www-form-urlencoded"), false),
            (Some("application/json"), true),
            (Some("application/yaml"), true),
        ] {
            let headers: Vec<_> = kind.iter().map(|kind| ("content-type", *kind)).collect();
            let plain = request("POST", &headers);
            assert_eq!(
                check_ambient(plain.method(), plain.headers()).is_ok(),
                is_allowed,
                "{kind:?}"
            );
            let proof = [&headers[..], &[("x-requested-with", "curl")]].concat();
            let proof = request("POST", &proof);
            assert!(check_ambient(proof.method(), proof.headers()).is_ok(), "{kind:?}");
            let patch = request("PATCH", &headers);
            assert!(check_ambient(patch.method(), patch.headers()).is_ok(), "{kind:?}");
        }
    }
}
