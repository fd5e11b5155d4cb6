//! Environments in memory, asked for and carried out as the workers do it, beside what is really there.

use std::collections::BTreeMap;

use super::*;
use crate::environment::examples::{environment, resource};
use crate::environment::{self, turn};
use crate::resource::{self, Resource, Status};

/// How a step ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fate {
    /// As it should.
    Well,
    /// It fails before anything is done.
    Fails,
    /// It fails half-way: all was done but the last.
    FailsLate,
    /// All is done, but the server dies before it has written that down.
    Crashes,
}

/// What is really there of one resource.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Real {
    /// What it needs.
    after: Vec<String>,
    /// What its executor was told.
    told: Map<String, Value>,
    /// Which of all that were ever made it is.
    number: usize,
}

/// An environment.
#[derive(Debug, Default, Clone)]
pub(super) struct Made {
    /// As it is written down.
    pub(super) all: Vec<Resource>,
    /// As it is.
    pub(super) real: BTreeMap<String, Real>,
    /// How much was ever made.
    count: usize,
    /// What was done, in order.
    pub(super) done: Vec<(Act, String)>,
}

impl Made {
    pub(super) fn context(&self, wish: &Expanded) -> Context {
        Context {
            environment_name: "shop".to_owned(),
            parameters: wish.parameters.clone(),
            outputs: resource::outputs(&self.all),
            ..Context::default()
        }
    }

    pub(super) fn exists(&self) -> Vec<Existing> {
        self.all.iter().map(Resource::existing).collect()
    }

    pub(super) fn plan(&self, wish: &Expanded) -> Plan {
        plan(&wish.nodes, &self.context(wish), &self.exists())
    }

    /// Has what is wished be written down as what is to be done.
    pub(super) fn ask(&mut self, wish: &Expanded) -> Plan {
        let plan = self.plan(wish);
        for step in &plan.steps {
            let node = wish.nodes.iter().find(|node| node.name == step.name);
            let Some(one) = self.all.iter_mut().find(|one| one.node.name == step.name) else {
                let mut new = resource(&step.name, &[], step.act, Status::Pending);
                new.node = node.expect("what is not there is wished").clone();
                self.all.push(new);
                continue;
            };
            one.aim(node, step.act);
            if let Some(real) = self.real.get_mut(&step.name).filter(|_| step.act == Act::Nothing) {
                real.after.clone_from(&one.node.after);
            }
            if step.act != Act::Nothing {
                assert!(one.status == Status::Pending || one.status.may_become(Status::Pending));
                one.status = Status::Pending;
            }
        }
        plan
    }

    /// Takes turns until nothing goes on; where the environment goes then.
    pub(super) fn go_on(
        &mut self,
        wish: &Expanded,
        status: environment::Status,
        mut fate: impl FnMut() -> Fate,
    ) -> environment::Status {
        for _ in 0..1000 {
            let turn = turn(&environment(status), &self.all, 2);
            if let Some((to, _)) = turn.outcome {
                assert!(status.may_become(to), "{status} to {to}");
                return to;
            }
            let running = |one: &&Resource| one.status.is_running();
            let begin = turn.begin.iter().map(|&i| &self.all[i]);
            let next: Vec<String> = begin
                .chain(self.all.iter().filter(running))
                .map(|one| one.node.name.clone())
                .collect();
            assert!(next.len() <= 2, "{next:?}");
            for name in next {
                let is_end = status == environment::Status::Destroying;
                self.step(&name, wish, is_end, fate());
            }
        }
        panic!("it does not come to an end:\n{}", self.words());
    }

    fn step(&mut self, name: &str, wish: &Expanded, is_end: bool, fate: Fate) {
        let at = self.all.iter().position(|one| one.node.name == name).expect("it is there");
        self.all[at].fence = 1;
        if is_end {
            self.all[at].act = Act::Destroy;
        }
        match self.all[at].act {
            Act::Destroy => self.destroy(at, fate),
            _ => self.make(at, wish, fate),
        }
    }

    fn fail(&mut self, at: usize) {
        self.all[at].status = Status::Failed;
        self.all[at].attempts += 1;
    }

    fn destroy(&mut self, at: usize, fate: Fate) {
        self.all[at].status = Status::Destroying;
        if fate == Fate::Fails {
            return self.fail(at);
        }
        let name = self.all[at].node.name.clone();
        self.not_needed(&name);
        self.real.remove(&name);
        match fate {
            Fate::FailsLate => self.fail(at),
            Fate::Crashes => {}
            _ => {
                self.all.remove(at);
                self.done.push((Act::Destroy, name));
            }
        }
    }

