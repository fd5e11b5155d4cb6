//! The claims of a token, and whether they are valid now.

use std::time::Duration;

use model::Time;
use serde_json::{Map, Value};

use super::{Denied, Options};

/// The identity that a token asserts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The issuer of the token.
    pub issuer: String,
    /// The bearer's id at the issuer: `sub`.
    pub subject: String,
    /// The login name: `username`, else `preferred_username`.
    pub username: Option<String>,
    /// The organization: `org_id`, else `rh-org-id`.
    pub organization: Option<String>,
    /// The bearer's account: `account_id`.
    pub account_id: Option<String>,
    /// Whether the bearer administers the organization: `is_org_admin`.
    pub is_org_admin: bool,
    /// The client that requested the token: `clientId`, else `client_id`, else `azp`.
    pub client_id: Option<String>,
    /// The bearer's roles: `realm_access.roles`.
    pub roles: Vec<String>,
    /// When the token expires.
    pub expires_at: Time,
    /// For display.
    pub email: Option<String>,
    /// For display.
    pub name: Option<String>,
}

impl Claims {
    /// Validates the claims. The caller checks the signature.
    pub(super) fn check(
        claims: &Map<String, Value>,
        options: &Options,
        now: Time,
    ) -> Result<Self, Denied> {
        let expires_at = in_time(claims, options.skew, now)?;
        if let Some(audience) = &options.audience
            && !is_for(claims, audience)
        {
            return Err(Denied::Invalid(format!("the token's audience is not {audience} (aud)")));
        }
        if claims.get("impersonated").is_some_and(is_true) {
            return Err(Denied::Invalid(
                "impersonation tokens are not accepted (impersonated)".into(),
            ));
        }
        let subject = text(claims, &["sub"])
            .ok_or_else(|| Denied::Invalid("the token has no subject (sub)".into()))?;
        Ok(Self::read(claims, options.issuer.clone(), subject, expires_at))
    }

    fn read(
        claims: &Map<String, Value>,
        issuer: String,
        subject: String,
        expires_at: Time,
    ) -> Self {
        Self {
            issuer,
            subject,
            username: text(claims, &["username", "preferred_username"]),
            organization: text(claims, &["org_id", "rh-org-id"]),
            account_id: text(claims, &["account_id"]),
            is_org_admin: claims.get("is_org_admin").is_some_and(is_true),
            client_id: text(claims, &["clientId", "client_id", "azp"]),
            roles: roles(claims),
            expires_at,
            email: text(claims, &["email"]),
            name: text(claims, &["name"]),
        }
    }
}

/// The expiry of a token that is valid now.
fn in_time(claims: &Map<String, Value>, skew: Duration, now: Time) -> Result<Time, Denied> {
    let expires_at = time(claims, "exp")?;
    let issued_at = time(claims, "iat")?;
    if now >= expires_at + skew {
        return Err(Denied::Invalid(format!("the token expired at {expires_at} (exp)")));
    }
    if now + skew < issued_at {
        return Err(Denied::Invalid(format!(
            "the token was issued in the future, at {issued_at} (iat)"
        )));
    }
    if claims.contains_key("nbf") {
        let not_before = time(claims, "nbf")?;
        if now + skew < not_before {
            return Err(Denied::Invalid(format!(
                "the token is not valid before {not_before} (nbf)"
            )));
        }
    }
    Ok(expires_at)
}

/// A numeric date claim, in seconds since 1970.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Time, Denied> {
    let seconds = claims.get(name).and_then(Value::as_number).and_then(|number| {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it saturates, and fractions are dropped"
        )]
        number.as_i64().or_else(|| number.as_f64().map(|seconds| seconds as i64))
    });
    let seconds = seconds
        .ok_or_else(|| Denied::Invalid(format!("the token's {name} is not a number of seconds")))?;
    Ok(Time(seconds.saturating_mul(1_000_000)))
}

fn is_for(claims: &Map<String, Value>, audience: &str) -> bool {
    match claims.get("aud") {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(many)) => many.iter().any(|one| one == audience),
        _ => false,
    }
}

fn is_true(value: &Value) -> bool {
    value == true || value == "true"
}

/// The first non-empty claim of these. Ids may be numbers.
fn text(claims: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| match claims.get(*name)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

fn roles(claims: &Map<String, Value>) -> Vec<String> {
    let roles = claims.get("realm_access").and_then(|access| access.get("roles"));
    let roles = roles.and_then(Value::as_array).into_iter().flatten();
    roles.filter_map(Value::as_str).map(String::from).collect()
}

#[cfg(test)]
mod tests;
