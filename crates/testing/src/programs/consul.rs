//! Consul: one server with its data in a folder.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use data_encoding::BASE64;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Program, find, free_port};

/// Management token, where ACLs are enabled.
pub const ROOT_TOKEN: &str = "5f3c0c4e-0f0e-4b8e-9d5e-6a1d1f0b7a11";

/// Folder and ports of a server, which may run or not.
pub struct Consul {
    folder: TempDir,
    port: u16,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Its modify index.
    pub index: u64,
}

impl Consul {
    /// Prepares a server without ACLs, without starting it.
    pub fn prepare() -> Self {
        Self::with(&json!({}))
    }

    /// Prepares a server with ACLs.
    pub fn with_acl() -> Self {
        let tokens = json!({"master": ROOT_TOKEN});
        Self::with(&json!({"enabled": true, "default_policy": "deny", "tokens": tokens}))
    }

    fn with(acl: &Value) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = TempDir::with_prefix("paddock-consul-").unwrap();
        let [port, lan, wan, server] = [(); 4].map(|()| free_port());
        let configuration = json!({
            "server": true, "bootstrap": true, "node_name": "one", "datacenter": "dc1",
            "data_dir": folder.path().join("data"), "bind_addr": "127.0.0.1",
            "client_addr": "127.0.0.1", "disable_update_check": true, "acl": acl,
            "performance": {"raft_multiplier": 1},
            "ports": {"http": port, "serf_lan": lan, "serf_wan": wan, "server": server,
                      "grpc": -1, "dns": -1, "https": -1},
        });
        std::fs::write(folder.path().join("consul.json"), configuration.to_string()).unwrap();
        Self { folder, port }
    }

    /// Starts it, on the same port and with its data.
    pub fn start(&self) -> Program {
        let mut consul = Command::new(find("consul", "PADDOCK_TEST_CONSUL"));
        consul.args(["agent", "-config-file"]).arg(self.folder.path().join("consul.json"));
        let running = Program::start(&consul, self.folder.path());
        running.wait_until(|| self.is_writable())
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// All keys with this prefix.
    pub async fn tree(&self, prefix: &str) -> Vec<Pair> {
        let url = format!("{}/v1/kv/{prefix}?recurse&consistent", self.url());
        let response = self.send(reqwest::Client::new().get(url)).await;
        let found: Vec<Value> = serde_json::from_str(&response).unwrap_or_default();
        found.iter().map(pair).collect()
    }

    /// Names of all keys with this prefix.
    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        self.tree(prefix).await.into_iter().map(|pair| pair.key).collect()
    }

    /// One key.
    pub async fn get(&self, key: &str) -> Option<Pair> {
        self.tree(key).await.into_iter().find(|pair| pair.key == key)
    }

    /// Writes a key, as another client does.
    pub async fn put(&self, key: &str, value: &str) {
        let url = format!("{}/v1/kv/{key}", self.url());
        self.send(reqwest::Client::new().put(url).body(value.to_owned())).await;
    }

    /// Deletes a key, as another client does.
    pub async fn delete(&self, key: &str) {
        self.send(reqwest::Client::new().delete(format!("{}/v1/kv/{key}", self.url()))).await;
    }

    /// Creates a token with these rules.
    pub async fn token(&self, rules: &str) -> String {
        let put = |path: &str, body: Value| {
            reqwest::Client::new().put(format!("{}/v1/acl/{path}", self.url())).json(&body)
        };
        self.send(put("policy", json!({"Name": "some", "Rules": rules}))).await;
        let token = self.send(put("token", json!({"Policies": [{"Name": "some"}]}))).await;
        let token: Value = serde_json::from_str(&token).unwrap();
        token["SecretID"].as_str().unwrap().to_owned()
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> String {
        let response = request.header("X-Consul-Token", ROOT_TOKEN).send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        // A missing key is 404.
        assert!(status.is_success() || status == 404, "{status}: {text}");
        text
    }

    /// Whether it has a leader and accepts writes.
    fn is_writable(&self) -> bool {
        let put = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.address())?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            let head = format!("host: x\r\nconnection: close\r\nX-Consul-Token: {ROOT_TOKEN}");
            let line = "PUT /v1/kv/is-ready HTTP/1.1";
            write!(stream, "{line}\r\n{head}\r\ncontent-length: 1\r\n\r\nx")?;
            let mut response = String::new();
            stream.read_to_string(&mut response)?;
            Ok(response)
        };
        put().is_ok_and(|response| response.starts_with("HTTP/1.1 200"))
    }
}

fn pair(found: &Value) -> Pair {
    let value = found["Value"].as_str().unwrap_or_default();
    let value = String::from_utf8(BASE64.decode(value.as_bytes()).unwrap()).unwrap();
    let key = found["Key"].as_str().unwrap().to_owned();
    Pair { key, value, index: found["ModifyIndex"].as_u64().unwrap() }
}
