//! Template archives with modules, and hostile archives.

use std::io::Write as _;

use api::Publishers;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tar::{EntryType, Header};
use testing::{Answer, Client, TestSettings, on_both_engines};

use crate::shop::{Shop, listed, send, text};
use crate::world::{details, refused};

const NET: &str = "
name: net
version: 1.0.0
resources:
  - name: network
    executor: terraform
    with: {source: ./network, variables: {cidr: 10.1.0.0/16}}
";
const MODULE: &str = "variable \"cidr\" {}\n";

on_both_engines! {
    async fn archive_publishes_a_template_with_modules(engine: Engine) {
        let shop = Shop::open(engine).await;
        let made = send(&shop.ann, "application/gzip", gzip(&good().bytes())).await.expect(201);
        let files = json!([
            {"path": "README.md", "size_bytes": 5},
            {"path": "network/main.tf", "size_bytes": 19},
        ]);
        assert_eq!((&made["reference"], &made["files"]), (&json!("net@1.0.0"), &files));
        let (_, source) = text(&shop.ann, "/api/v1/templates/net/source", "*/*").await;
        assert_eq!(source, NET);
        // The hash does not depend on order, times, folders and compression.
        let mut other = Tar::default();
        other.folder("network/").file("./network//main.tf", MODULE).file("README.md", "hello");
        other.global("comment of git archive").file("./template.yaml", NET);
        for (kind, bytes) in
            [("application/x-tar", other.bytes()), ("application/x-tar", gzip(&other.bytes()))]
        {
            let again = send(&shop.ann, kind, bytes).await.expect(200);
            assert_eq!((&again["id"], &again["hash"]), (&made["id"], &made["hash"]));
        }
        // Another file results in another template.
        let mut changed = good();
        changed.file("network/outputs.tf", "");
        send(&shop.ann, "application/x-tar", changed.bytes()).await.expect(409);

        let body = json!({"name": "mine", "templates": ["net@1.0.0"]});
        let id = shop.ann.post("/api/v1/environments", body).await.text("id");
        shop.until(&id, "deployed").await;
        assert_eq!(shop.drain_calls("apply"), ["network"]);
    }

    async fn hostile_archive_is_rejected_with_the_path(engine: Engine) {
        let shop = Shop::still(engine).await;
        let events = shop.log().await;
        for (archive, path, why) in hostile() {
            for bytes in [archive.clone(), gzip(&archive)] {
                let answer = send(&shop.ann, "application/gzip", bytes).await;
                refused(&answer, why);
                assert_eq!(answer.status, 400, "{why}: {:#}", answer.json);
                let said = details(&answer);
                assert!(said.contains(path) && said.contains(why), "{path:?} {why:?}: {said}");
            }
        }
        assert_eq!(listed(&shop.ann, "templates").await, Vec::<Value>::new());
        assert_eq!(shop.log().await, events);
    }

    async fn malformed_or_oversized_archive_is_rejected(engine: Engine) {
        let shop = Shop::still(engine).await;
        let bomb = gzip(&vec![0; 200 << 20]);
        assert!(bomb.len() < 1 << 20);
        let mut zeros = header("zeros", EntryType::Regular, 60 << 20);
        zeros.extend(vec![0; 60 << 20]);
        let cut = good().bytes()[..700].to_vec();
        let mut many = good();
        for i in 0..2_000 {
            many.file(&format!("many/{i}"), "");
        }
        let mut folders = good();
        for i in 0..5_000 {
            folders.folder(&format!("folder{i}/"));
        }
        let mut heavy = good();
        for i in 0..40 {
            heavy.file(&format!("heavy/{i}"), &"x".repeat(1 << 20));
        }
        for (bytes, why) in [
            (b"just text".to_vec(), "is not a valid tar"),
            (vec![0x1f, 0x8b, 8, 0, 1, 2, 3], "is not a valid tar"),
            (bomb, "has no template"),
            (gzip(&zeros), "zeros is larger than 1 MiB"),
            (cut, "is not a valid tar"),
            (good().bytes()[..600].to_vec(), "template.yaml is incomplete"),
            (gzip(&good().bytes())[..200].to_vec(), "archive"),
            (gzip(&many.bytes()), "more than 2000 files"),
            (gzip(&folders.bytes()), "more than 2000 files"),
            (gzip(&heavy.bytes()), "more than 32 MiB"),
        ] {
            let answer = send(&shop.ann, "application/gzip", bytes).await;
            refused(&answer, why);
            assert_eq!(answer.status, 400, "{why}: {:#}", answer.json);
            assert!(details(&answer).contains(why), "{why}: {:#}", answer.json);
        }
        let large = shop.noise(9 << 20);
        send(&shop.ann, "application/gzip", large.clone()).await.expect(413);
        let request = shop.ann.request("POST", "/api/v1/templates").header("idempotency-key", "x");
        let request = request.header("content-type", "application/gzip").body(large);
        shop.ann.send(request).await.expect(413);
        assert_eq!(listed(&shop.ann, "templates").await, Vec::<Value>::new());
        // A large archive within the limits is accepted, also with a key.
        let mut fair = good();
        for i in 0..6 {
            fair.raw(&format!("noise/{i}"), &shop.noise(1 << 20));
        }
        let request = shop.ann.request("POST", "/api/v1/templates").header("idempotency-key", "y");
        let request = request.header("content-type", "application/x-tar").body(fair.bytes());
        shop.ann.send(request).await.expect(201);
    }

    async fn missing_module_is_rejected(engine: Engine) {
        let shop = Shop::still(engine).await;
        let alone = shop.publish(NET).await;
        refused(&alone, "alone");
        let said = details(&alone);
        assert!(said.contains("template.yaml:7") && said.contains("as a tar archive"), "{said}");
        let mut elsewhere = Tar::default();
        elsewhere.file("template.yaml", NET).file("net/main.tf", MODULE);
        let answer = send(&shop.ann, "application/x-tar", elsewhere.bytes()).await;
        refused(&answer, "elsewhere");
        assert!(details(&answer).contains("no module in ./network"), "{:#}", answer.json);
        assert_eq!(listed(&shop.ann, "templates").await, Vec::<Value>::new());
    }

    async fn modules_are_reserved_for_the_administrator_by_default(engine: Engine) {
        let api = api::Settings { terraform_templates: Publishers::Admin, ..api::Settings::default() };
        let shop = Shop::start_with(engine, TestSettings { api, ..TestSettings::default() }).await;
        let publish = async |client: &Client, query: &str| -> Answer {
            let request = client.request("POST", &format!("/api/v1/templates{query}"));
            let request = request.header("content-type", "application/x-tar");
            client.send(request.body(good().bytes())).await
        };
        let no = publish(&shop.ann, "").await;
        refused(&no, "not the administrator");
        assert_eq!(no.status, 403);
        assert!(details(&no).contains("run programs on the server"), "{:#}", no.json);
        assert_eq!(listed(&shop.ann, "templates").await, Vec::<Value>::new());
        let admin = shop.paddock.admin().await;
        publish(&admin, "?shared=true").await.expect(201);
        shop.ann.get("/api/v1/templates/net@1.0.0").await.expect(200);
        // Templates without modules may be published by all.
        shop.publish(crate::shop::SHOP).await.expect(201);
    }
}

