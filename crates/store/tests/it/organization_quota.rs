//! Quotas of organizations: refusals change nothing, and usage always equals the rows.

use std::collections::BTreeMap;
use std::time::Duration;

use base::task;
use model::environment::OnDrift;
use model::event::Actor;
use model::organization::quota::{DefaultQuotas, Exceeded, Limit, QuotaKind};
use model::user::{Access, NewUser, Role, User};
use model::{OrganizationId, Quantity, Resources, template};
use store::deployment::Change;
use store::environment::NewEnvironment;
use store::template::NewTemplate;
use store::{
    Db, Error, Page, Scope, Tx, cluster, deployment, environment, invite, organization_quota,
    token, user,
};
use testing::{Rng, check_ledgers, on_both_engines, rows};

use crate::support::{database, texts};

on_both_engines! {
    async fn request_beyond_a_quota_is_refused_and_changes_nothing(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        set(db, own, &[("cpu", Some(4))]).await;
        let three = rows::deployment(db, own, &cpu(1, 3)).await;
        let before = texts(db, "SELECT change FROM event ORDER BY id").await;
        let Exceeded { kind, used, requested, limit } = refused(create(db, own, &cpu(2, 1)).await);
        let whole = |amount: Quantity| amount.milli() / 1000;
        assert_eq!((kind.to_string().as_str(), whole(used)), ("cpu", 3));
        assert_eq!((whole(requested), whole(limit)), (2, 4));
        refused(scale(db, &three, 5).await);
        assert_eq!(texts(db, "SELECT change FROM event ORDER BY id").await, before);
        assert_eq!(used_of(db, own, "cpu").await, Quantity::whole(3));
        scale(db, &three, 4).await.unwrap();
        refused(create(db, own, &cpu(1, 1)).await);
        scale(db, &three, 2).await.unwrap();
        create(db, own, &cpu(2, 1)).await.unwrap();
        delete(db, &three).await;
        assert_eq!(used_of(db, own, "cpu").await, Quantity::whole(2));
        // Another organization is not affected.
        let other = rows::tenant(db, "globex").await.organization_id;
        create(db, other, &cpu(100, 1)).await.unwrap();
        check_ledgers(db).await;
    }

    async fn quota_below_the_usage_stops_nothing_and_refuses_more(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        let running = rows::deployment(db, own, &cpu(2, 2)).await;
        set(db, own, &[("cpu", Some(1)), ("deployments", Some(0))]).await;
        let found = deployment::get(&mut db.read().await.unwrap(), Scope::All, running.id).await;
        assert_eq!(found.unwrap().spec.replicas, 2);
        refused(scale(db, &running, 3).await);
        refused(create(db, own, &cpu(0, 1)).await);
        scale(db, &running, 1).await.unwrap();
        set(db, own, &[("cpu", None), ("deployments", None)]).await;
        create(db, own, &cpu(50, 1)).await.unwrap();
        check_ledgers(db).await;
    }

    async fn default_applies_to_organizations_without_a_quota_of_their_own(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let mut defaults = DefaultQuotas::default();
        defaults.set_all("cpu=2").unwrap();
        db.set_default_quotas(defaults);
        let [acme, globex] = [rows::tenant(db, "acme").await, rows::tenant(db, "globex").await];
        let [acme, globex] = [acme.organization_id, globex.organization_id];
        set(db, globex, &[("cpu", Some(3))]).await;
        refused(create(db, acme, &cpu(3, 1)).await);
        create(db, globex, &cpu(3, 1)).await.unwrap();
        refused(create(db, globex, &cpu(1, 1)).await);
        let mut tx = db.begin(Actor::Server).await.unwrap();
        let unlimited = [("cpu".parse().unwrap(), Some(Limit::Unlimited))].into();
        organization_quota::set(&mut tx, acme, &unlimited).await.unwrap();
        tx.commit().await.unwrap();
        create(db, acme, &cpu(3, 1)).await.unwrap();
    }

    async fn concurrent_creates_use_a_quota_up_to_its_limit(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        set(db, own, &[("cpu", Some(20))]).await;
        let creating: Vec<_> = (0..60)
            .map(|_| {
                let db = db.clone();
                task::spawn("create", async move { create(&db, own, &cpu(1, 1)).await })
            })
            .collect();
        let mut created = 0;
        for one in creating {
            match one.await.unwrap() {
                Ok(()) => created += 1,
                other => drop(refused(other)),
            }
        }
        assert_eq!(created, 20);
        assert_eq!(used_of(db, own, "cpu").await, Quantity::whole(20));
        check_ledgers(db).await;
    }

    async fn concurrent_random_changes_keep_usage_equal_to_the_rows(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let mut owners = Vec::new();
        for name in ["acme", "globex"] {
            let owner = rows::tenant(db, name).await;
            let limits = [("cpu", 12), ("ram", 30), ("deployments", 9), ("clusters", 3), ("members", 4)];
            set(db, owner.organization_id, &limits.map(|(kind, limit)| (kind, Some(limit)))).await;
            owners.push(owner);
        }
        let mut rng = Rng::from_env();
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (db, mut rng, owners) = (db.clone(), rng.split(), owners.clone());
                task::spawn("changes", async move {
                    let mut outcomes = BTreeMap::new();
                    for _ in 0..60 {
                        let outcome = change(&db, &mut rng, &owners).await;
                        *outcomes.entry(outcome).or_insert(0) += 1;
                    }
                    outcomes
                })
            })
            .collect();
        let mut outcomes = BTreeMap::new();
        for task in tasks {
            for (outcome, count) in task.await.unwrap() {
                *outcomes.entry(outcome).or_insert(0) += count;
            }
        }
        assert!(outcomes.get("done").is_some_and(|n| *n >= 20), "{outcomes:?}");
        assert!(outcomes.get("refused").is_some_and(|n| *n >= 20), "{outcomes:?}");
        check_ledgers(db).await;
        for owner in &owners {
            let of = owner.organization_id;
            for (kind, limit) in [("cpu", 12), ("ram", 30), ("deployments", 9), ("clusters", 3)] {
                assert!(used_of(db, of, kind).await <= Quantity::whole(limit), "{kind}");
            }
            let mut tx = db.begin(Actor::Server).await.unwrap();
            assert_eq!(organization_quota::recount(&mut tx, of).await.unwrap(), []);
        }
    }

    async fn every_subject_of_an_organization_is_limited(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let owner = rows::tenant(db, "acme").await;
        let own = owner.organization_id;
        // The owner is a member.
        for (kind, limit) in [
            ("clusters", 2),
            ("environments", 2),
            ("templates", 2),
            ("members", 3),
            ("invites", 2),
            ("tokens", 2),
        ] {
            set(db, own, &[(kind, Some(limit))]).await;
            for number in 0..2 {
                add(db, &owner, kind, number).await.unwrap_or_else(|error| panic!("{kind}: {error}"));
            }
            let exceeded = refused(add(db, &owner, kind, 2).await);
            assert_eq!(exceeded.kind.to_string(), kind);
            assert_eq!((exceeded.used, exceeded.requested), (Quantity::whole(limit), Quantity::whole(1)));
            assert_eq!(used_of(db, own, kind).await, Quantity::whole(limit), "{kind}");
        }
        check_ledgers(db).await;
    }

    async fn end_of_a_subject_releases_its_quota(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let owner = rows::tenant(db, "acme").await;
        let own = owner.organization_id;
        let kinds = ["clusters", "environments", "templates", "members", "invites", "tokens"];
        for kind in kinds {
            add(db, &owner, kind, 0).await.unwrap();
        }
        let mut tx = db.begin(Actor::Server).await.unwrap();
        let page = Page::first(10);
        let scope = Scope::Organization(own);
        let filter = cluster::Filter::default();
        for found in cluster::list(&mut tx, scope, &filter, &page).await.unwrap() {
            cluster::delete(&mut tx, &found).await.unwrap();
        }
        for mut found in environment::list(&mut tx, scope, &environment::Filter::default(), &page).await.unwrap() {
            use model::environment::Status::{Destroyed, Destroying};
            for status in [Destroying, Destroyed] {
                environment::transition(&mut tx, &mut found, status, model::environment::Reason::default()).await.unwrap();
            }
        }
        let template = store::template::get(&mut tx, scope, "web", "1.0.0").await.unwrap();
        store::template::delete(&mut tx, &template).await.unwrap();
        for found in invite::list(&mut tx, scope, &page).await.unwrap() {
            invite::revoke(&mut tx, scope, found.id).await.unwrap();
        }
        for found in user::list(&mut tx, scope, &page).await.unwrap().iter().filter(|u| u.id != owner.id) {
            user::delete(&mut tx, scope, found.id).await.unwrap();
        }
        token::delete_all_of(&mut tx, owner.id).await.unwrap();
        tx.commit().await.unwrap();
        for kind in kinds {
            let left = i64::from(kind == "members");
            assert_eq!(used_of(db, own, kind).await, Quantity::whole(left), "{kind}");
        }
        check_ledgers(db).await;
    }

    async fn concurrent_logins_never_exceed_the_quota_of_tokens(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let owner = rows::tenant(db, "acme").await;
        set(db, owner.organization_id, &[("tokens", Some(7))]).await;
        let creating: Vec<_> = (0..30)
            .map(|number| {
                let (db, owner) = (db.clone(), owner.clone());
                task::spawn("login", async move { add(&db, &owner, "tokens", number).await })
            })
            .collect();
        let mut created = 0;
        for one in creating {
            match one.await.unwrap() {
                Ok(()) => created += 1,
                other => drop(refused(other)),
            }
        }
        assert_eq!(created, 7);
    }

    async fn recount_corrects_what_older_servers_did_not_count(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        let counted = rows::deployment(db, own, &cpu(2, 3)).await;
        let mut tx = db.begin(Actor::Server).await.unwrap();
        tx.run("UPDATE organization_quota SET used = 1", &[]).await.unwrap();
        tx.run("DELETE FROM organization_quota WHERE kind = 'deployments'", &[]).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = db.begin(Actor::Server).await.unwrap();
        let changed = organization_quota::recount(&mut tx, own).await.unwrap();
        tx.commit().await.unwrap();
        let kinds: Vec<String> = changed.iter().map(|(kind, ..)| kind.to_string()).collect();
        assert_eq!(kinds, ["deployments", "members", "cpu"]);
        check_ledgers(db).await;
        // A release never fails because something was not counted.
        let mut tx = db.begin(Actor::Server).await.unwrap();
        tx.run("UPDATE organization_quota SET used = 0", &[]).await.unwrap();
        tx.commit().await.unwrap();
        delete(db, &counted).await;
        assert_eq!(used_of(db, own, "cpu").await, Quantity::ZERO);
    }

    async fn extreme_requests_do_not_overflow_the_usage(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        let all: Resources = [("cpu".to_owned(), Quantity::MAX)].into_iter().collect();
        let new = rows::new_deployment(None, None, all, 0);
        for _ in 0..2 {
            create(db, own, &new).await.unwrap();
        }
        refused(create(db, own, &new).await);
        check_ledgers(db).await;
    }

    async fn resource_type_named_like_a_subject_is_counted_apart(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        set(db, own, &[("deployments", Some(2))]).await;
        let new = rows::new_deployment(None, None, Resources::from([("deployments", 50)]), 0);
        create(db, own, &new).await.unwrap();
        assert_eq!(used_of(db, own, "deployments").await, Quantity::whole(1));
        check_ledgers(db).await;
    }
}

