//! Tasks for `consul-kv`, and the executor for a test's own Consul.

use adapters::consul::{Consul, Options};
use model::ResourceId;
use port::{Fault, Log, Operation, Outcome, Progress, Task};
use serde_json::{Map, Value, json};

use crate::fake::prepare;
use crate::patience::ANSWER_WITHIN;

/// An executor for this Consul.
pub(crate) fn executor(url: &str) -> Consul {
    Consul::new(options(url)).unwrap()
}

/// Options with a long timeout.
pub(crate) fn options(url: &str) -> Options {
    prepare();
    Options { timeout: ANSWER_WITHIN, ..Options::new(url) }
}

/// A task of a resource.
pub(crate) fn task(number: usize, with: &Value) -> Task {
    let id = |number: usize| format!("{number:019}0");
    let resource: ResourceId = id(number).parse().unwrap();
    Task {
        organization: Some(id(2).parse().unwrap()),
        with: object(with),
        key: format!("{number}-1"),
        ..Task::new(resource, "settings")
    }
}

/// The result of a call that must be done.
pub(crate) fn done<T>(progress: Progress<T>) -> T {
    match progress {
        Progress::Done(done) => done,
        Progress::Running { reason: message, .. } => panic!("it is running: {message}"),
    }
}

/// The next change of an applied resource.
pub(crate) fn next(task: &Task, with: &Value) -> Task {
    let applied = Some(task.with.clone());
    Task { applied, with: object(with), key: format!("{}+", task.key), ..task.clone() }
}

/// The same resource after it was applied.
pub(crate) fn applied(task: &Task) -> Task {
    Task { applied: Some(task.with.clone()), log: Log::default(), ..task.clone() }
}

/// The same task on the server that takes over.
pub(crate) fn taken_over(task: &Task) -> Task {
    Task { fence: task.fence + 1, log: Log::default(), ..task.clone() }
}

/// A JSON object.
pub(crate) fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

/// A prefix with these values.
pub(crate) fn values(prefix: &str, values: &Value) -> Value {
    json!({"prefix": prefix, "values": values})
}

/// So many keys, each with the same value.
pub(crate) fn many(count: usize, value: &str) -> Value {
    (0..count).map(|i| (format!("key/{i:03}"), Value::from(value))).collect::<Map<_, _>>().into()
}

/// Applies, which must be done at once.
pub(crate) async fn apply(executor: &impl Operation, task: &Task) -> Outcome {
    let applied = executor.apply(task).await;
    let Ok(Progress::Done(applied)) = applied else { panic!("{applied:?}") };
    applied
}

/// Destroys, which must be done at once.
pub(crate) async fn destroy(executor: &impl Operation, task: &Task) {
    assert_eq!(executor.destroy(task).await, Ok(Progress::Done(())));
}

/// The message of a refusal.
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, Fault>) -> String {
    let Err(Fault::Refused(why)) = answer else { panic!("{answer:?}") };
    why
}

/// The message of an unavailable system.
pub(crate) fn unavailable<T: std::fmt::Debug>(answer: Result<T, Fault>) -> String {
    let Err(Fault::Unavailable(why)) = answer else { panic!("{answer:?}") };
    why
}
