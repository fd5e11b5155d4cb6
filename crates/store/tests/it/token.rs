//! Tokens, service accounts and password resets.

use std::time::Duration;

use base::task;
use model::access::SubjectKind;
use model::event::Actor;
use model::token::{Kind, MAX_PER_USER, Scope as TokenScope, Token, USE_INTERVAL};
use model::user::{Access, NewUser, Role, User};
use model::{Time, TokenId};
use store::quota::NewQuota;
use store::service_account::ServiceAccount;
use store::token::{Manager, NewToken};
use store::{Db, Error, Page, Scope, password_reset, quota, service_account, token, user};
use testing::{on_both_engines, rows};

use crate::support::{database, database_with_clock, texts};

/// Creates a token whose hash is its name.
async fn create(db: &Db, of: &User, name: &str, life: Duration) -> store::Result<Token> {
    let kinds = [SubjectKind::Deployment, SubjectKind::Cluster].into_iter().collect();
    let scope = TokenScope { read_only: true, kinds };
    let mut tx = db.begin(of.actor()).await?;
    let expires_at = tx.now() + life;
    let new =
        NewToken { user: of, kind: Kind::Personal, name, scope: &scope, hash: name, expires_at };
    let token = token::create_named(&mut tx, &new).await?;
    tx.commit().await?;
    Ok(token)
}

async fn find(db: &Db, hash: &str) -> Option<(User, Token)> {
    token::find(&mut db.read().await.unwrap(), hash, db.now()).await.unwrap()
}

async fn listed(db: &Db, by: Manager) -> Vec<String> {
    let mut read = db.read().await.unwrap();
    let all = token::list(&mut read, by, &Page::first(1000), db.now()).await.unwrap();
    all.into_iter().map(|token| token.name).collect()
}

async fn revoke(db: &Db, by: Manager, id: TokenId) -> store::Result<Token> {
    let mut tx = db.begin(Actor::Server).await?;
    let token = token::revoke(&mut tx, by, id).await?;
    tx.commit().await?;
    Ok(token)
}

async fn member(db: &Db, owner: &User, name: &str) -> User {
    let mut tx = db.begin(Actor::Anonymous).await.unwrap();
    let new = NewUser { username: name.into(), display_name: name.into() };
    let organization = owner.organization_id;
    let made =
        user::create(&mut tx, organization, &new, "hash", Role::Member, Access::Tenant).await;
    tx.commit().await.unwrap();
    made.unwrap()
}

fn own(user: &User) -> Manager {
    Manager { user: user.id, service_accounts_of: None }
}

const HOUR: Duration = Duration::from_hours(1);

