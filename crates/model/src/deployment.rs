//! Deployments: container images that run on a cluster with a priority.

mod reason;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::invalid::Check;
use crate::reason::Coded;
use crate::text_enum::text_enum;
use crate::{ClusterId, DeploymentId, InstanceId, Invalid, OrganizationId, Resources, Time, name};

pub use reason::{Pull, Reason};

/// The most replicas of one deployment.
pub const MAX_REPLICAS: u32 = 1000;
/// Priorities go from minus this to plus this.
pub const MAX_PRIORITY: i64 = 1_000_000;
/// The priority of what only holds room: below everything that can be asked for.
pub const RESERVED_PRIORITY: i64 = -MAX_PRIORITY - 1;

/// Where a deployment is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waits for capacity.
    Queued,
    /// Has a cluster and its capacity; the agent has not begun.
    Scheduled,
    /// The agent starts it.
    Starting,
    /// It runs.
    Running,
    /// Had to yield to a higher priority; back in the queue as soon as it has stopped.
    Preempted,
    /// It can't run; the reason says why.
    Failed,
    /// It ran to its end.
    Completed,
    /// It shall go.
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
    /// May a deployment go from here to `next`?
    pub fn may_become(self, next: Status) -> bool {
        use Status::{
            Completed, Deleting, Failed, Preempted, Queued, Running, Scheduled, Starting,
        };
        match self {
            Queued => matches!(next, Scheduled | Failed | Deleting),
            // Back in the queue when its cluster is lost.
            Scheduled => matches!(
                next,
                Queued | Starting | Running | Completed | Failed | Preempted | Deleting
            ),
            // Scheduled again when it gets another program where it is.
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

    /// Does it want to run, be it that it waits, starts or runs?
    pub fn is_wanted(self) -> bool {
        matches!(self, Status::Scheduled | Status::Starting | Status::Running)
    }

    /// Is it in the queue, or about to be?
    pub fn is_waiting(self) -> bool {
        matches!(self, Status::Queued | Status::Preempted)
    }
}

/// What happens when a program ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// That was it: it is completed, or it failed.
    Never,
    /// It is started again if it failed, after a while that grows.
    #[default]
    OnFailure,
    /// It is started again, after a while that grows.
    Always,
}

text_enum!(Restart { Never => "never", OnFailure => "on_failure", Always => "always" });

/// What a deployment runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The image; without one the deployment only holds its capacity.
    pub image: Option<String>,
    /// What each replica needs.
    pub resources: Resources,
    /// How many run.
    pub replicas: u32,
    /// Environment variables. May hold secrets: never in events or logs.
    pub env: BTreeMap<String, String>,
    /// What to run instead of the image's own command.
    pub command: Vec<String>,
    /// The ports that it listens on.
    pub ports: Vec<u16>,
    /// What happens when its program ends by itself.
    #[serde(default)]
    pub restart: Restart,
    /// How many seconds each replica runs; then it is completed. Without limit when there is none.
    #[serde(default)]
    pub run_for: Option<u32>,
    /// Labels that the node of each replica (or the node's cluster) must have.
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,
    /// Must each replica be on another node?
    #[serde(default)]
    pub anti_affinity: bool,
    /// When its agent may say that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Probe>,
    /// Environment variables that are secrets, encrypted; opened where they are handed to the agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sealed_env: BTreeMap<String, String>,
    /// Kubernetes objects that are applied instead of running the image, by agents that can. May hold
    /// secrets: never in events or logs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<serde_json::Value>,
    /// The same as a JSON text, encrypted; opened where it is handed to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_manifests: Option<String>,
}

/// What must answer before a program counts as running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The port, one of the program's.
    pub port: u16,
    /// The path that must be answered with this status; without one, connecting is enough.
    pub http: Option<(String, u16)>,
    /// How many seconds it may take.
    pub within: u32,
}

impl Spec {
    /// What all replicas need together.
    pub fn request(&self) -> Resources {
        self.resources.times(self.replicas).expect("checked when it was asked for")
    }

    /// Does it run something, and not only hold capacity?
    pub fn runs(&self) -> bool {
        self.image.is_some() || !self.manifests.is_empty()
    }

    /// The same without the values of the environment, and without manifests.
    pub fn redacted(&self) -> Spec {
        let names = self.env.keys().chain(self.sealed_env.keys());
        let env = names.map(|key| (key.clone(), "•••".to_owned())).collect();
        let (sealed_env, manifests) = (BTreeMap::new(), Vec::new());
        Spec { env, sealed_env, manifests, sealed_manifests: None, ..self.clone() }
    }

    fn check(&self, resource_field: &str) -> Result<(), Invalid> {
        let mut check = Check::default();
        check.field(self.image.as_deref().map_or(Ok(()), image));
        check.field(self.resources.check(resource_field));
        check.field(replicas(self.replicas));
        check.field(env(&self.env));
        check.field(command(&self.command));
        check.field(ports(&self.ports));
        check.field(run_for(self.run_for));
        check.field(name::labels("node_selector", &self.node_selector));
        check.done()?;
        self.resources.times(self.replicas).map(drop)
    }
}

/// Checks an image's path: `registry/name:tag` or `name@sha256:…`.
fn image(text: &str) -> Result<(), Invalid> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/:@+".contains(c);
    if text.is_empty() || text.len() > 512 || !text.chars().all(allowed) {
        return Err(Invalid::new(
            "image",
            "an image is written as name:tag or registry/name:tag, with at most 512 characters",
        ));
    }
    Ok(())
}

