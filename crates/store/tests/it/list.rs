//! Lists build their statement from the filters: each filter alone and in all combinations.

use model::event::Actor;
use model::{DeploymentId, OrganizationId, Resources, Time};
use store::{Page, Scope, cluster, deployment, event, instance, invite, organization, user};
use testing::{on_both_engines, rows};

use crate::support::database;

/// Both scopes with every kind of page.
fn scopes_and_pages(own: OrganizationId) -> Vec<(Scope, Page)> {
    let after = Some("0".repeat(20));
    let pages = [Page::first(10), Page { after, limit: 10, skip: 0 }];
    let scopes = [Scope::All, Scope::Organization(own)];
    scopes.into_iter().flat_map(|scope| pages.clone().map(|page| (scope, page))).collect()
}

/// The value if the bit is set in the mask.
fn if_set<T>(mask: u32, bit: u32, value: T) -> Option<T> {
    (mask & (1 << bit) != 0).then_some(value)
}

on_both_engines! {
    async fn unreadable_row_does_not_hide_the_others(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        let cpu = || Resources::from([("cpu", 4)]);
        let clusters =
            [rows::cluster(db, Some(own), cpu()).await, rows::cluster(db, Some(own), cpu()).await];
        let new = rows::new_deployment(None, None, cpu(), 0);
        let deployments = [rows::deployment(db, own, &new).await, rows::deployment(db, own, &new).await];
        let mut instances = Vec::new();
        for name in ["a", "b"] {
            instances.push(crate::search::instance(db, own, name).await);
        }
        let mut tx = db.begin(Actor::Server).await.unwrap();
        for (column, id) in [
            ("cluster SET hosting", clusters[0].id.to_string()),
            ("deployment SET spec", deployments[0].id.to_string()),
            ("instance SET detail", instances[0].id.to_string()),
        ] {
            let sql = format!("UPDATE {column} = 'broken' WHERE id = '{id}'");
            assert_eq!(tx.run(&sql, &[]).await.unwrap(), 1);
        }
        tx.commit().await.unwrap();
        let (mut read, page) = (db.read().await.unwrap(), Page::first(10));
        let read = &mut read;
        let found = cluster::list(read, Scope::All, &cluster::Filter::default(), &page).await.unwrap();
        assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [clusters[1].id]);
        let found = deployment::list(read, Scope::All, &deployment::Filter::default(), &page).await;
        let found: Vec<_> = found.unwrap().into_iter().map(|one| one.id).collect();
        assert!(found.contains(&deployments[1].id) && !found.contains(&deployments[0].id));
        let placed = deployment::placement::list(read, &page).await.unwrap();
        assert!(placed.iter().any(|(one, _)| one.id == deployments[1].id));
        let found = instance::list(read, Scope::All, &instance::Filter::default(), &page).await.unwrap();
        assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [instances[1].id]);
        // Reading just that row reports that it is broken, not that it is missing.
        let broken = |outcome: store::Error| matches!(outcome, store::Error::Database(_));
        assert!(broken(cluster::get(read, Scope::All, clusters[0].id).await.unwrap_err()));
        assert!(broken(deployment::get(read, Scope::All, deployments[0].id).await.unwrap_err()));
        assert!(broken(instance::get(read, Scope::All, instances[0].id).await.unwrap_err()));
    }

    async fn clusters_match_every_filter_combination(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        let made = rows::ready_cluster(db, Some(own), Resources::from([("cpu", 4), ("ram", 2)])).await;
        let mut read = db.read().await.unwrap();
        for mask in 0..8 {
            let filter = cluster::Filter {
                status: if_set(mask, 0, made.status),
                name: if_set(mask, 1, made.name.clone()),
                only_own: mask & 4 != 0,
            };
            for (scope, page) in scopes_and_pages(own) {
                let found = cluster::list(&mut read, scope, &filter, &page).await.unwrap();
                assert_eq!(found, std::slice::from_ref(&made), "{filter:?} {scope:?} {page:?}");
                assert_eq!(cluster::count(&mut read, scope, &filter).await.unwrap(), 1);
            }
        }
    }

    async fn deployments_match_every_filter_combination(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        let on = rows::ready_cluster(db, Some(own), Resources::from([("cpu", 4)])).await;
        let new = rows::new_deployment(Some(on.id), None, Resources::from([("cpu", 1)]), 0);
        let made = rows::deployment(db, own, &new).await;
        let mut read = db.read().await.unwrap();
        for mask in 0..16 {
            let filter = deployment::Filter {
                id: if_set(mask, 0, made.id),
                name: if_set(mask, 1, made.name.clone()),
                cluster: if_set(mask, 2, on.id),
                status: if_set(mask, 3, made.status),
                with_instances: false,
            };
            for (scope, page) in scopes_and_pages(own) {
                let found = deployment::list(&mut read, scope, &filter, &page).await.unwrap();
                assert_eq!(found, std::slice::from_ref(&made), "{filter:?} {scope:?} {page:?}");
                assert_eq!(deployment::count(&mut read, scope, &filter).await.unwrap(), 1);
            }
        }
    }

    async fn events_match_every_filter_combination(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        db.number_events().await.unwrap();
        let mut read = db.read().await.unwrap();
        for mask in 0..16 {
            let filter = event::Filter {
                kind: if_set(mask, 0, "organization".to_owned()),
                subject: if_set(mask, 1, own.to_string()),
                change: if_set(mask, 2, "organization.created".to_owned()),
                since: if_set(mask, 3, Time(0)),
            };
            for (scope, _) in scopes_and_pages(own) {
                let found = event::list(&mut read, scope, &filter, 0, 10).await.unwrap();
                assert_eq!(found.first().unwrap().change, "organization.created", "{filter:?}");
                assert_eq!(found.len(), if mask.trailing_zeros() >= 3 { 2 } else { 1 }, "{filter:?}");
            }
        }
    }

    async fn filter_without_matches_returns_nothing(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let own = rows::tenant(db, "acme").await.organization_id;
        let on = rows::cluster(db, Some(own), Resources::from([("cpu", 4)])).await;
        let new = rows::new_deployment(Some(on.id), None, Resources::from([("cpu", 1)]), 0);
        rows::deployment(db, own, &new).await;
        let other = rows::cluster(db, Some(own), Resources::from([("cpu", 4)])).await;
        let tx = db.begin(Actor::Server).await.unwrap();
        let nobody = tx.id::<DeploymentId>();
        drop(tx);
        let mut read = db.read().await.unwrap();
        for filter in [
            deployment::Filter { id: Some(nobody), ..Default::default() },
            deployment::Filter { name: Some("other".into()), ..Default::default() },
            deployment::Filter { cluster: Some(other.id), ..Default::default() },
            deployment::Filter { status: Some(model::deployment::Status::Failed), ..Default::default() },
        ] {
            let found = deployment::list(&mut read, Scope::All, &filter, &Page::first(9)).await;
            assert_eq!(found.unwrap(), [], "{filter:?}");
        }
    }

    async fn members_and_invites_are_paged(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let owner = rows::tenant(db, "acme").await;
        let own = owner.organization_id;
        let mut tx = db.begin(Actor::User(owner.id)).await.unwrap();
        let invite =
            invite::create(&mut tx, own, owner.id, "code", model::user::Role::Member, model::invite::DEFAULT_LIFETIME).await.unwrap();
        tx.commit().await.unwrap();
        let mut read = db.read().await.unwrap();
        for (scope, page) in scopes_and_pages(own) {
            assert_eq!(user::list(&mut read, scope, &page).await.unwrap(), std::slice::from_ref(&owner));
            assert_eq!(invite::list(&mut read, scope, &page).await.unwrap(), std::slice::from_ref(&invite));
            assert_eq!(organization::list(&mut read, scope, &page).await.unwrap()[0].id, own);
        }
    }

    async fn pages_have_no_gaps_or_overlaps(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let mut made = Vec::new();
        for _ in 0..7 {
            made.push(rows::cluster(db, None, Resources::from([("cpu", 1), ("ram", 1)])).await.id);
        }
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = Page { after, limit: 3, skip: 0 };
            let mut read = db.read().await.unwrap();
            let part =
                cluster::list(&mut read, Scope::All, &cluster::Filter::default(), &page).await.unwrap();
            assert!(part.len() <= 3 && part.iter().all(|cluster| cluster.capacity.len() == 2));
            let Some(last) = part.last() else { break };
            after = Some(last.id.to_string());
            seen.extend(part.iter().map(|cluster| cluster.id));
        }
        assert_eq!(seen, made);
    }
}
