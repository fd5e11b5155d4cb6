//! Layers that try to write or read outside of the image.
//!
//! Each attacks a file outside, which must not change. An attack may be rejected or have no effect.

use std::path::Path;

use serde_json::json;
use tar::EntryType;

use crate::lab::{Lab, container};
use crate::packing::{Image, Layer, busybox};

/// Every attack on a directory outside of the image.
fn attacks(outside: &str) -> Vec<(&'static str, Layer)> {
    let file = format!("{outside}/victim");
    let up = format!("../../../../../../../../../..{file}");
    let relative = format!("../../../../../../../../../..{outside}");
    let new = Layer::new;
    vec![
        ("dotdot", new().file(&up, b"owned")),
        ("dotdot in the middle", new().file(&format!("a/{up}"), b"owned")),
        ("absolute", new().file(&file, b"owned")),
        ("absolute symlink", new().symlink("out", outside).file("out/victim", b"owned")),
        ("relative symlink", new().symlink("out", &relative).file("out/victim", b"owned")),
        (
            "chain of symlinks",
            new().symlink("a", "b").symlink("b", outside).file("a/victim", b"owned"),
        ),
        (
            "through /proc",
            new().symlink("out", "/proc/self/root").file(&format!("out{file}"), b"owned"),
        ),
        (
            "through /proc/1",
            new().symlink("out", "/proc/1/root").file(&format!("out{file}"), b"owned"),
        ),
        ("through a file symlink", new().symlink("f", &file).file("f", b"owned")),
        ("hard link, absolute", new().hard_link("f", &file).file("f", b"owned")),
        ("hard link, dotdot", new().hard_link("f", &up).file("f", b"owned")),
        (
            "hard link through symlink",
            new().symlink("out", outside).hard_link("f", "out/victim").file("f", b"owned"),
        ),
        (
            "hard link to a symlink",
            new().symlink("s", &file).hard_link("f", "s").file("f", b"owned"),
        ),
        ("whiteout through symlink", new().symlink("out", outside).file("out/.wh.victim", b"")),
        ("opaque through symlink", new().symlink("out", outside).file("out/.wh..wh..opq", b"")),
        ("whiteout of dot", new().dir("d/").file("d/.wh..", b"")),
        ("whiteout of dotdot", new().dir("d/").file("d/.wh...", b"")),
        ("directory over symlink", new().symlink("d", outside).dir("d").file("d/victim", b"owned")),
        (
            "mode through symlink",
            new().symlink("f", &file).add(EntryType::Directory, "f", 0o777, "", b""),
        ),
        ("block device", new().add(EntryType::Block, "disk", 0o666, "", b"")),
        (
            "symlink over a directory",
            new().dir("d").symlink("d", outside).file("d/victim", b"owned"),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn layers_cannot_escape_the_image() {
    let lab = Lab::new().await;
    let outside = lab.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let victim = outside.join("victim");
    std::fs::write(&victim, "innocent").unwrap();
    let before = std::fs::metadata(&victim).unwrap().permissions();
    let base = busybox().tar();
    // Each twice: as the only layer, and over another, which is an overlay.
    for below in [false, true] {
        for (attack, layer) in attacks(outside.to_str().unwrap()) {
            let mut layers = vec![layer.tar()];
            if below {
                layers.insert(0, base.clone());
            }
            let config = json!({"Cmd": ["/bin/sh", "-c", "true"]});
            let name = lab.registry.put("attack", &Image::new(layers, config));
            let started = lab.runtime().start(&container("attack-0", &name)).await;
            lab.runtime().stop("attack-0").await.unwrap();
            lab.runtime().gc(std::time::Duration::ZERO).await;
            let found = std::fs::read_to_string(&victim);
            assert_eq!(found.ok().as_deref(), Some("innocent"), "{attack}: {started:?}");
            assert_eq!(std::fs::metadata(&victim).unwrap().permissions(), before, "{attack}");
            assert!(has_one_file(&outside), "{attack}");
            assert_eq!(lab.leftovers(), Vec::<String>::new(), "{attack}");
            assert_eq!(lab.stored(), Vec::<std::path::PathBuf>::new(), "{attack}");
            let must_fail = attack.contains("dotdot") || attack == "whiteout of dot";
            assert!(!must_fail || started.is_err(), "{attack} was accepted");
        }
    }
}

fn has_one_file(outside: &Path) -> bool {
    std::fs::read_dir(outside).unwrap().count() == 1
}

#[tokio::test(flavor = "multi_thread")]
async fn whiteouts_links_and_modes_are_applied() {
    let lab = Lab::new().await;
    let below = busybox()
        .dir("usr/lib/")
        .symlink("lib", "usr/lib")
        .dir("opaque/")
        .file("opaque/old", b"")
        .dir("opaque/kept/")
        .file("opaque/kept/old", b"")
        .dir("gone/")
        .file("gone/x", b"")
        .file("first", b"linked");
    let above = Layer::new()
        .file("opaque/new", b"")
        .file("opaque/kept/new", b"")
        .file("opaque/.wh..wh..opq", b"")
        .file(".wh.gone", b"")
        .file("lib/through-link", b"")
        .hard_link("second", "first")
        .add(EntryType::Regular, "setuid", 0o4755, "", b"");
    let script = "ls /opaque /opaque/kept; ls -d /gone; ls /usr/lib; cat /second; ls -l /setuid; ls -ld /lib";
    let config = json!({"Cmd": ["/bin/sh", "-c", script], "User": "web"});
    let name = lab.registry.put("layers", &Image::new(vec![below.tar(), above.tar()], config));
    let (_, lines) = lab.run(&container("layers-0", &name)).await;
    let text = lines.join("\n");
    for expected in [
        "kept\nnew",
        "/gone: No such file",
        "through-link",
        "linked",
        "-rwsr-xr-x",
        "/lib -> usr/lib",
    ] {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    assert!(!text.contains("old"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn shim_program_cannot_be_overwritten_through_proc() {
    let lab = Lab::new().await;
    lab.runtime().start(&lab.shell("evil-0", "sleep 100")).await.unwrap();
    let state = lab.options.dir.join("containers/evil-0/state.json");
    let state: serde_json::Value = serde_json::from_slice(&std::fs::read(state).unwrap()).unwrap();
    for process in ["shim", "pid"] {
        // As root of the host. While the program runs, the kernel protects the file ("text file
        // busy"); the read-only mount must protect it afterwards, too.
        let program = format!("/proc/{}/exe", state[process]);
        let opened = std::fs::OpenOptions::new().write(true).truncate(true).open(program);
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem, "{process}: {error}");
    }
    lab.runtime().stop("evil-0").await.unwrap();
}
