//! The web-shop example with real Terraform, Consul, Vault, containers and an instance: created,
//! updated, repaired and destroyed, and once more while every component is killed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use testing::programs::{Consul, Gate, Mode, Program, RustyVault};

use super::process::{Client, PASSWORD, Server, Setup};
use super::real::registry::Registry;
use super::real::{http_get, traces};

const KAFKA: &str = include_str!("../../../../catalog/kafka.yaml");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/web-shop");
/// Module part that slows Terraform down.
const PAUSE: &str = r#"
resource "terraform_data" "pause" {
  provisioner "local-exec" { command = "sleep 3" }
}
"#;
/// Long enough for circuit breakers, which open for 30 s, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(4);

/// A server with all external systems of the shop, and an organization.
struct ShopServer {
    server: Server,
    consul: Consul,
    vault: RustyVault,
    _running: Program,
    /// Gates in front of Consul and Vault.
    gates: [Gate; 2],
    image: String,
    template: tempfile::TempDir,
    ann: Client,
    http: testing::Client,
    /// Id of ann's organization: the prefix of its keys and secrets.
    organization: String,
    _registry: Registry,
}

impl ShopServer {
    async fn open() -> Self {
        let (registry, consul) = (Registry::start(), Consul::prepare());
        let (running, vault) = (consul.start(), RustyVault::start().await);
        consul.delete("is-ready").await;
        let image = registry.push("web");
        let way = vault.address().trim_start_matches("http://").parse().unwrap();
        let gates = [Gate::before(consul.address()), Gate::before(way)];
        let setup = Setup::new()
            .arg("--runtime", "embedded")
            .arg("--egress", "false")
            .arg("--allow-address", "127.0.0.0/8");
        let catalog = setup.file("catalog");
        fs::create_dir(&catalog).unwrap();
        fs::write(catalog.join("kafka.yaml"), kafka(&image)).unwrap();
        let server = setup
            .arg("--catalog-dir", catalog.to_str().unwrap())
            .arg("--consul-addr", &format!("http://{}", gates[0].address))
            .arg("--vault-addr", &format!("http://{}", gates[1].address))
            .env("PADDOCK_VAULT_TOKEN", &vault.root)
            .arg("--terraform-program", &terraform())
            .arg("--terraform-templates", "everyone")
            .start();
        let http = server.http_owner("ann").await;
        let organization = http.get("/organization/").await.text("id");
        let ann = server.client();
        ann.run("login --username ann").succeeds();
        let template = copy_of_example();
        Self {
            server,
            consul,
            vault,
            _running: running,
            gates,
            image,
            template,
            ann,
            http,
            organization,
            _registry: registry,
        }
    }

    /// A Consul key of the shop.
    fn key(&self, name: &str) -> String {
        format!("{}/shop/{name}", self.organization)
    }

    /// The Vault path of the shop's secret.
    fn vault_path(&self) -> String {
        format!("secret/{}/shop/db", self.organization)
    }

    fn data(&self) -> PathBuf {
        self.server.setup.file("data")
    }

    /// Kills the server with SIGKILL and starts it again.
    async fn kill_and_restart(&mut self) {
        self.server.kill();
        self.server.restart();
        self.http = self.server.http_as("ann", PASSWORD).await;
        self.ann = self.server.client();
        self.ann.run("login --username ann").succeeds();
    }

    /// Runs a `paddock env` command.
    fn env(&self, line: &str) -> super::process::Outcome {
        self.ann.run(&format!("env {line}"))
    }

    fn parameters(&self) -> String {
        format!("--set image={0} --set migrator={0} --set port=8080", self.image)
    }

    async fn shop(&self) -> Value {
        let found = self.http.get("/api/v1/environments?name=shop").await.expect(200);
        let id = found["items"][0]["id"].as_str().expect("the shop exists").to_owned();
        self.http.get(&format!("/api/v1/environments/{id}")).await.expect(200)
    }

    async fn resource(&self, name: &str) -> Value {
        let shop = self.shop().await;
        let all = shop["resources"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).cloned().unwrap_or(Value::Null)
    }

