//! Sends the SDK's requests with Paddock's HTTP client: one TLS set-up for all adapters.

use aws_sdk_route53::config::http::{HttpRequest, HttpResponse};
use aws_sdk_route53::error::{BoxError, ConnectorError};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use reqwest::{Client, Method};

use crate::http;

/// The maximum size of a response.
const MOST_BYTES: usize = 4 << 20;

/// The client as the SDK expects it.
pub(super) fn shared(client: Client) -> SharedHttpClient {
    let connector = SharedHttpConnector::new(Connector(client));
    http_client_fn(move |_, _| connector.clone())
}

#[derive(Debug)]
struct Connector(Client);

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let client = self.0.clone();
        HttpConnectorFuture::new(async move {
            let request = translate(&client, &request).map_err(ConnectorError::user)?;
            let response = client.execute(request).await;
            convert(response.map_err(lost)?).await
        })
    }
}

fn translate(client: &Client, request: &HttpRequest) -> Result<reqwest::Request, BoxError> {
    let method = Method::from_bytes(request.method().as_bytes())?;
    let mut built = client.request(method, request.uri());
    for (name, value) in request.headers() {
        built = built.header(name, value);
    }
    let body = request.body().bytes().ok_or("streaming bodies are not supported")?;
    Ok(built.body(body.to_vec()).build()?)
}

fn lost(error: reqwest::Error) -> ConnectorError {
    if error.is_timeout() {
        ConnectorError::timeout(error.into())
    } else {
        ConnectorError::io(error.into())
    }
}

async fn convert(response: reqwest::Response) -> Result<HttpResponse, ConnectorError> {
    read(response).await.map_err(|error| ConnectorError::other(error, None))
}

async fn read(response: reqwest::Response) -> Result<HttpResponse, BoxError> {
    let status = StatusCode::try_from(response.status().as_u16())?;
    let headers = response.headers().clone();
    let body = http::body(response, MOST_BYTES).await?;
    let mut converted = HttpResponse::new(status, SdkBody::from(body));
    for (name, value) in &headers {
        let value = value.to_str()?.to_owned();
        converted.headers_mut().try_append(name.as_str().to_owned(), value)?;
    }
    Ok(converted)
}
