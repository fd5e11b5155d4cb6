//! Instances in real containers, created through the fleet manager API.

use std::fs;
use std::path::PathBuf;

use model::Secret;
use port::SsoClient;
use serde_json::json;
use testing::programs::{INITIAL_TOKEN, OidcProvider};

use super::fleet::{DINOSAURS, Fleet};
use super::process::{PASSWORD, Setup};
use super::real::registry::Registry;
use super::real::{http_get, traces};

const DINOSAUR: &str = include_str!("../../../../catalog/dinosaur.yaml");
/// Arguments of `printf` for the page with the text that the kind file sets.
const PAGE: &str = r#"'%s\n' "$MESSAGE""#;
/// Image of the container in the kind file.
const IMAGE: &str = "image: localhost/paddock-page:1";
/// A kind whose instances never become ready.
const SLOTHS: &str = "/api/sloths_mgmt/v1/sloths";

/// A server with the embedded runtime, and an organization.
struct RealFleet {
    fleet: Fleet,
    _registry: Registry,
}

impl RealFleet {
    async fn open(setup: Setup, page: &str) -> Self {
        let registry = Registry::start();
        let image = registry.push("web");
        let setup = setup
            .arg("--runtime", "embedded")
            .arg("--egress", "false")
            .arg("--allow-address", "127.0.0.0/8");
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

    /// Asserts that no container, instance or used capacity is left.
    async fn assert_empty(&self) {
        assert_eq!(traces::find(&self.data()), Vec::<String>::new());
        self.fleet.assert_nothing_held().await;
    }
}

impl Drop for RealFleet {
    /// Removes containers of a failed test, which would outlive it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.fleet.server.kill();
            traces::clean_up(&self.data());
        }
    }
}

/// The built-in kind with an image of the registry, a slow start and the given page.
fn dinosaur(image: &str, page: &str) -> String {
    let script = format!(
        "sleep 2 && mkdir -p /tmp/www && printf {page} > /tmp/www/index.html && \
         exec httpd -f -p 8080 -h /tmp/www"
    );
    let program = format!("image: {image}\n    command:\n      - sh\n      - -c\n      - {script}");
    let text = DINOSAUR.replacen(IMAGE, &program, 1);
    assert_ne!(text, DINOSAUR, "the kind file has changed");
    text.replace("suspension: false", "suspension: true")
}

/// A kind that does not listen on its readiness port.
fn sloth(image: &str) -> String {
    let text = DINOSAUR.replacen(IMAGE, &format!("image: {image}"), 1);
    let text = text.replace("dinosaur", "sloth").replace("DINOSAUR", "SLOTH");
    let never =
        text.replace("{port: 8080, path: /, within: 120}", "{port: 9999, path: /, within: 5}");
    assert_ne!(never, text, "the kind file has changed");
    never.replace("ports: [8080]", "ports: [8080, 9999]")
}

#[tokio::test]
async fn instance_is_ready_survives_a_server_crash_and_is_removed_completely() {
    let mut fixture = RealFleet::open(Setup::new(), PAGE).await;
    let fleet = &mut fixture.fleet;
    let id = fleet.create(DINOSAURS, "rex").await;
    let ready = fleet.until_ready(&id).await;
    // One request only: a ready instance responds immediately.
    let endpoint = ready["endpoints"][0].as_str().unwrap();
    assert!(http_get(endpoint).unwrap().contains("This is rex, a dinosaur."));
    let shown = fleet.ann.get(&format!("{DINOSAURS}/{id}")).await.expect(200);
    assert_eq!((&shown["status"], &shown["kind"]), (&json!("ready"), &json!("Dinosaur")));
    let found = fleet.ann.get(&format!("{DINOSAURS}?search=name%20like%20r%25")).await.expect(200);
    assert_eq!(found["items"][0]["id"], shown["id"]);
    // The instance's hidden deployment is not listed.
    let own = fleet.ann.get("/api/v1/deployments").await.expect(200);
    assert_eq!(own["items"], json!([]));

    // The instance survives a server crash.
    fleet.server.kill();
    assert!(http_get(endpoint).unwrap().contains("This is rex"), "without a server");
    fleet.restart().await;
    let adopted = fleet.until_ready(&id).await;
    assert_eq!(adopted["endpoints"], ready["endpoints"]);
    assert!(http_get(endpoint).unwrap().contains("This is rex"), "with another server");

    assert!(!traces::find(&fixture.data()).is_empty(), "traces are found while containers run");
    fixture.fleet.delete(DINOSAURS, &id).await;
    fixture.fleet.until_deleted(&id).await;
    http_get(endpoint).unwrap_err();
    fixture.assert_empty().await;
}

