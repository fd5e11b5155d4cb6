//! Searches of instances: both engines find what the model says, and nothing beyond the scope.

use model::OrganizationId;
use model::event::Actor;
use model::instance::{Billing, Charge, Detail, Instance, NewInstance, Reason, Status};
use model::reason::Coded as _;
use model::search::{Direction, Expr, Op};
use store::instance::search::{Search, count, list};
use store::{Db, Scope, account, instance};
use testing::{Dice, on_both_engines, rows};

use crate::support::database;

/// Texts with everything that means something to SQL, to patterns, or to neither.
const TEXTS: [&str; 12] =
    ["a", "A", "ab", "aB", "a%b", "a_b", "a\\b", "a'b", "a\"; --", "b", "", "%"];
/// Patterns over them.
const PATTERNS: [&str; 13] =
    ["%", "_", "a%", "A%", "%b", "a_b", "a\\%b", "a\\_b", "a\\\\b", "\\", "a\\", "%'%", "a$1?"];
const COLUMNS: [&str; 7] =
    ["region", "name", "cloud_provider", "status", "owner", "cluster_id", "instance_type"];

on_both_engines! {
    async fn both_engines_find_what_the_model_says(engine: Engine) {
        let database = database(engine).await;
        let (db, mut dice) = (&database.db, Dice::roll());
        let own = rows::tenant(db, "acme").await.organization_id;
        let other = rows::tenant(db, "other").await.organization_id;
        let mut mine = Vec::new();
        for n in 0..24 {
            mine.push(made(db, own, "kafka", &mut dice, n).await);
            made(db, other, "kafka", &mut dice, n).await;
            made(db, own, "dinosaur", &mut dice, n).await;
        }
        mine.sort_by(|a, b| a.name.cmp(&b.name));
        for _ in 0..400 {
            let expr = expr(&mut dice, 3);
            let found = all(db, own, Some(&expr), &[]).await;
            let expected: Vec<_> =
                mine.iter().filter(|one| expr.matches(&|name| column(one, name))).collect();
            assert_eq!(ids(found.iter()), ids(expected.into_iter()), "{expr}");
        }
    }

    async fn what_is_found_has_the_order_that_is_asked_for(engine: Engine) {
        let database = database(engine).await;
        let (db, mut dice) = (&database.db, Dice::roll());
        let own = rows::tenant(db, "acme").await.organization_id;
        let mut mine = Vec::new();
        for n in 0..24 {
            mine.push(made(db, own, "kafka", &mut dice, n).await);
        }
        for name in ["region", "name", "cloud_provider", "status", "owner", "instance_type"] {
            mine.sort_by(|a, b| (column(a, name), a.id).cmp(&(column(b, name), b.id)));
            let up = [(name.to_owned(), Direction::Ascending)];
            assert_eq!(ids(all(db, own, None, &up).await.iter()), ids(mine.iter()), "{name}");
            mine.sort_by(|a, b| column(b, name).cmp(&column(a, name)).then(a.id.cmp(&b.id)));
            let down = [(name.to_owned(), Direction::Descending)];
            assert_eq!(ids(all(db, own, None, &down).await.iter()), ids(mine.iter()), "{name}");
        }
        for name in ["cluster_id", "created_at", "href", "id", "multi_az", "organisation_id",
            "reauthentication_enabled", "updated_at", "version", "host"] {
            let order = [(name.to_owned(), Direction::Descending)];
            assert_eq!(all(db, own, None, &order).await.len(), 24, "{name}");
        }
        let unknown = [("detail; --".to_owned(), Direction::Ascending)];
        let search = Search { scope: Scope::All, kind: "kafka", expr: None, order: &unknown };
        assert!(list(&mut db.read().await.unwrap(), &search, 1, 0).await.is_err());
    }

    async fn a_promotion_moves_the_charge_or_nothing(engine: Engine) {
        let database = database(engine).await;
        let (db, mut dice) = (&database.db, Dice::roll());
        let own = rows::tenant(db, "acme").await.organization_id;
        let id = made(db, own, "kafka", &mut dice, 0).await.id;
        for (limit, expected) in [(0, "eval"), (1, "standard")] {
            let mut tx = db.begin(Actor::Server).await.unwrap();
            let mut found = instance::take(&mut tx, Scope::All, id).await.unwrap();
            let billing = Billing { desired: "standard".into(), ..Billing::default() };
            let charge = Charge { holder: "organization/x".into(), account: "standard".into(), units: 1 };
            let done = instance::promotion::promote(&mut tx, &mut found, billing, charge, Some(limit)).await;
            match done {
                Ok(()) => tx.commit().await.unwrap(),
                Err(store::Error::Limit { .. }) => drop(tx),
                Err(other) => panic!("{other}"),
            }
            let mut read = db.read().await.unwrap();
            let of = account::of(&mut read, "organization/x").await.unwrap();
            assert_eq!(of, [("kafka".to_owned(), expected.to_owned(), 1)]);
        }
    }
}

