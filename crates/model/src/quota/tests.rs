//! Parsing of quota lists, and decisions.

use proptest::prelude::*;

use super::*;
use crate::kind::Catalog;

const LIST: &str = "\
registered_service_accounts:
  - username: Robot
    max_allowed_instances: 4
  - username: ann
    granted_quota:
      - instance_type_id: standard
        kafka_billing_models:
          - {id: eval, max_allowed_instances: 9}
registered_users_per_organisation:
  - id: acme
    any_user: true
    max_allowed_instances: 5
    granted_quota:
      - instance_type_id: standard
        kafka_billing_models:
          - {id: marketplace, max_allowed_instances: 2, expiration_date: 2030-01-31 +02:00}
          - {id: standard}
  - id: closed
    registered_users:
      - username: ann
      - username: bob
  - id: empty
";

fn list() -> QuotaList {
    parse("quota.yaml", LIST).unwrap_or_else(|refused| panic!("{refused}"))
}

fn kind(name: &str) -> Kind {
    Kind::clone(Catalog::built_in().kind(name).unwrap())
}

fn at(text: &str) -> Time {
    text.parse().unwrap()
}

fn grant(instance_type: &str, billing_model: &str, limit: u32) -> Grant {
    Grant {
        kind: None,
        instance_type: instance_type.into(),
        billing_model: billing_model.into(),
        limit: Some(limit),
        expires_at: None,
    }
}

#[test]
fn organization_entry_takes_precedence_over_user_entry() {
    let holder = |organization, user| list().grants(organization, user).map(|(holder, _)| holder);
    let organization = |id: &str| Some(Holder::Organization(id.into()));
    assert_eq!(holder("acme", "ann"), organization("acme"));
    assert_eq!(holder("acme", "anybody"), organization("acme"));
    assert_eq!(holder("closed", "bob"), organization("closed"));
    assert_eq!(holder("closed", "BOB"), organization("closed"));
    assert_eq!(holder("closed", "robot"), Some(Holder::User("robot".into())));
    assert_eq!(holder("closed", "carl"), None);
    // No registered users and no `any_user`.
    assert_eq!(holder("empty", "carl"), None);
    assert_eq!(holder("empty", "ann"), Some(Holder::User("ann".into())));
}

#[test]
fn limit_is_that_of_the_model_else_the_entry_else_the_default() {
    let (_, grants) = list().grants("acme", "x").unwrap();
    let limits: Vec<_> = grants.iter().map(|g| (&*g.billing_model, g.limit)).collect();
    assert_eq!(limits, [("marketplace", Some(2)), ("standard", Some(5))]);
    assert_eq!(list().grants("", "robot").unwrap().1, [grant("standard", "standard", 4)]);
    assert_eq!(list().grants("closed", "bob").unwrap().1, [grant("standard", "standard", 1)]);
    let (_, grants) = list().grants_or("closed", "bob", 3).unwrap();
    assert_eq!(grants, [grant("standard", "standard", 3)]);
}

#[test]
fn grant_expires_at_the_start_of_its_expiration_date() {
    let (_, grants) = list().grants("acme", "x").unwrap();
    let marketplace = &grants[0];
    assert_eq!(marketplace.expires_at, Some(at("2030-01-30T22:00:00Z")));
    assert!(!marketplace.is_expired(at("2030-01-30T21:59:59Z")));
    assert!(marketplace.is_expired(at("2030-01-30T22:00:00Z")));
    let west = parse("q", &LIST.replace("+02:00", "-03:30")).unwrap().grants("acme", "x").unwrap();
    assert_eq!(west.1[0].expires_at, Some(at("2030-01-31T03:30:00Z")));
}

#[track_caller]
fn refused(from: &str, to: &str, expect: &str) {
    assert!(LIST.contains(from), "{from}");
    let text = LIST.replacen(from, to, 1);
    let refused = parse_for("quota.yaml", &text, &Catalog::built_in()).unwrap_err();
    assert_eq!(refused.to_string(), expect);
}

