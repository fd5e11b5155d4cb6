//! In-memory environments that are reconciled as by the workers, next to the actual resources.

use std::collections::BTreeMap;

use super::*;
use crate::environment::examples::{environment, resource};
use crate::environment::{self, schedule};
use crate::resource::{self, Resource, Status};

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum StepOutcome {
    /// The step succeeds.
    Succeeds,
    /// The step fails before any effect.
    FailsEarly,
    /// The step fails after all effects but the last.
    FailsLate,
    /// All effects happen, but the server crashes before recording them.
    Crashes,
}

/// The actual state of a resource.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Actual {
    /// Its dependencies.
    after: Vec<String>,
    /// The applied configuration.
    config: Map<String, Value>,
    /// Distinguishes it from replaced predecessors.
    number: usize,
}

/// A simulated environment.
#[derive(Debug, Default, Clone)]
pub(super) struct Simulator {
    /// The recorded state.
    pub(super) resources: Vec<Resource>,
    /// The actual state.
    pub(super) actual: BTreeMap<String, Actual>,
    /// The number of resources created so far.
    count: usize,
    /// The completed steps, in order.
    pub(super) done: Vec<(Act, String)>,
}

impl Simulator {
    pub(super) fn context(&self, desired: &Expanded) -> Context {
        Context {
            environment_name: "shop".to_owned(),
            organization_id: "acme".to_owned(),
            parameters: desired.parameters.clone(),
            outputs: resource::outputs(&self.resources),
            ..Context::default()
        }
    }

    pub(super) fn existing(&self) -> Vec<Existing> {
        self.resources.iter().map(Resource::existing).collect()
    }

    pub(super) fn plan(&self, desired: &Expanded) -> Plan {
        plan(&desired.nodes, &self.context(desired), &self.existing())
    }

    /// Records the plan for the desired state.
    pub(super) fn request(&mut self, desired: &Expanded) -> Plan {
        let plan = self.plan(desired);
        for step in &plan.steps {
            let node = desired.nodes.iter().find(|node| node.name == step.name);
            let Some(one) = self.resources.iter_mut().find(|one| one.node.name == step.name) else {
                let mut new = resource(&step.name, &[], step.act, Status::Pending);
                new.node = node.expect("a missing resource is desired").clone();
                self.resources.push(new);
                continue;
            };
            one.set_desired(node, step.act);
            if let Some(actual) =
                self.actual.get_mut(&step.name).filter(|_| step.act == Act::Nothing)
            {
                actual.after.clone_from(&one.node.after);
            }
            if step.act != Act::Nothing {
                assert!(one.status == Status::Pending || one.status.may_become(Status::Pending));
                one.status = Status::Pending;
            }
        }
        plan
    }

    /// Reconciles until nothing runs; returns the next status of the environment.
    pub(super) fn reconcile(
        &mut self,
        desired: &Expanded,
        status: environment::Status,
        mut outcome: impl FnMut() -> StepOutcome,
    ) -> environment::Status {
        for _ in 0..1000 {
            let schedule = schedule(&environment(status), &self.resources, 2);
            if let Some((to, _)) = schedule.outcome {
                assert!(status.may_become(to), "{status} to {to}");
                return to;
            }
            let running = |one: &&Resource| one.status.is_running();
            let begin = schedule.start.iter().map(|&i| &self.resources[i]);
            let next: Vec<String> = begin
                .chain(self.resources.iter().filter(running))
                .map(|one| one.node.name.clone())
                .collect();
            assert!(next.len() <= 2, "{next:?}");
            for name in next {
                let is_destruction = status == environment::Status::Destroying;
                self.step(&name, desired, is_destruction, outcome());
            }
        }
        panic!("does not finish:\n{}", self.describe());
    }

    fn step(&mut self, name: &str, desired: &Expanded, is_destruction: bool, outcome: StepOutcome) {
        let at =
            self.resources.iter().position(|one| one.node.name == name).expect("resource exists");
        self.resources[at].fence = 1;
        if is_destruction {
            self.resources[at].act = Act::Destroy;
        }
        match self.resources[at].act {
            Act::Destroy => self.destroy(at, outcome),
            _ => self.create_or_update(at, desired, outcome),
        }
    }

    fn fail(&mut self, at: usize) {
        self.resources[at].status = Status::Failed;
        self.resources[at].attempts += 1;
    }

    fn destroy(&mut self, at: usize, outcome: StepOutcome) {
        self.resources[at].status = Status::Destroying;
        if outcome == StepOutcome::FailsEarly {
            return self.fail(at);
        }
        let name = self.resources[at].node.name.clone();
        self.assert_not_needed(&name);
        self.actual.remove(&name);
        match outcome {
            StepOutcome::FailsLate => self.fail(at),
            StepOutcome::Crashes => {}
            _ => {
                self.resources.remove(at);
                self.done.push((Act::Destroy, name));
            }
        }
    }

