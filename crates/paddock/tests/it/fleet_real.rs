//! An instance that really runs: asked for as the fleet managers' users do, from an image to a page with
//! its name, and to nothing again.

use std::fs;
use std::path::PathBuf;

use model::Secret;
use port::Client;
use serde_json::json;
use testing::programs::{INITIAL_TOKEN, OidcProvider};

use super::fleet::{DINOSAURS, Fleet};
use super::process::{PASSWORD, Setup};
use super::real::registry::Registry;
use super::real::{ask, traces};

const DINOSAUR: &str = include_str!("../../../../catalog/dinosaur.yaml");
/// What the page says, in the file.
const PAGE: &str = r#"'This is %s, a dinosaur.\n' "$DINOSAUR_NAME""#;
/// A kind whose instances are never ready.
const SLOTHS: &str = "/api/sloths_mgmt/v1/sloths";

/// A server that really runs containers, and somebody who wants instances of it.
struct Park {
    fleet: Fleet,
    _registry: Registry,
}

impl Park {
    async fn open(setup: Setup, page: &str) -> Self {
        let registry = Registry::start();
        let image = registry.push("web");
        let setup = setup.arg("--runtime", "embedded").arg("--egress", "false");
        let catalog = setup.file("catalog");
        fs::create_dir(&catalog).unwrap();
        fs::write(catalog.join("dinosaur.yaml"), dinosaur(&image, page)).unwrap();
        fs::write(catalog.join("sloth.yaml"), sloth(&image)).unwrap();
        let setup = setup.arg("--catalog-dir", catalog.to_str().unwrap());
        Self { fleet: Fleet::start(setup).await, _registry: registry }
    }

    fn data(&self) -> PathBuf {
        self.fleet.server.setup.file("data")
    }

    /// Nothing is left on this machine, and nothing is held of its cluster.
    async fn assert_empty(&self) {
        assert_eq!(traces::of(&self.data()), Vec::<String>::new());
        self.fleet.assert_nothing_held().await;
    }
}

impl Drop for Park {
    /// A test that failed must not leave containers behind: they would outlive it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.fleet.server.kill();
            traces::end(&self.data());
        }
    }
}

/// The kind that ships, with an image that is to be had, a program that takes its time, and this page.
fn dinosaur(image: &str, page: &str) -> String {
    let text = DINOSAUR.replace("docker.io/library/busybox:1.36", image);
    let slow = text.replacen("- mkdir -p /tmp/www", "- sleep 2 && mkdir -p /tmp/www", 1);
    let shown = slow.replacen(PAGE, page, 1);
    assert!(slow != text && shown.contains(page), "its command is where it was");
    shown.replace("suspension: false", "suspension: true")
}

/// Another that listens where nobody looks.
fn sloth(image: &str) -> String {
    let text = DINOSAUR.replace("docker.io/library/busybox:1.36", image);
    let text = text.replace("dinosaur", "sloth").replace("DINOSAUR", "SLOTH");
    let never =
        text.replace("{port: 8080, path: /, within: 120}", "{port: 9999, path: /, within: 5}");
    assert_ne!(never, text, "its readiness is where it was");
    never.replace("ports: [8080]", "ports: [8080, 9999]")
}

#[tokio::test]
async fn a_dinosaur_is_ready_when_it_answers_survives_the_server_and_leaves_nothing() {
    let mut park = Park::open(Setup::new(), PAGE).await;
    let fleet = &mut park.fleet;
    let id = fleet.make(DINOSAURS, "rex").await;
    let ready = fleet.until_ready(&id).await;
    // Asked once: ready means that it answers now.
    let endpoint = ready["endpoints"][0].as_str().unwrap();
    assert!(ask(endpoint).unwrap().contains("This is rex, a dinosaur."));
    let shown = fleet.ann.get(&format!("{DINOSAURS}/{id}")).await.expect(200);
    assert_eq!((&shown["status"], &shown["kind"]), (&json!("ready"), &json!("Dinosaur")));
    let found = fleet.ann.get(&format!("{DINOSAURS}?search=name%20like%20r%25")).await.expect(200);
    assert_eq!(found["items"][0]["id"], shown["id"]);
    // What holds its capacity is not a deployment of its owner's.
    let own = fleet.ann.get("/api/v1/deployments").await.expect(200);
    assert_eq!(own["items"], json!([]));

    // The server dies; the instance does not notice.
    fleet.server.kill();
    assert!(ask(endpoint).unwrap().contains("This is rex"), "without a server");
    fleet.again().await;
    let adopted = fleet.until_ready(&id).await;
    assert_eq!(adopted["endpoints"], ready["endpoints"]);
    assert!(ask(endpoint).unwrap().contains("This is rex"), "with another server");

    assert!(!traces::of(&park.data()).is_empty(), "the search finds what there is");
    park.fleet.delete(DINOSAURS, &id).await;
    park.fleet.until_gone(&id).await;
    ask(endpoint).unwrap_err();
    park.assert_empty().await;
}

