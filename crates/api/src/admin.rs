//! The platform administrator: made at the first start.

use base::entropy;
use model::event::Actor;
use model::user::{Access, NewUser, Role};
use store::{Db, Scope};

use crate::{App, Problem};

/// The administrator's user name.
const USERNAME: &str = "admin";
/// The organization that it belongs to.
const ORGANIZATION: &str = "platform";

impl App {
    /// Makes sure that there is an administrator, with this password if one is set.
    ///
    /// Returns the password if it had to be made up; it is kept nowhere else.
    pub async fn ensure_admin(&self, password: Option<&str>) -> Result<Option<String>, Problem> {
        let found = store::user::credentials(&mut self.db.read().await?, USERNAME).await?;
        match (found, password) {
            (Some(_), None) => Ok(None),
            (Some((user, hash)), Some(password)) => {
                let turn = self.passwords.turn().await;
                if !self.passwords.verify(turn, password, Some(hash)).await {
                    let hash = self.hash(password).await?;
                    let change =
                        store::user::Change { password_hash: Some(hash), ..Default::default() };
                    let mut tx = self.db.begin(Actor::Server).await?;
                    store::user::set(&mut tx, Scope::All, user.id, &change).await?;
                    tx.commit().await?;
                }
                Ok(None)
            }
            (None, given) => {
                let made_up = given.is_none().then(|| made_up(&self.db));
                let password = given.or(made_up.as_deref()).unwrap_or_default();
                let hash = self.hash(password).await?;
                let is_first = self.create_admin(&hash).await?;
                Ok(made_up.filter(|_| is_first))
            }
        }
    }

    async fn hash(&self, password: &str) -> Result<String, Problem> {
        let turn = self.passwords.turn().await;
        self.passwords.hash(turn, self.db.entropy(), password).await
    }

    /// False if another replica was faster.
    async fn create_admin(&self, hash: &str) -> Result<bool, Problem> {
        let mut tx = self.db.begin(Actor::Server).await?;
        tx.lock("admin").await?;
        if store::user::credentials(&mut tx, USERNAME).await?.is_some() {
            return Ok(false);
        }
        let organization = store::organization::create(&mut tx, ORGANIZATION).await?;
        let new = NewUser::check(USERNAME, Some("Platform administrator"))?;
        store::user::create(&mut tx, organization.id, &new, hash, Role::Owner, Access::Platform)
            .await?;
        tx.commit().await?;
        Ok(true)
    }
}

fn made_up(db: &Db) -> String {
    entropy::secret(db.entropy()).chars().take(24).collect()
}
