//! Reports of agents, case by case.

use super::*;
use crate::instance::sample::{instance, xid};
use crate::kind::Catalog;

fn condition(status: &str, reason: &str, message: &str) -> Condition {
    let [status, reason, message] = [status, reason, message].map(str::to_owned);
    Condition { condition_type: "Ready".into(), status, reason, message }
}

fn reported(status: &str, reason: &str, message: &str) -> Report {
    Report { conditions: vec![condition(status, reason, message)], ..Report::default() }
}

fn after(before: &Instance, report: &Report) -> Result<Option<(Instance, Outcome)>, InvalidReport> {
    let catalog = Catalog::built_in();
    let words = &catalog.kind("kafka").unwrap().words;
    apply(before, report, Context { words, dns: Some("apps.site.example"), next_attempt: xid(99) })
}

/// The consequence of a report.
fn then(status: Status, report: &Report) -> Outcome {
    after(&instance(status), report).unwrap().map_or(Outcome::Stay, |(_, then)| then)
}

fn moves_to(status: Status, report: &Report) -> Option<Status> {
    match then(status, report) {
        Outcome::Move(to, reason) => {
            assert!(status.may_become(to), "{status} to {to}: {reason}");
            Some(to)
        }
        _ => None,
    }
}

#[test]
fn reported_state_is_read_from_the_ready_condition() {
    let error = || State::Error("no disk".into());
    for (status, reason, message, expected) in [
        ("True", "Suspended", "", State::Suspended),
        ("False", "Suspended", "", State::Suspended),
        ("Unknown", "Suspended", "", State::Suspended),
        ("True", "", "", State::Ready),
        ("True", "Error", "no disk", State::Ready),
        ("True", "KafkaUpdating", "", State::Ready),
        ("Unknown", "Deleted", "", State::Unknown),
        ("Unknown", "Error", "", State::Unknown),
        ("False", "Installing", "", State::Installing),
        ("False", "Deleted", "", State::Deleted),
        ("False", "Error", "no disk", error()),
        ("False", "Rejected", FULL, State::Full),
        ("False", "Rejected", "Cluster has insufficient resources.", State::Rejected),
        ("False", "Rejected", "", State::Rejected),
        ("False", "Paused", "", State::Installing),
        ("", "", "", State::Installing),
        ("nonsense", "nonsense", "nonsense", State::Installing),
    ] {
        let state = reported_state(&[condition(status, reason, message)]);
        assert_eq!(state, expected, "{status} {reason} {message}");
    }
    assert_eq!(reported_state(&[]), State::Installing);
    let lower = Condition { condition_type: "ready".into(), ..condition("True", "", "") };
    let other = Condition { condition_type: "Other".into(), ..condition("False", "Error", "") };
    assert_eq!(reported_state(&[other.clone(), lower]), State::Ready);
    assert_eq!(reported_state(&[other]), State::Installing);
}

#[test]
fn error_report_fails_active_instances_with_its_message() {
    let report = reported("False", "Error", "no disk.");
    for &status in Status::ALL {
        let expected = matches!(status, Status::Provisioning | Status::Ready | Status::Resuming);
        let to = moves_to(status, &report);
        assert_eq!(to, expected.then_some(Status::Failed), "{status}");
    }
    let reason = Outcome::Move(Status::Failed, Reason::AgentError { message: "no disk.".into() });
    assert_eq!(then(Status::Ready, &report), reason);
    let mut ready = instance(Status::Ready);
    ready.detail.is_agent_ready = true;
    // Otherwise the worker would make it ready again at once.
    assert!(!after(&ready, &report).unwrap().unwrap().0.detail.is_agent_ready);
}

#[test]
fn deleted_report_counts_only_when_deletion_was_requested() {
    let report = reported("False", "Deleted", "");
    for &status in Status::ALL {
        let found = after(&instance(status), &report);
        match status {
            Status::Accepted | Status::Preparing | Status::Deleting => {
                assert_eq!(found, Ok(None), "{status}");
            }
            Status::Deprovision => {
                let (_, then) = found.unwrap().unwrap();
                assert!(matches!(then, Outcome::Move(Status::Deleting, _)), "{then:?}");
            }
            _ => assert!(found.is_err(), "{status}"),
        }
    }
}

#[test]
fn instance_being_deleted_ignores_other_reports() {
    for status in [Status::Deprovision, Status::Deleting] {
        for (ready, reason) in
            [("True", ""), ("False", "Error"), ("False", "Suspended"), ("False", "Rejected")]
        {
            assert_eq!(
                after(&instance(status), &reported(ready, reason, "")),
                Ok(None),
                "{status} {reason}"
            );
        }
    }
}

