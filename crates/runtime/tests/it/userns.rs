//! User namespaces: containers of each owner run with ids of their own.

use std::os::unix::fs::MetadataExt;

use runtime::{Condition, Container, Embedded, Userns};
use serde_json::json;

use crate::lab::{Lab, container, get};
use crate::packing::{self, Image, Layer};

/// A container of an owner.
fn of(owner: &str, container: Container) -> Container {
    Container { owner: Some(owner.to_owned()), ..container }
}

/// First id on the host, from a line of `/proc/self/uid_map`.
fn first_id(line: &str) -> u32 {
    let fields: Vec<u32> = line.split_whitespace().map(|field| field.parse().unwrap()).collect();
    assert_eq!((fields[0], fields[2]), (0, 65_536), "{line}");
    fields[1]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_owner_has_ids_of_its_own_that_it_retains() {
    let mut lab = Lab::new().await;
    let script = "cat /proc/self/uid_map /proc/self/gid_map";
    let mut found = Vec::new();
    for (at, owner) in ["a", "b", "a", "b"].into_iter().enumerate() {
        if at == 2 {
            lab.runtime = None;
            lab.runtime = Some(Embedded::probe(lab.options.clone()).await.unwrap());
        }
        let name = format!("map-{at}");
        let (ended, lines) = lab.run(&of(owner, lab.shell(&name, script))).await;
        assert_eq!(ended, Condition::Completed, "{lines:?}");
        let [uid, gid] = [&lines[0], &lines[1]].map(|line| first_id(line));
        assert!(uid == gid && uid >= 1_065_536, "{uid} {gid}");
        found.push(uid);
        lab.runtime().stop(&name).await.unwrap();
    }
    assert_ne!(found[0], found[1]);
    assert_eq!(found[..2], found[2..]);
    assert_eq!((lab.runtime().warning(), lab.leftovers()), (None, Vec::new()));
}

/// What an ordinary image does: files of several users, links, devices, privileged ports.
const EVERYDAY: &str = "
stat -c '%u:%g %a %n' /data /data/private /data/setuid /etc/hosts /new /dev/null /proc /sys 2>&1
echo changed >> /data/private && cat /data/private
chown 1000:1000 /data/setuid && stat -c %u /data/setuid
touch /root-file && stat -c '%u:%g' /root-file
rm /data/gone && ln /data/private /data/hard && mkdir -p /a/b/c
echo out > /dev/stdout; echo err > /dev/stderr
cat /etc/hosts > /dev/null && head -c 4 /dev/zero | wc -c
cat /sys/class/net/eth0/operstate
echo x > /etc/hosts || echo hosts-read-only
echo 1 > /proc/sys/kernel/panic || echo sys-read-only
mount -t tmpfs x /mnt || echo no-mount
httpd -p 80 -h /data && echo port-80
";

fn everyday_image() -> Image {
    let busybox = std::fs::read("/bin/busybox").expect("the package busybox-static is installed");
    let base = Layer::new().dir("bin").program("bin/busybox", &busybox).dir("mnt").dir("etc");
    let names = "sh cat stat chown touch rm ln mkdir head wc mount httpd id ls".split(' ');
    let base = names.fold(base, |layer, name| layer.symlink(&format!("bin/{name}"), "busybox"));
    let data = Layer::new()
        .dir("data")
        .owned("data/private", 0o600, 1000, b"secret\n")
        .owned("data/setuid", 0o4755, 0, b"")
        .owned("data/beyond", 0o644, 70_000, b"far\n")
        .file("data/gone", b"");
    let config = json!({"WorkingDir": "/new"});
    Image::new(vec![base.tar(), data.tar()], config)
}

async fn everyday(lab: &Lab) {
    let image = lab.registry.put("everyday", &everyday_image());
    let command = ["/bin/sh", "-c", EVERYDAY].map(str::to_owned).to_vec();
    let run = Container { command, ..container("daily-0", &image) };
    let (ended, lines) = lab.run(&of("a", run)).await;
    assert_eq!(ended, Condition::Completed, "{lines:#?}");
    for line in [
        "0:0 755 /data",
        "1000:0 600 /data/private",
        "0:0 4755 /data/setuid",
        "0:0 644 /etc/hosts",
        "0:0 755 /new",
        "changed",
        "1000",
        "0:0",
        "out",
        "err",
        "4",
        "up",
        "hosts-read-only",
        "sys-read-only",
        "no-mount",
        "port-80",
    ] {
        assert!(lines.iter().any(|found| found == line), "{line}: {lines:#?}");
    }
    let user = of("a", container("user-0", &image));
    let command = ["/bin/sh", "-c", "id -u; cat /data/private; echo x > /dev/stderr"];
    let user = Container { command: command.map(str::to_owned).to_vec(), ..user };
    let (_, lines) = lab.run(&user).await;
    assert_eq!(lines[0], "0");
    for name in ["daily-0", "user-0"] {
        lab.runtime().stop(name).await.unwrap();
    }
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn everyday_image_works_with_idmapped_mounts() {
    everyday(&Lab::new().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everyday_image_works_with_chowned_layers() {
    everyday(&Lab::with(|options| options.idmapped_mounts = false).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_a_container_are_in_the_range_of_its_owner() {
    let lab = Lab::new().await;
    let mut image = packing::web();
    image.config["User"] = json!("1234:99");
    let image = lab.registry.put("user", &image);
    let sleep = ["/bin/sh", "-c", "echo to > /dev/stdout; sleep 100"].map(str::to_owned).to_vec();
    let sleeper = of("a", Container { command: sleep, ..container("sleep-0", &image) });
    lab.runtime().start(&sleeper).await.unwrap();
    let init = lab.runtime().get("sleep-0").unwrap().pid.unwrap();
    let map = std::fs::read_to_string(format!("/proc/{init}/uid_map")).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{init}/status")).unwrap();
    let id = first_id(&map) + 1234;
    assert!(status.contains(&format!("Uid:\t{id}\t{id}\t{id}\t{id}")), "{status}");
    // The host's root owns nothing that the container could reach through its own processes.
    let root = std::fs::metadata(format!("/proc/{init}/root")).unwrap();
    assert_eq!(root.uid(), first_id(&map));
    lab.runtime().stop("sleep-0").await.unwrap();

    let mut image = packing::web();
    image.config["User"] = json!("70000");
    let image = lab.registry.put("beyond", &image);
    let why = lab.runtime().start(&container("beyond-0", &image)).await.unwrap_err().to_string();
    assert!(why.contains("70000 of the image is above 65535"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_without_user_namespaces_are_adopted_and_removed() {
    let mut lab = Lab::with(|options| options.userns = Userns::Off).await;
    assert!(lab.runtime().warning().unwrap().ends_with("turned off"));
    let old = lab.web("old-0").await;
    let pid = lab.runtime().get("old-0").unwrap().pid;
    let map = std::fs::read_to_string(format!("/proc/{}/uid_map", pid.unwrap())).unwrap();
    assert!(map.trim().starts_with("0          0"), "{map}");
    // As after an upgrade: plans of older versions lack the field.
    let plan = lab.options.dir.join("containers/old-0/plan.json");
    let mut document: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&plan).unwrap()).unwrap();
    document.as_object_mut().unwrap().remove("user_ns");
    std::fs::write(&plan, document.to_string()).unwrap();
    lab.runtime = None;
    lab.options.userns = Userns::Auto;
    lab.runtime = Some(Embedded::probe(lab.options.clone()).await.unwrap());
    assert_eq!(lab.web("old-0").await, old);
    assert_eq!(lab.runtime().get("old-0").unwrap().pid, pid, "adopted, not restarted");
    assert!(get(&old, "/").contains("hello"));
    lab.runtime().stop("old-0").await.unwrap();
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}