#[test]
fn invalid_lists_are_refused_with_their_line() {
    let days = "must be a date and an offset, for example 2030-01-31 +00:00";
    let models = "registered_users_per_organisation.acme.granted_quota.standard.\
                  kafka_billing_models.marketplace";
    for bad in ["2030-01-31", "2030-02-30 +00:00", "2030-01-31 02:00", "2030-01-31 +2:00", "x y"] {
        let expect = format!("quota.yaml:16: {models}.expiration_date: {days}");
        refused("2030-01-31 +02:00", bad, &expect);
    }
    refused(
        "any_user: true",
        "any_users: true",
        "quota.yaml:11: registered_users_per_organisation.acme: unknown field `any_users`, \
         expected one of id, any_user, max_allowed_instances, registered_users, granted_quota",
    );
    refused(
        "max_allowed_instances: 5",
        "max_allowed_instances: -1",
        "quota.yaml:12: registered_users_per_organisation.acme.max_allowed_instances: must be a \
         whole number from 0 to 4294967295",
    );
    refused(
        "  - id: closed",
        "  - id: acme",
        "quota.yaml:18: registered_users_per_organisation.acme.id: must be unique",
    );
    refused(
        "username: bob",
        "username: Ann",
        "quota.yaml:21: registered_users_per_organisation.closed.registered_users.Ann.username: \
         must be unique",
    );
    let twice = format!("quota.yaml:17: {models}.id: must be unique");
    refused("{id: standard}", "{id: marketplace}", &twice);
    refused(
        "{id: eval,",
        "{id: gold,",
        "quota.yaml:8: registered_service_accounts.ann.granted_quota.standard.\
         kafka_billing_models.gold.id: the instance type has no such billing model",
    );
    refused(
        "instance_type_id: standard\n",
        "instance_type_id: standard\n        billing_models: []\n",
        "quota.yaml:8: registered_service_accounts.ann.granted_quota.standard.\
         kafka_billing_models: must not be combined with billing_models",
    );
    refused(
        "instance_type_id: standard",
        "instance_type_id: standrad",
        "quota.yaml:6: registered_service_accounts.ann.granted_quota.standrad.instance_type_id: no kind \
         has this instance type",
    );
    refused(
        "instance_type_id: standard",
        "{kind: mongo, instance_type_id: standard}\n      - instance_type_id: standard",
        "quota.yaml:6: registered_service_accounts.ann.granted_quota.standard.kind: unknown \
         kind",
    );
}

/// Variant name of an error.
fn name(denied: &Denied) -> String {
    let text = format!("{denied:?}");
    text.split([' ', '(']).next().unwrap_or_default().to_owned()
}

/// The choice as `type.size billing_model limit per`, or the variant name of the error.
fn outcome(kind: &Kind, grants: Option<&[Grant]>, request: Request) -> String {
    match choose(kind, grants, true, Time(0), &request) {
        Ok(c) => {
            let limit = c.limit.map_or("∞".to_owned(), |n| n.to_string());
            format!("{}.{} {} {limit} {:?}", c.instance_type, c.size, c.billing_model, c.per)
        }
        Err(denied) => name(&denied),
    }
}

fn request<'a>(plan: &'a str, model: &'a str, cluster: bool) -> Request<'a> {
    Request { plan: Some(plan), billing_model: Some(model).filter(|m| !m.is_empty()), cluster }
}

#[test]
fn unlisted_users_get_trials() {
    let kafka = kind("kafka");
    for (plan, model, cluster, expect) in [
        ("", "", false, "developer.x1 standard 1 Owner"),
        ("developer.x1", "standard", false, "developer.x1 standard 1 Owner"),
        ("standard.x1", "", false, "PlanOfOtherType"),
        ("developer", "", false, "PlanMalformed"),
        ("developer.x9", "", false, "UnknownSize"),
        ("", "marketplace", false, "NoQuota"),
        ("", "", true, "NoQuota"),
        ("", "enterprise", false, "EnterpriseNeedsCluster"),
        ("", "standard", true, "ClusterNeedsEnterprise"),
    ] {
        assert_eq!(outcome(&kafka, None, request(plan, model, cluster)), expect, "{plan} {model}");
    }
    let none = Kind { max_trials: 0, ..kind("kafka") };
    assert_eq!(outcome(&none, None, request("", "", false)), "NoTrials");
    let none = Kind { trial: None, ..kind("kafka") };
    assert_eq!(outcome(&none, None, request("", "", false)), "NoQuota");
}

