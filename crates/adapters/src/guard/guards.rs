//! Guards before systems that are known only when somebody names them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::OrganizationId;

use super::{Guard, Options};

/// So many are remembered. Of more, those go first that have nothing against their systems.
const MOST: usize = 1_000;

/// One guard for each system that an organization names: what is down for one organization says
/// nothing to another, and delays nobody else.
///
/// They set no limit of their own: whoever asks has one.
#[derive(Debug, Default)]
pub(crate) struct Guards(Mutex<HashMap<Key, Arc<Guard>>>);

/// An organization, or none for all together, and the name of a system.
type Key = (Option<OrganizationId>, String);

impl Guards {
    /// The guard before the system that this organization, or all together, know by `name`.
    pub(crate) fn of(&self, organization: Option<OrganizationId>, name: String) -> Arc<Guard> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (organization, name);
        if known.len() >= MOST && !known.contains_key(&key) {
            known.retain(|_, guard| guard.breaker().reason().is_some());
            if known.len() >= MOST {
                known.clear();
            }
        }
        let name = key.1.clone();
        known.entry(key).or_insert_with(|| Arc::new(patient(name))).clone()
    }
}

fn patient(name: String) -> Guard {
    let options = Options { attempts: 1, timeout: Duration::MAX, ..Options::default() };
    Guard::new(name, options, || 0)
}

#[cfg(test)]
mod tests {
    use model::Xid;
    use port::{Fault, Health};

    use super::*;

    async fn fail(guard: &Guard) {
        for _ in 0..5 {
            let down = async { Err::<(), _>(Fault::Unavailable("down".into())) };
            guard.once(down).await.unwrap_err();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_down_for_one_organization_is_left_alone_for_it_alone() {
        let guards = Guards::default();
        let [ours, theirs] = [1, 2].map(|number| Some(OrganizationId(Xid::new(1, [0; 5], number))));
        fail(&guards.of(ours, "it".into())).await;
        let asked = guards.of(ours, "it".into()).once(async { Ok(()) }).await;
        let said = "it is not asked again before 30s have passed: down";
        assert_eq!(asked, Err(Fault::Unavailable(said.into())));
        for other in [guards.of(theirs, "it".into()), guards.of(ours, "other".into())] {
            assert_eq!(other.health(), Health::Up);
            assert_eq!(other.once(async { Ok(()) }).await, Ok(()));
        }
        // It may take as long as whoever asks allows.
        let slow = guards.of(theirs, "slow".into());
        let hours = async {
            tokio::time::sleep(Duration::from_hours(9)).await;
            Ok(())
        };
        assert_eq!(slow.once(hours).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn not_more_are_remembered_than_may_be_and_those_that_are_down_longest() {
        let guards = Guards::default();
        let ours = Some(OrganizationId(Xid::new(1, [0; 5], 1)));
        fail(&guards.of(ours, "down".into())).await;
        for number in 0..3 * MOST {
            guards.of(ours, number.to_string());
            assert!(guards.0.lock().unwrap().len() <= MOST);
        }
        let down = Health::Down { reason: "down".into() };
        assert_eq!(guards.of(ours, "down".into()).health(), down);
    }
}
