//! `paddock template`: publish, show, diff, deprecate and delete.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::fake::{Act, Fake, answer, header, json};
use super::process::{Client, Server, bare};

/// A template without external systems.
pub(crate) const SHOP: &str = r#"# The shop and all it needs.
name: shop
version: 1.0.0
description: The shop
tags: {team: web}
parameters:
  image: {type: string, default: "nginx:1", description: What the web servers run}
  replicas: {type: integer, default: 1, minimum: 1, maximum: 3}
resources:
  - {name: bus, executor: service, with: {kind: dinosaur}}
  - name: web
    executor: deployment
    with: {image: "{{ image }}", cpu: 50m, ram: 32Mi, replicas: "{{ replicas }}", ports: [80]}
    depends_on: [bus]
entry_points: ["tcp://{{ web.endpoint }}"]
"#;

/// The next version of [`SHOP`], without the bus.
pub(crate) fn next_shop() -> String {
    let start = SHOP.find("  - {name: bus").unwrap();
    let end = SHOP.find("  - name: web").unwrap();
    let text = format!("{}{}", &SHOP[..start], &SHOP[end..]);
    text.replace("1.0.0", "1.1.0").replace("    depends_on: [bus]\n", "").replace("50m", "60m")
}

/// A folder with these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Publishes a template from a temporary file.
pub(crate) fn publish(client: &Client, text: &str) {
    let folder = folder(&[("shop.yaml", text)]);
    let file = folder.path().join("shop.yaml").display().to_string();
    client.run(&format!("template publish {file}")).succeeds().prints(&["published "]);
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|one| one["reference"].as_str().unwrap()).collect()
}

fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = bare("git");
    command.arg("-C").arg(folder).args(["-c", "user.name=ann", "-c", "user.email=ann@example.com"]);
    let output = command.args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn template_lifecycle_from_publish_to_delete() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let files = folder(&[("shop.yaml", SHOP), ("next.yaml", &next_shop())]);
    let (file, next) = (files.path().join("shop.yaml"), files.path().join("next.yaml"));
    let publish =
        |path: &Path| ann.run(&format!("template publish {} --commit 5e1f", path.display()));
    assert_eq!(publish(&file).succeeds().stdout, "published shop@1.0.0\n");
    let again = publish(&file).succeeds();
    assert_eq!(again.stdout, "shop@1.0.0 is already published with the same content\n");
    fs::write(&file, SHOP.replace("32Mi", "64Mi")).unwrap();
    publish(&file).fails(1, &["is already published with other content", "publish a new version"]);
    publish(&next).succeeds();

    assert_eq!(names(&ann.json("template list")), ["shop@1.0.0", "shop@1.1.0"]);
    assert_eq!(names(&ann.json("template list --name web")), [""; 0]);
    ann.run("template list --name shop")
        .succeeds()
        .prints(&["NAME  VERSION  SHARED  COMMIT  CREATED", "shop  1.1.0    no      5e1f    20"]);
    ann.run("template show shop@1.0.0").succeeds().prints(&[
        "VERSION       1.0.0\n",
        "TAGS          team=web\n",
        "COMMIT        5e1f\n",
        "PARAMETER  TYPE     DEFAULT  DESCRIPTION\n",
        "image      string   nginx:1  What the web servers run\n",
        "web       deployment  -      bus         -\n",
    ]);
    assert_eq!(ann.run("template show shop@1.0.0 --source").succeeds().stdout, SHOP);
    assert_eq!(ann.json("template show shop")["version"], "1.1.0");

    ann.run("template deprecate shop@1.1.0").fails(2, &["--why"]);
    let mut deprecate = ann.command("template deprecate shop@1.1.0 --why");
    assert!(deprecate.arg("It has no bus.").status().unwrap().success());
    assert_eq!(ann.json("template show shop")["version"], "1.0.0");
    ann.run("template list").succeeds().prints(&["It has no bus."]);
    ann.run("template deprecate shop@1.1.0 --undo").succeeds().notes(&["no longer deprecated"]);
    assert_eq!(ann.json("template show shop")["version"], "1.1.0");

    ann.run("template delete shop@1.1.0").succeeds().notes(&["shop@1.1.0 deleted"]);
    for line in ["show shop@1.1.0", "delete shop@1.1.0", "deprecate shop@1.1.0 --undo", "show web"]
    {
        ann.run(&format!("template {line}")).fails(1, &["hint: run \"paddock template list\""]);
    }
}

