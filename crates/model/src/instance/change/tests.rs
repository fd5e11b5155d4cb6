//! Changes by administrators, case by case.

use super::*;
use crate::instance::sample;
use crate::kind::Catalog;

const NOON: Time = Time(1_000_000_000_000_000);

fn offered(operator: &str, is_ready: bool) -> OperatorVersion {
    OperatorVersion {
        operator: operator.into(),
        is_ready,
        services: ["3.8.1", "3.9.0", "3.10.0"].map(str::to_owned).to_vec(),
        protocols: ["3.8", "3.9", "3.10"].map(str::to_owned).to_vec(),
    }
}

fn running(status: Status) -> Instance {
    let mut it = sample::instance(status);
    it.detail.desired =
        Versions { operator: "op-1".into(), service: "3.9.0".into(), protocol: "3.9".into() };
    it.detail.actual = it.detail.desired.clone();
    it.detail.billing.model = "standard".into();
    it
}

fn after(
    instance: &Instance,
    change: &Change,
) -> Result<(Instance, Option<(Status, Reason)>), ChangeError> {
    let catalog = Catalog::built_in();
    let offers = [offered("op-1", true), offered("op-2", true), offered("op-3", false)];
    let kind = catalog.kind("kafka").unwrap();
    check(
        instance,
        change,
        Context { kind, offered: &offers, retention_bytes: Some(100), now: NOON },
    )
}

/// Why a change is refused, if it is.
fn refusal(instance: &Instance, change: &Change) -> Option<ChangeError> {
    after(instance, change).err()
}

fn suspend(suspended: bool) -> Change {
    Change { suspended: Some(suspended), ..Change::default() }
}

#[test]
fn first_failed_check_is_reported() {
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
    for (instance, change, expected) in [
        (&accepted, &Change::default(), ChangeError::Nothing),
        (&accepted, &bad_all, ChangeError::NotBytes("x".into())),
        (&accepted, &bad_late, ChangeError::Fixed(Status::Accepted)),
        (&upgrading, &bad_late, ChangeError::Upgrading { word: "strimzi".into() }),
        (&running(Status::Ready), &bad_late, ChangeError::UnknownOperator("op-9".into())),
    ] {
        assert_eq!(refusal(instance, change), Some(expected));
    }
}

#[test]
fn retention_can_only_increase() {
    for (text, expected) in [
        ("100", Ok(100)),
        ("1Ki", Ok(1024)),
        ("99", Err(ChangeError::RetentionShrinks { current: 100 })),
        ("100m", Err(ChangeError::NotBytes("100m".into()))),
        ("", Err(ChangeError::NotBytes(String::new()))),
        ("a lot", Err(ChangeError::NotBytes("a lot".into()))),
        ("-1", Err(ChangeError::NotBytes("-1".into()))),
    ] {
        let change = Change { retention: Some(text.into()), ..Change::default() };
        let found = after(&running(Status::Ready), &change);
        let found = found.map(|(now, _)| now.detail.retention_bytes.unwrap());
        assert_eq!(found, expected, "{text}");
    }
    let mut more = running(Status::Ready);
    more.detail.retention_bytes = Some(500);
    let less = Change { retention: Some("400".into()), ..Change::default() };
    assert_eq!(refusal(&more, &less), Some(ChangeError::RetentionShrinks { current: 500 }));
}

#[test]
fn accepted_and_deleting_instances_cannot_be_changed() {
    let change = Change { retention: Some("1Gi".into()), ..Change::default() };
    for &status in Status::ALL {
        let is_fixed = matches!(status, Status::Accepted | Status::Deleting);
        let expected = is_fixed.then_some(ChangeError::Fixed(status));
        assert_eq!(refusal(&running(status), &change), expected);
    }
}

#[test]
fn part_being_upgraded_cannot_be_changed() {
    for (part, change) in [
        ("operator", Change { operator: Some("op-2".into()), ..Change::default() }),
        ("service", Change { service: Some("3.10.0".into()), ..Change::default() }),
        ("protocol", Change { protocol: Some("3.9".into()), ..Change::default() }),
    ] {
        let mut instance = running(Status::Ready);
        assert_eq!(refusal(&instance, &change), None, "{part}");
        instance.detail.upgrading = vec![part.into()];
        assert!(
            matches!(refusal(&instance, &change), Some(ChangeError::Upgrading { .. })),
            "{part}"
        );
        instance.detail.upgrading = vec!["other".into()];
        assert_eq!(refusal(&instance, &change), None, "{part}");
    }
}

#[test]
fn versions_must_be_supported_and_not_downgraded() {
    let newer = |protocol: &str, service: &str| {
        let (protocol, service) = (protocol.into(), service.into());
        Some(ChangeError::NewerProtocol { protocol, service })
    };
    let older = ChangeError::OlderProtocol { new: "3.8".into(), now: "3.9".into() };
    let not_offered = |version: &str, offered: &str| ChangeError::UnknownVersion {
        operator: "op-1".into(),
        version: version.into(),
        offered: offered.into(),
    };
    let no_operator = |name: &str| Some(ChangeError::UnknownOperator(name.into()));
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
fn only_ready_instances_suspend_and_only_suspended_ones_resume() {
    for &status in Status::ALL {
        let (to_suspend, to_resume) =
            (refusal(&running(status), &suspend(true)), refusal(&running(status), &suspend(false)));
        assert_eq!(to_suspend.is_none(), status == Status::Ready, "{status}");
        assert_eq!(to_resume.is_none(), status == Status::Suspended, "{status}");
    }
    let (now, step) = after(&running(Status::Ready), &suspend(true)).unwrap();
    assert_eq!((now.detail.rest, step.unwrap().0), (Some(Suspension::Asked), Status::Suspending));
    let mut suspended = running(Status::Suspended);
    suspended.detail.rest = Some(Suspension::Asked);
    let (now, step) = after(&suspended, &suspend(false)).unwrap();
    assert_eq!((now.detail.rest, step.unwrap().0), (None, Status::Resuming));
}

#[test]
fn instance_within_its_grace_period_cannot_be_resumed() {
    // A standard instance has a grace period of seven days.
    let day = Duration::from_hours(24);
    for (end, expected) in [
        (NOON + day * 8, None),
        (NOON + day * 7, Some(ChangeError::Expiring)),
        (NOON, Some(ChangeError::Expiring)),
    ] {
        let instance = Instance { expires_at: Some(end), ..running(Status::Suspended) };
        assert_eq!(refusal(&instance, &suspend(false)), expected, "{end}");
    }
}
