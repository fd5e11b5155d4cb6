//! Paddock's authentication to Vault: tokens that expire, are renewed, or are revoked.

use std::time::Duration;

use adapters::vault::{Auth, Options, VaultSecrets};
use model::Secret;
use port::{Operation, Task};
use serde_json::json;
use testing::vault::{Lost, Role, Rule};

use super::vault_secret::{executor, refused, task};
use super::vault_secret_kv2::World;

fn db() -> Task {
    task(json!({"path": "shop/db", "generate": {"password": {}}}))
}

fn role(seconds: u64, max_seconds: u64, is_renewable: bool) -> Role {
    Role { secret_id: "s3cret-id".into(), rules: Rule::all(), seconds, max_seconds, is_renewable }
}

fn with_role(world: &World, secret_id: &str, mount: &str) -> VaultSecrets {
    let (role_id, secret_id) = ("r0le-id".into(), Secret::new(secret_id));
    let sign_in = Auth::AppRole { role_id, secret_id, mount: mount.into() };
    executor(Options::new(world.vault.address(), sign_in), &world.clock)
}

/// The number of such calls since the last count.
fn count(world: &World, line: &str) -> usize {
    let count = world.vault.request_lines().iter().filter(|request| *request == line).count();
    world.vault.clear_requests();
    count
}

const LOGIN: &str = "POST auth/approle/login";
const REVOKE: &str = "POST auth/token/revoke-self";
const RENEW: &str = "POST auth/token/renew-self";

#[tokio::test]
async fn token_is_renewed_after_two_thirds_of_its_lifetime() {
    let world = World::new().await;
    world.vault.create_token("t0ken", &Rule::all(), 900, true);
    let (executor, db) = (world.with_token("t0ken"), db());
    for (pass, renewals) in [(0, 0), (590, 0), (15, 1), (590, 0), (15, 1), (0, 0)] {
        world.clock.advance(Duration::from_secs(pass));
        executor.observe(&db).await.unwrap();
        assert_eq!(count(&world, RENEW), renewals, "after {pass} s");
    }
}

#[tokio::test]
async fn non_renewable_token_is_used_until_it_expires() {
    let world = World::new().await;
    world.vault.create_token("t0ken", &Rule::all(), 900, false);
    let (executor, db) = (world.with_token("t0ken"), db());
    for pass in [0, 700, 190] {
        world.clock.advance(Duration::from_secs(pass));
        executor.observe(&db).await.unwrap();
    }
    assert_eq!(count(&world, RENEW), 0);
    world.clock.advance(Duration::from_secs(20));
    for _ in 0..2 {
        let why = refused(executor.observe(&db).await);
        assert!(why.contains("it is expired or revoked. Set a new one"), "{why}");
        assert!(!why.contains("t0ken"), "{why}");
    }
}

#[tokio::test]
async fn token_that_another_server_renewed_is_used() {
    let world = World::new().await;
    world.vault.create_token("t0ken", &Rule::all(), 900, true);
    let (one, two, db) = (world.with_token("t0ken"), world.with_token("t0ken"), db());
    one.observe(&db).await.unwrap();
    two.observe(&db).await.unwrap();
    world.clock.advance(Duration::from_secs(610));
    two.observe(&db).await.unwrap();
    // As far as the first server knows, it has expired.
    world.clock.advance(Duration::from_mins(5));
    one.observe(&db).await.unwrap();
    world.clock.advance(Duration::from_secs(500));
    one.observe(&db).await.unwrap();
    assert_eq!(count(&world, RENEW), 2);
}

#[tokio::test]
async fn token_is_renewed_while_vault_is_not_used() {
    let world = World::new().await;
    world.vault.create_token("t0ken", &Rule::all(), 900, true);
    let (executor, db) = (world.with_token("t0ken"), db());
    let renewal = executor.renewal();
    for _ in 0..10 {
        world.clock.advance(renewal.once().await);
    }
    assert!(count(&world, RENEW) >= 8);
    executor.observe(&db).await.unwrap();
    world.vault.clear_requests();
    // Vault is unreachable, and then recovers.
    world.clock.advance(Duration::from_mins(10));
    world.vault.lose(0, Lost::Before);
    let wait = renewal.once().await.as_secs_f64();
    assert!((29.0..=30.0).contains(&wait), "{wait}");
    world.clock.advance(Duration::from_secs(30));
    let wait = renewal.once().await.as_secs_f64();
    assert!((599.0..=600.0).contains(&wait), "{wait}");
    assert_eq!(count(&world, RENEW), 2);
}

#[tokio::test]
async fn failed_renewal_is_harmless_while_the_token_is_valid() {
    let world = World::new().await;
    world.vault.create_token("t0ken", &Rule::all(), 900, true);
    let (executor, db) = (world.with_token("t0ken"), db());
    executor.observe(&db).await.unwrap();
    world.clock.advance(Duration::from_secs(610));
    world.vault.lose(0, Lost::Before);
    executor.observe(&db).await.unwrap();
    assert_eq!(count(&world, RENEW), 1);
    executor.observe(&db).await.unwrap();
    assert_eq!(count(&world, RENEW), 0, "it is not retried at every call");
    world.clock.advance(Duration::from_secs(40));
    executor.observe(&db).await.unwrap();
    assert_eq!(count(&world, RENEW), 1);
    world.clock.advance(Duration::from_secs(590));
    executor.observe(&db).await.unwrap();
}

