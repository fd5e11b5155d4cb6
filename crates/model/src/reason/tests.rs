//! One example of every variant: it survives JSON, and its message is well formed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};
use strum::VariantNames;

use super::*;
use crate::{Resources, Xid, cluster, deployment, environment, instance, resource};

const NOON: Time = Time(1_800_000_000_123_456);

fn organization(n: u32) -> OrganizationId {
    OrganizationId(Xid::new(n, [0; 5], 0))
}

fn deployment_id() -> DeploymentId {
    DeploymentId(Xid::new(7, [0; 5], 0))
}

fn cpu(text: &str) -> Resources {
    [("cpu".to_owned(), text.parse().unwrap())].into_iter().collect()
}

fn boxed<T>(value: T) -> Box<T> {
    Box::new(value)
}

fn user() -> Requester {
    Requester::User { name: "alice".into() }
}

fn deployment_reasons() -> Vec<deployment::Reason> {
    use deployment::Pull;
    use deployment::Reason::*;
    let (yard, needs) = (|| Some("yard".to_owned()), || cpu("1.5"));
    let by =
        Workload::visible_to(organization(1), organization(1), (deployment_id(), "urgent", 10));
    let oom = || OOMKilled { limit_bytes: Some(16 << 20) };
    vec![
        AsExpected,
        AwaitingPlacement,
        InsufficientCapacity {
            needs: needs(),
            cluster: yard(),
            node: Some("a".into()),
            missing: cpu("1.1"),
            estimated_start: Some(NOON),
        },
        CapacityReserved { needs: needs(), cluster: None },
        ExceedsCapacity { needs: needs(), cluster: yard(), missing: cpu("1") },
        NoMatchingNode { cluster: yard() },
        ClusterNotReady { cluster: "yard".into(), status: cluster::Status::Provisioning },
        AwaitingPreemption { cluster: yard() },
        PreemptionBudgetExceeded { limit: 10, cluster: None },
        InsufficientMachineCapacity {
            needs: Resources::from([("cpu", 2)]),
            cluster: Some("yard".into()),
            missing: Resources::from([("cpu", 1)]),
        },
        ExceedsMachineCapacity {
            needs: Resources::from([("gpu", 1)]),
            cluster: Some("yard".into()),
            missing: Resources::from([("gpu", 1)]),
        },
        FairShareProtected { needs: Resources::from([("cpu", 2)]), cluster: Some("local".into()) },
        Preempted { by, needs: cpu("0.3"), cluster: yard() },
        Preempted { by: Workload::OtherOrganization, needs: needs(), cluster: None },
        ClusterDraining { cluster: "yard".into() },
        Evicted { cluster: "yard".into() },
        ClusterUnreachable { since: Some(NOON), last: boxed(AsExpected) },
        Placed { clusters: vec!["yard".into(), "duo".into()] },
        ReservesCapacity { cluster: yard() },
        AwaitingAgent,
        Suspending,
        CrashLoopBackOff { last: boxed(oom()), retry_in_ms: Some(4000), restarts: Some(3) },
        Exited { exit_code: Some(139), signal: Some("11 (SIGSEGV)".into()), oom_limit_bytes: None },
        Exited { exit_code: None, signal: None, oom_limit_bytes: Some(1000) },
        oom(),
        OOMKilled { limit_bytes: None },
        ImagePullFailed {
            image: "registry.example/web:9".into(),
            cause: Pull::NotFound,
            message: "not found (404).".into(),
            is_retried: false,
        },
        ImagePullFailed {
            image: "web".into(),
            cause: Pull::Other,
            message: String::new(),
            is_retried: false,
        },
        CommandNotFound { command: "serve".into() },
        CommandNotExecutable { command: "/etc".into() },
        PortUnavailable { message: "address already in use".into() },
        StartFailed { message: String::new() },
        ReadinessCheckFailed {
            port: Some(80),
            within_seconds: Some(60),
            message: "connection refused".into(),
        },
        ContainerLost { message: "removed by a third party".into() },
        Unschedulable { message: "0/3 nodes are available".into() },
        PodFailed { reason: "Evicted".into(), message: "low on disk.".into() },
        RunForElapsed { seconds: 90 },
        ReplicaFailed { replica: 1, reason: boxed(oom()) },
        ReplicaFailed { replica: 1, reason: boxed(AsExpected) },
        CrashLoopBackOff { last: boxed(AsExpected), retry_in_ms: None, restarts: None },
        SiblingFailed { replica: 1 },
        ReplicasUnavailable { running: 1, replicas: 3, pending: Some(boxed(AwaitingPlacement)) },
        ScaledDown,
        DeletionRequested { by: None },
        Reported { message: "Started.".into() },
    ]
}

