//! What holds for all templates and worlds.

use proptest::collection::vec;
use proptest::prelude::*;

use super::made::Made;
use super::*;
use crate::resource::Status;

/// A template of few things, and what is set.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    things: Vec<Thing>,
    /// Do the first depend on the last, and not the last on the first?
    is_reversed: bool,
    /// How many there are of what is counted.
    count: u64,
    /// What the parameter `word` is.
    word: u64,
}

#[derive(Debug, Clone)]
struct Thing {
    is_there: bool,
    executor: u64,
    is_counted: bool,
    /// Which others are before it, one per bit.
    after: u64,
    /// Which others' outputs it uses, one per bit.
    uses: u64,
    /// What it is told: three words, and the parameter.
    word: u64,
    has_tag: bool,
}

const THINGS: usize = 6;

impl Shape {
    /// Draws one; `below` draws a number below another.
    pub(super) fn drawn(below: &mut dyn FnMut(u64) -> u64) -> Self {
        let things = (0..THINGS).map(|_| Thing::drawn(below)).collect();
        Self { things, is_reversed: below(2) == 0, count: below(4), word: below(3) }
    }

    /// Draws some of it anew.
    pub(super) fn change(&mut self, below: &mut dyn FnMut(u64) -> u64) {
        for thing in &mut self.things {
            if below(3) == 0 {
                *thing = Thing::drawn(below);
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
        let there = self.things.iter().enumerate().filter(|(_, thing)| thing.is_there);
        let resources: Vec<Value> = there.map(|(i, thing)| self.resource(i, thing)).collect();
        let text = json!({
            "name": "t", "version": "1", "resources": resources,
            "parameters": {"n": {"type": "integer"}, "word": {"type": "integer"}},
        });
        parse("t.json", &text.to_string()).unwrap_or_else(|refused| panic!("{refused}\n{text:#}"))
    }

    pub(super) fn given(&self) -> Value {
        json!({"n": self.count, "word": self.word})
    }

    pub(super) fn expanded(&self) -> Expanded {
        expanded(&self.template(), self.given())
    }

    /// Those that may be before a thing, by a number whose bits name them.
    fn before(&self, i: usize, bits: u64) -> impl Iterator<Item = usize> {
        let candidates = if self.is_reversed { i + 1..THINGS } else { 0..i };
        candidates.filter(move |&j| bits >> j & 1 == 1 && self.things[j].is_there)
    }

    fn resource(&self, i: usize, thing: &Thing) -> Value {
        let used = self.before(i, thing.uses).map(|j| {
            if self.things[j].is_counted {
                format!("{{{{ r{j}.all | tojson }}}}")
            } else {
                format!("{{{{ r{j}.id }}}}/{{{{ r{j}.told | tojson | length }}}}")
            }
        });
        let used = used.collect::<Vec<_>>().join(" ");
        let word =
            if thing.word == 3 { "w{{ word }}".to_owned() } else { format!("w{}", thing.word) };
        let (executor, with) = match thing.executor {
            0 => ("command", json!({"url": word, "env": {"USED": used}})),
            1 => ("consul-kv", json!({"prefix": word, "values": {"used": used}})),
            2 => ("deployment", json!({"image": word, "replicas": 1, "env": {"USED": used}})),
            _ => ("vault-secret", json!({"path": "p", "values": {"word": word}})),
        };
        let after: Vec<String> = self.before(i, thing.after).map(|j| format!("r{j}")).collect();
        let mut one = json!({
            "name": format!("r{i}"), "executor": executor, "with": with, "depends_on": after,
        });
        if thing.is_counted {
            one["count"] = json!("{{ n }}");
        }
        if thing.has_tag {
            one["tags"] = json!({"a": "b"});
        }
        one
    }
}

impl Thing {
    fn drawn(below: &mut dyn FnMut(u64) -> u64) -> Self {
        Self {
            is_there: below(5) > 0,
            executor: below(4),
            is_counted: below(3) == 0,
            after: below(64) & below(64),
            uses: below(64) & below(64),
            word: below(4),
            has_tag: below(8) == 0,
        }
    }
}

/// Draws from a list of numbers, as long as there are some.
fn shape() -> impl Strategy<Value = Shape> {
    vec(0u64..64, THINGS * 9 + 3).prop_map(|numbers| {
        let mut numbers = numbers.into_iter();
        Shape::drawn(&mut |bound| numbers.next().unwrap_or(0) % bound)
    })
}

fn two_shapes() -> impl Strategy<Value = (Shape, Shape)> {
    (shape(), vec(0u64..64, THINGS * 10 + 2)).prop_map(|(before, numbers)| {
        let (mut after, mut numbers) = (before.clone(), numbers.into_iter());
        after.change(&mut |bound| numbers.next().unwrap_or(0) % bound);
        (before, after)
    })
}

/// Every step comes after all that it waits for, and every name is there once.
fn in_order(plan: &Plan) -> Result<(), TestCaseError> {
    let mut seen = Names::new();
    for step in &plan.steps {
        prop_assert!(step.after.iter().all(|other| seen.contains(other)), "{:#?}", plan.steps);
        prop_assert!(step.after.is_sorted());
        prop_assert!(seen.insert(step.name.clone()), "{} is there twice", step.name);
        prop_assert!(!step.reason.is_empty());
    }
    Ok(())
}

/// Any state that something may be found in.
fn found() -> impl Strategy<Value = (Status, Act, bool, bool)> {
    let status = prop::sample::select(Status::ALL);
    (status, prop::sample::select(Act::ALL), any::<bool>(), any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nodes_come_after_what_they_need(shape in shape()) {
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
    fn what_was_applied_needs_nothing_more((before, after) in two_shapes()) {
        let mut made = Made::default();
        for wish in [before.expanded(), after.expanded(), before.expanded()] {
            made.become_(&wish);
            made.is_as_wished(&wish);
        }
    }

    #[test]
    fn plans_are_in_order_and_the_same_for_the_same((before, after) in two_shapes(), turned in 0usize..20) {
        let mut made = Made::default();
        made.become_(&before.expanded());
        let wish = after.expanded();
        let plan_now = made.plan(&wish);
        in_order(&plan_now)?;
        prop_assert_eq!(&plan_now, &made.plan(&wish));

        let (mut nodes, mut exists) = (wish.nodes.clone(), made.exists());
        let (by_node, by_one) = (turned % nodes.len().max(1), turned % exists.len().max(1));
        nodes.rotate_left(by_node);
        exists.rotate_right(by_one);
        let other = plan(&nodes, &made.context(&wish), &exists);
        in_order(&other)?;
        prop_assert_eq!(other.hash, plan_now.hash);

        let end = plan_destruction(&made.exists());
        in_order(&end)?;
        for one in made.exists() {
            let step = end.steps.iter().find(|step| step.after.contains(&one.name));
            prop_assert!(one.after.is_empty() || step.is_some());
        }
    }

    /// A plan has the hash of another exactly when both the world and the wish are the same.
    #[test]
    fn a_hash_is_that_of_one_world_and_one_wish((a, b) in two_shapes(), is_same in any::<bool>()) {
        let b = if is_same { a.clone() } else { b };
        let of = |shape: &Shape| {
            let (mut made, wish) = (Made::default(), shape.expanded());
            made.become_(&wish);
            (made, wish)
        };
        let ((made_a, wish_a), (made_b, wish_b)) = (of(&a), of(&b));
        let hash = |made: &Made, wish: &Expanded| made.plan(wish).hash;
        let is_same_wish = wish_a.nodes == wish_b.nodes;
        let is_same_world = made_a.exists() == made_b.exists();
        prop_assert_eq!(hash(&made_a, &wish_a) == hash(&made_a, &wish_b), is_same_wish);
        prop_assert_eq!(hash(&made_a, &wish_a) == hash(&made_b, &wish_a), is_same_world);
    }

    #[test]
    fn any_world_can_be_planned_from((before, after) in two_shapes(), states in vec(found(), 24)) {
        let (mut made, wish) = (Made::default(), after.expanded());
        made.become_(&before.expanded());
        let mut exists = made.exists();
        for (one, (status, act, is_begun, is_made)) in exists.iter_mut().zip(states) {
            (one.status, one.act, one.is_begun) = (status, act, is_begun);
            if !is_made {
                (one.print, one.applied) = (None, None);
            }
        }
        let plan = plan(&wish.nodes, &made.context(&wish), &exists);
        in_order(&plan)?;
        for node in &wish.nodes {
            prop_assert!(plan.steps.iter().any(|step| step.name == node.name));
        }
        in_order(&plan_destruction(&exists))?;
    }

    #[test]
    fn nothing_differs_from_itself((a, b) in two_shapes()) {
        let (a, b) = (a.template(), b.template());
        prop_assert_eq!(diff(&a, &a), vec![]);
        let there: Vec<String> = diff(&a, &b).into_iter().map(|change| change.path).collect();
        let back: Vec<String> = diff(&b, &a).into_iter().map(|change| change.path).collect();
        prop_assert_eq!(&there, &back);
        prop_assert_eq!(there.is_empty(), Template { version: b.version.clone(), ..a } == b);
    }

    /// Names, counts and expressions from few words, so that they clash, miss and go in circles.
    #[test]
    fn no_template_panics(things in vec((0usize..6, 0usize..6, vec(0usize..8, 0..4), 0usize..12), 0..6)) {
        let names = ["a", "b", "a-0", "g", "h", "index"];
        let texts = [
            "x", "{{ a.id }}", "{{ b.all | length }}", "{{ p }}", "{{ index }}", "{{ g }}", "{{ a_0.x }}",
            "{{ environment.id }}", "{{ p.q }}", "{{ 1 // p }}", "{{ [a, b] | tojson }}", "{{",
        ];
        let counts = [json!(null), json!(0), json!(2), json!("{{ p }}"), json!(1001), json!("{{ a.x }}")];
        let named = |list: &[usize]| list.iter().map(|&i| names[i % 6]).collect::<Vec<_>>();
        let resources: Vec<Value> = things.iter().map(|(name, count, after, text)| json!({
            "name": names[*name], "executor": "command", "count": counts[*count],
            "depends_on": named(after), "with": {"url": texts[*text]},
            "status": {"http": texts[(text + name) % 12]},
        })).collect();
        let groups: Vec<Value> = things.iter().take(2).enumerate().map(|(i, (_, _, list, _))| json!({
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
