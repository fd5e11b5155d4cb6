//! Random histories of small worlds: the rules hold after every round.

use proptest::prelude::*;
use proptest::sample::Index;

use super::oracle::{Facts, KINDS};
use super::*;

/// A step of a history.
#[derive(Debug, Clone)]
enum Op {
    Arrive(Request),
    /// A unit that is placed or stopping ends.
    End(Index),
    /// A stopping unit has stopped and is requeued.
    Stopped(Index),
    /// A unit is stopped from outside the scheduler.
    Stop(Index),
    /// A pending unit is cancelled.
    Cancel(Index),
    /// A start could not be persisted.
    Refuse(Index),
    Reprioritize(Index, i64),
    Resize(Index, i64, i64),
    Take(Index, i64),
    Toggle(Index),
    Grow(Index, i64),
    Shrink(Index),
    Budget(u32, Option<u32>),
    /// The machine changes its size.
    Machine(i64, i64),
    Weight(u32, i64),
    Pass(i64),
    Decide(usize),
}

#[derive(Debug, Clone)]
struct Request {
    cpu: i64,
    gpu: i64,
    ram: i64,
    priority: i64,
    organization: u32,
    pin: Option<u32>,
    zone: Option<u8>,
    owner: Option<u32>,
    is_container: bool,
}

