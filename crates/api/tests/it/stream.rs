//! The event stream: live, isolated, resumed without loss or repetition.

use std::time::Duration;

use serde_json::{Value, json};
use testing::{Client, on_both_engines};

use crate::sse::Stream;
use crate::world::{World, names_field, start, start_still};

on_both_engines! {
    async fn stream_starts_at_the_current_position(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let mut stream = Stream::open(&ann, "", None).await;
        let cluster = paddock.cluster(&ann, json!({"cpu": 1})).await;
        for change in ["created", "provisioning", "provisioned", "waiting_for_agent", "ready"] {
            let got = stream.next().await;
            assert_eq!((got.name, &got.data["subject"]), (format!("cluster.{change}"), &json!(cluster)));
        }
        let listed = ann.get(&format!("/api/v1/events?subject={cluster}")).await.expect(200);
        assert_eq!(listed["items"][4]["seq"], stream.place.unwrap());
    }

    async fn stream_is_limited_to_the_organization_except_for_the_administrator(engine: Engine) {
        let world = World::new(engine).await;
        let mut ann = Stream::open(&world.ann, "?after=0", None).await;
        let mut admin = Stream::open(&world.admin, "?kind=deployment", None).await;
        let path = |id: &str| format!("/api/v1/deployments/{id}");
        world.zoe.patch(&path(&world.theirs.deployment), json!({"priority": 1})).await.expect(200);
        let last = world.ann.patch(&path(&world.ours.deployment), json!({"priority": 1})).await;
        last.expect(200);
        loop {
            let got = ann.next().await;
            assert_eq!(got.data["organization_id"], world.ours.organization, "{got:?}");
            if got.name == "deployment.updated" {
                break;
            }
        }
        let seen = [admin.next().await.data, admin.next().await.data];
        assert_eq!(seen[0]["organization_id"], world.theirs.organization);
        assert_eq!(seen[1]["organization_id"], world.ours.organization);
    }

    async fn stream_supports_the_list_filters(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        let first = make(&ann, "one").await;
        let mut by_subject = Stream::open(&ann, &format!("?subject={first}&after=0"), None).await;
        let mut by_type = Stream::open(&ann, "?type=cluster.updated", None).await;
        make(&ann, "two").await;
        ann.patch(&format!("/api/v1/clusters/{first}"), json!({"name": "three"})).await.expect(200);
        assert_eq!(by_subject.next().await.name, "cluster.created");
        assert_eq!(by_subject.next().await.name, "cluster.updated");
        assert_eq!(by_type.next().await.data["data"]["name"], "three");
        assert_eq!(by_type.within(Duration::from_millis(200)).await, None);
    }

    async fn broken_stream_resumes_without_loss_or_repetition(engine: Engine) {
        const WRITES: usize = 150;
        let (_paddock, ann) = start_still(engine).await;
        let mut stream = Stream::open(&ann, "?type=cluster.created", None).await;
        let write = async {
            for batch in 0..WRITES / 5 {
                let names = (0..5).map(|i| format!("cluster {}", batch * 5 + i)).collect::<Vec<_>>();
                futures_util::future::join_all(names.iter().map(|name| make(&ann, name))).await;
            }
        };
        let read = async {
            let mut got = Vec::new();
            while got.len() < WRITES {
                // The connection breaks every few events; the reader resumes with the last ID.
                for _ in 0..got.len() % 7 + 3 {
                    if got.len() < WRITES {
                        got.push(stream.next().await);
                    }
                }
                stream = Stream::open(&ann, "?type=cluster.created", stream.place).await;
            }
            got
        };
        let ((), got) = tokio::join!(write, read);
        assert!(got.windows(2).all(|pair| pair[0].id < pair[1].id), "out of order or twice");
        let listed = ann.get("/api/v1/events?limit=1000&type=cluster.created").await.expect(200);
        let listed: Vec<&Value> = listed["items"].as_array().unwrap().iter().collect();
        assert_eq!(got.iter().map(|g| &g.data).collect::<Vec<_>>(), listed);
    }

    async fn stream_without_events_resumes_at_its_position(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        let place = Stream::open(&ann, "", None).await.place;
        make(&ann, "meanwhile").await;
        let mut stream = Stream::open(&ann, "", place).await;
        assert_eq!(stream.next().await.data["data"]["name"], "meanwhile");
        let request = ann.request("GET", "/api/v1/events").header("accept", "text/event-stream");
        let answer = ann.send(request.header("last-event-id", "nonsense")).await;
        names_field(&answer, "Last-Event-ID", "nonsense");
    }

    async fn stream_ends_with_its_session(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let mia = paddock.member(&ann, "mia").await;
        let mut stream = Stream::open(&mia, "?kind=cluster", None).await;
        make(&ann, "before").await;
        assert_eq!(stream.next().await.data["data"]["name"], "before");
        mia.post("/api/v1/logout", json!({})).await.expect(204);
        // The session of a stream is checked every few seconds.
        paddock.clock.advance(Duration::from_secs(6));
        make(&ann, "after").await;
        assert!(stream.ends().await, "the stream outlives its session");
    }
}

async fn make(client: &Client, name: &str) -> String {
    let body = json!({"name": name, "capacity": {"cpu": 1}});
    client.post("/api/v1/clusters", body).await.text("id")
}
