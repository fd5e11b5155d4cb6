//! Resources as `consul-kv` is told them, and the executor for a Consul of the test's own.

use std::collections::BTreeMap;

use adapters::consul::{Consul, Options};
use port::{Applied, Doing, Executor, Fault, Log, Task};
use serde_json::{Map, Value, json};

use crate::fake::prepare;
use crate::patience::ANSWER_WITHIN;

/// An executor that finds its Consul there.
pub(crate) fn executor(url: &str) -> Consul {
    Consul::new(options(url)).unwrap()
}

/// Options of one that is patient.
pub(crate) fn options(url: &str) -> Options {
    prepare();
    Options { limit: ANSWER_WITHIN, ..Options::new(url) }
}

/// What an executor is told of a resource.
pub(crate) fn task(number: usize, with: &Value) -> Task {
    let id = |number: usize| format!("{number:019}0");
    Task {
        id: id(number).parse().unwrap(),
        name: "settings".into(),
        environment: id(1).parse().unwrap(),
        environment_name: "shop".into(),
        organization: id(2).parse().unwrap(),
        user: id(3).parse().unwrap(),
        with: object(with),
        applied: None,
        outputs: Map::new(),
        link: None,
        files: std::sync::Arc::default(),
        kept: BTreeMap::new(),
        key: format!("{number}-1"),
        since: model::Time(0),
        fence: 1,
        log: Log::default(),
    }
}

/// The next change of a resource that was made.
pub(crate) fn next(task: &Task, with: &Value) -> Task {
    let applied = Some(task.with.clone());
    Task { applied, with: object(with), key: format!("{}+", task.key), ..task.clone() }
}

/// The same resource, once it was made.
pub(crate) fn made(task: &Task) -> Task {
    Task { applied: Some(task.with.clone()), log: Log::default(), ..task.clone() }
}

/// The same as the server after the one that has it sees it.
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

/// Makes it, and that must be done at once.
pub(crate) async fn apply(executor: &impl Executor, task: &Task) -> Applied {
    let applied = executor.apply(task).await;
    let Ok(Doing::Done(applied)) = applied else { panic!("{applied:?}") };
    applied
}

/// Takes it away, and that must be done at once.
pub(crate) async fn destroy(executor: &impl Executor, task: &Task) {
    assert_eq!(executor.destroy(task).await, Ok(Doing::Done(())));
}

/// The sentence of a refusal.
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, Fault>) -> String {
    let Err(Fault::Refused(why)) = answer else { panic!("{answer:?}") };
    why
}

/// The sentence of one that is not available.
pub(crate) fn unavailable<T: std::fmt::Debug>(answer: Result<T, Fault>) -> String {
    let Err(Fault::Unavailable(why)) = answer else { panic!("{answer:?}") };
    why
}
