//! One day of a region: demand rises and falls through the API, clusters are added and removed, and
//! the accounting stays consistent. The test controls the clock; the complete server runs.

use std::collections::BTreeMap;
use std::time::Duration;

use model::event::Actor;
use serde_json::{Value, json};
use store::pool;
use testing::{Client, Engine, Rng, TestPaddock, TestSettings, check_ledgers, pools};

/// Time between two steps.
const STEP: Duration = Duration::from_mins(30);
const STEPS: u64 = 24 * 2;
/// Peak demand in cpu: slightly more than 50 clusters have.
const PEAK: i64 = 420;

/// Demand curve: zero, rising in the morning, falling in the evening, zero.
fn curve(step: u64) -> i64 {
    let step = i64::try_from(step).unwrap();
    match step {
        0..2 | 32.. => 0,
        2..17 => PEAK * (step - 1) / 15,
        17..20 => PEAK,
        _ => PEAK * (32 - step) / 12,
    }
}

struct Region {
    paddock: TestPaddock,
    user: Client,
    admin: Client,
    rng: Rng,
    /// End step and request of each deployment.
    wanted: BTreeMap<String, (u64, i64)>,
    most: usize,
}

impl Region {
    async fn start() -> Self {
        let mut settings = TestSettings {
            pools: vec![pools::pool("east", [("cpu", 8), ("ram", 1 << 40)], 50)],
            agent_lease: Some(Duration::from_hours(72)),
            ..TestSettings::default()
        };
        settings.api.token_life = Duration::from_hours(72);
        let paddock = TestPaddock::start_with(Engine::Sqlite, settings).await;
        let (user, admin) = (paddock.owner("acme").await, paddock.admin().await);
        Self { paddock, user, admin, rng: Rng::from_env(), wanted: BTreeMap::new(), most: 0 }
    }

    async fn step(&mut self, step: u64) {
        self.paddock.clock.advance(STEP);
        let over = self.wanted.iter().filter(|(_, (until, _))| *until <= step);
        let over: Vec<String> = over.map(|(id, _)| id.clone()).collect();
        for id in over {
            self.user.delete(&format!("/api/v1/deployments/{id}")).await.expect(202);
            self.wanted.remove(&id);
        }
        let mut asked: i64 = self.wanted.values().map(|(_, cpu)| cpu).sum();
        while asked < curve(step) {
            let cpu = 1 + i64::try_from(self.rng.below(4)).unwrap();
            let mut body = json!({"name": format!("at-{step}"), "resources": {"cpu": cpu}});
            if self.rng.one_in(2) {
                body["image"] = json!("registry/web:1");
            }
            let id = self.user.post("/api/v1/deployments", body).await.text("id");
            self.wanted.insert(id, (step + 2 + self.rng.below(3), cpu));
            asked += cpu;
        }
        self.settle().await;
    }

    /// Waits until nothing changes any more, and checks consistency meanwhile.
    async fn settle(&mut self) {
        // New requests are not considered yet.
        self.paddock.clock.advance(Duration::from_secs(1));
        let (mut last, mut quiet) = (Value::Null, 0);
        for _ in 0..600 {
            let mut tx = self.paddock.db().begin(Actor::Server).await.unwrap();
            pool::resync(&mut tx).await.unwrap();
            tx.commit().await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = self.pool().await;
            let clusters = now["clusters"].as_object().unwrap();
            // Pending requests have a reason: all 50 clusters exist, or a removal was too recent.
            let reason = now["reason"].as_str().unwrap();
            let is_held_back = reason.contains("blocked by `at_most`") || reason.contains("cool");
            let queue = self.user.get("/api/v1/queue").await.json;
            let is_calm = clusters.keys().all(|status| status == "ready")
                && (queue["items"] == json!([]) || is_held_back);
            quiet = if is_calm && now == last { quiet + 1 } else { 0 };
            last = now;
            if quiet == 3 {
                break;
            }
        }
        assert_eq!(quiet, 3, "does not settle: {last:#}");
        let there = last["clusters"]["ready"].as_u64().unwrap_or(0);
        self.most = self.most.max(usize::try_from(there).unwrap());
        check_ledgers(self.paddock.db()).await;
    }

    async fn pool(&self) -> Value {
        self.admin.get("/api/v1/fleet/scaling").await.json["items"][0].clone()
    }

    /// Times when clusters were added (true) and removed.
    async fn changes(&self) -> Vec<(model::Time, bool)> {
        let events = self.admin.get("/api/v1/events?kind=pool&limit=1000").await.json;
        let events = events["items"].as_array().unwrap().clone();
        let read = |event: &Value| {
            let at = event["at"].as_str().unwrap().parse().unwrap();
            (at, event["type"] == "pool.grown")
        };
        events.iter().map(read).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn region_scales_from_0_to_50_clusters_and_back_without_flapping() {
    let mut region = Region::start().await;
    for step in 0..STEPS {
        region.step(step).await;
    }
    assert_eq!(region.most, 50);
    let end = region.pool().await;
    assert_eq!(end["clusters"], json!({}), "{end:#}");
    let changes = region.changes().await;
    let made = changes.iter().filter(|(_, grown)| *grown).count();
    assert_eq!(changes.len(), 2 * made, "every added cluster was removed");
    let turns: Vec<_> = changes.windows(2).filter(|pair| pair[0].1 != pair[1].1).collect();
    for pair in &turns {
        assert!(pair[1].0.since(pair[0].0) >= Duration::from_mins(10), "a flap: {pair:?}");
    }
    eprintln!("{made} clusters were added and removed, in {} turns", turns.len());
    // Demand turns once; in the morning many deployments may end together by chance.
    assert!(turns.len() <= 3, "{turns:?}");
}
