//! HTTP calls of templates: the executor of a `command` whose `url` begins with `http`.
//!
//! A call may take long, so it continues in the background and is polled. Every attempt of one
//! change sends the same `Idempotency-Key`, also from another server. Each host has a guard per
//! organization.

mod running;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::resource::Difference;
use model::template::{self, configuration};
use model::{Invalid, OrganizationId};
use port::{Fault, Files, Observed, Operation, Outcome, PortFuture, Progress, Task};
use reqwest::{Method, StatusCode, Url};
use serde_json::{Map, Value, json};

use crate::call::message;
use crate::guard::Guards;
use crate::http;
use crate::web::{self, Web};
use running::{Call as RunningCall, Running};

/// The default timeout of a call, in seconds.
const DEFAULT_TIMEOUT_S: u32 = 600;
/// The maximum size of a response body in the outputs.
const MAX_BODY_BYTES: usize = 64 << 10;
/// How long to wait for a call before it continues in the background.
const FOREGROUND_WAIT: Duration = Duration::from_secs(2);

/// The executor of HTTP calls.
pub struct HttpCalls {
    web: Arc<Web>,
    guards: Guards,
    running: Running,
}

/// One HTTP call.
struct Call {
    method: Method,
    url: Url,
    body: Option<Value>,
    key: String,
    timeout: Duration,
}

impl HttpCalls {
    /// Prepares the clients; sends nothing.
    pub fn new(options: web::Options) -> Result<Self, Fault> {
        let web = Arc::new(Web::new(options)?);
        Ok(Self { web, guards: Guards::default(), running: Running::default() })
    }

    async fn call(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let call = Call::new(&task.with, &task.key).map_err(refused)?;
        let (shown, web) = (call.shown(), self.web.clone());
        let host = call.url.origin().ascii_serialization();
        let guard = self.guards.get(task.organization, host);
        let organization = task.organization;
        let work = async move { guard.once(call.send(&web, organization)).await };
        let RunningCall::Started(mut outcome) = self.running.start(task, move || work) else {
            return Ok(Progress::running("Queued: too many other calls are running."));
        };
        match tokio::time::timeout(FOREGROUND_WAIT, outcome.wait_for(Option::is_some)).await {
            Err(_) => Ok(Progress::running(format!("Waiting for the response of {shown}."))),
            Ok(ended) => {
                let ended = ended.ok().and_then(|outcome| outcome.clone());
                self.running.abort(task.id);
                let outcome = ended.unwrap_or_else(|| Err(lost(&shown)))?;
                task.log.append(format!("{shown} returned status {}.", outcome.outputs["status"]));
                Ok(Progress::Done(outcome))
            }
        }
    }
}

impl Call {
    fn new(with: &Map<String, Value>, key: &str) -> Result<Self, Invalid> {
        configuration::check(template::Executor::Command, with)?;
        let spec: configuration::Command = configuration::read(with)?;
        let url = web::parse_url(&spec.url).map_err(|why| Invalid::new("with.url", why))?;
        let method = spec.method.as_deref().unwrap_or("POST");
        let method =
            method.parse().map_err(|_| Invalid::new("with.method", "must be an HTTP method"))?;
        let timeout = Duration::from_secs(spec.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_S).into());
        Ok(Self { method, url, body: spec.body, key: key.to_owned(), timeout })
    }

    /// Its name in messages.
    fn shown(&self) -> String {
        format!("{} {}", self.method, web::shown(&self.url))
    }

    async fn send(
        &self,
        web: &Web,
        organization: Option<OrganizationId>,
    ) -> Result<Outcome, Fault> {
        let method = self.method.clone();
        let request = web.request(organization, method, &self.url, self.timeout).await?;
        let request = request.header("Idempotency-Key", &self.key);
        let request = match &self.body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().await.map_err(|error| self.unreachable(error))?;
        let status = answer.status();
        let read = http::start(answer, MAX_BODY_BYTES).await;
        let (body, is_whole) = read.map_err(|error| self.unreachable(error))?;
        if !status.is_success() {
            return Err(self.fault(status, &body));
        }
        let outputs = json!({"status": status.as_u16(), "body": content(&body, is_whole)});
        Ok(Outcome { outputs: outputs.as_object().cloned().unwrap_or_default(), link: None })
    }

    fn fault(&self, status: StatusCode, body: &[u8]) -> Fault {
        let line = message::summarize(body).map(|line| format!(" ({line})")).unwrap_or_default();
        let (shown, code) = (self.shown(), status.as_u16());
        match status {
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => {
                Fault::Unavailable(format!("{shown} failed: overloaded, status {code}{line}"))
            }
            _ if status.is_redirection() => Fault::Refused(format!(
                "{shown} redirects (status {code}), and Paddock follows no redirects. Use the \
                 target URL"
            )),
            _ if status.is_client_error() => {
                Fault::Refused(format!("{shown} was rejected: status {code}{line}"))
            }
            _ => Fault::Unavailable(format!("{shown} failed: status {code}{line}")),
        }
    }

    fn unreachable(&self, error: reqwest::Error) -> Fault {
        if error.is_timeout() && !error.is_connect() {
            let (shown, timeout) = (self.shown(), self.timeout.as_secs());
            let why = format!("{shown} timed out after {timeout} s. Raise timeout_seconds");
            return Fault::Refused(why);
        }
        web::unreachable(&self.url, error)
    }
}

/// The body of a response as JSON, or as text if it is not JSON or was truncated.
fn content(body: &[u8], is_whole: bool) -> Value {
    let json = if is_whole { serde_json::from_slice(body).ok() } else { None };
    json.unwrap_or_else(|| String::from_utf8_lossy(body).into())
}

fn lost(shown: &str) -> Fault {
    Fault::Unavailable(format!("{shown} ended without a result"))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn refused(invalid: Invalid) -> Fault {
    Fault::Refused(invalid.to_string())
}

impl Operation for HttpCalls {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        Call::new(with, "").map(drop)
    }

    fn plan<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Vec<Difference>>> {
        port::ready(Ok(Progress::Done(Vec::new())))
    }

    fn apply<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<Outcome>> {
        Box::pin(self.call(task))
    }

    fn observe<'a>(&'a self, _: &'a Task) -> PortFuture<'a, Progress<Observed>> {
        // A call that was made can't drift.
        port::ready(Ok(Progress::Done(Observed::default())))
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> PortFuture<'a, Progress<()>> {
        self.running.abort(task.id);
        port::ready(Ok(Progress::Done(())))
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> PortFuture<'a, bool> {
        self.running.abort(task.id);
        port::ready(Ok(true))
    }

    fn changed<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, ()> {
        let outcome = self.running.outcome(task.id);
        Box::pin(async move {
            match outcome {
                Some(mut outcome) => drop(outcome.wait_for(Option::is_some).await),
                // The call is queued.
                None => tokio::time::sleep(FOREGROUND_WAIT).await,
            }
        })
    }
}
