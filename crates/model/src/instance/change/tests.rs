//! What administrators may change, case by case.

use super::*;
use crate::instance::sample::instance;
use crate::kind::Catalog;

const NOON: Time = Time(1_000_000_000_000_000);

fn offered(operator: &str, is_ready: bool) -> Offered {
    Offered {
        operator: operator.into(),
        is_ready,
        services: ["3.8.1", "3.9.0", "3.10.0"].map(str::to_owned).to_vec(),
        protocols: ["3.8", "3.9", "3.10"].map(str::to_owned).to_vec(),
    }
}

fn running(status: Status) -> Instance {
    let mut it = instance(status);
    it.detail.desired =
        Versions { operator: "op-1".into(), service: "3.9.0".into(), protocol: "3.9".into() };
    it.detail.actual = it.detail.desired.clone();
    it.detail.billing.model = "standard".into();
    it
}

fn after(
    seen: &Instance,
    change: &Change,
) -> Result<(Instance, Option<(Status, Reason)>), Refused> {
    let catalog = Catalog::built_in();
    let offers = [offered("op-1", true), offered("op-2", true), offered("op-3", false)];
    let kind = catalog.kind("kafka").unwrap();
    check(seen, change, Against { kind, offered: &offers, retention_bytes: Some(100), now: NOON })
}

/// Why a change is refused; nothing if it is not.
fn refusal(seen: &Instance, change: &Change) -> Option<Refused> {
    after(seen, change).err()
}

fn rest(suspended: bool) -> Change {
    Change { suspended: Some(suspended), ..Change::default() }
}

#[test]
fn the_first_thing_that_is_wrong_is_what_is_said() {
    let bad_all = Change {
        retention: Some("x".into()),
        operator: Some("op-9".into()),
        suspended: Some(false),
        ..Change::default()
    };
    let bad_late = Change { retention: Some("200".into()), ..bad_all.clone() };
    let mut upgrading = running(Status::Ready);
    upgrading.detail.upgrading = vec!["operator".into()];
    let accepted = running(Status::Accepted);
    for (seen, change, expected) in [
        (&accepted, &Change::default(), Refused::Nothing),
        (&accepted, &bad_all, Refused::NotBytes("x".into())),
        (&accepted, &bad_late, Refused::Fixed(Status::Accepted)),
        (&upgrading, &bad_late, Refused::Upgrading { word: "strimzi".into() }),
        (&running(Status::Ready), &bad_late, Refused::UnknownOperator("op-9".into())),
    ] {
        assert_eq!(refusal(seen, change), Some(expected));
    }
}

#[test]
fn retention_grows() {
    for (text, expected) in [
        ("100", Ok(100)),
        ("1Ki", Ok(1024)),
        ("99", Err(Refused::RetentionShrinks { current: 100 })),
        ("100m", Err(Refused::NotBytes("100m".into()))),
        ("", Err(Refused::NotBytes(String::new()))),
        ("a lot", Err(Refused::NotBytes("a lot".into()))),
        ("-1", Err(Refused::NotBytes("-1".into()))),
    ] {
        let change = Change { retention: Some(text.into()), ..Change::default() };
        let found = after(&running(Status::Ready), &change);
        let found = found.map(|(now, _)| now.detail.retention_bytes.unwrap());
        assert_eq!(found, expected, "{text}");
    }
    let mut more = running(Status::Ready);
    more.detail.retention_bytes = Some(500);
    let less = Change { retention: Some("400".into()), ..Change::default() };
    assert_eq!(refusal(&more, &less), Some(Refused::RetentionShrinks { current: 500 }));
}

#[test]
fn statuses_that_can_be_changed() {
    let change = Change { retention: Some("1Gi".into()), ..Change::default() };
    for &status in Status::ALL {
        let is_fixed = matches!(status, Status::Accepted | Status::Deleting);
        let expected = is_fixed.then_some(Refused::Fixed(status));
        assert_eq!(refusal(&running(status), &change), expected);
    }
}

