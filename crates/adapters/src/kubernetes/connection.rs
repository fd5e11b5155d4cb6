//! Connections to the API servers of kubeconfigs, at permitted addresses only.
//!
//! The same stack as that of [`Client::try_from`], with a checked resolver and without retries.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use base::Resolver;
use base::resolver::Unresolved;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config, Error};
use tower::{BoxError, Service, ServiceBuilder};

/// The client of a configuration whose server is not an address, or a permitted one.
pub(super) fn client(config: &Config, resolver: &Resolver) -> Result<Client, Error> {
    let mut http = HttpConnector::new_with_resolver(Checked(resolver.clone()));
    http.enforce_http(false);
    let https = config.rustls_https_connector_with_connector(http)?;
    let mut connector = TimeoutConnector::new(https);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http: hyper_util::client::legacy::Client<_, Body> =
        hyper_util::client::legacy::Builder::new(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace.clone()))
}

/// The resolver of a connector.
#[derive(Clone)]
struct Checked(Resolver);

impl Service<Name> for Checked {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Unresolved;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Unresolved>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unresolved>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.0.clone();
        Box::pin(async move { Ok(resolver.resolve(name.as_str()).await?.into_iter()) })
    }
}