fn cluster_reasons() -> Vec<cluster::Reason> {
    use cluster::Provider;
    use cluster::Reason::*;
    let message = || "403 Forbidden".to_owned();
    vec![
        AsExpected,
        Progressing { message: "Terraform is creating aws_instance.web (3 of 9)".into() },
        InstallingAgent,
        AwaitingAgent { provider: Provider::Agent },
        AgentNotReady,
        AgentUnreachable { since: NOON },
        BackendNotConfigured { provider: Provider::Terraform },
        BackendUnavailable { message: message() },
        BackendRefused { message: message() },
        DeadlineExceeded { last: boxed(AwaitingAgent { provider: Provider::Kubernetes }) },
        DeadlineExceeded { last: boxed(BackendUnavailable { message: message() }) },
        RepairFailed { message: message() },
        DestroyFailed { message: message() },
        LeftBehind { message: message() },
        Draining { moving: 2, without_capacity: 0, pinned: 1, third_party: 0 },
        Drained,
        CapacityInUse { message: "2 standard reported, 3 in use".into() },
        Cancelling,
        CancelFailed { message: "busy".into() },
        Cancelled,
        ScaledDown { pool: "eu".into() },
        RetryRequested,
        DeletionRequested { by: Some(user()) },
        Reported { message: "Restored from backup".into() },
    ]
}

fn instance_reasons() -> Vec<instance::Reason> {
    use instance::External;
    use instance::Reason::*;
    let (yard, message) = (|| "yard".to_owned(), || "no answer within 5 s".to_owned());
    let oom = || deployment::Reason::OOMKilled { limit_bytes: None };
    vec![
        AsExpected,
        AwaitingPlacement,
        DeploymentPending { reason: deployment::Reason::AwaitingPlacement },
        DeploymentFailed { reason: oom() },
        DeploymentFailed { reason: deployment::Reason::AsExpected },
        InsufficientCapacity { cluster: yard() },
        VersionsUnknown { cluster: yard() },
        Placed { cluster: yard() },
        PlacementLost { deployment: Some(deployment::Reason::Evicted { cluster: yard() }) },
        DeadlineExceeded { after_seconds: 3600, last: boxed(AwaitingPlacement) },
        AwaitingAgent { cluster: yard() },
        AgentNotResponding { cluster: Some(yard()), due: NOON },
        AgentError { message: String::new() },
        BackendUnavailable { system: External::Dns, message: message() },
        BackendRefused { system: External::Sso, message: message() },
        KindNotFound { kind: "kafka".into() },
        Repaired { objects: vec!["a.example".into()] },
        SuspensionRequested { by: Some(Requester::Administrator { name: None }) },
        ResumeRequested { by: Some(Requester::Administrator { name: Some("root".into()) }) },
        EntitlementExpired { message: "its grant ended".into(), delete_at: Some(NOON) },
        EntitlementRestored,
        TrialExpired,
        OwnerDenied { owner: "alice".into() },
        CleaningUp,
        DeletionRequested { by: Some(Requester::Environment { name: "shop".into() }) },
        Reported { message: "Upgrading".into() },
    ]
}

fn resource_reasons() -> Vec<resource::Reason> {
    use resource::Reason::*;
    let (web, message) = (|| "web".to_owned(), || "permission denied".to_owned());
    let oom = || deployment::Reason::OOMKilled { limit_bytes: None };
    vec![
        AsExpected,
        ConcurrencyLimit { limit: 8 },
        DependencyPending { resource: web() },
        DependencyFailed { resource: web() },
        DependentExists { resource: web(), failed: false },
        DependentExists { resource: web(), failed: true },
        AwaitingOthers,
        Planned { why: "image differs".into() },
        Progressing { message: "Starting Terraform.".into() },
        DeploymentPending {
            status: deployment::Status::Queued,
            reason: deployment::Reason::AwaitingPlacement,
        },
        DeploymentFailed { reason: oom() },
        InstancePending {
            status: instance::Status::Preparing,
            reason: instance::Reason::AsExpected,
        },
        InstanceFailed { reason: instance::Reason::DeploymentFailed { reason: oom() } },
        Replacing,
        Recreating,
        Unchanged,
        InvalidConfiguration { message: "with.image: must be text".into() },
        BackendNotConfigured { executor: crate::template::Executor::ConsulKv },
        BackendUnavailable { message: message(), attempts: 3, retry_at: NOON },
        BackendRefused { message: message() },
        QuotaExceeded { message: "the limit of 10 deployments per organization is reached".into() },
        DeadlineExceeded { message: message() },
        Cancelling,
        CancelFailed { message: message() },
        Cancelled,
        DestructionQueued { after: Some(boxed(BackendRefused { message: message() })) },
        RetryRequested,
        RepairingDrift,
        DriftDetected { fields: vec!["image".into(), "replicas".into()] },
        UnexpectedObjects { objects: 1 },
        ObservationFailed { message: message() },
        Reported { message: "Restored from backup".into() },
    ]
}

