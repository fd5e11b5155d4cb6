//! A fake registry that can misbehave, and Debian's `docker-registry`.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::packing::Image;

pub(crate) fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)))
}

/// Content and behaviour of the fake registry.
#[derive(Default)]
pub(crate) struct Content {
    pub(crate) manifests: HashMap<String, Vec<u8>>,
    pub(crate) blobs: HashMap<String, Vec<u8>>,
    /// Base64 of the required `user:password`.
    pub(crate) password: Option<String>,
    /// URL of the token service that it refers to, and the token that it then requires.
    pub(crate) realm: Option<(String, String)>,
    /// The token that it gives out as a token service.
    pub(crate) token: Option<String>,
    /// Where it redirects requests for blobs to.
    pub(crate) redirect: Option<String>,
    /// The requested paths, with the header `Authorization`.
    pub(crate) requests: Vec<(String, Option<String>)>,
    /// Close the connection after this many bytes of a blob, once.
    pub(crate) cut_once: Option<usize>,
    /// The requested ranges.
    pub(crate) ranges: Vec<String>,
    /// Number of requests for blobs.
    pub(crate) blob_requests: usize,
}

/// A fake registry in this process.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) address: String,
    pub(crate) content: Arc<Mutex<Content>>,
}

impl Fake {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let content = Arc::new(Mutex::new(Content::default()));
        let fake = Self { address, content: content.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let content = content.clone();
                std::thread::spawn(move || while respond(&stream, &content).is_some() {});
            }
        });
        fake
    }

    /// Stores an image and returns its reference.
    pub(crate) fn put(&self, name: &str, image: &Image) -> String {
        let mut content = self.content.lock().unwrap();
        let manifest = image.manifest();
        let layers = image.layers.iter().map(|(_, blob)| blob.clone());
        for blob in layers.chain([image.configuration()]) {
            content.blobs.insert(digest_of(&blob), blob);
        }
        content.manifests.insert(format!("{name}/{}", digest_of(&manifest)), manifest.clone());
        content.manifests.insert(format!("{name}/1.0"), manifest);
        self.name(name)
    }

    pub(crate) fn name(&self, name: &str) -> String {
        format!("{}/{name}:1.0", self.address)
    }
}

