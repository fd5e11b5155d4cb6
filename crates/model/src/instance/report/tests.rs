//! What agents say, case by case.

use super::*;
use crate::instance::sample::{instance, xid};
use crate::kind::Catalog;

fn condition(status: &str, reason: &str, message: &str) -> Condition {
    let [status, reason, message] = [status, reason, message].map(str::to_owned);
    Condition { about: "Ready".into(), status, reason, message }
}

fn says(status: &str, reason: &str, message: &str) -> Report {
    Report { conditions: vec![condition(status, reason, message)], ..Report::default() }
}

fn after(seen: &Instance, report: &Report) -> Result<Option<(Instance, Then)>, Odd> {
    let catalog = Catalog::built_in();
    let words = &catalog.kind("kafka").unwrap().words;
    apply(seen, report, Site { words, dns: Some("apps.site.example"), next_try: xid(99) })
}

/// Where it goes, if anywhere.
fn then(status: Status, report: &Report) -> Then {
    after(&instance(status), report).unwrap().map_or(Then::Stay, |(_, then)| then)
}

fn moves_to(status: Status, report: &Report) -> Option<Status> {
    match then(status, report) {
        Then::Move(to, reason) => {
            assert!(status.may_become(to), "{status} to {to}: {reason}");
            Some(to)
        }
        _ => None,
    }
}

#[test]
fn what_conditions_come_down_to() {
    let error = || Said::Error("no disk".into());
    for (status, reason, message, expected) in [
        ("True", "Suspended", "", Said::Suspended),
        ("False", "Suspended", "", Said::Suspended),
        ("Unknown", "Suspended", "", Said::Suspended),
        ("True", "", "", Said::Ready),
        ("True", "Error", "no disk", Said::Ready),
        ("True", "KafkaUpdating", "", Said::Ready),
        ("Unknown", "Deleted", "", Said::Unknown),
        ("Unknown", "Error", "", Said::Unknown),
        ("False", "Installing", "", Said::Installing),
        ("False", "Deleted", "", Said::Deleted),
        ("False", "Error", "no disk", error()),
        ("False", "Rejected", FULL, Said::Full),
        ("False", "Rejected", "Cluster has insufficient resources.", Said::Rejected),
        ("False", "Rejected", "", Said::Rejected),
        ("False", "Paused", "", Said::Installing),
        ("", "", "", Said::Installing),
        ("nonsense", "nonsense", "nonsense", Said::Installing),
    ] {
        let said = read(&[condition(status, reason, message)]);
        assert_eq!(said, expected, "{status} {reason} {message}");
    }
    assert_eq!(read(&[]), Said::Installing);
    let lower = Condition { about: "ready".into(), ..condition("True", "", "") };
    let other = Condition { about: "Other".into(), ..condition("False", "Error", "") };
    assert_eq!(read(&[other.clone(), lower]), Said::Ready);
    assert_eq!(read(&[other]), Said::Installing);
}

#[test]
fn an_error_fails_what_is_not_resting_or_leaving_and_tells_why() {
    let report = says("False", "Error", "no disk.");
    for &status in Status::ALL {
        let expected = matches!(status, Status::Provisioning | Status::Ready | Status::Resuming);
        let to = moves_to(status, &report);
        assert_eq!(to, expected.then_some(Status::Failed), "{status}");
    }
    let reason = Then::Move(Status::Failed, Reason::AgentError { message: "no disk.".into() });
    assert_eq!(then(Status::Ready, &report), reason);
    let mut ready = instance(Status::Ready);
    ready.detail.is_agent_ready = true;
    // Else its worker would take it back at once.
    assert!(!after(&ready, &report).unwrap().unwrap().0.detail.is_agent_ready);
}

#[test]
fn gone_counts_only_when_it_was_asked_for() {
    let report = says("False", "Deleted", "");
    for &status in Status::ALL {
        let found = after(&instance(status), &report);
        match status {
            Status::Accepted | Status::Preparing | Status::Deleting => {
                assert_eq!(found, Ok(None), "{status}");
            }
            Status::Deprovision => {
                let (_, then) = found.unwrap().unwrap();
                assert!(matches!(then, Then::Move(Status::Deleting, _)), "{then:?}");
            }
            _ => assert!(found.is_err(), "{status}"),
        }
    }
}

#[test]
fn what_is_on_its_way_out_is_revived_by_nothing() {
    for status in [Status::Deprovision, Status::Deleting] {
        for (said, reason) in
            [("True", ""), ("False", "Error"), ("False", "Suspended"), ("False", "Rejected")]
        {
            assert_eq!(
                after(&instance(status), &says(said, reason, "")),
                Ok(None),
                "{status} {reason}"
            );
        }
    }
}