fn environment_reasons() -> Vec<environment::Reason> {
    use environment::Reason::*;
    let failed = resource::Reason::BackendRefused { message: "permission denied".into() };
    vec![
        AsExpected,
        Progressing { done: 1, resources: 3, running: 1 },
        DestructionProgressing { left: 2, running: 1 },
        HealthChecksRunning,
        HealthCheckFailed { of: "web".into(), message: "http://a returned HTTP status 503".into() },
        ResourceFailed { resource: "web".into(), reason: boxed(failed), others: 2 },
        DependencyCycle { left: 2, resources: 3 },
        Cancelled { left: Some(1) },
        Cancelled { left: None },
        RetryRequested,
        RepairingDrift { resources: vec!["web".into()] },
        TtlExpired { expired_at: NOON },
        DeletionRequested { by: Some(user()) },
        Reported { message: "Restored from backup".into() },
    ]
}

/// Checks JSON, message, and that every variant has an example.
fn check<R>(all: &[R], statuses: &[&str])
where
    R: StatusReason + PartialEq + std::fmt::Debug + VariantNames,
    for<'a> &'a R: Into<&'static str>,
{
    let shown: BTreeSet<&str> = all.iter().map(Into::into).collect();
    let known = R::VARIANTS.iter().copied().filter(|name| *name != "Unknown");
    assert_eq!(shown, known.collect(), "every variant has an example");
    for reason in all {
        let name: &str = reason.into();
        let json = serde_json::to_string(reason).unwrap();
        assert!(json.starts_with(&format!(r#"{{"code":"{name}""#)), "{json}");
        assert_eq!(R::parse(&json), *reason);
        if json == format!(r#"{{"code":"{name}"}}"#) {
            assert_eq!(R::bare(name).as_ref(), Some(reason));
        }
        let message = reason.to_string();
        assert!(message.is_empty() || message.ends_with('.'), "{message:?}");
        for flaw in ["  ", "..", " .", "!.", "\n"] {
            assert!(!message.contains(flaw), "{message:?}");
        }
        let bare = message.trim_end_matches('.').trim_start_matches("It is ");
        let is_status =
            statuses.iter().any(|status| status.replace('_', " ") == bare.to_lowercase());
        assert!(!is_status, "{message:?} restates the status");
        let begins = message.chars().next();
        let is_external =
            ["Reported", "Progressing", "BackendRefused", "DriftDetected"].contains(&name);
        assert!(is_external || begins.is_none_or(|c| !c.is_lowercase()), "{message:?}");
        let dialect = ["shall", "It ", "somebody", "mend", "room", "asked for"];
        assert!(is_external || dialect.iter().all(|word| !message.contains(word)), "{message:?}");
    }
}

macro_rules! texts {
    ($status:path) => {{
        use $status as Status;
        Status::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>()
    }};
}

#[test]
fn every_reason_survives_json_and_has_a_well_formed_message() {
    check(&cluster_reasons(), &texts!(cluster::Status));
    check(&deployment_reasons(), &texts!(deployment::Status));
    check(&environment_reasons(), &texts!(environment::Status));
    check(&instance_reasons(), &texts!(instance::Status));
    check(&resource_reasons(), &texts!(resource::Status));
}

/// The messages of a subject's reasons, under their codes.
fn section<R: StatusReason>(subject: &str, all: &[R]) -> String
where
    for<'a> &'a R: Into<&'static str>,
{
    let mut text = format!("\n== {subject} ==\n");
    let mut last = "";
    for reason in all {
        let name: &str = reason.into();
        if name != last {
            write!(text, "\n{name}\n").unwrap();
        }
        last = name;
        let code = match reason.code() {
            code if code == name => String::new(),
            code => format!(" [reason_code {code}]"),
        };
        match reason.to_string().as_str() {
            "" => text += "  (empty: nothing to add to the status)\n",
            message => writeln!(text, "  {message}{code}").unwrap(),
        }
    }
    text
}

#[test]
fn snapshot_of_every_reason_is_current() {
    let text = [
        "Reasons of statuses: reason_code, and examples of status_reason. A reason that passes on \
         another one has the code of the inner one.\n"
            .to_owned(),
        section("Cluster", &cluster_reasons()),
        section("Deployment and replica", &deployment_reasons()),
        section("Instance of a managed service", &instance_reasons()),
        section("Environment", &environment_reasons()),
        section("Resource of an environment", &resource_reasons()),
    ];
    crate::snapshot::assert_snapshot("reasons.txt", &text.concat());
}

#[test]
fn deployment_messages_state_cause_and_next_step() {
    let message = |code: &str| {
        let all = deployment_reasons();
        let is_it = |reason: &&deployment::Reason| <&str>::from(*reason) == code;
        all.iter().find(is_it).map(ToString::to_string).unwrap()
    };
    for (code, expected) in [
        (
            "InsufficientCapacity",
            "Waiting for capacity on yard: needs 1.5 cpu; node a is short of 1.1 cpu. \
             Estimated start 2027-01-15T08:00:00Z.",
        ),
        ("Preempted", "Preempted by urgent (priority 10). Restarts when 0.3 cpu is free on yard."),
        ("OOMKilled", "OOM-killed: exceeded its memory limit of 16 MiB. Raise `ram`."),
        (
            "ImagePullFailed",
            "Image pull failed: registry.example/web:9: not found (404). Check the name and the tag.",
        ),
        (
            "CrashLoopBackOff",
            "OOM-killed: exceeded its memory limit of 16 MiB. Raise `ram`. Restarting in 4 s \
             (restart 3).",
        ),
        ("ReplicasUnavailable", "1 of 3 replicas running. Waiting for placement."),
        ("AsExpected", ""),
    ] {
        assert_eq!(message(code), expected);
    }
}

#[test]
fn reason_of_a_newer_server_is_readable_and_preserved() {
    let newer = json!({"code": "SolarFlare", "message": "sun is active", "until": 3});
    let read: deployment::Reason = serde_json::from_value(newer.clone()).unwrap();
    assert_eq!(read.code(), "SolarFlare");
    assert_eq!(read.to_string(), "sun is active.");
    assert_eq!(serde_json::to_value(&read).unwrap(), newer);

    let bare: cluster::Reason = serde_json::from_value(json!({"code": "SolarFlare"})).unwrap();
    assert_eq!(bare.to_string(), "SolarFlare.");

    // Also with changed fields, and nested.
    let changed = json!({"code": "OOMKilled", "limit_bytes": "much"});
    let read: deployment::Reason = serde_json::from_value(changed).unwrap();
    assert_eq!(read.code(), "OOMKilled");
    let nested = json!({"code": "DeploymentFailed", "reason": newer});
    let read: instance::Reason = serde_json::from_value(nested).unwrap();
    assert_eq!(read.code(), "SolarFlare");
    let not_a_reason: Result<instance::Reason, _> = serde_json::from_value(Value::Null);
    not_a_reason.unwrap_err();
}

#[test]
fn workload_of_another_organization_is_never_named() {
    let urgent = (deployment_id(), "urgent", 10);
    let other = Workload::visible_to(organization(1), organization(2), urgent);
    assert_eq!(other.to_string(), "a higher-priority workload of another organization");
    let json = serde_json::to_string(&other).unwrap();
    assert!(!json.contains("urgent") && !json.contains(&deployment_id().to_string()), "{json}");
    let own = Workload::visible_to(organization(1), organization(1), urgent);
    assert_eq!(own.to_string(), "urgent (priority 10)");
}

#[test]
fn code_is_that_of_the_innermost_reason() {
    let killed = deployment::Reason::OOMKilled { limit_bytes: None };
    let failed = instance::Reason::DeploymentFailed {
        reason: deployment::Reason::ReplicaFailed { replica: 2, reason: boxed(killed) },
    };
    let failed = boxed(resource::Reason::InstanceFailed { reason: failed });
    let whole =
        environment::Reason::ResourceFailed { resource: "web".into(), reason: failed, others: 0 };
    assert_eq!(whole.code(), "OOMKilled");
    assert_eq!(
        whole.to_string(),
        "Resource web failed: Instance failed: Deployment failed. Replica 2: OOM-killed: the node \
         ran out of memory. Free or add memory on the node. Fix the cause and retry, or destroy the \
         environment."
    );
}
