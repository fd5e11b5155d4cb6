//! All kinds that there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Kind, Refused, parse};

/// All kinds, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    kinds: BTreeMap<String, Arc<Kind>>,
}

/// The kinds in the binary.
const BUILT_IN: [(&str, &str); 2] = [
    ("catalog/dinosaur.yaml", include_str!("../../../../catalog/dinosaur.yaml")),
    ("catalog/kafka.yaml", include_str!("../../../../catalog/kafka.yaml")),
];

impl Catalog {
    /// A catalog of these kinds, which must not share a name, a plural, an API or error codes.
    pub fn new(kinds: Vec<Kind>) -> Result<Catalog, Refused> {
        Self::of(kinds.into_iter().map(|kind| (format!("kind {}", kind.name), kind)))
    }

    /// A catalog of the kinds in these files, each given by its name and its text.
    pub fn parse(files: &[(&str, &str)]) -> Result<Catalog, Refused> {
        let read = |(file, text): &(&str, &str)| Ok(((*file).to_owned(), parse(file, text)?));
        let kinds: Vec<_> = files.iter().map(read).collect::<Result<_, _>>()?;
        Self::of(kinds.into_iter())
    }

    fn of(kinds: impl Iterator<Item = (String, Kind)>) -> Result<Catalog, Refused> {
        let mut catalog = Catalog::default();
        for (file, kind) in kinds {
            catalog.add(&file, kind)?;
        }
        Ok(catalog)
    }

    fn add(&mut self, file: &str, kind: Kind) -> Result<(), Refused> {
        for other in self.kinds() {
            if let Some(field) = shared(other, &kind) {
                let reason = format!("{field}: is that of the kind {} already", other.name);
                return Err(Refused::new(file, reason));
            }
        }
        self.kinds.insert(kind.name.clone(), Arc::new(kind));
        Ok(())
    }

    /// The same with these kinds: one of the same name takes the other's place.
    pub fn with(&self, kinds: Vec<Kind>) -> Result<Catalog, Refused> {
        let is_replaced = |name: &str| kinds.iter().any(|kind| kind.name == name);
        let kept = self.kinds().filter(|kind| !is_replaced(&kind.name));
        let kept: Vec<Kind> = kept.map(|kind| Kind::clone(kind)).collect();
        Self::new(kept.into_iter().chain(kinds).collect())
    }

    /// The kinds that are part of the binary.
    pub fn built_in() -> Catalog {
        Catalog::parse(&BUILT_IN).expect("a test reads the same files")
    }

    /// The kind with this name.
    pub fn kind(&self, name: &str) -> Option<&Arc<Kind>> {
        self.kinds.get(name)
    }

    /// The kind whose API has this path.
    pub fn by_api(&self, api: &str) -> Option<&Arc<Kind>> {
        self.kinds().find(|kind| kind.api == api)
    }

    /// All kinds, by name.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.values()
    }
}

/// What two kinds share and must not.
fn shared(a: &Kind, b: &Kind) -> Option<&'static str> {
    [
        ("name", &a.name, &b.name),
        ("plural", &a.plural, &b.plural),
        ("api", &a.api, &b.api),
        ("error_prefix", &a.error_prefix, &b.error_prefix),
    ]
    .into_iter()
    .find(|(_, a, b)| a == b)
    .map(|(field, _, _)| field)
}
