//! Deployments: container images that run on clusters with a priority.

mod reason;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::credential::{self, PullCredentials};
use crate::invalid::Check;
use crate::reason::StatusReason;
use crate::text_enum::text_enum;
use crate::{
    ClusterId, DeploymentId, InstanceId, Invalid, OrganizationId, Quantity, Resources, Time, name,
};

pub use reason::{Pull, Reason};

/// Maximum number of replicas of a deployment.
pub const MAX_REPLICAS: u32 = 1000;
/// Priorities range from minus this to plus this.
pub const MAX_PRIORITY: i64 = 1_000_000;
/// Priority of reservations for instances: below every priority that users can request.
pub const RESERVED_PRIORITY: i64 = -MAX_PRIORITY - 1;

/// Default priority ceiling of an organization.
pub const DEFAULT_MAX_PRIORITY: i64 = 100;
/// CPU request of a replica with an image that requests none: 100m.
pub const DEFAULT_CPU: Quantity = Quantity::from_milli(100);
/// Memory request of a replica with an image that requests none: 64Mi. It is also its limit.
pub const DEFAULT_RAM: Quantity = Quantity::whole(64 << 20);
/// Minimum memory request of a replica with an image: 4Mi. Less than that is no usable limit.
pub const MIN_RAM: Quantity = Quantity::whole(4 << 20);

/// Replaces the values of environment variables where they must not be shown.
pub const HIDDEN: &str = "•••";

/// The status of a deployment or replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Pending: waiting for capacity.
    Queued,
    /// Placed; the agent has not started it yet.
    Scheduled,
    /// The agent is starting it.
    Starting,
    /// Running.
    Running,
    /// Preempted by a higher priority; requeued as soon as it has stopped.
    Preempted,
    /// Failed; see the reason.
    Failed,
    /// Ended successfully.
    Completed,
    /// Being deleted.
    Deleting,
}

text_enum!(Status {
    Queued => "queued",
    Scheduled => "scheduled",
    Starting => "starting",
    Running => "running",
    Preempted => "preempted",
    Failed => "failed",
    Completed => "completed",
    Deleting => "deleting",
});

impl Status {
    /// Is the transition to `next` allowed?
    pub fn may_become(self, next: Status) -> bool {
        use Status::{
            Completed, Deleting, Failed, Preempted, Queued, Running, Scheduled, Starting,
        };
        match self {
            Queued => matches!(next, Scheduled | Failed | Deleting),
            // Requeued when its cluster is unreachable.
            Scheduled => matches!(
                next,
                Queued | Starting | Running | Completed | Failed | Preempted | Deleting
            ),
            // Scheduled again when its spec changes in place.
            Starting => matches!(
                next,
                Queued | Scheduled | Running | Completed | Failed | Preempted | Deleting
            ),
            Running => matches!(
                next,
                Queued | Scheduled | Starting | Completed | Failed | Preempted | Deleting
            ),
            Preempted => matches!(next, Scheduled | Failed | Deleting),
            Failed | Completed => matches!(next, Scheduled | Deleting),
            Deleting => false,
        }
    }

    /// May the status of a deployment, which summarizes its replicas, change from here to `next`?
    ///
    /// Beside the steps of a single replica: a scale-down removes the replica that decided, and the
    /// reservation of an instance is placed and running in one transaction.
    pub fn summary_may_become(self, next: Status) -> bool {
        use Status::{Completed, Preempted, Queued, Running};
        self == next
            || self.may_become(next)
            || matches!(
                (self, next),
                (Queued, Running | Completed) | (Preempted, Queued | Completed)
            )
    }

    /// Is it placed and meant to run?
    pub fn is_placed(self) -> bool {
        matches!(self, Status::Scheduled | Status::Starting | Status::Running)
    }

    /// Is it pending, or about to be requeued?
    pub fn is_pending(self) -> bool {
        matches!(self, Status::Queued | Status::Preempted)
    }
}

