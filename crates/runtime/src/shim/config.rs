//! Writes `config.json` of the OCI bundle.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::init::Program;
use super::lookup;
use crate::Error;
use crate::cgroup;
use crate::cgroup::parent::CPU_PERIOD_US;
use crate::dirs::write_json;
use crate::ids::RANGE;
use crate::network::names;
use crate::plan::{Bundle, Plan};
use crate::unpack::root::{Root, clean};
use crate::userns;

/// Capabilities of root in a container. Fewer than the usual defaults: no devices, no `NET_RAW`
/// (spoofing through raw sockets), no auditing.
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

/// Kernel files that expose or permit too much.
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

/// Writes `config.json`. Returns the program that the container will run, and the ids on the host of
/// the user and group that run it.
pub(super) fn write(
    bundle: &Bundle,
    plan: &Plan,
    user_namespace: Option<&OwnedFd>,
) -> Result<(Program, (u32, u32)), Error> {
    let root = Root::open(&bundle.at("root")).map_err(not_written)?;
    let config = &plan.image.config;
    let cwd = clean(Path::new(config.working_dir.as_deref().unwrap_or("/")))
        .map_err(|error| Error::BadImageConfig(error.to_string()))?;
    let cwd = Path::new("/").join(cwd);
    let first_id = plan.user_ns.map(|user| user.first_id);
    root.directory_of(cwd.strip_prefix("/").unwrap_or(&cwd), first_id).map_err(not_written)?;
    let env = environment(plan);
    let args = args(plan)?;
    let path = env.get("PATH").map_or(lookup::PATH, String::as_str);
    let file = lookup::program(&root, &args[0], path, &cwd)?;
    let user = lookup::user(&root, config.user.as_deref().unwrap_or(""))?;
    let owner = host_ids(&user, first_id)?;
    // The network namespace is the shim's, so that it survives restarts of the container.
    let namespaces = ["pid", "ipc", "uts", "mount", "cgroup"].map(|kind| json!({"type": kind}));
    let mut namespaces = namespaces.to_vec();
    if let Some(user) = user_namespace {
        // An existing one: for one of its own, the library would require systemd on cgroup version 2.
        namespaces.push(json!({"type": "user", "path": userns::path_of(user)}));
    }
    let document = json!({
        "ociVersion": "1.0.2",
        "hostname": plan.container.name,
        "root": {"path": bundle.at("root"), "readonly": false},
        "process": {
            "terminal": false,
            "user": {"uid": user.uid, "gid": user.gid, "additionalGids": user.groups},
            "args": args,
            "env": env.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>(),
            "cwd": cwd,
            "noNewPrivileges": true,
            "capabilities": capabilities(user.uid),
        },
        "mounts": mounts(bundle, plan)?,
        "linux": {
            "cgroupsPath": plan.cgroup,
            "namespaces": namespaces,
            "resources": resources(plan),
            "maskedPaths": MASKED,
            "readonlyPaths": READ_ONLY,
            "rootfsPropagation": "private",
        },
    });
    write_json(&bundle.at("config.json"), &document).map_err(not_written)?;
    Ok((Program { file, args }, owner))
}

/// The ids on the host of a user and group of the container.
fn host_ids(user: &lookup::User, first_id: Option<u32>) -> Result<(u32, u32), Error> {
    let Some(first_id) = first_id else { return Ok((user.uid, user.gid)) };
    let ids = [user.uid, user.gid].into_iter().chain(user.groups.iter().copied());
    match ids.into_iter().find(|id| *id >= RANGE) {
        None => Ok((first_id + user.uid, first_id + user.gid)),
        Some(id) => Err(Error::BadImageConfig(format!(
            "User or group {id} of the image is above 65535, the highest id of a container."
        ))),
    }
}

fn not_written(error: std::io::Error) -> Error {
    Error::io("Writing the bundle failed", error)
}

/// The container's command, or the image's entrypoint and command.
fn args(plan: &Plan) -> Result<Vec<String>, Error> {
    let config = &plan.image.config;
    let mut args = plan.container.command.clone();
    if args.is_empty() {
        args.extend(config.entrypoint.iter().flatten().cloned());
        args.extend(config.cmd.iter().flatten().cloned());
    }
    match args.first() {
        Some(first) if !first.is_empty() => Ok(args),
        _ => Err(Error::BadCommand(format!(
            "Image {} has no entrypoint and no command. Set `command`.",
            plan.image.name
        ))),
    }
}

fn environment(plan: &Plan) -> BTreeMap<String, String> {
    let mut env = BTreeMap::from([
        ("PATH".to_owned(), lookup::PATH.to_owned()),
        ("HOSTNAME".to_owned(), plan.container.name.clone()),
    ]);
    for line in plan.image.config.env.iter().flatten() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        env.insert(key.to_owned(), value.to_owned());
    }
    env.extend(plan.container.env.clone());
    env
}

/// Root has all of them; other users could regain them only through file capabilities.
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

fn resources(plan: &Plan) -> Value {
    let mut resources = json!({
        "pids": {"limit": plan.max_pids},
        "devices": [{"allow": false, "access": "rwm"}],
    });
    if let Some(bytes) = plan.ram_bytes() {
        resources["memory"] = json!({"limit": bytes});
        if cgroup::limits_swap() {
            // The limit of memory and swap together: no swap is left.
            resources["memory"]["swap"] = json!(bytes);
        }
    }
    if let Some(milli) = plan.cpu_milli() {
        let quota = (milli.saturating_mul(CPU_PERIOD_US) / 1000).max(1000);
        // Version 1 rejects a higher quota than the parent's.
        let quota = plan.parent.map_or(quota, |parent| quota.min(parent.cpu_quota()));
        let shares = (milli.saturating_mul(1024) / 1000).clamp(2, 262_144);
        resources["cpu"] = json!({"quota": quota, "period": CPU_PERIOD_US, "shares": shares});
    }
    resources
}

fn mounts(bundle: &Bundle, plan: &Plan) -> Result<Vec<Value>, Error> {
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
    for (name, text) in names::files(&plan.container.name, &plan.link) {
        let file: PathBuf = bundle.at(name);
        fs::write(&file, text)
            .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o644)))
            .and_then(|()| {
                let owner = plan.user_ns.map(|user| user.first_id);
                chown(&file, owner, owner)
            })
            .map_err(not_written)?;
        mounts.push(json!({
            "destination": format!("/etc/{name}"),
            "type": "bind",
            "source": file,
            "options": ["bind", "ro", "nosuid", "nodev", "noexec"],
        }));
    }
    Ok(mounts)
}