    /// Polls until the shop satisfies the condition.
    async fn until(&self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let began = base::monotonic();
        loop {
            let now = self.shop().await;
            if condition(&now) {
                return now;
            }
            let is_late = began.elapsed() > TIMEOUT;
            assert!(!is_late, "never {what}: {now:#}\n{}", self.server.stderr());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn until_status(&self, status: &str) -> Value {
        self.until(status, |now| now["status"] == status).await
    }

    /// Waits until a resource is planned or applied.
    async fn until_in_progress(&self, name: &str) {
        let what = format!("{name} in progress");
        self.until(&what, |now| {
            let all = now["resources"].as_array().unwrap();
            let one = all.iter().find(|one| one["name"] == name);
            // If the backend does not respond, the resource stays in planning.
            one.is_some_and(|one| one["status"] == "planning" || one["status"] == "applying")
        })
        .await;
    }

    async fn value(&self, key: &str) -> Option<String> {
        self.consul.get(key).await.map(|pair| pair.value)
    }

    /// Resources that were applied after an event.
    async fn applied_since(&self, seq: i64) -> BTreeSet<String> {
        let path = format!("/api/v1/events?type=resource.applying&after={seq}&limit=1000");
        let events = self.http.get(&path).await.expect(200);
        let events = events["items"].as_array().unwrap();
        events.iter().map(|one| one["data"]["name"].as_str().unwrap().to_owned()).collect()
    }

    async fn last_event(&self) -> i64 {
        let events = self.http.get("/api/v1/events?limit=1000").await.expect(200);
        events["items"].as_array().unwrap().last().map_or(0, |one| one["seq"].as_i64().unwrap())
    }

    /// Asserts that nothing of the shop is left.
    async fn assert_destroyed(&self) {
        assert_eq!(self.consul.keys("").await, Vec::<String>::new());
        assert_eq!(self.vault.secret(&self.vault_path()).await, None);
        assert_eq!(traces::find(&self.data()), Vec::<String>::new());
        let folders =
            fs::read_dir(self.data().join("terraform/templates")).into_iter().flatten().flatten();
        let left: Vec<PathBuf> =
            folders.map(|one| one.path()).filter(|one| holds_state(one)).collect();
        assert_eq!(left, Vec::<PathBuf>::new());
        for list in ["deployments", "instances"] {
            let left = self.http.get(&format!("/api/v1/{list}")).await.expect(200);
            assert_eq!(left["items"], json!([]), "{list}");
        }
        let admin = self.server.http_as("admin", PASSWORD).await;
        for cluster in admin.get("/api/v1/clusters").await.expect(200)["items"].as_array().unwrap()
        {
            assert_eq!(cluster["capacity"]["cpu"]["used"], 0, "{cluster:#}");
        }
    }
}

impl Drop for ShopServer {
    /// Removes containers of a failed test, which would outlive it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.server.kill();
            traces::clean_up(&self.data());
        }
    }
}

fn terraform() -> String {
    std::env::var("PADDOCK_TEST_TERRAFORM").expect("./test sets PADDOCK_TEST_TERRAFORM")
}

fn holds_state(folder: &Path) -> bool {
    folder.join("terraform.tfstate").exists()
}

/// The built-in kind with a local image and a slow start.
fn kafka(image: &str) -> String {
    let there = "image: docker.io/apache/kafka:{{ version }}";
    let here = format!(
        "image: {image}\n    command: [sh, -c, \"sleep 2; exec httpd -f -p 9092 -h /www\"]"
    );
    let text = KAFKA.replacen(there, &here, 1);
    assert_ne!(text, KAFKA, "the kind file has changed");
    text
}

fn copy_of_example() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("network")).unwrap();
    for file in ["template.yaml", "network/main.tf"] {
        fs::copy(Path::new(EXAMPLE).join(file), folder.path().join(file)).unwrap();
    }
    folder
}

#[tokio::test]
async fn shop_is_created_updated_repaired_and_destroyed() {
    let fixture = ShopServer::open().await;
    let folder = fixture.template.path().display().to_string();
    fixture.ann.run(&format!("template publish {folder}")).succeeds().prints(&["web-shop@1.4.0"]);
    let shop = format!("shop --template web-shop@1.4.0 {}", fixture.parameters());
    fixture.env(&format!("plan {shop}")).succeeds().prints(&["network", "web-1", "migrate"]);
    fixture.env(&format!("apply {shop} --wait=240")).succeeds();

    // All resources exist and use outputs of each other.
    let now = fixture.shop().await;
    assert_eq!(
        (&now["status"], &now["status_words"]),
        (&json!("deployed"), &json!("Deployed - OK"))
    );
    assert_eq!(now["progress"], 100);
    let bus = fixture.resource("bus").await;
    let broker = bus["outputs"]["bootstrap_server_host"].as_str().unwrap();
    assert_eq!(fixture.value(&fixture.key("broker")).await.as_deref(), Some(broker));
    let network = fixture.resource("network").await;
    let id = network["outputs"]["id"].as_str().unwrap();
    assert_eq!(fixture.value(&fixture.key("network")).await.as_deref(), Some(id));
    let password =
        fixture.vault.secret(&fixture.vault_path()).await.expect("a secret")["password"].clone();
    let password = password.as_str().unwrap();
    assert_eq!(password.len(), 32);
    for web in ["web-0", "web-1"] {
        let web = fixture.resource(web).await;
        let page = http_get(web["outputs"]["endpoint"].as_str().unwrap()).unwrap();
        assert!(page.contains("hello from a container"), "{page}");
    }
    let entry = now["entry_points"][0].as_str().unwrap();
    assert!(http_get(entry.trim_start_matches("http://").trim_end_matches('/')).is_ok(), "{entry}");
    fixture.env("logs shop migrate").succeeds();

    // Only changed resources are applied again.
    let seq = fixture.last_event().await;
    fixture.env("apply shop --set replicas=3 --wait=240").succeeds();
    assert_eq!(fixture.applied_since(seq).await, BTreeSet::from(["web-2".to_owned()]));

    // Manual changes are detected as drift and repaired on request.
    fixture.consul.put(&fixture.key("broker"), "elsewhere").await;
    fixture.consul.put(&fixture.key("stray"), "not ours").await;
    let web = fixture.resource("web-1").await["link"]["id"].as_str().unwrap().to_owned();
    fixture.http.delete(&format!("/api/v1/deployments/{web}")).await.expect(202);
    fixture.env("drift shop --now").succeeds().prints(&[
        "broker",
        "elsewhere",
        &fixture.key("stray"),
        "web-1",
    ]);
    let seq = fixture.last_event().await;
    fixture.env("repair shop --wait=240").succeeds();
    let repaired = BTreeSet::from(["settings".to_owned(), "web-1".to_owned()]);
    assert_eq!(fixture.applied_since(seq).await, repaired);
    assert_eq!(fixture.value(&fixture.key("broker")).await.as_deref(), Some(broker));

    // The password is stored only in Vault.
    let events = fixture.http.get("/api/v1/events?limit=1000").await.expect(200);
    for (place, text) in [
        ("an event", events.to_string()),
        ("the environment", fixture.shop().await.to_string()),
        ("the log", fixture.server.stderr()),
    ] {
        assert!(!text.contains(password), "{place} contains the password: {text}");
    }

    fixture.consul.delete(&fixture.key("stray")).await;
    fixture.env("destroy shop --yes --wait=240").succeeds();
    fixture.assert_destroyed().await;
}