/// Restart policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// Never restarted: completed or failed.
    Never,
    /// Restarted after a failure, with backoff.
    #[default]
    OnFailure,
    /// Restarted whenever it ends, with backoff.
    Always,
}

text_enum!(Restart { Never => "never", OnFailure => "on_failure", Always => "always" });

/// The spec of a deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The image; without one the deployment only reserves capacity.
    pub image: Option<String>,
    /// Requested resources of each replica.
    pub resources: Resources,
    /// Number of replicas.
    pub replicas: u32,
    /// Environment variables. May hold secrets: never in events or logs, and encrypted before they
    /// are stored (`sealed_env`), except those of instances that are no secrets.
    pub env: BTreeMap<String, String>,
    /// Overrides the image's command.
    pub command: Vec<String>,
    /// Ports that the container listens on.
    pub ports: Vec<u16>,
    /// Restart policy.
    #[serde(default)]
    pub restart: Restart,
    /// Seconds after which a replica is stopped and completed; none means no limit.
    #[serde(default)]
    pub run_for: Option<u32>,
    /// Labels that the node or its cluster must have.
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,
    /// Must each replica be on a different node?
    #[serde(default)]
    pub anti_affinity: bool,
    /// Readiness probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Probe>,
    /// Environment variables, encrypted; decrypted for the agent and for the owner.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sealed_env: BTreeMap<String, String>,
    /// Kubernetes objects to apply instead of running the image, if the agent supports it. May hold
    /// secrets: never in events or logs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<serde_json::Value>,
    /// Manifests as JSON, encrypted; decrypted when they are sent to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_manifests: Option<String>,
    /// The organization's credentials of the image's registry. Only in the desired state that an
    /// agent gets: never stored, never in events or logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<PullCredentials>,
}

/// A readiness probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The port, one of `ports`.
    pub port: u16,
    /// HTTP path and expected status; without it a TCP connection is enough.
    pub http: Option<(String, u16)>,
    /// Timeout in seconds.
    pub within: u32,
}

impl Spec {
    /// Requested resources of all replicas.
    pub fn request(&self) -> Resources {
        self.resources.times(self.replicas).expect("validated on creation")
    }

    /// The organization's credentials, if they are those of the image's registry.
    pub fn pull_credentials(&self) -> Option<&PullCredentials> {
        let registry = credential::registry_of(self.image.as_deref()?);
        self.pull.as_ref().filter(|pull| pull.registry == registry)
    }

    /// Does it run a workload, and not only reserve capacity?
    pub fn has_workload(&self) -> bool {
        self.image.is_some() || !self.manifests.is_empty()
    }

    /// The spec without values of environment variables and without manifests.
    pub fn redacted(&self) -> Spec {
        let names = self.env.keys().chain(self.sealed_env.keys());
        let env = names.map(|key| (key.clone(), HIDDEN.to_owned())).collect();
        let (sealed_env, manifests) = (BTreeMap::new(), Vec::new());
        Spec { env, sealed_env, manifests, sealed_manifests: None, pull: None, ..self.clone() }
    }

    /// The spec without environment variables and manifests: what stays of a deleted deployment.
    #[must_use]
    pub fn without_secrets(&self) -> Spec {
        let (env, sealed_env, manifests) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Spec { env, sealed_env, manifests, sealed_manifests: None, pull: None, ..self.clone() }
    }

    fn check(&self, resource_field: &str) -> Result<(), Invalid> {
        let mut check = Check::default();
        check.field(self.image.as_deref().map_or(Ok(()), image));
        check.field(self.resources.check(resource_field));
        if self.image.is_some() {
            check.field(check_container(resource_field, &self.resources));
        }
        check.field(check_replicas(self.replicas));
        check.field(env(&self.env));
        check.field(command(&self.command));
        check.field(ports(&self.ports));
        check.field(run_for(self.run_for));
        check.field(name::labels("node_selector", &self.node_selector));
        check.done()?;
        self.resources.times(self.replicas).map(drop)
    }
}

