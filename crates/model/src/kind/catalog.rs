//! The catalog of kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{FileError, Kind, parse};

/// All kinds, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    kinds: BTreeMap<String, Arc<Kind>>,
}

/// The built-in kinds.
const BUILT_IN: [(&str, &str); 2] = [
    ("catalog/dinosaur.yaml", include_str!("../../../../catalog/dinosaur.yaml")),
    ("catalog/kafka.yaml", include_str!("../../../../catalog/kafka.yaml")),
];

impl Catalog {
    /// A catalog of these kinds. Name, plural, API and error prefix must be unique.
    pub fn new(kinds: Vec<Kind>) -> Result<Catalog, FileError> {
        Self::from_kinds(kinds.into_iter().map(|kind| (format!("kind {}", kind.name), kind)))
    }

    /// Parses a catalog from files, given as name and text.
    pub fn parse(files: &[(&str, &str)]) -> Result<Catalog, FileError> {
        let read = |(file, text): &(&str, &str)| Ok(((*file).to_owned(), parse(file, text)?));
        let kinds: Vec<_> = files.iter().map(read).collect::<Result<_, _>>()?;
        Self::from_kinds(kinds.into_iter())
    }

    fn from_kinds(kinds: impl Iterator<Item = (String, Kind)>) -> Result<Catalog, FileError> {
        let mut catalog = Catalog::default();
        for (file, kind) in kinds {
            catalog.add(&file, kind)?;
        }
        Ok(catalog)
    }

    fn add(&mut self, file: &str, kind: Kind) -> Result<(), FileError> {
        for other in self.kinds() {
            if let Some(field) = duplicate_field(other, &kind) {
                let reason = format!("{field}: is already used by the kind {}", other.name);
                return Err(FileError::new(file, reason));
            }
        }
        self.kinds.insert(kind.name.clone(), Arc::new(kind));
        Ok(())
    }

    /// A copy of the catalog with these kinds added; they replace kinds of the same name.
    pub fn with(&self, kinds: Vec<Kind>) -> Result<Catalog, FileError> {
        let is_replaced = |name: &str| kinds.iter().any(|kind| kind.name == name);
        let retained = self.kinds().filter(|kind| !is_replaced(&kind.name));
        let retained: Vec<Kind> = retained.map(|kind| Kind::clone(kind)).collect();
        Self::new(retained.into_iter().chain(kinds).collect())
    }

    /// The built-in catalog.
    pub fn built_in() -> Catalog {
        Catalog::parse(&BUILT_IN).expect("a test parses the same files")
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

/// A unique field in which two kinds are equal.
fn duplicate_field(a: &Kind, b: &Kind) -> Option<&'static str> {
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
