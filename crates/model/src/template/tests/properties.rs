//! Properties of all templates and environments.

use proptest::collection::vec;
use proptest::prelude::*;

use super::simulator::Simulator;
use super::*;
use crate::resource::Status;

/// A small template and its parameters.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    resources: Vec<Resource>,
    /// Do the first resources depend on the last, instead of the last on the first?
    is_reversed: bool,
    /// The count of counted resources.
    count: u64,
    /// The value of the parameter `word`.
    word: u64,
}

#[derive(Debug, Clone)]
struct Resource {
    is_declared: bool,
    executor: u64,
    is_counted: bool,
    /// Its explicit dependencies, one per bit.
    after: u64,
    /// The resources whose outputs it references, one per bit.
    uses: u64,
    /// Its configuration: one of three words, or the parameter.
    word: u64,
    has_tag: bool,
}

const RESOURCES: usize = 6;

impl Shape {
    /// A random shape; `below` returns a random number below its argument.
    pub(super) fn random(below: &mut dyn FnMut(u64) -> u64) -> Self {
        let resources = (0..RESOURCES).map(|_| Resource::random(below)).collect();
        Self { resources, is_reversed: below(2) == 0, count: below(4), word: below(3) }
    }

    /// Randomises parts of it.
    pub(super) fn change(&mut self, below: &mut dyn FnMut(u64) -> u64) {
        for resource in &mut self.resources {
            if below(3) == 0 {
                *resource = Resource::random(below);
            }
        }
        match below(6) {
            0 => self.is_reversed = !self.is_reversed,
            1 => self.count = below(4),
            2 => self.word = below(3),
            _ => {}
        }
    }

    pub(super) fn template(&self) -> Template {
        let declared =
            self.resources.iter().enumerate().filter(|(_, resource)| resource.is_declared);
        let resources: Vec<Value> =
            declared.map(|(i, resource)| self.resource(i, resource)).collect();
        let text = json!({
            "name": "t", "version": "1", "resources": resources,
            "parameters": {"n": {"type": "integer"}, "word": {"type": "integer"}},
        });
        parse("t.json", &text.to_string()).unwrap_or_else(|error| panic!("{error}\n{text:#}"))
    }

    pub(super) fn given(&self) -> Value {
        json!({"n": self.count, "word": self.word})
    }

    pub(super) fn expanded(&self) -> Expanded {
        expanded(&self.template(), self.given())
    }

    /// The declared resources whose bits are set, out of those that may precede a resource.
    fn before(&self, i: usize, bits: u64) -> impl Iterator<Item = usize> {
        let candidates = if self.is_reversed { i + 1..RESOURCES } else { 0..i };
        candidates.filter(move |&j| bits >> j & 1 == 1 && self.resources[j].is_declared)
    }

    fn resource(&self, i: usize, resource: &Resource) -> Value {
        let used = self.before(i, resource.uses).map(|j| {
            if self.resources[j].is_counted {
                format!("{{{{ r{j}.all | tojson }}}}")
            } else {
                format!("{{{{ r{j}.id }}}}/{{{{ r{j}.config | tojson | length }}}}")
            }
        });
        let used = used.collect::<Vec<_>>().join(" ");
        let word = if resource.word == 3 {
            "w{{ word }}".to_owned()
        } else {
            format!("w{}", resource.word)
        };
        let (executor, with) = match resource.executor {
            0 => ("command", json!({"url": word, "env": {"USED": used}})),
            1 => ("consul-kv", json!({"prefix": word, "values": {"used": used}})),
            2 => ("deployment", json!({"image": word, "replicas": 1, "env": {"USED": used}})),
            _ => ("vault-secret", json!({"path": "p", "values": {"word": word}})),
        };
        let after: Vec<String> = self.before(i, resource.after).map(|j| format!("r{j}")).collect();
        let mut one = json!({
            "name": format!("r{i}"), "executor": executor, "with": with, "depends_on": after,
        });
        if resource.is_counted {
            one["count"] = json!("{{ n }}");
        }
        if resource.has_tag {
            one["tags"] = json!({"a": "b"});
        }
        one
    }
}