fn respond(mut stream: &TcpStream, content: &Mutex<Content>) -> Option<()> {
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next()?.ok()?;
    let mut headers = HashMap::new();
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let (key, value) = line.split_once(": ")?;
        headers.insert(key.to_lowercase(), value.to_owned());
    }
    let path = request.split(' ').nth(1)?.to_owned();
    if path.contains("/hang/") {
        content.lock().unwrap().requests.push((path, None));
        std::thread::sleep(Duration::from_mins(1));
        return None;
    }
    let mut content = content.lock().unwrap();
    let is_layer = |digest: &str| content.blobs.get(digest).is_some_and(|blob| blob[0] != b'{');
    if path.contains("/drip/") && path.rsplit('/').next().is_some_and(is_layer) {
        drop(content);
        return drip(stream);
    }
    let status = |code: &str, extra: &str, body: &[u8]| -> Vec<u8> {
        let head = format!("HTTP/1.1 {code}\r\ncontent-length: {}\r\n{extra}\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    let allowed = content
        .password
        .as_ref()
        .is_none_or(|password| headers.get("authorization") == Some(&format!("Basic {password}")));
    let authorization = headers.get("authorization").cloned();
    content.requests.push((path.clone(), authorization.clone()));
    let has_token = |token: &str| authorization == Some(format!("Bearer {token}"));
    let reply = if let Some(token) = content.token.as_ref().filter(|_| path.starts_with("/token")) {
        status("200 OK", "", format!("{{\"access_token\": \"{token}\"}}").as_bytes())
    } else if let Some((realm, token)) = &content.realm
        && !has_token(token)
    {
        let challenge = format!("www-authenticate: Bearer realm=\"{realm}\",service=\"x\"\r\n");
        status("401 Unauthorized", &challenge, b"{}")
    } else if let Some(to) = content.redirect.as_ref().filter(|_| path.contains("/blobs/")) {
        let location = format!("location: {to}{path}\r\n");
        status("307 Temporary Redirect", &location, b"")
    } else if !allowed {
        status("401 Unauthorized", "www-authenticate: Basic realm=\"test\"\r\n", b"{}")
    } else if path == "/v2/" {
        status("200 OK", "", b"{}")
    } else if path.contains("/garbage/") {
        status("200 OK", "content-type: text/html\r\n", b"<html>It works!</html>")
    } else if let Some((name, reference)) =
        path.trim_start_matches("/v2/").split_once("/manifests/")
    {
        match content.manifests.get(&format!("{name}/{reference}")) {
            Some(manifest) => {
                let kind = if manifest.windows(11).any(|w| w == b"\"manifests\"") { "index" } else { "manifest" };
                status("200 OK", &format!("content-type: application/vnd.oci.image.{kind}.v1+json\r\n"), manifest)
            }
            None => status("404 Not Found", "", br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown","detail":{}}]}"#),
        }
    } else if let Some((_, digest)) = path.split_once("/blobs/") {
        content.blob_requests += 1;
        let blob = content.blobs.get(digest).cloned().unwrap_or_default();
        let from = headers.get("range").and_then(|range| {
            content.ranges.push(range.clone());
            range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok()
        });
        let from = from.unwrap_or(0).min(blob.len());
        let mut reply = if from > 0 {
            status(
                "206 Partial Content",
                &format!("content-range: bytes {from}-{}/{}\r\n", blob.len() - 1, blob.len()),
                &blob[from..],
            )
        } else {
            status("200 OK", "content-type: application/octet-stream\r\n", &blob)
        };
        if let Some(cut) = content.cut_once
            && reply.len() > cut
        {
            content.cut_once = None;
            reply.truncate(cut);
            stream.write_all(&reply).ok()?;
            return None;
        }
        reply
    } else {
        status("404 Not Found", "", b"{}")
    };
    drop(content);
    let head_only = request.starts_with("HEAD ");
    let end = reply.windows(4).position(|w| w == b"\r\n\r\n").filter(|_| head_only);
    stream.write_all(&reply[..end.map_or(reply.len(), |end| end + 4)]).ok()
}

/// Sends a byte per second: no read times out.
fn drip(mut stream: &TcpStream) -> Option<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n").ok()?;
    for _ in 0..60 {
        stream.write_all(b"x").ok()?;
        std::thread::sleep(Duration::from_secs(1));
    }
    None
}

/// Debian's `docker-registry` on a free port; killed on drop.
pub(crate) struct Debian {
    pub(crate) address: String,
    child: Child,
}

impl Debian {
    pub(crate) fn start(dir: &Path) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let config = dir.join("registry.yml");
        let text = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: {address}}}\n",
            dir.join("registry").display()
        );
        std::fs::write(&config, text).unwrap();
        let child = Command::new("docker-registry")
            .args(["serve".as_ref(), config.as_os_str()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the package docker-registry is installed");
        let until = base::monotonic() + Duration::from_secs(20);
        while TcpStream::connect(&address).is_err() {
            assert!(base::monotonic() < until, "docker-registry does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { address, child }
    }

    /// Pushes an image and returns its reference.
    pub(crate) fn push(&self, dir: &Path, name: &str, image: &Image) -> String {
        let layout = dir.join(format!("layout-{name}"));
        image.write_layout(&layout);
        let to = format!("{}/{name}:1.0", self.address);
        let pushed = Command::new("skopeo")
            .args(["copy", "--quiet", "--insecure-policy", "--dest-tls-verify=false"])
            .arg(format!("oci:{}:1.0", layout.display()))
            .arg(format!("docker://{to}"))
            .status()
            .expect("the package skopeo is installed");
        assert!(pushed.success());
        to
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
