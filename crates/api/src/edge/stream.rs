//! Open streams: counted, limited in time, and ended as soon as their caller may no longer read.
//!
//! Every response of events or log lines goes through [`OpenStream::guard`]. Between a change of any
//! user and the next item, the caller is checked again, so that nothing is sent after the removal of
//! a user was answered; an idle stream is checked on every change and in an interval.

use std::net::IpAddr;
use std::time::Duration;

use base::{Instant, Stop, entropy};
use futures_util::stream::{self, Stream, StreamExt as _};
use model::organization::quota::{Limit, Subject};
use model::{OrganizationId, Quantity, UserId};
use store::Scope;
use tokio::sync::watch;

use super::limit::{Slot, address_key};
use super::{RETRY_SECS, too_many};
use crate::caller::Caller;
use crate::{App, Problem};

/// Slots of a stream, free when it ends.
struct Slots {
    _user: Slot<UserId>,
    _organization: Slot<OrganizationId>,
    _address: Option<Slot<IpAddr>>,
}

/// A stream that was admitted.
pub(crate) struct OpenStream {
    app: App,
    caller: Caller,
    /// Changes of users, and the last one after which the caller was checked.
    changes: watch::Receiver<u64>,
    checked_at: Option<u64>,
    ends_at: Instant,
    stop: Stop,
    _slots: Slots,
}

impl OpenStream {
    /// Admits a stream of the caller from this address.
    pub(crate) async fn new(app: &App, caller: &Caller, from: IpAddr) -> Result<Self, Problem> {
        let max = max_streams(app, caller.user.organization_id).await?;
        let slots = take_slots(app, caller, from, max)?;
        let changes = app.cache.changes();
        // Streams that were opened at the same time, as after a restart, end at different times.
        let life = app.settings.edge.stream_life;
        let tenths = u32::try_from(entropy::random_u64(app.db.entropy()) % 1000).unwrap_or(0);
        let life = life.saturating_sub(life / 10_000 * tenths);
        Ok(Self {
            caller: caller.clone(),
            checked_at: None,
            changes,
            ends_at: base::monotonic() + life,
            stop: app.stop.clone(),
            app: app.clone(),
            _slots: slots,
        })
    }

    /// Passes on items as long as the caller may read them. Ends when the server stops.
    pub(crate) fn guard<S>(self, items: S) -> impl Stream<Item = S::Item> + Send + use<S>
    where
        S: Stream + Send + 'static,
        S::Item: Send,
    {
        let state = Box::pin(items);
        stream::unfold((self, state), async |(mut guard, mut items)| {
            let item = tokio::select! {
                // Items first: they are checked one by one, without a timer.
                biased;
                item = items.next() => item,
                () = guard.ended() => None,
            };
            let item = item?;
            guard.is_allowed().await.then_some((item, (guard, items)))
        })
    }

    /// Returns when the stream must end.
    async fn ended(&mut self) {
        loop {
            let check_at = base::monotonic() + self.next_check();
            tokio::select! {
                () = self.stop.signalled() => return,
                () = tokio::time::sleep_until(self.ends_at) => return,
                changed = self.changes.changed() => {
                    if changed.is_err() || !self.is_allowed().await {
                        return;
                    }
                }
                () = tokio::time::sleep_until(check_at) => {
                    if !self.is_current().await {
                        return;
                    }
                }
            }
        }
    }

    /// Time until the next check: the interval, or the end of the session.
    fn next_check(&self) -> Duration {
        let left = self.caller.expires_at.map(|end| end.since(self.app.db.now()));
        let every = self.app.settings.edge.stream_check;
        left.map_or(every, |left| left.clamp(Duration::from_millis(10), every))
    }

    /// Whether the caller may read another item. Asks the database only after a change.
    async fn is_allowed(&mut self) -> bool {
        let change = *self.changes.borrow_and_update();
        let is_expired = self.caller.expires_at.is_some_and(|end| end <= self.app.db.now());
        if is_expired || self.stop.is_set() || base::monotonic() >= self.ends_at {
            return false;
        }
        if self.checked_at != Some(change) && !self.is_current().await {
            return false;
        }
        self.checked_at = Some(change);
        true
    }

    /// Whether the session exists and its user is unchanged: role, organization and password. A
    /// stream whose caller cannot be checked ends; its client resumes it.
    async fn is_current(&self) -> bool {
        let (db, caller) = (&self.app.db, &self.caller);
        let now = db.now();
        let user = async {
            let mut read = db.read().await?;
            let found = match &caller.token {
                Some(token) => store::token::find(&mut read, token, now).await?.map(|it| it.0),
                None => Some(store::user::get(&mut read, Scope::All, caller.user.id).await?),
            };
            Ok::<_, store::Error>(found)
        };
        let is_same = |user: &model::user::User| {
            user.generation == caller.user.generation
                && user.organization_id == caller.user.organization_id
        };
        caller.expires_at.is_none_or(|end| end > now)
            && matches!(user.await, Ok(Some(user)) if is_same(&user))
    }
}

/// Maximum number of open streams of an organization: its quota, or the setting. 0 is no limit.
async fn max_streams(app: &App, organization: OrganizationId) -> Result<usize, Problem> {
    let mut read = app.db.read().await?;
    let kind = Subject::Streams.into();
    let own = store::organization_quota::own(&mut read, organization, &kind).await?;
    match own.map(Limit::amount) {
        None => Ok(app.settings.edge.max_streams.organization),
        Some(None) => Ok(0),
        Some(Some(Quantity::ZERO)) => Err(refused("organization")),
        Some(Some(amount)) => Ok(usize::try_from(amount.milli() / 1000).unwrap_or(0)),
    }
}

fn take_slots(
    app: &App,
    caller: &Caller,
    from: IpAddr,
    max_of_organization: usize,
) -> Result<Slots, Problem> {
    let (edge, max) = (&app.edge, &app.settings.edge.max_streams);
    let user = edge.user_streams.take(caller.user.id, max.user);
    let organization =
        edge.organization_streams.take(caller.user.organization_id, max_of_organization);
    let address = if edge.is_limited(from) {
        let slot = edge.address_streams.take(address_key(from), max.address);
        Some(slot.ok_or_else(|| refused("address"))?)
    } else {
        None
    };
    Ok(Slots {
        _user: user.ok_or_else(|| refused("user"))?,
        _organization: organization.ok_or_else(|| refused("organization"))?,
        _address: address,
    })
}

fn refused(of: &str) -> Problem {
    too_many(&format!("open streams of this {of}"), retry())
}

fn retry() -> Duration {
    Duration::from_secs(RETRY_SECS - 1)
}
