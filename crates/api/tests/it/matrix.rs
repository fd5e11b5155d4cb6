//! The matrix of access: every route × every kind of caller, with the outcome that the table of
//! roles demands.
//!
//! Routes and roles are read from the OpenAPI documents (`x-paddock-access`); a route without an
//! entry fails. Callers act on objects of ann's organization.

use std::time::Duration;

use serde_json::{Value, json};
use testing::{Answer, Client, Engine, TestPaddock, on_both_engines};

use crate::calls::{self, Call};
use crate::world::{World, service_account};

/// A caller.
struct Caller {
    name: &'static str,
    client: Client,
    identity: Identity,
}

/// What a caller is, as far as its rights depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Identity {
    /// Has no valid credentials.
    Unauthenticated,
    /// The agent of a cluster.
    Agent,
    /// A user of ann's organization with a role.
    Tenant(&'static str),
    /// An owner of another organization.
    Stranger,
    /// A role of the platform, which sees all organizations in the platform API.
    Platform(&'static str),
}

/// What has to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// 401.
    Unauthenticated,
    /// 403; 404 where an API hides the endpoint.
    Forbidden { is_hidden: bool },
    /// 404, as for an object that does not exist.
    NotFound,
    /// Neither of these: the request is executed, or fails for another reason.
    Authorised,
}

on_both_engines! {
    async fn every_route_admits_exactly_the_roles_of_the_table(engine: Engine) {
        let (world, callers) = prepare(engine).await;
        let mut calls = calls::all(&world.ours);
        calls.extend(calls::fleet(&world.ours));
        calls.extend(own_user(&calls));

        let mut wrong = Vec::new();
        for call in &calls {
            for caller in &callers {
                let expected = outcome(call, caller.identity);
                if expected != Outcome::Authorised {
                    wrong.extend(check_refused(&world, call, caller, expected).await);
                }
            }
        }
        // Reads first: the others delete what they address.
        calls.sort_by_key(order);
        for call in &calls {
            for caller in &callers {
                if outcome(call, caller.identity) == Outcome::Authorised {
                    wrong.extend(check_authorised(call, caller).await);
                }
            }
        }
        assert!(wrong.is_empty(), "{} of the matrix:\n{}", wrong.len(), wrong.join("\n"));
    }

    async fn leaked_id_fails_the_leak_check(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let (ann, zoe) = (paddock.owner("ann").await, paddock.owner("zoe").await);
        let id = zoe.get("/organization/").await.text("id");
        ann.received("GET /somewhere", "/somewhere", 200, &json!({"owner": id}).to_string());
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(paddock)));
        let message = *checked.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("GET /somewhere shows"), "{message}");
        assert!(message.contains(&id), "{message}");
    }
}

async fn prepare(engine: Engine) -> (World, Vec<Caller>) {
    let mut world = World::new(engine).await;
    let paddock = &world.paddock;
    let expired = world.ann.clone();
    paddock.clock.advance(Duration::from_hours(25));
    world.ann = paddock.sign_in("ann", "secret").await;
    world.zoe = paddock.sign_in("zoe", "secret").await;
    world.admin = paddock.admin().await;

    let revoked = paddock.user(&world.ann, "rhea", "owner").await;
    revoked.post("/api/v1/logout", Value::Null).await.expect(204);
    let removed = paddock.user(&world.ann, "remo", "owner").await;
    let id = removed.get("/user/").await.text("id");
    world.ann.delete(&format!("/api/v1/users/{id}")).await.expect(204);
    let member = paddock.user(&world.ann, "mia", "member").await;
    let account = service_account(&member, "ci").await;
    let account = account_token(paddock, &member, &account).await;
    let auditor = paddock.user(&world.admin, "aude", "member").await.of_platform();
    let id = auditor.get("/user/").await.text("id");
    let access = json!({"access": "auditor"});
    world.admin.patch(&format!("/api/v1/users/{id}"), access).await.expect(200);

    let callers = [
        ("anonymous", paddock.client.clone(), Identity::Unauthenticated),
        ("expired", expired, Identity::Unauthenticated),
        ("revoked", revoked, Identity::Unauthenticated),
        ("removed", removed, Identity::Unauthenticated),
        ("viewer", paddock.user(&world.ann, "vera", "viewer").await, Identity::Tenant("viewer")),
        ("member", member, Identity::Tenant("member")),
        ("service account", account, Identity::Tenant("member")),
        ("owner", paddock.user(&world.ann, "oona", "owner").await, Identity::Tenant("owner")),
        ("agent", world.agent.clone(), Identity::Agent),
        ("other organization", world.zoe.clone(), Identity::Stranger),
        ("auditor", auditor, Identity::Platform("auditor")),
        ("admin", world.admin.clone(), Identity::Platform("admin")),
    ];
    let callers = callers.map(|(name, client, identity)| Caller { name, client, identity });
    (world, callers.into())
}