#[tokio::test]
async fn shop_is_created_although_every_component_is_killed_once() {
    let mut fixture = ShopServer::open().await;
    let module = fixture.template.path().join("network/main.tf");
    fs::write(&module, fs::read_to_string(&module).unwrap() + PAUSE).unwrap();
    let folder = fixture.template.path().display().to_string();
    fixture.ann.run(&format!("template publish {folder}")).succeeds();
    fixture.gates[0].set(Mode::Stall);
    fixture.gates[1].set(Mode::Stall);
    fixture
        .env(&format!("apply shop --template web-shop@1.4.0 {}", fixture.parameters()))
        .succeeds();

    // Kills Terraform and the server while a module is applied.
    fixture.until_in_progress("network").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    kill_terraform(&fixture.data());
    fixture.kill_and_restart().await;
    // Kills the server while Vault does not respond.
    fixture.until_in_progress("db-password").await;
    fixture.kill_and_restart().await;
    fixture.gates[1].set(Mode::Pass);
    // While an instance is provisioned, Consul does not respond, containers start and a job runs.
    fixture.until_in_progress("bus").await;
    fixture.kill_and_restart().await;
    fixture.until_in_progress("settings").await;
    fixture.kill_and_restart().await;
    fixture.gates[0].set(Mode::Pass);
    fixture.until_in_progress("web-0").await;
    fixture.kill_and_restart().await;
    fixture.until_in_progress("migrate").await;
    fixture.kill_and_restart().await;
    let now = fixture
        .until("an end", |now| now["status"] == "deployed" || now["status"] == "failed")
        .await;
    if now["status"] == "failed" {
        fixture.env("retry shop --wait=240").succeeds();
    }
    let now = fixture.until_status("deployed").await;
    assert!(now["resources"].as_array().unwrap().iter().all(|one| one["status"] == "applied"));
    let web: Vec<Value> = fixture.http.get("/api/v1/deployments").await.expect(200)["items"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(web.len(), 3, "two web servers and a job, each once: {web:#?}");
    let bus = fixture.http.get("/api/v1/instances").await.expect(200);
    assert_eq!(bus["items"].as_array().unwrap().len(), 1);

    // Kills the server during destruction.
    fixture.env("destroy shop --yes").succeeds();
    fixture
        .until("in progress", |now| {
            let all = now["resources"].as_array().unwrap();
            all.iter().any(|one| one["status"] == "destroying") || now["status"] == "destroyed"
        })
        .await;
    fixture.kill_and_restart().await;
    let id = fixture.http.get("/api/v1/environments?name=shop&destroyed=true").await.expect(200);
    let id = id["items"][0]["id"].as_str().unwrap().to_owned();
    let began = base::monotonic();
    loop {
        let now = fixture.http.get(&format!("/api/v1/environments/{id}")).await.expect(200);
        if now["status"] == "destroyed" {
            break;
        }
        assert!(began.elapsed() < TIMEOUT, "never destroyed: {now:#}\n{}", fixture.server.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    fixture.assert_destroyed().await;
}

/// Kills every Terraform process with a working directory below `data`.
fn kill_terraform(data: &Path) {
    let inside = data.display().to_string();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(words) = fs::read(process.path().join("cmdline")) else { continue };
        let words = String::from_utf8_lossy(&words);
        let at = fs::read_link(process.path().join("cwd")).unwrap_or_default();
        if words.contains("terraform") && at.display().to_string().starts_with(&inside) {
            let pid = process.file_name().into_string().unwrap();
            Command::new("kill").args(["-9", &pid]).status().unwrap();
        }
    }
}
