//! Images from archives: formats, owners, hostile archives.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::time::Duration;

use model::image::StoredImage;
use runtime::{BUILTIN_IMAGE, Condition, Container, Error, builtin_archive};
use serde_json::json;
use tar::EntryType;

use crate::lab::{Lab, container, get};
use crate::packing::{self, Image, Layer, gzip};
use crate::registry::digest_of;

const ANN: &str = "ann";
const BOB: &str = "bob";

/// A `docker save` archive of an image.
fn saved(image: &Image, tags: &[&str]) -> Layer {
    let config = image.configuration();
    let config_file = format!("{}.json", &digest_of(&config)[7..]);
    let layers: Vec<_> = (0..image.layers.len()).map(|at| format!("{at}/layer.tar")).collect();
    let manifest = json!([{"Config": config_file, "RepoTags": tags, "Layers": layers}]);
    let archive = Layer::new()
        .file("manifest.json", manifest.to_string().as_bytes())
        .file(&config_file, &config);
    layers
        .iter()
        .zip(&image.layers)
        .fold(archive, |archive, (name, (tar, _))| archive.file(name, tar))
}

/// An OCI layout of an image, with this annotation as its name.
fn layout(image: &Image, key: &str, name: &str) -> Layer {
    let (config, manifest) = (image.configuration(), image.manifest());
    let index = json!({"schemaVersion": 2, "manifests": [{
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": digest_of(&manifest), "size": manifest.len(), "annotations": {key: name},
    }]});
    let blobs = image.layers.iter().map(|(_, blob)| blob.clone()).chain([config, manifest]);
    let archive = Layer::new()
        .file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)
        .file("index.json", index.to_string().as_bytes())
        .dir("blobs/sha256");
    blobs.fold(archive, |archive, blob| {
        archive.file(&format!("blobs/sha256/{}", &digest_of(&blob)[7..]), &blob)
    })
}

/// An image whose program writes a word.
fn says(word: &str) -> Image {
    Image::new(
        vec![packing::busybox().file("word", format!("{word}\n").as_bytes()).tar()],
        json!({"Cmd": ["/bin/cat", "/word"]}),
    )
}

pub(crate) fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

async fn load(lab: &Lab, owner: &str, archive: &[u8]) -> Result<Vec<StoredImage>, Error> {
    lab.runtime().load_images(owner, file(archive), None).await
}

fn owned(name: &str, image: &str, owner: &str) -> Container {
    Container { owner: Some(owner.to_owned()), ..container(name, image) }
}