/// An instance that stands for any.
pub(crate) async fn instance(db: &Db, own: OrganizationId, name: &str) -> Instance {
    made(db, own, name, &mut Dice::roll(), 1).await
}

async fn made(db: &Db, own: OrganizationId, kind: &str, dice: &mut Dice, n: usize) -> Instance {
    let mut text = || (*dice.pick(&TEXTS).unwrap()).to_owned();
    let charge = Charge { holder: "organization/x".into(), account: "eval".into(), units: 1 };
    let new = NewInstance {
        kind: kind.into(),
        owner: text(),
        name: format!("{}{n}", text()),
        cloud_provider: text(),
        region: text(),
        multi_az: false,
        instance_type: text(),
        size: "x1".into(),
        reauthentication: n.is_multiple_of(2),
        pinned_to: None,
        lifespan: None,
        unit: format!("{kind}.one"),
        priority: 0,
        detail: Detail::default(),
        charges: vec![(charge, None)],
    };
    let mut tx = db.begin(Actor::Server).await.unwrap();
    let mut made = instance::create(&mut tx, own, &new).await.unwrap();
    if n.is_multiple_of(3) {
        instance::transition(
            &mut tx,
            &mut made,
            Status::Failed,
            Reason::reported("A test says so."),
        )
        .await
        .unwrap();
    }
    tx.commit().await.unwrap();
    made
}

fn expr(dice: &mut Dice, depth: u32) -> Expr {
    let column = (*dice.pick(&COLUMNS).unwrap()).to_owned();
    let parts = |dice: &mut Dice| {
        let n = 2 + dice.below(2);
        (0..n).map(|_| expr(dice, depth - 1)).collect::<Vec<_>>()
    };
    match dice.below(if depth == 0 { 3 } else { 6 }) {
        0 => {
            let values = (0..=dice.below(3)).map(|_| value(dice, &TEXTS)).collect();
            Expr::In { column, not: dice.one_in(2), values }
        }
        1 => {
            let op = *dice.pick(&[Op::Like, Op::ILike]).unwrap();
            Expr::Compare { column, op, value: value(dice, &PATTERNS) }
        }
        2 => {
            let op = *dice.pick(&[Op::Eq, Op::Ne]).unwrap();
            Expr::Compare { column, op, value: value(dice, &TEXTS) }
        }
        3 | 4 => Expr::Or(parts(dice)),
        _ => Expr::And(parts(dice)),
    }
}

fn value(dice: &mut Dice, of: &[&str]) -> String {
    if dice.one_in(8) { "failed".to_owned() } else { (*dice.pick(of).unwrap()).to_owned() }
}

fn column<'a>(of: &'a Instance, name: &str) -> Option<&'a str> {
    match name {
        "region" => Some(&of.region),
        "name" => Some(&of.name),
        "cloud_provider" => Some(&of.cloud_provider),
        "status" => Some(of.status.as_str()),
        "owner" => Some(&of.owner),
        "instance_type" => Some(&of.instance_type),
        _ => None,
    }
}

/// What is found, page by page.
async fn all(
    db: &Db,
    own: OrganizationId,
    expr: Option<&Expr>,
    order: &[(String, Direction)],
) -> Vec<Instance> {
    let search = Search { scope: Scope::Organization(own), kind: "kafka", expr, order };
    let mut read = db.read().await.unwrap();
    let total = usize::try_from(count(&mut read, &search).await.unwrap()).unwrap();
    let mut found = list(&mut read, &search, 7, 0).await.unwrap();
    found.extend(list(&mut read, &search, 1000, 7).await.unwrap());
    assert_eq!(found.len(), total, "{expr:?}");
    found
}

fn ids<'a>(of: impl Iterator<Item = &'a Instance>) -> Vec<String> {
    of.map(|one| format!("{} {}", one.name, one.id)).collect()
}
