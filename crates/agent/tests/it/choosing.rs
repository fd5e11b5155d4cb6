//! Selection of the runtime, and its failures.

use agent::{RuntimeChoice, choose, docker, simulated};
use futures_util::StreamExt;
use model::deployment::Reason;
use model::log::LogsFrom;

use crate::contract::{replica, shell, start};
use crate::lab::Lab;

/// Options with which the embedded runtime can't work.
pub(crate) fn no_embedded() -> runtime::Options {
    runtime::Options::new("/nowhere", "Not A Name")
}

fn no_docker() -> docker::Options {
    docker::Options { socket: Some("/nowhere/docker.sock".into()), ..docker::Options::new("x") }
}

#[tokio::test]
async fn absent_runtime_reports_the_cause_of_each_candidate() {
    for (choice, embedded, docker) in [
        (RuntimeChoice::Auto, true, true),
        (RuntimeChoice::Embedded, true, false),
        (RuntimeChoice::Docker, false, true),
    ] {
        let runtime = choose(choice, no_embedded(), no_docker()).await;
        assert_eq!(runtime.name(), "absent");
        let why = start(&*runtime, replica(1), &shell("web", "true")).await.unwrap_err();
        let Reason::StartFailed { message: why } = why else { panic!("{why:?}") };
        assert_eq!(why.contains("Invalid name \"Not A Name\""), embedded, "{why}");
        assert_eq!(why.contains("tried /nowhere/docker.sock"), docker, "{why}");
        assert!(why.contains("--runtime"), "{why}");
        runtime.stop(replica(1)).await.unwrap();
        assert_eq!(runtime.logs(replica(1), LogsFrom::Start, true).count().await, 0);
    }
}

#[tokio::test]
async fn simulated_runtime_is_selected_explicitly() {
    let choice = RuntimeChoice::Simulated(simulated::Options::default());
    let runtime = choose(choice, no_embedded(), no_docker()).await;
    assert!(runtime.name() == "simulated" && !runtime.is_real());
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_runtime_is_preferred() {
    let mut lab = Lab::new().await;
    lab.runtime = None;
    let runtime = choose(RuntimeChoice::Auto, lab.options.clone(), no_docker()).await;
    assert_eq!(runtime.name(), "embedded");
}