/// Logs in as a service account.
async fn account_token(paddock: &TestPaddock, owner: &Client, account: &Answer) -> Client {
    let form = [
        ("grant_type", "client_credentials".to_owned()),
        ("client_id", account.text("client_id")),
        ("client_secret", account.text("client_secret")),
    ];
    let path = "/auth/realms/paddock/protocol/openid-connect/token";
    let request = paddock.client.request("POST", path).form(&form);
    let token = paddock.client.send(request).await.text("access_token");
    owner.with_token(&token)
}

/// The calls that address the caller itself, in addition to those that address ann.
fn own_user(calls: &[Call]) -> Vec<Call> {
    let of_users =
        calls.iter().filter(|call| call.operation["x-paddock-access"]["own"].is_object());
    let own = of_users.filter(|call| call.method != "DELETE").map(|call| {
        let mut call = call.clone();
        call.path = call.template.replace("{id}", "me");
        call.operation["x-paddock-access"] = call.operation["x-paddock-access"]["own"].clone();
        call
    });
    own.collect()
}

/// The outcome that the table of roles demands.
fn outcome(call: &Call, identity: Identity) -> Outcome {
    let access = &call.operation["x-paddock-access"];
    if access["open"] == true {
        return Outcome::Authorised;
    }
    let is_for_agents = access["agent"] == true;
    // The objects are ann's, so that the stricter rule applies to all others.
    let roles = access["by_object"].get("roles").unwrap_or(&access["roles"]).as_array();
    let roles = roles.cloned().unwrap_or_default();
    assert!(is_for_agents || !roles.is_empty(), "{} declares no access", call.name());
    let role = match identity {
        Identity::Agent if is_for_agents => return Outcome::Authorised,
        Identity::Agent | Identity::Unauthenticated => return Outcome::Unauthenticated,
        // The token of a user is not that of an agent.
        _ if is_for_agents && call.is_fleet() => return Outcome::Forbidden { is_hidden: true },
        _ if is_for_agents => return Outcome::Unauthenticated,
        Identity::Tenant(role) | Identity::Platform(role) => role,
        Identity::Stranger => "owner",
    };
    let sees_only_own = match identity {
        Identity::Stranger => true,
        // The administrator is a regular user in the other APIs.
        Identity::Platform(_) => !call.is_platform(),
        _ => false,
    };
    // A token of ann, who is none of the callers.
    let is_of_tenant = matches!(identity, Identity::Tenant(_) | Identity::Stranger);
    if is_of_tenant && call.template == "/api/v1/tokens/{id}" {
        return Outcome::NotFound;
    }
    let least = access["roles"].as_array().cloned().unwrap_or_default();
    let is_least = least.contains(&json!(role));
    match roles.contains(&json!(role)) {
        // The role suffices to ask for the object, which belongs to another organization.
        _ if is_least && sees_only_own && addresses_object(call) => Outcome::NotFound,
        true => Outcome::Authorised,
        false => Outcome::Forbidden { is_hidden: is_hidden(call, is_least) },
    }
}

/// The deletion of another user's instance fails as if it did not exist.
const HIDDEN: &str = "DELETE /api/{api}/v1/{plural}/{id}";

