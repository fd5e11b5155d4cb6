//! Clusters created by a Terraform module, with real Terraform: the module starts and stops the
//! agent.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::process::{BINARY, Server, Setup};

const MODULE: &str = r#"
variable "paddock_server" { default = "" }
variable "paddock_token" {
  default   = ""
  sensitive = true
}
variable "size" { type = number }
variable "program" { type = string }
variable "place" { type = string }
variable "password" {
  type      = string
  sensitive = true
}

resource "terraform_data" "machine" {
  input = { size = var.size, place = var.place }
  provisioner "local-exec" {
    command     = "printf '%s' \"$PASSWORD\" > \"$PLACE/password\""
    environment = { PASSWORD = var.password, PLACE = var.place }
  }
  provisioner "local-exec" {
    when    = destroy
    command = "rm '${self.input.place}/password'"
  }
}

resource "terraform_data" "agent" {
  count = var.paddock_server == "" ? 0 : 1
  input = { place = var.place }
  provisioner "local-exec" {
    command = <<-RUN
      printf '%s' "$TOKEN" > "$PLACE/token"
      setsid "$PROGRAM" agent --server "$SERVER" --token-file "$PLACE/token" --runtime simulated \
        --capacity "cpu=$SIZE,ram=1Gi" > "$PLACE/agent.log" 2>&1 < /dev/null &
      echo $! > "$PLACE/pid"
    RUN
    environment = {
      TOKEN = var.paddock_token, SERVER = var.paddock_server, PLACE = var.place,
      PROGRAM = var.program, SIZE = var.size
    }
  }
  provisioner "local-exec" {
    when    = destroy
    command = "kill $(cat '${self.input.place}/pid')"
  }
}

output "dns" { value = "east.example" }
"#;

/// A server with a public URL, whose port must be known before the start.
fn start(modules: &Path, port: u16) -> Server {
    let program =
        std::env::var("PADDOCK_TEST_TERRAFORM").expect("./test sets PADDOCK_TEST_TERRAFORM");
    Setup::new()
        .arg("--allow-address", "127.0.0.0/8")
        .without("--listen")
        .arg("--listen", &format!("127.0.0.1:{port}"))
        .arg("--public-url", &format!("http://127.0.0.1:{port}"))
        .arg("--agent-image", "registry.example/paddock:1")
        .arg("--terraform-modules", &modules.display().to_string())
        .arg("--terraform-program", &program)
        .start()
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Whether a process is running.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn terraform_module_creates_cluster_starts_agent_and_destroys_everything() {
    let (modules, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in ["east", "broken"] {
        fs::create_dir(modules.path().join(name)).unwrap();
    }
    fs::write(modules.path().join("east/main.tf"), MODULE).unwrap();
    fs::write(
        modules.path().join("broken/main.tf"),
        "resource \"terraform_data\" \"x\" {\n  inp =",
    )
    .unwrap();
    let secrets = place.path().join("secrets.json");
    fs::write(&secrets, json!({"password": "s3cret"}).to_string()).unwrap();
    let server = start(modules.path(), free_port());
    let admin = server.client();
    admin.run("login --username admin").succeeds();
    let line = |name: &str, module: &str| {
        format!(
            "cluster create {name} --provider terraform --module {module} --variable size=4 \
             --variable program={BINARY} --variable place={} --secret-variables {}",
            place.path().display(),
            secrets.display()
        )
    };
    admin.run(&format!("{} --wait=120", line("bad", "broken"))).fails(1, &["failed", "main.tf"]);
    admin.run(&format!("{} --wait=120", line("none", "west"))).fails(1, &["west", "east"]);
    admin.run("cluster delete bad --yes --wait=120").succeeds();

    admin.run(&format!("{} --wait=180", line("east", "east"))).succeeds().prints(&["ready"]);
    assert_eq!(fs::read_to_string(place.path().join("password")).unwrap(), "s3cret");
    let shown = admin.run("cluster show east --output json").succeeds().stdout;
    assert!(!shown.contains("s3cret") && shown.contains("\"module\""), "{shown}");
    admin
        .run("deployment create --name web --image web:1 --cluster east --cpu 1 --wait=60")
        .succeeds();
    admin.run("cluster delete east --yes").fails(1, &["drain it or delete them first"]);
    admin.run("deployment delete web --yes --wait=60").succeeds();
    let pid = fs::read_to_string(place.path().join("pid")).unwrap().trim().to_owned();
    assert!(runs(&pid));
    admin.run("cluster delete east --yes --wait=180").succeeds();
    assert!(!runs(&pid) && !place.path().join("password").exists());
    let log = server.stderr();
    assert!(!log.contains("s3cret") && !log.contains("panicked"), "{log}");

    let ann = server.owner("acme", "ann");
    ann.run(&line("mine", "east")).fails(1, &["platform administrator"]);
}