#[test]
fn suspended_counts_only_when_it_was_asked_for() {
    let report = says("False", "Suspended", "");
    for &status in Status::ALL {
        let expected = (status == Status::Suspending).then_some(Status::Suspended);
        assert_eq!(moves_to(status, &report), expected, "{status}");
    }
}

#[test]
fn ready_is_kept_for_the_worker_with_what_leads_to_it() {
    let report = Report {
        routes: vec![
            (String::new(), "ingress.site.example".into()),
            ("admin-server".into(), "apps.site.example".into()),
        ],
        admin_url: Some("https://admin.example".into()),
        ..says("True", "", "")
    };
    for &status in Status::ALL {
        let found = after(&instance(status), &report).unwrap();
        let is_heard = matches!(
            status,
            Status::Provisioning | Status::Ready | Status::Failed | Status::Resuming
        );
        assert_eq!(found.is_some(), is_heard, "{status}");
        let Some((now, then)) = found else { continue };
        assert_eq!((then, now.detail.is_agent_ready), (Then::Stay, true), "{status}");
        let domains: Vec<&str> = now.detail.routes.iter().map(|route| &*route.domain).collect();
        assert_eq!(domains, ["events-1.kafka.example", "admin-server-events-1.kafka.example"]);
        assert_eq!(now.detail.admin_url.as_deref(), Some("https://admin.example"));
        // The same again is no news, and routes are kept once.
        assert_eq!(after(&now, &report), Ok(None), "{status}");
        let moved =
            Report { routes: vec![(String::new(), "x.site.example".into())], ..report.clone() };
        assert_eq!(after(&now, &moved), Ok(None), "{status}");
    }
}

#[test]
fn routers_lead_into_the_cluster() {
    for (router, good) in [
        ("site.example", true),
        ("apps.site.example", true),
        ("a.b.site.example", true),
        ("evilsite.example", false),
        ("site.example.evil", false),
        ("", false),
    ] {
        let report =
            Report { routes: vec![(String::new(), router.into())], ..says("True", "", "") };
        let found = after(&instance(Status::Provisioning), &report);
        assert_eq!(found.is_ok(), good, "{router}");
    }
}

#[test]
fn what_is_not_taken_is_tried_again_and_what_has_no_room_goes_elsewhere() {
    let (rejected, full) = (says("False", "Rejected", "why"), says("False", "Rejected", FULL));
    for &status in Status::ALL {
        let placement = |seen: &Instance, report| {
            let found = after(seen, report).unwrap();
            found.map_or(seen.detail.placement, |(now, _)| now.detail.placement)
        };
        let seen = instance(status);
        let is_trying = status == Status::Provisioning;
        let expected = Some(xid(if is_trying { 99 } else { 5 }));
        assert_eq!(placement(&seen, &rejected), expected, "{status}");
        assert_eq!(then(status, &full) == Then::Elsewhere, is_trying, "{status}");
        // What asked for this very cluster stays, and is tried again.
        let pinned = Instance { pinned_to: seen.cluster_id, ..seen };
        assert_eq!(placement(&pinned, &full), expected, "{status}");
        assert_ne!(after(&pinned, &full).unwrap().map(|(_, then)| then), Some(Then::Elsewhere));
    }
}

#[test]
fn versions_and_upgrades_are_noted_whatever_is_said() {
    let actual =
        Versions { operator: "op-2".into(), service: "3.9".into(), protocol: String::new() };
    for (status, reason, upgrading) in [
        ("True", "StrimziUpdating", Some("operator")),
        ("True", "KafkaUpdating", Some("service")),
        ("False", "KafkaIbpUpdating", Some("protocol")),
        ("True", "", None),
        ("Unknown", "", None),
    ] {
        let mut seen = instance(Status::Ready);
        seen.detail.actual.protocol = "3.8".into();
        let report = Report { actual: actual.clone(), ..says(status, reason, "") };
        let (now, _) = after(&seen, &report).unwrap().unwrap();
        let expected = Versions { protocol: "3.8".into(), ..actual.clone() };
        assert_eq!(now.detail.actual, expected, "{reason}");
        assert_eq!(now.detail.upgrading, upgrading.into_iter().collect::<Vec<_>>(), "{reason}");
        let (done, _) = after(&now, &says("True", "", "")).unwrap().unwrap_or((now, Then::Stay));
        assert!(done.detail.upgrading.is_empty(), "{reason}");
    }
}
