//! Endpoints of accounts: logins, organizations, users, tokens and invites.

use serde_json::json;

use super::{Entry, Rule, credentials, redemption};
use crate::world::Fixtures;

pub(super) fn entries(on: &Fixtures) -> Vec<Entry> {
    use Rule::*;
    let life = || vec![("expires_in", Whole(1, 2_592_000)), ("role", OneOf)];
    vec![
        ("POST /api/v1/login", json!({"username": "nobody", "password": "x"}), credentials()),
        (
            "POST /api/v1/organizations",
            json!({"name": "new", "owner": {"username": "new", "password": "x", "display_name": "N"}}),
            vec![
                ("name", Name(100)),
                ("owner", Object),
                ("owner.username", Name(64)),
                ("owner.password", Password),
                ("owner.display_name", OptionalName(200)),
            ],
        ),
        ("PATCH /api/v1/organizations/{id}", json!({"name": "new"}), vec![("name", Name(100))]),
        (
            "PATCH /api/v1/admin/organizations/{id}/quotas",
            json!({"quotas": {"cpu": 100_000}}),
            vec![("quotas", Quotas)],
        ),
        (
            "PATCH /api/v1/users/{id}",
            json!({"display_name": "New"}),
            vec![
                ("display_name", Name(200)),
                ("role", OneOf),
                ("access", OneOf),
                ("password", Password),
                ("current_password", Text),
            ],
        ),
        (
            "POST /api/v1/password-resets/redeem",
            json!({"code": "x", "password": "new"}),
            vec![("code", Text), ("password", Password)],
        ),
        (
            "POST /api/v1/tokens",
            json!({"name": "ci", "expires_in": 60, "scope": {"read_only": true, "kinds": ["cluster"]},
                "service_account": "ci", "role": "member"}),
            vec![
                ("name", Name(100)),
                ("expires_in", Whole(1, 31_536_000)),
                ("scope", Object),
                ("scope.read_only", YesOrNo),
                ("scope.kinds", Words),
                ("service_account", Label),
                ("role", OneOf),
            ],
        ),
        ("POST /api/v1/invites", json!({"expires_in": 60}), life()),
        ("POST /api/v1/invites/{id}/reopen", json!({"expires_in": 60}), life()),
        ("POST /api/v1/invites/check", json!({"code": "x"}), vec![("code", Text)]),
        (
            "POST /api/v1/invites/redeem",
            json!({"code": on.code, "username": "new", "password": "x", "display_name": "New"}),
            redemption(),
        ),
    ]
}
