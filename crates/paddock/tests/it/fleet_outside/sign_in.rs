//! People who sign in elsewhere: tokens of a real OpenID provider.

use serde_json::json;
use testing::programs::{OidcProvider, claims};

use crate::fleet::{DINOSAURS, Fleet, KAFKAS};
use crate::process::Setup;

const AUDIENCE: &str = "urn:api:RS256";

fn settings(issuer: &str) -> Setup {
    Setup::new().arg("--oidc-issuer", issuer).arg("--oidc-audience", AUDIENCE)
}

#[tokio::test]
async fn a_token_of_the_provider_is_as_good_as_one_of_paddocks() {
    let provider = OidcProvider::start();
    let server = settings(&provider.issuer).start();
    let client = provider.register().await;
    let token = provider.token(&client, "RS256").await.unwrap();
    let ann = server.http().with_token(&token);
    // She is known from her first call on.
    let list = ann.get(KAFKAS).await.expect(200);
    assert_eq!(list["total"], 0);
    let body = json!({"name": "rex", "multi_az": true});
    let made = ann.post(&format!("{DINOSAURS}?async=true"), body).await.expect(202);
    assert_eq!(made["owner"], claims()["preferred_username"]);

    // Somebody of another organization does not see it.
    let ben = server.http_owner("ben").await;
    assert_eq!(ben.get(DINOSAURS).await.expect(200)["total"], 0);

    // Tokens that are for somebody else, were changed, or are nobody's.
    let foreign = provider.token(&client, "ES256").await.unwrap();
    let (head, end) = token.rsplit_once('.').unwrap();
    let changed = format!("{head}.{}{}", if end.starts_with('A') { 'B' } else { 'A' }, &end[1..]);
    for bad in [foreign.as_str(), &changed, "a.b.c", head] {
        let refused = server.http().with_token(bad).get(KAFKAS).await.expect(401);
        assert_eq!(refused["code"], "KAFKAS-MGMT-15", "{refused:#}");
    }
    assert!(!server.stderr().contains(end), "no signature is in the log");
}

#[tokio::test]
async fn who_signs_in_elsewhere_waits_while_the_provider_is_down_and_nobody_else_does() {
    let provider = OidcProvider::start();
    let issuer = provider.issuer.clone();
    let old = provider.token(&provider.register().await, "RS256").await.unwrap();
    let port = provider.stop();
    let fleet = Fleet::start(settings(&issuer)).await;
    // Nobody can say whether it is good. The fleet managers' catalogue knows no 503.
    fleet.ann.with_token(&old).get("/api/v1/instances").await.expect(503);
    let refused = fleet.ann.with_token(&old).get(KAFKAS).await.expect(500);
    assert_eq!(refused["code"], "KAFKAS-MGMT-9");
    fleet.ann.get(KAFKAS).await.expect(200);

    let options =
        json!({"port": port, "generation": 2, "rotates_tokens": true, "claims": claims()});
    let provider = OidcProvider::with(&options);
    let new = provider.token(&provider.register().await, "RS256").await.unwrap();
    let known = fleet.ann.with_token(&new);
    fleet
        .look("its tokens are good again", async || {
            let now = known.get(KAFKAS).await;
            if now.status == 200 { Ok(()) } else { Err(now.json) }
        })
        .await;
    // It has other keys now.
    fleet.ann.with_token(&old).get(KAFKAS).await.expect(401);
}
