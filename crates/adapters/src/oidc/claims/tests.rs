//! Valid and invalid claims.

use super::*;
use serde_json::json;

const NOW: Time = Time(1_900_000_000_000_000);

fn check(extra: &Value) -> Result<Claims, Denied> {
    let mut claims =
        json!({"sub": "one", "iat": 1_900_000_000, "exp": 1_900_000_300, "aud": "api"});
    for (name, value) in extra.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    let options = Options { audience: Some("api".into()), ..Options::new("https://sso") };
    Claims::check(claims.as_object().unwrap(), &options, NOW)
}

#[test]
fn claims_are_read_under_either_name() {
    let claims = check(&json!({
        "username": "ann", "preferred_username": "other", "rh-org-id": 17, "account_id": 4,
        "is_org_admin": "true", "azp": "web", "realm_access": {"roles": ["a", 1, "b"]},
        "email": "ann@example.com", "name": "Ann", "org_id": "",
    }));
    let expected = Claims {
        issuer: "https://sso".into(),
        subject: "one".into(),
        username: Some("ann".into()),
        organization: Some("17".into()),
        account_id: Some("4".into()),
        is_org_admin: true,
        client_id: Some("web".into()),
        roles: vec!["a".into(), "b".into()],
        expires_at: NOW + Duration::from_mins(5),
        email: Some("ann@example.com".into()),
        name: Some("Ann".into()),
    };
    assert_eq!(claims, Ok(expected));
    let claims = check(&json!({"clientId": "agent", "azp": "web", "preferred_username": "bob"}));
    let claims = claims.unwrap();
    assert_eq!(claims.client_id.as_deref(), Some("agent"));
    assert_eq!(claims.username.as_deref(), Some("bob"));
    assert!(!claims.is_org_admin && claims.roles.is_empty() && claims.organization.is_none());
}

#[test]
fn valid_claims_are_accepted() {
    for good in [
        json!({}),
        json!({"exp": 1_899_999_941}),
        json!({"exp": 1_900_000_300.5}),
        json!({"exp": 9e300}),
        json!({"iat": 1_900_000_060}),
        json!({"nbf": 1_900_000_060}),
        json!({"aud": ["other", "api"]}),
        json!({"impersonated": false}),
        json!({"impersonated": "no"}),
    ] {
        assert!(check(&good).is_ok(), "{good}: {:?}", check(&good));
    }
}

#[test]
fn invalid_claim_is_denied_and_named() {
    for (bad, claim) in [
        (json!({"exp": 1_899_999_940}), "exp"),
        (json!({"exp": null}), "exp"),
        (json!({"exp": "1900000300"}), "exp"),
        (json!({"exp": -9e300}), "exp"),
        (json!({"iat": null}), "iat"),
        (json!({"iat": true}), "iat"),
        (json!({"iat": 1_900_000_061}), "iat"),
        (json!({"nbf": 1_900_000_061}), "nbf"),
        (json!({"nbf": "soon"}), "nbf"),
        (json!({"aud": null}), "aud"),
        (json!({"aud": "other"}), "aud"),
        (json!({"aud": ["other"]}), "aud"),
        (json!({"aud": {"api": true}}), "aud"),
        (json!({"impersonated": true}), "impersonated"),
        (json!({"impersonated": "true"}), "impersonated"),
        (json!({"sub": null}), "sub"),
        (json!({"sub": ""}), "sub"),
    ] {
        let denied = check(&bad).unwrap_err();
        assert!(matches!(&denied, Denied::Invalid(why) if why.contains(claim)), "{bad}: {denied}");
    }
}
