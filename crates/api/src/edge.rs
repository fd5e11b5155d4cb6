//! The HTTP edge: which requests, connections and streams are admitted before a handler runs.
//!
//! Every request passes [`admit`]: host, origin, client address, rate. Authenticated ones pass
//! [`Edge::admit_user`] as well. Health checks and metrics have no rate and keep connections of
//! their own.

pub(crate) mod browser;
pub(crate) mod host;
pub(crate) mod limit;
pub(crate) mod proxy;
pub(crate) mod settings;
pub(crate) mod stream;
pub(crate) mod write_timeout;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Once;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::user::{Access, User};
use model::{OrganizationId, Quantity, UserId};

use crate::{App, Problem, fleet};
use limit::{Buckets, Slots, address_key};
use settings::EdgeSettings;

/// Time after which a client may open a stream or connection again.
const RETRY_SECS: u64 = 5;
/// Sign-ups per second and at once from one address: each costs a password hash.
const SIGN_UP_RATE: f64 = 10.0 / 60.0;
const SIGN_UP_BURST: f64 = 20.0;
/// Number of requests at once, in seconds of the rate.
const BURST_SECS: f64 = 4.0;

/// Client address of a request, behind trusted proxies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

/// Connection that is accepted only for operational endpoints, because all others are in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reserved;

/// Current use of the limits.
pub(crate) struct Edge {
    limit_loopback: bool,
    by_address: Buckets<IpAddr>,
    by_user: Buckets<UserId>,
    by_organization: Buckets<OrganizationId>,
    sign_ups: Buckets<IpAddr>,
    address_streams: Slots<IpAddr>,
    user_streams: Slots<UserId>,
    organization_streams: Slots<OrganizationId>,
}

impl Edge {
    pub(crate) fn new(settings: &EdgeSettings) -> Self {
        let rate = |per_second: u32| {
            let rate = f64::from(per_second);
            (rate, rate * BURST_SECS)
        };
        let requests = &settings.requests_per_second;
        let ((address, address_burst), (user, user_burst)) =
            (rate(requests.address), rate(requests.user));
        let (organization, organization_burst) = rate(requests.organization);
        Self {
            limit_loopback: settings.limit_loopback,
            by_address: Buckets::new(address, address_burst),
            by_user: Buckets::new(user, user_burst),
            by_organization: Buckets::new(organization, organization_burst),
            sign_ups: Buckets::new(SIGN_UP_RATE, SIGN_UP_BURST),
            address_streams: Slots::default(),
            user_streams: Slots::default(),
            organization_streams: Slots::default(),
        }
    }

    /// Whether limits per address and of requests apply. Not to this machine: load generators, and
    /// proxies that are not declared, have one address for all their users.
    fn is_limited(&self, from: IpAddr) -> bool {
        self.limit_loopback || !from.is_loopback()
    }

    /// Counts a request from an address.
    fn admit_address(&self, from: IpAddr) -> Result<(), Problem> {
        if !self.is_limited(from) {
            return Ok(());
        }
        let taken = self.by_address.take(address_key(from), base::monotonic());
        taken.map_err(|wait| too_many("requests from this address", wait))
    }

    /// Counts a request of an authenticated user. The administrator is not limited.
    pub(crate) fn admit_user(&self, user: &User, from: IpAddr) -> Result<(), Problem> {
        if user.access == Access::Platform || !self.is_limited(from) {
            return Ok(());
        }
        let now = base::monotonic();
        let taken = self.by_user.take(user.id, now);
        taken.map_err(|wait| too_many("requests of this user", wait))?;
        let taken = self.by_organization.take(user.organization_id, now);
        taken.map_err(|wait| too_many("requests of this organization", wait))
    }

    /// Number of open streams of an organization on this server.
    pub(crate) fn streams_of(&self, organization: OrganizationId) -> Quantity {
        let open = self.organization_streams.used(&organization);
        Quantity::whole(i64::try_from(open).unwrap_or(0))
    }

    /// Counts a new account from an address.
    pub(crate) fn admit_sign_up(&self, from: IpAddr) -> Result<(), Problem> {
        if !self.is_limited(from) {
            return Ok(());
        }
        let taken = self.sign_ups.take(address_key(from), base::monotonic());
        taken.map_err(|wait| too_many("new accounts from this address", wait))
    }
}

fn too_many(what: &str, wait: Duration) -> Problem {
    let secs = wait.as_secs() + 1;
    Problem::too_many(format!("Too many {what}; try again in {secs} s."), secs)
}

/// Whether the endpoint is for operators and orchestrators, who need it under load.
pub(crate) fn is_operational(path: &str) -> bool {
    path == "/metrics" || path.starts_with("/api/v1/self/")
}

/// Address of the client of a request.
pub(crate) fn address(extensions: &axum::http::Extensions) -> IpAddr {
    extensions.get::<ClientAddress>().map_or_else(|| peer(extensions), |client| client.0)
}

fn peer(extensions: &axum::http::Extensions) -> IpAddr {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(address)| address.ip())
}

/// Middleware that admits or rejects a request and sets the headers of every response.
pub(crate) async fn admit(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let is_browser = browser::is_browser(request.headers());
    let mut response = match check(&app, &mut request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    set_headers(&mut response, is_browser);
    response
}

fn check(app: &App, request: &mut Request) -> Result<(), Problem> {
    let settings = &app.settings.edge;
    settings.hosts.check(request)?;
    let path = request.uri().path();
    // The fleet API answers other origins, whose programs send a bearer token.
    browser::check_origin(request, fleet::kind_of_path(app, path).is_some())?;
    let is_operational = is_operational(path);
    if !is_operational && request.extensions().get::<Reserved>().is_some() {
        return Err(Problem::unavailable("All connections are in use; try again."));
    }
    let peer = peer(request.extensions());
    warn_of_undeclared_proxy(peer, request, settings);
    let client = proxy::client(peer, request.headers(), &settings.trusted_proxies)?;
    request.extensions_mut().insert(ClientAddress(client));
    if is_operational { Ok(()) } else { app.edge.admit_address(client) }
}

/// Logs once that a proxy is not declared: all its users share one address.
fn warn_of_undeclared_proxy(peer: IpAddr, request: &Request, settings: &EdgeSettings) {
    static WARNED: Once = Once::new();
    let is_forwarded = request.headers().contains_key("x-forwarded-for");
    if is_forwarded && peer.is_loopback() && settings.trusted_proxies.is_empty() {
        WARNED.call_once(|| {
            tracing::warn!(
                %peer,
                "ignoring X-Forwarded-For: declare the proxy with --trusted-proxy, or its users share limits"
            );
        });
    }
}

fn set_headers(response: &mut Response, is_browser: bool) {
    if is_browser && response.status() == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer realm=\"paddock\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
    }
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Pages of the console have their own rules.
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}