fn names(images: &[StoredImage]) -> Vec<&str> {
    images.iter().map(|image| image.name.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn built_in_image_serves_a_page_for_every_owner() {
    let lab = Lab::new().await;
    for (name, owner) in [("a-0", Some(ANN)), ("b-0", None)] {
        let message = [("MESSAGE".to_owned(), "Hello & <welcome>".to_owned())];
        let page = Container {
            owner: owner.map(str::to_owned),
            ports: vec![8080],
            env: message.into(),
            ram: Some("16Mi".parse().unwrap()),
            ..container(name, BUILTIN_IMAGE)
        };
        let endpoints = lab.runtime().start(&page).await.unwrap();
        let answer = get(&endpoints[0], "/");
        assert!(answer.contains("<h1>Hello &amp; &lt;welcome></h1>"), "{answer}");
    }
    let command = ["/page", "--exit", "3"].map(str::to_owned).to_vec();
    let (ended, _) = lab.run(&Container { command, ..container("c-0", BUILTIN_IMAGE) }).await;
    assert!(matches!(ended, Condition::Failed(why) if why.contains('3')));
    for name in ["a-0", "b-0", "c-0"] {
        lab.runtime().stop(name).await.unwrap();
    }
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_of_every_format_are_loaded_and_run() {
    let lab = Lab::new().await;
    let full = "io.containerd.image.name";
    let either = "org.opencontainers.image.ref.name";
    let legacy = {
        // Older versions of Docker link equal layers, and name the configuration otherwise.
        let image = says("legacy");
        let manifest = json!([{"Config": "config.json", "RepoTags": ["legacy:1"],
            "Layers": ["b/layer.tar"]}]);
        Layer::new()
            .file("a/layer.tar", &image.layers[0].0)
            .symlink("b/layer.tar", "../a/layer.tar")
            .file("config.json", &image.configuration())
            .file("manifest.json", manifest.to_string().as_bytes())
            .tar()
    };
    for (at, (name, archive)) in [
        ("localhost/saved:1", saved(&says("saved"), &["saved:1"]).tar()),
        ("localhost/zipped:latest", gzip(&saved(&says("zipped"), &["zipped"]).tar())),
        ("localhost/team/layout:2", layout(&says("layout"), full, "r.io/team/layout:2").tar()),
        ("localhost/podman:3", layout(&says("podman"), either, "localhost/podman:3").tar()),
        ("localhost/legacy:1", legacy),
    ]
    .into_iter()
    .enumerate()
    {
        let loaded = load(&lab, ANN, &archive).await.unwrap();
        assert_eq!(names(&loaded), [name]);
        assert!(loaded[0].size_bytes > 100_000 && loaded[0].digest.starts_with("sha256:"));
        let container = owned(&format!("c-{at}"), name, ANN);
        let (ended, lines) = lab.run(&container).await;
        assert_eq!(ended, Condition::Completed);
        let word = name.split(['/', ':']).rev().nth(1).unwrap();
        assert_eq!(lines, [word]);
        lab.runtime().stop(&container.name).await.unwrap();
    }
    let all = lab.runtime().stored_images(ANN).await;
    assert_eq!(all.len(), 6, "{all:?}");
    assert!(all.iter().any(|image| image.is_builtin && image.name == BUILTIN_IMAGE));
    assert_eq!(lab.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_come_from_the_archive_or_the_caller() {
    let lab = Lab::new().await;
    let two = saved(&says("two"), &["two:1", "two:2"]).tar();
    assert_eq!(
        names(&load(&lab, ANN, &two).await.unwrap()),
        ["localhost/two:1", "localhost/two:2"]
    );
    let unnamed = saved(&says("two"), &[]).tar();
    let why = load(&lab, ANN, &unnamed).await.unwrap_err().to_string();
    assert!(why.contains("has no name"), "{why}");
    let tag_only = layout(&says("two"), "org.opencontainers.image.ref.name", "1.0").tar();
    assert!(load(&lab, ANN, &tag_only).await.is_err());
    for archive in [&unnamed, &tag_only, &two] {
        let named = lab.runtime().load_images(ANN, file(archive), Some("web:3")).await.unwrap();
        assert_eq!(names(&named), ["localhost/web:3"]);
    }
    for bad in ["localhost/paddock-page:1", "Web", "web@sha256:00"] {
        let named = lab.runtime().load_images(ANN, file(&two), Some(bad)).await;
        assert!(matches!(named, Err(Error::InvalidImageName { .. })), "{bad}");
    }
    // An archive can't replace the built-in image either.
    assert!(load(&lab, ANN, &builtin_archive("paddock-page:1")).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_cannot_run_list_replace_or_remove_images_of_another() {
    let lab = Lab::new().await;
    load(&lab, ANN, &saved(&says("anns"), &["web:1"]).tar()).await.unwrap();
    let missing = owned("bob-0", "localhost/web:1", BOB);
    let refused = lab.runtime().start(&missing).await.unwrap_err();
    assert_eq!(refused, Error::ImageNotLoaded { image: "localhost/web:1".to_owned() });
    let nobody = container("nobody-0", "localhost/web:1");
    assert!(matches!(lab.runtime().start(&nobody).await, Err(Error::ImageNotLoaded { .. })));
    assert_eq!(names(&lab.runtime().stored_images(BOB).await), [BUILTIN_IMAGE]);
    let removed = lab.runtime().remove_image(BOB, "localhost/web:1").await;
    assert!(matches!(removed, Err(Error::ImageNotLoaded { .. })));

    load(&lab, BOB, &saved(&says("bobs"), &["web:1"]).tar()).await.unwrap();
    for (owner, word) in [(ANN, "anns"), (BOB, "bobs")] {
        let (_, lines) = lab.run(&owned("word-0", "localhost/web:1", owner)).await;
        assert_eq!(lines, [word]);
        lab.runtime().stop("word-0").await.unwrap();
    }
    lab.runtime().remove_image(BOB, "localhost/web:1").await.unwrap();
    lab.runtime().start(&owned("ann-0", "localhost/web:1", ANN)).await.unwrap();
    lab.runtime().stop("ann-0").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn known_digest_does_not_give_access_to_the_layer_of_another_owner() {
    let lab = Lab::new().await;
    let secret = says("secret");
    load(&lab, ANN, &saved(&secret, &["web:1"]).tar()).await.unwrap();
    let mut forged = says("secret");
    let config = forged.configuration();
    forged.layers[0].0 = Layer::new().file("x", b"not the layer").tar();
    let config_file = format!("{}.json", &digest_of(&config)[7..]);
    let manifest = json!([{"Config": config_file, "RepoTags": ["web:1"], "Layers": ["layer"]}]);
    let archive = Layer::new()
        .file("manifest.json", manifest.to_string().as_bytes())
        .file(&config_file, &config)
        .file("layer", &forged.layers[0].0);
    let why = load(&lab, BOB, &archive.tar()).await.unwrap_err().to_string();
    assert!(why.contains("does not match its digest"), "{why}");
    assert_eq!(names(&lab.runtime().stored_images(BOB).await), [BUILTIN_IMAGE]);
}

#[tokio::test(flavor = "multi_thread")]
async fn loaded_image_survives_gc_and_restart_until_it_is_removed() {
    let mut lab = Lab::new().await;
    load(&lab, ANN, &saved(&says("kept"), &["web:1"]).tar()).await.unwrap();
    let freed = lab.runtime().gc(Duration::ZERO).await;
    assert_eq!((freed.images, freed.layers), (0, 0));
    lab.runtime = None;
    lab.runtime = Some(runtime::Embedded::probe(lab.options.clone()).await.unwrap());
    let user = Container {
        command: ["/bin/sleep", "100"].map(str::to_owned).to_vec(),
        ..owned("keep-0", "localhost/web:1", ANN)
    };
    lab.runtime().start(&user).await.unwrap();
    let removed = lab.runtime().remove_image(ANN, "localhost/web:1").await;
    assert_eq!(removed, Err(Error::ImageInUse { image: "localhost/web:1".to_owned() }));
    lab.runtime().stop("keep-0").await.unwrap();
    lab.runtime().remove_image(ANN, "localhost/web:1").await.unwrap();
    assert_eq!(lab.runtime().gc(Duration::ZERO).await.layers, 1);
    assert_eq!(lab.stored(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn local_image_is_never_pulled() {
    let lab = Lab::new().await;
    let before = lab.registry.content.lock().unwrap().blob_requests;
    let why = lab.runtime().start(&owned("x-0", "localhost/x:1", ANN)).await.unwrap_err();
    assert_eq!(why.to_string(), "Image localhost/x:1 is not on this machine.");
    assert_eq!(lab.registry.content.lock().unwrap().blob_requests, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_archives_are_rejected_without_leftovers() {
    let lab = Lab::with(|options| {
        options.max_image_bytes = 20 << 20;
        options.max_image_entries = 1000;
    })
    .await;
    let victim = lab.dir.path().join("victim");
    std::fs::write(&victim, "unharmed").unwrap();
    let outside = victim.to_str().unwrap().to_owned();
    let up = format!("../../../../../../../..{outside}");
    let image = says("x");
    let good = || saved(&image, &["web:1"]);
    let flipped = {
        let mut archive = layout(&image, "io.containerd.image.name", "web:1").tar();
        let at = archive.len() / 2;
        archive[at] ^= 1;
        archive
    };
    let other = Image { architecture: "s390x", ..says("x") };
    let truncated = good().tar()[..100_000].to_vec();
    let manifest = |config: &str, layer: &str| {
        let text = json!([{"Config": config, "RepoTags": ["web:1"], "Layers": [layer]}]);
        Layer::new().file("manifest.json", text.to_string().as_bytes())
    };
    let many = (0..11_000).fold(Layer::new(), |archive, at| archive.file(&format!("f{at}"), b""));
    let layers = vec!["a"; 200];
    let deep = json!([{"Config": "c.json", "RepoTags": ["web:1"], "Layers": layers}]);
    let deep = Layer::new().file("manifest.json", deep.to_string().as_bytes());
    let files = (0..1500).fold(Layer::new(), |layer, at| layer.file(&format!("f{at}"), b"")).tar();
    for (what, archive, why) in [
        ("no tar", b"hello".to_vec(), "archive is not a valid tar"),
        ("nothing", Layer::new().tar(), "neither manifest.json"),
        ("truncated", truncated, "archive"),
        ("garbage", Layer::new().file("manifest.json", b"{]").tar(), "manifest.json"),
        ("no image", Layer::new().file("manifest.json", b"[]").tar(), "contains no image"),
        ("dotdot", good().file(&up, b"owned").tar(), "leads out of"),
        ("symlink", good().symlink("0/layer.tar", &up).tar(), "leads out of"),
        ("absolute symlink", good().symlink("0/layer.tar", &outside).tar(), "leads out of"),
        ("dotdot in manifest", manifest(&up, "x").tar(), "is missing"),
        ("loop", manifest("a", "x").symlink("a", "b").symlink("b", "a").tar(), "is missing"),
        ("missing layer", manifest("c.json", "x").file("c.json", b"{}").tar(), "x is missing"),
        ("device", manifest("c", "x").add(EntryType::Block, "c", 0o666, "", b"").tar(), "missing"),
        ("flipped", flipped, "does not match its digest"),
        ("platform", saved(&other, &["web:1"]).tar(), "is for linux/s390x"),
        ("bomb", gzip(&Layer::new().file("zeros", &vec![0; 64 << 20]).tar()), "maximum image size"),
        (
            "bomb in a layer",
            layout(
                &Image::new(vec![Layer::new().file("z", &vec![0; 64 << 20]).tar()], json!({})),
                "io.containerd.image.name",
                "web:1",
            )
            .tar(),
            "maximum image size",
        ),
        ("many files", many.tar(), "more than 10000 entries"),
        ("many layers", deep.file("c.json", b"{}").tar(), "200 layers"),
        ("many entries", saved(&Image::new(vec![files], json!({})), &["a:1"]).tar(), "1000 files"),
        ("bad name", saved(&image, &["../x"]).tar(), "Invalid image name"),
    ] {
        let error = load(&lab, ANN, &archive).await.unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains('\n'), "{what}: {error}");
        assert_eq!(lab.leftovers(), Vec::<String>::new(), "{what}");
        let names = lab.runtime().stored_images(ANN).await.len();
        assert_eq!(names, 1, "{what}: only the built-in image");
    }
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "unharmed");
    assert!(load(&lab, ANN, &good().tar()).await.is_ok(), "a valid archive is still loaded");
}
