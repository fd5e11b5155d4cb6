//! Search in instances: both engines find what the model says, and nothing beyond the scope.

use model::OrganizationId;
use model::event::Actor;
use model::instance::{Billing, Charge, Detail, Instance, NewInstance, Reason, Status};
use model::reason::StatusReason as _;
use model::search::{Direction, Expr, Op};
use store::instance::search::{Search, count, list};
use store::{Db, Scope, instance, quota_usage};
use testing::{Rng, on_both_engines, rows};

use crate::support::database;

/// Texts with characters that are special in SQL or in patterns.
const TEXTS: [&str; 12] =
    ["a", "A", "ab", "aB", "a%b", "a_b", "a\\b", "a'b", "a\"; --", "b", "", "%"];
/// Patterns for them.
const PATTERNS: [&str; 13] =
    ["%", "_", "a%", "A%", "%b", "a_b", "a\\%b", "a\\_b", "a\\\\b", "\\", "a\\", "%'%", "a$1?"];
const COLUMNS: [&str; 7] =
    ["region", "name", "cloud_provider", "status", "owner", "cluster_id", "instance_type"];

on_both_engines! {
    async fn results_equal_the_model_on_both_engines(engine: Engine) {
        let database = database(engine).await;
        let (db, mut rng) = (&database.db, Rng::from_env());
        let own = rows::tenant(db, "acme").await.organization_id;
        let other = rows::tenant(db, "other").await.organization_id;
        let mut mine = Vec::new();
        for n in 0..24 {
            mine.push(made(db, own, "kafka", &mut rng, n).await);
            made(db, other, "kafka", &mut rng, n).await;
            made(db, own, "dinosaur", &mut rng, n).await;
        }
        mine.sort_by(|a, b| a.name.cmp(&b.name));
        for _ in 0..400 {
            let expr = expr(&mut rng, 3);
            let found = all(db, own, Some(&expr), &[]).await;
            let expected: Vec<_> =
                mine.iter().filter(|one| expr.matches(&|name| column(one, name))).collect();
            assert_eq!(ids(found.iter()), ids(expected.into_iter()), "{expr}");
        }
    }

    async fn results_have_the_requested_order(engine: Engine) {
        let database = database(engine).await;
        let (db, mut rng) = (&database.db, Rng::from_env());
        let own = rows::tenant(db, "acme").await.organization_id;
        let mut mine = Vec::new();
        for n in 0..24 {
            mine.push(made(db, own, "kafka", &mut rng, n).await);
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

    async fn promotion_moves_the_charge_or_changes_nothing(engine: Engine) {
        let database = database(engine).await;
        let (db, mut rng) = (&database.db, Rng::from_env());
        let own = rows::tenant(db, "acme").await.organization_id;
        let id = made(db, own, "kafka", &mut rng, 0).await.id;
        for (limit, expected) in [(0, "eval"), (1, "standard")] {
            let mut tx = db.begin(Actor::Server).await.unwrap();
            let mut found = instance::lock(&mut tx, Scope::All, id).await.unwrap();
            let billing = Billing { desired: "standard".into(), ..Billing::default() };
            let charge = Charge { holder: "organization/x".into(), account: "standard".into(), units: 1 };
            let done = instance::promotion::promote(&mut tx, &mut found, billing, charge, Some(limit)).await;
            match done {
                Ok(()) => tx.commit().await.unwrap(),
                Err(store::Error::Limit { .. }) => drop(tx),
                Err(other) => panic!("{other}"),
            }
            let mut read = db.read().await.unwrap();
            let of = quota_usage::usage(&mut read, "organization/x").await.unwrap();
            assert_eq!(of, [("kafka".to_owned(), expected.to_owned(), 1)]);
        }
    }
}

/// An instance for other tests.
pub(crate) async fn instance(db: &Db, own: OrganizationId, name: &str) -> Instance {
    made(db, own, name, &mut Rng::from_env(), 1).await
}

async fn made(db: &Db, own: OrganizationId, kind: &str, rng: &mut Rng, n: usize) -> Instance {
    let mut text = || (*rng.pick(&TEXTS).unwrap()).to_owned();
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

fn expr(rng: &mut Rng, depth: u32) -> Expr {
    let column = (*rng.pick(&COLUMNS).unwrap()).to_owned();
    let parts = |rng: &mut Rng| {
        let n = 2 + rng.below(2);
        (0..n).map(|_| expr(rng, depth - 1)).collect::<Vec<_>>()
    };
    match rng.below(if depth == 0 { 3 } else { 6 }) {
        0 => {
            let values = (0..=rng.below(3)).map(|_| value(rng, &TEXTS)).collect();
            Expr::In { column, not: rng.one_in(2), values }
        }
        1 => {
            let op = *rng.pick(&[Op::Like, Op::ILike]).unwrap();
            Expr::Compare { column, op, value: value(rng, &PATTERNS) }
        }
        2 => {
            let op = *rng.pick(&[Op::Eq, Op::Ne]).unwrap();
            Expr::Compare { column, op, value: value(rng, &TEXTS) }
        }
        3 | 4 => Expr::Or(parts(rng)),
        _ => Expr::And(parts(rng)),
    }
}

fn value(rng: &mut Rng, of: &[&str]) -> String {
    if rng.one_in(8) { "failed".to_owned() } else { (*rng.pick(of).unwrap()).to_owned() }
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

/// All results, page by page.
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
