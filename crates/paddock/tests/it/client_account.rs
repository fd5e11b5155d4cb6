//! `paddock token`, `paddock password` and the members of an organization.

use super::process::{Client, Outcome, Server};

/// Runs a command with a token instead of the login.
fn run_with(client: &Client, token: &str, line: &str) -> Outcome {
    let output = client.command(line).env("PADDOCK_TOKEN", token).output().unwrap();
    Outcome::new(line, output)
}

/// A member of the organization of `owner`.
fn member(server: &Server, owner: &Client, username: &str) -> Client {
    let code = owner.json("org invite")["code"].as_str().unwrap().to_owned();
    let client = server.client();
    client.run(&format!("org join {code} --username {username}")).succeeds();
    client
}

#[test]
fn token_has_a_scope_and_is_revoked_by_name() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let line = "token create dashboard --read-only --kind cluster --expires 2h";
    ann.run(line).succeeds().prints(&["TOKEN", "paddock_", "read: cluster"]);
    ann.run("token create laptop").succeeds();
    let reader = ann.json("token create reader --read-only")["token"].as_str().unwrap().to_owned();
    ann.run("token list").succeeds().prints(&["dashboard", "laptop", "- (current)", "session"]);
    run_with(&ann, &reader, "cluster list").succeeds();
    run_with(&ann, &reader, "cluster create main --cpu 1").fails(1, &["may only read everything"]);
    ann.run("token revoke reader --yes").succeeds().notes(&["revoked"]);
    run_with(&ann, &reader, "cluster list").ends(1);
    ann.run("token revoke reader").fails(1, &["no token", "paddock token list"]);
    ann.run("token create x --kind boat").fails(1, &["boat", "must be one of"]);
    ann.run("token create x --role viewer").fails(2, &["--service-account"]);

    let ci = ann.json("token create pipeline --service-account ci --role viewer");
    let ci = ci["token"].as_str().unwrap();
    run_with(&ann, ci, "whoami").succeeds().prints(&["viewer"]);
    ann.run("token revoke --service-account ci --yes").succeeds().notes(&["deleted"]);
    run_with(&ann, ci, "whoami").ends(1);
}

#[test]
fn password_is_changed_and_reset() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let bob = member(&server, &ann, "bob");
    let old = super::process::PASSWORD;
    bob.run_with_input("password change --password-stdin", "wrong\nnew\n")
        .fails(1, &["current_password"]);
    bob.run_with_input("password change --password-stdin", &format!("{old}\nnew\n"))
        .succeeds()
        .notes(&["password of bob changed"]);
    bob.run("whoami").succeeds();

    let reset = ann.json("org reset-password bob --yes");
    bob.run("whoami").ends(1);
    let code = reset["code"].as_str().unwrap();
    bob.run_with_input(&format!("password reset {code} --password-stdin"), "newer\n").succeeds();
    bob.run("whoami").succeeds().prints(&["bob"]);
    bob.run("org reset-password ann").fails(1, &["role owner is needed"]);

    let admin = server.client();
    admin.run("login --username admin").succeeds();
    admin.run("admin user reset-password bob --yes").succeeds().prints(&["CODE", "password reset"]);
    bob.run("whoami").ends(1);
}

#[test]
fn members_change_and_the_organization_is_deleted() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    let (bob, eve) = (member(&server, &ann, "bob"), member(&server, &ann, "eve"));
    ann.run("org set-role bob viewer").succeeds().notes(&["role of bob is viewer"]);
    bob.run("cluster create main --cpu 1").fails(1, &["viewer"]);
    ann.run("org set-role nobody viewer").fails(1, &["no user \"nobody\"", "org members"]);
    ann.run("org leave --yes").fails(1, &["needs an owner"]);
    eve.run("org remove bob --yes").fails(1, &["role owner is needed"]);
    ann.run("org remove eve --yes").succeeds().notes(&["eve removed"]);
    eve.run("whoami").ends(1);
    bob.run("org leave --yes").succeeds().notes(&["left"]);

    ann.run("cluster create main --cpu 1 --wait").succeeds();
    ann.run("org delete other --yes").fails(1, &["your organization is \"acme\""]);
    ann.run("org delete acme --yes").fails(1, &["still has 1 cluster", "--force"]);
    ann.run("org delete acme --force --yes").succeeds().notes(&["organization acme deleted"]);
    ann.run("whoami").ends(1);
    server.owner("acme", "ann").run("cluster list").succeeds();
}
