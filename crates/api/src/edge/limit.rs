//! Bounds per key: a rate of requests (token bucket), and a number of things that are open.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::Instant;

/// Number of keys above which full buckets are dropped.
const MAX_ENTRIES: usize = 100_000;

/// Token buckets: each key may act `per_second` times a second, and `burst` times at once.
pub(crate) struct Buckets<K> {
    per_second: f64,
    burst: f64,
    /// Tokens at a time.
    levels: Mutex<HashMap<K, (f64, Instant)>>,
}

impl<K: Eq + Hash> Buckets<K> {
    /// Creates buckets. A rate of 0 is no limit.
    pub(crate) fn new(per_second: f64, burst: f64) -> Self {
        Self { per_second, burst: burst.max(1.0), levels: Mutex::default() }
    }

    /// Takes a token, or returns the time until there is one.
    pub(crate) fn take(&self, key: K, now: Instant) -> Result<(), Duration> {
        if self.per_second <= 0.0 {
            return Ok(());
        }
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        if levels.len() >= MAX_ENTRIES {
            levels.retain(|_, level| self.level(level, now) < self.burst);
            if levels.len() >= MAX_ENTRIES {
                levels.clear();
            }
        }
        let level = levels.entry(key).or_insert((self.burst, now));
        let tokens = self.level(level, now);
        if tokens < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - tokens) / self.per_second));
        }
        *level = (tokens - 1.0, now);
        Ok(())
    }

    fn level(&self, (tokens, at): &(f64, Instant), now: Instant) -> f64 {
        let refilled = now.saturating_duration_since(*at).as_secs_f64() * self.per_second;
        (tokens + refilled).min(self.burst)
    }
}

/// Counts of open things by key.
pub(crate) struct Slots<K: Eq + Hash>(Arc<Mutex<HashMap<K, usize>>>);

impl<K: Eq + Hash> Default for Slots<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash + Clone> Slots<K> {
    /// The number of the key's slots in use.
    pub(crate) fn used(&self, key: &K) -> usize {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(key).copied().unwrap_or(0)
    }

    /// Takes one of the key's `max` slots. A maximum of 0 is no limit.
    pub(crate) fn take(&self, key: K, max: usize) -> Option<Slot<K>> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(key.clone()).or_insert(0);
        if max > 0 && *count >= max {
            return None;
        }
        *count += 1;
        Some(Slot { counts: self.0.clone(), key })
    }
}

/// A slot, free again on drop.
pub(crate) struct Slot<K: Eq + Hash> {
    counts: Arc<Mutex<HashMap<K, usize>>>,
    key: K,
}

impl<K: Eq + Hash> Drop for Slot<K> {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

/// What counts as one address: an IPv6 customer has at least a /64.
pub(crate) fn address_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_allows_a_burst_and_then_its_rate() {
        let (buckets, start) = (Buckets::new(2.0, 4.0), base::monotonic());
        assert!((0..4).all(|_| buckets.take("ann", start).is_ok()));
        assert_eq!(buckets.take("ann", start), Err(Duration::from_millis(500)));
        assert!(buckets.take("bob", start).is_ok(), "another key is not affected");
        let later = start + Duration::from_secs(1);
        assert!((0..2).all(|_| buckets.take("ann", later).is_ok()));
        assert!(buckets.take("ann", later).is_err());
        assert!((0..1000).all(|_| Buckets::new(0.0, 0.0).take("ann", start).is_ok()));
    }

    #[test]
    fn slot_is_free_again_after_drop() {
        let slots = Slots::default();
        let held = [slots.take("ann", 2), slots.take("ann", 2)];
        assert!(held.iter().all(Option::is_some));
        assert!(slots.take("ann", 2).is_none() && slots.take("bob", 2).is_some());
        drop(held);
        assert!(slots.take("ann", 2).is_some());
        assert!(slots.0.lock().unwrap().is_empty(), "no entry remains");
    }

    #[test]
    fn ipv6_addresses_of_one_network_share_a_key() {
        let key = |text: &str| address_key(text.parse().unwrap());
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:1"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
    }
}