/// The default requests of a container that are not among these: without them it would have no limits.
pub fn missing_defaults(resources: &Resources) -> impl Iterator<Item = (&'static str, Quantity)> {
    [("cpu", DEFAULT_CPU), ("ram", DEFAULT_RAM)]
        .into_iter()
        .filter(|(kind, _)| resources.iter().all(|(requested, _)| requested != *kind))
}

/// What a container takes from a machine: its limits. Those are its requests, and the defaults of
/// CPU and memory that it does not request or requests in another unit than bytes.
#[must_use]
pub fn limits(resources: &Resources) -> Resources {
    let mut all = resources.clone();
    if all.get("cpu").is_zero() {
        all.set("cpu", DEFAULT_CPU);
    }
    if all.get("ram") < MIN_RAM {
        all.set("ram", DEFAULT_RAM);
    }
    all
}

/// Whether an amount of memory is a count of another unit than bytes: `ram: 1` of a cluster with
/// `ram: 16`. Kargo has no units.
fn is_unitless(ram: Quantity) -> bool {
    !ram.is_zero() && ram < Quantity::whole(1 << 10)
}

/// Checks the resources of a container. Errors name the field `field`.
pub fn check_container(field: &str, resources: &Resources) -> Result<(), Invalid> {
    let requested = |name: &str| resources.iter().find(|(kind, _)| *kind == name);
    if let Some((_, amount)) = requested("ram").filter(|(_, amount)| *amount < MIN_RAM) {
        let rule = format!(
            "must be at least {} for a container, not {}; omit it for the default of {}",
            MIN_RAM.to_short_string(),
            amount.to_short_string(),
            DEFAULT_RAM.to_short_string()
        );
        return Err(Invalid::new(format!("{field}.ram"), rule));
    }
    if requested("cpu").is_some_and(|(_, amount)| amount.is_zero()) {
        let rule = format!(
            "must be more than 0 for a container; omit it for the default of {}m",
            DEFAULT_CPU.milli()
        );
        return Err(Invalid::new(format!("{field}.cpu"), rule));
    }
    Ok(())
}

/// Checks an image reference: `registry/name:tag` or `name@sha256:…`.
fn image(text: &str) -> Result<(), Invalid> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/:@+".contains(c);
    if text.is_empty() || text.len() > 512 || !text.chars().all(allowed) {
        return Err(Invalid::new(
            "image",
            "must be name:tag or registry/name:tag, with at most 512 characters",
        ));
    }
    Ok(())
}

/// Checks a number of replicas.
pub fn check_replicas(n: u32) -> Result<(), Invalid> {
    if (1..=MAX_REPLICAS).contains(&n) {
        return Ok(());
    }
    Err(Invalid::new("replicas", format!("must be from 1 to {MAX_REPLICAS}, not {n}")))
}

fn env(env: &BTreeMap<String, String>) -> Result<(), Invalid> {
    if env.len() > 256 {
        return Err(Invalid::new("env", "must have at most 256 variables"));
    }
    for (key, value) in env {
        let path = format!("env.{}", key.escape_default());
        let allowed = |c: char| c != '=' && !c.is_control();
        if key.is_empty() || key.len() > 255 || !key.chars().all(allowed) {
            let rule = "name must have 1 to 255 bytes, without '=' and control characters";
            return Err(Invalid::new(path, rule));
        }
        if value.len() > 32 * 1024 || value.contains('\0') {
            return Err(Invalid::new(path, "value must have at most 32 KiB and no NUL"));
        }
    }
    Ok(())
}

fn command(arguments: &[String]) -> Result<(), Invalid> {
    let bad = |argument: &String| argument.len() > 32 * 1024 || argument.contains('\0');
    if arguments.len() > 256 || arguments.iter().any(bad) {
        return Err(Invalid::new(
            "command",
            "must have at most 256 arguments of at most 32 KiB, without NUL",
        ));
    }
    Ok(())
}

