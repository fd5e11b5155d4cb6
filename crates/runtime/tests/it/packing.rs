//! Builds layers and images.

use std::io::Write;

use crate::registry::digest_of;
use serde_json::json;
use tar::{Builder, EntryType, Header};

/// A layer under construction.
pub(crate) struct Layer(Builder<Vec<u8>>);

impl Layer {
    pub(crate) fn new() -> Self {
        Self(Builder::new(Vec::new()))
    }

    /// Adds an entry. The name is written as it is, even if invalid.
    pub(crate) fn add(
        self,
        kind: EntryType,
        name: &str,
        mode: u32,
        link: &str,
        data: &[u8],
    ) -> Self {
        self.add_of(0, kind, name, mode, link, data)
    }

    /// Adds a file of a user.
    pub(crate) fn owned(self, name: &str, mode: u32, uid: u64, data: &[u8]) -> Self {
        self.add_of(uid, EntryType::Regular, name, mode, "", data)
    }

    fn add_of(
        mut self,
        uid: u64,
        kind: EntryType,
        name: &str,
        mode: u32,
        link: &str,
        data: &[u8],
    ) -> Self {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(data.len() as u64);
        header.set_uid(uid);
        header.set_gid(0);
        header.set_mtime(1_000_000_000);
        let old = header.as_old_mut();
        old.name[..name.len()].copy_from_slice(name.as_bytes());
        old.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        self.0.append(&header, data).unwrap();
        self
    }

    pub(crate) fn dir(self, name: &str) -> Self {
        self.add(EntryType::Directory, name, 0o755, "", b"")
    }

    pub(crate) fn file(self, name: &str, data: &[u8]) -> Self {
        self.add(EntryType::Regular, name, 0o644, "", data)
    }

    pub(crate) fn program(self, name: &str, data: &[u8]) -> Self {
        self.add(EntryType::Regular, name, 0o755, "", data)
    }

    pub(crate) fn symlink(self, name: &str, target: &str) -> Self {
        self.add(EntryType::Symlink, name, 0o777, target, b"")
    }

    pub(crate) fn hard_link(self, name: &str, target: &str) -> Self {
        self.add(EntryType::Link, name, 0o644, target, b"")
    }

    /// Gives the next entry an extended attribute.
    pub(crate) fn attribute(mut self, name: &str, value: &[u8]) -> Self {
        let key = format!("SCHILY.xattr.{name}");
        self.0.append_pax_extensions([(key.as_str(), value)]).unwrap();
        self
    }

    /// Adds a GNU sparse file of this size with a few bytes of data at its end.
    pub(crate) fn sparse(mut self, name: &str, size: u64) -> Self {
        let data = [b'x'; 512];
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::GNUSparse);
        header.set_path(name).unwrap();
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1_000_000_000);
        header.set_size(data.len() as u64);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.sparse[0].offset.copy_from_slice(format!("{:011o}\0", size - 512).as_bytes());
        gnu.sparse[0].numbytes.copy_from_slice(format!("{:011o}\0", 512).as_bytes());
        gnu.realsize.copy_from_slice(format!("{size:011o}\0").as_bytes());
        header.set_cksum();
        self.0.append(&header, &data[..]).unwrap();
        self
    }

    pub(crate) fn tar(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }
}

/// An image: its layers uncompressed and compressed, and its configuration.
pub(crate) struct Image {
    pub(crate) layers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) config: serde_json::Value,
    pub(crate) architecture: &'static str,
}

impl Image {
    /// An image with these layers, the first one compressed by gzip, others by zstd.
    pub(crate) fn new(layers: Vec<Vec<u8>>, config: serde_json::Value) -> Self {
        let compress = |(at, tar): (usize, Vec<u8>)| {
            let blob = if at == 0 { gzip(&tar) } else { zstd::encode_all(&tar[..], 1).unwrap() };
            (tar, blob)
        };
        let layers = layers.into_iter().enumerate().map(compress).collect();
        Self { layers, config, architecture: "amd64" }
    }

    /// Its OCI configuration.
    pub(crate) fn configuration(&self) -> Vec<u8> {
        let diff_ids: Vec<_> = self.layers.iter().map(|(tar, _)| digest_of(tar)).collect();
        serde_json::to_vec(&json!({
            "architecture": self.architecture, "os": "linux", "config": self.config,
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        }))
        .unwrap()
    }

    /// Its manifest.
    pub(crate) fn manifest(&self) -> Vec<u8> {
        let configuration = self.configuration();
        let kind = |at: usize| if at == 0 { "gzip" } else { "zstd" };
        let layers: Vec<_> = self
            .layers
            .iter()
            .enumerate()
            .map(|(at, (_, blob))| {
                json!({
                    "mediaType": format!("application/vnd.oci.image.layer.v1.tar+{}", kind(at)),
                    "digest": digest_of(blob), "size": blob.len(),
                })
            })
            .collect();
        serde_json::to_vec(&json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
                       "digest": digest_of(&configuration), "size": configuration.len()},
            "layers": layers,
        }))
        .unwrap()
    }

    /// Writes an OCI image layout, to be pushed by other tools.
    pub(crate) fn write_layout(&self, dir: &std::path::Path) {
        let blobs = dir.join("blobs/sha256");
        std::fs::create_dir_all(&blobs).unwrap();
        let manifest = self.manifest();
        let layers = self.layers.iter().map(|(_, blob)| blob.clone());
        for blob in layers.chain([self.configuration(), manifest.clone()]) {
            std::fs::write(blobs.join(&digest_of(&blob)[7..]), blob).unwrap();
        }
        std::fs::write(dir.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        let index = json!({"schemaVersion": 2, "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": digest_of(&manifest), "size": manifest.len(),
            "annotations": {"org.opencontainers.image.ref.name": "1.0"},
        }]});
        std::fs::write(dir.join("index.json"), index.to_string()).unwrap();
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Debian's busybox, with the applets that tests use.
pub(crate) fn busybox() -> Layer {
    let program = std::fs::read("/bin/busybox").expect("the package busybox-static is installed");
    let mut layer = Layer::new()
        .dir("bin/")
        .dir("etc/")
        .dir("tmp/")
        .dir("www/")
        .file("www/index.html", b"hello from the container\n")
        .file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nweb:x:33:33:web:/:/bin/sh\n")
        .file("etc/only-below", b"removed by the second layer\n")
        .program("bin/busybox", &program);
    for name in [
        "sh", "httpd", "sleep", "cat", "ls", "dd", "id", "mkdir", "mount", "env", "seq", "grep",
        "mknod", "unshare", "hostname", "tail", "touch", "head", "printf", "yes", "nc", "ip",
        "sed", "nslookup",
    ] {
        layer = layer.symlink(&format!("bin/{name}"), "busybox");
    }
    layer
}

/// An image that serves `/www` on port 8080, in two layers.
pub(crate) fn web() -> Image {
    let above = Layer::new().file("etc/.wh.only-below", b"").file("www/second", b"2\n");
    Image::new(
        vec![busybox().tar(), above.tar()],
        json!({"Env": ["FROM_IMAGE=yes"], "WorkingDir": "/www", "Cmd": ["/bin/httpd", "-f", "-p", "8080", "-h", "/www"]}),
    )
}
