//! Reader of an event stream.

use std::time::Duration;

use serde_json::Value;
use testing::Client;

/// An open stream.
pub(crate) struct Stream {
    response: reqwest::Response,
    client: Client,
    query: String,
    text: String,
    /// Last received ID, also without an event.
    pub(crate) place: Option<i64>,
}

/// A received event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Received {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Stream {
    /// Opens a stream; returns once the server has sent its position.
    pub(crate) async fn open(client: &Client, query: &str, resume: Option<i64>) -> Self {
        let path = format!("/api/v1/events{query}");
        let mut request = client.request("GET", &path).header("accept", "text/event-stream");
        if let Some(id) = resume {
            request = request.header("last-event-id", id.to_string());
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let (client, query) = (client.clone(), query.to_owned());
        let mut stream = Self { response, client, query, text: String::new(), place: None };
        while stream.place.is_none() {
            let block = stream.block().await;
            stream.place = field(&block, "id").map(|id| id.parse().unwrap());
        }
        stream
    }

    /// Returns the next event; fails after ten seconds.
    pub(crate) async fn next(&mut self) -> Received {
        loop {
            let wait = tokio::time::timeout(Duration::from_secs(10), self.block());
            let block = wait.await.expect("an event within ten seconds");
            let Some(data) = field(&block, "data") else { continue };
            let id = field(&block, "id").unwrap().parse().unwrap();
            self.place = Some(id);
            let data: Value = serde_json::from_str(data).unwrap();
            let name = field(&block, "event").unwrap().to_owned();
            assert_eq!((&data["seq"], &data["type"]), (&id.into(), &name.as_str().into()));
            return Received { id, name, data };
        }
    }

    /// Returns the next event if it arrives within that time.
    pub(crate) async fn within(&mut self, time: Duration) -> Option<Received> {
        tokio::time::timeout(time, self.next()).await.ok()
    }

    /// Whether the stream ends soon without another event.
    pub(crate) async fn ends(&mut self) -> bool {
        let rest = async {
            while let Ok(Some(chunk)) = self.response.chunk().await {
                if String::from_utf8_lossy(&chunk).contains("data:") {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(Duration::from_secs(3), rest).await.unwrap_or(false)
    }

    /// Whether the stream ends soon, whatever it sends before.
    pub(crate) async fn closes(&mut self) -> bool {
        let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        tokio::time::timeout(Duration::from_secs(5), rest).await.is_ok()
    }

    /// Reads up to the next empty line.
    async fn block(&mut self) -> String {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let data = field(&block, "data").unwrap_or("null");
                self.client.received("GET /api/v1/events (stream)", &self.query, 200, data);
                return block;
            }
            let chunk = self.response.chunk().await.unwrap().expect("the stream goes on");
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

fn field<'a>(block: &'a str, name: &str) -> Option<&'a str> {
    block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim_start))
}