fn ports(ports: &[u16]) -> Result<(), Invalid> {
    if ports.len() > 64 || ports.contains(&0) {
        return Err(Invalid::new("ports", "must have at most 64 ports from 1 to 65535"));
    }
    Ok(())
}

fn run_for(seconds: Option<u32>) -> Result<(), Invalid> {
    if seconds == Some(0) {
        return Err(Invalid::new("run_for", "must be at least 1 second; omit it for no limit"));
    }
    Ok(())
}

/// A deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Deployment {
    /// The id.
    pub id: DeploymentId,
    /// The owning organization.
    pub organization_id: OrganizationId,
    /// The instance that it runs; such a deployment is managed by Paddock, not by users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<InstanceId>,
    /// The instance type for which it reserves capacity in advance; such a deployment has no owner
    /// and is preempted by every other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved: Option<String>,
    /// The cluster it is pinned to; none means any that the owner may use.
    pub pinned_to: Option<ClusterId>,
    /// The cluster it is placed on; that of the first replica if there are several.
    pub placed_on: Option<ClusterId>,
    /// The name.
    pub name: String,
    /// The spec.
    #[serde(flatten)]
    pub spec: Spec,
    /// Higher priorities go first and may preempt lower ones.
    pub priority: i64,
    /// User-defined labels.
    pub labels: BTreeMap<String, String>,
    /// The status.
    pub status: Status,
    /// The reason of the status.
    #[serde(flatten, serialize_with = "StatusReason::serialize_status")]
    pub reason: Reason,
    /// The node.
    pub node: Option<String>,
    /// Addresses at which it is reachable.
    pub endpoints: Vec<String>,
    /// Incremented with every change of the spec.
    pub generation: i64,
    /// The creator.
    pub created_by: String,
    /// Time of creation, which also determines its rank in the queue.
    pub created_at: Time,
    /// Time of the last change.
    pub updated_at: Time,
    /// Time of the start.
    pub started_at: Option<Time>,
}

impl Deployment {
    /// Do its replicas take from the capacity of their machine, because they run containers? An
    /// instance does from its placement on, before it has its workload.
    pub fn takes_machine(&self) -> bool {
        self.spec.has_workload() || self.instance_id.is_some()
    }

    /// The cluster it is placed on or pinned to.
    pub fn cluster_id(&self) -> Option<ClusterId> {
        self.placed_on.or(self.pinned_to)
    }
}

/// A validated request to create a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDeployment {
    /// The name; derived from the image if empty.
    pub name: String,
    /// The cluster it is pinned to.
    pub pinned_to: Option<ClusterId>,
    /// The spec.
    pub spec: Spec,
    /// The priority.
    pub priority: i64,
    /// User-defined labels.
    pub labels: BTreeMap<String, String>,
}

impl NewDeployment {
    /// Checks a request of an API without units, which counts memory as its clusters do.
    pub fn check_unitless(mut self, resource_field: &str) -> Result<Self, Invalid> {
        let ram = self.spec.resources.get("ram");
        if !is_unitless(ram) {
            return self.check(resource_field);
        }
        self.spec.resources.set("ram", MIN_RAM);
        let mut checked = self.check(resource_field)?;
        checked.spec.resources.set("ram", ram);
        Ok(checked)
    }

    /// Checks the request. `resource_field` is the request's field name for the resources.
    pub fn check(mut self, resource_field: &str) -> Result<Self, Invalid> {
        let mut check = Check::default();
        if self.name.trim().is_empty() {
            self.name = default_name(self.spec.image.as_deref());
        }
        let name = check.field(name::line("name", &self.name, 100));
        check.field(self.spec.check(resource_field));
        check.field(check_priority(self.priority));
        check.field(name::labels("labels", &self.labels));
        check.done()?;
        Ok(Self { name: name.unwrap_or_default(), ..self })
    }
}

