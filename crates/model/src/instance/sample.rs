//! A sample instance for tests.

use super::{Detail, Instance, Reason, Status};
use crate::{ClusterId, DeploymentId, InstanceId, OrganizationId, Time, Xid};

/// An id from a number.
pub(super) fn xid(n: u32) -> Xid {
    Xid::new(1, [0; 5], n)
}

/// An instance on a cluster with a third-party agent.
pub(super) fn instance(status: Status) -> Instance {
    Instance {
        id: InstanceId(xid(1)),
        kind: "kafka".into(),
        organization_id: OrganizationId(xid(2)),
        owner: "ann".into(),
        name: "events".into(),
        cloud_provider: "aws".into(),
        region: "us-east-1".into(),
        multi_az: true,
        instance_type: "standard".into(),
        size: "x1".into(),
        reauthentication: true,
        status,
        reason: Reason::default(),
        status_since: Time(0),
        pinned_to: None,
        cluster_id: Some(ClusterId(xid(3))),
        deployment_id: Some(DeploymentId(xid(4))),
        host: Some("events-1.kafka.example".into()),
        expires_at: None,
        detail: Detail { placement: Some(xid(5)), ..Detail::default() },
        generation: 1,
        created_at: Time(0),
        updated_at: Time(0),
    }
}
