//! The quota of storage: loaded images and template files.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use testing::{Answer, Client, FakeImages, TestPaddock, TestSettings, on_both_engines};

use crate::fleet::organization;
use crate::shop::{listed, send};

on_both_engines! {
    async fn image_beyond_the_quota_of_storage_is_refused(engine: Engine) {
        let (paddock, images) = start(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        set(&paddock, &ann, 1000).await;
        load(&ann, "a", 600).await.expect(201);
        assert_eq!(used(&ann).await, 600);
        exceeds(&load(&ann, "b", 401).await, 600, 401);
        assert_eq!(names(&ann).await, ["localhost/a:1"]);
        // Its content is larger than its archive.
        images.grow_by(100);
        exceeds(&load(&ann, "b", 301).await, 600, 401);
        assert_eq!((names(&ann).await, used(&ann).await), (vec!["localhost/a:1".to_owned()], 600));
        images.grow_by(0);
        load(&ann, "b", 400).await.expect(201);
        assert_eq!(used(&ann).await, 1000);
        // Template files count, too.
        exceeds(&publish(&ann, "one", 1).await, 1000, 1);
        assert_eq!(listed(&ann, "templates").await.len(), 0);

        // Another organization has its own.
        assert_eq!((names(&zoe).await.len(), used(&zoe).await), (0, 0));
        load(&zoe, "a", 5000).await.expect(201);
        assert_eq!((used(&zoe).await, used(&ann).await), (5000, 1000));

        ann.delete("/api/v1/images?name=localhost/a:1").await.expect(204);
        assert_eq!(used(&ann).await, 400);
        publish(&ann, "one", 100).await.expect(201);
        exceeds(&load(&ann, "a", 501).await, 500, 501);
        load(&ann, "a", 500).await.expect(201);
        assert_eq!((used(&ann).await, images.total()), (1000, 5900));
    }

    async fn images_count_at_servers_without_the_image_store(engine: Engine) {
        let (paddock, _images) = start(engine).await;
        let ann = paddock.owner("ann").await;
        let replica = paddock.replica(settings(None)).await;
        let there = replica.client.with_token(ann.token().unwrap());
        set(&paddock, &ann, 1000).await;
        load(&ann, "a", 600).await.expect(201);
        assert_eq!(used(&there).await, 600);
        exceeds(&publish(&there, "one", 401).await, 600, 401);
        publish(&there, "one", 400).await.expect(201);
        exceeds(&load(&ann, "b", 1).await, 1000, 1);
        ann.delete("/api/v1/images?name=localhost/a:1").await.expect(204);
        assert_eq!((used(&ann).await, used(&there).await), (400, 400));
    }

    async fn concurrent_uploads_never_exceed_the_quota_of_storage(engine: Engine) {
        let (paddock, images) = start(engine).await;
        let ann = paddock.owner("ann").await;
        let replica = paddock.replica(settings(None)).await;
        let there = replica.client.with_token(ann.token().unwrap());
        set(&paddock, &ann, 1000).await;
        let uploads = join_all((0..8).map(async |n| load(&ann, &format!("i{n}"), 300).await));
        let files = join_all((0..8).map(async |n| {
            let server = if n % 2 == 0 { &ann } else { &there };
            publish(server, &format!("t{n}"), 300).await
        }));
        let (uploads, files) = tokio::join!(uploads, files);
        for answer in uploads.iter().chain(&files) {
            // Also too many uploads at once.
            assert!(matches!(answer.status, 201 | 409 | 429), "{:#}", answer.json);
        }
        let count = |answers: &[Answer]| answers.iter().filter(|answer| answer.status == 201).count();
        assert_eq!(images.total(), 300 * count(&uploads) as u64);
        assert_eq!(listed(&ann, "templates").await.len(), count(&files));
        assert_eq!(count(&uploads) + count(&files), 3);
        assert_eq!((used(&ann).await, used(&there).await), (900, 900));
    }
}

fn settings(images: Option<Arc<FakeImages>>) -> TestSettings {
    TestSettings { images, api_only: true, ..TestSettings::default() }
}

async fn start(engine: testing::Engine) -> (TestPaddock, Arc<FakeImages>) {
    let images = Arc::new(FakeImages::default());
    (TestPaddock::start_with(engine, settings(Some(images.clone()))).await, images)
}

/// Sets the quota of the client's organization.
async fn set(paddock: &TestPaddock, of: &Client, storage: u32) {
    let path = format!("/api/v1/admin/organizations/{}/quotas", organization(of).await);
    let body = json!({"quotas": {"storage": storage}});
    paddock.admin().await.patch(&path, body).await.expect(200);
}

/// Loads an image of this size.
async fn load(client: &Client, name: &str, bytes: usize) -> Answer {
    let path = format!("/api/v1/images?name={name}");
    let request = client.request("POST", &path).header("content-type", "application/x-tar");
    client.send(request.body(vec![1; bytes])).await
}

/// Publishes a template with a file of this size.
async fn publish(client: &Client, name: &str, bytes: usize) -> Answer {
    let template = format!("name: {name}\nversion: 1.0.0\n");
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in
        [("template.yaml", template.into_bytes()), ("README.md", vec![b'x'; bytes])]
    {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, &*content).unwrap();
    }
    send(client, "application/x-tar", archive.into_inner().unwrap()).await
}

async fn names(client: &Client) -> Vec<String> {
    let images = listed(client, "images").await;
    images.iter().map(|image| image["name"].as_str().unwrap().to_owned()).collect()
}

/// Storage in use, as `paddock quota` shows it.
async fn used(client: &Client) -> u64 {
    let shown = client.get("/api/v1/quota").await.expect(200);
    let items = shown["organization"].as_array().unwrap();
    let storage = items.iter().find(|item| item["kind"] == "storage").unwrap();
    storage["used"].as_u64().unwrap()
}

/// Fails unless the request was refused by the quota of 1000 bytes.
#[track_caller]
fn exceeds(answer: &Answer, used: u64, requested: u64) {
    assert_eq!(answer.status, 409, "{}: {:#}", answer.call, answer.json);
    let quota: Value =
        json!({"kind": "storage", "used": used, "requested": requested, "limit": 1000});
    assert_eq!(answer.json["quota"], quota, "{}: {:#}", answer.call, answer.json);
}