/// A request for `replicas` replicas with so many CPUs each.
fn cpu(each: i64, replicas: u32) -> model::deployment::NewDeployment {
    let mut new = rows::new_deployment(None, None, Resources::from([("cpu", each)]), 0);
    new.spec.replicas = replicas;
    new
}

async fn set(db: &Db, of: OrganizationId, quotas: &[(&str, Option<i64>)]) {
    let quotas =
        quotas.iter().map(|(kind, limit)| (kind.parse().unwrap(), limit.map(Limit::count)));
    let mut tx = db.begin(Actor::Server).await.unwrap();
    organization_quota::set(&mut tx, of, &quotas.collect()).await.unwrap();
    tx.commit().await.unwrap();
}

async fn create(
    db: &Db,
    of: OrganizationId,
    new: &model::deployment::NewDeployment,
) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    deployment::create(&mut tx, of, new, rows::LIMITS).await?;
    tx.commit().await
}

async fn scale(db: &Db, which: &model::deployment::Deployment, to: u32) -> store::Result<()> {
    let mut tx = db.begin(Actor::Server).await?;
    let change = Change { replicas: Some(to), ..Change::default() };
    deployment::set(&mut tx, which.id, &change).await?;
    tx.commit().await
}

async fn delete(db: &Db, which: &model::deployment::Deployment) {
    let mut tx = db.begin(Actor::Server).await.unwrap();
    deployment::request_delete(&mut tx, Scope::All, which.id).await.unwrap();
    tx.commit().await.unwrap();
}

