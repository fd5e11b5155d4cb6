//! Resource vectors: amounts by resource type, `{"cpu": 2, "ram": "4Gi"}`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Invalid, Quantity};

/// The maximum number of resource types of a request or a cluster.
pub const MAX_TYPES: usize = 32;

/// An amount per resource type; absent types are zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resources(BTreeMap<String, Quantity>);

impl Resources {
    /// The amount of one type.
    pub fn get(&self, kind: &str) -> Quantity {
        self.0.get(kind).copied().unwrap_or_default()
    }

    /// Types and amounts, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(kind, &amount)| (kind.as_str(), amount))
    }

    /// Has the vector no types?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets one type's amount.
    pub fn set(&mut self, kind: impl Into<String>, amount: Quantity) {
        self.0.insert(kind.into(), amount);
    }

    /// Adds another vector.
    pub fn add(&mut self, other: &Resources) {
        for (kind, amount) in other.iter() {
            let sum = self.get(kind).plus(amount);
            self.set(kind, sum);
        }
    }

    /// Subtracts another vector; amounts saturate at zero.
    pub fn subtract(&mut self, other: &Resources) {
        for (kind, amount) in other.iter() {
            let rest = self.get(kind).minus(amount);
            self.set(kind, rest);
        }
    }

    /// The amounts by which `self` exceeds `free`, per type; empty if it fits.
    pub fn shortage(&self, free: &Resources) -> Resources {
        let short = self.iter().map(|(kind, want)| (kind.to_owned(), want.minus(free.get(kind))));
        Resources(short.filter(|(_, amount)| !amount.is_zero()).collect())
    }

    /// Does it fit into `free`?
    pub fn fits(&self, free: &Resources) -> bool {
        self.iter().all(|(kind, want)| want <= free.get(kind))
    }

    /// The vector multiplied by `n`; an error names the type that overflows.
    pub fn times(&self, n: u32) -> Result<Resources, Invalid> {
        let mut product = Resources::default();
        for (kind, amount) in self.iter() {
            let total = amount.times(n).ok_or_else(|| {
                Invalid::new("replicas", format!("{n} times {amount} {kind} is too large"))
            })?;
            product.set(kind, total);
        }
        Ok(product)
    }

    /// Checks the names and the number of types. Errors name the field `field`.
    pub fn check(&self, field: &str) -> Result<(), Invalid> {
        if self.0.len() > MAX_TYPES {
            return Err(Invalid::new(
                field,
                format!("must have at most {MAX_TYPES} resource types"),
            ));
        }
        match self.0.keys().find(|kind| !is_valid_type(kind)) {
            None => Ok(()),
            Some(kind) => Err(Invalid::new(
                field,
                format!(
                    "\"{}\" is not a valid resource type; a type must start with a-z, contain only \
                     a-z, 0-9, '.', '_', '-' and '/', and have at most 63 characters",
                    kind.escape_default()
                ),
            )),
        }
    }
}

fn is_valid_type(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/".contains(c))
}

impl FromIterator<(String, Quantity)> for Resources {
    fn from_iter<I: IntoIterator<Item = (String, Quantity)>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<const N: usize> From<[(&str, i64); N]> for Resources {
    /// Whole amounts; for tests and fixtures.
    fn from(items: [(&str, i64); N]) -> Self {
        items.into_iter().map(|(kind, n)| (kind.to_owned(), Quantity::whole(n))).collect()
    }
}

impl fmt::Display for Resources {
    /// `2 cpu, 4Gi ram`, for messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing");
        }
        for (i, (kind, amount)) in self.iter().enumerate() {
            write!(f, "{}{} {kind}", if i == 0 { "" } else { ", " }, amount.to_short_string())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortage_contains_only_missing_amounts() {
        let want = Resources::from([("cpu", 4), ("gpu", 1), ("ram", 2)]);
        let free = Resources::from([("cpu", 1), ("ram", 2)]);
        assert_eq!(want.shortage(&free), Resources::from([("cpu", 3), ("gpu", 1)]));
        assert!(!want.fits(&free) && free.fits(&want));
    }

    #[test]
    fn type_names_are_validated() {
        for (name, good) in [
            ("cpu", true),
            ("nvidia.com/gpu", true),
            ("a", true),
            ("", false),
            ("CPU", false),
            ("9x", false),
            ("a b", false),
            ("x\u{0}", false),
        ] {
            let vector = Resources::from([(name, 1)]);
            assert_eq!(vector.check("resource").is_ok(), good, "{name:?}");
        }
    }

    #[test]
    fn overflowing_product_is_an_error() {
        let one: Resources = [("ram".to_owned(), Quantity::MAX)].into_iter().collect();
        assert!(one.times(2).is_err());
        assert_eq!(one.times(1), Ok(one));
    }
}
