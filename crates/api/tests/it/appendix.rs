//! Every call of the Kargo document's appendix, as written there.

use serde_json::{Value, json};
use testing::{Client, TestPaddock, on_both_engines};

on_both_engines! {
    async fn every_documented_kargo_call_works(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let anybody = &paddock.client;

        let created = anybody.put("/user/create/", json!({
            "user": {"username": "Sample", "password": "Sample", "display_name": "Sample"},
            "organization": {"name": "Sample"}
        })).await.expect(201);
        assert_eq!(created["user"]["username"], "Sample");
        assert_eq!(created["organization"]["name"], "Sample");

        let login = anybody.post("/user/login/", json!({"username": "Sample", "password": "Sample"})).await;
        assert!(login.json["expires_at"].is_string());
        let sample = anybody.with_token(&login.text("token"));

        let user = sample.get("/user/").await.expect(200);
        assert_eq!((&user["display_name"], &user["role"]), (&json!("Sample"), &json!("owner")));
        let organization = sample.get("/organization/").await.expect(200);
        assert_eq!(organization["members"].as_array().unwrap().len(), 1);

        use_an_invite(anybody, &sample).await;
        let cluster = use_a_cluster(&sample).await;
        deploy(&paddock, &sample, &cluster).await;
    }
}

async fn use_an_invite(anybody: &Client, sample: &Client) {
    // `--data ''` sends an empty body with a form's content type.
    let form = "application/x-www-form-urlencoded";
    let request =
        sample.request("PATCH", "/organization/invite/").header("content-type", form).body("");
    let invite = sample.send(request).await;
    assert_eq!(invite.status, 201);
    let code = invite.text("code");

    let open = anybody.get(&format!("/organization/invite/?code={code}")).await.expect(200);
    assert_eq!((&open["active"], &open["expired"]), (&json!(true), &json!(false)));

    let bearer = anybody.with_token(&code);
    let body = json!({"username": "Sample2", "password": "Sample", "display_name": "Sample"});
    let joined = bearer.post("/organization/invite/", body).await.expect(201);
    assert_eq!(joined["role"], "member");

    let used = anybody.get(&format!("/organization/invite/?code={code}")).await.expect(200);
    assert_eq!((&used["active"], &used["expired"]), (&json!(false), &json!(true)));
    assert_eq!(used["used_by"], "Sample2");
}

async fn use_a_cluster(sample: &Client) -> String {
    let resource = json!({"cpu": "1", "gpu": "1", "ram": " 1"});
    let body = json!({"cluster_name": "name", "resource": resource});
    let cluster = sample.put("/cluster/", body).await;
    assert_eq!(cluster.status, 201);
    let id = cluster.text("id");

    let page = sample.get("/cluster/?page=0&offset=1").await.expect(200);
    assert_eq!((&page["page"], &page["offset"], &page["total"]), (&json!(0), &json!(1), &json!(1)));
    assert_eq!(page["items"][0]["id"], json!(id));
    let detail = sample.get(&format!("/cluster/{id}/")).await.expect(200);
    assert_eq!(detail["resource"]["ram"], json!({"total": 1, "used": 0, "free": 1}));

    let path = format!("/cluster/{id}/resource/");
    let body = json!({"resource": resource});
    let check = sample.patch(&path, body.clone()).await.expect(200);
    assert_eq!(check, json!({"available": true, "missing": {}}));
    let taken = sample.post(&path, body.clone()).await.expect(200);
    assert_eq!(taken["resource"]["gpu"]["free"], json!(0));
    let check = sample.patch(&path, body.clone()).await.expect(200);
    assert_eq!(check["missing"], json!({"cpu": 1, "gpu": 1, "ram": 1}));
    sample.post(&path, body.clone()).await.expect(409);
    let given = sample.call("DELETE", &path, &body).await.expect(200);
    assert_eq!(given["resource"]["gpu"]["free"], json!(1));
    sample.call("DELETE", &path, &body).await.expect(409);
    id
}

async fn deploy(paddock: &TestPaddock, sample: &Client, cluster: &str) {
    let body = json!({"cluster_id": cluster, "resource": {"gpu": 1, "cpu": 1, "ram": 1}});
    let deployment = sample.put("/deployment/", body).await;
    assert_eq!(deployment.status, 201);
    let id = deployment.text("id");
    paddock.until(sample, &format!("/api/v1/deployments/{id}"), "status", "running").await;

    let page = sample.get(&format!("/deployment/?cluster_id={cluster}&id={id}")).await.expect(200);
    assert_eq!((&page["total"], &page["items"][0]["status"]), (&json!(1), &json!("running")));
    let full = sample.get(&format!("/cluster/{cluster}/")).await.expect(200);
    assert_eq!(full["resource"]["cpu"], json!({"total": 1, "used": 1, "free": 0}));

    sample.delete(&format!("/cluster/{cluster}/")).await.expect(409);
    let request = sample.request("DELETE", &format!("/deployment/{id}/"));
    let form = "application/x-www-form-urlencoded";
    let gone = sample.send(request.header("content-type", form).body("")).await;
    assert!(gone.status < 300, "{:#}", gone.json);
    let page = sample.get(&format!("/deployment/?cluster_id={cluster}")).await.expect(200);
    assert_eq!(page["items"], Value::Array(vec![]));
    sample.delete(&format!("/deployment/?clusterId={cluster}")).await.expect(202);
    sample.delete(&format!("/cluster/{cluster}/")).await.expect(202);
    sample.get(&format!("/cluster/{cluster}/")).await.expect(404);
}