fn refused(outcome: store::Result<()>) -> Exceeded {
    match outcome {
        Err(Error::QuotaExceeded(exceeded)) => *exceeded,
        other => panic!("{other:?}"),
    }
}

async fn used_of(db: &Db, of: OrganizationId, kind: &str) -> Quantity {
    let (defaults, kind): (_, QuotaKind) = (db.default_quotas(), kind.parse().unwrap());
    let mut read = db.read().await.unwrap();
    let all = organization_quota::usage(&mut read, of, &defaults, db.now()).await.unwrap();
    all.into_iter().find(|usage| usage.kind == kind).map_or(Quantity::ZERO, |usage| usage.used)
}

/// Creates an object of that kind.
async fn add(db: &Db, owner: &User, kind: &str, number: i64) -> store::Result<()> {
    let mut tx = db.begin(Actor::User(owner.id)).await?;
    let own = owner.organization_id;
    match kind {
        "clusters" => {
            let new = rows::new_cluster("main", Resources::from([("cpu", 1)]));
            cluster::create(&mut tx, Some(own), &new).await.map(drop)?;
        }
        "environments" => {
            environment::create(&mut tx, own, &new_environment(owner, number)).await.map(drop)?;
        }
        "templates" => publish(&mut tx, own, number).await?,
        "members" => {
            let username = format!("ann{number}-{}", tx.id::<model::Xid>());
            let new = NewUser { username: username.clone(), display_name: username };
            let (role, access) = (Role::Member, Access::Tenant);
            user::create(&mut tx, own, &new, "hash", role, access).await.map(drop)?;
        }
        "invites" => {
            let hash = format!("hash {number} {own}");
            let life = Duration::from_hours(1);
            invite::create(&mut tx, own, owner.id, &hash, Role::Member, life).await.map(drop)?;
        }
        "tokens" => {
            let end = tx.now() + Duration::from_hours(1);
            token::create(&mut tx, owner.id, &format!("hash {number}"), end).await?;
        }
        other => panic!("{other}"),
    }
    tx.commit().await
}