#[test]
fn grants_decide_the_type_and_the_plan_must_match() {
    let kafka = kind("kafka");
    let grants = [grant("standard", "marketplace", 3), grant("standard", "enterprise", 2)];
    for (plan, model, cluster, expect) in [
        ("", "", false, "standard.x1 marketplace 3 Holder"),
        ("standard.x2", "", false, "standard.x2 marketplace 3 Holder"),
        ("developer.x1", "", false, "PlanOfOtherType"),
        ("standard.x7", "", false, "UnknownSize"),
        ("", "standard", false, "NoQuota"),
        ("", "gold", false, "UnknownBillingModel"),
        ("", "enterprise", false, "EnterpriseNeedsCluster"),
        ("", "", true, "standard.x1 enterprise 2 Holder"),
        ("", "enterprise", true, "standard.x1 enterprise 2 Holder"),
        ("", "marketplace", true, "ClusterNeedsEnterprise"),
    ] {
        let outcome = outcome(&kafka, Some(&grants), request(plan, model, cluster));
        assert_eq!(outcome, expect, "{plan} {model} {cluster}");
    }
    let grants = [grant("standard", "eval", 1), grant("standard", "standard", 2)];
    let both = outcome(&kafka, Some(&grants), request("", "", false));
    assert_eq!(both, "standard.x1 standard 2 Holder");
    let unlimited = Grant { limit: None, ..grant("standard", "standard", 0) };
    let unlimited = outcome(&kafka, Some(&[unlimited]), request("", "", false));
    assert_eq!(unlimited, "standard.x1 standard ∞ Nothing");
}

#[test]
fn enterprise_grant_requires_a_cluster() {
    let grants = [grant("standard", "enterprise", 2)];
    assert_eq!(
        outcome(&kind("kafka"), Some(&grants), request("", "", false)),
        "EnterpriseNeedsCluster"
    );
}

#[test]
fn trial_type_can_be_granted() {
    let grants = [grant("developer", "standard", 6)];
    let outcome = outcome(&kind("kafka"), Some(&grants), request("", "", false));
    assert_eq!(outcome, "developer.x1 standard 6 Holder");
}

#[test]
fn trial_type_has_the_lowest_precedence() {
    let mut kafka = kind("kafka");
    kafka.types.reverse();
    let grants = [grant("developer", "standard", 6), grant("standard", "eval", 2)];
    let outcome = outcome(&kafka, Some(&grants), request("", "", false));
    assert_eq!(outcome, "standard.x1 eval 2 Holder");
}

#[test]
fn expired_grants_are_ignored() {
    let expired = Grant { expires_at: Some(Time(0)), ..grant("standard", "standard", 5) };
    assert_eq!(
        outcome(&kind("kafka"), Some(std::slice::from_ref(&expired)), request("", "", false)),
        "NoQuota"
    );
    let grants = [expired, grant("standard", "eval", 2)];
    let rest = outcome(&kind("kafka"), Some(&grants), request("", "", false));
    assert_eq!(rest, "standard.x1 eval 2 Holder");
}

#[test]
fn grants_of_other_kinds_are_ignored() {
    let other = Grant { kind: Some("kafka".into()), ..grant("standard", "standard", 5) };
    let grants = [other];
    let dinosaur = outcome(&kind("dinosaur"), Some(&grants), request("", "", false));
    assert_eq!(dinosaur, "eval.x1 standard 1 Owner");
    let kafka = outcome(&kind("kafka"), Some(&grants), request("", "", false));
    assert_eq!(kafka, "standard.x1 standard 5 Holder");
}

