//! Adapts external systems to the API: OIDC token verification and instance metrics.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use adapters::guard::{self, Guard};
use adapters::oidc::{self, Verifier};
use adapters::prometheus::{self, Prometheus};
use anyhow::Context;
use api::SsoEndpoints;
use api::metrics_backend::{Backend, MetricsBackend, Series, SeriesQuery};
use api::oidc::{Claims, Oidc, TokenRejection, Verify};
use base::{OsEntropy, entropy};
use futures_util::future::BoxFuture;
use port::{Fault, Monitored};
use store::Db;

use crate::settings::external;

/// Builds the verifier of OIDC tokens, if an issuer is configured.
pub(super) fn oidc(settings: &external::Settings, db: &Db) -> anyhow::Result<Oidc> {
    let Some(set) = &settings.oidc else { return Ok(Oidc::default()) };
    let (audience, addresses) = (Some(set.audience.clone()), settings.addresses.clone());
    let options = oidc::Options { audience, addresses, ..oidc::Options::new(&set.issuer) };
    let verifier = Verifier::new(options).context("--oidc-issuer")?;
    Ok(Oidc(Some(Arc::new(TokenVerifier { verifier, db: db.clone() }))))
}

/// OIDC endpoints for SSO clients of instances, if Keycloak is configured.
pub(super) fn sso_endpoints(set: Option<&external::Sso>) -> Option<SsoEndpoints> {
    let Some(external::Sso::Keycloak { url, realm, .. }) = set else { return None };
    let issuer = format!("{url}/realms/{realm}");
    Some(SsoEndpoints {
        token_url: format!("{issuer}/protocol/openid-connect/token"),
        jwks_url: format!("{issuer}/protocol/openid-connect/certs"),
        issuer,
    })
}

struct TokenVerifier {
    verifier: Verifier,
    db: Db,
}

impl Verify for TokenVerifier {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Claims, TokenRejection>> {
        Box::pin(async move {
            let claims = self.verifier.verify(token, self.db.now()).await.map_err(denied)?;
            Ok(Claims {
                issuer: claims.issuer,
                subject: claims.subject,
                username: claims.username,
                name: claims.name,
                organization: claims.organization,
                account: claims.account_id,
                is_org_admin: claims.is_org_admin,
                client_id: claims.client_id,
                roles: claims.roles,
                expires_at: claims.expires_at,
            })
        })
    }
}

fn denied(denied: oidc::Denied) -> TokenRejection {
    match denied {
        oidc::Denied::Unavailable(reason) => TokenRejection::Unavailable(reason),
        oidc::Denied::Invalid(reason) | oidc::Denied::UnknownIssuer(reason) => {
            TokenRejection::Invalid(reason)
        }
    }
}

/// Builds the Prometheus backend for instance metrics, if configured.
pub(super) fn metrics(
    url: Option<&str>,
    db: &Db,
    watched: &mut Vec<Arc<dyn Monitored>>,
) -> anyhow::Result<MetricsBackend> {
    let Some(url) = url else { return Ok(MetricsBackend::default()) };
    let options = prometheus::Options {
        url: url.to_owned(),
        token: None,
        timeout: Duration::from_secs(10),
        max_response_bytes: 16 << 20,
    };
    let prometheus = Prometheus::new(options).context("--metrics-url")?;
    // No retries: an API client is waiting for the response.
    let once = guard::Options { attempts: 1, ..guard::Options::default() };
    let guard = Arc::new(Guard::new("Prometheus", once, || entropy::random_u64(&OsEntropy)));
    watched.push(guard.clone());
    Ok(MetricsBackend(Some(Arc::new(Metrics { prometheus, guard, db: db.clone() }))))
}

struct Metrics {
    prometheus: Prometheus,
    guard: Arc<Guard>,
    db: Db,
}

impl Backend for Metrics {
    fn series<'a>(
        &'a self,
        request: &'a SeriesQuery,
    ) -> BoxFuture<'a, Result<Vec<Series>, String>> {
        Box::pin(async move {
            let series = self.guard.call(|| self.query(request)).await;
            series.map_err(|fault| fault.to_string())
        })
    }
}

impl Metrics {
    async fn query(&self, request: &SeriesQuery) -> Result<Vec<Series>, Fault> {
        let expression = selector(request);
        let Some(range) = &request.range else {
            let samples = self.prometheus.query(&expression, self.db.now()).await?;
            let series = samples.into_iter().map(|sample| Series {
                labels: sample.labels,
                values: vec![(sample.point.at, sample.point.value)],
            });
            return Ok(series.collect());
        };
        let step = range.step.max(Duration::from_secs(1));
        let found = self.prometheus.query_range(&expression, range.start, range.end, step).await?;
        let series = found.into_iter().map(|series| Series {
            labels: series.labels,
            values: series.points.iter().map(|point| (point.at, point.value)).collect(),
        });
        Ok(series.collect())
    }
}

/// PromQL selector for the series of one namespace.
fn selector(request: &SeriesQuery) -> String {
    let mut selector = format!("{{namespace={}", quoted(&request.namespace));
    if !request.names.is_empty() {
        // Drops invalid metric names: they match nothing and could inject PromQL.
        let plain = |name: &&String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let names: Vec<&str> = request.names.iter().filter(plain).map(String::as_str).collect();
        let _ = write!(selector, ",__name__=~{}", quoted(&names.join("|")));
    }
    selector.push('}');
    selector
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selector_escapes_untrusted_names() {
        let request = |names: &[&str]| SeriesQuery {
            namespace: "kafka-1\"} or {a=\"".into(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            range: None,
        };
        let all = selector(&request(&[]));
        assert_eq!(all, r#"{namespace="kafka-1\"} or {a=\""}"#);
        let some = selector(&request(&["up", ".*", "a_b", "x\"y"]));
        assert!(some.ends_with(r#",__name__=~"up|a_b"}"#), "{some}");
    }
}
