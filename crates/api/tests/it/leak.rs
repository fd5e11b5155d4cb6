//! Nothing that one tenant is shown names another tenant's things, on a shared cluster and machine
//! with preemption, fair shares, backfill and reservations under way.

use std::time::Duration;

use engine::local_cluster;
use engine::placement::Settings;
use model::{Quantity, Resources};
use serde_json::{Value, json};
use testing::{Client, TestPaddock, TestSettings, on_both_engines};

use crate::placement::until_reason;
use crate::world::{deploy, deployment_path, start_with};

/// The lists that a tenant may read.
const LISTS: [&str; 14] = [
    "clusters",
    "deployments",
    "environments",
    "events",
    "executors",
    "graph",
    "images",
    "instances",
    "invites",
    "organizations",
    "queue",
    "quota",
    "templates",
    "users",
];

fn container(name: &str, cpu: i64, priority: i64, cluster: Option<&str>) -> Value {
    json!({"name": name, "image": "web:1", "resources": {"cpu": cpu}, "priority": priority,
        "cluster_id": cluster})
}

/// Everything that a tenant is shown, as text.
async fn shown(client: &Client) -> String {
    let mut all = String::new();
    for list in LISTS {
        let answer = client.get(&format!("/api/v1/{list}?limit=1000")).await;
        let answer = if answer.status == 200 {
            answer
        } else {
            client.get(&format!("/api/v1/{list}")).await
        };
        all.push_str(&answer.json.to_string());
    }
    for path in ["/deployment/", "/cluster/", "/user/", "/organization/"] {
        all.push_str(&client.get(path).await.expect(200).to_string());
    }
    for word in ["secret", "local", "web"] {
        all.push_str(&client.get(&format!("/api/v1/search?q={word}")).await.json.to_string());
    }
    let own = client.get("/api/v1/deployments?limit=1000").await.expect(200);
    for deployment in own["items"].as_array().unwrap() {
        let path = deployment_path(deployment["id"].as_str().unwrap());
        for part in ["", "/explain", "/history"] {
            all.push_str(&client.get(&format!("{path}{part}")).await.expect(200).to_string());
        }
    }
    for (cpu, priority) in [(1, 0), (1, 100), (3, 100), (99, 0)] {
        let body = container("trial", cpu, priority, None);
        let answer = client.post("/api/v1/deployments?dry_run=true", body).await.expect(200);
        all.push_str(&answer.to_string());
    }
    all
}

/// The ids and names of a tenant's things.
async fn secrets(client: &Client) -> Vec<String> {
    let mut all = Vec::new();
    for list in ["deployments", "organizations", "users", "clusters"] {
        let page = client.get(&format!("/api/v1/{list}?limit=1000")).await.expect(200);
        for item in page["items"].as_array().unwrap() {
            if item["shared"] != true {
                all.push(item["id"].as_str().unwrap().to_owned());
            }
        }
    }
    all
}

async fn contended(engine: testing::Engine) -> (TestPaddock, Client, Client) {
    let mut machine = Resources::from([("cpu", 4)]);
    machine.set("ram", Quantity::whole(64 << 30));
    let world = model::world::Settings { reserve_after: Duration::ZERO, ..Default::default() };
    let settings = TestSettings {
        machine: Some(machine.clone()),
        placement: Settings { world, ..Settings::default() },
        ..TestSettings::default()
    };
    let (paddock, ann) = start_with(engine, settings).await;
    local_cluster::ensure(paddock.db(), &machine).await.unwrap();
    local_cluster::ensure_machine(paddock.db(), &machine).await.unwrap();
    let zoe = paddock.owner("zoesecret").await;
    (paddock, ann, zoe)
}

on_both_engines! {
    async fn nothing_shown_to_a_tenant_names_things_of_another(engine: Engine) {
        let (paddock, ann, zoe) = contended(engine).await;
        for n in 0..4 {
            let id = deploy(&ann, container(&format!("annsecret-{n}"), 1, 0, None)).await;
            paddock.until(&ann, &deployment_path(&id), "status", "running").await;
        }
        for n in 0..2 {
            let id = deploy(&zoe, container(&format!("zoesecret-{n}"), 1, 97, None)).await;
            paddock.until(&zoe, &deployment_path(&id), "status", "running").await;
        }
        // The other is down to its half.
        let body = container("zoesecret-third", 1, 96, None);
        let third = zoe.post("/api/v1/deployments", body).await;
        assert_ne!(third.json["status"], "running");
        let yard = json!({"name": "zoesecret-yard", "capacity": {"cpu": 100_000, "ram": "1Ti"}});
        let yard = zoe.post("/api/v1/clusters", yard).await.text("id");
        paddock.until(&zoe, &format!("/api/v1/clusters/{yard}"), "status", "ready").await;
        let body = container("zoesecret-yard", 1, 0, Some(&yard));
        let waiting = deploy(&zoe, body).await;
        until_reason(&zoe, &waiting, "Waiting for capacity on zoesecret-yard: needs 1 cpu, 64Mi ram; the machine that runs").await;
        let large = deploy(&ann, container("annsecret-large", 3, 0, None)).await;
        until_reason(&ann, &large, "Waiting for capacity").await;
        let shown = [shown(&ann).await, shown(&zoe).await];
        assert!(shown[0].contains("Preempted"), "a preemption is shown");
        assert!(shown[1].contains("FairShareProtected"), "a protected organization is mentioned");
        for (shown, other, name) in
            [(&shown[0], &zoe, "zoesecret"), (&shown[1], &ann, "annsecret")]
        {
            for secret in secrets(other).await.iter().map(String::as_str).chain([name]) {
                let at = shown.find(secret);
                assert!(at.is_none(), "{secret} in …{}", at.map_or("", |at| &shown[at.saturating_sub(300)..]));
            }
        }
    }
}