#[tokio::test]
async fn concurrent_calls_authenticate_a_role_once() {
    let world = World::new().await;
    world.vault.create_role("r0le-id", role(900, 0, true));
    let (executor, db) = (with_role(&world, "s3cret-id", "approle"), db());
    let all = (0..8).map(|_| executor.observe(&db));
    for observed in futures_util::future::join_all(all).await {
        observed.unwrap();
    }
    assert_eq!(count(&world, LOGIN), 1);
    world.clock.advance(Duration::from_secs(610));
    executor.observe(&db).await.unwrap();
    assert_eq!(world.vault.request_lines().iter().filter(|line| *line == RENEW).count(), 1);
    assert_eq!(count(&world, LOGIN), 0);
}

#[tokio::test]
async fn role_authenticates_again_when_its_token_can_not_be_renewed() {
    for (role, pass) in
        [(role(900, 0, false), 610), (role(900, 1000, true), 610), (role(900, 0, true), 2000)]
    {
        let world = World::new().await;
        world.vault.create_role("r0le-id", role.clone());
        let (executor, db) = (with_role(&world, "s3cret-id", "approle"), db());
        executor.observe(&db).await.unwrap();
        world.vault.clear_requests();
        world.clock.advance(Duration::from_secs(pass));
        executor.observe(&db).await.unwrap();
        let revoked = world.vault.request_lines().iter().filter(|line| *line == REVOKE).count();
        assert_eq!(revoked, usize::from(pass < 900), "an expired token is not revoked");
        assert_eq!(count(&world, LOGIN), 1, "{role:?}");
        executor.observe(&db).await.unwrap();
        assert_eq!(count(&world, LOGIN), 0, "{role:?}");
    }
}

#[tokio::test]
async fn role_with_a_revoked_token_authenticates_again() {
    let world = World::new().await;
    world.vault.create_role("r0le-id", role(900, 0, true));
    let (executor, db) = (with_role(&world, "s3cret-id", "approle"), db());
    executor.observe(&db).await.unwrap();
    let token = world.vault.calls().last().unwrap().token.clone();
    world.vault.revoke_token(&token);
    world.vault.clear_requests();
    executor.observe(&db).await.unwrap();
    assert_eq!(count(&world, LOGIN), 1);
}

#[tokio::test]
async fn denied_role_replaces_only_an_old_token_and_revokes_it() {
    let world = World::new().await;
    let rules = vec![Rule::new("secret/", "read"), Rule::new("kv/", "read")];
    world.vault.create_role("r0le-id", Role { rules, ..role(900, 0, true) });
    let (executor, db) = (with_role(&world, "s3cret-id", "approle"), db());
    let why = refused(executor.apply(&db).await);
    assert!(why.contains("Permit create and update on secret/data/shop/db"), "{why}");
    assert_eq!(count(&world, LOGIN), 1);
    for (pass, logins) in [(100, 0), (30, 1), (0, 0), (100, 0), (30, 1)] {
        world.clock.advance(Duration::from_secs(pass));
        refused(executor.apply(&db).await);
        let revoked = world.vault.request_lines().iter().filter(|line| *line == REVOKE).count();
        assert_eq!((count(&world, LOGIN), revoked), (logins, logins), "after {pass} s");
    }
}

#[tokio::test]
async fn failed_authentication_names_the_settings_to_check() {
    let world = World::new().await;
    world.vault.create_role("r0le-id", role(900, 0, true));
    for (secret_id, mount) in [("wr0ng", "approle"), ("s3cret-id", "elsewhere")] {
        let why = refused(with_role(&world, secret_id, mount).observe(&db()).await);
        let message = format!("rejected the login at auth/{mount}/login");
        assert!(why.contains(&message) && why.contains("Check the role id"), "{why}");
        for hidden in ["wr0ng", "s3cret-id", "r0le-id"] {
            assert!(!why.contains(hidden), "{why}");
        }
    }
    let why = refused(world.with_token("b0gus").observe(&db()).await);
    assert!(why.contains("rejected Paddock's token") && !why.contains("b0gus"), "{why}");
    let shown = format!("{:?}", Auth::Token(Secret::new("b0gus")));
    assert!(!shown.contains("b0gus"));
}

#[tokio::test]
async fn namespace_is_sent_with_every_call() {
    let world = World::new().await;
    world.vault.create_role("r0le-id", role(900, 0, true));
    let (role_id, secret_id) = ("r0le-id".into(), Secret::new("s3cret-id"));
    let sign_in = Auth::AppRole { role_id, secret_id, mount: "approle".into() };
    let mut options = Options::new(world.vault.address(), sign_in);
    options.namespace = Some("team/shop".into());
    executor(options, &world.clock).apply(&db()).await.unwrap();
    let calls = world.vault.calls();
    assert!(calls.len() > 4 && calls.iter().all(|call| call.namespace == "team/shop"), "{calls:?}");
}