    /// Nobody needs what is destroyed, unless that can't wait: something that it needs is replaced, or
    /// needs it in turn.
    fn not_needed(&self, name: &str) {
        let by = self.real.iter().find(|(_, real)| real.after.iter().any(|other| other == name));
        let Some((user, _)) = by else { return };
        let (mut below, mut seen) = (vec![name], Names::new());
        while let Some(here) = below.pop() {
            let one = self.all.iter().find(|one| one.node.name == here);
            let Some(one) = one.filter(|_| seen.insert(here.to_owned())) else { continue };
            if one.act == Act::Replace || one.needs().any(|other| other == name) {
                return;
            }
            below.extend(one.needs().map(String::as_str));
        }
        panic!("{name} is destroyed, and {user} needs it:\n{}", self.words());
    }

    /// All that is written down, and what is there of it.
    fn words(&self) -> String {
        let one = |one: &Resource| {
            let real = self.real.get(&one.node.name).map(|real| &real.after);
            let (node, print) = (&one.node, one.print.is_some());
            format!(
                "{} {} {} after {:?}, made: {print}, real: {real:?}\n",
                node.name, one.status, one.act, node.after
            )
        };
        self.all.iter().map(one).collect::<Vec<_>>().concat()
    }

    fn make(&mut self, at: usize, wish: &Expanded, fate: Fate) {
        let context = self.context(wish);
        let node = self.all[at].node.clone();
        let Ok(told) = fill(&node, &context) else { return self.fail(at) };
        if is_already_so(&self.all[at], &told) {
            return self.applied(at, told, None);
        }
        let applied = self.all[at].applied.clone();
        let must_go = applied.is_some_and(|applied| is_replaced(node.executor, &applied, &told));
        if self.all[at].act == Act::Replace || self.all[at].act == Act::Update && must_go {
            (self.all[at].act, self.all[at].status) = (Act::Replace, Status::Destroying);
            if fate == Fate::Fails {
                return self.fail(at);
            }
            self.real.remove(&node.name);
            if fate == Fate::FailsLate {
                return self.fail(at);
            }
            let one = &mut self.all[at];
            (one.print, one.applied, one.act, one.status) =
                (None, None, Act::Create, Status::Planning);
            (one.outputs, one.node.needs) = (Map::new(), None);
            self.done.push((Act::Replace, node.name.clone()));
            if fate == Fate::Crashes {
                return;
            }
        }
        self.all[at].status = Status::Applying;
        if fate == Fate::Fails {
            return self.fail(at);
        }
        for other in &node.after {
            assert!(self.real.contains_key(other), "{} is made without {other}", node.name);
        }
        let number = self.real.get(&node.name).map(|real| real.number);
        let number = number.unwrap_or_else(|| {
            self.count += 1;
            self.count
        });
        let real = Real { after: node.after.clone(), told: told.clone(), number };
        self.real.insert(node.name.clone(), real);
        match fate {
            Fate::FailsLate => self.fail(at),
            Fate::Crashes => {}
            _ => self.applied(at, told, Some(number)),
        }
    }

    fn applied(&mut self, at: usize, told: Map<String, Value>, made: Option<usize>) {
        let one = &mut self.all[at];
        if let Some(number) = made {
            let host = format!("{}.local", one.node.name);
            one.outputs = map(json!({
                "id": number, "host": host, "endpoint": host, "bootstrap_server_host": host,
                "path": told.get("path"), "told": told,
            }));
            self.done.push((one.act, one.node.name.clone()));
        } else if let Some(real) = self.real.get_mut(&one.node.name) {
            real.after.clone_from(&one.node.after);
        }
        (one.print, one.applied) = (Some(one.node.print.clone()), Some(told));
        (one.act, one.attempts, one.status) = (Act::Nothing, 0, Status::Applied);
        one.node.needs = None;
    }

    /// Applies a wish, and nothing goes wrong; what was done.
    pub(super) fn become_(&mut self, wish: &Expanded) -> Vec<String> {
        self.done.clear();
        self.ask(wish);
        let to = self.go_on(wish, environment::Status::Deploying, || Fate::Well);
        assert_eq!(to, environment::Status::Validating, "{}", self.words());
        self.done.iter().map(|(act, name)| format!("{act} {name}")).collect()
    }

    /// All is there, nothing else is, and every executor was told what it would be told now.
    pub(super) fn is_as_wished(&self, wish: &Expanded) {
        let names: Names = wish.nodes.iter().map(|node| node.name.clone()).collect();
        let real: Names = self.real.keys().cloned().collect();
        assert_eq!(real, names);
        for node in &wish.nodes {
            let told = fill(node, &self.context(wish)).unwrap();
            assert_eq!(self.real[&node.name].told, told, "{}", node.name);
        }
        let plan = self.plan(wish);
        assert!(plan.steps.iter().all(|step| step.act == Act::Nothing), "{plan:#?}");
    }
}

fn is_already_so(one: &Resource, told: &Map<String, Value>) -> bool {
    one.act == Act::Update && one.applied.as_ref() == Some(told) && one.attempts == 0
}
