//! The shop of the examples, for real: Terraform, Consul, Vault, containers and an instance; made, changed,
//! broken by hand, mended, and taken down to nothing. And once more while everybody is killed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use testing::programs::{Consul, Gate, Mode, Program, RustyVault};

use super::process::{Client, PASSWORD, Server, Setup};
use super::real::registry::Registry;
use super::real::{ask, traces};

const KAFKA: &str = include_str!("../../../../catalog/kafka.yaml");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/web-shop");
/// How a Terraform that takes its time is made of one that does not.
const PAUSE: &str = r#"
resource "terraform_data" "pause" {
  provisioner "local-exec" { command = "sleep 3" }
}
"#;
/// The machine may be busy, and breakers open for half a minute.
const PATIENCE: Duration = Duration::from_mins(4);

/// A server with all that the shop needs, and somebody who wants one.
struct Street {
    server: Server,
    consul: Consul,
    vault: RustyVault,
    _running: Program,
    /// The ways to Consul and Vault.
    gates: [Gate; 2],
    image: String,
    template: tempfile::TempDir,
    ann: Client,
    http: testing::Client,
    _registry: Registry,
}

impl Street {
    async fn open() -> Self {
        let (registry, consul) = (Registry::start(), Consul::prepare());
        let (running, vault) = (consul.start(), RustyVault::start().await);
        consul.delete("is-ready").await;
        let image = registry.push("web");
        let way = vault.address().trim_start_matches("http://").parse().unwrap();
        let gates = [Gate::before(consul.address()), Gate::before(way)];
        let setup = Setup::new().arg("--runtime", "embedded").arg("--egress", "false");
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
            _registry: registry,
        }
    }

    fn data(&self) -> PathBuf {
        self.server.setup.file("data")
    }

    /// Ends the server as a power cut would, and starts it again.
    async fn cut_power(&mut self) {
        self.server.kill();
        self.server.again();
        self.http = self.server.http_as("ann", PASSWORD).await;
        self.ann = self.server.client();
        self.ann.run("login --username ann").succeeds();
    }

    /// Runs a command of the client on this shop.
    fn env(&self, line: &str) -> super::process::Outcome {
        self.ann.run(&format!("env {line}"))
    }

    fn parameters(&self) -> String {
        format!("--set image={0} --set migrator={0} --set port=8080", self.image)
    }

    async fn shop(&self) -> Value {
        let found = self.http.get("/api/v1/environments?name=shop").await.expect(200);
        let id = found["items"][0]["id"].as_str().expect("there is a shop").to_owned();
        self.http.get(&format!("/api/v1/environments/{id}")).await.expect(200)
    }

    async fn resource(&self, name: &str) -> Value {
        let shop = self.shop().await;
        let all = shop["resources"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).cloned().unwrap_or(Value::Null)
    }

    /// Looks until it is so; else fails with what was seen last.
    async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let began = base::monotonic();
        loop {
            let now = self.shop().await;
            if is(&now) {
                return now;
            }
            let is_late = began.elapsed() > PATIENCE;
            assert!(!is_late, "never {what}: {now:#}\n{}", self.server.stderr());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn until_status(&self, status: &str) -> Value {
        self.until(status, |now| now["status"] == status).await
    }

    /// Waits until a resource is being carried out.
    async fn until_under_way(&self, name: &str) {
        let what = format!("{name} under way");
        self.until(&what, |now| {
            let all = now["resources"].as_array().unwrap();
            let one = all.iter().find(|one| one["name"] == name);
            // Who does not answer can't even be asked what would change.
            one.is_some_and(|one| one["status"] == "planning" || one["status"] == "applying")
        })
        .await;
    }

    async fn value(&self, key: &str) -> Option<String> {
        self.consul.get(key).await.map(|pair| pair.value)
    }

    /// The names of resources whose executors were asked to make something after that event.
    async fn made_since(&self, seq: i64) -> BTreeSet<String> {
        let path = format!("/api/v1/events?type=resource.applying&after={seq}&limit=1000");
        let events = self.http.get(&path).await.expect(200);
        let events = events["items"].as_array().unwrap();
        events.iter().map(|one| one["data"]["name"].as_str().unwrap().to_owned()).collect()
    }

    async fn last_event(&self) -> i64 {
        let events = self.http.get("/api/v1/events?limit=1000").await.expect(200);
        events["items"].as_array().unwrap().last().map_or(0, |one| one["seq"].as_i64().unwrap())
    }

    /// Nothing is left of it anywhere.
    async fn assert_gone(&self) {
        assert_eq!(self.consul.keys("").await, Vec::<String>::new());
        assert_eq!(self.vault.secret("secret/shop/db").await, None);
        assert_eq!(traces::of(&self.data()), Vec::<String>::new());
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

impl Drop for Street {
    /// A test that failed must not leave containers behind: they would outlive it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.server.kill();
            traces::end(&self.data());
        }
    }
}

