//! Instance lists in the fleet API: paging, order, search, and isolation.

use serde_json::{Value, json};
use testing::{Client, on_both_engines};

use crate::fleet::{DINOSAURS, KAFKAS, fails, kafka, request_kafka, start_fleet};
use crate::world::start_still;

on_both_engines! {
    async fn paging_matches_the_reference_fleet_manager(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        let empty = ann.get(KAFKAS).await.expect(200);
        assert_eq!(empty, json!({"kind": "KafkaRequestList", "page": 1, "size": 0, "total": 0, "items": []}));
        for name in ["e", "d", "c", "b", "a"] {
            kafka(&ann, name).await;
        }
        for (query, page, size, expected) in [
            ("", 1, 5, "abcde"),
            ("page=1&size=2", 1, 2, "ab"),
            ("page=2&size=2", 2, 2, "cd"),
            ("page=3&size=2", 3, 2, "e"),
            ("page=4&size=2", 4, 2, ""),
            ("page=0&size=2", 0, 2, "ab"),
            ("page=&size=", 1, 5, "abcde"),
            // The size is capped by the total before the offset is computed.
            ("page=2&size=100", 2, 5, ""),
            ("size=-1", 1, 5, "abcde"),
            ("size=1000000", 1, 5, "abcde"),
            ("page=9223372036854775807&size=100", i64::MAX, 5, ""),
        ] {
            let list = ann.get(&format!("{KAFKAS}?{query}")).await.expect(200);
            assert_eq!(names(&list), expected, "{query}");
            assert_eq!((&list["page"], &list["size"], &list["total"]), (&json!(page), &json!(size), &json!(5)), "{query}");
        }
        for query in ["page=-1", "page=x", "page=1.5", "size=0", "size=x", "page=99999999999999999999"] {
            fails(&ann.get(&format!("{KAFKAS}?{query}")).await, 17, 400);
        }
    }

    async fn list_has_the_requested_order(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        for (name, plan) in [("b", "standard.x1"), ("a-c", "developer.x1"), ("ab", "standard.x1")] {
            request_kafka(&ann, name, json!({"plan": plan})).await.expect(202);
        }
        for (order, expected) in [
            ("name", "a-cabb"),
            ("name desc", "baba-c"),
            ("created_at", "ba-cab"),
            ("CREATED_AT+DESC", "aba-cb"),
            ("instance_type,name+desc", "a-cbab"),
            ("+instance_type+asc+,+created_at+desc", "a-cabb"),
        ] {
            let list = ann.get(&format!("{KAFKAS}?orderBy={order}")).await.expect(200);
            assert_eq!(names(&list), expected, "{order}");
        }
        for column in ["bootstrap_server_host", "cloud_provider", "cluster_id", "href", "id", "multi_az",
            "organisation_id", "owner", "reauthentication_enabled", "region", "status", "updated_at", "version"] {
            let list = ann.get(&format!("{KAFKAS}?orderBy={column}+desc")).await.expect(200);
            assert_eq!(list["total"], 3, "{column}");
        }
        for order in ["nothing", "name+up", "name+asc+desc", "name,", "admin_api_server_url", "name;drop"] {
            fails(&ann.get(&format!("{KAFKAS}?orderBy={order}")).await, 17, 400);
        }
    }

    async fn search_expressions_match(engine: Engine) {
        let (_paddock, ann) = start_still(engine).await;
        for (name, plan) in [("orders", "standard.x1"), ("other", "developer.x1"), ("logs", "standard.x1")] {
            request_kafka(&ann, name, json!({"plan": plan})).await.expect(202);
        }
        for (search, expected) in [
            ("name = orders", "orders"),
            ("name = 'orders'", "orders"),
            ("NAME <> orders", "logsother"),
            ("name like o%", "ordersother"),
            ("name like O%", ""),
            ("name ilike O%", "ordersother"),
            ("name like 'l_gs'", "logs"),
            ("name in (logs, other)", "logsother"),
            ("name not in (logs, other)", "orders"),
            ("name = logs or name like o% and instance_type = developer", "logsother"),
            ("(name = logs or name like o%) and instance_type = developer", "other"),
            ("owner = ann and status = accepted and region = local", "logsordersother"),
            ("cluster_id = x", ""),
            // Sent by the command line client.
            ("name like %ers% or owner like %ers% or cloud_provider like %ers% or region like %ers% or status like %ers%", "orders"),
        ] {
            let list = find(&ann, search).await.expect(200);
            assert_eq!(names(&list), expected, "{search}");
        }
        for search in [" ", "name", "name = ", "colour = red", "name ~ x", "(name = x", "name in ()", "name = a and"] {
            fails(&find(&ann, search).await, 23, 400);
        }
        let joins = |n: usize| vec!["name = x"; n + 1].join(" or ");
        find(&ann, &joins(10)).await.expect(200);
        fails(&find(&ann, &joins(11)).await, 23, 400);
        // A kind can offer fewer columns and operators.
        for search in ["instance_type = standard", "name ilike r%", "name in (a)"] {
            let request = ann.request("GET", DINOSAURS).query(&[("search", search)]);
            fails(&ann.send(request).await, 23, 400);
        }
    }

    async fn search_is_limited_to_the_organization(engine: Engine) {
        let paddock = start_fleet(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        kafka(&ann, "mine").await;
        kafka(&zoe, "theirs").await;
        for search in [
            "name = theirs",
            "owner = zoe",
            "name = x or name like %",
            "name like % or owner like %",
            "name = x) or (name like %",
            "name = 'x' or '1' = '1'",
            "name = x' or 1=1 --",
            "name = \"x\" or 1=1",
            "name = x\\' or name like %",
            "name <> x or deleted_at = 1",
        ] {
            let answer = find(&ann, search).await;
            let shown = answer.json["items"].to_string();
            assert!(!shown.contains("theirs") && !shown.contains("zoe"), "{search}: {shown}");
            assert!([200, 400].contains(&answer.status), "{search}: {:#}", answer.json);
        }
    }
}

async fn find(client: &Client, search: &str) -> testing::Answer {
    client.send(client.request("GET", KAFKAS).query(&[("search", search)])).await
}

/// Names of all items, concatenated.
fn names(list: &Value) -> String {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["name"].as_str().unwrap()).collect()
}
