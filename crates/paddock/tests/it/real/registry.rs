//! A registry on loopback, and a tiny image made of Debian's busybox.

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

/// Debian's registry, which ends with the test.
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
        let answers = || TcpStream::connect(&registry.address).is_ok();
        let up = (0..600).any(|_| answers() || wait());
        assert!(up && answers(), "the registry does not answer on {}", registry.address);
        registry
    }

    /// Pushes the image under that name; what to deploy.
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

/// Waits a little; nothing has happened yet.
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

/// An image with a shell and a web server that says hello on port 8080.
fn write_layout(dir: &Path) {
    fs::create_dir_all(dir.join("blobs/sha256")).unwrap();
    let layer = layer();
    let diff = format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(&layer)));
    let layer = blob(dir, "application/vnd.oci.image.layer.v1.tar", &layer);
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let config = json!({
        "architecture": architecture, "os": "linux",
        "config": {"Cmd": ["httpd", "-f", "-p", "8080", "-h", "/www"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [diff]},
    });
    let config = config.to_string();
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

fn layer() -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_path_with_name("/bin/busybox", "bin/busybox").expect("busybox is installed");
    for name in ["sh", "httpd", "sleep", "echo", "tail", "cat", "mkdir"] {
        let mut header = header(0, 0o777);
        header.set_entry_type(tar::EntryType::Symlink);
        tar.append_link(&mut header, format!("bin/{name}"), "busybox").unwrap();
    }
    let page = b"hello from a container\n";
    let mut header = header(page.len(), 0o644);
    tar.append_data(&mut header, "www/index.html", &page[..]).unwrap();
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
