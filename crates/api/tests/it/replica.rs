//! Several servers on one PostgreSQL database.

use std::time::Duration;

use serde_json::json;
use testing::{Client, Engine, TestPaddock, TestSettings};

use crate::accounting::assert_consistent;
use crate::concurrency::at_once;
use crate::sse::Stream;
use crate::world::deployment_path;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn created_object_is_visible_on_the_other_replica() {
    let (paddock, replica) = TestPaddock::start_two(Engine::Postgres).await;
    let here = paddock.owner("ann").await;
    let there = at(&replica.client, &here);
    let cluster = paddock.cluster(&there, json!({"cpu": 2})).await;
    let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}, "image": "web:1"});
    let id = here.post("/api/v1/deployments", body).await.text("id");
    assert_eq!(there.get(&deployment_path(&id)).await.expect(200)["id"], id);
    paddock.until(&there, &deployment_path(&id), "status", "running").await;
    there.delete(&deployment_path(&id)).await.expect(202);
    paddock.until_deleted(&here, &deployment_path(&id)).await;
    assert_consistent(&paddock).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_shows_events_of_the_other_replica() {
    let (paddock, replica) = TestPaddock::start_two(Engine::Postgres).await;
    let here = paddock.owner("ann").await;
    let there = at(&replica.client, &here);
    let mut stream = Stream::open(&there, "?type=cluster.created", None).await;
    for i in 0..10 {
        let body = json!({"name": format!("cluster {i}"), "capacity": {"cpu": 1, "ram": "1Gi"}});
        let id = here.post("/api/v1/clusters", body).await.text("id");
        let made = base::monotonic();
        assert_eq!(stream.next().await.data["subject"], id);
        assert!(made.elapsed() < Duration::from_secs(2), "{:?}", made.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logout_takes_effect_on_the_other_replica() {
    let (paddock, replica) = TestPaddock::start_two(Engine::Postgres).await;
    paddock.owner("ann").await;
    for _ in 0..3 {
        let here = paddock.sign_in("ann", "secret").await;
        let there = at(&replica.client, &here);
        there.get("/user/").await.expect(200);
        here.post("/api/v1/logout", json!({})).await.expect(204);
        until_refused(&there).await;
    }
    let ann = paddock.sign_in("ann", "secret").await;
    let mia = paddock.member(&ann, "mia").await;
    let there = at(&replica.client, &mia);
    let id = there.get("/user/").await.text("id");
    ann.delete(&format!("/api/v1/users/{id}")).await.expect(204);
    until_refused(&there).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_can_start_concurrently_on_an_empty_database() {
    for _ in 0..3 {
        let (paddock, replica) = TestPaddock::start_two(Engine::Postgres).await;
        for client in [&paddock.client, &replica.client] {
            client.get("/api/v1/self/readiness").await.expect(200);
        }
        let admin = paddock.admin().await;
        let all = admin.get("/api/v1/organizations").await.expect(200);
        assert_eq!(all["items"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_never_allocate_capacity_twice() {
    let (paddock, replica) = TestPaddock::start_two(Engine::Postgres).await;
    let here = paddock.owner("ann").await;
    let there = at(&replica.client, &here);
    let cluster = paddock.cluster(&here, json!({"cpu": 7})).await;
    let answers = at_once(120, |i| {
        let client = [&here, &there][i % 2].clone();
        let image = ["web:1", "web:2"][i % 2];
        let body = json!({"cluster_id": cluster, "resources": {"cpu": 1}, "image": image,
            "priority": i % 5});
        async move {
            let made = client.post("/api/v1/deployments", body).await;
            if i % 3 == 0 {
                client.delete(&deployment_path(&made.text("id"))).await.expect(202);
            }
            made
        }
    });
    let answers = answers.await;
    assert!(answers.iter().all(|answer| answer.status == 201));
    assert_consistent(&paddock).await;
    let settings = TestSettings { api_only: true, ..TestSettings::default() };
    let third = paddock.replica(settings).await;
    let page = at(&third.client, &here).get("/deployment/?offset=1000").await.expect(200);
    assert_eq!(page["total"], 80);
}

/// The same user at another server.
fn at(server: &Client, person: &Client) -> Client {
    server.with_token(person.token().expect("signed in"))
}

async fn until_refused(client: &Client) {
    let started = base::monotonic();
    while client.get("/user/").await.status != 401 {
        assert!(started.elapsed() < Duration::from_secs(2), "the token is still valid");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
