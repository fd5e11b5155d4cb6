//! Leak check: no answer to a tenant contains names, ids or secrets of another tenant.
//!
//! Clients record what their tenant sent and received, and learn from answers what belongs to whom.
//! The check runs when the server of the test ends. Answers to the platform's roles and to
//! unauthenticated clients are not checked.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// Fields with secrets of the tenant that receives them.
const SECRETS: [&str; 5] = ["code", "token", "client_secret", "access_token", "password"];
/// Minimum length of a secret; shorter values are error codes.
const MIN_SECRET: usize = 20;
/// Minimum length of a name: shorter ones are parts of other texts.
const MIN_NAME: usize = 3;

/// A tenant: the id of its organization.
pub(crate) type Tenant = Arc<str>;

/// What a marker is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marker {
    /// Unique: an id or a secret.
    Unique,
    /// A name, which another tenant may choose as well.
    Name,
}

/// Everything that the tenants of a server sent and received.
#[derive(Default)]
pub(crate) struct Leaks(Mutex<State>);

#[derive(Default)]
struct State {
    users: HashMap<String, Tenant>,
    /// Markers with their tenant; none if several have it.
    markers: HashMap<String, (Marker, Option<Tenant>)>,
    received: Vec<Received>,
    sent: HashMap<Tenant, HashSet<String>>,
}

struct Received {
    tenant: Tenant,
    call: String,
    /// Words of the request, which the answer may repeat.
    request: HashSet<String>,
    body: String,
}

impl Leaks {
    /// Registers a user of a tenant.
    pub(crate) fn add_user(&self, tenant: &Tenant, username: &str) {
        let mut state = self.lock();
        state.users.insert(username.to_owned(), tenant.clone());
        state.mark(tenant, username, Marker::Name);
    }

    /// Registers ids and secrets of a tenant.
    pub(crate) fn add_unique(&self, tenant: &Tenant, text: &str) {
        self.lock().mark(tenant, text, Marker::Unique);
    }

    /// The tenant of a user; none for the platform's roles.
    pub(crate) fn tenant_of(&self, username: &str) -> Option<Tenant> {
        self.lock().users.get(username).cloned()
    }

    /// Records a request of a tenant and its answer.
    pub(crate) fn record(
        &self,
        tenant: &Tenant,
        call: &str,
        request: &str,
        status: u16,
        body: &str,
    ) {
        let request = words(request);
        let mut state = self.lock();
        state.sent.entry(tenant.clone()).or_default().extend(request.iter().cloned());
        if let Ok(json) = serde_json::from_str::<Value>(body) {
            if matches!(status, 201 | 202) {
                state.learn_id(tenant, &json["id"]);
            }
            state.learn(tenant, &json);
        }
        let (tenant, call, body) = (tenant.clone(), call.to_owned(), body.to_owned());
        state.received.push(Received { tenant, call, request, body });
    }

    /// Panics if a tenant received a marker of another one.
    pub(crate) fn check(&self) {
        let found = self.lock().found();
        assert!(found.is_empty(), "answers contain other tenants' data: {found:#?}");
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn mark(&mut self, tenant: &Tenant, text: &str, marker: Marker) {
        if text.len() < MIN_NAME || words(text).len() != 1 {
            return;
        }
        let known = self.markers.entry(text.to_owned());
        let entry = known.or_insert_with(|| (marker, Some(tenant.clone())));
        if entry.1.as_ref().is_some_and(|owner| owner != tenant) {
            entry.1 = None;
        }
    }

    /// Learns the objects and secrets of a tenant from an answer to it.
    fn learn(&mut self, tenant: &Tenant, json: &Value) {
        match json {
            Value::Object(fields) => {
                if json["organization_id"] == **tenant {
                    self.learn_id(tenant, &json["id"]);
                    self.learn_id(tenant, &json["subject"]);
                }
                for name in SECRETS {
                    let secret = fields.get(name).and_then(Value::as_str);
                    if let Some(text) = secret.filter(|text| text.len() >= MIN_SECRET) {
                        self.mark(tenant, text, Marker::Unique);
                    }
                }
                fields.values().for_each(|value| self.learn(tenant, value));
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(tenant, item)),
            _ => (),
        }
    }

    fn learn_id(&mut self, tenant: &Tenant, id: &Value) {
        let is_id = |text: &&str| text.len() >= 20 && words(text).len() == 1;
        if let Some(id) = id.as_str().filter(is_id) {
            self.mark(tenant, id, Marker::Unique);
        }
    }

    fn found(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for Received { tenant, call, request, body } in &self.received {
            for word in words(body) {
                let Some((marker, Some(owner))) = self.markers.get(&word) else { continue };
                let is_own = owner == tenant || request.contains(&word);
                let is_chosen = *marker == Marker::Name && self.sent[tenant].contains(&word);
                if !is_own && !is_chosen {
                    found.insert(format!("{call} shows {tenant} {word:?} of {owner}"));
                }
            }
        }
        found
    }
}

/// The words of a text. Ids, secrets and simple names are one word.
fn words(text: &str) -> HashSet<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.split(|c| !is_part(c)).filter(|word| word.len() >= MIN_NAME).map(str::to_owned).collect()
}

/// Checks for leaks when the server of the test ends, unless the test has failed already.
pub(crate) struct CheckAtEnd(pub(crate) Arc<Leaks>);

impl Drop for CheckAtEnd {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.0.check();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (Leaks, Tenant, Tenant) {
        let (ours, theirs): (Tenant, Tenant) =
            ("9m4e2mr0ui3e8a215n4g".into(), "9m4e2mr0ui3e8a215n50".into());
        let leaks = Leaks::default();
        for (tenant, name) in [(&ours, "ann"), (&theirs, "zoe")] {
            leaks.add_unique(tenant, tenant);
            leaks.add_user(tenant, name);
        }
        (leaks, ours, theirs)
    }

    fn found(leaks: &Leaks) -> usize {
        leaks.lock().found().len()
    }

    #[test]
    fn learned_ids_and_secrets_of_others_are_leaks() {
        let (leaks, ours, theirs) = two();
        let made = r#"{"id": "9m4e2mr0ui3e8a215n60", "token": "hfjkd-7834_hfdjskhfsdjk"}"#;
        leaks.record(&theirs, "POST /x", "{}", 201, made);
        leaks.record(&ours, "GET /x", "/x", 200, r#"{"items": ["9m4e2mr0ui3e8a215n60"]}"#);
        leaks.record(&ours, "GET /y", "/y", 200, "hfjkd-7834_hfdjskhfsdjk");
        leaks.record(&ours, "GET /z", "/z", 200, "by zoe");
        assert_eq!(found(&leaks), 3);
    }

    #[test]
    fn own_data_and_echoes_are_no_leaks() {
        let (leaks, ours, theirs) = two();
        let id = "9m4e2mr0ui3e8a215n60";
        let body = format!(r#"{{"id": "{id}", "organization_id": "{theirs}"}}"#);
        leaks.record(&theirs, "GET /x", "/x", 200, &body);
        leaks.record(&ours, "GET /x", &format!("/x/{id}"), 404, &format!("{id:?} not found"));
        leaks.record(&ours, "PUT /x", r#"{"name": "zoe"}"#, 201, r#"{"name": "zoe"}"#);
        leaks.record(&ours, "GET /x", "/x", 200, r#"{"name": "zoe", "by": "ann", "cannot": 1}"#);
        assert_eq!(found(&leaks), 0);
    }
}
