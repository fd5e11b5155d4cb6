//! Requests to create containers.

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, PortBinding};
use model::agent::ReplicaId;
use model::deployment::{Restart, Spec};
use sha2::{Digest, Sha256};

use super::{Engine, Options};
use crate::runtime::limits;

/// Label: the installation.
pub(super) const INSTANCE: &str = "paddock.instance";
/// Label: the replica.
pub(super) const REPLICA: &str = "paddock.replica";
/// Label: the restart policy.
pub(super) const RESTART: &str = "paddock.restart";
/// Label: the ports, in the order of the spec.
pub(super) const PORTS: &str = "paddock.ports";
/// Label: the network.
pub(super) const NETWORK: &str = "paddock.network";
/// Label: hash of the spec, to detect changes.
pub(super) const SPEC_HASH: &str = "paddock.made-of";

/// Capabilities of root in a container, the same as with the embedded runtime: no devices, no
/// `NET_RAW` (spoofing through raw sockets), no auditing.
const CAPABILITIES: [&str; 11] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Period of the CPU quota.
const CPU_PERIOD_US: i64 = 100_000;
/// Minimum quota that the kernel accepts.
const MIN_QUOTA_US: i64 = 1000;

/// The memory limit in bytes.
pub(super) fn ram_bytes(spec: &Spec) -> i64 {
    limits::ram(&spec.resources).milli() / 1000
}

/// The request to create a replica's container.
pub(super) fn body(
    options: &Options,
    engine: Engine,
    id: ReplicaId,
    spec: &Spec,
    image: &str,
    network: &str,
    has_disk_limit: bool,
) -> ContainerCreateBody {
    let exposed: Vec<String> = spec.ports.iter().map(|port| format!("{port}/tcp")).collect();
    ContainerCreateBody {
        image: Some(image.to_owned()),
        hostname: Some(format!("{}-{}", id.deployment, id.number)),
        // Replaces the image's entrypoint and command.
        entrypoint: Some(spec.command.clone()).filter(|command| !command.is_empty()),
        env: Some(spec.env.iter().map(|(key, value)| format!("{key}={value}")).collect()),
        exposed_ports: Some(exposed.clone()),
        labels: Some(labels(options, id, spec, network)),
        stop_timeout: i64::try_from(options.stop_grace.as_secs()).ok(),
        host_config: Some(HostConfig {
            port_bindings: Some(
                exposed.into_iter().map(|port| (port, Some(free_port()))).collect(),
            ),
            network_mode: Some(network.to_owned()),
            ..host(options, engine, spec, has_disk_limit)
        }),
        ..ContainerCreateBody::default()
    }
}

fn host(options: &Options, engine: Engine, spec: &Spec, has_disk_limit: bool) -> HostConfig {
    let ram = Some(ram_bytes(spec));
    // A quota instead of a number of CPUs: engines reject more CPUs than the host has.
    let quota = limits::cpu(&spec.resources).milli().saturating_mul(CPU_PERIOD_US) / 1000;
    HostConfig {
        memory: ram,
        // No swap beyond the limit.
        memory_swap: ram,
        cpu_period: Some(CPU_PERIOD_US),
        cpu_quota: Some(quota.max(MIN_QUOTA_US)),
        storage_opt: limits::disk(&spec.resources)
            .filter(|_| has_disk_limit)
            .map(|disk| HashMap::from([("size".to_owned(), (disk.milli() / 1000).to_string())])),
        cgroup_parent: options.cgroup_parent.clone(),
        pids_limit: Some(options.max_pids),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: Some(CAPABILITIES.map(str::to_owned).to_vec()),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        log_config: Some(log_config(options, engine)),
        ..HostConfig::default()
    }
}

/// A free port on the loopback, chosen by the engine.
fn free_port() -> Vec<PortBinding> {
    vec![PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: Some(String::new()) }]
}

