//! Random histories of small worlds: whatever happens, the rules hold after every round.

use proptest::prelude::*;
use proptest::sample::Index;

use super::oracle::{Facts, KINDS};
use super::*;

/// Something that happens.
#[derive(Debug, Clone)]
enum Op {
    Arrive(Wish),
    /// A unit that is placed or stopping ends.
    End(Index),
    /// A unit that is stopping has stopped and waits again.
    Stopped(Index),
    /// Somebody is told to stop by others than us.
    Stop(Index),
    /// A unit that waits is no longer wanted.
    Cancel(Index),
    /// A start could not be made durable.
    Refuse(Index),
    Reprioritize(Index, i64),
    Resize(Index, i64, i64),
    Take(Index, i64),
    Toggle(Index),
    Grow(Index, i64),
    Shrink(Index),
    Budget(u32, Option<u32>),
    Pass(i64),
    Decide(usize),
}

#[derive(Debug, Clone)]
struct Wish {
    cpu: i64,
    gpu: i64,
    ram: i64,
    priority: i64,
    organization: u32,
    pin: Option<u32>,
    zone: Option<u8>,
    owner: Option<u32>,
}

fn wish() -> impl Strategy<Value = Wish> {
    let size = (1i64..6, prop_oneof![3 => Just(0i64), 1 => 1i64..3], 0i64..4);
    let pin = prop::option::weighted(0.3, 1u32..4);
    let zone = prop::option::weighted(0.2, 0u8..2);
    let owner = prop::option::weighted(0.2, 900u32..903);
    (size, 0i64..4, 1u32..3, pin, zone, owner).prop_map(
        |((cpu, gpu, ram), priority, organization, pin, zone, owner)| Wish {
            cpu,
            gpu,
            ram,
            priority: priority - 1,
            organization,
            pin,
            zone,
            owner,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => wish().prop_map(Op::Arrive),
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
        2 => (1i64..200).prop_map(Op::Pass),
        4 => (1usize..8).prop_map(Op::Decide),
        4 => Just(Op::Decide(ENOUGH)),
    ]
}

/// A world, and all that it was told of clusters.
struct Sim {
    world: World,
    clusters: Vec<Cluster>,
    now: Time,
    next: u32,
}

fn settings() -> Settings {
    // Patience is 100 s of these histories, whose steps are seconds.
    Settings { patience: Duration::from_secs(100), kept_permille: 500, ..Settings::default() }
}

fn node(name: &str, cpu: i64, gpu: i64, zone: &str) -> Node {
    let capacity = Resources::from([("cpu", cpu), ("gpu", gpu), ("ram", cpu * 2)]);
    let labels = BTreeMap::from([("zone".to_owned(), zone.to_owned())]);
    Node { name: name.to_owned(), capacity, taken: Resources::default(), labels }
}

impl Sim {
    fn new(sizes: &[(i64, i64)]) -> Self {
        let owners = [None, Some(organization(1)), None];
        let clusters: Vec<Cluster> = (1u32..)
            .zip(owners)
            .map(|(n, owner)| {
                let nodes = sizes.iter().enumerate().filter(|(i, _)| i % 3 + 1 == n as usize);
                let nodes = nodes
                    .map(|(i, &(cpu, gpu))| node(&format!("n{i}"), cpu, gpu, ["a", "b"][i % 2]));
                let (id, labels) = (cluster_id(n), BTreeMap::new());
                Cluster { id, owner, is_ready: true, labels, nodes: nodes.collect() }
            })
            .collect();
        let mut world = World::new(settings());
        for cluster in &clusters {
            world.set_cluster(cluster.clone());
        }
        Self { world, clusters, now: Time(0), next: 1000 }
    }

    fn pick(&self, index: Index, is: impl Fn(&State) -> bool) -> Option<(Unit, State)> {
        let mut units = units_of(&self.world);
        units.retain(|(_, state)| is(state));
        (!units.is_empty()).then(|| index.get(&units).clone())
    }

    fn arrive(&mut self, wish: &Wish) {
        self.next += 1;
        let owner = xid(wish.owner.unwrap_or(self.next));
        let zones = ["a", "b"];
        let zone = wish.zone.map(|z| ("zone".to_owned(), zones[usize::from(z)].to_owned()));
        self.world.wait(&Unit {
            id: UnitId { owner, replica: self.next },
            organization: organization(wish.organization),
            priority: wish.priority,
            since: self.now,
            request: Resources::from([("cpu", wish.cpu), ("gpu", wish.gpu), ("ram", wish.ram)]),
            target: wish.pin.map_or(Target::Any, |n| Target::Cluster(cluster_id(n))),
            selector: zone.into_iter().collect(),
            is_spread: wish.owner.is_some(),
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
        let is_waiting = |state: &State| matches!(state, State::Waiting { .. });
        let is_placed = |state: &State| matches!(state, State::Placed { .. });
        let is_stopping = |state: &State| matches!(state, State::Stopping { .. });
        match op {
            Op::Arrive(wish) => self.arrive(&wish),
            Op::End(i) => {
                if let Some((unit, _)) = self.pick(i, |s| !is_waiting(s)) {
                    self.world.gone(unit.id);
                }
            }
            Op::Stopped(i) => {
                if let Some((unit, _)) = self.pick(i, is_stopping) {
                    self.world.requeue(unit.id);
                }
            }
            Op::Stop(i) => {
                if let Some((unit, _)) = self.pick(i, is_placed) {
                    self.world.stopping(unit.id, None);
                }
            }
            Op::Cancel(i) => {
                if let Some((unit, _)) = self.pick(i, is_waiting) {
                    self.world.gone(unit.id);
                }
            }
            Op::Refuse(i) => {
                if let Some((unit, _)) = self.pick(i, is_placed) {
                    self.world.requeue(unit.id);
                }
            }
            Op::Reprioritize(i, priority) => {
                if let Some((unit, _)) = self.pick(i, is_waiting) {
                    self.world.wait(&Unit { priority, ..unit });
                }
            }
            Op::Resize(i, cpu, gpu) => self.change_cluster(i, |cluster| {
                if let Some(first) = cluster.nodes.first_mut() {
                    *first =
                        Node { taken: first.taken.clone(), ..node(&first.name, cpu, gpu, "a") };
                }
            }),
            Op::Take(i, n) => self.change_cluster(i, |cluster| {
                if let Some(last) = cluster.nodes.last_mut() {
                    last.taken = cpus(n);
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
            Op::Pass(seconds) => self.now = self.now + Duration::from_secs(seconds.unsigned_abs()),
            Op::Decide(steps) => self.decide(steps),
        }
        self.now = self.now + Duration::from_secs(1);
    }

    fn facts(&self) -> Facts {
        Facts::of(&self.clusters, &self.world)
    }

    fn decide(&mut self, steps: usize) {
        let before = self.facts();
        let fresh = self.retold(false).decide(self.now, ENOUGH);
        assert_eq!(fresh, again(self.retold(true), self.now), "the order of telling matters");
        self.check_asking();
        let decisions = self.world.decide(self.now, steps);
        for pool in &self.world.pools {
            pool.check();
        }
        if steps == ENOUGH {
            assert_same(&decisions, &fresh);
            self.check_keeping();
            self.check_at_rest();
        }
        check_steps(&before, &decisions, steps);
        check_starts(&before, &decisions);
        Self::check_victims(&before, &decisions);
    }

    /// Asking changes nothing: neither what is known nor what is decided next.
    fn check_asking(&mut self) {
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

    /// A new world that is told the same facts.
    fn retold(&self, backwards: bool) -> World {
        let mut world = World::new(settings());
        let mut told = units_of(&self.world);
        let mut clusters = self.clusters.clone();
        if backwards {
            told.reverse();
            clusters.reverse();
            for cluster in &mut clusters {
                cluster.nodes.reverse();
            }
        } else {
            clusters.drain(..).for_each(|cluster| world.set_cluster(cluster));
        }
        for (unit, state) in told {
            match state {
                State::Waiting { .. } => world.wait(&unit),
                State::Placed { place, started, .. } => world.placed(&unit, place, started),
                State::Stopping { place, started, by, .. } => {
                    world.placed(&unit, place, started);
                    world.stopping(unit.id, by);
                }
            }
        }
        for cluster in clusters {
            world.set_cluster(cluster);
        }
        for n in 1..3 {
            world.set_budget(organization(n), self.world.budgets.get(&organization(n)).copied());
        }
        self.world.reservations().iter().for_each(|reservation| world.reserve(reservation));
        world
    }

    /// After a whole round, nothing that could be done is left undone.
    fn check_at_rest(&mut self) {
        let again = self.world.decide(self.now, ENOUGH);
        assert!(again.is_empty() && again.waits.is_empty(), "deciding twice: {again:?}");
        let facts = self.facts();
        for (unit, state) in &facts.units {
            match state {
                State::Waiting { hold: Some(Hold { is_promised: true, .. }), .. } => {
                    Self::check_promise(&facts, unit);
                }
                State::Waiting { said, .. } => self.check_wait(&facts, unit, *said),
                _ => {}
            }
        }
    }

    /// All who have waited long enough and have no room kept want it where they would find it
    /// first, and who could get it got it.
    fn check_keeping(&self) {
        for (class, inside) in self.world.classes.iter().enumerate() {
            let Some((rank, unit)) = inside.head().filter(|_| inside.due.is_none()) else {
                continue;
            };
            let State::Waiting { hold, .. } = self.world.entries[unit].state else { continue };
            let chosen = self.world.pool_for_keeping(class);
            for (n, pool) in self.world.pools.iter().enumerate() {
                let wants = hold.is_none() && chosen == Some(n);
                assert_eq!(pool.wanting.contains_key(&rank), wants, "{rank:?} in pool {n}");
            }
        }
        for pool in self.world.pools.iter().filter(|pool| !pool.wanting.is_empty()) {
            let limit = (pool.groups[0].order.len() * settings().kept_permille / 1000).max(1);
            assert!(pool.aged.len() >= limit, "room could be kept");
        }
    }

    fn check_promise(facts: &Facts, unit: &Unit) {
        let kept = facts.reservations.iter().find(|r| r.unit == unit.id).expect("promised");
        let node = facts.node(&kept.place);
        assert!(facts.fits_soon(unit, node), "{unit:?} will not fit on {node:?}");
        assert!(!facts.fits_now(unit, node), "{unit:?} could start on {node:?}");
    }

    fn check_wait(&self, facts: &Facts, unit: &Unit, said: Option<Wait>) {
        assert!(said.is_some(), "{unit:?} does not know why it waits");
        for node in &facts.nodes {
            assert!(!facts.fits_soon(unit, node), "{unit:?} would fit on {node:?}");
        }
        let left = self.world.preemptions_left(unit.organization);
        let loss = facts.least_loss(unit, self.now, left);
        assert_eq!(loss, None, "{unit:?} could preempt");
    }

    fn check_victims(before: &Facts, decisions: &Decisions) {
        for preemption in &decisions.preemptions {
            let (victim, state) = before.unit(preemption.victim);
            let (by, _) = before.unit(preemption.by);
            assert!(victim.priority < by.priority, "only strictly lower ones yield");
            assert!(matches!(state, State::Placed { place, .. } if *place == preemption.place));
        }
        let mut victims: Vec<UnitId> = decisions.preemptions.iter().map(|p| p.victim).collect();
        victims.sort();
        victims.dedup();
        assert_eq!(victims.len(), decisions.preemptions.len(), "each yields once");
    }
}

fn again(mut world: World, now: Time) -> Decisions {
    world.decide(now, ENOUGH)
}

/// The same to carry out; a fresh world also has to say to everybody why they wait.
fn assert_same(incremental: &Decisions, fresh: &Decisions) {
    assert_eq!(incremental.starts, fresh.starts);
    assert_eq!(incremental.preemptions, fresh.preemptions);
    assert_eq!(incremental.reservations, fresh.reservations);
}

fn check_steps(before: &Facts, decisions: &Decisions, steps: usize) {
    assert!(decisions.steps <= steps, "asked for {steps}, took {}", decisions.steps);
    let size = before.units.len() + before.nodes.len() + 1;
    assert!(decisions.steps <= 20 * size, "{} steps for {size} things", decisions.steps);
    assert!(decisions.is_complete || decisions.steps == steps);
}

/// Starts one by one: each fits, and whoever is overtaken does not and is named.
fn check_starts(before: &Facts, decisions: &Decisions) {
    let mut facts = before.clone();
    // Reservations that were there before say nothing of what was let go meanwhile.
    facts.reservations.clear();
    for start in &decisions.starts {
        let node = facts.node(&start.place).clone();
        let unit = facts.unit(start.unit).0.clone();
        assert!(facts.may_use(&unit, &node));
        for kind in KINDS {
            let want = unit.request.get(kind).milli();
            assert!(want == 0 || want <= facts.free(&node, kind), "oversubscribed: {start:?}");
        }
        let is_ahead = |other: &Unit, state: &State| {
            matches!(state, State::Waiting { .. }) && other.rank() < unit.rank()
        };
        let ahead = facts.units.iter().filter(|(other, state)| is_ahead(other, state));
        let first = ahead
            .map(|(other, _)| other)
            .filter(|other| facts.may_use(other, &node) && other.request.fits(&node.capacity));
        let first = first.min_by_key(|other| other.rank()).map(|other| other.id);
        assert_eq!(start.backfill.map(|backfill| backfill.ahead), first, "{start:?}");
        let entry = facts.units.iter_mut().find(|(other, _)| other.id == unit.id).unwrap();
        entry.1 = State::Placed { place: start.place.clone(), spot: None, started: Time(0) };
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_rules_hold(
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

/// Somebody on a node: which node, CPU, GPU, priority and start.
type On = (Index, i64, i64, i64, i64);

fn residents(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<On>> {
    prop::collection::vec((any::<Index>(), 1i64..4, 0i64..2, -2i64..4, 0i64..50), count)
}

/// Who yields to an arrival (CPU, GPU, priority) is who brute force would choose.
fn check_least_loss(
    sizes: &[(i64, i64)],
    residents: Vec<On>,
    arrival: (i64, i64, i64),
    limit: Option<u32>,
) {
    let mut sim = Sim::new(sizes);
    for (n, (index, cpu, gpu, priority, started)) in (1u32..).zip(residents) {
        let facts = sim.facts();
        let node = index.get(&facts.nodes);
        let request = Resources::from([("cpu", cpu), ("gpu", gpu)]);
        if KINDS.iter().all(|kind| request.get(kind).milli() <= facts.free(node, kind)) {
            let unit = Unit { request, ..unit(n, cpu, priority) };
            sim.world.placed(&unit, node.place.clone(), Time(started));
        }
    }
    let budget = limit.map(|limit| Budget { limit, used: 0 });
    sim.world.set_budget(organization(1), budget);
    sim.now = Time(50);
    let request = Resources::from([("cpu", arrival.0), ("gpu", arrival.1)]);
    let arrival = Unit { request, ..unit(99, 0, arrival.2) };
    sim.world.wait(&arrival);
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
        assert!(unit.priority < arrival.priority, "only strictly lower ones yield");
        let State::Placed { started, .. } = state else { panic!("{state:?}") };
        loss.and(unit.priority, *started, sim.now)
    });
    let got = (!decisions.preemptions.is_empty()).then_some(chosen);
    assert_eq!(got, best);
}

proptest! {
    #[test]
    fn victims_are_what_brute_force_would_choose(
        sizes in prop::collection::vec((2i64..8, 0i64..3), 1..5),
        residents in residents(0..16),
        arrival in (1i64..8, 0i64..3, 0i64..5),
        limit in prop::option::of(0u32..4),
    ) {
        check_least_loss(&sizes, residents, arrival, limit);
    }

    #[test]
    fn victims_are_what_brute_force_would_choose_on_full_nodes(
        sizes in prop::collection::vec((6i64..12, 1i64..4), 1..4),
        residents in residents(12..36),
        arrival in (3i64..9, 0i64..3, 1i64..5),
        limit in prop::option::weighted(0.2, 2u32..6),
    ) {
        check_least_loss(&sizes, residents, arrival, limit);
    }
}
