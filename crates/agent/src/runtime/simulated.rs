//! A runtime without containers: starts and stops at once or after a while, fails when told to.
//!
//! For trying Paddock out and for tests. Chosen only by name, never by itself.

use base::{Clock as _, SystemClock};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use model::Time;
use model::agent::{Observed, ReplicaId};
use model::deployment::{Reason, Spec};
use model::log::{Cursor, LogLine, LogsFrom, Source};
use runtime::LogStream;

use super::{Doing, Runtime};
use crate::Error;

/// How it behaves.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How long a start takes.
    pub start_delay: Duration,
    /// How long a stop takes.
    pub stop_delay: Duration,
    /// Images whose path contains this text fail to start.
    pub fail: Option<String>,
    /// Images whose path contains this text run to their end, after `run_for`.
    pub complete: Option<String>,
    /// How long those run.
    pub run_for: Duration,
}

/// The runtime.
#[derive(Debug, Default)]
pub struct Simulated {
    options: Options,
    running: Mutex<HashMap<ReplicaId, Run>>,
}

/// Something that runs, or pretends to.
#[derive(Debug, Clone)]
struct Run {
    image: String,
    lines: Vec<(Time, String)>,
}

impl Simulated {
    /// A runtime that behaves so.
    pub fn new(options: Options) -> Self {
        Self { options, running: Mutex::default() }
    }

    fn matches(text: Option<&String>, image: &str) -> bool {
        text.is_some_and(|text| image.contains(text.as_str()))
    }

    async fn pretend(&self, id: ReplicaId, spec: &Spec) -> Observed {
        let image = spec.image.clone().unwrap_or_default();
        tokio::time::sleep(self.options.start_delay).await;
        if Self::matches(self.options.fail.as_ref(), &image) {
            let message = format!("the simulated runtime was told to fail images like {image}");
            return Observed::Failed { reason: Reason::StartFailed { message } };
        }
        let same = self.running().get(&id).is_some_and(|run| run.image == image);
        if !same {
            let mut lines = vec![format!("simulated: started {image} as {id}")];
            let ports = spec.ports.iter();
            lines.extend(ports.map(|port| format!("simulated: listening on port {port}")));
            let lines = lines.into_iter().map(|line| (SystemClock.now(), line)).collect();
            self.running().insert(id, Run { image, lines });
        }
        let endpoints = spec.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        Observed::Running { endpoints }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<ReplicaId, Run>> {
        base::locks::lock(&self.running)
    }
}

impl Runtime for Simulated {
    fn is_real(&self) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        "simulated"
    }

    fn start<'a>(&'a self, id: ReplicaId, _node: &'a str, spec: &'a Spec) -> Doing<'a> {
        Box::pin(self.pretend(id, spec))
    }

    fn changed<'a>(&'a self, id: ReplicaId, seen: &'a Observed) -> Doing<'a> {
        Box::pin(async move {
            let image = self.running().get(&id).map(|run| run.image.clone()).unwrap_or_default();
            if *seen == Observed::Completed
                || !Self::matches(self.options.complete.as_ref(), &image)
            {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(self.options.run_for).await;
            if let Some(run) = self.running().get_mut(&id) {
                run.lines.push((SystemClock.now(), "simulated: ended with code 0".to_owned()));
            }
            Observed::Completed
        })
    }

    fn stop(&self, id: ReplicaId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            tokio::time::sleep(self.options.stop_delay).await;
            self.running().remove(&id);
            Ok(())
        })
    }

    /// The few lines that there are; who follows gets no more, and no end as long as it runs.
    fn logs(&self, id: ReplicaId, from: LogsFrom, follow: bool) -> LogStream {
        let run = self.running().get(&id).cloned();
        let is_running = run.is_some();
        let lines = run.map(|run| run.lines).unwrap_or_default();
        let skip = match &from {
            LogsFrom::Start => 0,
            LogsFrom::Last(count) => lines.len().saturating_sub(*count),
            LogsFrom::After(cursor) => cursor.0.parse().unwrap_or(0),
        };
        let lines = lines.into_iter().enumerate().skip(skip);
        let said = stream::iter(lines.map(|(number, (at, text))| LogLine {
            at,
            source: Source::Stdout,
            text,
            next: Cursor((number + 1).to_string()),
        }));
        if follow && is_running { said.chain(stream::pending()).boxed() } else { said.boxed() }
    }
}

#[cfg(test)]
mod tests {
    use model::cluster::ONLY_NODE;
    use model::{DeploymentId, Xid};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn its_log_can_be_read_in_parts() {
        let id = ReplicaId { deployment: DeploymentId(Xid::new(1, [0; 5], 1)), number: 0 };
        let options = Options { complete: Some("job".into()), ..Options::default() };
        let runtime = Simulated::new(options);
        let spec = Spec { image: Some("job".into()), ports: vec![80], ..Spec::default() };
        let running = runtime.start(id, ONLY_NODE, &spec).await;
        let ended = runtime.changed(id, &running).await;
        assert_eq!(ended, Observed::Completed);
        let all: Vec<_> = runtime.logs(id, LogsFrom::Start, false).collect().await;
        assert!(all.len() == 3 && all[0].text.starts_with("simulated: started job"), "{all:?}");
        for from in [LogsFrom::After(all[0].next.clone()), LogsFrom::Last(2)] {
            let rest: Vec<_> = runtime.logs(id, from, false).collect().await;
            assert_eq!(rest, all[1..]);
        }
    }
}
