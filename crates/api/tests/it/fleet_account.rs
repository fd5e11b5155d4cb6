//! Service accounts and the tokens of accounts and agents.

use serde_json::{Value, json};
use testing::{Client, TestPaddock, TestSettings, on_both_engines};

use crate::fleet_mock::{
    API, error, external_id, parameter, register, registration, request_kafka,
};
use crate::world::start;

const TOKEN: &str = "/auth/realms/paddock/protocol/openid-connect/token";

fn path(rest: &str) -> String {
    format!("{API}/service_accounts{rest}")
}

/// Requests a token with an account, by form or header.
async fn token(client: &Client, account: &str, secret: &str, basic: bool) -> (u16, Value) {
    let request = client.signed_out().request("POST", TOKEN);
    let request = if basic {
        request.basic_auth(account, Some(secret)).body("grant_type=client_credentials")
    } else {
        request.body(format!(
            "grant_type=client_credentials&client_id={account}&client_secret={secret}"
        ))
    };
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = client.send(request).await;
    (answer.status, answer.json)
}

on_both_engines! {
    async fn service_account_token_acts_for_its_owner(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let made = ann.post(&path(""), json!({"name": "robot", "description": "Runs at night, 2x."})).await;
        let made = made.expect(202);
        let (account, secret) = (made["client_id"].as_str().unwrap(), made["client_secret"].as_str().unwrap());
        assert_eq!((&made["owner"], &made["created_by"]), (&json!("ann"), &json!("ann")));
        assert!(secret.len() >= 43, "{secret}");
        let id = request_kafka(&ann, "events").await;
        for basic in [false, true] {
            let (status, answer) = token(&ann, account, secret, basic).await;
            assert_eq!(status, 200, "{answer:#}");
            assert_eq!((&answer["token_type"], &answer["expires_in"]), (&json!("Bearer"), &json!(600)));
            let robot = paddock.client.with_token(answer["access_token"].as_str().unwrap());
            assert_eq!(robot.get(&format!("{API}/kafkas/{id}")).await.expect(200)["name"], "events");
        }
        let one = ann.get(&path(&format!("/{}", made["id"].as_str().unwrap()))).await.expect(200);
        assert!(one.get("client_secret").is_none());
        let reset = path(&format!("/{}/reset_credentials", made["id"].as_str().unwrap()));
        let renewed = ann.post(&reset, json!({})).await.expect(200);
        assert_eq!(token(&ann, account, secret, false).await.0, 401);
        let secret = renewed["client_secret"].as_str().unwrap();
        assert_eq!(token(&ann, account, secret, false).await.0, 200);
        ann.delete(&path(&format!("/{}", made["id"].as_str().unwrap()))).await.expect(204);
        let (status, answer) = token(&ann, account, secret, false).await;
        assert_eq!((status, &answer["error"]), (401, &json!("invalid_client")));
    }

    async fn token_requires_an_account_and_a_supported_grant(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let send = async |body: &'static str| {
            let request = paddock.client.request("POST", TOKEN).body(body);
            let request = request.header("content-type", "application/x-www-form-urlencoded");
            paddock.client.send(request).await
        };
        assert_eq!(send("").await.status, 400);
        assert_eq!(send("grant_type=password&username=admin").await.json["error"], "unsupported_grant_type");
        assert_eq!(send("grant_type=client_credentials").await.json["error"], "invalid_client");
        let answer = paddock.client.post(TOKEN, json!({"grant_type": "client_credentials"})).await;
        assert_eq!((answer.status, &answer.json["error"]), (400, &json!("invalid_request")));
        assert_eq!(token(&paddock.client, "admin", "admin password", true).await.0, 401);
    }

    async fn agent_account_gets_tokens_for_its_cluster(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let id = external_id("b");
        let made = ann.post(&format!("{API}/clusters"), registration(&id)).await.expect(200);
        let (account, secret) = (parameter(&made, "sso-client-id"), parameter(&made, "sso-secret"));
        assert_eq!(account, format!("kas-fleetshard-agent-{id}"));
        let (status, answer) = token(&ann, &account, &secret, false).await;
        assert_eq!(status, 200, "{answer:#}");
        let lent = answer["access_token"].as_str().unwrap().to_owned();
        let agent = paddock.client.with_token(&lent);
        let about = format!("{API}/agent-clusters/{id}");
        agent.get(&about).await.expect(200);
        // Neither another client ID nor a short-lived token can obtain a token.
        let other = register(&paddock, &ann, "c").await;
        assert_eq!(token(&ann, &format!("kas-fleetshard-agent-{}", other.cluster), &secret, false).await.0, 401);
        assert_eq!(token(&ann, &account, &lent, false).await.0, 401);
        error(&agent.get(&other.path("")).await, 404, 7);
        // A new secret invalidates the old one and its tokens.
        let renewed = ann.get(&format!("{API}/clusters/{id}/addon_parameters")).await.expect(200);
        assert_eq!(renewed["kind"], "ClusterAddonParameters");
        assert_eq!(token(&ann, &account, &secret, false).await.0, 401);
        error(&agent.get(&about).await, 401, 15);
        let secret = parameter(&renewed, "sso-secret");
        assert_eq!(token(&ann, &account, &secret, true).await.0, 200);
    }

    async fn metrics_receiver_can_verify_an_agent(engine: Engine) {
        let (paddock, ann) = start(engine).await;
        let (one, other) = (register(&paddock, &ann, "b").await, register(&paddock, &ann, "c").await);
        let path = |id: &str| format!("{API}/obs-proxy-verification/{id}");
        let of = |seed: &str| {
            let id = external_id(seed);
            format!("{}-{}-{}-{}-{}", &id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..])
        };
        let asked = one.client.post(&path(&of("b").to_uppercase()), json!({})).await;
        assert_eq!((asked.status, asked.json), (200, json!(null)));
        error(&other.client.post(&path(&of("b")), json!({})).await, 403, 4);
        error(&ann.post(&path(&of("b")), json!({})).await, 403, 4);
        error(&one.client.post(&path(&of("d")), json!({})).await, 404, 7);
        for wrong in ["b", &one.cluster, &of("g"), &format!("{}-", of("b"))] {
            error(&one.client.post(&path(wrong), json!({})).await, 400, 46);
        }
        error(&paddock.client.post(&path(&of("b")), json!({})).await, 401, 15);
    }

    async fn service_accounts_are_validated_and_limited(engine: Engine) {
        let settings = TestSettings {
            api: api::Settings { max_service_accounts: 3, ..api::Settings::default() },
            ..TestSettings::default()
        };
        let paddock = TestPaddock::start_with(engine, settings).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let bob = paddock.member(&ann, "bob").await;
        for (body, code) in [
            (json!({}), 33),
            (json!({"name": ""}), 33),
            (json!({"name": "x".repeat(51)}), 34),
            (json!({"name": "Robot"}), 38),
            (json!({"name": "robot-"}), 38),
            (json!({"name": "robot", "description": "<b>"}), 39),
            (json!({"name": "robot", "description": "x".repeat(256)}), 34),
        ] {
            error(&ann.post(&path(""), body).await, 400, code);
        }
        let made = ann.post(&path(""), json!({"name": "robot"})).await.expect(202);
        let one = path(&format!("/{}", made["id"].as_str().unwrap()));
        error(&bob.get(&one).await, 403, 4);
        error(&bob.delete(&one).await, 403, 4);
        error(&zoe.get(&one).await, 404, 113);
        error(&zoe.delete(&one).await, 404, 113);
        error(&ann.get(&path("/nonsense")).await, 400, 40);
        error(&ann.get(&path("/00000000-0000-4000-8000-000000000000")).await, 404, 113);
        let bobs = bob.post(&path(""), json!({"name": "robot"})).await.expect(202);
        // Owners of the organization may delete accounts of members.
        let reset = path(&format!("/{}/reset_credentials", bobs["id"].as_str().unwrap()));
        ann.post(&reset, json!({})).await.expect(200);
        ann.post(&path(""), json!({"name": "third"})).await.expect(202);
        error(&ann.post(&path(""), json!({"name": "fourth"})).await, 403, 115);
        let list = ann.get(&path("")).await.expect(200);
        assert_eq!(list["items"].as_array().unwrap().len(), 3);
        assert_eq!(zoe.get(&path("")).await.expect(200)["items"], json!([]));
        let client_id = made["client_id"].as_str().unwrap();
        let found = ann.get(&path(&format!("?client_id={client_id}"))).await.expect(200);
        assert_eq!(found["items"][0]["id"], made["id"]);
        assert_eq!(zoe.get(&path(&format!("?client_id={client_id}"))).await.expect(200)["items"], json!([]));
        error(&ann.get(&path("?client_id=robot")).await, 400, 40);
        error(&ann.get(&path(&format!("?client_id={}", "x".repeat(48)))).await, 400, 34);
        error(&paddock.client.get(&path("")).await, 401, 15);
        let provider = paddock.client.get(&format!("{API}/sso_providers")).await.expect(200);
        assert!(provider["token_url"].as_str().unwrap().ends_with(TOKEN), "{provider:#}");
        assert_eq!(provider["id"], "");
    }
}