/// Checks a number of replicas.
pub fn replicas(n: u32) -> Result<(), Invalid> {
    if (1..=MAX_REPLICAS).contains(&n) {
        return Ok(());
    }
    Err(Invalid::new("replicas", format!("{n} is not allowed; from 1 to {MAX_REPLICAS}")))
}

fn env(env: &BTreeMap<String, String>) -> Result<(), Invalid> {
    if env.len() > 256 {
        return Err(Invalid::new("env", "at most 256 variables"));
    }
    for (key, value) in env {
        let path = format!("env.{}", key.escape_default());
        let allowed = |c: char| c != '=' && !c.is_control();
        if key.is_empty() || key.len() > 255 || !key.chars().all(allowed) {
            let rule = "a variable's name has 1 to 255 bytes, no '=' and no control characters";
            return Err(Invalid::new(path, rule));
        }
        if value.len() > 32 * 1024 || value.contains('\0') {
            return Err(Invalid::new(path, "a value has at most 32 KiB and no NUL"));
        }
    }
    Ok(())
}

fn command(words: &[String]) -> Result<(), Invalid> {
    let bad = |word: &String| word.len() > 32 * 1024 || word.contains('\0');
    if words.len() > 256 || words.iter().any(bad) {
        return Err(Invalid::new("command", "at most 256 words of at most 32 KiB, without NUL"));
    }
    Ok(())
}

fn ports(ports: &[u16]) -> Result<(), Invalid> {
    if ports.len() > 64 || ports.contains(&0) {
        return Err(Invalid::new("ports", "at most 64 ports from 1 to 65535"));
    }
    Ok(())
}

fn run_for(seconds: Option<u32>) -> Result<(), Invalid> {
    if seconds == Some(0) {
        return Err(Invalid::new("run_for", "at least 1 second; leave it out for no limit"));
    }
    Ok(())
}

/// A deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Deployment {
    /// Its id.
    pub id: DeploymentId,
    /// Who owns it.
    pub organization_id: OrganizationId,
    /// The instance that it holds the capacity of, and runs: then it is none of users' own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<InstanceId>,
    /// The type of instance for which it holds room before anybody asks: then it is nobody's, and
    /// yields to everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved: Option<String>,
    /// The cluster that it must run on; any that its owner may use when there is none.
    pub pinned_to: Option<ClusterId>,
    /// The cluster whose capacity it holds; that of its first replica, should they be on several.
    pub placed_on: Option<ClusterId>,
    /// Its name.
    pub name: String,
    /// What it runs.
    #[serde(flatten)]
    pub spec: Spec,
    /// Higher goes first, and may make lower ones yield.
    pub priority: i64,
    /// What users wrote on it.
    pub labels: BTreeMap<String, String>,
    /// Where it is on its way.
    pub status: Status,
    /// Why it has that status.
    #[serde(flatten, serialize_with = "Coded::tell")]
    pub reason: Reason,
    /// Where on the cluster it runs.
    pub node: Option<String>,
    /// Where it can be reached.
    pub endpoints: Vec<String>,
    /// Counts the changes of what users set.
    pub generation: i64,
    /// Who made it.
    pub created_by: String,
    /// When it was made; also its age in the queue.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// Since when it runs.
    pub started_at: Option<Time>,
}

impl Deployment {
    /// Where it is, or must go.
    pub fn cluster_id(&self) -> Option<ClusterId> {
        self.placed_on.or(self.pinned_to)
    }
}

/// A deployment as someone asks for it, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDeployment {
    /// Its name; one is made from the image when it is empty.
    pub name: String,
    /// The cluster that it must run on.
    pub pinned_to: Option<ClusterId>,
    /// What it runs.
    pub spec: Spec,
    /// Its priority.
    pub priority: i64,
    /// What users wrote on it.
    pub labels: BTreeMap<String, String>,
}

impl NewDeployment {
    /// Checks what was asked for. `resource_field` is the request's own word for the resources.
    pub fn check(mut self, resource_field: &str) -> Result<Self, Invalid> {
        let mut check = Check::default();
        if self.name.trim().is_empty() {
            self.name = default_name(self.spec.image.as_deref());
        }
        let name = check.field(name::line("name", &self.name, 100));
        check.field(self.spec.check(resource_field));
        check.field(priority(self.priority));
        check.field(name::labels("labels", &self.labels));
        check.done()?;
        Ok(Self { name: name.unwrap_or_default(), ..self })
    }
}

/// Checks a priority.
pub fn priority(n: i64) -> Result<(), Invalid> {
    if (-MAX_PRIORITY..=MAX_PRIORITY).contains(&n) {
        return Ok(());
    }
    Err(Invalid::new("priority", format!("from -{MAX_PRIORITY} to {MAX_PRIORITY}")))
}

/// The last part of the image's path without tag and digest: `registry/shop/web:3` is `web`.
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
    fn the_way_of_a_deployment() {
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
    fn names_come_from_images() {
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
    fn events_do_not_carry_the_environment() {
        let env = [("PASSWORD".to_owned(), "hunter2".to_owned())].into();
        let shown = serde_json::to_string(&Spec { env, ..Spec::default() }.redacted()).unwrap();
        assert!(shown.contains("PASSWORD") && !shown.contains("hunter2"));
    }
}
