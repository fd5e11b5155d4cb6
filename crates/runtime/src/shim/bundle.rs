//! Writes what the container library is told: an OCI bundle.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::pid1::Program;
use super::program;
use crate::Error;
use crate::cgroup;
use crate::container::Container;
use crate::dirs::write_json;
use crate::network::names;
use crate::plan::{Place, Plan};
use crate::unpack::root::{Root, clean};

/// How long a CPU quota's period is.
const CPU_PERIOD_US: i64 = 100_000;

/// What a container's root may do. Less than others give: no devices, no raw sockets' spoofing
/// through `NET_RAW`, no auditing.
const CAPABILITIES: &[&str] = &[
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETFCAP",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
    "CAP_SYS_CHROOT",
];

/// Kernel files that tell or do too much.
const MASKED: &[&str] = &[
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
];
const READ_ONLY: &[&str] =
    &["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Writes the bundle into the container's directory; the program that it will run.
pub(super) fn write(place: &Place, plan: &Plan) -> Result<Program, Error> {
    let root = Root::open(&place.at("root")).map_err(disk)?;
    let config = &plan.image.config;
    let cwd = clean(Path::new(config.working_dir.as_deref().unwrap_or("/")))
        .map_err(|error| Error::BadImageConfig(error.to_string()))?;
    let cwd = Path::new("/").join(cwd);
    root.directory(cwd.strip_prefix("/").unwrap_or(&cwd)).map_err(disk)?;
    let env = environment(plan);
    let words = words(plan)?;
    let path = env.get("PATH").map_or(program::PATH, String::as_str);
    let file = program::find(&root, &words[0], path, &cwd)?;
    let user = program::user(&root, config.user.as_deref().unwrap_or(""))?;
    // The network is the shim's own already, and stays when the container is started again.
    let namespaces = ["pid", "ipc", "uts", "mount", "cgroup"].map(|kind| json!({"type": kind}));
    let document = json!({
        "ociVersion": "1.0.2",
        "hostname": plan.container.name,
        "root": {"path": place.at("root"), "readonly": false},
        "process": {
            "terminal": false,
            "user": {"uid": user.uid, "gid": user.gid, "additionalGids": user.groups},
            "args": words,
            "env": env.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>(),
            "cwd": cwd,
            "noNewPrivileges": true,
            "capabilities": capabilities(user.uid),
        },
        "mounts": mounts(place, plan)?,
        "linux": {
            "cgroupsPath": plan.cgroup,
            "namespaces": namespaces,
            "resources": resources(&plan.container, plan.max_pids),
            "maskedPaths": MASKED,
            "readonlyPaths": READ_ONLY,
            "rootfsPropagation": "private",
        },
    });
    write_json(&place.at("config.json"), &document).map_err(disk)?;
    Ok(Program { file, words })
}

fn disk(error: std::io::Error) -> Error {
    Error::io("The container's files could not be written", error)
}

/// What to run: the given command, or the image's own.
fn words(plan: &Plan) -> Result<Vec<String>, Error> {
    let config = &plan.image.config;
    let mut words = plan.container.command.clone();
    if words.is_empty() {
        words.extend(config.entrypoint.iter().flatten().cloned());
        words.extend(config.cmd.iter().flatten().cloned());
    }
    match words.first() {
        Some(first) if !first.is_empty() => Ok(words),
        _ => Err(Error::BadCommand(format!(
            "The image {} does not say what to run: give a command.",
            plan.image.name
        ))),
    }
}

fn environment(plan: &Plan) -> BTreeMap<String, String> {
    let mut env = BTreeMap::from([
        ("PATH".to_owned(), program::PATH.to_owned()),
        ("HOSTNAME".to_owned(), plan.container.name.clone()),
    ]);
    for line in plan.image.config.env.iter().flatten() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        env.insert(key.to_owned(), value.to_owned());
    }
    env.extend(plan.container.env.clone());
    env
}

/// Root has them all; others may get them back only through files, and not even so.
fn capabilities(uid: u32) -> Value {
    let effective = if uid == 0 { CAPABILITIES } else { &[] };
    json!({
        "bounding": CAPABILITIES,
        "effective": effective,
        "permitted": effective,
        "inheritable": [],
        "ambient": [],
    })
}

fn resources(container: &Container, max_pids: i64) -> Value {
    let mut resources = json!({
        "pids": {"limit": max_pids},
        "devices": [{"allow": false, "access": "rwm"}],
    });
    if let Some(bytes) = container.ram_bytes() {
        resources["memory"] = json!({"limit": bytes});
        if cgroup::limits_swap() {
            // Memory and swap together: none of it is swap.
            resources["memory"]["swap"] = json!(bytes);
        }
    }
    if let Some(milli) = container.cpu_milli() {
        let quota = (milli.saturating_mul(CPU_PERIOD_US) / 1000).max(1000);
        let shares = (milli.saturating_mul(1024) / 1000).clamp(2, 262_144);
        resources["cpu"] = json!({"quota": quota, "period": CPU_PERIOD_US, "shares": shares});
    }
    resources
}

fn mounts(place: &Place, plan: &Plan) -> Result<Vec<Value>, Error> {
    let mount = |to: &str, kind: &str, options: &[&str]| json!({"destination": to, "type": kind, "source": kind, "options": options});
    let mut mounts = vec![
        mount("/proc", "proc", &["nosuid", "noexec", "nodev"]),
        mount("/dev", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
        mount(
            "/dev/pts",
            "devpts",
            &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
        ),
        mount("/dev/shm", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),
        mount("/dev/mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
        mount("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
    ];
    for (name, text) in names::files(&plan.container.name, plan.link.as_ref()) {
        let file: PathBuf = place.at(name);
        fs::write(&file, text).map_err(disk)?;
        mounts.push(json!({
            "destination": format!("/etc/{name}"),
            "type": "bind",
            "source": file,
            "options": ["bind", "ro", "nosuid", "nodev", "noexec"],
        }));
    }
    Ok(mounts)
}
