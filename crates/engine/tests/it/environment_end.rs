//! TTL and health checks of environments.

use std::time::Duration;

use engine::environment;
use model::environment::{Reason, Status};
use serde_json::json;
use testing::on_both_engines;

use crate::environment::{SHOP, Shop};
use crate::probe::until;
use crate::world::changes_of;

const PAGE: &str = "
name: page
version: '1'
entry_points: ['http://{{ environment.name }}.test/']
resources:
  - name: web
    executor: consul-kv
    with: {prefix: web/}
    status: {http: 'http://{{ web.path }}/healthz'}
";

on_both_engines! {
    async fn ttl_sends_reminders_can_be_extended_and_destroys(engine: Engine) {
        let shop = Shop::start(engine, &[SHOP]).await;
        let end = shop.world.db.now() + Duration::from_hours(48);
        let id = shop.create_with("shop@1.0.0", json!({}), |request| request.destroy_at = Some(end)).await;
        shop.until(id, Status::Deployed).await;
        let reminders = async || {
            let changes = changes_of(&shop.world.db, id).await;
            changes.iter().filter(|change| *change == "reminder").count()
        };
        assert_eq!(reminders().await, 0);
        shop.clock.advance(Duration::from_hours(25));
        until("a reminder", async || reminders().await == 1).await;
        let later = end + Duration::from_hours(24);
        shop.ask(id, async |tx, now| environment::set_destroy_at(tx, now, Some(later)).await)
            .await.unwrap();
        shop.clock.advance(Duration::from_hours(24));
        until("another one", async || reminders().await == 2).await;
        assert_eq!(shop.get(id).await.status, Status::Deployed);
        shop.clock.advance(Duration::from_hours(24));
        shop.until(id, Status::Destroyed).await;
    }

    async fn environment_is_deployed_while_healthy_and_fails_when_unhealthy(engine: Engine) {
        let shop = Shop::start(engine, &[PAGE]).await;
        let answers = |url: &str, status: u16| {
            shop.world.fleet.probe.state().insert(url.into(), status);
        };
        answers("http://mine.test/", 401);
        answers("http://made/web/healthz", 503);
        let id = shop.create("page@1", json!({})).await;
        until("the reason is recorded", async || {
            let message = "http://made/web/healthz returned HTTP status 503".into();
            shop.get(id).await.reason == Reason::HealthCheckFailed { of: "web".into(), message }
        }).await;
        assert_eq!(shop.get(id).await.status, Status::Validating);
        answers("http://made/web/healthz", 200);
        let now = shop.until(id, Status::Deployed).await;
        assert_eq!(now.entry_points, ["http://mine.test/"]);
        answers("http://mine.test/", 502);
        until("it has failed", async || {
            shop.clock.advance(Duration::from_secs(31));
            shop.get(id).await.status == Status::Failed
        }).await;
        let reason = shop.get(id).await.reason;
        assert!(matches!(&reason, Reason::HealthCheckFailed { of, .. } if of == "the entry point"), "{reason}");
        answers("http://mine.test/", 200);
        until("it works again", async || {
            shop.clock.advance(Duration::from_secs(31));
            shop.get(id).await.status == Status::Deployed
        }).await;
    }

    async fn environment_that_never_responds_fails(engine: Engine) {
        let shop = Shop::start(engine, &[PAGE]).await;
        let id = shop.create("page@1", json!({})).await;
        shop.until(id, Status::Validating).await;
        shop.clock.advance(Duration::from_mins(6));
        let now = shop.until(id, Status::Failed).await;
        let Reason::HealthCheckFailed { message, .. } = now.reason else { panic!("{}", now.reason) };
        assert!(message.contains("does not answer"), "{message}");
    }
}