#[test]
fn versions_are_compared() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    publish(&ann, SHOP);
    publish(&ann, &next_shop());
    for line in ["shop 1.0.0 1.1.0", "shop@1.0.0 shop@1.1.0"] {
        ann.run(&format!("template diff {line}")).succeeds().prints(&[
            "- resources.bus ",
            "~ resources.web.with.cpu ",
            "50m ",
            "60m\n",
        ]);
    }
    assert_eq!(ann.json("template diff shop 1.0.0 1.1.0")["to"], "1.1.0");
    ann.run("template diff shop 1.0.0 1.0.0")
        .succeeds()
        .prints(&["No differences except the version"]);
    ann.run("template diff shop 1.0.0 9").fails(1, &["template list"]);
    ann.run("template diff shop@1.0.0 web@1").fails(2, &["two versions of one template"]);
    ann.run("template impact shop 1.0.0 1.1.0")
        .succeeds()
        .prints(&["No environment uses this template."])
        .notes(&["no changes made"]);
}

#[test]
fn folder_is_published_with_files_and_commit() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let shop = folder(&[
        ("template.yaml", SHOP),
        ("docs/README.md", "How to use it."),
        ("docs/terraform.tfstate", "secret"),
        ("docs/.terraform/plugin", "binary"),
    ]);
    git(shop.path(), &["init", "--quiet"]);
    git(shop.path(), &["add", "."]);
    git(shop.path(), &["commit", "--quiet", "--message", "The shop"]);
    let commit = git(shop.path(), &["rev-parse", "HEAD"]);
    let line = format!("template publish {}", shop.path().display());
    ann.run(&line).succeeds().prints(&["published shop@1.0.0"]);
    let shown = ann.json("template show shop");
    assert_eq!(shown["commit"], commit.as_str());
    let files: Vec<_> = shown["files"].as_array().unwrap().iter().map(|one| &one["path"]).collect();
    assert_eq!(files, ["docs/README.md"]);
    ann.run("template show shop")
        .succeeds()
        .prints(&["FILE            SIZE\ndocs/README.md  14\n"]);
    ann.run(&line).succeeds().prints(&["is already published with the same content"]);

    std::os::unix::fs::symlink("/etc/passwd", shop.path().join("docs/users")).unwrap();
    let linked = format!("{}/docs/users", shop.path().display());
    ann.run(&line).fails(1, &[&format!("error: cannot publish {linked}: it is a symbolic link")]);
    let empty = tempfile::tempdir().unwrap();
    ann.run(&format!("template publish {}", empty.path().display()))
        .fails(1, &["has no template.yaml", "hint: use a directory"]);
}

#[test]
fn example_can_be_published() {
    let server = Server::start();
    let admin = server.client();
    admin.run("login --username admin").succeeds();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/web-shop");
    admin
        .run(&format!("template publish {example} --shared"))
        .succeeds()
        .prints(&["published web-shop@1.4.0"]);
    let ann = server.owner("acme", "ann");
    let shown = ann.json("template show web-shop");
    assert_eq!(
        (&shown["shared"], &shown["files"][0]["path"]),
        (&true.into(), &"network/main.tf".into())
    );
    ann.run("template delete web-shop@1.4.0").fails(1, &["only the platform administrator"]);
    ann.run(&format!("template publish {example}")).fails(1, &["only the platform administrator"]);
}