/// Whether the fleet API hides the endpoint, or the object of another user.
fn is_hidden(call: &Call, is_by_object: bool) -> bool {
    let is_admin = call.template.contains("/v1/admin/");
    call.is_fleet() && (is_admin || (is_by_object && call.name() == HIDDEN))
}

/// Whether the call addresses an object of ann's organization.
fn addresses_object(call: &Call) -> bool {
    let is_common = ["/cloud_providers/", "/errors/", "/admin/"];
    call.is_single_object()
        && !call.path.ends_with("/me")
        && !is_common.iter().any(|part| call.template.contains(part))
}

/// Reads first, then changes, deletions, and the end of the sessions.
fn order(call: &Call) -> u8 {
    match call.name().as_str() {
        "POST /api/v1/logout" => 4,
        // With the first grant, organizations need quota.
        "DELETE /api/v1/users/{id}" | "POST /api/v1/admin/quota" => 3,
        _ if call.is_read() => 0,
        _ if call.method == "DELETE" => 2,
        _ => 1,
    }
}

async fn send(call: &Call, client: &Client) -> Answer {
    let separator = if call.path.contains('?') { '&' } else { '?' };
    let asynchronous =
        if call.is_fleet() { format!("{separator}async=true") } else { String::new() };
    client.send(call.request(client, &format!("{}{asynchronous}", call.path))).await
}

/// Returns what is wrong, if anything: a refused call also changes nothing.
async fn check_refused(
    world: &World,
    call: &Call,
    caller: &Caller,
    expected: Outcome,
) -> Option<String> {
    let before = last_event(world).await;
    let answer = send(call, &caller.client).await;
    let is_expected = match expected {
        Outcome::Unauthenticated => answer.status == 401,
        Outcome::Forbidden { is_hidden: false } => answer.status == 403,
        Outcome::Forbidden { is_hidden: true } | Outcome::NotFound => answer.status == 404,
        Outcome::Authorised => false,
    };
    if !is_expected {
        return Some(format!("{expected:?}, but {}", shown(call, caller, &answer)));
    }
    let mut read = world.paddock.db().read().await.unwrap();
    let filter = store::event::Filter::default();
    let events = store::event::list(&mut read, store::Scope::All, &filter, before, 100).await;
    // Workers and the local agent go on.
    let is_caller = |actor: &str| ["user:", "anonymous"].iter().any(|of| actor.starts_with(of));
    let by_caller = events.unwrap().into_iter().find(|event| is_caller(&event.actor));
    by_caller.map(|event| format!("{}, but {event:?}", shown(call, caller, &answer)))
}

async fn last_event(world: &World) -> i64 {
    store::event::last(&mut world.paddock.db().read().await.unwrap()).await.unwrap()
}

/// Returns what is wrong, if anything.
async fn check_authorised(call: &Call, caller: &Caller) -> Option<String> {
    let answer = send(call, &caller.client).await;
    // The credentials in the body are wrong, or were tried too often.
    let is_login = call.template.contains("login");
    let is_read =
        call.is_read() && !is_absent(call) && matches!(caller.identity, Identity::Tenant(_));
    let is_wrong = match answer.status {
        401 | 403 => !is_login,
        404 => is_read,
        // The instance cannot be promoted, for which the fleet API has no other status.
        500 => !call.template.ends_with("/promote"),
        status => status > 500,
    };
    is_wrong.then(|| format!("authorised, but {}", shown(call, caller, &answer)))
}

fn shown(call: &Call, caller: &Caller, answer: &Answer) -> String {
    format!("{} as {}: {} {}", call.name(), caller.name, answer.status, answer.json)
}

/// Whether the organization has no such object, or the kind no such endpoint.
fn is_absent(call: &Call) -> bool {
    let absent = [
        "GET /api/{api}/v1/clusters/{id}",
        "GET /api/{api}/v1/status",
        // There is no other version.
        "GET /api/v1/templates/{reference}/diff",
        "GET /api/v1/templates/{reference}/impact",
    ];
    absent.contains(&call.name().as_str())
}
