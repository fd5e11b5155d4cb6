//! What the engine is asked to create.

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, PortBinding};
use model::agent::ReplicaId;
use model::deployment::{Restart, Spec};
use sha2::{Digest, Sha256};

use super::{Engine, Options};
use crate::runtime::limits;

/// Whose containers they are.
pub(super) const INSTANCE: &str = "paddock.instance";
/// Which replica it is.
pub(super) const REPLICA: &str = "paddock.replica";
/// What happens when it ends.
pub(super) const RESTART: &str = "paddock.restart";
/// Its ports, in the order in which they were asked for.
pub(super) const PORTS: &str = "paddock.ports";
/// Tells what it was made of, so that what shall be something else is noticed.
pub(super) const MADE_OF: &str = "paddock.made-of";

/// How long a CPU quota's period is.
const CPU_PERIOD_US: i64 = 100_000;
/// The least quota that the kernel takes.
const LEAST_QUOTA_US: i64 = 1000;

/// The memory limit in bytes.
pub(super) fn ram_bytes(spec: &Spec) -> Option<i64> {
    limits::ram(&spec.resources).map(|ram| ram.milli() / 1000)
}

/// A container of a replica.
pub(super) fn body(
    options: &Options,
    engine: Engine,
    id: ReplicaId,
    spec: &Spec,
    image: &str,
) -> ContainerCreateBody {
    let exposed: Vec<String> = spec.ports.iter().map(|port| format!("{port}/tcp")).collect();
    ContainerCreateBody {
        image: Some(image.to_owned()),
        hostname: Some(format!("{}-{}", id.deployment, id.number)),
        // All of the image's own command is replaced, also what is fixed in it.
        entrypoint: Some(spec.command.clone()).filter(|words| !words.is_empty()),
        env: Some(spec.env.iter().map(|(key, value)| format!("{key}={value}")).collect()),
        exposed_ports: Some(exposed.clone()),
        labels: Some(labels(options, id, spec)),
        stop_timeout: i64::try_from(options.stop_grace.as_secs()).ok(),
        host_config: Some(HostConfig {
            port_bindings: Some(exposed.into_iter().map(|port| (port, Some(free()))).collect()),
            ..host(options, engine, spec)
        }),
        ..ContainerCreateBody::default()
    }
}

fn host(options: &Options, engine: Engine, spec: &Spec) -> HostConfig {
    let ram = ram_bytes(spec);
    // A quota, not a number of CPUs: engines refuse more CPUs than there are.
    let quota =
        limits::cpu(&spec.resources).map(|cpu| cpu.milli().saturating_mul(CPU_PERIOD_US) / 1000);
    HostConfig {
        memory: ram,
        // No swap beyond it: a limit that only makes slow is none.
        memory_swap: ram,
        cpu_period: quota.map(|_| CPU_PERIOD_US),
        cpu_quota: quota.map(|quota| quota.max(LEAST_QUOTA_US)),
        cgroup_parent: options.cgroup_parent.clone(),
        pids_limit: Some(options.max_pids),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        log_config: Some(log(options, engine)),
        ..HostConfig::default()
    }
}

/// A port of the loopback that the engine finds free.
fn free() -> Vec<PortBinding> {
    vec![PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: Some(String::new()) }]
}

/// Logs that can be read again, whatever the engine's own way is.
fn log(options: &Options, engine: Engine) -> HostConfigLogConfig {
    let mut config = HashMap::from([("max-size".to_owned(), options.max_log_bytes.to_string())]);
    if engine == Engine::Docker {
        config.insert("max-file".to_owned(), options.log_files.max(1).to_string());
    }
    HostConfigLogConfig { typ: Some("json-file".to_owned()), config: Some(config) }
}

fn labels(options: &Options, id: ReplicaId, spec: &Spec) -> HashMap<String, String> {
    let ports: Vec<String> = spec.ports.iter().map(u16::to_string).collect();
    [
        (INSTANCE, options.instance.clone()),
        (REPLICA, id.to_string()),
        (RESTART, spec.restart.to_string()),
        (PORTS, ports.join(",")),
        (MADE_OF, made_of(spec)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// A hash of all that a container is made of. What only concerns its placement is no part of it.
pub(super) fn made_of(spec: &Spec) -> String {
    let Spec { image, env, command, ports, restart, .. } = spec;
    let limits = (limits::cpu(&spec.resources), ram_bytes(spec));
    let parts = (image, env, command, ports, restart, limits);
    let text = serde_json::to_vec(&parts).expect("maps of text can be written");
    data_encoding::HEXLOWER.encode(&Sha256::digest(text))
}

/// Shall it be started again after it ended so?
pub(super) fn again(restart: Restart, code: i64) -> bool {
    match restart {
        Restart::Never => false,
        Restart::OnFailure => code != 0,
        Restart::Always => true,
    }
}

#[cfg(test)]
mod tests {
    use model::{DeploymentId, Resources, Xid};

    use super::*;

    #[test]
    fn what_is_asked_for_is_in_the_body() {
        let mut resources = Resources::default();
        resources.set("cpu", "500m".parse().unwrap());
        resources.set("ram", "64Mi".parse().unwrap());
        let spec = Spec { resources, ports: vec![80, 81], ..Spec::default() };
        let id = ReplicaId { deployment: DeploymentId(Xid::new(1, [0; 5], 1)), number: 3 };
        let body = body(&Options::new("x"), Engine::Docker, id, &spec, "web");
        assert_eq!((&body.entrypoint, &body.cmd), (&None, &None), "the image's own command");
        let host = body.host_config.unwrap();
        assert_eq!((host.memory, host.memory_swap), (Some(64 << 20), Some(64 << 20)));
        assert_eq!((host.cpu_quota, host.cpu_period), (Some(50_000), Some(100_000)));
        assert_eq!(host.port_bindings.unwrap()["81/tcp"], Some(free()));
        let labels = body.labels.unwrap();
        assert_eq!((labels[PORTS].as_str(), labels[RESTART].as_str()), ("80,81", "on_failure"));
    }

    #[test]
    fn only_what_a_container_is_made_of_makes_another_one_of_it() {
        let one = Spec { image: Some("a".into()), ..Spec::default() };
        let more = Spec { replicas: 7, anti_affinity: true, ..one.clone() };
        let other = Spec { env: [("A".into(), "b".into())].into(), ..one.clone() };
        assert_eq!(made_of(&one), made_of(&more));
        assert_ne!(made_of(&one), made_of(&other));
    }
}