fn terraform() -> String {
    std::env::var("PADDOCK_TEST_TERRAFORM").expect("./test sets PADDOCK_TEST_TERRAFORM")
}

fn holds_state(folder: &Path) -> bool {
    folder.join("terraform.tfstate").exists()
}

/// The kind that ships, with an image that is to be had and a program that takes its time.
fn kafka(image: &str) -> String {
    let there = "image: docker.io/apache/kafka:{{ version }}";
    let here = format!(
        "image: {image}\n    command: [sh, -c, \"sleep 2; exec httpd -f -p 9092 -h /www\"]"
    );
    let text = KAFKA.replacen(there, &here, 1);
    assert_ne!(text, KAFKA, "its image is where it was");
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
async fn it_is_made_changed_broken_mended_and_taken_down() {
    let street = Street::open().await;
    let folder = street.template.path().display().to_string();
    street.ann.run(&format!("template publish {folder}")).succeeds().prints(&["web-shop@1.4.0"]);
    let shop = format!("shop --template web-shop@1.4.0 {}", street.parameters());
    street.env(&format!("plan {shop}")).succeeds().prints(&["network", "web-1", "migrate"]);
    street.env(&format!("apply {shop} --wait=240")).succeeds();

    // It is there, all of it, and one part knows of another.
    let now = street.shop().await;
    assert_eq!(
        (&now["status"], &now["status_words"]),
        (&json!("deployed"), &json!("Deployed - OK"))
    );
    assert_eq!(now["progress"], 100);
    let bus = street.resource("bus").await;
    let broker = bus["outputs"]["bootstrap_server_host"].as_str().unwrap();
    assert_eq!(street.value("shop/broker").await.as_deref(), Some(broker));
    let network = street.resource("network").await;
    let id = network["outputs"]["id"].as_str().unwrap();
    assert_eq!(street.value("shop/network").await.as_deref(), Some(id));
    let password =
        street.vault.secret("secret/shop/db").await.expect("a secret")["password"].clone();
    let password = password.as_str().unwrap();
    assert_eq!(password.len(), 32);
    for web in ["web-0", "web-1"] {
        let web = street.resource(web).await;
        let page = ask(web["outputs"]["endpoint"].as_str().unwrap()).unwrap();
        assert!(page.contains("hello from a container"), "{page}");
    }
    let entry = now["entry_points"][0].as_str().unwrap();
    assert!(ask(entry.trim_start_matches("http://").trim_end_matches('/')).is_ok(), "{entry}");
    street.env("logs shop migrate").succeeds();

    // Only what is touched runs again.
    let seq = street.last_event().await;
    street.env("apply shop --set replicas=3 --wait=240").succeeds();
    assert_eq!(street.made_since(seq).await, BTreeSet::from(["web-2".to_owned()]));

    // What is changed by hand is seen, and mended when that is asked for.
    street.consul.put("shop/broker", "elsewhere").await;
    street.consul.put("shop/stray", "not ours").await;
    let web = street.resource("web-1").await["link"]["id"].as_str().unwrap().to_owned();
    street.http.delete(&format!("/api/v1/deployments/{web}")).await.expect(202);
    street.env("drift shop --now").succeeds().prints(&[
        "broker",
        "elsewhere",
        "shop/stray",
        "web-1",
    ]);
    let seq = street.last_event().await;
    street.env("repair shop --wait=240").succeeds();
    let mended = BTreeSet::from(["settings".to_owned(), "web-1".to_owned()]);
    assert_eq!(street.made_since(seq).await, mended);
    assert_eq!(street.value("shop/broker").await.as_deref(), Some(broker));

    // Nobody but Vault knows the password.
    let events = street.http.get("/api/v1/events?limit=1000").await.expect(200);
    for (place, text) in [
        ("an event", events.to_string()),
        ("the environment", street.shop().await.to_string()),
        ("the log", street.server.stderr()),
    ] {
        assert!(!text.contains(password), "{place} says it: {text}");
    }

    street.consul.delete("shop/stray").await;
    street.env("destroy shop --yes --wait=240").succeeds();
    street.assert_gone().await;
}

#[tokio::test]
async fn everybody_is_killed_in_the_middle_once_and_it_is_made_all_the_same() {
    let mut street = Street::open().await;
    let module = street.template.path().join("network/main.tf");
    fs::write(&module, fs::read_to_string(&module).unwrap() + PAUSE).unwrap();
    let folder = street.template.path().display().to_string();
    street.ann.run(&format!("template publish {folder}")).succeeds();
    street.gates[0].set(Mode::Stall);
    street.gates[1].set(Mode::Stall);
    street.env(&format!("apply shop --template web-shop@1.4.0 {}", street.parameters())).succeeds();

    // Terraform itself and the server, while a module is applied.
    street.until_under_way("network").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    kill_terraform(&street.data());
    street.cut_power().await;
    // The server, while Vault does not answer.
    street.until_under_way("db-password").await;
    street.cut_power().await;
    street.gates[1].set(Mode::Pass);
    // While an instance gets ready, while Consul does not answer, while containers start, and while a
    // program runs.
    street.until_under_way("bus").await;
    street.cut_power().await;
    street.until_under_way("settings").await;
    street.cut_power().await;
    street.gates[0].set(Mode::Pass);
    street.until_under_way("web-0").await;
    street.cut_power().await;
    street.until_under_way("migrate").await;
    street.cut_power().await;
    let now = street
        .until("an end", |now| now["status"] == "deployed" || now["status"] == "failed")
        .await;
    if now["status"] == "failed" {
        street.env("retry shop --wait=240").succeeds();
    }
    let now = street.until_status("deployed").await;
    assert!(now["resources"].as_array().unwrap().iter().all(|one| one["status"] == "applied"));
    let web: Vec<Value> = street.http.get("/api/v1/deployments").await.expect(200)["items"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(web.len(), 3, "two web servers and a program, each once: {web:#?}");
    let bus = street.http.get("/api/v1/instances").await.expect(200);
    assert_eq!(bus["items"].as_array().unwrap().len(), 1);

    // And while it is taken down.
    street.env("destroy shop --yes").succeeds();
    street
        .until("under way", |now| {
            let all = now["resources"].as_array().unwrap();
            all.iter().any(|one| one["status"] == "destroying") || now["status"] == "destroyed"
        })
        .await;
    street.cut_power().await;
    let id = street.http.get("/api/v1/environments?name=shop&destroyed=true").await.expect(200);
    let id = id["items"][0]["id"].as_str().unwrap().to_owned();
    let began = base::monotonic();
    loop {
        let now = street.http.get(&format!("/api/v1/environments/{id}")).await.expect(200);
        if now["status"] == "destroyed" {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "never destroyed: {now:#}\n{}", street.server.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    street.assert_gone().await;
}

/// Kills every Terraform that works below this directory.
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
