//! The zone in which records are created. Names outside it are never touched.

use domain::base::Name;
use port::Fault;

/// A fully qualified domain name.
pub(super) type FullName = Name<Vec<u8>>;

/// A zone that Paddock may change.
#[derive(Debug, Clone)]
pub(super) struct Zone(FullName);

impl Zone {
    /// The zone of that name.
    pub(super) fn new(text: &str) -> Result<Self, Fault> {
        let name = parse(text)?;
        if name.is_root() {
            return Err(Fault::Refused("the DNS zone has no name. Configure one".into()));
        }
        Ok(Self(name))
    }

    /// Its name.
    pub(super) fn name(&self) -> &FullName {
        &self.0
    }

    /// A name below the zone's apex.
    pub(super) fn below(&self, text: &str) -> Result<FullName, Fault> {
        let name = parse(text)?;
        if name.ends_with(&self.0) && name.label_count() > self.0.label_count() {
            return Ok(name);
        }
        Err(Fault::Refused(format!("“{text}” is not below the DNS zone {}", self.0)))
    }
}

/// Parses a domain name of plain characters, with or without the final dot.
pub(super) fn parse(text: &str) -> Result<FullName, Fault> {
    let refuse = |why: &str| Fault::Refused(format!("“{text}” is not a domain name: {why}"));
    // DNS permits any byte, but presentation formats of the others differ.
    if !text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        return Err(refuse("it may contain letters, digits, “-”, “_” and dots"));
    }
    Name::vec_from_str(text).map_err(|error| refuse(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_below_the_zone_are_accepted() {
        let zone = Zone::new("Kafka.example.test.").unwrap();
        for good in ["a.kafka.example.test", "b.A.KAFKA.example.test.", "_x.kafka.example.test"] {
            assert!(zone.below(good).is_ok(), "{good}");
        }
        let long = format!("{}.kafka.example.test", "a".repeat(64));
        let outside = ["kafka.example.test", "akafka.example.test", "a.example.test", "", ".", "a"];
        for bad in
            outside.into_iter().chain(["a..kafka.example.test", "a b.kafka.example.test", &long])
        {
            let Err(Fault::Refused(why)) = zone.below(bad) else { panic!("{bad}") };
            assert!(why.contains(&format!("“{bad}”")), "{why}");
        }
    }

    #[test]
    fn zone_without_a_name_is_refused() {
        for bad in ["", ".", "a..b"] {
            assert!(matches!(Zone::new(bad), Err(Fault::Refused(_))), "{bad}");
        }
    }
}