/// Checks a priority.
pub fn check_priority(n: i64) -> Result<(), Invalid> {
    if (-MAX_PRIORITY..=MAX_PRIORITY).contains(&n) {
        return Ok(());
    }
    Err(Invalid::new("priority", format!("must be from -{MAX_PRIORITY} to {MAX_PRIORITY}")))
}

/// Checks a priority against the ceiling of its organization.
pub fn check_ceiling(priority: i64, ceiling: i64) -> Result<(), Invalid> {
    if priority <= ceiling {
        return Ok(());
    }
    Err(Invalid::new(
        "priority",
        format!(
            "must be from -{MAX_PRIORITY} to {ceiling} in this organization, not {priority}; the \
             platform administrator can raise the limit"
        ),
    ))
}

/// The last path segment of the image without tag and digest: `web` for `registry/shop/web:3`.
fn default_name(image: Option<&str>) -> String {
    let Some(image) = image else { return "reservation".to_owned() };
    let last = image.split('@').next().unwrap_or(image).rsplit('/').next().unwrap_or(image);
    let name = last.split(':').next().unwrap_or(last);
    if name.is_empty() { "deployment".to_owned() } else { name.chars().take(100).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifecycle_transitions_are_allowed() {
        use Status::*;
        for path in [
            &[Queued, Scheduled, Starting, Running, Completed, Deleting][..],
            &[Running, Preempted, Scheduled, Starting, Failed, Deleting],
            &[Queued, Deleting],
            &[Running, Scheduled, Starting, Scheduled, Running],
        ] {
            assert!(path.windows(2).all(|step| step[0].may_become(step[1])), "{path:?}");
        }
        for &next in Status::ALL {
            assert!(!Deleting.may_become(next), "{next} after deleting");
        }
    }

    #[test]
    fn container_below_the_minimum_is_invalid_but_a_reservation_is_not() {
        let check = |image: Option<&str>, kind: &str, amount: &str| {
            let mut resources = Resources::default();
            resources.set(kind, amount.parse().unwrap());
            let image = image.map(str::to_owned);
            Spec { image, resources, replicas: 1, ..Spec::default() }.check("resources")
        };
        for (kind, amount, detail) in [
            ("ram", "0", Some("at least 4Mi for a container, not 0;")),
            ("ram", "3Mi", Some("at least 4Mi for a container, not 3Mi;")),
            ("ram", "4Mi", None),
            ("cpu", "0", Some("more than 0 for a container; omit it for the default of 100m")),
            ("cpu", "1m", None),
            ("gpu", "0", None),
        ] {
            let refused =
                check(Some("web:1"), kind, amount).err().map(|invalid| invalid.to_string());
            match detail {
                None => assert_eq!(refused, None, "{kind} {amount}"),
                Some(detail) => {
                    let refused = refused.expect(amount);
                    assert!(refused.contains(detail), "{refused}");
                    assert!(refused.contains(&format!("resources.{kind}")), "{refused}");
                }
            }
            assert!(check(None, kind, amount).is_ok(), "{kind} {amount}");
        }
    }

    #[test]
    fn default_name_is_derived_from_the_image() {
        for (image, name) in [
            (Some("registry.local:5000/shop/web:3"), "web"),
            (Some("nginx"), "nginx"),
            (Some("a/b@sha256:00"), "b"),
            (None, "reservation"),
        ] {
            assert_eq!(default_name(image), name);
        }
    }

    #[test]
    fn redacted_spec_hides_values_of_the_environment() {
        let env = [("PASSWORD".to_owned(), "hunter2".to_owned())].into();
        let shown = serde_json::to_string(&Spec { env, ..Spec::default() }.redacted()).unwrap();
        assert!(shown.contains("PASSWORD") && !shown.contains("hunter2"));
    }
}
