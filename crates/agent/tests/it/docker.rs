//! Docker and Podman, for real.

use std::time::Duration;

use agent::docker::{Engine, Options};
use agent::{Choice, Docker, Runtime, choose};
use model::agent::Observed;
use model::deployment::{Pull, Reason, Restart, Spec};
use runtime::Credentials;

use crate::choosing::no_embedded;
use crate::contract::{keeps, next, replica, shell, start};
use crate::engine::{Stand, plain};
use crate::packing::{self, Image};

#[tokio::test(flavor = "multi_thread")]
async fn docker_keeps_the_contract() {
    keeps_the_contract(Engine::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_keeps_the_contract() {
    keeps_the_contract(Engine::Podman).await;
}

async fn keeps_the_contract(engine: Engine) {
    let (stand, runtime) = Stand::new(engine).await;
    assert_eq!(runtime.engine(), engine);
    let runtime = choose(Choice::Auto, no_embedded(), stand.options.clone()).await;
    assert_eq!(runtime.name(), "docker");
    keeps(&*runtime, &stand.image, |endpoint| stand.get(endpoint)).await;
    assert_eq!(stand.left().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_containers_are_adopted() {
    are_adopted(Engine::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_containers_are_adopted() {
    are_adopted(Engine::Podman).await;
}

/// By another server, and by the same one when the engine was gone for a while.
async fn are_adopted(engine: Engine) {
    let (mut stand, runtime) = Stand::new(engine).await;
    let id = replica(1);
    let spec = shell(&stand.image, "exec httpd -f -p 8080 -h /www");
    let web = Spec { ports: vec![8080], restart: Restart::Always, ..spec };
    let endpoints = start(&runtime, id, &web).await.unwrap();
    let running = Observed::Running { endpoints: endpoints.clone() };
    let once = Spec { restart: Restart::OnFailure, ..shell(&stand.image, "sleep 1; exit 3") };
    start(&runtime, replica(2), &once).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;

    let second = Docker::probe(stand.options.clone()).await.unwrap();
    assert_eq!(start(&second, id, &web).await.unwrap(), endpoints);
    // One that fell over while nobody looked is up again.
    start(&second, replica(2), &once).await.unwrap();
    let changed = next(&second, replica(2), &Observed::Running { endpoints: vec![] }).await;
    assert!(matches!(changed, Observed::Restarting { .. }), "{changed:?}");
    second.stop(replica(2)).await.unwrap();

    // Another installation on the same engine does not touch ours.
    let options = Options { instance: "another".into(), ..stand.options.clone() };
    Docker::probe(options).await.unwrap().stop(id).await.unwrap();

    stand.kill();
    let asked = tokio::time::timeout(Duration::from_secs(3), runtime.changed(id, &running)).await;
    assert!(asked.is_err(), "an engine that does not answer changes nothing: {asked:?}");
    stand.start().await;
    let asked = tokio::time::timeout(Duration::from_secs(3), runtime.changed(id, &running)).await;
    assert!(asked.is_err(), "it runs as before: {asked:?}");
    assert_eq!(start(&runtime, id, &web).await.unwrap(), endpoints);
    assert!(stand.get(&endpoints[0]).contains("hello"));
    runtime.stop(id).await.unwrap();
    assert_eq!(stand.left().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_says_what_is_wrong() {
    says_what_is_wrong(Engine::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_says_what_is_wrong() {
    says_what_is_wrong(Engine::Podman).await;
}

/// Starts something that can't run: why. Nothing of it stays.
async fn refused(stand: &Stand, runtime: &Docker, spec: &Spec) -> Reason {
    let before = stand.images().await;
    let started = start(runtime, replica(1), spec).await;
    let why = started.expect_err(&format!("{:?} {:?}", spec.image, spec.command));
    assert_eq!(stand.left().await, Vec::<String>::new(), "{why}");
    assert_eq!(stand.images().await, before, "{why}");
    let message = why.to_string();
    assert!(!message.contains('\n') && message.ends_with('.'), "{message:?}");
    why
}

/// Starts something whose image can't be had: what kept it, and what was said.
async fn unpulled(stand: &Stand, runtime: &Docker, image: &str) -> (Pull, String) {
    match refused(stand, runtime, &shell(image, "true")).await {
        Reason::ImagePullFailed { image: named, cause, message, is_retried: false } => {
            assert_eq!(named, image);
            (cause, message)
        }
        other => panic!("{other:?}"),
    }
}

async fn says_what_is_wrong(engine: Engine) {
    let (stand, runtime) = Stand::new(engine).await;
    let fake = &stand.fake;
    let good = shell(&stand.image, "true");
    start(&runtime, replica(2), &good).await.unwrap();
    runtime.stop(replica(2)).await.unwrap();

    for (name, expected) in [
        (fake.name("missing"), Pull::NotFound),
        (fake.name("garbage/x"), Pull::Corrupt),
        ("127.0.0.1:1/x:1.0".to_owned(), Pull::Unreachable),
        ("127.0.0.1:1/x:bad:tag".to_owned(), Pull::InvalidName),
    ] {
        let (cause, message) = unpulled(&stand, &runtime, &name).await;
        assert_eq!(cause, expected, "{name}: {message}");
    }
    let other = Image { architecture: "s390x", ..plain() };
    let (cause, message) = unpulled(&stand, &runtime, &fake.put("other", &other)).await;
    assert_eq!(cause, Pull::NoMatchingPlatform, "{message}");

    // Not one that the engine has already: it would not ask for it.
    let layer = packing::busybox().file("etc/other", b"").tar();
    let mut flipped = Image::new(vec![layer], plain().config);
    let name = fake.put("flipped", &flipped);
    let digest = crate::registry::digest_of(&flipped.layers.remove(0).1);
    fake.shelf.lock().unwrap().blobs.get_mut(&digest).unwrap()[1000] ^= 1;
    let (cause, message) = unpulled(&stand, &runtime, &name).await;
    assert_eq!(cause, Pull::Corrupt, "{message}");

    for (command, expected) in [
        ("nonsense", Reason::CommandNotFound { command: "nonsense".into() }),
        ("/bin/nonsense", Reason::CommandNotFound { command: "/bin/nonsense".into() }),
        ("/www", Reason::CommandNotExecutable { command: "/www".into() }),
    ] {
        let spec = Spec { command: vec![command.to_owned()], ..good.clone() };
        assert_eq!(refused(&stand, &runtime, &spec).await, expected);
    }

    let options = Options { max_image_bytes: 1000, ..stand.options.clone() };
    let strict = Docker::probe(options).await.unwrap();
    let (cause, message) = unpulled(&stand, &strict, &fake.put("large", &plain())).await;
    assert!(cause == Pull::TooLarge && message.contains("1000 bytes"), "{message}");

    hangs(&stand).await;
    needs_credentials(&stand).await;
    start(&runtime, replica(1), &good).await.expect("life goes on");
    runtime.stop(replica(1)).await.unwrap();
    assert_eq!(stand.left().await, Vec::<String>::new());
}

async fn hangs(stand: &Stand) {
    let options = Options { read_timeout: Duration::from_secs(1), ..stand.options.clone() };
    let impatient = Docker::probe(options).await.unwrap();
    let began = base::monotonic();
    let (cause, message) = unpulled(stand, &impatient, &stand.fake.name("hang/x")).await;
    assert!(cause == Pull::TimedOut && began.elapsed().as_secs() < 10, "{message}");
}

async fn needs_credentials(stand: &Stand) {
    let name = stand.fake.put("secret", &plain());
    // "user:ri?>~~?": characters that the two alphabets write differently.
    stand.fake.shelf.lock().unwrap().password = Some("dXNlcjpyaT8+fn4/".to_owned());
    for (password, works) in [("wrong", false), ("ri?>~~?", true)] {
        let mut options = stand.options.clone();
        let credentials = Credentials { username: "user".into(), password: password.into() };
        options.registries.insert(stand.fake.address.clone(), credentials);
        let runtime = Docker::probe(options).await.unwrap();
        let started = start(&runtime, replica(3), &shell(&name, "true")).await;
        runtime.stop(replica(3)).await.unwrap();
        assert_eq!(started.is_ok(), works, "{started:?}");
        let is_told = started.err().is_none_or(|why| {
            matches!(why, Reason::ImagePullFailed { cause: Pull::Unauthorized, .. })
        });
        assert!(is_told, "it says what to do");
    }
}

#[tokio::test]
async fn without_an_engine_it_says_what_was_tried() {
    let socket = std::path::PathBuf::from("/nowhere/docker.sock");
    let options = Options { socket: Some(socket), ..Options::new("x") };
    let why = Docker::probe(options).await.err().unwrap().to_string();
    assert!(why.contains("tried /nowhere/docker.sock (there is none)"), "{why}");
}