#[test]
fn suspended_report_counts_only_when_suspension_was_requested() {
    let report = reported("False", "Suspended", "");
    for &status in Status::ALL {
        let expected = (status == Status::Suspending).then_some(Status::Suspended);
        assert_eq!(moves_to(status, &report), expected, "{status}");
    }
}

#[test]
fn ready_report_stores_routes_for_the_worker() {
    let report = Report {
        routes: vec![
            (String::new(), "ingress.site.example".into()),
            ("admin-server".into(), "apps.site.example".into()),
        ],
        admin_url: Some("https://admin.example".into()),
        ..reported("True", "", "")
    };
    for &status in Status::ALL {
        let found = after(&instance(status), &report).unwrap();
        let is_applied = matches!(
            status,
            Status::Provisioning | Status::Ready | Status::Failed | Status::Resuming
        );
        assert_eq!(found.is_some(), is_applied, "{status}");
        let Some((now, then)) = found else { continue };
        assert_eq!((then, now.detail.is_agent_ready), (Outcome::Stay, true), "{status}");
        let domains: Vec<&str> = now.detail.routes.iter().map(|route| &*route.domain).collect();
        assert_eq!(domains, ["events-1.kafka.example", "admin-server-events-1.kafka.example"]);
        assert_eq!(now.detail.admin_url.as_deref(), Some("https://admin.example"));
        // A repeated report changes nothing, and routes are stored once.
        assert_eq!(after(&now, &report), Ok(None), "{status}");
        let moved =
            Report { routes: vec![(String::new(), "x.site.example".into())], ..report.clone() };
        assert_eq!(after(&now, &moved), Ok(None), "{status}");
    }
}

#[test]
fn routers_must_be_within_the_domain_of_the_cluster() {
    for (router, good) in [
        ("site.example", true),
        ("apps.site.example", true),
        ("a.b.site.example", true),
        ("evilsite.example", false),
        ("site.example.evil", false),
        ("", false),
    ] {
        let report =
            Report { routes: vec![(String::new(), router.into())], ..reported("True", "", "") };
        let found = after(&instance(Status::Provisioning), &report);
        assert_eq!(found.is_ok(), good, "{router}");
    }
}

#[test]
fn rejected_instances_are_retried_and_moved_if_capacity_is_insufficient() {
    let (rejected, full) =
        (reported("False", "Rejected", "why"), reported("False", "Rejected", FULL));
    for &status in Status::ALL {
        let placement = |before: &Instance, report| {
            let found = after(before, report).unwrap();
            found.map_or(before.detail.placement, |(now, _)| now.detail.placement)
        };
        let before = instance(status);
        let is_provisioning = status == Status::Provisioning;
        let expected = Some(xid(if is_provisioning { 99 } else { 5 }));
        assert_eq!(placement(&before, &rejected), expected, "{status}");
        assert_eq!(then(status, &full) == Outcome::Reschedule, is_provisioning, "{status}");
        // An instance pinned to the cluster stays and is retried.
        let pinned = Instance { pinned_to: before.cluster_id, ..before };
        assert_eq!(placement(&pinned, &full), expected, "{status}");
        assert_ne!(after(&pinned, &full).unwrap().map(|(_, then)| then), Some(Outcome::Reschedule));
    }
}

#[test]
fn versions_and_upgrades_are_recorded_for_every_state() {
    let actual =
        Versions { operator: "op-2".into(), service: "3.9".into(), protocol: String::new() };
    for (status, reason, upgrading) in [
        ("True", "StrimziUpdating", Some("operator")),
        ("True", "KafkaUpdating", Some("service")),
        ("False", "KafkaIbpUpdating", Some("protocol")),
        ("True", "", None),
        ("Unknown", "", None),
    ] {
        let mut before = instance(Status::Ready);
        before.detail.actual.protocol = "3.8".into();
        let report = Report { actual: actual.clone(), ..reported(status, reason, "") };
        let (now, _) = after(&before, &report).unwrap().unwrap();
        let expected = Versions { protocol: "3.8".into(), ..actual.clone() };
        assert_eq!(now.detail.actual, expected, "{reason}");
        assert_eq!(now.detail.upgrading, upgrading.into_iter().collect::<Vec<_>>(), "{reason}");
        let (done, _) =
            after(&now, &reported("True", "", "")).unwrap().unwrap_or((now, Outcome::Stay));
        assert!(done.detail.upgrading.is_empty(), "{reason}");
    }
}
