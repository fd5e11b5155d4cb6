//! The zone that names are made in. Names outside of it are never touched.

use domain::base::Name;
use port::Fault;

/// A name, in full.
pub(super) type FullName = Name<Vec<u8>>;

/// A part of the domain name system that is ours to change.
#[derive(Debug, Clone)]
pub(super) struct Zone(FullName);

impl Zone {
    /// The zone of that name.
    pub(super) fn new(text: &str) -> Result<Self, Fault> {
        let name = parse(text)?;
        if name.is_root() {
            return Err(Fault::Refused("The DNS zone has no name: give one".into()));
        }
        Ok(Self(name))
    }

    /// Its name.
    pub(super) fn name(&self) -> &FullName {
        &self.0
    }

    /// A name in this zone, below its top.
    pub(super) fn below(&self, text: &str) -> Result<FullName, Fault> {
        let name = parse(text)?;
        if name.ends_with(&self.0) && name.label_count() > self.0.label_count() {
            return Ok(name);
        }
        Err(Fault::Refused(format!("“{text}” is not a name below the DNS zone {}", self.0)))
    }
}

/// Reads any name of plain letters; the final dot may be there or not.
pub(super) fn parse(text: &str) -> Result<FullName, Fault> {
    let refuse = |why: &str| Fault::Refused(format!("“{text}” is not a domain name: {why}"));
    // DNS itself would take any byte, and write it in ways that others read otherwise.
    if !text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        return Err(refuse("it may have letters, digits, “-”, “_” and dots"));
    }
    Name::vec_from_str(text).map_err(|error| refuse(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_below_the_zone_are_taken() {
        let zone = Zone::new("Kafka.example.test.").unwrap();
        for good in ["a.kafka.example.test", "b.A.KAFKA.example.test.", "_x.kafka.example.test"] {
            assert!(zone.below(good).is_ok(), "{good}");
        }
        let long = format!("{}.kafka.example.test", "a".repeat(64));
        let outside = ["kafka.example.test", "akafka.example.test", "a.example.test", "", ".", "a"];
        for bad in
            outside.into_iter().chain(["a..kafka.example.test", "a b.kafka.example.test", &long])
        {
            let Err(Fault::Refused(sentence)) = zone.below(bad) else { panic!("{bad}") };
            assert!(sentence.contains(&format!("“{bad}”")), "{sentence}");
        }
    }

    #[test]
    fn a_zone_has_a_name() {
        for bad in ["", ".", "a..b"] {
            assert!(matches!(Zone::new(bad), Err(Fault::Refused(_))), "{bad}");
        }
    }
}
