//! Images without a registry: the built-in one, and archives that organizations load.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::process::{Server, Setup};
use super::real::registry::archive;
use super::real::{http_get, traces};

/// A server with the embedded runtime; no egress, so that nothing can be pulled.
struct ImageServer(Server);

impl ImageServer {
    fn start() -> Self {
        let setup = Setup::new().arg("--runtime", "embedded").arg("--egress", "false");
        Self(setup.arg("--max-image-size", "6Mi").start())
    }

    fn data(&self) -> PathBuf {
        self.0.setup.file("data")
    }

    /// Writes an archive of an image that serves this page.
    fn archive(&self, page: &str, tag: &str) -> String {
        let file = self.0.setup.file(&format!("{page}.tar"));
        fs::write(&file, archive(page, tag)).unwrap();
        file.display().to_string()
    }
}

impl Drop for ImageServer {
    /// Removes containers of a failed test, which would outlive it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.kill();
            traces::clean_up(&self.data());
        }
    }
}

fn endpoint(deployment: &Value) -> &str {
    deployment["endpoints"][0].as_str().unwrap()
}

#[test]
fn loaded_image_is_deployed_and_deleted_by_its_organization_only() {
    let fixture = ImageServer::start();
    let (ann, bob) = (fixture.0.owner("acme", "ann"), fixture.0.owner("bobs", "bob"));
    let file = fixture.archive("anns-page", "web:1");
    ann.run(&format!("image load {file}")).succeeds().prints(&["localhost/web:1", "sha256:"]);
    ann.run("image list").succeeds().prints(&["localhost/web:1", "localhost/paddock-page:1"]);
    assert_eq!(bob.json("image list")["items"].as_array().unwrap().len(), 1);
    bob.run("image delete localhost/web:1 --yes").fails(1, &["not found", "paddock image list"]);

    // Another organization does not get the image, and its own of the same name stays apart.
    bob.run("deploy localhost/web:1 --name web --restart never --port 8080 --wait=60")
        .fails(1, &["localhost/web:1: not on this machine", "run \"paddock image load FILE\""]);
    let failed = &bob.json("deployment list")["items"][0];
    assert_eq!(
        (&failed["status"], &failed["reason_code"]),
        (&json!("failed"), &json!("ImagePullFailed"))
    );
    let bobs = fixture.archive("bobs-page", "web:1");
    bob.run(&format!("image load {bobs}")).succeeds();
    for (client, page) in [(&ann, "anns-page"), (&bob, "bobs-page")] {
        let line = "deploy localhost/web:1 --name mine --cpu 50m --ram 16Mi --port 8080 --wait=60";
        let running = client.json(line);
        let mut answer = http_get(endpoint(&running));
        for _ in 0..100 {
            if answer.as_ref().is_ok_and(|text| !text.is_empty()) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
            answer = http_get(endpoint(&running));
        }
        assert!(answer.unwrap().contains(page), "{page}");
    }
    ann.run("image delete localhost/web:1 --yes").fails(1, &["in use by deployment mine"]);
    ann.run("image delete localhost/paddock-page:1 --yes").fails(1, &["is built in"]);
    for client in [&ann, &bob] {
        client.run("deployment delete mine --yes --wait=60").succeeds();
        client.run("image delete localhost/web:1 --yes").succeeds().notes(&["deleted"]);
        assert_eq!(client.json("image list")["items"].as_array().unwrap().len(), 1);
    }
    assert_eq!(traces::find(&fixture.data()), Vec::<String>::new());
}

#[test]
fn archive_is_read_from_stdin_and_named() {
    let fixture = ImageServer::start();
    let ann = fixture.0.owner("acme", "ann");
    let file = fixture.archive("piped", "web:1");
    let mut command = ann.command("-o json image load - --name team/web:2");
    let output = command.stdin(fs::File::open(file).unwrap()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let loaded: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(loaded["items"][0]["name"], "localhost/team/web:2");
}

#[tokio::test]
async fn invalid_archives_are_rejected_with_a_problem() {
    let fixture = ImageServer::start();
    let ann = fixture.0.http_owner("ann").await;
    let post = async |kind: &'static str, body: Vec<u8>| {
        let request = ann.request("POST", "/api/v1/images").header("content-type", kind).body(body);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap()["detail"].to_string())
    };
    let tar = "application/x-tar";
    for (kind, body, status, detail) in [
        (tar, b"hello".to_vec(), 400, "Invalid image archive: archive is not a valid tar"),
        (tar, Vec::new(), 400, "body is empty"),
        ("application/json", b"{}".to_vec(), 415, "application/x-tar"),
        (tar, vec![0; 7 << 20], 413, "larger than 6 MiB"),
    ] {
        let (found, text) = post(kind, body).await;
        assert_eq!(found, status, "{text}");
        assert!(text.contains(detail), "{text}");
    }
    // Larger than the limit of other requests, and not limited by it.
    let (status, text) = post(tar, vec![7; 3 << 20]).await;
    assert_eq!(status, 400, "{text}");
    // Without an announced size.
    let chunks = (0..7).map(|_| Ok::<_, std::io::Error>(vec![7u8; 1 << 20]));
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
    let request = ann.request("POST", "/api/v1/images").header("content-type", tar).body(body);
    assert_eq!(request.send().await.unwrap().status().as_u16(), 413);
    assert_eq!(fs::read_dir(fixture.data().join("uploads")).unwrap().count(), 0);
}

#[test]
fn server_without_an_image_store_names_the_runtimes_that_have_one() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let file = server.setup.file("x.tar");
    fs::write(&file, archive("x", "x:1")).unwrap();
    for line in [format!("image load {}", file.display()), "demo".into()] {
        ann.run(&line).fails(1, &["its runtime is simulated", "--runtime embedded"]);
    }
    assert_eq!(ann.json("image list")["items"], json!([]));
    ann.run("image load no-such-file").fails(1, &["cannot read no-such-file"]);
    ann.run("image load /").fails(1, &["is a directory"]);
}
