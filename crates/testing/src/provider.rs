//! A provider of clusters in memory, which can be told to be slow, or down.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::cluster::Ask;
use model::{ClusterId, Secret};
use port::{Access, Answer, Made, Order, Progress, Provider};
use tokio::sync::Notify;

use crate::outside::Fake;

/// What a provider has made.
#[derive(Debug, Default)]
pub struct Sites {
    /// Each cluster.
    pub of: BTreeMap<ClusterId, Site>,
    /// What was asked, in order.
    pub asked: Vec<Ask>,
    /// How often each thing is said to be going on before it is done.
    pub slowness: u32,
    /// Which call is carried out but never answered, as when who asked dies meanwhile.
    pub silent_at: Option<usize>,
    /// Told when that has happened.
    pub fell_silent: Arc<Notify>,
}

/// A cluster that was made.
#[derive(Debug, Default)]
pub struct Site {
    /// The order as it came last.
    pub order: Option<Order>,
    /// What its agent was told.
    pub agent: Option<Access>,
    waits: BTreeMap<&'static str, u32>,
}

/// A provider of clusters.
pub type FakeProvider = Fake<Sites>;

impl Sites {
    fn ask(&mut self, ask: Ask, order: &Order) -> &mut Site {
        self.asked.push(ask);
        let site = self.of.entry(order.id).or_default();
        site.order = Some(order.clone());
        site
    }

    fn progress(&mut self, order: &Order, what: &'static str) -> Progress {
        let slowness = self.slowness;
        let waits = self.of.entry(order.id).or_default().waits.entry(what).or_default();
        *waits += 1;
        if *waits <= slowness {
            return Progress::Going(format!("It is {what} ({waits} of {slowness})."));
        }
        let keep = BTreeMap::from([("note".to_owned(), Secret::new("kept by the provider"))]);
        Progress::Done(Made {
            foreign_id: Some(format!("site-{}", order.id)),
            dns: Some(format!("{}.clusters.test", order.name)),
            keep,
        })
    }
}

impl FakeProvider {
    fn carry_out(&self, act: impl FnOnce(&mut Sites) -> Progress) -> Answer<'_, Progress> {
        let answer = self.answer(act);
        let sites = self.held();
        if sites.silent_at.is_none_or(|at| at + 1 != sites.asked.len()) {
            return answer;
        }
        let fell_silent = sites.fell_silent.clone();
        Box::pin(async move {
            fell_silent.notify_one();
            std::future::pending().await
        })
    }
}

impl Provider for FakeProvider {
    fn create<'a>(&'a self, order: &'a Order) -> Answer<'a, Progress> {
        self.carry_out(|sites| {
            sites.ask(Ask::Create, order);
            sites.progress(order, "begun")
        })
    }

    fn status<'a>(&'a self, order: &'a Order) -> Answer<'a, Progress> {
        self.carry_out(|sites| {
            sites.ask(Ask::Status, order);
            sites.progress(order, "made")
        })
    }

    fn prepare<'a>(&'a self, order: &'a Order, agent: &'a Access) -> Answer<'a, Progress> {
        self.carry_out(|sites| {
            sites.ask(Ask::Prepare, order).agent = Some(agent.clone());
            sites.progress(order, "prepared")
        })
    }

    fn remove<'a>(&'a self, order: &'a Order) -> Answer<'a, Progress> {
        self.carry_out(|sites| {
            sites.ask(Ask::Remove, order);
            let progress = sites.progress(order, "removed");
            if matches!(progress, Progress::Done(_)) {
                sites.of.remove(&order.id);
            }
            progress
        })
    }
}
