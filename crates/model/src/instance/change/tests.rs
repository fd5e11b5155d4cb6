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
) -> Result<(Instance, Option<(Status, String)>), Refused> {
    let catalog = Catalog::built_in();
    let offers = [offered("op-1", true), offered("op-2", true), offered("op-3", false)];
    let kind = catalog.kind("kafka").unwrap();
    check(seen, change, Against { kind, offered: &offers, retention_bytes: Some(100), now: NOON })
}

fn code(seen: &Instance, change: &Change) -> u16 {
    after(seen, change).map_or_else(|refused| refused.code, |_| 0)
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
    assert_eq!(code(&running(Status::Accepted), &Change::default()), 37);
    assert_eq!(code(&running(Status::Accepted), &bad_all), 37);
    assert_eq!(code(&running(Status::Accepted), &bad_late), 8);
    let reason = |seen: &Instance| after(seen, &bad_late).unwrap_err().reason;
    assert!(reason(&running(Status::Accepted)).contains("while it is accepted"));
    let mut upgrading = running(Status::Ready);
    upgrading.detail.upgrading = vec!["operator".into()];
    assert!(reason(&upgrading).contains("changed already"));
    assert!(reason(&running(Status::Ready)).contains("can't run the operator"));
}

#[test]
fn retention_grows() {
    for (text, expected) in [
        ("100", Ok(100)),
        ("1Ki", Ok(1024)),
        ("99", Err(37)),
        ("100m", Err(37)),
        ("", Err(37)),
        ("a lot", Err(37)),
        ("-1", Err(37)),
    ] {
        let change = Change { retention: Some(text.into()), ..Change::default() };
        let found = after(&running(Status::Ready), &change);
        let found = found.map(|(now, _)| now.detail.retention_bytes.unwrap());
        assert_eq!(found.map_err(|refused| refused.code), expected, "{text}");
    }
    let mut more = running(Status::Ready);
    more.detail.retention_bytes = Some(500);
    assert_eq!(code(&more, &Change { retention: Some("400".into()), ..Change::default() }), 37);
}

#[test]
fn statuses_that_can_be_changed() {
    let change = Change { retention: Some("1Gi".into()), ..Change::default() };
    for &status in Status::ALL {
        let is_fixed = matches!(status, Status::Accepted | Status::Deleting);
        assert_eq!(code(&running(status), &change), if is_fixed { 8 } else { 0 }, "{status}");
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
        assert_eq!(code(&seen, &change), 0, "{part}");
        seen.detail.upgrading = vec![part.into()];
        assert_eq!(code(&seen, &change), 8, "{part}");
        seen.detail.upgrading = vec!["other".into()];
        assert_eq!(code(&seen, &change), 0, "{part}");
    }
}

#[test]
fn versions_that_go_together() {
    for (operator, service, protocol, expected) in [
        ("op-2", "3.9.0", "3.9", 0),
        ("op-1", "3.10.0", "3.9", 0),
        ("op-1", "3.10.0", "3.10", 0),
        ("op-1", "3.9.0", "3.10", 8),
        ("op-1", "3.9.0", "3.8", 8),
        ("op-1", "3.8.1", "3.9", 8),
        ("op-1", "3.11.0", "3.9", 8),
        ("op-1", "3.10.0", "3.11", 8),
        ("op-3", "3.9.0", "3.9", 8),
        ("op-9", "3.9.0", "3.9", 8),
        ("", "3.9.0", "3.9", 8),
    ] {
        let change = Change {
            operator: Some(operator.into()),
            service: Some(service.into()),
            protocol: Some(protocol.into()),
            ..Change::default()
        };
        let found = code(&running(Status::Ready), &change);
        assert_eq!(found, expected, "{operator} {service} {protocol}");
    }
}

#[test]
fn resting_and_waking() {
    for &status in Status::ALL {
        let (to_rest, to_wake) =
            (code(&running(status), &rest(true)), code(&running(status), &rest(false)));
        assert_eq!(to_rest, if status == Status::Ready { 0 } else { 8 }, "{status}");
        assert_eq!(to_wake, if status == Status::Suspended { 0 } else { 8 }, "{status}");
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
    for (end, expected) in [(NOON + day * 8, 0), (NOON + day * 7, 8), (NOON, 8)] {
        let seen = Instance { expires_at: Some(end), ..running(Status::Suspended) };
        assert_eq!(code(&seen, &rest(false)), expected, "{end}");
    }
}
