//! Guards of systems that users name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::OrganizationId;

use super::{Guard, Options};

/// The maximum number of guards. Above it, healthy ones are evicted first.
const MAX_GUARDS: usize = 1_000;

/// One guard per system and organization: a failure in one organization neither reveals anything to
/// another nor delays it.
///
/// These guards set no timeout: their callers do.
#[derive(Debug, Default)]
pub(crate) struct Guards(Mutex<HashMap<Key, Arc<Guard>>>);

/// An organization (none for shared systems) and the name of a system.
type Key = (Option<OrganizationId>, String);

impl Guards {
    /// The guard of the system `name` of this organization.
    pub(crate) fn get(&self, organization: Option<OrganizationId>, name: String) -> Arc<Guard> {
        let mut guards = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (organization, name);
        if guards.len() >= MAX_GUARDS && !guards.contains_key(&key) {
            guards.retain(|_, guard| guard.breaker().reason().is_some());
            if guards.len() >= MAX_GUARDS {
                guards.clear();
            }
        }
        let name = key.1.clone();
        guards.entry(key).or_insert_with(|| Arc::new(without_timeout(name))).clone()
    }
}

fn without_timeout(name: String) -> Guard {
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
    async fn open_breaker_affects_only_its_organization() {
        let guards = Guards::default();
        let [ours, theirs] = [1, 2].map(|number| Some(OrganizationId(Xid::new(1, [0; 5], number))));
        fail(&guards.get(ours, "it".into())).await;
        let result = guards.get(ours, "it".into()).once(async { Ok(()) }).await;
        let message = "it is unavailable: down. Calls resume within 30s";
        assert_eq!(result, Err(Fault::Unavailable(message.into())));
        for other in [guards.get(theirs, "it".into()), guards.get(ours, "other".into())] {
            assert_eq!(other.health(), Health::Up);
            assert_eq!(other.once(async { Ok(()) }).await, Ok(()));
        }
        // These guards have no timeout.
        let slow = guards.get(theirs, "slow".into());
        let hours = async {
            tokio::time::sleep(Duration::from_hours(9)).await;
            Ok(())
        };
        assert_eq!(slow.once(hours).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn guards_are_bounded_and_failing_ones_are_evicted_last() {
        let guards = Guards::default();
        let ours = Some(OrganizationId(Xid::new(1, [0; 5], 1)));
        fail(&guards.get(ours, "down".into())).await;
        for number in 0..3 * MAX_GUARDS {
            guards.get(ours, number.to_string());
            assert!(guards.0.lock().unwrap().len() <= MAX_GUARDS);
        }
        let down = Health::Down { reason: "down".into() };
        assert_eq!(guards.get(ours, "down".into()).health(), down);
    }
}
