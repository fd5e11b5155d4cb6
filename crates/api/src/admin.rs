//! Creation of the platform administrator at the first start.

use base::entropy;
use model::event::Actor;
use model::user::{Access, NewUser, Role};
use store::{Db, Scope};

use crate::password::Lane;
use crate::{App, Problem};

/// Username of the administrator.
const USERNAME: &str = "admin";
/// Organization of the administrator.
const ORGANIZATION: &str = "platform";

impl App {
    /// Ensures that an administrator exists, with this password if one is configured.
    ///
    /// Returns the password if it was generated; it is stored nowhere else.
    pub async fn ensure_admin(&self, password: Option<&str>) -> Result<Option<String>, Problem> {
        let found = store::user::credentials(&mut self.db.read().await?, USERNAME).await?;
        match (found, password) {
            (Some(_), None) => Ok(None),
            (Some((user, hash)), Some(password)) => {
                let permit = self.passwords.permit(Lane::Login).await?;
                if !self.passwords.verify(permit, password, Some(hash)).await {
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
                let generated = given.is_none().then(|| generate_password(&self.db));
                let password = given.or(generated.as_deref()).unwrap_or_default();
                let hash = self.hash(password).await?;
                let is_first = self.create_admin(&hash).await?;
                Ok(generated.filter(|_| is_first))
            }
        }
    }

    async fn hash(&self, password: &str) -> Result<String, Problem> {
        let permit = self.passwords.permit(Lane::Login).await?;
        self.passwords.hash(permit, self.db.entropy(), password).await
    }

    /// Creates the administrator. Returns false if another replica was faster.
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

fn generate_password(db: &Db) -> String {
    entropy::secret(db.entropy()).chars().take(24).collect()
}