#[tokio::test]
async fn suspended_instance_does_not_run_and_keeps_its_cluster() {
    let fixture = RealFleet::open(Setup::new(), PAGE).await;
    let fleet = &fixture.fleet;
    let id = fleet.create(DINOSAURS, "rex").await;
    let ready = fleet.until_ready(&id).await;
    let endpoint = ready["endpoints"][0].as_str().unwrap();
    http_get(endpoint).unwrap();
    let admin = fleet.server.http_as("admin", PASSWORD).await;
    let path = format!("/api/dinosaurs_mgmt/v1/admin/dinosaurs/{id}");
    admin.patch(&path, json!({"suspended": true})).await.expect(200);
    let suspended = fleet.until(&id, "suspended", "").await;
    assert_eq!(suspended["cluster_id"], ready["cluster_id"]);
    http_get(endpoint).unwrap_err();
    assert_eq!(traces::find(&fixture.data()), Vec::<String>::new(), "no container runs");
    admin.patch(&path, json!({"suspended": false})).await.expect(200);
    let again = fleet.until_ready(&id).await;
    assert!(http_get(again["endpoints"][0].as_str().unwrap()).unwrap().contains("This is rex"));
    fleet.delete(DINOSAURS, &id).await;
    fleet.until_deleted(&id).await;
    fixture.assert_empty().await;
}

#[tokio::test]
async fn instance_that_never_responds_fails_with_reason() {
    let fixture = RealFleet::open(Setup::new(), PAGE).await;
    let fleet = &fixture.fleet;
    let id = fleet.create(SLOTHS, "sid").await;
    let failed = fleet.until(&id, "failed", "").await;
    let reason = failed["status_reason"].as_str().unwrap();
    assert!(reason.contains("9999") && reason.contains('5'), "{reason}");
    let shown = fleet.ann.get(&format!("{SLOTHS}/{id}")).await.expect(200);
    assert_eq!(shown["failed_reason"], failed["status_reason"]);
    // Other instances are not affected.
    let rex = fleet.create(DINOSAURS, "rex").await;
    fleet.until_ready(&rex).await;
    for (kind, id) in [(SLOTHS, &id), (DINOSAURS, &rex)] {
        fleet.delete(kind, id).await;
        fleet.until_deleted(id).await;
    }
    fixture.assert_empty().await;
}

#[tokio::test]
async fn instance_sso_client_works_until_deletion() {
    let provider = OidcProvider::start();
    let setup = Setup::new()
        .arg("--sso-issuer", &provider.issuer)
        .env("PADDOCK_SSO_REGISTRATION_TOKEN", INITIAL_TOKEN);
    // The page shows the credentials so that the test can use them.
    let page = "'%s %s\\n' \"$OIDC_CLIENT_ID\" \"$OIDC_CLIENT_SECRET\"";
    let fixture = RealFleet::open(setup, page).await;
    let fleet = &fixture.fleet;
    let id = fleet.create(DINOSAURS, "rex").await;
    let ready = fleet.until_ready(&id).await;
    let page = http_get(ready["endpoints"][0].as_str().unwrap()).unwrap();
    let (client, secret) = page.lines().last().unwrap().split_once(' ').unwrap();
    assert_eq!(provider.clients().await, [client]);
    let client =
        SsoClient { id: client.into(), secret: Secret::new(secret), handle: Secret::new("") };
    provider.token(&client, "RS256").await.unwrap();

    // The secret appears nowhere else.
    let events = fleet.ann.get("/api/v1/events?limit=1000").await.expect(200);
    let deployed = fleet.server.http_as("admin", PASSWORD).await.get("/api/v1/deployments").await;
    for (place, text) in [
        ("an event", events.to_string()),
        ("the instance", ready.to_string()),
        ("a deployment", deployed.json.to_string()),
        ("the log", fleet.server.stderr()),
    ] {
        assert!(!text.contains(secret), "{place} contains the secret: {text}");
    }

    fleet.delete(DINOSAURS, &id).await;
    fleet.until_deleted(&id).await;
    assert_eq!(provider.token(&client, "RS256").await, Err(401));
    assert_eq!(provider.clients().await, Vec::<String>::new());
    fixture.assert_empty().await;
}