/// A log driver whose logs can be read, regardless of the engine's default.
fn log_config(options: &Options, engine: Engine) -> HostConfigLogConfig {
    let mut config = HashMap::from([("max-size".to_owned(), options.max_log_bytes.to_string())]);
    if engine == Engine::Docker {
        config.insert("max-file".to_owned(), options.log_files.max(1).to_string());
    }
    HostConfigLogConfig { typ: Some("json-file".to_owned()), config: Some(config) }
}

fn labels(options: &Options, id: ReplicaId, spec: &Spec, network: &str) -> HashMap<String, String> {
    let ports: Vec<String> = spec.ports.iter().map(u16::to_string).collect();
    [
        (INSTANCE, options.instance.clone()),
        (REPLICA, id.to_string()),
        (RESTART, spec.restart.to_string()),
        (PORTS, ports.join(",")),
        (NETWORK, network.to_owned()),
        (SPEC_HASH, spec_hash(spec, network)),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// Hash of what defines the container: its network and parts of its spec, without those that only
/// affect placement.
pub(super) fn spec_hash(spec: &Spec, network: &str) -> String {
    let Spec { image, env, command, ports, restart, .. } = spec;
    // Without defaults, and the disk only if it is requested: containers of older versions are adopted.
    let ram_bytes = limits::requested_ram(&spec.resources).map(|ram| ram.milli() / 1000);
    let limits = (limits::requested_cpu(&spec.resources), ram_bytes);
    let parts = (image, env, command, ports, restart, limits, network, CAPABILITIES);
    let mut text = serde_json::to_vec(&parts).expect("strings serialise");
    if let Some(disk) = limits::disk(&spec.resources) {
        text.extend(disk.to_string().bytes());
    }
    data_encoding::HEXLOWER.encode(&Sha256::digest(text))
}

/// Whether the restart policy demands a restart after this exit code.
pub(super) fn is_restarted(restart: Restart, code: i64) -> bool {
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
    fn body_has_limits_ports_and_labels() {
        let mut resources = Resources::default();
        resources.set("cpu", "500m".parse().unwrap());
        resources.set("ram", "64Mi".parse().unwrap());
        resources.set("disk", "2Gi".parse().unwrap());
        let spec = Spec { resources, ports: vec![80, 81], ..Spec::default() };
        let id = ReplicaId { deployment: DeploymentId(Xid::new(1, [0; 5], 1)), number: 3 };
        let body = body(&Options::new("x"), Engine::Docker, id, &spec, "web", "net", true);
        assert_eq!((&body.entrypoint, &body.cmd), (&None, &None), "the image's own command");
        let host = body.host_config.unwrap();
        assert_eq!(host.network_mode.as_deref(), Some("net"));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
        assert_eq!((host.memory, host.memory_swap), (Some(64 << 20), Some(64 << 20)));
        assert_eq!((host.cpu_quota, host.cpu_period), (Some(50_000), Some(100_000)));
        assert_eq!(host.storage_opt.unwrap()["size"], (2i64 << 30).to_string());
        assert_eq!(host.port_bindings.unwrap()["81/tcp"], Some(free_port()));
        let labels = body.labels.unwrap();
        assert_eq!((labels[PORTS].as_str(), labels[RESTART].as_str()), ("80,81", "on_failure"));
    }

    #[test]
    fn placement_does_not_change_the_spec_hash() {
        let spec = Spec { image: Some("a".into()), ..Spec::default() };
        let placement = Spec { replicas: 7, anti_affinity: true, ..spec.clone() };
        let other = Spec { env: [("A".into(), "b".into())].into(), ..spec.clone() };
        assert_eq!(spec_hash(&spec, "a"), spec_hash(&placement, "a"));
        assert_ne!(spec_hash(&spec, "a"), spec_hash(&other, "a"));
        assert_ne!(spec_hash(&spec, "a"), spec_hash(&spec, "b"));
    }
}
