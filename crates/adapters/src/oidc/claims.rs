//! What a token says about its bearer, and whether it holds now.

use std::time::Duration;

use model::Time;
use serde_json::{Map, Value};

use super::{Denied, Options};

/// Who somebody is, according to their token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Who issued the token.
    pub issuer: String,
    /// The bearer's id at the issuer.
    pub subject: String,
    /// The name that they sign in with: `username`, else `preferred_username`.
    pub username: Option<String>,
    /// The organization: `org_id`, else `rh-org-id`.
    pub organization: Option<String>,
    /// The bearer's account: `account_id`.
    pub account_id: Option<String>,
    /// Whether they administer the organization: `is_org_admin`.
    pub is_org_admin: bool,
    /// The client that got the token: `clientId`, else `client_id`, else `azp`.
    pub client_id: Option<String>,
    /// Their roles: `realm_access.roles`.
    pub roles: Vec<String>,
    /// Until when the token holds.
    pub expires_at: Time,
    /// For display.
    pub email: Option<String>,
    /// For display.
    pub name: Option<String>,
}

impl Claims {
    /// What the claims mean, if they hold now. The signature is somebody else's.
    pub(super) fn check(
        said: &Map<String, Value>,
        options: &Options,
        now: Time,
    ) -> Result<Self, Denied> {
        let expires_at = in_time(said, options.skew, now)?;
        if let Some(audience) = &options.audience
            && !is_for(said, audience)
        {
            return Err(Denied::Invalid(format!("the token is not for {audience} (aud)")));
        }
        if said.get("impersonated").is_some_and(is_true) {
            return Err(Denied::Invalid(
                "somebody else acts with this token (impersonated)".into(),
            ));
        }
        let subject = text(said, &["sub"])
            .ok_or_else(|| Denied::Invalid("the token does not say whose it is (sub)".into()))?;
        Ok(Self::read(said, options.issuer.clone(), subject, expires_at))
    }

    fn read(said: &Map<String, Value>, issuer: String, subject: String, expires_at: Time) -> Self {
        Self {
            issuer,
            subject,
            username: text(said, &["username", "preferred_username"]),
            organization: text(said, &["org_id", "rh-org-id"]),
            account_id: text(said, &["account_id"]),
            is_org_admin: said.get("is_org_admin").is_some_and(is_true),
            client_id: text(said, &["clientId", "client_id", "azp"]),
            roles: roles(said),
            expires_at,
            email: text(said, &["email"]),
            name: text(said, &["name"]),
        }
    }
}

/// Until when it holds, if it does now.
fn in_time(said: &Map<String, Value>, skew: Duration, now: Time) -> Result<Time, Denied> {
    let expires_at = time(said, "exp")?;
    let issued_at = time(said, "iat")?;
    if now >= expires_at + skew {
        return Err(Denied::Invalid(format!("the token was good until {expires_at} (exp)")));
    }
    if now + skew < issued_at {
        return Err(Denied::Invalid(format!("the token is of the future, {issued_at} (iat)")));
    }
    if said.contains_key("nbf") {
        let not_before = time(said, "nbf")?;
        if now + skew < not_before {
            return Err(Denied::Invalid(format!("the token is good from {not_before} on (nbf)")));
        }
    }
    Ok(expires_at)
}

/// A claim in seconds since 1970.
fn time(said: &Map<String, Value>, name: &str) -> Result<Time, Denied> {
    let seconds = said.get(name).and_then(Value::as_number).and_then(|number| {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it saturates, and fractions are kept out"
        )]
        number.as_i64().or_else(|| number.as_f64().map(|seconds| seconds as i64))
    });
    let seconds = seconds
        .ok_or_else(|| Denied::Invalid(format!("the token has no number of seconds in {name}")))?;
    Ok(Time(seconds.saturating_mul(1_000_000)))
}

fn is_for(said: &Map<String, Value>, audience: &str) -> bool {
    match said.get("aud") {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(many)) => many.iter().any(|one| one == audience),
        _ => false,
    }
}

fn is_true(value: &Value) -> bool {
    value == true || value == "true"
}

/// The first of these claims that says something. Ids may be numbers.
fn text(said: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| match said.get(*name)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

fn roles(said: &Map<String, Value>) -> Vec<String> {
    let roles = said.get("realm_access").and_then(|access| access.get("roles"));
    let roles = roles.and_then(Value::as_array).into_iter().flatten();
    roles.filter_map(Value::as_str).map(String::from).collect()
}

#[cfg(test)]
mod tests;