#[test]
fn plan_decides_without_limits() {
    let kafka = kind("kafka");
    for (plan, model, cluster, expect) in [
        ("", "", false, "developer.x1 standard"),
        ("standard.x2", "", false, "standard.x2 standard"),
        ("standard.x2", "eval", false, "standard.x2 eval"),
        ("", "marketplace", false, "standard.x1 marketplace"),
        ("", "", true, "standard.x1 enterprise"),
        ("huge.x1", "", false, "PlanOfOtherType"),
        ("standard", "", false, "PlanMalformed"),
        ("standard.x9", "", false, "UnknownSize"),
        ("standard.x9", "enterprise", false, "UnknownSize"),
        ("standard.x1", "gold", false, "UnknownBillingModel"),
        ("", "gold", false, "UnknownBillingModel"),
        ("standard.x1", "enterprise", false, "EnterpriseNeedsCluster"),
        ("standard.x1", "standard", true, "ClusterNeedsEnterprise"),
    ] {
        let outcome = match choose(&kafka, None, false, Time(0), &request(plan, model, cluster)) {
            Ok(c) => {
                assert_eq!((c.limit, c.per), (None, CountedPer::Nothing));
                format!("{}.{} {}", c.instance_type, c.size, c.billing_model)
            }
            Err(denied) => name(&denied),
        };
        assert_eq!(outcome, expect, "{plan} {model} {cluster}");
    }
}

#[test]
fn entitlement_ends_with_its_grant() {
    let kafka = kind("kafka");
    let end = at("2030-01-31T00:00:00Z");
    let grants = [Grant { expires_at: Some(end), ..grant("standard", "standard", 5) }];
    let active = |grants: Option<&[Grant]>, limited, kind: &str, model: &str, now| {
        entitlement(&kafka, grants, limited, kind, model, now)
    };
    let before = at("2030-01-30T23:59:59Z");
    assert_eq!(active(Some(&grants), true, "standard", "standard", before), Entitlement::Yes);
    let reason = "quota for standard instances with the billing model standard expired on \
                  2030-01-31T00:00:00Z";
    let ended = Entitlement::No { since: Some(end), reason: reason.into() };
    assert_eq!(active(Some(&grants), true, "standard", "standard", end), ended);
    assert_eq!(active(None, false, "standard", "standard", end), Entitlement::Yes);
    assert_eq!(active(None, true, "developer", "standard", end), Entitlement::Yes);
    for grants in [None, Some(&grants[..])] {
        let no = active(grants, true, "standard", "eval", before);
        assert!(matches!(no, Entitlement::No { since: None, .. }), "{no:?}");
    }
}

fn any_grant() -> impl Strategy<Value = Grant> {
    let names = prop_oneof!["standard", "developer", "huge"];
    let models = prop_oneof!["standard", "marketplace", "eval", "enterprise", "gold"];
    (names, models, proptest::option::of(0u32..5), proptest::option::of(-5i64..5)).prop_map(
        |(instance_type, billing_model, limit, end)| Grant {
            kind: None,
            instance_type,
            billing_model,
            limit,
            expires_at: end.map(Time),
        },
    )
}

proptest! {
    /// Every choice exists, matches the request, and is granted or a trial.
    #[test]
    fn choice_is_always_allowed(
        grants in proptest::option::of(proptest::collection::vec(any_grant(), 0..5)),
        is_limited: bool,
        plan in proptest::option::of("(standard|developer|huge)\\.x[123]|x|\\."),
        model in proptest::option::of("standard|marketplace|eval|enterprise|gold"),
        cluster: bool,
    ) {
        let kafka = &*KAFKA;
        let request = Request { plan: plan.as_deref(), billing_model: model.as_deref(), cluster };
        let grants = grants.as_deref();
        if let Ok(choice) = choose(kafka, grants, is_limited, Time(0), &request) {
            let instance_type = kafka.instance_type(&choice.instance_type).unwrap();
            prop_assert!(instance_type.size(&choice.size).is_some());
            prop_assert!(instance_type.billing_model(&choice.billing_model).is_some());
            let its_plan = format!("{}.{}", choice.instance_type, choice.size);
            prop_assert!(plan.is_none_or(|plan| plan == its_plan));
            prop_assert!(model.is_none_or(|m| m == choice.billing_model));
            prop_assert_eq!(cluster, choice.billing_model == ENTERPRISE);
            let active = entitlement(
                kafka, grants, is_limited, &choice.instance_type, &choice.billing_model, Time(0),
            );
            prop_assert_eq!(active, Entitlement::Yes);
        }
    }

    #[test]
    fn parsing_never_panics(text in "[a-z_:\\- \n\\[\\]{}0-9+]{0,80}") {
        let _ = parse("q", &text);
    }
}

/// Parsed once for all cases.
static KAFKA: std::sync::LazyLock<Kind> = std::sync::LazyLock::new(|| kind("kafka"));
