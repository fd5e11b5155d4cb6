//! The event log.

use model::{OrganizationId, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::page::truncate;

/// A change of a subject.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Sequence number in the log.
    pub seq: i64,
    /// Time of the change.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// Organization that owns the subject; null for shared subjects.
    #[schema(value_type = Option<String>)]
    pub organization_id: Option<OrganizationId>,
    /// Actor: `user:<id>`, `anonymous`, `worker:<name>`, `agent` or `server`.
    pub actor: String,
    /// Kind of the subject.
    pub kind: String,
    /// ID of the subject.
    pub subject: String,
    /// Event type, `kind.change`, for example `deployment.preempted`.
    #[serde(rename = "type")]
    pub change: String,
    /// State of the subject after the change, without secrets.
    #[schema(value_type = Object)]
    pub data: Value,
}

impl From<model::event::Event> for Event {
    fn from(e: model::event::Event) -> Self {
        Self {
            seq: e.seq,
            at: e.at,
            organization_id: e.organization_id,
            actor: e.actor,
            kind: e.kind,
            subject: e.subject,
            change: e.change,
            data: e.data,
        }
    }
}

/// A page of the event log.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    /// Events, oldest first.
    pub items: Vec<Event>,
    /// Cursor of the next page; pass it as `after`. Null on the last page.
    pub next: Option<i64>,
}

impl EventList {
    /// Creates a page from the first `limit` events of `found`, which holds one more if the log
    /// continues.
    pub fn new(mut events: Vec<model::event::Event>, limit: i64) -> Self {
        let has_more = truncate(&mut events, limit);
        let next = events.last().filter(|_| has_more).map(|event| event.seq);
        Self { items: events.into_iter().map(Event::from).collect(), next }
    }
}