/// Hostile archives with the expected path and message.
fn hostile() -> Vec<(Vec<u8>, &'static str, &'static str)> {
    let with = |act: &dyn Fn(&mut Tar) -> &mut Tar| {
        let mut tar = good();
        act(&mut tar);
        tar.bytes()
    };
    let deep = "d/".repeat(16) + "main.tf";
    let deep: &'static str = deep.leak();
    let long: &'static str = ("l".repeat(90) + "/").repeat(6).leak();
    vec![
        (with(&|t| t.file("/etc/cron.d/x", "x")), "/etc/cron.d/x", "relative path"),
        (with(&|t| t.file("../x", "x")), "../x", ".."),
        (with(&|t| t.file("a/../../x", "x")), "a/../../x", ".."),
        (with(&|t| t.folder("../y/")), "../y/", ".."),
        (with(&|t| t.file("a\\b", "x")), "a\\\\", "backslash"),
        (with(&|t| t.file("a\nb", "x")), "b must", "control character"),
        (with(&|t| t.raw_name(b"a\xff.tf", "x")), ".tf", "not UTF-8"),
        (with(&|t| t.link("link", EntryType::Symlink)), "link", "must not be a link"),
        (with(&|t| t.link("hard", EntryType::Link)), "hard", "must not be a link"),
        (with(&|t| t.link("null", EntryType::Char)), "null", "must be a file or a directory"),
        (with(&|t| t.link("disk", EntryType::Block)), "disk", "must be a file or a directory"),
        (with(&|t| t.link("pipe", EntryType::Fifo)), "pipe", "must be a file or a directory"),
        (with(&|t| t.file("README.md", "again")), "README.md", "occurs twice"),
        (with(&|t| t.file("./network/./main.tf", "x")), "network/main.tf", "occurs twice"),
        (with(&|t| t.file("template.yaml", NET)), "template.yaml", "occurs twice"),
        (with(&|t| t.file("template.json", "{}")), "template.json", "a second template"),
        (with(&|t| t.file("README.md/x", "x")), "README.md", "is both a file and the directory"),
        (with(&|t| t.file("big.tf", &"x".repeat((1 << 20) + 1))), "big.tf", "larger than 1 MiB"),
        (with(&|t| t.long(deep)), deep, "more than 16 directories"),
        (with(&|t| t.long(long)), "llll", "more than 512 bytes"),
        (
            {
                let mut tar = Tar::default();
                tar.file("shop/template.yaml", NET).file("shop/network/main.tf", MODULE);
                tar.bytes()
            },
            "template.yaml",
            "at its root",
        ),
        (
            {
                let mut tar = Tar::default();
                tar.raw("template.yaml", b"name: \xff");
                tar.bytes()
            },
            "template.yaml",
            "not UTF-8",
        ),
    ]
}

