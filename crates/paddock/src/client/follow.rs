//! Follows the server's event stream and resumes it after a broken connection.

use std::time::Duration;

use reqwest::Response;
use tokio::time::{sleep, timeout};

use super::call::Call;
use super::error::Error;
use super::http::Api;
use super::sse::{Message, Parser};

/// Maximum silence: the server sends heartbeats more often than this.
const SILENCE: Duration = Duration::from_secs(45);
/// Pauses before reconnecting. After the last failed attempt, the stream ends.
const PAUSES_MS: [u64; 12] = [100, 250, 500, 1000, 2000, 5000, 5000, 5000, 5000, 5000, 5000, 5000];

/// An open event stream.
pub(crate) struct Follow<'a> {
    api: &'a Api,
    call: Call,
    response: Response,
    parser: Parser,
}

impl<'a> Follow<'a> {
    /// Opens the stream, starting with new events.
    pub(crate) async fn open(api: &'a Api, call: Call) -> Result<Self, Error> {
        let response = api.stream(&call, None).await?;
        let mut follow = Self { api, call, response, parser: Parser::default() };
        // The server sends its position first. Once it is known, a reconnect loses no event.
        for _ in PAUSES_MS {
            if follow.parser.last_id().is_some() {
                return Ok(follow);
            }
            follow.read().await?;
        }
        Err(api.invalid_response())
    }

    /// Waits for the next event.
    pub(crate) async fn next(&mut self) -> Result<Message, Error> {
        loop {
            if let Some(message) = self.parser.next() {
                return Ok(message);
            }
            self.read().await?;
        }
    }

    /// Reads more bytes and reconnects if the connection is dead.
    async fn read(&mut self) -> Result<(), Error> {
        match timeout(SILENCE, self.response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                self.parser.feed(&bytes).map_err(|_| self.api.invalid_response())
            }
            _ => self.reconnect().await,
        }
    }

    async fn reconnect(&mut self) -> Result<(), Error> {
        let mut outcome = Ok(());
        for pause_ms in PAUSES_MS {
            sleep(Duration::from_millis(pause_ms)).await;
            match self.api.stream(&self.call, self.parser.last_id()).await {
                Ok(response) => {
                    self.response = response;
                    self.parser = Parser::after(self.parser.last_id().map(Into::into));
                    return Ok(());
                }
                Err(error) if error.is_transient() => outcome = Err(error),
                Err(error) => return Err(error),
            }
        }
        outcome
    }
}
