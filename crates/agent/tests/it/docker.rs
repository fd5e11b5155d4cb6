//! The Docker runtime with real engines.

use std::time::Duration;

use agent::docker::{Engine, Options};
use agent::{Docker, Runtime, RuntimeChoice, choose};
use model::agent::Observed;
use model::credential::PullCredentials;
use model::deployment::{Pull, Reason, Restart, Spec};
use runtime::Credentials;

use crate::choosing::no_embedded;
use crate::contract::{check, next, replica, shell, start};
use crate::engine::{EngineLab, plain};
use crate::packing::{self, Image};

#[tokio::test(flavor = "multi_thread")]
async fn docker_fulfils_the_contract() {
    check_contract(Engine::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_fulfils_the_contract() {
    check_contract(Engine::Podman).await;
}

async fn check_contract(engine: Engine) {
    let (lab, runtime) = EngineLab::new(engine).await;
    assert_eq!(runtime.engine(), engine);
    let runtime = choose(RuntimeChoice::Auto, no_embedded(), lab.options.clone()).await;
    assert_eq!(runtime.name(), "docker");
    check(&*runtime, &lab.image, |endpoint| lab.get(endpoint)).await;
    assert_eq!(lab.leftovers().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_containers_are_adopted() {
    check_adoption(Engine::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_containers_are_adopted() {
    check_adoption(Engine::Podman).await;
}

/// Adoption by another server, and by the same one after an outage of the engine.
async fn check_adoption(engine: Engine) {
    let (mut lab, runtime) = EngineLab::new(engine).await;
    let id = replica(1);
    let spec = shell(&lab.image, "exec httpd -f -p 8080 -h /www");
    let web = Spec { ports: vec![8080], restart: Restart::Always, ..spec };
    let endpoints = start(&runtime, id, &web).await.unwrap();
    let running = Observed::Running { endpoints: endpoints.clone() };
    let once = Spec { restart: Restart::OnFailure, ..shell(&lab.image, "sleep 1; exit 3") };
    start(&runtime, replica(2), &once).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;

    let second = Docker::probe(lab.options.clone()).await.unwrap();
    assert_eq!(start(&second, id, &web).await.unwrap(), endpoints);
    // One that exited without a server is restarted.
    start(&second, replica(2), &once).await.unwrap();
    let changed = next(&second, replica(2), &Observed::Running { endpoints: vec![] }).await;
    assert!(matches!(changed, Observed::Restarting { .. }), "{changed:?}");
    second.stop(replica(2)).await.unwrap();

    // Another installation on the same engine does not touch these containers.
    let options = Options { instance: "another".into(), ..lab.options.clone() };
    Docker::probe(options).await.unwrap().stop(id).await.unwrap();

    lab.kill();
    let changed = tokio::time::timeout(Duration::from_secs(3), runtime.changed(id, &running)).await;
    assert!(changed.is_err(), "an engine that does not respond changes nothing: {changed:?}");
    lab.start().await;
    let changed = tokio::time::timeout(Duration::from_secs(3), runtime.changed(id, &running)).await;
    assert!(changed.is_err(), "it runs as before: {changed:?}");
    assert_eq!(start(&runtime, id, &web).await.unwrap(), endpoints);
    assert!(lab.get(&endpoints[0]).contains("hello"));
    runtime.stop(id).await.unwrap();
    assert_eq!(lab.leftovers().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_reports_causes() {
    check_causes(Engine::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_reports_causes() {
    check_causes(Engine::Podman).await;
}

/// Starts a replica that must fail, checks that nothing is left, and returns the reason.
async fn start_error(lab: &EngineLab, runtime: &Docker, spec: &Spec) -> Reason {
    let before = lab.images().await;
    let started = start(runtime, replica(1), spec).await;
    let why = started.expect_err(&format!("{:?} {:?}", spec.image, spec.command));
    assert_eq!(lab.leftovers().await, Vec::<String>::new(), "{why}");
    assert_eq!(lab.images().await, before, "{why}");
    let message = why.to_string();
    assert!(!message.contains('\n') && message.ends_with('.'), "{message:?}");
    why
}

/// Starts a replica whose pull must fail. Returns the cause and the message.
async fn pull_error(lab: &EngineLab, runtime: &Docker, image: &str) -> (Pull, String) {
    match start_error(lab, runtime, &shell(image, "true")).await {
        Reason::ImagePullFailed { image: named, cause, message, is_retried: false } => {
            assert_eq!(named, image);
            (cause, message)
        }
        other => panic!("{other:?}"),
    }
}

async fn check_causes(engine: Engine) {
    let (lab, runtime) = EngineLab::new(engine).await;
    let fake = &lab.fake;
    let good = shell(&lab.image, "true");
    start(&runtime, replica(2), &good).await.unwrap();
    runtime.stop(replica(2)).await.unwrap();

    for (name, expected) in [
        (fake.name("missing"), Pull::NotFound),
        (fake.name("garbage/x"), Pull::Corrupt),
        ("127.0.0.1:1/x:1.0".to_owned(), Pull::Unreachable),
        ("127.0.0.1:1/x:bad:tag".to_owned(), Pull::InvalidName),
    ] {
        let (cause, message) = pull_error(&lab, &runtime, &name).await;
        assert_eq!(cause, expected, "{name}: {message}");
    }
    let other = Image { architecture: "s390x", ..plain() };
    let (cause, message) = pull_error(&lab, &runtime, &fake.put("other", &other)).await;
    assert_eq!(cause, Pull::NoMatchingPlatform, "{message}");

    // Not a layer that the engine has: it would not pull it.
    let layer = packing::busybox().file("etc/other", b"").tar();
    let mut flipped = Image::new(vec![layer], plain().config);
    let name = fake.put("flipped", &flipped);
    let digest = crate::registry::digest_of(&flipped.layers.remove(0).1);
    fake.content.lock().unwrap().blobs.get_mut(&digest).unwrap()[1000] ^= 1;
    let (cause, message) = pull_error(&lab, &runtime, &name).await;
    assert_eq!(cause, Pull::Corrupt, "{message}");

    for (command, expected) in [
        ("nonsense", Reason::CommandNotFound { command: "nonsense".into() }),
        ("/bin/nonsense", Reason::CommandNotFound { command: "/bin/nonsense".into() }),
        ("/www", Reason::CommandNotExecutable { command: "/www".into() }),
    ] {
        let spec = Spec { command: vec![command.to_owned()], ..good.clone() };
        assert_eq!(start_error(&lab, &runtime, &spec).await, expected);
    }

    let options = Options { max_image_bytes: 1000, ..lab.options.clone() };
    let strict = Docker::probe(options).await.unwrap();
    let (cause, message) = pull_error(&lab, &strict, &fake.put("large", &plain())).await;
    assert!(cause == Pull::TooLarge && message.contains("1000 bytes"), "{message}");

    check_timeout(&lab).await;
    check_credentials(&lab).await;
    start(&runtime, replica(1), &good).await.expect("other images still start");
    runtime.stop(replica(1)).await.unwrap();
    assert_eq!(lab.leftovers().await, Vec::<String>::new());
}

async fn check_timeout(lab: &EngineLab) {
    let options = Options { read_timeout: Duration::from_secs(1), ..lab.options.clone() };
    let impatient = Docker::probe(options).await.unwrap();
    let began = base::monotonic();
    let (cause, message) = pull_error(lab, &impatient, &lab.fake.name("hang/x")).await;
    assert!(cause == Pull::TimedOut && began.elapsed().as_secs() < 10, "{message}");
}

async fn check_credentials(lab: &EngineLab) {
    let name = lab.fake.put("secret", &plain());
    // "user:ri?>~~?": characters that differ in the two Base64 alphabets.
    lab.fake.content.lock().unwrap().password = Some("dXNlcjpyaT8+fn4/".to_owned());
    for (password, works) in [("wrong", false), ("ri?>~~?", true)] {
        let mut options = lab.options.clone();
        let credentials = Credentials { username: "user".into(), password: password.into() };
        options.registries.credentials.insert(lab.fake.address.clone(), credentials);
        options.registries.repositories = vec![format!("{}/*", lab.fake.address).parse().unwrap()];
        let runtime = Docker::probe(options).await.unwrap();
        let started = start(&runtime, replica(3), &shell(&name, "true")).await;
        runtime.stop(replica(3)).await.unwrap();
        assert_eq!(started.is_ok(), works, "{started:?}");
        let is_unauthorized = started.err().is_none_or(|why| {
            matches!(why, Reason::ImagePullFailed { cause: Pull::Unauthorized, .. })
        });
        assert!(is_unauthorized);
    }
}

#[tokio::test]
async fn missing_engine_is_reported_with_the_sockets_tried() {
    let socket = std::path::PathBuf::from("/nowhere/docker.sock");
    let options = Options { socket: Some(socket), ..Options::new("x") };
    let why = Docker::probe(options).await.err().unwrap().to_string();
    assert!(why.contains("tried /nowhere/docker.sock (not found)"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_pulls_with_the_credentials_of_the_organization_only() {
    check_own_credentials(Engine::Docker).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_pulls_with_the_credentials_of_the_organization_only() {
    check_own_credentials(Engine::Podman).await;
}

/// The engine stores the images of all organizations: the registry decides at each start.
async fn check_own_credentials(engine: Engine) {
    let (lab, runtime) = EngineLab::new(engine).await;
    let name = lab.fake.put("private", &plain());
    // "ci:s3cret"
    lab.fake.content.lock().unwrap().password = Some("Y2k6czNjcmV0".to_owned());
    let own = |password: &str, registry: &str| {
        let (registry, username) = (registry.to_owned(), "ci".to_owned());
        Some(PullCredentials { registry, username, password: password.to_owned() })
    };
    for (pull, works) in [
        (own("s3cret", &lab.fake.address), true),
        (None, false),
        (own("wrong", &lab.fake.address), false),
        (own("s3cret", "registry.example"), false),
        (own("s3cret", &lab.fake.address), true),
    ] {
        let spec = Spec { pull, ..shell(&name, "sleep 100") };
        let started = start(&runtime, replica(3), &spec).await;
        runtime.stop(replica(3)).await.unwrap();
        match started {
            Ok(_) => assert!(works),
            Err(Reason::ImagePullFailed { cause: Pull::Unauthorized, message, .. }) => {
                assert!(!works && !message.contains("s3cret"), "{message}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(lab.leftovers().await, Vec::<String>::new());
}
