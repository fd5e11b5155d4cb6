//! Fixtures for instances: policies, and external systems that can be made unavailable.

use std::sync::Arc;
use std::time::Duration;

use engine::cluster::Providers;
use engine::instance::ExternalSystems;
use engine::placement;
use engine::rules::{ActiveRules, RulesReader, RulesWriter};
use model::InstanceId;
use model::cluster::HeartbeatTimeouts;
use model::event::Actor;
use model::instance::{Charge, Detail, Instance, NewInstance, Reason, Status};
use model::kind::Catalog;
use model::reason::Requester;
use server::Parts;
use store::{Db, Page, Scope, instance};
use testing::{FakeDns, FakeOperation, FakeProbe, FakeSeal, FakeSso, rows};

use crate::probe::until;
use crate::world::World;

pub(crate) struct Fleet {
    pub(crate) rules: RulesReader,
    pub(crate) rules_writer: RulesWriter,
    pub(crate) dns: Arc<FakeDns>,
    pub(crate) sso: Arc<FakeSso>,
    pub(crate) seal: Arc<FakeSeal>,
    pub(crate) provider: Arc<FakeOperation>,
    pub(crate) executor: Arc<FakeOperation>,
    pub(crate) probe: Arc<FakeProbe>,
    /// Executors that are not configured.
    pub(crate) missing: Vec<model::template::Executor>,
}

impl Fleet {
    pub(crate) fn new() -> Self {
        let (rules_writer, rules) = RulesWriter::new(ActiveRules {
            catalog: Arc::new(Catalog::built_in()),
            quota: None,
            denied: Arc::default(),
            pools: Arc::default(),
        });
        let (dns, sso, seal) = (Arc::default(), Arc::default(), Arc::default());
        let (provider, executor, probe) = (Arc::default(), Arc::default(), Arc::default());
        let missing = Vec::new();
        Self { rules, rules_writer, dns, sso, seal, provider, executor, probe, missing }
    }

    /// The components of a server with these external systems, without API and agent.
    pub(crate) fn parts(&self, db: &Db, name: &str) -> Parts {
        let mut executors = testing::executors(&self.executor);
        executors.retain(|(of, _)| !self.missing.contains(of));
        Parts {
            db: db.clone(),
            name: name.to_owned(),
            rules: self.rules.clone(),
            external: self.outside(),
            providers: Some(self.providers()),
            executors,
            missing: |executor| format!("Executor {executor} is not configured."),
            calls: Some(self.executor.clone()),
            probe: self.probe.clone(),
            observe_every: Duration::from_mins(10),
            monitored: Vec::new(),
            runtime: None,
            machine: None,
            driver: engine::Options::default(),
            placement: placement::Settings::default(),
            heartbeat_timeouts: HeartbeatTimeouts::default(),
            api: api::Settings { limits: rows::LIMITS, ..api::Settings::default() },
        }
    }

    /// Providers of clusters.
    pub(crate) fn providers(&self) -> Providers {
        testing::providers(&self.provider, self.seal.clone(), "http://paddock.test", "test")
    }

    pub(crate) fn outside(&self) -> ExternalSystems {
        ExternalSystems {
            dns: Some(self.dns.clone()),
            sso: Some(self.sso.clone()),
            seal: self.seal.clone(),
            domain: None,
            rotate_every: Some(Duration::from_hours(24 * 30)),
        }
    }
}

/// A request for a standard dinosaur.
pub(crate) fn dinosaur(name: &str) -> NewInstance {
    let catalog = Catalog::built_in();
    let kind = catalog.kind("dinosaur").unwrap();
    let size = kind.instance_type("standard").unwrap().default_size();
    let mut detail = Detail { resources: size.resources.clone(), units: 1, ..Detail::default() };
    detail.billing.model = "standard".into();
    detail.billing.desired = "standard".into();
    let charge = Charge {
        holder: "organization/acme".into(),
        account: "standard.standard".into(),
        units: 1,
    };
    NewInstance {
        kind: "dinosaur".into(),
        owner: "acme".into(),
        name: name.into(),
        cloud_provider: "local".into(),
        region: "local".into(),
        multi_az: true,
        instance_type: "standard".into(),
        size: size.id.clone(),
        reauthentication: true,
        pinned_to: None,
        lifespan: None,
        unit: kind.unit("standard"),
        priority: kind.priority,
        detail,
        charges: vec![(charge, None)],
    }
}

impl World {
    pub(crate) async fn create_instance(&self, new: &NewInstance) -> InstanceId {
        let mut tx = self.db.begin(Actor::Anonymous).await.unwrap();
        let made = instance::create(&mut tx, self.owner, new).await.unwrap();
        tx.commit().await.unwrap();
        made.id
    }

    pub(crate) async fn instance(&self, id: InstanceId) -> Option<Instance> {
        instance::get(&mut self.db.read().await.unwrap(), Scope::All, id).await.ok()
    }

    pub(crate) async fn instances(&self) -> Vec<Instance> {
        let (mut read, page) = (self.db.read().await.unwrap(), Page::first(100_000));
        instance::list(&mut read, Scope::All, &instance::Filter::default(), &page).await.unwrap()
    }

    /// Waits until the instance has the status.
    pub(crate) async fn until_instance(&self, id: InstanceId, status: Status) -> Instance {
        until(status.as_str(), async || {
            self.instance(id).await.is_some_and(|found| found.status == status)
        })
        .await;
        self.instance(id).await.unwrap()
    }

    /// Waits until the instance has this reason, by the name of its variant.
    pub(crate) async fn until_reason(&self, id: InstanceId, variant: &str) -> Reason {
        until(variant, async || {
            self.instance(id).await.is_some_and(|found| <&str>::from(&found.reason) == variant)
        })
        .await;
        self.instance(id).await.unwrap().reason
    }

    pub(crate) async fn until_instance_deleted(&self, id: InstanceId) {
        until("deleted", async || self.instance(id).await.is_none()).await;
    }

    pub(crate) async fn end(&self, id: InstanceId) {
        let mut tx = self.db.begin(Actor::Anonymous).await.unwrap();
        let by = Requester::User { name: "acme".into() };
        instance::request_delete(&mut tx, Scope::All, id, by).await.unwrap();
        tx.commit().await.unwrap();
    }
}
