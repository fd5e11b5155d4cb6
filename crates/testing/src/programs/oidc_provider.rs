//! A real OpenID provider (npm `oidc-provider`) as a child process of a test.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use model::Secret;
use port::SsoClient;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Initial access token for client registration.
pub const INITIAL_TOKEN: &str = "initial-token";

/// Startup timeout, for a loaded machine.
const START_TIMEOUT: Duration = Duration::from_mins(2);

/// A running provider; killed on drop.
pub struct OidcProvider {
    /// Its issuer URL.
    pub issuer: String,
    port: u16,
    child: Child,
    _folder: TempDir,
}

impl OidcProvider {
    /// Starts a provider that rotates registration tokens with every change of a client.
    pub fn start() -> Self {
        Self::with(&json!({"port": 0, "generation": 1, "rotates_tokens": true, "claims": claims()}))
    }

    /// Starts a provider with these options.
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
        // Read to the end in a thread, so that the provider never blocks on its output.
        thread::spawn(move || {
            BufReader::new(output).lines().try_for_each(|line| lines.0.send(line))
        });
        let line = lines.1.recv_timeout(START_TIMEOUT).expect("the provider starts").unwrap();
        provider.port = line.parse().expect("the provider prints its port when it is ready");
        provider.issuer = format!("http://127.0.0.1:{}", provider.port);
        provider
    }

    /// Kills it.
    pub fn stop(mut self) -> u16 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.port
    }

    /// Requests a token for a client. The error is the status.
    pub async fn token(&self, client: &SsoClient, algorithm: &str) -> Result<String, u16> {
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

    /// Registers a client, as another user does.
    pub async fn register(&self) -> SsoClient {
        let metadata = json!({"grant_types": ["client_credentials"], "redirect_uris": [],
            "response_types": [], "token_endpoint_auth_method": "client_secret_basic"});
        let request = http().post(format!("{}/reg", self.issuer)).bearer_auth(INITIAL_TOKEN);
        let response = request.json(&metadata).send().await.unwrap();
        let created: Value = response.json().await.unwrap();
        let text =
            |name: &str| created[name].as_str().unwrap_or_else(|| panic!("{created:#}")).to_owned();
        let handle = Secret::new(text("registration_access_token"));
        SsoClient { id: text("client_id"), secret: Secret::new(text("client_secret")), handle }
    }

    /// Ids of all clients.
    pub async fn clients(&self) -> Vec<String> {
        let url = format!("{}/test/clients", self.issuer);
        http().request(Method::GET, url).send().await.unwrap().json().await.unwrap()
    }

    /// Deletes all clients, as another user does.
    pub async fn delete_clients(&self) {
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

/// Claims in every token.
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
    let is_installed = Path::new(&folder).join("oidc-provider").is_dir();
    assert!(is_installed, "PADDOCK_TEST_NODE_MODULES has no oidc-provider: run ./test");
    folder
}