pub(crate) fn good() -> Tar {
    let mut tar = Tar::default();
    tar.file("template.yaml", NET).file("README.md", "hello").file("network/main.tf", MODULE);
    tar
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An archive, written manually: libraries refuse to create hostile ones.
#[derive(Default)]
pub(crate) struct Tar(Vec<u8>);

impl Tar {
    fn file(&mut self, path: &str, text: &str) -> &mut Self {
        self.raw(path, text.as_bytes())
    }

    fn raw(&mut self, path: &str, content: &[u8]) -> &mut Self {
        self.entry(path.as_bytes(), EntryType::Regular, content)
    }

    fn raw_name(&mut self, path: &[u8], text: &str) -> &mut Self {
        self.entry(path, EntryType::Regular, text.as_bytes())
    }

    fn folder(&mut self, path: &str) -> &mut Self {
        self.entry(path.as_bytes(), EntryType::Directory, b"")
    }

    fn link(&mut self, path: &str, kind: EntryType) -> &mut Self {
        self.entry(path.as_bytes(), kind, b"")
    }

    fn global(&mut self, comment: &str) -> &mut Self {
        self.entry(b"pax_global_header", EntryType::XGlobalHeader, comment.as_bytes())
    }

    /// A file whose path needs an extension header.
    fn long(&mut self, path: &str) -> &mut Self {
        self.entry(b"././@LongLink", EntryType::GNULongName, format!("{path}\0").as_bytes());
        self.raw_name(&path.as_bytes()[..path.len().min(99)], "x")
    }

    fn entry(&mut self, path: &[u8], kind: EntryType, content: &[u8]) -> &mut Self {
        self.0.extend(header_of(path, kind, content.len()));
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.0.clone();
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }
}

fn header(path: &str, kind: EntryType, size: usize) -> Vec<u8> {
    header_of(path.as_bytes(), kind, size)
}

fn header_of(path: &[u8], kind: EntryType, size: usize) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..path.len()].copy_from_slice(path);
    header.set_entry_type(kind);
    header.set_size(size as u64);
    header.set_mode(0o644);
    // Times do not matter; all are different.
    header.set_mtime(path.len() as u64 * 1000 + size as u64);
    if matches!(kind, EntryType::Symlink | EntryType::Link) {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    header.as_bytes().to_vec()
}

impl Shop {
    /// Incompressible bytes.
    fn noise(&self, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        self.paddock.db().entropy().fill(&mut bytes);
        bytes
    }
}
