//! HTTP client that checks every response against the OpenAPI documents.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::contract;
use crate::leaks::{Leaks, Tenant};

/// A client of the server.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
    /// Tenant whose answers are checked for data of others.
    tenant: Option<Tenant>,
    pub(crate) leaks: Arc<Leaks>,
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The call, for messages.
    pub call: String,
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, or null if it was empty or not JSON.
    pub json: Value,
}

impl Client {
    /// An unauthenticated client.
    pub fn new(base: &str) -> Self {
        // Closes idle connections before the server does, so that no request hits a closed one.
        let http = reqwest::Client::builder()
            .timeout(Duration::from_mins(2))
            .pool_idle_timeout(Duration::from_secs(4))
            .no_proxy()
            .build();
        let (base, leaks) = (base.to_owned(), Arc::default());
        Self { http: http.expect("a client"), base, token: None, tenant: None, leaks }
    }

    /// The same client with a token.
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The same client without a token.
    pub fn signed_out(&self) -> Self {
        Self { token: None, tenant: None, ..self.clone() }
    }

    /// The same client, whose answers are checked for data of other tenants.
    pub(crate) fn of_tenant(self, tenant: Option<Tenant>) -> Self {
        Self { tenant, ..self }
    }

    /// The same client with a role of the platform, which sees the data of all tenants.
    pub fn of_platform(self) -> Self {
        self.of_tenant(None)
    }

    /// Registers ids and secrets of the client's tenant, which no other tenant may see.
    pub fn owns<'a>(&self, texts: impl IntoIterator<Item = &'a String>) {
        let tenant = self.tenant.as_ref().expect("the client of a tenant");
        texts.into_iter().for_each(|text| self.leaks.add_unique(tenant, text));
    }

    /// The same client, whose answers are checked together with those of another.
    pub(crate) fn checked_with(self, other: &Self) -> Self {
        Self { leaks: other.leaks.clone(), ..self }
    }

    /// The tenant, if the answers are checked.
    pub(crate) fn tenant(&self) -> Option<&Tenant> {
        self.tenant.as_ref()
    }

    /// Records what the tenant received, for the leak check.
    pub fn received(&self, call: &str, request: &str, status: u16, body: &str) {
        // The OpenAPI document is the same for everyone; its examples have names of users.
        let is_document = call.ends_with("/openapi");
        if let Some(tenant) = self.tenant.as_ref().filter(|_| !is_document) {
            self.leaks.record(tenant, call, request, status, body);
        }
    }

    /// The same client for another address, as after a restart.
    pub fn at(&self, base: &str) -> Self {
        Self { base: base.to_owned(), ..self.clone() }
    }

    /// The token, if there is one.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// URL of the server.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// A request to be modified and sent with [`Client::send`].
    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request and checks the response.
    pub async fn send(&self, request: RequestBuilder) -> Answer {
        let request = request.build().expect("a request");
        let (method, path) = (request.method().to_string(), request.url().path().to_owned());
        let call = format!("{method} {path}");
        let sent = request.body().and_then(|body| body.as_bytes()).unwrap_or_default();
        let sent = format!("{} {}", request.url(), String::from_utf8_lossy(sent));
        let response = self.http.execute(request).await.unwrap_or_else(|e| panic!("{call}: {e:?}"));
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.unwrap_or_else(|e| panic!("{call}: {e:?}"));
        let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        contract::check(&method, &path, status, kind, &body);
        self.received(&call, &sent, status, &String::from_utf8_lossy(&body));
        let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Answer { call, status, headers, json }
    }

    /// Sends a request with a JSON body.
    pub async fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(self.request(method, path).json(body)).await
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request("GET", path)).await
    }

    /// POST with a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, &body).await
    }

    /// PUT with a JSON body.
    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.call("PUT", path, &body).await
    }

    /// PATCH with a JSON body.
    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.call("PATCH", path, &body).await
    }

    /// DELETE without a body.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request("DELETE", path)).await
    }
}

impl Answer {
    /// The body, if the status is this one.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {:#}", self.call, self.json);
        self.json
    }

    /// A text field of the body, if the status is a success.
    #[track_caller]
    pub fn text(&self, field: &str) -> String {
        assert!(self.status < 300, "{}: {:#}", self.call, self.json);
        let text = self.json[field].as_str();
        text.unwrap_or_else(|| panic!("{}: no {field} in {:#}", self.call, self.json)).to_owned()
    }
}
