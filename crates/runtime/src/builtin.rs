//! The built-in image: a small web server that every owner can run, without a registry.

use std::sync::LazyLock;

use model::image::StoredImage;
use serde_json::json;
use tar::{Builder, Header};

use crate::dirs::sha256;
use crate::image::platform;

/// Name of the built-in image.
pub const BUILTIN_IMAGE: &str = "localhost/paddock-page:1";

/// The program, compiled by `build.rs` from `page/page.rs`.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page"));

/// Parts of the image.
struct Parts {
    layer: Vec<u8>,
    config: Vec<u8>,
}

static PARTS: LazyLock<Parts> = LazyLock::new(|| {
    let layer = tar([("page", 0o755, PROGRAM)]);
    let (os, architecture) = platform::host();
    let config = json!({
        "os": os,
        "architecture": architecture,
        "config": {
            "Entrypoint": ["/page"],
            "ExposedPorts": {"8080/tcp": {}},
            "WorkingDir": "/",
            // As pid 1, as in Docker, the program would ignore SIGTERM. It has nothing to save.
            "StopSignal": "SIGKILL",
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))]},
    });
    Parts { layer, config: config.to_string().into_bytes() }
});

/// Digest of the image: that of its configuration, as in all `docker save` archives.
pub(crate) fn digest() -> String {
    format!("sha256:{}", sha256(&PARTS.config))
}

/// The image, as an image store lists it.
pub fn builtin_image() -> StoredImage {
    StoredImage {
        name: BUILTIN_IMAGE.to_owned(),
        digest: digest(),
        size_bytes: PARTS.layer.len() as u64,
        is_builtin: true,
    }
}

/// The image as a `docker save` archive under a name. The same program gives the same bytes.
pub fn builtin_archive(name: &str) -> Vec<u8> {
    let Parts { layer, config } = &*PARTS;
    let config_file = format!("{}.json", sha256(config));
    let manifest = json!([{"Config": config_file, "RepoTags": [name], "Layers": ["layer.tar"]}]);
    tar([
        ("manifest.json", 0o644, manifest.to_string().as_bytes()),
        (&config_file, 0o644, config),
        ("layer.tar", 0o644, layer),
    ])
}

fn tar<const N: usize>(files: [(&str, u32, &[u8]); N]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, mode, bytes) in files {
        let mut header = Header::new_gnu();
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        builder.append_data(&mut header, name, bytes).expect("writing to memory does not fail");
    }
    builder.into_inner().expect("writing to memory does not fail")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_is_deterministic_and_contains_the_program() {
        let archive = builtin_archive(BUILTIN_IMAGE);
        assert_eq!(archive, builtin_archive(BUILTIN_IMAGE));
        assert!(archive.windows(PROGRAM.len()).any(|bytes| bytes == PROGRAM));
    }
}
