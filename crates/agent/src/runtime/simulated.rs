//! Simulated runtime: starts and stops replicas without containers, with delays and failures.
//!
//! For trials and tests. Selected only explicitly.

use base::{Clock as _, SystemClock};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use model::agent::{Observed, ReplicaId};
use model::deployment::{Reason, Spec};
use model::log::{Cursor, LogLine, LogsFrom, Source};
use model::{OrganizationId, Time};
use runtime::LogStream;

use super::{ObservedFuture, Runtime};
use crate::Error;

/// Configuration of the simulated runtime.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Duration of a start.
    pub start_delay: Duration,
    /// Duration of a stop.
    pub stop_delay: Duration,
    /// Images whose name contains this text fail to start.
    pub fail: Option<String>,
    /// Images whose name contains this text complete after `run_for`.
    pub complete: Option<String>,
    /// How long those run.
    pub run_for: Duration,
}

/// The simulated runtime.
#[derive(Debug, Default)]
pub struct Simulated {
    options: Options,
    running: Mutex<HashMap<ReplicaId, Run>>,
}

/// A simulated replica.
#[derive(Debug, Clone)]
struct Run {
    image: String,
    lines: Vec<(Time, String)>,
}

impl Simulated {
    /// Creates a runtime with these options.
    pub fn new(options: Options) -> Self {
        Self { options, running: Mutex::default() }
    }

    fn matches(text: Option<&String>, image: &str) -> bool {
        text.is_some_and(|text| image.contains(text.as_str()))
    }

    async fn simulate_start(&self, id: ReplicaId, spec: &Spec) -> Observed {
        let image = spec.image.clone().unwrap_or_default();
        tokio::time::sleep(self.options.start_delay).await;
        if Self::matches(self.options.fail.as_ref(), &image) {
            let message = format!("the simulated runtime is configured to fail image {image}");
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

    fn start<'a>(
        &'a self,
        id: ReplicaId,
        _node: &'a str,
        _organization: Option<OrganizationId>,
        spec: &'a Spec,
    ) -> ObservedFuture<'a> {
        Box::pin(self.simulate_start(id, spec))
    }

    fn changed<'a>(&'a self, id: ReplicaId, last: &'a Observed) -> ObservedFuture<'a> {
        Box::pin(async move {
            let image = self.running().get(&id).map(|run| run.image.clone()).unwrap_or_default();
            if *last == Observed::Completed
                || !Self::matches(self.options.complete.as_ref(), &image)
            {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(self.options.run_for).await;
            if let Some(run) = self.running().get_mut(&id) {
                run.lines.push((SystemClock.now(), "simulated: exited with code 0".to_owned()));
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

    /// A few lines; a follower gets no more, and waits as long as the replica runs.
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
        let stream = stream::iter(lines.map(|(number, (at, text))| LogLine {
            at,
            source: Source::Stdout,
            text,
            next: Cursor((number + 1).to_string()),
        }));
        if follow && is_running { stream.chain(stream::pending()).boxed() } else { stream.boxed() }
    }
}

#[cfg(test)]
mod tests {
    use model::cluster::ONLY_NODE;
    use model::{DeploymentId, Xid};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn log_can_be_read_in_parts() {
        let id = ReplicaId { deployment: DeploymentId(Xid::new(1, [0; 5], 1)), number: 0 };
        let options = Options { complete: Some("job".into()), ..Options::default() };
        let runtime = Simulated::new(options);
        let spec = Spec { image: Some("job".into()), ports: vec![80], ..Spec::default() };
        let running = runtime.start(id, ONLY_NODE, None, &spec).await;
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
