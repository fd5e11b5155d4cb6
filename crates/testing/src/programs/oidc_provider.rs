//! A real OpenID provider (npm `oidc-provider`), a child of the test that starts it.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use model::Secret;
use port::Client;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

/// What allows clients to be registered with it.
pub const INITIAL_TOKEN: &str = "initial-token";

/// How long it may take to start, on a machine that has much else to do.
const START_WITHIN: Duration = Duration::from_mins(2);

/// A running provider; it ends with this.
pub struct OidcProvider {
    /// Its name, and its address.
    pub issuer: String,
    port: u16,
    child: Child,
    _folder: TempDir,
}

impl OidcProvider {
    /// Starts one whose clients' tokens change with every change of a client.
    pub fn start() -> Self {
        Self::with(&json!({"port": 0, "generation": 1, "rotates_tokens": true, "claims": claims()}))
    }

    /// Starts one with these options.
    pub fn with(options: &Value) -> Self {
        let folder = TempDir::new().unwrap();
        let mut child = Command::new("node")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/programs/oidc-provider.mjs"))
            .arg(options.to_string())
            .env("PADDOCK_TEST_NODE_MODULES", node_modules())
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test needs node: run ./test, which installs it");
        let (output, lines) = (child.stdout.take().unwrap(), mpsc::channel());
        let mut provider = Self { issuer: String::new(), port: 0, child, _folder: folder };
        // Read to its end in a thread: it must neither hang this one, nor fail to say something.
        thread::spawn(move || {
            BufReader::new(output).lines().try_for_each(|line| lines.0.send(line))
        });
        let line = lines.1.recv_timeout(START_WITHIN).expect("the provider starts").unwrap();
        provider.port = line.parse().expect("the provider says its port when it is ready");
        provider.issuer = format!("http://127.0.0.1:{}", provider.port);
        provider
    }

    /// Ends it, as a crash would.
    pub fn stop(mut self) -> u16 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.port
    }

    /// A token for a client, or the status of the refusal.
    pub async fn token(&self, client: &Client, algorithm: &str) -> Result<String, u16> {
        let request = http()
            .post(format!("{}/token", self.issuer))
            .basic_auth(&client.id, Some(client.secret.reveal()))
            .form(&[
                ("grant_type", "client_credentials"),
                ("resource", &format!("urn:api:{algorithm}")),
            ]);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = response.json().await.unwrap();
        body["access_token"].as_str().map(String::from).ok_or(status)
    }

    /// A client that somebody has registered.
    pub async fn register(&self) -> Client {
        let wanted = json!({"grant_types": ["client_credentials"], "redirect_uris": [],
            "response_types": [], "token_endpoint_auth_method": "client_secret_basic"});
        let request = http().post(format!("{}/reg", self.issuer)).bearer_auth(INITIAL_TOKEN);
        let response = request.json(&wanted).send().await.unwrap();
        let made: Value = response.json().await.unwrap();
        let text =
            |name: &str| made[name].as_str().unwrap_or_else(|| panic!("{made:#}")).to_owned();
        let handle = Secret::new(text("registration_access_token"));
        Client { id: text("client_id"), secret: Secret::new(text("client_secret")), handle }
    }

    /// The ids of all its clients.
    pub async fn clients(&self) -> Vec<String> {
        let url = format!("{}/test/clients", self.issuer);
        http().request(Method::GET, url).send().await.unwrap().json().await.unwrap()
    }

    /// Has it forget all its clients, as if somebody had removed them.
    pub async fn forget(&self) {
        let url = format!("{}/test/clients", self.issuer);
        let done = http().request(Method::DELETE, url).send().await.unwrap();
        assert!(done.status().is_success(), "{done:?}");
    }
}

impl Drop for OidcProvider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What it says in every token about the bearer.
pub fn claims() -> Value {
    json!({"preferred_username": "ann", "rh-org-id": "17", "realm_access": {"roles": ["admin"]}})
}

fn http() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

fn node_modules() -> String {
    let folder = env::var("PADDOCK_TEST_NODE_MODULES")
        .expect("this test needs npm's oidc-provider in PADDOCK_TEST_NODE_MODULES: run ./test");
    let is_there = Path::new(&folder).join("oidc-provider").is_dir();
    assert!(is_there, "there is no oidc-provider in PADDOCK_TEST_NODE_MODULES: run ./test");
    folder
}
