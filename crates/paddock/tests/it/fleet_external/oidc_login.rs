//! OIDC login with tokens of a real OpenID provider.

use serde_json::json;
use testing::programs::{OidcProvider, claims};

use crate::fleet::{DINOSAURS, Fleet, KAFKAS};
use crate::process::Setup;

const AUDIENCE: &str = "urn:api:RS256";

fn settings(issuer: &str) -> Setup {
    Setup::new().arg("--oidc-issuer", issuer).arg("--oidc-audience", AUDIENCE)
}

#[tokio::test]
async fn oidc_token_is_accepted() {
    let provider = OidcProvider::start();
    let server = settings(&provider.issuer).start();
    let client = provider.register().await;
    let token = provider.token(&client, "RS256").await.unwrap();
    let ann = server.http().with_token(&token);
    // The user is created by the first call.
    let list = ann.get(KAFKAS).await.expect(200);
    assert_eq!(list["total"], 0);
    let body = json!({"name": "rex", "multi_az": true});
    let created = ann.post(&format!("{DINOSAURS}?async=true"), body).await.expect(202);
    assert_eq!(created["owner"], claims()["preferred_username"]);

    // Other organizations do not see the instance.
    let ben = server.http_owner("ben").await;
    assert_eq!(ben.get(DINOSAURS).await.expect(200)["total"], 0);

    // Tokens with another audience, a modified signature or an invalid format.
    let other_audience = provider.token(&client, "ES256").await.unwrap();
    let (head, end) = token.rsplit_once('.').unwrap();
    let changed = format!("{head}.{}{}", if end.starts_with('A') { 'B' } else { 'A' }, &end[1..]);
    for bad in [other_audience.as_str(), &changed, "a.b.c", head] {
        let refused = server.http().with_token(bad).get(KAFKAS).await.expect(401);
        assert_eq!(refused["code"], "KAFKAS-MGMT-15", "{refused:#}");
    }
    assert!(!server.stderr().contains(end), "no signature is in the log");
}

#[tokio::test]
async fn provider_outage_affects_only_oidc_users() {
    let provider = OidcProvider::start();
    let issuer = provider.issuer.clone();
    let old = provider.token(&provider.register().await, "RS256").await.unwrap();
    let port = provider.stop();
    let fleet = Fleet::start(settings(&issuer)).await;
    // The token cannot be verified. The fleet manager API has no 503.
    fleet.ann.with_token(&old).get("/api/v1/instances").await.expect(503);
    let refused = fleet.ann.with_token(&old).get(KAFKAS).await.expect(500);
    assert_eq!(refused["code"], "KAFKAS-MGMT-9");
    fleet.ann.get(KAFKAS).await.expect(200);

    let options =
        json!({"port": port, "generation": 2, "rotates_tokens": true, "claims": claims()});
    let provider = OidcProvider::with(&options);
    let new = provider.token(&provider.register().await, "RS256").await.unwrap();
    let ann = fleet.ann.with_token(&new);
    fleet
        .poll("tokens are accepted again", async || {
            let now = ann.get(KAFKAS).await;
            if now.status == 200 { Ok(()) } else { Err(now.json) }
        })
        .await;
    // The provider has new keys.
    fleet.ann.with_token(&old).get(KAFKAS).await.expect(401);
}
