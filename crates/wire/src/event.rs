//! The event log.

use model::{OrganizationId, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::page::cut;

/// One change of one subject.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its place in the log.
    pub seq: i64,
    /// When it happened.
    #[schema(value_type = String, format = DateTime)]
    pub at: Time,
    /// Whose subject it is; nobody for what is shared.
    #[schema(value_type = Option<String>)]
    pub organization_id: Option<OrganizationId>,
    /// Who did it: `user:<id>`, `anonymous`, `worker:<name>`, `agent` or `server`.
    pub actor: String,
    /// What kind of subject changed.
    pub kind: String,
    /// The subject's id.
    pub subject: String,
    /// `kind.change`, for example `deployment.preempted`.
    #[serde(rename = "type")]
    pub change: String,
    /// The subject's state after the change, without secrets.
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

/// A part of the log.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    /// The events, oldest first.
    pub items: Vec<Event>,
    /// Give this as `after` to get the next part; nothing if this was the last.
    pub next: Option<i64>,
}

impl EventList {
    /// The first `limit` of `found`, which holds one more if the log goes on.
    pub fn new(mut found: Vec<model::event::Event>, limit: i64) -> Self {
        let has_more = cut(&mut found, limit);
        let next = found.last().filter(|_| has_more).map(|event| event.seq);
        Self { items: found.into_iter().map(Event::from).collect(), next }
    }
}