fn request() -> impl Strategy<Value = Request> {
    let size = (1i64..6, prop_oneof![3 => Just(0i64), 1 => 1i64..3], 0i64..4);
    let pin = prop::option::weighted(0.3, 1u32..5);
    let zone = prop::option::weighted(0.2, 0u8..2);
    let owner = prop::option::weighted(0.2, 900u32..903);
    (size, 0i64..4, 1u32..3, pin, zone, owner, any::<bool>()).prop_map(
        |((cpu, gpu, ram), priority, organization, pin, zone, owner, is_container)| Request {
            cpu,
            gpu,
            ram,
            priority: priority - 1,
            organization,
            pin,
            zone,
            owner,
            is_container,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => request().prop_map(Op::Arrive),
        4 => any::<Index>().prop_map(Op::End),
        3 => any::<Index>().prop_map(Op::Stopped),
        1 => any::<Index>().prop_map(Op::Stop),
        1 => any::<Index>().prop_map(Op::Cancel),
        1 => any::<Index>().prop_map(Op::Refuse),
        1 => (any::<Index>(), -1i64..4).prop_map(|(i, p)| Op::Reprioritize(i, p)),
        1 => (any::<Index>(), 1i64..9, 0i64..3).prop_map(|(i, cpu, gpu)| Op::Resize(i, cpu, gpu)),
        1 => (any::<Index>(), 0i64..3).prop_map(|(i, n)| Op::Take(i, n)),
        1 => any::<Index>().prop_map(Op::Toggle),
        1 => (any::<Index>(), 1i64..8).prop_map(|(i, n)| Op::Grow(i, n)),
        1 => any::<Index>().prop_map(Op::Shrink),
        1 => (1u32..3, prop::option::of(0u32..3)).prop_map(|(o, left)| Op::Budget(o, left)),
        1 => (1i64..12, 0i64..3).prop_map(|(cpu, gpu)| Op::Machine(cpu, gpu)),
        1 => (1u32..3, 1i64..4).prop_map(|(o, weight)| Op::Weight(o, weight)),
        2 => (1i64..200).prop_map(Op::Pass),
        4 => (1usize..8).prop_map(Op::Decide),
        4 => Just(Op::Decide(ENOUGH)),
    ]
}

/// A world with its clusters.
struct Sim {
    world: World,
    clusters: Vec<Cluster>,
    /// Capacity of the machine of the first, second and fourth cluster.
    machine: Resources,
    now: Time,
    next: u32,
}

fn settings() -> Settings {
    // Units become due after 100 s of a history, whose steps are seconds.
    Settings {
        reserve_after: Duration::from_secs(100),
        max_reserved_permille: 500,
        container_limits: Resources::clone,
        ..Settings::default()
    }
}

fn node(name: &str, cpu: i64, gpu: i64, zone: &str) -> Node {
    let capacity = Resources::from([("cpu", cpu), ("gpu", gpu), ("ram", cpu * 2)]);
    let labels = BTreeMap::from([("zone".to_owned(), zone.to_owned())]);
    Node { name: name.to_owned(), capacity, manually_reserved: Resources::default(), labels }
}

const MACHINE: &str = "host";

fn machine(cpu: i64, gpu: i64) -> Resources {
    Resources::from([("cpu", cpu), ("gpu", gpu), ("ram", cpu)])
}

impl Sim {
    fn new(sizes: &[(i64, i64)]) -> Self {
        let owners = [None, Some(organization(1)), None, Some(organization(2))];
        let clusters: Vec<Cluster> = (1u32..)
            .zip(owners)
            .map(|(n, owner)| {
                let nodes = sizes.iter().enumerate().filter(|(i, _)| i % 4 + 1 == n as usize);
                let nodes = nodes
                    .map(|(i, &(cpu, gpu))| node(&format!("n{i}"), cpu, gpu, ["a", "b"][i % 2]));
                let (id, labels) = (cluster_id(n), BTreeMap::new());
                let machine = (n != 3).then(|| MACHINE.to_owned());
                Cluster { id, owner, machine, is_ready: true, labels, nodes: nodes.collect() }
            })
            .collect();
        let mut world = World::new(settings());
        let machine = machine(8, 1);
        world.set_machine(MACHINE, &machine, &Resources::default());
        for cluster in &clusters {
            world.set_cluster(cluster.clone());
        }
        Self { world, clusters, machine, now: Time(0), next: 1000 }
    }

    fn pick(&self, index: Index, is: impl Fn(&State) -> bool) -> Option<(Unit, State)> {
        let mut units = units_of(&self.world);
        units.retain(|(_, state)| is(state));
        (!units.is_empty()).then(|| index.get(&units).clone())
    }

    fn arrive(&mut self, request: &Request) {
        self.next += 1;
        let owner = xid(request.owner.unwrap_or(self.next));
        let zones = ["a", "b"];
        let zone = request.zone.map(|z| ("zone".to_owned(), zones[usize::from(z)].to_owned()));
        self.world.add_pending(&Unit {
            id: UnitId { owner, replica: self.next },
            organization: organization(request.organization),
            priority: request.priority,
            since: self.now,
            request: Resources::from([
                ("cpu", request.cpu),
                ("gpu", request.gpu),
                ("ram", request.ram),
            ]),
            target: request.pin.map_or(Target::Any, |n| Target::Cluster(cluster_id(n))),
            selector: zone.into_iter().collect(),
            is_spread: request.owner.is_some(),
            is_container: request.is_container,
            run_for: None,
            ends_at: None,
        });
    }

    fn change_cluster(&mut self, index: Index, change: impl FnOnce(&mut Cluster)) {
        let at = index.index(self.clusters.len());
        change(&mut self.clusters[at]);
        self.world.set_cluster(self.clusters[at].clone());
    }

    fn apply(&mut self, op: Op) {
        let is_waiting = |state: &State| matches!(state, State::Pending { .. });
        let is_placed = |state: &State| matches!(state, State::Placed { .. });
        let is_stopping = |state: &State| matches!(state, State::Stopping { .. });
        match op {
            Op::Arrive(request) => self.arrive(&request),
            Op::End(i) => {
                if let Some((unit, _)) = self.pick(i, |s| !is_waiting(s)) {
                    self.world.remove(unit.id);
                }
            }
            Op::Stopped(i) => {
                if let Some((unit, _)) = self.pick(i, is_stopping) {
                    self.world.requeue(unit.id);
                }
            }
            Op::Stop(i) => {
                if let Some((unit, _)) = self.pick(i, is_placed) {
                    self.world.set_stopping(unit.id, None);
                }
            }
            Op::Cancel(i) => {
                if let Some((unit, _)) = self.pick(i, is_waiting) {
                    self.world.remove(unit.id);
                }
            }
            Op::Refuse(i) => {
                if let Some((unit, _)) = self.pick(i, is_placed) {
                    self.world.requeue(unit.id);
                }
            }
            Op::Reprioritize(i, priority) => {
                if let Some((unit, _)) = self.pick(i, is_waiting) {
                    self.world.add_pending(&Unit { priority, ..unit });
                }
            }
            Op::Resize(i, cpu, gpu) => self.change_cluster(i, |cluster| {
                if let Some(first) = cluster.nodes.first_mut() {
                    *first = Node {
                        manually_reserved: first.manually_reserved.clone(),
                        ..node(&first.name, cpu, gpu, "a")
                    };
                }
            }),
            Op::Take(i, n) => self.change_cluster(i, |cluster| {
                if let Some(last) = cluster.nodes.last_mut() {
                    last.manually_reserved = cpus(n);
                }
            }),
            Op::Toggle(i) => self.change_cluster(i, |cluster| cluster.is_ready ^= true),
            Op::Grow(i, cpu) => {
                self.next += 1;
                let new = node(&format!("n{}", self.next), cpu, 0, "b");
                self.change_cluster(i, |cluster| cluster.nodes.push(new));
            }
            Op::Shrink(i) => self.change_cluster(i, |cluster| drop(cluster.nodes.pop())),
            Op::Budget(n, left) => {
                let budget = left.map(|limit| Budget { limit, used: 0 });
                self.world.set_budget(organization(n), budget);
            }
            Op::Machine(cpu, gpu) => {
                self.machine = machine(cpu, gpu);
                self.world.set_machine(MACHINE, &self.machine, &Resources::default());
            }
            Op::Weight(n, weight) => self.world.set_weight(organization(n), weight),
            Op::Pass(seconds) => self.now = self.now + Duration::from_secs(seconds.unsigned_abs()),
            Op::Decide(steps) => self.decide(steps),
        }
        self.now = self.now + Duration::from_secs(1);
    }

    fn facts(&self) -> Facts {
        Facts::new(&self.clusters, &self.machine, &self.world)
    }

    fn decide(&mut self, steps: usize) {
        let before = self.facts();
        let fresh = self.rebuilt(false).decide(self.now, ENOUGH);
        assert_eq!(
            fresh,
            decide_all(self.rebuilt(true), self.now),
            "decisions depend on the order of reports"
        );
        self.check_queries();
        let decisions = self.world.decide(self.now, steps);
        for pool in &self.world.pools {
            pool.check();
        }
        if steps == ENOUGH {
            assert_same(&decisions, &fresh);
            self.check_reservations();
            self.check_complete();
        }
        check_steps(&before, &decisions, steps);
        check_starts(&before, &decisions);
        Self::check_victims(&before, &decisions);
    }

    /// Queries change neither the facts nor the next decisions.
    fn check_queries(&mut self) {
        let before = (units_of(&self.world), self.world.reservations());
        let asked = [(9001, 3, 3), (9002, 5, 1), (9003, 1, 0)];
        let asked = asked.map(|(n, cpu, priority)| unit(n, cpu, priority));
        assert_eq!(self.world.dry_run(&asked, self.now).len(), 3);
        for (unit, _) in &before.0 {
            let explanation = self.world.explain(unit.id, self.now).expect("known");
            assert!(explanation.to_string().ends_with('.'));
        }
        assert_eq!((units_of(&self.world), self.world.reservations()), before);
    }

    /// A new world with the same facts.
    fn rebuilt(&self, backwards: bool) -> World {
        let mut world = World::new(settings());
        if !backwards {
            world.set_machine(MACHINE, &self.machine, &Resources::default());
        }
        let mut units = units_of(&self.world);
        let mut clusters = self.clusters.clone();
        if backwards {
            units.reverse();
            clusters.reverse();
            for cluster in &mut clusters {
                cluster.nodes.reverse();
            }
        } else {
            clusters.drain(..).for_each(|cluster| world.set_cluster(cluster));
        }
        for (unit, state) in units {
            match state {
                State::Pending { .. } => world.add_pending(&unit),
                State::Placed { place, started, .. } => world.set_placed(&unit, place, started),
                State::Stopping { place, started, by, .. } => {
                    world.set_placed(&unit, place, started);
                    world.set_stopping(unit.id, by);
                }
            }
        }
        for cluster in clusters {
            world.set_cluster(cluster);
        }
        if backwards {
            world.set_machine(MACHINE, &self.machine, &Resources::default());
        }
        for n in 1..3 {
            world.set_weight(organization(n), self.world.weight(organization(n)));
            world.set_budget(organization(n), self.world.budgets.get(&organization(n)).copied());
        }
        self.world
            .reservations()
            .iter()
            .for_each(|reservation| world.restore_reservation(reservation));
        world
    }

    /// After a complete round no possible decision is left.
    fn check_complete(&mut self) {
        let again = self.world.decide(self.now, ENOUGH);
        assert!(again.is_empty() && again.pending.is_empty(), "deciding twice: {again:?}");
        let facts = self.facts();
        for (unit, state) in &facts.units {
            match state {
                State::Pending { hold: Some(Hold { is_promised: true, .. }), .. } => {
                    Self::check_promise(&facts, unit);
                }
                State::Pending { reason, .. } => self.check_wait(&facts, unit, *reason),
                _ => {}
            }
        }
    }

    /// Every due head without a hold is queued in its first candidate pool, and no possible
    /// reservation is left.
    fn check_reservations(&self) {
        for (class, inside) in self.world.classes.iter().enumerate() {
            let Some((rank, unit)) = inside.head().filter(|_| inside.due.is_none()) else {
                continue;
            };
            let State::Pending { hold, .. } = self.world.entries[unit].state else { continue };
            let chosen = self.world.reservation_pool(class);
            for (n, pool) in self.world.pools.iter().enumerate() {
                let is_queued = hold.is_none() && chosen == Some(n);
                assert_eq!(pool.due_heads.contains_key(&rank), is_queued, "{rank:?} in pool {n}");
            }
        }
        for pool in self.world.pools.iter().filter(|pool| !pool.due_heads.is_empty()) {
            let limit =
                (pool.groups[0].order.len() * settings().max_reserved_permille / 1000).max(1);
            assert!(pool.aged.len() >= limit, "a reservation is possible");
        }
    }

    fn check_promise(facts: &Facts, unit: &Unit) {
        let reserved = facts.reservations.iter().find(|r| r.unit == unit.id).expect("promised");
        let node = facts.node(&reserved.place);
        assert!(facts.fits_future(unit, node), "{unit:?} will not fit on {node:?}");
        assert!(!facts.fits_now(unit, node), "{unit:?} could start on {node:?}");
    }

    fn check_wait(&self, facts: &Facts, unit: &Unit, reason: Option<PendingReason>) {
        assert!(reason.is_some(), "{unit:?} is pending without a reason");
        for node in &facts.nodes {
            assert!(!facts.fits_future(unit, node), "{unit:?} would fit on {node:?}");
        }
        let left = self.world.preemptions_left(unit.organization);
        let loss = facts.least_loss(unit, self.now, left);
        assert_eq!(loss, None, "{unit:?} could preempt");
    }

    fn check_victims(before: &Facts, decisions: &Decisions) {
        for preemption in &decisions.preemptions {
            let (victim, state) = before.unit(preemption.victim);
            let (by, _) = before.unit(preemption.by);
            assert!(victim.priority < by.priority, "only lower priorities are preempted");
            assert!(matches!(state, State::Placed { place, .. } if *place == preemption.place));
        }
        let mut victims: Vec<UnitId> = decisions.preemptions.iter().map(|p| p.victim).collect();
        victims.sort();
        victims.dedup();
        assert_eq!(victims.len(), decisions.preemptions.len(), "each victim is preempted once");
    }
}

fn decide_all(mut world: World, now: Time) -> Decisions {
    world.decide(now, ENOUGH)
}

/// Compares what is executed; a fresh world also reports the reason of every pending unit.
fn assert_same(incremental: &Decisions, fresh: &Decisions) {
    assert_eq!(incremental.starts, fresh.starts);
    assert_eq!(incremental.preemptions, fresh.preemptions);
    assert_eq!(incremental.reservations, fresh.reservations);
}

fn check_steps(before: &Facts, decisions: &Decisions, steps: usize) {
    assert!(decisions.steps <= steps, "limit {steps}, took {}", decisions.steps);
    let size = before.units.len() + before.nodes.len() + 1;
    assert!(decisions.steps <= 20 * size, "{} steps for {size} units and nodes", decisions.steps);
    assert!(decisions.is_complete || decisions.steps == steps);
}

/// Checks that each start fits and that its backfill names the first overtaken unit.
fn check_starts(before: &Facts, decisions: &Decisions) {
    let mut facts = before.clone();
    // Earlier reservations may have been released in this round.
    facts.reservations.clear();
    for start in &decisions.starts {
        let node = facts.node(&start.place).clone();
        let unit = facts.unit(start.unit).0.clone();
        assert!(facts.may_use(&unit, &node));
        for kind in KINDS {
            let demand = unit.request.get(kind).milli();
            assert!(demand == 0 || demand <= facts.free(&node, kind), "oversubscribed: {start:?}");
            let takes = unit.is_container && node.is_on_machine && demand > 0;
            let on_machine = facts.machine_free(kind, None).0;
            assert!(!takes || demand <= on_machine, "machine oversubscribed: {start:?}");
        }
        let is_ahead = |other: &Unit, state: &State| {
            matches!(state, State::Pending { .. }) && other.rank() < unit.rank()
        };
        let ahead = facts.units.iter().filter(|(other, state)| is_ahead(other, state));
        let first = ahead
            .map(|(other, _)| other)
            .filter(|other| facts.may_use(other, &node) && facts.fits_empty(other, &node));
        let first = first.min_by_key(|other| other.rank()).map(|other| other.id);
        assert_eq!(start.backfill.map(|backfill| backfill.ahead), first, "{start:?}");
        let entry = facts.units.iter_mut().find(|(other, _)| other.id == unit.id).unwrap();
        entry.1 = State::Placed { place: start.place.clone(), spot: None, started: Time(0) };
    }
}

proptest! {
    #[test]
    fn rules_hold_after_every_step_of_a_history(
        sizes in prop::collection::vec((2i64..8, prop_oneof![2 => Just(0i64), 1 => 1i64..4]), 1..6),
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let mut sim = Sim::new(&sizes);
        for op in ops {
            sim.apply(op);
        }
        sim.decide(ENOUGH);
    }
}

/// A unit on a node: node, CPU, GPU, priority, start, organization and whether it is a container.
type On = (Index, i64, i64, i64, i64, u32, bool);

fn residents(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<On>> {
    let kind = (prop_oneof![2 => Just(1u32), 2 => 2u32..4], any::<bool>());
    let unit = (any::<Index>(), 1i64..4, 0i64..2, -2i64..4, 0i64..50, kind);
    let unit = unit.prop_map(|(i, cpu, gpu, p, at, (o, c))| (i, cpu, gpu, p, at, o, c));
    prop::collection::vec(unit, count)
}

/// Checks that the victims of an arrival (CPU, GPU, priority) have the least loss.
fn check_least_loss(
    sizes: &[(i64, i64)],
    residents: Vec<On>,
    arrival: (i64, i64, i64),
    limit: Option<u32>,
    is_container: bool,
) {
    let mut sim = Sim::new(sizes);
    for (n, (index, cpu, gpu, priority, started, owner, is_container)) in (1u32..).zip(residents) {
        let facts = sim.facts();
        let node = index.get(&facts.nodes);
        let request = Resources::from([("cpu", cpu), ("gpu", gpu)]);
        if KINDS.iter().all(|kind| request.get(kind).milli() <= facts.free(node, kind)) {
            let organization = node.owner.unwrap_or(organization(owner));
            let unit = Unit { organization, request, is_container, ..unit(n, cpu, priority) };
            let takes = is_container && node.is_on_machine;
            let fits = |k: &str| unit.request.get(k).milli() <= facts.machine_free(k, None).0;
            if !takes || KINDS.iter().all(|kind| fits(kind)) {
                sim.world.set_placed(&unit, node.place.clone(), Time(started));
            }
        }
    }
    let budget = limit.map(|limit| Budget { limit, used: 0 });
    sim.world.set_budget(organization(1), budget);
    sim.now = Time(50);
    let request = Resources::from([("cpu", arrival.0), ("gpu", arrival.1)]);
    let arrival = Unit { request, is_container, ..unit(99, 0, arrival.2) };
    sim.world.add_pending(&arrival);
    let facts = sim.facts();
    let decisions = sim.world.decide(sim.now, ENOUGH);
    if !decisions.starts.is_empty() {
        assert!(decisions.preemptions.is_empty());
        return;
    }
    let left = limit.map_or(usize::MAX, |limit| limit as usize);
    let best = facts.least_loss(&arrival, sim.now, left);
    let chosen = decisions.preemptions.iter().fold(Loss::NONE, |loss, preemption| {
        let (unit, state) = facts.unit(preemption.victim);
        assert!(unit.priority < arrival.priority, "only lower priorities are preempted");
        let State::Placed { started, .. } = state else { panic!("{state:?}") };
        loss.plus(unit.priority, *started, sim.now)
    });
    let mut victims: Vec<&(Unit, State)> =
        decisions.preemptions.iter().map(|p| facts.unit(p.victim)).collect();
    victims.sort_by_key(|(unit, state)| match state {
        State::Placed { started, .. } => (unit.priority, std::cmp::Reverse(*started), unit.id),
        _ => panic!("{state:?}"),
    });
    let victims: Vec<&Unit> = victims.into_iter().map(|(unit, _)| unit).collect();
    assert!(facts.is_fair(&arrival, &victims), "a protected organization is preempted");
    let got = (!decisions.preemptions.is_empty()).then_some(chosen);
    assert_eq!(got, best);
}

proptest! {
    #[test]
    fn victims_have_the_least_loss(
        sizes in prop::collection::vec((2i64..8, 0i64..3), 1..5),
        residents in residents(0..16),
        arrival in (1i64..8, 0i64..3, 0i64..5),
        limit in prop::option::of(0u32..4),
        is_container in any::<bool>(),
    ) {
        check_least_loss(&sizes, residents, arrival, limit, is_container);
    }

    #[test]
    fn victims_have_the_least_loss_on_full_nodes(
        sizes in prop::collection::vec((6i64..12, 1i64..4), 1..4),
        residents in residents(12..36),
        arrival in (3i64..9, 0i64..3, 1i64..5),
        limit in prop::option::weighted(0.2, 2u32..6),
        is_container in any::<bool>(),
    ) {
        check_least_loss(&sizes, residents, arrival, limit, is_container);
    }
}