fn new_environment(owner: &User, number: i64) -> NewEnvironment {
    NewEnvironment {
        name: format!("staging-{number}"),
        description: String::new(),
        tags: BTreeMap::new(),
        templates: Vec::new(),
        parameters: serde_json::Map::new(),
        on_drift: OnDrift::Report,
        destroy_at: None,
        created_by: owner.id,
    }
}

async fn publish(tx: &mut Tx, own: OrganizationId, number: i64) -> store::Result<()> {
    let source = format!(
        "name: web\nversion: {}.0.0\nresources:\n- name: one\n  executor: deployment\n  with: {{image: nginx}}\n",
        number + 1
    );
    let template = template::parse("template.yaml", &source).unwrap();
    let (files, hash) = (BTreeMap::new(), format!("hash {number}"));
    let new = NewTemplate {
        organization_id: Some(own),
        template: &template,
        source: &source,
        files: &files,
        hash: &hash,
    };
    store::template::publish(tx, &new).await.map(drop)
}

/// Applies a random change. Returns how it ended.
async fn change(db: &Db, rng: &mut Rng, owners: &[User]) -> &'static str {
    let owner = rng.pick(owners).unwrap().clone();
    match attempt(db, rng, &owner).await {
        Ok(()) => "done",
        Err(Error::QuotaExceeded(_)) => "refused",
        Err(Error::Conflict(_) | Error::NotFound { .. }) => "conflict",
        Err(error) => panic!("{error}"),
    }
}

async fn attempt(db: &Db, rng: &mut Rng, owner: &User) -> store::Result<()> {
    let own = owner.organization_id;
    let scope = Scope::Organization(own);
    let (filter, page) = (deployment::Filter::default(), Page::first(1000));
    let all = deployment::list(&mut db.read().await?, scope, &filter, &page).await?;
    let amount = |rng: &mut Rng| i64::try_from(rng.below(4)).unwrap();
    match (rng.below(10), rng.pick(&all).cloned()) {
        (0..=3, _) | (4..=7, None) => {
            let resources = Resources::from([("cpu", amount(rng)), ("ram", amount(rng))]);
            let mut new = rows::new_deployment(None, None, resources, 0);
            new.spec.replicas = u32::try_from(rng.below(3)).unwrap() + 1;
            create(db, own, &new).await
        }
        (4 | 5, Some(one)) => scale(db, &one, u32::try_from(rng.below(6)).unwrap() + 1).await,
        (6 | 7, Some(one)) => {
            let mut tx = db.begin(Actor::Server).await?;
            deployment::request_delete(&mut tx, Scope::All, one.id).await?;
            tx.commit().await
        }
        (8, _) => {
            let filter = cluster::Filter { only_own: true, ..cluster::Filter::default() };
            let found = cluster::list(&mut db.read().await?, scope, &filter, &page).await?;
            match rng.pick(&found) {
                Some(found) if rng.one_in(2) => {
                    let mut tx = db.begin(Actor::Server).await?;
                    cluster::delete(&mut tx, found).await?;
                    tx.commit().await
                }
                _ => add(db, owner, "clusters", 0).await,
            }
        }
        _ => {
            let found = user::list(&mut db.read().await?, scope, &page).await?;
            match rng.pick(&found).filter(|found| found.id != owner.id) {
                Some(found) => {
                    let mut tx = db.begin(Actor::Server).await?;
                    user::delete(&mut tx, scope, found.id).await?;
                    tx.commit().await
                }
                None => add(db, owner, "members", 0).await,
            }
        }
    }
}