impl Resource {
    fn random(below: &mut dyn FnMut(u64) -> u64) -> Self {
        Self {
            is_declared: below(5) > 0,
            executor: below(4),
            is_counted: below(3) == 0,
            after: below(64) & below(64),
            uses: below(64) & below(64),
            word: below(4),
            has_tag: below(8) == 0,
        }
    }
}

/// A shape from a list of random numbers.
fn shape() -> impl Strategy<Value = Shape> {
    vec(0u64..64, RESOURCES * 9 + 3).prop_map(|numbers| {
        let mut numbers = numbers.into_iter();
        Shape::random(&mut |bound| numbers.next().unwrap_or(0) % bound)
    })
}

fn two_shapes() -> impl Strategy<Value = (Shape, Shape)> {
    (shape(), vec(0u64..64, RESOURCES * 10 + 2)).prop_map(|(before, numbers)| {
        let (mut after, mut numbers) = (before.clone(), numbers.into_iter());
        after.change(&mut |bound| numbers.next().unwrap_or(0) % bound);
        (before, after)
    })
}

/// Checks that every step follows its dependencies and that names are unique.
fn in_order(plan: &Plan) -> Result<(), TestCaseError> {
    let mut seen = Names::new();
    for step in &plan.steps {
        prop_assert!(step.after.iter().all(|other| seen.contains(other)), "{:#?}", plan.steps);
        prop_assert!(step.after.is_sorted());
        prop_assert!(seen.insert(step.name.clone()), "{} is planned twice", step.name);
        prop_assert!(!step.reason.is_empty());
    }
    Ok(())
}

