//! `paddock deployment`: create, list, show and delete.

use super::process::Server;

#[test]
fn deployment_lifecycle_from_create_to_delete() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("cluster create prod --cpu 4 --ram 8Gi --wait=60").succeeds();
    ann.run(
        "deployment create --name web --image nginx:1 --cluster prod --cpu 500m --ram 256Mi \
         --priority 5 --env A=x=y --port 80 --label team=web --wait=60 -- nginx -g daemon-off",
    )
    .succeeds()
    .prints(&["ID ", "NAME", "STATUS", "web", "running", "nginx:1"])
    .notes(&["deployment web: running"]);
    ann.run("deployment show web").succeeds().prints(&[
        "RESOURCES  cpu=0.5,ram=256Mi\n",
        "ENV        A=",
        "COMMAND    nginx -g daemon-off\n",
        "PRIORITY   5\n",
    ]);
    ann.run("cluster show prod").succeeds().prints(&["cpu       4      0.5", "DEPLOYMENTS  1\n"]);
    ann.run("cluster delete prod").fails(1, &["error: "]);

    ann.run("deployment list --cluster prod --status running").succeeds().prints(&["web"]);
    let queued = ann.json("deployment list --cluster prod --status queued");
    assert_eq!(queued["items"].as_array().unwrap().len(), 0);
    ann.run("deployment delete web --wait=60").succeeds().notes(&["deployment web deleted"]);
    ann.run("deployment show web").fails(1, &["deployment \"web\" not found"]);
    ann.run("cluster delete prod --wait=60").succeeds();
}

#[test]
fn deployment_that_does_not_fit_reports_why() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("cluster create small --cpu 1 --ram 1Gi --wait=60").succeeds();
    let line = "deployment create --name big --cluster small --cpu 2 --ram 512Mi";
    ann.run(&format!("{line} --wait=2"))
        .fails(1, &["deployment big is still queued after 2 s: ", "cpu", "deployment explain"]);
    let listed = ann.json("deployment list --status queued");
    assert_eq!(listed["items"][0]["name"], "big");
    ann.run("deployment delete big --wait=60").succeeds();
}

#[test]
fn invalid_deployment_is_rejected_with_flag_names() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("deployment create --cpu lots --ram 1Gi").fails(1, &["--cpu: "]);
    ann.run("deployment create --cpu 1 --ram 1Gi --replicas 0").fails(1, &["--replicas: "]);
    ann.run("deployment create --cpu 1 --cluster nowhere")
        .fails(1, &["cluster \"nowhere\" not found"]);
    ann.run("deployment create --port 0").fails(2, &["--port"]);
    ann.run("deployment create --env A=1 --env A=2").fails(2, &["given twice"]);
    ann.run("deployment create nginx").fails(2, &["unexpected argument"]);
    ann.run("deployment list --status sleeping").fails(2, &["queued", "running"]);
}
