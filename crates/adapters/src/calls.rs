//! Calls of addresses that templates name: a command whose `url` begins with `http`.
//!
//! A call may take long, so it goes on in the background and is asked for again. Each change of a
//! resource sends the same `Idempotency-Key` however often it is tried, also by another server. There is
//! a guard before each host, for each organization.

mod running;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use model::Invalid;
use model::resource::Difference;
use model::template::{self, with};
use port::{Answer, Fault, Files, Observed, Operation, Outcome, Progress, Task};
use reqwest::{Method, StatusCode, Url};
use serde_json::{Map, Value, json};

use crate::call::words;
use crate::guard::Guards;
use crate::http;
use crate::web::{self, Web};
use running::{Running, Turn};

/// How long a call may take if nothing is said.
const PATIENCE: u32 = 600;
/// What of an answer is given to others.
const MAX_BODY_BYTES: usize = 64 << 10;
/// How long a call is waited for before it goes on in the background.
const QUICK: Duration = Duration::from_secs(2);

/// Makes calls.
pub struct Calls {
    web: Arc<Web>,
    guards: Guards,
    running: Running,
}

/// One call.
struct Call {
    method: Method,
    url: Url,
    body: Option<Value>,
    key: String,
    limit: Duration,
}

impl Calls {
    /// Prepares; calls nobody.
    pub fn new(options: web::Options) -> Result<Self, Fault> {
        let web = Arc::new(Web::new(options)?);
        Ok(Self { web, guards: Guards::default(), running: Running::default() })
    }

    async fn make(&self, task: &Task) -> Result<Progress<Outcome>, Fault> {
        let call = Call::of(&task.with, &task.key).map_err(refused)?;
        let (shown, web) = (call.shown(), self.web.clone());
        let host = call.url.origin().ascii_serialization();
        let guard = self.guards.of(task.organization, host);
        let work = async move { guard.once(call.make(&web)).await };
        let turn = self.running.turn(task, move || work);
        let Turn::Goes(mut outcome) = turn else {
            return Ok(Progress::running("Waiting for other calls to end."));
        };
        match tokio::time::timeout(QUICK, outcome.wait_for(Option::is_some)).await {
            Err(_) => Ok(Progress::running(format!("{shown} has not answered yet."))),
            Ok(ended) => {
                let ended = ended.ok().and_then(|outcome| outcome.clone());
                self.running.forget(task.id);
                let made = ended.unwrap_or_else(|| Err(lost(&shown)))?;
                task.log.say(format!("{shown} answered {}.", made.outputs["status"]));
                Ok(Progress::Done(made))
            }
        }
    }
}

impl Call {
    fn of(with: &Map<String, Value>, key: &str) -> Result<Self, Invalid> {
        with::check(template::Executor::Command, with)?;
        let told: with::Command = with::read(with)?;
        let url = web::address(&told.url).map_err(|why| Invalid::new("with.url", why))?;
        let method = told.method.as_deref().unwrap_or("POST");
        let method = method.parse().map_err(|_| Invalid::new("with.method", "is no method"))?;
        let limit = Duration::from_secs(told.timeout_seconds.unwrap_or(PATIENCE).into());
        Ok(Self { method, url, body: told.body, key: key.to_owned(), limit })
    }

    /// What it is called in sentences.
    fn shown(&self) -> String {
        format!("{} {}", self.method, web::shown(&self.url))
    }

    async fn make(&self, web: &Web) -> Result<Outcome, Fault> {
        let request = web.request(self.method.clone(), &self.url, self.limit)?;
        let request = request.header("Idempotency-Key", &self.key);
        let request = match &self.body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().await.map_err(|error| self.silent(error))?;
        let status = answer.status();
        let read = http::start(answer, MAX_BODY_BYTES).await;
        let (body, is_whole) = read.map_err(|error| self.silent(error))?;
        if !status.is_success() {
            return Err(self.fault(status, &body));
        }
        let outputs = json!({"status": status.as_u16(), "body": content(&body, is_whole)});
        Ok(Outcome { outputs: outputs.as_object().cloned().unwrap_or_default(), link: None })
    }

    fn fault(&self, status: StatusCode, body: &[u8]) -> Fault {
        let line = words::of(body).map(|line| format!(": {line}")).unwrap_or_default();
        let (shown, code) = (self.shown(), status.as_u16());
        match status {
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => {
                Fault::Unavailable(format!("{shown} has no time: it answered {code}{line}"))
            }
            _ if status.is_redirection() => Fault::Refused(format!(
                "{shown} leads elsewhere ({code}), where Paddock does not follow: call that address"
            )),
            _ if status.is_client_error() => {
                Fault::Refused(format!("{shown} was refused: it answered {code}{line}"))
            }
            _ => Fault::Unavailable(format!("{shown} failed: it answered {code}{line}")),
        }
    }

    fn silent(&self, error: reqwest::Error) -> Fault {
        if error.is_timeout() && !error.is_connect() {
            let (shown, limit) = (self.shown(), self.limit.as_secs());
            let why = format!("{shown} took longer than {limit} s and was ended");
            return Fault::Refused(why);
        }
        web::silent(&self.url, error)
    }
}

/// What an answer says: JSON, or text. What is cut off is no JSON any more.
fn content(body: &[u8], is_whole: bool) -> Value {
    let json = if is_whole { serde_json::from_slice(body).ok() } else { None };
    json.unwrap_or_else(|| String::from_utf8_lossy(body).into())
}

fn lost(shown: &str) -> Fault {
    Fault::Unavailable(format!("{shown} ended without an outcome"))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn refused(invalid: Invalid) -> Fault {
    Fault::Refused(invalid.to_string())
}

impl Operation for Calls {
    fn validate(&self, with: &Map<String, Value>, _: &Files) -> Result<(), Invalid> {
        Call::of(with, "").map(drop)
    }

    fn plan<'a>(&'a self, _: &'a Task) -> Answer<'a, Progress<Vec<Difference>>> {
        port::ready(Ok(Progress::Done(Vec::new())))
    }

    fn apply<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<Outcome>> {
        Box::pin(self.make(task))
    }

    fn observe<'a>(&'a self, _: &'a Task) -> Answer<'a, Progress<Observed>> {
        // That it was made stays true.
        port::ready(Ok(Progress::Done(Observed::default())))
    }

    fn destroy<'a>(&'a self, task: &'a Task) -> Answer<'a, Progress<()>> {
        self.running.forget(task.id);
        port::ready(Ok(Progress::Done(())))
    }

    fn cancel<'a>(&'a self, task: &'a Task) -> Answer<'a, bool> {
        self.running.forget(task.id);
        port::ready(Ok(true))
    }

    fn changed<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, ()> {
        let outcome = self.running.outcome(task.id);
        Box::pin(async move {
            match outcome {
                Some(mut outcome) => drop(outcome.wait_for(Option::is_some).await),
                // It waits for its turn.
                None => tokio::time::sleep(QUICK).await,
            }
        })
    }
}