#[test]
fn what_is_being_upgraded_is_left_alone() {
    for (part, change) in [
        ("operator", Change { operator: Some("op-2".into()), ..Change::default() }),
        ("service", Change { service: Some("3.10.0".into()), ..Change::default() }),
        ("protocol", Change { protocol: Some("3.9".into()), ..Change::default() }),
    ] {
        let mut seen = running(Status::Ready);
        assert_eq!(refusal(&seen, &change), None, "{part}");
        seen.detail.upgrading = vec![part.into()];
        assert!(matches!(refusal(&seen, &change), Some(Refused::Upgrading { .. })), "{part}");
        seen.detail.upgrading = vec!["other".into()];
        assert_eq!(refusal(&seen, &change), None, "{part}");
    }
}

#[test]
fn versions_that_go_together() {
    let newer = |protocol: &str, service: &str| {
        let (protocol, service) = (protocol.into(), service.into());
        Some(Refused::NewerProtocol { protocol, service })
    };
    let older = Refused::OlderProtocol { new: "3.8".into(), now: "3.9".into() };
    let not_offered = |version: &str, offered: &str| Refused::UnknownVersion {
        operator: "op-1".into(),
        version: version.into(),
        offered: offered.into(),
    };
    let no_operator = |name: &str| Some(Refused::UnknownOperator(name.into()));
    for (operator, service, protocol, expected) in [
        ("op-2", "3.9.0", "3.9", None),
        ("op-1", "3.10.0", "3.9", None),
        ("op-1", "3.10.0", "3.10", None),
        ("op-1", "3.9.0", "3.10", newer("3.10", "3.9.0")),
        ("op-1", "3.9.0", "3.8", Some(older)),
        ("op-1", "3.8.1", "3.9", newer("3.9", "3.8.1")),
        ("op-1", "3.11.0", "3.9", Some(not_offered("3.11.0", "3.8.1, 3.9.0, 3.10.0"))),
        ("op-1", "3.10.0", "3.11", Some(not_offered("3.11", "3.8, 3.9, 3.10"))),
        ("op-3", "3.9.0", "3.9", no_operator("op-3")),
        ("op-9", "3.9.0", "3.9", no_operator("op-9")),
        ("", "3.9.0", "3.9", no_operator("")),
    ] {
        let change = Change {
            operator: Some(operator.into()),
            service: Some(service.into()),
            protocol: Some(protocol.into()),
            ..Change::default()
        };
        let found = refusal(&running(Status::Ready), &change);
        assert_eq!(found, expected, "{operator} {service} {protocol}");
    }
}

#[test]
fn resting_and_waking() {
    for &status in Status::ALL {
        let (to_rest, to_wake) =
            (refusal(&running(status), &rest(true)), refusal(&running(status), &rest(false)));
        assert_eq!(to_rest.is_none(), status == Status::Ready, "{status}");
        assert_eq!(to_wake.is_none(), status == Status::Suspended, "{status}");
    }
    let (now, step) = after(&running(Status::Ready), &rest(true)).unwrap();
    assert_eq!((now.detail.rest, step.unwrap().0), (Some(Rest::Asked), Status::Suspending));
    let mut resting = running(Status::Suspended);
    resting.detail.rest = Some(Rest::Asked);
    let (now, step) = after(&resting, &rest(false)).unwrap();
    assert_eq!((now.detail.rest, step.unwrap().0), (None, Status::Resuming));
}

#[test]
fn what_ends_within_the_grace_is_not_woken() {
    // A standard instance has seven days of grace.
    let day = Duration::from_hours(24);
    for (end, expected) in [
        (NOON + day * 8, None),
        (NOON + day * 7, Some(Refused::Expiring)),
        (NOON, Some(Refused::Expiring)),
    ] {
        let seen = Instance { expires_at: Some(end), ..running(Status::Suspended) };
        assert_eq!(refusal(&seen, &rest(false)), expected, "{end}");
    }
}
