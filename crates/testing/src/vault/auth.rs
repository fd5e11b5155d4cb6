//! Authentication: tokens with rules and expiry, and AppRole, which issues them.

use std::time::Duration;

use model::Time;
use serde_json::{Value, json};

use super::State;
use super::serve::{Answer, error};

/// A rule of a policy: a path prefix and its capabilities.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The path prefix.
    pub path: String,
    /// `create`, `read`, `update`, `patch`, `delete`.
    pub capabilities: Vec<String>,
}

impl Rule {
    /// Allows these capabilities, separated by blanks, below a path.
    pub fn new(path: &str, capabilities: &str) -> Self {
        let capabilities = capabilities.split(' ').map(str::to_owned).collect();
        Self { path: path.to_owned(), capabilities }
    }

    /// Allows everything.
    pub fn all() -> Vec<Self> {
        vec![Self::new("", "create read update patch delete")]
    }
}

/// A role of AppRole, mounted at `approle`.
#[derive(Debug, Clone)]
pub struct Role {
    /// The secret id.
    pub secret_id: String,
    /// Rules of its tokens.
    pub rules: Vec<Rule>,
    /// Lifetime of a token.
    pub seconds: u64,
    /// Maximum lifetime with renewals; 0: unlimited.
    pub max_seconds: u64,
    /// Whether its tokens are renewable.
    pub is_renewable: bool,
}

pub(super) struct Token {
    rules: Vec<Rule>,
    seconds: u64,
    is_renewable: bool,
    until: Option<Time>,
    max_until: Option<Time>,
}

impl Token {
    pub(super) fn root() -> Self {
        Self { rules: Rule::all(), seconds: 0, is_renewable: false, until: None, max_until: None }
    }

    pub(super) fn new(
        now: Time,
        rules: Vec<Rule>,
        seconds: u64,
        max: u64,
        is_renewable: bool,
    ) -> Self {
        let after = |seconds| (seconds > 0).then(|| now + Duration::from_secs(seconds));
        Self { rules, seconds, is_renewable, until: after(seconds), max_until: after(max) }
    }

    pub(super) fn is_expired(&self, now: Time) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// Whether any rule concerns this mount.
    pub(super) fn may_below(&self, mount: &str) -> bool {
        self.rules.iter().any(|rule| rule.path.is_empty() || rule.path.starts_with(mount))
    }

    pub(super) fn may(&self, method: &str, path: &str) -> bool {
        let needed: &[&str] = match method {
            "GET" => &["read"],
            "POST" | "PUT" => &["create", "update"],
            "PATCH" => &["patch"],
            _ => &["delete"],
        };
        self.rules.iter().any(|rule| {
            let allows =
                |needed: &&str| rule.capabilities.iter().any(|capability| capability == needed);
            path.starts_with(&rule.path) && needed.iter().all(allows)
        })
    }

    fn ttl(&self, now: Time) -> u64 {
        self.until.map_or(0, |until| until.since(now).as_secs())
    }
}

pub(super) fn log_in(state: &mut State, mount: &str, body: &Value) -> Answer {
    if mount != "approle" {
        return error(404, "no handler for route");
    }
    let role = body["role_id"].as_str().and_then(|id| state.roles.get(id)).cloned();
    let Some(role) = role.filter(|role| body["secret_id"] == *role.secret_id) else {
        return error(400, "invalid role or secret ID");
    };
    state.logins += 1;
    let name = format!("hvs.{}", state.logins);
    let (now, rules) = (state.now(), role.rules);
    let token = Token::new(now, rules, role.seconds, role.max_seconds, role.is_renewable);
    let granted = granted(&name, &token, now);
    state.tokens.insert(name, token);
    granted
}

fn granted(name: &str, token: &Token, now: Time) -> Answer {
    let auth = json!({
        "client_token": name, "lease_duration": token.ttl(now), "renewable": token.is_renewable,
    });
    (200, json!({"auth": auth}))
}

/// Operations of a token on itself.
pub(super) fn token(state: &mut State, name: &str, method: &str, what: &str) -> Answer {
    let now = state.now();
    let Some(token) = state.tokens.get_mut(name) else { return error(403, "permission denied") };
    match (method, what) {
        ("GET", "lookup-self") => {
            (200, json!({"data": {"ttl": token.ttl(now), "renewable": token.is_renewable}}))
        }
        ("POST", "renew-self") if !token.is_renewable => error(400, "lease is not renewable"),
        ("POST", "renew-self") => {
            let next = now + Duration::from_secs(token.seconds);
            token.until = Some(token.max_until.map_or(next, |max| max.min(next)));
            granted(name, token, now)
        }
        ("POST", "revoke-self") => {
            state.tokens.remove(name);
            (204, Value::Null)
        }
        _ => error(405, "unsupported operation"),
    }
}
