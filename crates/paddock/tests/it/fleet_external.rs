//! Instances with real external systems: DNS, SSO and OIDC, healthy and failing.

mod faults;
mod oidc_login;
mod system;

use std::fs;

use serde_json::{Value, json};
use testing::programs::{Bind, INITIAL_TOKEN, Moto, OidcProvider, ZONE};

use super::fleet::{Fleet, KAFKAS};
use super::process::Setup;

/// DNS names of an instance.
fn dns_names(instance: &Value) -> [String; 3] {
    let host = instance["host"].as_str().unwrap();
    assert!(host.starts_with("one-") && host.ends_with(&format!(".{ZONE}")), "{host}");
    [host.to_owned(), format!("admin-server-{host}"), format!("broker-0-{host}")]
}

#[tokio::test]
async fn dns_records_and_sso_client_exist_while_the_instance_does() {
    let (bind, provider) = (Bind::prepare(), OidcProvider::start());
    let _named = bind.start();
    let setup = Setup::new();
    let key = setup.file("dns.key");
    fs::write(&key, &bind.writer).unwrap();
    let setup = setup
        .arg("--dns-server", &bind.address().to_string())
        .arg("--dns-zone", ZONE)
        .arg("--dns-key-file", key.to_str().unwrap())
        .arg("--domain", ZONE)
        .arg("--sso-issuer", &provider.issuer)
        .env("PADDOCK_SSO_REGISTRATION_TOKEN", INITIAL_TOKEN);
    let fleet = Fleet::start(setup).await;
    let id = fleet.create(KAFKAS, "one").await;
    let ready = fleet.until_ready(&id).await;
    let target = format!("{}.{ZONE}", ready["cluster_id"].as_str().unwrap());
    let record = |name: &str| format!("{name}. 300 IN CNAME {target}.\n");
    for name in dns_names(&ready) {
        assert_eq!(bind.dig(&name, "CNAME"), record(&name));
    }
    assert_eq!(provider.clients().await.len(), 1);
    for system in ["the name server", "the OpenID provider"] {
        fleet.until_health(system, "healthy").await;
    }

    // Externally deleted records and clients are recreated at the next reconciliation, which a
    // change triggers.
    let [host, ..] = dns_names(&ready);
    bind.update(&format!("update delete {host} CNAME"));
    assert_eq!(bind.dig(&host, "CNAME"), "");
    let before = provider.clients().await;
    provider.delete_clients().await;
    let change = json!({"reauthentication_enabled": false});
    fleet.ann.patch(&format!("{KAFKAS}/{id}"), change).await.expect(200);
    fleet
        .poll("recreated", async || {
            let (name, clients) = (bind.dig(&host, "CNAME"), provider.clients().await);
            let is_repaired = name == record(&host) && clients.len() == 1 && clients != before;
            if is_repaired { Ok(()) } else { Err(Value::from(format!("{name} {clients:?}"))) }
        })
        .await;

    fleet.delete(KAFKAS, &id).await;
    fleet.until_deleted(&id).await;
    for name in dns_names(&ready) {
        assert_eq!(bind.status(&name), "NXDOMAIN");
    }
    assert_eq!(provider.clients().await, Vec::<String>::new());
    fleet.assert_nothing_held().await;
}

#[tokio::test]
async fn route53_records_are_created_and_removed() {
    let moto = Moto::prepare();
    let _running = moto.start();
    let zone = moto.create_zone().await;
    let setup = Setup::new()
        .arg("--route53-zone", ZONE)
        .arg("--route53-endpoint", &format!("http://{}", moto.address()))
        .arg("--domain", ZONE)
        .env("AWS_ACCESS_KEY_ID", "AKIATEST")
        .env("AWS_SECRET_ACCESS_KEY", "hidden-from-everybody");
    let fleet = Fleet::start(setup).await;
    let id = fleet.create(KAFKAS, "one").await;
    let ready = fleet.until_ready(&id).await;
    let target = format!("{}.{ZONE}", ready["cluster_id"].as_str().unwrap());
    let records = moto.records(&zone).await;
    for name in dns_names(&ready) {
        assert!(records.contains(&format!("<Name>{name}.</Name>")), "{name}: {records}");
    }
    assert_eq!(records.matches(&target).count(), 3, "{records}");
    fleet.until_health("Route 53", "healthy").await;
    fleet.delete(KAFKAS, &id).await;
    fleet.until_deleted(&id).await;
    let records = moto.records(&zone).await;
    assert!(!records.contains("CNAME"), "{records}");
    assert!(!fleet.server.stderr().contains("hidden-from-everybody"));
    fleet.assert_nothing_held().await;
}
