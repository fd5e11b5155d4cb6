//! Fixtures: environments and resources for tests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Map;

use super::{Environment, OnDrift, Reason, Status};
use crate::reason::StatusReason;
use crate::resource::{self, Resource, Status as ResourceStatus};
use crate::template::{Act, Executor, Node};
use crate::{EnvironmentId, OrganizationId, ResourceId, Time, UserId, Xid};

fn id(n: u32) -> Xid {
    Xid::new(n, [0; 5], n)
}

/// A minimal environment.
pub(crate) fn environment(status: Status) -> Environment {
    Environment {
        id: EnvironmentId(id(1)),
        organization_id: OrganizationId(id(2)),
        name: "shop".into(),
        description: String::new(),
        tags: BTreeMap::new(),
        templates: Vec::new(),
        parameters: Map::new(),
        on_drift: OnDrift::Report,
        status,
        reason: Reason::default(),
        status_since: Time(0),
        progress: 0,
        entry_points: Vec::new(),
        is_cancelled: false,
        destroy_at: None,
        reminders: 0,
        created_by: UserId(id(3)),
        generation: 1,
        created_at: Time(0),
        updated_at: Time(0),
        destroyed_at: None,
    }
}

/// A minimal resource.
pub(crate) fn resource(name: &str, after: &[&str], act: Act, status: ResourceStatus) -> Resource {
    Resource {
        id: ResourceId(id(9)),
        environment_id: EnvironmentId(id(1)),
        organization_id: OrganizationId(id(2)),
        node: Node {
            name: name.into(),
            of: name.into(),
            index: None,
            template: "shop@1".into(),
            executor: Executor::Command,
            is_action: false,
            description: String::new(),
            tags: BTreeMap::new(),
            with: Map::new(),
            health: None,
            after: after.iter().map(|&name| name.to_owned()).collect(),
            needs: None,
            parameters: BTreeSet::new(),
            outputs_of: BTreeSet::new(),
            print: "p".into(),
        },
        act,
        status,
        reason: resource::Reason::reported("no."),
        status_since: Time(0),
        progress: 0,
        print: (act != Act::Create).then(|| "p".into()),
        applied: None,
        tried: None,
        outputs: Map::new(),
        link: None,
        adopt: None,
        drift: Vec::new(),
        unexpected: Vec::new(),
        observed_at: None,
        attempts: 0,
        fence: 0,
        generation: 1,
        created_at: Time(0),
        updated_at: Time(0),
    }
}
