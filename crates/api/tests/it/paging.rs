//! Paging, stable while rows are added.

use std::collections::BTreeSet;

use serde_json::json;
use testing::{Client, on_both_engines};

use crate::world::{ids, start_still};

on_both_engines! {
    async fn numbered_pages_are_stable_while_rows_are_added(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        let made = make(&ann, 7).await;
        let mut seen = Vec::new();
        for page in 0..4 {
            let shown = ann.get(&format!("/cluster/?page={page}&offset=2")).await.expect(200);
            assert_eq!((&shown["page"], &shown["offset"]), (&json!(page), &json!(2)));
            assert_eq!(shown["total"], 7 + page);
            seen.extend(ids(&shown["items"]));
            make(&ann, 1).await;
        }
        assert_eq!(seen[..7], made[..]);
        let beyond = ann.get("/cluster/?page=1000000&offset=1000").await.expect(200);
        assert_eq!((&beyond["items"], &beyond["total"]), (&json!([]), &json!(11)));
        // Omitted and empty parameters have defaults.
        assert_eq!(ann.get("/cluster/?page=&offset=").await.expect(200)["offset"], 20);
    }

    async fn cursor_paging_returns_each_row_once_under_changes(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        let made = make(&ann, 9).await;
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let part = ann.get(&format!("/api/v1/clusters?limit=2{after}")).await.expect(200);
            seen.extend(ids(&part["items"]));
            // Changes before and after the reader's position.
            ann.delete(&format!("/api/v1/clusters/{}", seen[0])).await.expect(202);
            if seen.len() < 9 {
                make(&ann, 1).await;
            }
            let Some(next) = part["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        assert_eq!(seen[..9], made[..]);
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len());
    }

    async fn every_list_is_paged_with_after(engine: Engine) {
        let (paddock, ann) = start_still(engine).await;
        let admin = paddock.admin().await;
        make(&ann, 3).await;
        for name in ["one", "two"] {
            paddock.owner(name).await;
            paddock.member(&ann, &format!("member-{name}")).await;
            ann.post("/api/v1/deployments", json!({"resources": {"cpu": 1}})).await.expect(201);
        }
        for (client, list) in [
            (&admin, "organizations"),
            (&ann, "users"),
            (&ann, "invites"),
            (&ann, "clusters"),
            (&ann, "deployments"),
        ] {
            let whole = ids(&client.get(&format!("/api/v1/{list}")).await.expect(200)["items"]);
            assert!(whole.len() >= 2, "{list}");
            assert_eq!(all_pages(client, list, 1).await, whole, "{list}");
        }
    }

    async fn last_page_has_no_next(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        make(&ann, 4).await;
        for (limit, has_more) in [(1, true), (3, true), (4, false), (5, false), (1000, false)] {
            let part = ann.get(&format!("/api/v1/clusters?limit={limit}")).await.expect(200);
            assert_eq!(part["next"].is_string(), has_more, "{limit}");
        }
        let all = ann.get("/api/v1/events").await.expect(200)["items"].as_array().unwrap().len();
        for (limit, has_more) in [(all - 1, true), (all, false), (all + 1, false)] {
            let part = ann.get(&format!("/api/v1/events?limit={limit}")).await.expect(200);
            assert_eq!(part["next"].is_number(), has_more, "{limit}");
        }
    }
}

/// IDs of a whole list, read in pages of this size.
pub(crate) async fn all_pages(client: &Client, list: &str, limit: usize) -> Vec<String> {
    let (mut parts, mut after) = (Vec::new(), String::new());
    loop {
        let part = client.get(&format!("/api/v1/{list}?limit={limit}{after}")).await.expect(200);
        parts.extend(ids(&part["items"]));
        let Some(next) = part["next"].as_str() else { return parts };
        after = format!("&after={next}");
    }
}

async fn make(client: &Client, n: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for i in 0..n {
        let body = json!({"name": format!("cluster {i}"), "capacity": {"cpu": 1}});
        ids.push(client.post("/api/v1/clusters", body).await.text("id"));
    }
    ids
}