#[tokio::test]
async fn one_that_rests_does_not_run_and_keeps_its_place() {
    let park = Park::open(Setup::new(), PAGE).await;
    let fleet = &park.fleet;
    let id = fleet.make(DINOSAURS, "rex").await;
    let ready = fleet.until_ready(&id).await;
    let endpoint = ready["endpoints"][0].as_str().unwrap();
    ask(endpoint).unwrap();
    let admin = fleet.server.http_as("admin", PASSWORD).await;
    let path = format!("/api/dinosaurs_mgmt/v1/admin/dinosaurs/{id}");
    admin.patch(&path, json!({"suspended": true})).await.expect(200);
    let rests = fleet.until(&id, "suspended", "").await;
    assert_eq!(rests["cluster_id"], ready["cluster_id"]);
    ask(endpoint).unwrap_err();
    assert_eq!(traces::of(&park.data()), Vec::<String>::new(), "nothing of it runs");
    admin.patch(&path, json!({"suspended": false})).await.expect(200);
    let again = fleet.until_ready(&id).await;
    assert!(ask(again["endpoints"][0].as_str().unwrap()).unwrap().contains("This is rex"));
    fleet.delete(DINOSAURS, &id).await;
    fleet.until_gone(&id).await;
    park.assert_empty().await;
}

#[tokio::test]
async fn one_that_never_answers_has_failed_and_says_why() {
    let park = Park::open(Setup::new(), PAGE).await;
    let fleet = &park.fleet;
    let id = fleet.make(SLOTHS, "sid").await;
    let failed = fleet.until(&id, "failed", "").await;
    let reason = failed["status_reason"].as_str().unwrap();
    assert!(reason.contains("9999") && reason.contains('5'), "{reason}");
    let shown = fleet.ann.get(&format!("{SLOTHS}/{id}")).await.expect(200);
    assert_eq!(shown["failed_reason"], failed["status_reason"]);
    // Its neighbours are none the worse for it.
    let rex = fleet.make(DINOSAURS, "rex").await;
    fleet.until_ready(&rex).await;
    for (kind, id) in [(SLOTHS, &id), (DINOSAURS, &rex)] {
        fleet.delete(kind, id).await;
        fleet.until_gone(id).await;
    }
    park.assert_empty().await;
}

#[tokio::test]
async fn an_instance_can_sign_in_with_what_it_was_given_until_it_is_deleted() {
    let provider = OidcProvider::start();
    let setup = Setup::new()
        .arg("--sso-issuer", &provider.issuer)
        .env("PADDOCK_SSO_REGISTRATION_TOKEN", INITIAL_TOKEN);
    // It shows what nobody should show, so that the test can try it.
    let page = "'%s %s\\n' \"$OIDC_CLIENT_ID\" \"$OIDC_CLIENT_SECRET\"";
    let park = Park::open(setup, page).await;
    let fleet = &park.fleet;
    let id = fleet.make(DINOSAURS, "rex").await;
    let ready = fleet.until_ready(&id).await;
    let told = ask(ready["endpoints"][0].as_str().unwrap()).unwrap();
    let (client, secret) = told.lines().last().unwrap().split_once(' ').unwrap();
    assert_eq!(provider.clients().await, [client]);
    let client = Client { id: client.into(), secret: Secret::new(secret), handle: Secret::new("") };
    provider.token(&client, "RS256").await.unwrap();

    // Nobody else learns it.
    let events = fleet.ann.get("/api/v1/events?limit=1000").await.expect(200);
    let deployed = fleet.server.http_as("admin", PASSWORD).await.get("/api/v1/deployments").await;
    for (place, text) in [
        ("an event", events.to_string()),
        ("the instance", ready.to_string()),
        ("a deployment", deployed.json.to_string()),
        ("the log", fleet.server.stderr()),
    ] {
        assert!(!text.contains(secret), "{place} says it: {text}");
    }

    fleet.delete(DINOSAURS, &id).await;
    fleet.until_gone(&id).await;
    assert_eq!(provider.token(&client, "RS256").await, Err(401));
    assert_eq!(provider.clients().await, Vec::<String>::new());
    park.assert_empty().await;
}
