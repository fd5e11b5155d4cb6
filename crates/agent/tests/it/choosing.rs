//! Which runtime is chosen, and what is said when there is none.

use agent::{Choice, choose, docker, simulated};
use futures_util::StreamExt;
use model::deployment::Reason;
use model::log::LogsFrom;

use crate::contract::{replica, shell, start};
use crate::lab::Lab;

/// One that can't work.
pub(crate) fn no_embedded() -> runtime::Options {
    runtime::Options::new("/nowhere", "Not A Name")
}

fn no_docker() -> docker::Options {
    docker::Options { socket: Some("/nowhere/docker.sock".into()), ..docker::Options::new("x") }
}

#[tokio::test]
async fn when_none_works_every_start_says_why_of_each() {
    for (choice, embedded, docker) in
        [(Choice::Auto, true, true), (Choice::Embedded, true, false), (Choice::Docker, false, true)]
    {
        let runtime = choose(choice, no_embedded(), no_docker()).await;
        assert_eq!(runtime.name(), "absent");
        let why = start(&*runtime, replica(1), &shell("web", "true")).await.unwrap_err();
        let Reason::StartFailed { message: why } = why else { panic!("{why:?}") };
        assert_eq!(why.contains("\"Not A Name\" is not a container's name"), embedded, "{why}");
        assert_eq!(why.contains("tried /nowhere/docker.sock"), docker, "{why}");
        assert!(why.contains("--runtime"), "{why}");
        runtime.stop(replica(1)).await.unwrap();
        assert_eq!(runtime.logs(replica(1), LogsFrom::Start, true).count().await, 0);
    }
}

#[tokio::test]
async fn simulated_is_taken_when_asked_for() {
    let choice = Choice::Simulated(simulated::Options::default());
    let runtime = choose(choice, no_embedded(), no_docker()).await;
    assert!(runtime.name() == "simulated" && !runtime.is_real());
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_is_taken_first_where_it_works() {
    let mut lab = Lab::new().await;
    lab.runtime = None;
    let runtime = choose(Choice::Auto, lab.options.clone(), no_docker()).await;
    assert_eq!(runtime.name(), "embedded");
}