/// Any recorded state of a resource.
fn any_state() -> impl Strategy<Value = (Status, Act, bool, bool)> {
    let status = prop::sample::select(Status::ALL);
    (status, prop::sample::select(Act::ALL), any::<bool>(), any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nodes_follow_their_dependencies(shape in shape()) {
        let expanded = shape.expanded();
        prop_assert_eq!(&shape.expanded(), &expanded);
        let mut seen = Names::new();
        for node in &expanded.nodes {
            prop_assert!(node.after.iter().all(|other| seen.contains(other)), "{:#?}", node);
            prop_assert!(node.after.is_sorted());
            prop_assert!(seen.insert(node.name.clone()));
        }
    }

    #[test]
    fn applied_environment_has_an_empty_plan((before, after) in two_shapes()) {
        let mut environment = Simulator::default();
        for desired in [before.expanded(), after.expanded(), before.expanded()] {
            environment.apply(&desired);
            environment.assert_converged(&desired);
        }
    }

    #[test]
    fn plans_are_ordered_and_deterministic((before, after) in two_shapes(), rotation in 0usize..20) {
        let mut environment = Simulator::default();
        environment.apply(&before.expanded());
        let desired = after.expanded();
        let plan_now = environment.plan(&desired);
        in_order(&plan_now)?;
        prop_assert_eq!(&plan_now, &environment.plan(&desired));

        let (mut nodes, mut existing) = (desired.nodes.clone(), environment.existing());
        let (by_node, by_one) = (rotation % nodes.len().max(1), rotation % existing.len().max(1));
        nodes.rotate_left(by_node);
        existing.rotate_right(by_one);
        let other = plan(&nodes, &environment.context(&desired), &existing);
        in_order(&other)?;
        prop_assert_eq!(other.hash, plan_now.hash);

        let end = plan_destruction(&environment.existing());
        in_order(&end)?;
        for one in environment.existing() {
            let step = end.steps.iter().find(|step| step.after.contains(&one.name));
            prop_assert!(one.after.is_empty() || step.is_some());
        }
    }

    /// Plans have equal hashes exactly when the existing and the desired states are equal.
    #[test]
    fn plan_hash_identifies_existing_and_desired_state((a, b) in two_shapes(), is_same in any::<bool>()) {
        let b = if is_same { a.clone() } else { b };
        let deploy = |shape: &Shape| {
            let (mut environment, desired) = (Simulator::default(), shape.expanded());
            environment.apply(&desired);
            (environment, desired)
        };
        let ((deployed_a, desired_a), (deployed_b, desired_b)) = (deploy(&a), deploy(&b));
        let hash = |environment: &Simulator, desired: &Expanded| environment.plan(desired).hash;
        let is_same_desired = desired_a.nodes == desired_b.nodes;
        let is_same_existing = deployed_a.existing() == deployed_b.existing();
        prop_assert_eq!(hash(&deployed_a, &desired_a) == hash(&deployed_a, &desired_b), is_same_desired);
        prop_assert_eq!(hash(&deployed_a, &desired_a) == hash(&deployed_b, &desired_a), is_same_existing);
    }

    #[test]
    fn any_existing_state_can_be_planned((before, after) in two_shapes(), states in vec(any_state(), 24)) {
        let (mut environment, desired) = (Simulator::default(), after.expanded());
        environment.apply(&before.expanded());
        let mut existing = environment.existing();
        for (one, (status, act, is_begun, is_applied)) in existing.iter_mut().zip(states) {
            (one.status, one.act, one.is_begun) = (status, act, is_begun);
            if !is_applied {
                (one.print, one.applied) = (None, None);
            }
        }
        let plan = plan(&desired.nodes, &environment.context(&desired), &existing);
        in_order(&plan)?;
        for node in &desired.nodes {
            prop_assert!(plan.steps.iter().any(|step| step.name == node.name));
        }
        in_order(&plan_destruction(&existing))?;
    }

    #[test]
    fn diff_is_empty_exactly_for_equal_templates((a, b) in two_shapes()) {
        let (a, b) = (a.template(), b.template());
        prop_assert_eq!(diff(&a, &a), vec![]);
        let forward: Vec<String> = diff(&a, &b).into_iter().map(|change| change.path).collect();
        let backward: Vec<String> = diff(&b, &a).into_iter().map(|change| change.path).collect();
        prop_assert_eq!(&forward, &backward);
        prop_assert_eq!(forward.is_empty(), Template { version: b.version.clone(), ..a } == b);
    }

    /// Names, counts and expressions from few words, so that they clash, are missing or form
    /// cycles.
    #[test]
    fn no_template_panics(specs in vec((0usize..6, 0usize..6, vec(0usize..8, 0..4), 0usize..12), 0..6)) {
        let names = ["a", "b", "a-0", "g", "h", "index"];
        let texts = [
            "x", "{{ a.id }}", "{{ b.all | length }}", "{{ p }}", "{{ index }}", "{{ g }}", "{{ a_0.x }}",
            "{{ environment.id }}", "{{ p.q }}", "{{ 1 // p }}", "{{ [a, b] | tojson }}", "{{",
        ];
        let counts = [json!(null), json!(0), json!(2), json!("{{ p }}"), json!(1001), json!("{{ a.x }}")];
        let named = |list: &[usize]| list.iter().map(|&i| names[i % 6]).collect::<Vec<_>>();
        let resources: Vec<Value> = specs.iter().map(|(name, count, after, text)| json!({
            "name": names[*name], "executor": "command", "count": counts[*count],
            "depends_on": named(after), "with": {"url": texts[*text]},
            "status": {"http": texts[(text + name) % 12]},
        })).collect();
        let groups: Vec<Value> = specs.iter().take(2).enumerate().map(|(i, (_, _, list, _))| json!({
            "name": names[3 + i], "resources": named(list),
        })).collect();
        let text = json!({
            "name": "t", "version": "1", "resources": resources, "groups": groups,
            "parameters": {"p": {"type": "integer", "default": 1}},
        });
        if let Ok(template) = parse("t.json", &text.to_string()) {
            let source = Source { template: &template, files_print: "" };
            for p in [0, 1, 3, -1] {
                let Ok(expanded) = expand(&[source], &map(json!({"p": p}))) else { continue };
                in_order(&plan(&expanded.nodes, &Context::default(), &[]))?;
                let context = Context { parameters: expanded.parameters, ..Context::default() };
                for node in &expanded.nodes {
                    let _ = fill(node, &context);
                    let _ = fill_text(node.health.as_deref().unwrap_or(""), Some(node), &context);
                }
            }
        }
    }
}
