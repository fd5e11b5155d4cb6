//! OIDC logins: mapping of token bearers to users.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use api::oidc::{Claims, Oidc, TokenRejection, Verify};
use futures_util::future::BoxFuture;
use model::Time;
use serde_json::json;
use testing::{Engine, TestPaddock, TestSettings, on_both_engines};

use crate::fleet_mock::{API, error, request_kafka};

/// Accepted tokens with their claims.
#[derive(Clone, Default)]
pub(crate) struct FakeTokens(Arc<Mutex<BTreeMap<String, Claims>>>);

impl FakeTokens {
    /// Adds a token with these claims.
    pub(crate) fn add(&self, claims: Claims) -> String {
        let mut all = self.0.lock().unwrap();
        let token = format!("head.{}.tail", all.len());
        all.insert(token.clone(), claims);
        token
    }

    pub(crate) fn settings(&self) -> api::Settings {
        api::Settings { oidc: Oidc(Some(Arc::new(self.clone()))), ..api::Settings::default() }
    }
}

impl Verify for FakeTokens {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Claims, TokenRejection>> {
        let found = self.0.lock().unwrap().get(token).cloned();
        let answer = match found {
            _ if token.starts_with("down") => {
                Err(TokenRejection::Unavailable("issuer is down".into()))
            }
            found => found.ok_or_else(|| TokenRejection::Invalid("invalid signature".into())),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Claims of a person.
pub(crate) fn person(name: &str, organization: &str) -> Claims {
    Claims {
        issuer: "https://sso.example".into(),
        subject: format!("id of {name}"),
        username: Some(name.into()),
        name: None,
        organization: Some(organization.into()),
        account: Some("account 1".into()),
        is_org_admin: false,
        client_id: None,
        roles: Vec::new(),
        expires_at: Time(i64::MAX),
    }
}

/// Starts a server that accepts these tokens.
async fn start_with_tokens(engine: Engine) -> (TestPaddock, FakeTokens) {
    let tokens = FakeTokens::default();
    let settings = TestSettings { api: tokens.settings(), ..TestSettings::default() };
    (TestPaddock::start_with(engine, settings).await, tokens)
}

on_both_engines! {
    async fn first_login_creates_user_and_organization(engine: Engine) {
        let (paddock, tokens) = start_with_tokens(engine).await;
        // Names that are already in use.
        let local = paddock.owner("eve").await;
        let eve = paddock.client.with_token(&tokens.add(person("eve", "13640203")));
        let bob = paddock.client.with_token(&tokens.add(person("bob", "13640203")));
        let zoe = paddock.client.with_token(&tokens.add(person("zoe", "777")));
        let answers = futures_util::future::join_all((0..8).map(|_| eve.get("/user/"))).await;
        let mut ids: Vec<String> = answers.iter().map(|answer| answer.text("id")).collect();
        ids.dedup();
        assert_eq!(ids.len(), 1, "{ids:?}");
        assert_ne!(ids[0], local.get("/user/").await.text("id"));
        let id = request_kafka(&bob, "events").await;
        let path = format!("{API}/kafkas/{id}");
        assert_eq!(bob.get(&path).await.expect(200)["owner"], "bob");
        assert_eq!(eve.get(&path).await.status, 200);
        for other in [&zoe, &local] {
            error(&other.get(&path).await, 404, 7);
        }
        let organization = eve.get("/organization/").await;
        assert_eq!(organization.text("name"), "13640203");
        assert_eq!(organization.text("id"), bob.get("/organization/").await.text("id"));
        // Users of an OIDC provider have no password.
        let body = json!({"username": "bob", "password": "!"});
        assert_eq!(paddock.client.post("/user/login/", body).await.status, 401);
    }

    async fn token_claims_determine_rights(engine: Engine) {
        let (paddock, tokens) = start_with_tokens(engine).await;
        let bob = paddock.client.with_token(&tokens.add(person("bob", "1")));
        let eve = paddock.client.with_token(&tokens.add(person("eve", "1")));
        let id = request_kafka(&bob, "events").await;
        let path = format!("{API}/kafkas/{id}?async=true");
        error(&eve.delete(&path).await, 404, 7);
        let raised = Claims { is_org_admin: true, ..person("eve", "1") };
        let eve = paddock.client.with_token(&tokens.add(raised));
        eve.delete(&path).await.expect(202);
    }

    async fn roles_of_a_token_make_viewers_and_auditors(engine: Engine) {
        let (paddock, tokens) = start_with_tokens(engine).await;
        let bob = paddock.client.with_token(&tokens.add(person("bob", "1")));
        let id = request_kafka(&bob, "events").await;
        let with_role = |name: &str, role: &str, organization: &str| {
            let roles = vec!["other".to_owned(), role.to_owned()];
            paddock.client.with_token(&tokens.add(Claims { roles, ..person(name, organization) }))
        };
        let viewer = with_role("eve", "paddock-viewer", "1");
        assert_eq!(viewer.get("/user/").await.text("role"), "viewer");
        viewer.get(&format!("{API}/kafkas/{id}")).await.expect(200);
        error(&viewer.delete(&format!("{API}/kafkas/{id}?async=true")).await, 403, 11);
        viewer.get("/api/v1/admin/quota").await.expect(403);
        let auditor = with_role("aud", "paddock-auditor", "2");
        auditor.get(&format!("/api/v1/instances/{id}")).await.expect(200);
        auditor.get("/api/v1/admin/quota").await.expect(200);
        auditor.delete(&format!("/api/v1/instances/{id}")).await.expect(403);
        // The claim does not outlive the token.
        let former = paddock.client.with_token(&tokens.add(person("aud", "2")));
        former.get(&format!("/api/v1/instances/{id}")).await.expect(404);
    }

    async fn token_that_names_another_organization_is_refused(engine: Engine) {
        let (paddock, tokens) = start_with_tokens(engine).await;
        let bob = paddock.client.with_token(&tokens.add(person("bob", "1")));
        let own = bob.get("/organization/").await.text("id");
        // An administrator of organization 2 is no owner of organization 1.
        let elsewhere = Claims { is_org_admin: true, ..person("bob", "2") };
        let elsewhere = paddock.client.with_token(&tokens.add(elsewhere));
        let rename = json!({"name": "taken"});
        for answer in [
            elsewhere.get("/organization/").await,
            elsewhere.patch(&format!("/api/v1/organizations/{own}"), rename).await,
        ] {
            assert_eq!(answer.status, 403, "{:#}", answer.json);
            let said = answer.json.to_string();
            assert!(said.contains("belongs to another organization"), "{said}");
        }
        assert_eq!(bob.get("/organization/").await.text("name"), "1");
        let admin = paddock.admin().await;
        let all = admin.get("/api/v1/organizations").await.expect(200).to_string();
        assert!(!all.contains("\"2\""), "no organization is created: {all}");
        // The role in the user's own organization follows the token.
        let raised = Claims { is_org_admin: true, ..person("bob", "1") };
        let raised = paddock.client.with_token(&tokens.add(raised));
        let path = format!("/api/v1/organizations/{own}");
        raised.patch(&path, json!({"name": "mine"})).await.expect(200);
    }

    async fn invalid_tokens_are_rejected(engine: Engine) {
        let (paddock, tokens) = start_with_tokens(engine).await;
        let homeless = tokens.add(Claims { organization: None, ..person("eve", "1") });
        let path = format!("{API}/kafkas");
        for token in ["a.b.c", &homeless] {
            error(&paddock.client.with_token(token).get(&path).await, 401, 15);
            assert_eq!(paddock.client.with_token(token).get("/api/v1/clusters").await.status, 401);
        }
        assert_eq!(paddock.client.with_token("down.b.c").get("/api/v1/clusters").await.status, 503);
        let without = TestPaddock::start(engine).await;
        error(&without.client.with_token("a.b.c").get(&path).await, 401, 15);
    }
}