    /// Asserts that no resource depends on the destroyed one, unless the destroy can't wait: a
    /// dependency of it is replaced, or depends on it in turn.
    fn assert_not_needed(&self, name: &str) {
        let by =
            self.actual.iter().find(|(_, actual)| actual.after.iter().any(|other| other == name));
        let Some((user, _)) = by else { return };
        let (mut below, mut seen) = (vec![name], Names::new());
        while let Some(here) = below.pop() {
            let one = self.resources.iter().find(|one| one.node.name == here);
            let Some(one) = one.filter(|_| seen.insert(here.to_owned())) else { continue };
            if one.act == Act::Replace || one.needs().any(|other| other == name) {
                return;
            }
            below.extend(one.needs().map(String::as_str));
        }
        panic!("{name} is destroyed, but {user} depends on it:\n{}", self.describe());
    }

    /// The recorded and the actual state, for messages.
    fn describe(&self) -> String {
        let one = |one: &Resource| {
            let actual = self.actual.get(&one.node.name).map(|actual| &actual.after);
            let (node, print) = (&one.node, one.print.is_some());
            format!(
                "{} {} {} after {:?}, applied: {print}, actual: {actual:?}\n",
                node.name, one.status, one.act, node.after
            )
        };
        self.resources.iter().map(one).collect::<Vec<_>>().concat()
    }

    fn create_or_update(&mut self, at: usize, desired: &Expanded, outcome: StepOutcome) {
        let context = self.context(desired);
        let node = self.resources[at].node.clone();
        let Ok(config) = fill(&node, &context) else { return self.fail(at) };
        if is_up_to_date(&self.resources[at], &config) {
            return self.applied(at, config, None);
        }
        let applied = self.resources[at].applied.clone();
        let must_replace =
            applied.is_some_and(|applied| forces_replacement(node.executor, &applied, &config));
        if self.resources[at].act == Act::Replace
            || self.resources[at].act == Act::Update && must_replace
        {
            (self.resources[at].act, self.resources[at].status) =
                (Act::Replace, Status::Destroying);
            if outcome == StepOutcome::FailsEarly {
                return self.fail(at);
            }
            self.actual.remove(&node.name);
            if outcome == StepOutcome::FailsLate {
                return self.fail(at);
            }
            let one = &mut self.resources[at];
            (one.print, one.applied, one.act, one.status) =
                (None, None, Act::Create, Status::Planning);
            (one.outputs, one.node.needs) = (Map::new(), None);
            self.done.push((Act::Replace, node.name.clone()));
            if outcome == StepOutcome::Crashes {
                return;
            }
        }
        self.resources[at].status = Status::Applying;
        if outcome == StepOutcome::FailsEarly {
            return self.fail(at);
        }
        for other in &node.after {
            assert!(self.actual.contains_key(other), "{} is created without {other}", node.name);
        }
        let number = self.actual.get(&node.name).map(|actual| actual.number);
        let number = number.unwrap_or_else(|| {
            self.count += 1;
            self.count
        });
        let actual = Actual { after: node.after.clone(), config: config.clone(), number };
        self.actual.insert(node.name.clone(), actual);
        match outcome {
            StepOutcome::FailsLate => self.fail(at),
            StepOutcome::Crashes => {}
            _ => self.applied(at, config, Some(number)),
        }
    }

    fn applied(&mut self, at: usize, config: Map<String, Value>, created: Option<usize>) {
        let one = &mut self.resources[at];
        if let Some(number) = created {
            let host = format!("{}.local", one.node.name);
            one.outputs = map(json!({
                "id": number, "host": host, "endpoint": host, "bootstrap_server_host": host,
                "path": config.get("path"), "config": config,
            }));
            self.done.push((one.act, one.node.name.clone()));
        } else if let Some(actual) = self.actual.get_mut(&one.node.name) {
            actual.after.clone_from(&one.node.after);
        }
        (one.print, one.applied) = (Some(one.node.print.clone()), Some(config));
        (one.act, one.attempts, one.status) = (Act::Nothing, 0, Status::Applied);
        one.node.needs = None;
    }

    /// Applies the desired state without failures; returns the completed steps.
    pub(super) fn apply(&mut self, desired: &Expanded) -> Vec<String> {
        self.done.clear();
        self.request(desired);
        let to = self.reconcile(desired, environment::Status::Deploying, || StepOutcome::Succeeds);
        assert_eq!(to, environment::Status::Validating, "{}", self.describe());
        self.done.iter().map(|(act, name)| format!("{act} {name}")).collect()
    }

    /// Asserts that the actual state matches the desired state, and that nothing is left to do.
    pub(super) fn assert_converged(&self, desired: &Expanded) {
        let names: Names = desired.nodes.iter().map(|node| node.name.clone()).collect();
        let actual: Names = self.actual.keys().cloned().collect();
        assert_eq!(actual, names);
        for node in &desired.nodes {
            let config = fill(node, &self.context(desired)).unwrap();
            assert_eq!(self.actual[&node.name].config, config, "{}", node.name);
        }
        let plan = self.plan(desired);
        assert!(plan.steps.iter().all(|step| step.act == Act::Nothing), "{plan:#?}");
    }
}

fn is_up_to_date(one: &Resource, config: &Map<String, Value>) -> bool {
    one.act == Act::Update && one.applied.as_ref() == Some(config) && one.attempts == 0
}
