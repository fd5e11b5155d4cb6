//! What the API asks of foreign systems: who a token belongs to, and the metrics of instances.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use adapters::guard::{self, Guard};
use adapters::oidc::{self, Verifier};
use adapters::prometheus::{self, Prometheus};
use anyhow::Context;
use api::SignIn;
use api::metrics_backend::{Backend, MetricsBackend, Series, Wanted};
use api::oidc::{Claims, Denied, Oidc, Verify};
use base::{OsEntropy, entropy};
use futures_util::future::BoxFuture;
use port::{Fault, Watched};
use store::Db;

use crate::settings::outside;

/// Whose tokens are taken, if somebody's are.
pub(super) fn tokens(set: Option<&outside::Oidc>, db: &Db) -> anyhow::Result<Oidc> {
    let Some(set) = set else { return Ok(Oidc::default()) };
    let audience = set.audience.clone();
    let options = oidc::Options { audience, ..oidc::Options::new(&set.issuer) };
    let verifier = Verifier::new(options).context("--oidc-issuer")?;
    Ok(Oidc(Some(Arc::new(Tokens { verifier, db: db.clone() }))))
}

/// Where clients of instances sign in, if that is known.
pub(super) fn sign_in(set: Option<&outside::Sso>) -> Option<SignIn> {
    let Some(outside::Sso::Keycloak { url, realm, .. }) = set else { return None };
    let issuer = format!("{url}/realms/{realm}");
    Some(SignIn {
        token_url: format!("{issuer}/protocol/openid-connect/token"),
        jwks_url: format!("{issuer}/protocol/openid-connect/certs"),
        issuer,
    })
}

struct Tokens {
    verifier: Verifier,
    db: Db,
}

impl Verify for Tokens {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Claims, Denied>> {
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

fn denied(denied: oidc::Denied) -> Denied {
    match denied {
        oidc::Denied::Unavailable(reason) => Denied::Unavailable(reason),
        oidc::Denied::Invalid(reason) | oidc::Denied::Foreign(reason) => Denied::Invalid(reason),
    }
}

/// The Prometheus that knows the metrics of instances, if one is set.
pub(super) fn metrics(
    url: Option<&str>,
    db: &Db,
    watched: &mut Vec<Arc<dyn Watched>>,
) -> anyhow::Result<MetricsBackend> {
    let Some(url) = url else { return Ok(MetricsBackend::default()) };
    let options = prometheus::Options {
        url: url.to_owned(),
        token: None,
        timeout: Duration::from_secs(10),
        most_bytes: 16 << 20,
    };
    let prometheus = Prometheus::new(options).context("--metrics-url")?;
    // Somebody waits for the answer: no second try.
    let once = guard::Options { attempts: 1, ..guard::Options::default() };
    let guard = Arc::new(Guard::new("Prometheus", once, || entropy::noise(&OsEntropy)));
    watched.push(guard.clone());
    Ok(MetricsBackend(Some(Arc::new(Metrics { prometheus, guard, db: db.clone() }))))
}

struct Metrics {
    prometheus: Prometheus,
    guard: Arc<Guard>,
    db: Db,
}

impl Backend for Metrics {
    fn series<'a>(&'a self, wanted: &'a Wanted) -> BoxFuture<'a, Result<Vec<Series>, String>> {
        Box::pin(async move {
            let found = self.guard.call(|| self.ask(wanted)).await;
            found.map_err(|fault| fault.to_string())
        })
    }
}

impl Metrics {
    async fn ask(&self, wanted: &Wanted) -> Result<Vec<Series>, Fault> {
        let expression = selector(wanted);
        let Some(range) = &wanted.range else {
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

/// The series of one namespace, as Prometheus is asked for them.
fn selector(wanted: &Wanted) -> String {
    let mut selector = format!("{{namespace={}", quoted(&wanted.namespace));
    if !wanted.names.is_empty() {
        // Names are plain words; what is not one can't be a name and matches nothing.
        let plain = |name: &&String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let names: Vec<&str> = wanted.names.iter().filter(plain).map(String::as_str).collect();
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
    fn a_selector_says_nothing_that_it_should_not() {
        let wanted = |names: &[&str]| Wanted {
            namespace: "kafka-1\"} or {a=\"".into(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            range: None,
        };
        let all = selector(&wanted(&[]));
        assert_eq!(all, r#"{namespace="kafka-1\"} or {a=\""}"#);
        let some = selector(&wanted(&["up", ".*", "a_b", "x\"y"]));
        assert!(some.ends_with(r#",__name__=~"up|a_b"}"#), "{some}");
    }
}
