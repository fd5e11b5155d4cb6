//! `paddock search` and `paddock graph`.

use super::process::Server;

#[test]
fn search_matches_names_tags_ids_and_typos() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("cluster create warehouse --cpu 4 --ram 8Gi --label team=shipping --wait=60")
        .succeeds();
    ann.run("deploy nginx:1 --name web-shop --cluster warehouse --cpu 500m --ram 256Mi --wait=60")
        .succeeds();
    ann.run("search warehouse")
        .succeeds()
        .prints(&["KIND     NAME       STATUS  ID", "name=warehouse"]);
    ann.run("search wareh").succeeds().prints(&["cluster  warehouse  ready"]);
    ann.run("search warheouse").succeeds().prints(&["cluster  warehouse  ready", "name~warehouse"]);
    ann.run("search team shipping").succeeds().prints(&["tag=team,tag=shipping"]);
    ann.run("search nginx --kind deployment").succeeds().prints(&["web-shop", "description=nginx"]);
    let found = ann.json("search web shop");
    assert_eq!(found["items"][0]["name"], "web-shop");
    let id = found["items"][0]["id"].as_str().unwrap();
    ann.run(&format!("search {id}")).succeeds().prints(&["web-shop", "id="]);
    ann.run("search nowhere-to-be-found").succeeds().notes(&["no results"]);
    ann.run("search a --limit 1").succeeds().notes(&["showing the best 1"]);

    let zoe = server.owner("zoo", "zoe");
    assert_eq!(zoe.json("search warehouse")["items"].as_array().unwrap().len(), 0);
    ann.run("search web --kind rhino").fails(1, &["kind", "must be one of organization, user"]);
    ann.run("search --limit 0 x").fails(2, &["--limit"]);
    ann.run("search").fails(2, &["WORDS"]);
    ann.run("search ---").fails(2, &[]);
    server.client().run("search web").fails(1, &["not logged in"]);
}

#[test]
fn graph_shows_dependencies_and_dependents() {
    let server = Server::start();
    let ann = server.owner("acme", "ann");
    ann.run("cluster create prod --cpu 4 --ram 8Gi --wait=60").succeeds();
    ann.run("deploy nginx:1 --name web --cluster prod --cpu 500m --ram 256Mi --wait=60").succeeds();
    ann.run("graph deployment/web")
        .succeeds()
        .prints(&["deployment/web  running  ", "└─ runs on cluster/prod  ready  "]);
    ann.run("graph cluster/prod --direction dependents")
        .succeeds()
        .prints(&["cluster/prod  ready  ", "└─ runs on deployment/web  running  "]);
    ann.run("graph deployment/web --format dot").succeeds().prints(&["digraph paddock {", "->"]);
    let svg = ann.run("graph deployment/web --format svg").succeeds().stdout;
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    let graph = ann.json("graph deployment/web");
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 2);
    let same = ann.run("graph deployment/web --format json --depth 1").succeeds().stdout;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&same).unwrap(), graph);
    ann.run("graph deployment/nothing").fails(1, &["Deployment \"nothing\" not found"]);
    ann.run("graph nothing").fails(1, &["subject", "kind/name"]);
    ann.run("graph cluster/prod --direction sideways").fails(2, &["dependents"]);
    server.owner("zoo", "zoe").run("graph cluster/prod").fails(1, &["Cluster \"prod\" not found"]);
}
