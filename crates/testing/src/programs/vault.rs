//! RustyVault, a server with Vault's API: KV version 1 at `secret`, and whatever a test mounts.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Program, START_TIMEOUT, find, free_port};

/// A running server, unsealed.
pub struct RustyVault {
    /// The root token.
    pub root: String,
    key: String,
    port: u16,
    http: Client,
    _program: Program,
    _folder: TempDir,
}

impl RustyVault {
    /// Starts a server, initialises and unseals it.
    pub async fn start() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (folder, port) = (TempDir::with_prefix("paddock-vault-").unwrap(), free_port());
        let at = folder.path().display().to_string();
        let configuration = format!(
            "storage \"file\" {{\n path = \"{at}/data\"\n}}\n\
             listener \"tcp\" {{\n address = \"127.0.0.1:{port}\"\n tls_disable = \"true\"\n}}\n\
             api_addr = \"http://127.0.0.1:{port}\"\nlog_level = \"warn\"\n\
             pid_file = \"{at}/pid\"\nwork_dir = \"{at}/work\"\ndaemon = false\n"
        );
        std::fs::write(folder.path().join("config.hcl"), configuration).unwrap();
        let mut rvault = Command::new(find("rvault", "PADDOCK_TEST_VAULT"));
        rvault.arg("server").arg(format!("--config={at}/config.hcl"));
        let program = Program::start(&rvault, folder.path());
        let is_listening = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        let program = program.wait_until(is_listening);
        let http = Client::builder().tls_certs_only([]).build().unwrap();
        let (root, key) = Default::default();
        let mut server = Self { root, key, port, http, _program: program, _folder: folder };
        server.set_up().await;
        server
    }

    async fn set_up(&mut self) {
        let shares = json!({"secret_shares": 1, "secret_threshold": 1});
        let keys = self.call(Method::PUT, "sys/init", &shares).await;
        keys["keys"][0].as_str().unwrap().clone_into(&mut self.key);
        keys["root_token"].as_str().unwrap().clone_into(&mut self.root);
        self.unseal().await;
    }

    /// Unseals it and waits until it serves.
    pub async fn unseal(&self) {
        self.call(Method::PUT, "sys/unseal", &json!({"key": self.key})).await;
        let began = base::monotonic();
        while self.call(Method::GET, "sys/seal-status", &Value::Null).await["sealed"] != false {
            assert!(began.elapsed() < START_TIMEOUT, "it stays sealed");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Seals it.
    pub async fn seal(&self) {
        self.call(Method::PUT, "sys/seal", &Value::Null).await;
    }

    /// Its URL.
    pub fn address(&self) -> String {
        format!("http://{}", SocketAddr::from(([127, 0, 0, 1], self.port)))
    }

    /// Sends a request with the root token; null for a response without a body.
    pub async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let (status, response) = self.try_call(method.clone(), path, body).await;
        assert!(status < 300, "{method} {path}: {status} {response}");
        response
    }

    /// The same for any status; returns the status and the response.
    pub async fn try_call(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let url = format!("{}/v1/{path}", self.address());
        let mut request = self.http.request(method, url).header("X-Vault-Token", &self.root);
        if !body.is_null() {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        let (status, bytes) = (response.status().as_u16(), response.bytes().await.unwrap());
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// The secret at a path of the KV engine, if any.
    pub async fn secret(&self, path: &str) -> Option<Value> {
        let (status, mut response) = self.try_call(Method::GET, path, &Value::Null).await;
        assert!(matches!(status, 200 | 404), "{path}: {status} {response}");
        (status == 200).then(|| response["data"].take())
    }

    /// Mounts PKI with a root certificate at `pki`, and a role for names below `example.test`.
    pub async fn mount_pki(&self, role: &str) {
        self.call(Method::POST, "sys/mounts/pki", &json!({"type": "pki"})).await;
        let root = json!({"common_name": "Test Root", "ttl": "87600h", "key_type": "rsa", "key_bits": 2048});
        let generate = ["pki", "root", "generate", "exported"].join("/");
        self.call(Method::POST, &generate, &root).await;
        let rules = json!({
            "ttl": "720h", "max_ttl": "720h", "key_type": "rsa", "key_bits": 2048,
            "allowed_domains": "example.test", "allow_subdomains": true, "allow_any_name": true,
            "no_store": false, "generate_lease": false,
        });
        self.call(Method::POST, &format!("pki/roles/{role}"), &rules).await;
    }

    /// Mounts AppRole with one role. Returns its id and a secret id.
    pub async fn mount_approle(&self, role: &str) -> (String, String) {
        self.call(Method::POST, "sys/auth/approle", &json!({"type": "approle"})).await;
        let at = format!("auth/approle/role/{role}");
        let rules = json!({"token_policies": "default", "token_ttl": 3600, "token_max_ttl": 14400});
        self.call(Method::POST, &at, &rules).await;
        let id = self.call(Method::GET, &format!("{at}/role-id"), &Value::Null).await;
        let secret = self.call(Method::POST, &format!("{at}/secret-id"), &json!({})).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&id["data"]["role_id"]), text(&secret["data"]["secret_id"]))
    }
}
