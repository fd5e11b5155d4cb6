//! A registry on loopback, and a small image with Debian's busybox.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// A registry process, killed on drop.
pub(crate) struct Registry {
    child: Child,
    pub(crate) address: String,
    _dir: TempDir,
}

impl Registry {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        let config = dir.path().join("config.yml");
        let root = dir.path().join("files");
        let text = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: {address}}}\n",
            root.display()
        );
        fs::write(&config, text).unwrap();
        drop(free);
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("docker-registry is installed by ./test");
        let registry = Self { child, address, _dir: dir };
        let is_listening = || TcpStream::connect(&registry.address).is_ok();
        let is_up = (0..600).any(|_| is_listening() || wait());
        assert!(is_up && is_listening(), "registry does not listen on {}", registry.address);
        registry
    }

    /// Pushes the image under a name and returns its reference.
    pub(crate) fn push(&self, name: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        write_layout(dir.path());
        let (from, to) = (
            format!("oci:{}:1", dir.path().display()),
            format!("docker://{}/{name}:1", self.address),
        );
        let pushed = Command::new("skopeo")
            .args(["copy", "--quiet", "--insecure-policy", "--dest-tls-verify=false", &from, &to])
            .output()
            .expect("skopeo is installed by ./test");
        assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
        format!("{}/{name}:1", self.address)
    }
}

/// Sleeps and returns `false`, for use in polling expressions.
fn wait() -> bool {
    thread::sleep(Duration::from_millis(50));
    false
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `docker save` archive of an image with a web server on port 8080 that serves this page.
pub(crate) fn archive(page: &str, tag: &str) -> Vec<u8> {
    let layer = layer(page);
    let config = config(&layer).to_string();
    let manifest = json!([{"Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"]}]);
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in [
        ("manifest.json", manifest.to_string().as_bytes()),
        ("config.json", config.as_bytes()),
        ("layer.tar", &layer),
    ] {
        tar.append_data(&mut header(bytes.len(), 0o644), name, bytes).unwrap();
    }
    tar.into_inner().unwrap()
}

/// Configuration of an image with this layer.
fn config(layer: &[u8]) -> Value {
    let diff = format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(layer)));
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    json!({
        "architecture": architecture, "os": "linux",
        "config": {"Cmd": ["httpd", "-f", "-p", "8080", "-h", "/www"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [diff]},
    })
}

/// Writes an image with a shell and a web server on port 8080.
fn write_layout(dir: &Path) {
    fs::create_dir_all(dir.join("blobs/sha256")).unwrap();
    let layer = layer("hello from a container");
    let config = config(&layer).to_string();
    let layer = blob(dir, "application/vnd.oci.image.layer.v1.tar", &layer);
    let config = blob(dir, "application/vnd.oci.image.config.v1+json", config.as_bytes());
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest =
        json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]});
    let mut manifest = blob(dir, kind, manifest.to_string().as_bytes());
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": "1"});
    let index = json!({"schemaVersion": 2, "manifests": [manifest]});
    fs::write(dir.join("index.json"), index.to_string()).unwrap();
    fs::write(dir.join("oci-layout"), r#"{"imageLayoutVersion": "1.0.0"}"#).unwrap();
}

fn layer(page: &str) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_path_with_name("/bin/busybox", "bin/busybox").expect("busybox is installed");
    for name in ["sh", "httpd", "sleep", "echo", "tail", "cat", "mkdir"] {
        let mut header = header(0, 0o777);
        header.set_entry_type(tar::EntryType::Symlink);
        tar.append_link(&mut header, format!("bin/{name}"), "busybox").unwrap();
    }
    let page = format!("{page}\n");
    let mut header = header(page.len(), 0o644);
    tar.append_data(&mut header, "www/index.html", page.as_bytes()).unwrap();
    tar.into_inner().unwrap()
}

fn header(size: usize, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size as u64);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1_000_000_000);
    header
}

fn blob(dir: &Path, kind: &str, bytes: &[u8]) -> Value {
    let digest = HEXLOWER.encode(&Sha256::digest(bytes));
    fs::write(dir.join("blobs/sha256").join(&digest), bytes).unwrap();
    json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": bytes.len()})
}