#[test]
fn invalid_template_is_reported_with_its_line() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let files = folder(&[
        ("a.yaml", &SHOP.replace("depends_on: [bus]", "depends_on: [bos]")),
        ("b.json", "{\"name\": \"shop\"}"),
        ("c.yaml", &SHOP.replace("type: string", "type: text")),
    ]);
    for (name, words) in [
        ("a.yaml", &["template.yaml:14: ", "bos"][..]),
        ("b.json", &["template.json", "version"]),
        ("c.yaml", &["template.yaml:7: ", "text"]),
    ] {
        let path = files.path().join(name);
        ann.run(&format!("template publish {}", path.display())).fails(1, words);
    }
    ann.run("template publish nowhere.yaml").fails(1, &["cannot read nowhere.yaml"]);
    assert_eq!(names(&ann.json("template list")), [""; 0]);
}

#[test]
fn executors_are_listed_with_missing_settings() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let all = ann.json("template executors");
    let all = all["items"].as_array().unwrap();
    assert_eq!(all.len(), 6, "{all:?}");
    let shown =
        ann.run("template executors").succeeds().prints(&["EXECUTOR", "AVAILABLE", "REASON"]);
    for one in all {
        let name = one["name"].as_str().unwrap();
        let line = shown.stdout.lines().find(|line| line.starts_with(name)).unwrap();
        let (available, reason) = match one["reason"].as_str() {
            None => (" yes ", "-"),
            Some(reason) => (" no ", reason),
        };
        assert!(line.contains(available) && line.ends_with(reason), "{line}");
    }
    let of = |name: &str| all.iter().find(|one| one["name"] == name).unwrap();
    assert_eq!(
        (&of("deployment")["available"], &of("consul-kv")["available"]),
        (&true.into(), &false.into())
    );
}

#[test]
fn templates_of_other_organizations_are_not_found() {
    let server = Server::start();
    let (ann, eve) = (server.owner("acme", "ann"), server.owner("evil", "eve"));
    publish(&ann, SHOP);
    eve.run("template show shop@1.0.0").fails(1, &["template list"]);
    assert_eq!(names(&eve.json("template list")), [""; 0]);
    publish(&eve, SHOP);
    let path = folder(&[("shop.yaml", SHOP)]);
    let path = path.path().join("shop.yaml").display().to_string();
    eve.run(&format!("template publish {path} --shared")).fails(1, &["administrator"]);
}

const PUBLISHED: &str = r#"{"id":"9m4e2mr0ui3e8a215n4g","name":"shop","version":"1.0.0",
    "reference":"shop@1.0.0","shared":false,"description":"","tags":{},"hash":"h",
    "created_by":"server","created_at":"2026-01-02T03:04:05Z"}"#;

#[test]
fn publish_is_idempotent_and_sets_the_content_type() {
    let shop = folder(&[("shop.json", "{}")]);
    let line = format!("template publish {}", shop.path().join("shop.json").display());
    let fake = Fake::start(vec![Act::HangUp, json("201 Created", PUBLISHED)]);
    Client::logged_in(&fake.address).run(&line).succeeds().prints(&["published shop@1.0.0"]);
    let requests = fake.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    assert_eq!(header(&requests[0], "content-type"), Some("application/json"));
    assert_eq!(header(&requests[0], "idempotency-key"), header(&requests[1], "idempotency-key"));
    assert!(requests[1].ends_with("{}"), "{requests:?}");

    let problem = r#"{"detail":"Fix it.","errors":[{"field":"parameters.size","detail":"no type"},{"field":"name","detail":"too long"}]}"#;
    let fake = Fake::start(vec![answer("400 Bad Request", "", problem)]);
    Client::logged_in(&fake.address)
        .run(&line)
        .fails(1, &["error: Fix it. (parameters.size: no type; name: too long)"]);
}

#[test]
fn publish_without_git_omits_the_commit() {
    let shop = folder(&[("shop.yaml", SHOP)]);
    let fake = Fake::start(vec![json("200 OK", PUBLISHED)]);
    let client = Client::logged_in(&fake.address);
    let line = format!("template publish {}", shop.path().join("shop.yaml").display());
    let output = client.command(&line).env("PATH", "/nowhere").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(fake.requests()[0].starts_with("post /api/v1/templates http/1.1\r\n"));
}