on_both_engines! {
    async fn token_is_found_listed_and_revoked(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        let (ann, zoe) = (rows::tenant(db, "ann").await, rows::tenant(db, "zoe").await);
        let made = create(db, &ann, "ci", HOUR).await.unwrap();
        let (user, found) = find(db, "ci").await.unwrap();
        assert_eq!((&user, &found), (&ann, &made));
        assert_eq!(found.scope.to_string(), "read subjects of kind cluster, deployment");
        assert_eq!(found.created_by, format!("user:{}", ann.id));
        create(db, &ann, "short", Duration::from_mins(1)).await.unwrap();
        assert_eq!(listed(db, own(&ann)).await, ["ci", "short"]);
        assert_eq!(listed(db, own(&zoe)).await, [""; 0]);

        clock.advance(Duration::from_mins(1));
        assert!(find(db, "short").await.is_none());
        assert_eq!(listed(db, own(&ann)).await, ["ci"]);

        let theirs = Manager { user: zoe.id, service_accounts_of: Some(zoe.organization_id) };
        assert!(matches!(revoke(db, theirs, made.id).await, Err(Error::NotFound { .. })));
        // Owning the organization does not show personal tokens.
        let owner = Manager { user: zoe.id, service_accounts_of: Some(ann.organization_id) };
        assert!(matches!(revoke(db, owner, made.id).await, Err(Error::NotFound { .. })));
        assert_eq!(revoke(db, own(&ann), made.id).await.unwrap(), made);
        assert!(find(db, "ci").await.is_none());
        let events = texts(db, "SELECT change FROM event WHERE change LIKE '%token%' ORDER BY id").await;
        assert_eq!(events, ["user.token_created", "user.token_created", "user.token_revoked"]);
    }

    async fn one_of_many_concurrent_revocations_succeeds(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let ann = rows::tenant(db, "ann").await;
        let id = create(db, &ann, "ci", HOUR).await.unwrap().id;
        let by = own(&ann);
        let revoking: Vec<_> = (0..8)
            .map(|_| {
                let db = db.clone();
                task::spawn("revoke", async move { revoke(&db, by, id).await })
            })
            .collect();
        let mut revoked = 0;
        for one in revoking {
            match one.await.unwrap() {
                Ok(_) => revoked += 1,
                Err(error) => assert!(matches!(error, Error::NotFound { .. }), "{error}"),
            }
        }
        assert_eq!(revoked, 1);
    }

    async fn number_of_tokens_is_limited_per_user(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let (ann, zoe) = (rows::tenant(db, "ann").await, rows::tenant(db, "zoe").await);
        for i in 0..MAX_PER_USER {
            create(db, &ann, &format!("{i}"), HOUR).await.unwrap();
        }
        let refused = create(db, &ann, "more", HOUR).await;
        assert!(matches!(refused, Err(Error::Limit { .. })), "{refused:?}");
        create(db, &zoe, "more", HOUR).await.unwrap();
        // Logins are not counted.
        let mut tx = db.begin(Actor::Server).await.unwrap();
        let end = tx.now() + HOUR;
        token::create(&mut tx, ann.id, "login", end).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(find(db, "login").await.unwrap().1.kind, Kind::Session);
    }

    async fn last_use_is_written_once_a_minute_without_an_event(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let ann = rows::tenant(db, "ann").await;
        create(db, &ann, "ci", HOUR).await.unwrap();
        let start = db.now();
        let events = async || texts(db, "SELECT change FROM event").await.len();
        let before = events().await;
        let minute = USE_INTERVAL;
        let second = Duration::from_secs(1);
        for (at, expected) in [
            (start, start),
            (start + second, start),
            (start + minute - second, start),
            (start + minute, start + minute),
            // Of two replicas, the slower one does not set it back.
            (start, start + minute),
        ] {
            let mut tx = db.begin(Actor::Server).await.unwrap();
            token::set_used(&mut tx, "ci", at).await.unwrap();
            tx.commit().await.unwrap();
            let used: Option<Time> = find(db, "ci").await.unwrap().1.last_used_at;
            assert_eq!(used, Some(expected));
        }
        assert_eq!(events().await, before);
    }

    async fn service_account_outlives_its_creator(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let ann = rows::tenant(db, "ann").await;
        let bob = member(db, &ann, "bob").await;
        let mut tx = db.begin(bob.actor()).await.unwrap();
        let owner = user::Change { role: Some(Role::Owner), ..Default::default() };
        user::set(&mut tx, Scope::All, bob.id, &owner).await.unwrap();
        let own = ann.organization_id;
        let robot = user::create_service_account(&mut tx, own, "ci", Role::Member).await.unwrap();
        let again = user::create_service_account(&mut tx, own, "ci", Role::Member).await;
        assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
        tx.commit().await.unwrap();
        create(db, &robot, "pipeline", HOUR).await.unwrap();
        assert_eq!(robot.actor().to_string(), format!("service-account:{}", robot.id));
        let mut tx = db.begin(ann.actor()).await.unwrap();
        // It is no owner: it neither becomes one nor counts as one.
        let refused = user::set(&mut tx, Scope::All, robot.id, &owner).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        user::delete(&mut tx, Scope::All, bob.id).await.unwrap();
        let refused = user::delete(&mut tx, Scope::All, ann.id).await;
        assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
        drop(tx);
        let mut tx = db.begin(ann.actor()).await.unwrap();
        user::delete(&mut tx, Scope::All, bob.id).await.unwrap();
        tx.commit().await.unwrap();

        let (user, token) = find(db, "pipeline").await.unwrap();
        assert_eq!((user.id, token.service_account.as_deref()), (robot.id, Some("ci")));
        let owner = Manager { user: ann.id, service_accounts_of: Some(own) };
        assert_eq!(listed(db, owner).await, ["pipeline"]);
        let mut read = db.read().await.unwrap();
        let people = user::list(&mut read, Scope::All, &Page::first(10)).await.unwrap();
        assert_eq!(people.iter().map(|user| user.id).collect::<Vec<_>>(), [ann.id]);
    }

    async fn removed_user_leaves_nothing_to_a_successor_of_the_same_name(engine: Engine) {
        let database = database(engine).await;
        let db = &database.db;
        let ann = rows::tenant(db, "ann").await;
        let bob = member(db, &ann, "bob").await;
        create(db, &bob, "ci", HOUR).await.unwrap();
        let mut tx = db.begin(bob.actor()).await.unwrap();
        let account = ServiceAccount {
            id: "1".into(),
            organization_id: ann.organization_id,
            owner: "bob".into(),
            name: "robot".into(),
            description: String::new(),
            client_id: "client".into(),
            created_at: tx.now(),
        };
        service_account::create(&mut tx, &account, "secret", None).await.unwrap();
        let grant = NewQuota {
            holder: "user/bob".into(),
            kind: None,
            instance_type: "standard".into(),
            billing_model: "standard".into(),
            limit: Some(5),
            expires_at: None,
        };
        quota::create(&mut tx, &grant).await.unwrap();
        let end = tx.now() + HOUR;
        password_reset::create(&mut tx, Scope::All, bob.id, "code", end).await.unwrap();
        tx.commit().await.unwrap();
        assert!(find(db, "ci").await.is_none(), "the reset revokes tokens");

        let mut tx = db.begin(ann.actor()).await.unwrap();
        user::delete(&mut tx, Scope::All, bob.id).await.unwrap();
        tx.commit().await.unwrap();
        member(db, &ann, "bob").await;
        let mut read = db.read().await.unwrap();
        assert!(service_account::find(&mut read, "client").await.unwrap().is_none());
        assert_eq!(quota::list(&mut read, Some("user/bob")).await.unwrap(), []);
        assert!(!password_reset::is_valid(&mut read, "code", db.now()).await.unwrap());
    }

    async fn password_reset_is_redeemed_once_and_disables_the_old_password(engine: Engine) {
        let (database, clock) = database_with_clock(engine).await;
        let db = &database.db;
        let ann = rows::tenant(db, "ann").await;
        let bob = member(db, &ann, "bob").await;
        for code in ["first", "second"] {
            let mut tx = db.begin(ann.actor()).await.unwrap();
            let end = tx.now() + HOUR;
            password_reset::create(&mut tx, Scope::All, bob.id, code, end).await.unwrap();
            tx.commit().await.unwrap();
        }
        let hash = async || {
            let mut read = db.read().await.unwrap();
            user::credentials(&mut read, "bob").await.unwrap().unwrap().1
        };
        assert_eq!(hash().await, "!");
        let redeem = async |code: &'static str| {
            let mut tx = db.begin(Actor::Anonymous).await.unwrap();
            let user = password_reset::redeem(&mut tx, code, "new".into()).await?;
            tx.commit().await.unwrap();
            Ok::<_, Error>(user.id)
        };
        // The second reset replaces the first.
        assert!(matches!(redeem("first").await, Err(Error::Conflict(_))));
        assert_eq!(redeem("second").await.unwrap(), bob.id);
        assert_eq!(hash().await, "new");
        assert!(matches!(redeem("second").await, Err(Error::Conflict(_))));

        let mut tx = db.begin(ann.actor()).await.unwrap();
        let end = tx.now() + HOUR;
        password_reset::create(&mut tx, Scope::All, bob.id, "late", end).await.unwrap();
        tx.commit().await.unwrap();
        clock.advance(HOUR);
        assert!(matches!(redeem("late").await, Err(Error::Conflict(_))));
    }
}
