//! Images on a server without an image store.

use serde_json::json;
use testing::{TestPaddock, on_both_engines};

on_both_engines! {
    async fn image_requests_without_a_store_name_the_runtimes_that_have_one(engine: Engine) {
        let paddock = TestPaddock::start(engine).await;
        let ann = paddock.owner("ann").await;
        assert_eq!(ann.get("/api/v1/images").await.expect(200)["items"], json!([]));
        let load = |kind: &str, body: Vec<u8>| {
            let request = ann.request("POST", "/api/v1/images").header("content-type", kind);
            ann.send(request.body(body))
        };
        let refused = load("application/x-tar", vec![0; 3 << 20]).await;
        assert_eq!(refused.status, 409, "{:#}", refused.json);
        let detail = refused.json["detail"].as_str().unwrap();
        assert!(detail.contains("its runtime is simulated"), "{detail}");
        assert!(detail.contains("the embedded or docker runtime"), "{detail}");
        assert_eq!(load("application/json", b"{}".to_vec()).await.status, 415);
        let missing = ann.delete("/api/v1/images?name=localhost/web:1").await;
        assert_eq!(missing.status, 404, "{:#}", missing.json);
    }
}
