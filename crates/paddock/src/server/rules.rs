//! The rules in force, from files: the catalog, the quota list, denied owners, pools.
//!
//! Files are looked at every second and read again when they have changed. One that is refused is
//! said to be, with its line, and what it said before stays in force.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use engine::rules::{InForce, Rulebook, Rules};
use model::event::Actor;
use model::kind::{self, Catalog, Kind};
use model::{quota, scaling};
use store::Db;

use crate::settings::outside::RuleFiles;

/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// When a file was last written, and how long it is.
type Stamp = (Option<SystemTime>, u64);

/// What the files said last that could be taken.
pub(super) struct Shelf {
    files: RuleFiles,
    seen: BTreeMap<PathBuf, Stamp>,
    kinds: BTreeMap<PathBuf, Kind>,
}

/// Reads all files; what is wrong with one is said in one sentence.
pub(super) fn load(files: &RuleFiles) -> anyhow::Result<(Shelf, Rulebook, Rules)> {
    let mut shelf = Shelf { files: files.clone(), seen: BTreeMap::new(), kinds: BTreeMap::new() };
    shelf.seen = shelf.look();
    for path in shelf.kind_files()? {
        let kind = read(&path, kind::parse).context("--catalog-dir")?;
        shelf.kinds.insert(path, kind);
    }
    let catalog = shelf.catalog().context("--catalog-dir")?;
    let granted = |name: &str, text: &str| quota::parse_for(name, text, &catalog);
    let quota = files.quota.as_deref().map(|path| read(path, granted).context("--quota-file"));
    let quota = quota.transpose()?.map(Arc::new);
    let denied = files.denied.as_deref();
    let denied = denied.map(|path| read(path, quota::denied).context("--denied-owners-file"));
    let pooled = |name: &str, text: &str| scaling::parse_for(name, text, &catalog);
    let pools = files.scaling.as_deref().map(|path| read(path, pooled).context("--scaling-file"));
    let pools = pools.transpose()?.unwrap_or_default();
    let (rulebook, rules) = Rulebook::new(InForce {
        catalog: Arc::new(catalog),
        quota,
        denied: Arc::new(denied.transpose()?.unwrap_or_default()),
        pools: Arc::new(pools),
    });
    Ok((shelf, rulebook, rules))
}

fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str, &str) -> Result<T, kind::Refused>,
) -> anyhow::Result<T> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name} can't be read"))?;
    Ok(parse(&name, &text)?)
}

impl Shelf {
    fn kind_files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let Some(dir) = &self.files.catalog_dir else { return Ok(Vec::new()) };
        let entries = std::fs::read_dir(dir)
            .with_context(|| format!("--catalog-dir: {} can't be read", dir.display()))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_yaml = |path: &PathBuf| {
            path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml")
        };
        let mut paths: Vec<PathBuf> = paths.filter(is_yaml).collect();
        paths.sort();
        Ok(paths)
    }

    /// The kinds that are built in, and those of the files; of two of one name, the file's.
    fn catalog(&self) -> Result<Catalog, kind::Refused> {
        Catalog::built_in().with(self.kinds.values().cloned().collect())
    }

    /// The files as they are now.
    fn look(&self) -> BTreeMap<PathBuf, Stamp> {
        let mut files = self.kind_files().unwrap_or_default();
        files.extend(self.files.quota.clone());
        files.extend(self.files.denied.clone());
        files.extend(self.files.scaling.clone());
        let stamp = |path: PathBuf| {
            let found = std::fs::metadata(&path).ok()?;
            Some((path, (found.modified().ok(), found.len())))
        };
        files.into_iter().filter_map(stamp).collect()
    }

    /// Takes over what has changed; whether something has.
    fn renew(&mut self, rulebook: &Rulebook) -> bool {
        let now = self.look();
        if now == self.seen {
            return false;
        }
        let changed = |path: &PathBuf| now.get(path) != self.seen.get(path);
        let is_new = |path: &Option<PathBuf>| path.as_ref().is_some_and(&changed);
        let (quota, denied) = (is_new(&self.files.quota), is_new(&self.files.denied));
        let scaling = is_new(&self.files.scaling);
        let kinds: Vec<PathBuf> =
            self.kind_files().unwrap_or_default().into_iter().filter(changed).collect();
        self.kinds.retain(|path, _| now.contains_key(path));
        for path in kinds {
            if let Some(kind) = taken(read(&path, kind::parse)) {
                self.kinds.insert(path, kind);
            }
        }
        let catalog = taken(self.catalog().map_err(Into::into));
        let quota = self.files.quota.as_deref().filter(|_| quota);
        let granted = |name: &str, text: &str| match &catalog {
            Some(catalog) => quota::parse_for(name, text, catalog),
            None => quota::parse(name, text),
        };
        let quota = quota.and_then(|path| taken(read(path, granted)));
        let denied = self.files.denied.as_deref().filter(|_| denied);
        let denied = denied.and_then(|path| taken(read(path, quota::denied)));
        let scaling = self.files.scaling.as_deref().filter(|_| scaling);
        let pools = scaling.zip(catalog.as_ref()).and_then(|(path, catalog)| {
            taken(read(path, |name, text| scaling::parse_for(name, text, catalog)))
        });
        rulebook.change(|force| {
            if let Some(pools) = pools {
                force.pools = Arc::new(pools);
            }
            if let Some(catalog) = catalog {
                force.catalog = Arc::new(catalog);
            }
            if let Some(quota) = quota {
                force.quota = Some(Arc::new(quota));
            }
            if let Some(denied) = denied {
                force.denied = Arc::new(denied);
            }
        });
        self.seen = now;
        true
    }
}

/// What could be taken; what could not is said.
fn taken<T>(read: anyhow::Result<T>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::error!("what was in force stays: {error:#}");
            None
        }
    }
}

/// Watches the files until it is dropped, and wakes all instances when something changed.
pub(super) async fn follow(mut shelf: Shelf, rulebook: Rulebook, db: Db) {
    loop {
        tokio::time::sleep(LOOK).await;
        if !shelf.renew(&rulebook) {
            continue;
        }
        tracing::info!("the rules in force were read again");
        let woken = async {
            let mut tx = db.begin(Actor::Server).await?;
            store::resync::<model::instance::Instance>(&mut tx).await?;
            store::instance::wake_all_of(&mut tx, None, None).await?;
            tx.commit().await
        };
        if let Err(error) = woken.await {
            let error: store::Error = error;
            tracing::warn!(%error, "instances notice the new rules a little later");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
    }

    fn example() -> String {
        include_str!("../../../../catalog/dinosaur.yaml").replace("dinosaur", "goat")
    }

    #[test]
    fn a_file_that_is_refused_leaves_in_force_what_it_said_before() {
        let dir = tempfile::tempdir().unwrap();
        let (kind, quota) = (dir.path().join("goat.yaml"), dir.path().join("quota"));
        let denied = dir.path().join("denied");
        let text = example().replace("DINOSAUR", "GOAT");
        write(&kind, &text);
        write(&quota, "registered_users_per_organisation: []\n");
        write(&denied, "- ann\n");
        let scaling = dir.path().join("scaling");
        let pools = "pools:\n  - {name: east, cloud_provider: a, region: b, at_most: 3, \
                     cluster: {provider: local, capacity: {cpu: 4}}}\n";
        write(&scaling, pools);
        let files = RuleFiles {
            catalog_dir: Some(dir.path().into()),
            quota: Some(quota.clone()),
            denied: Some(denied.clone()),
            scaling: Some(scaling.clone()),
        };
        let (mut shelf, rulebook, rules) = load(&files).unwrap();
        assert!(rules.catalog().kind("goat").is_some());
        assert!(rules.catalog().kind("kafka").is_some(), "what is built in is there, too");
        assert!(!shelf.renew(&rulebook), "nothing has changed");

        write(&kind, &text.replace("max_trials: 1", "max_trials: none"));
        write(&quota, "nonsense: true\n");
        write(&denied, "ann\n");
        write(&scaling, &pools.replace("at_most: 3", "at_most: none"));
        assert!(shelf.renew(&rulebook));
        let now = rules.changes().borrow().clone();
        assert!(now.catalog.kind("goat").is_some());
        assert!(now.quota.is_some() && now.denied.contains("ann"));
        assert_eq!(now.pools[0].at_most, 3);

        write(&kind, &text.replace("display_name: Dinosaur", "display_name: A goat"));
        write(&denied, "- ben\n");
        write(&scaling, &pools.replace("at_most: 3", "at_most: 5"));
        assert!(shelf.renew(&rulebook));
        let now = rules.changes().borrow().clone();
        assert_eq!(now.catalog.kind("goat").unwrap().display_name, "A goat");
        assert_eq!(now.pools[0].at_most, 5);
        assert!(now.denied.contains("ben") && !now.denied.contains("ann"));

        std::fs::remove_file(&kind).unwrap();
        assert!(shelf.renew(&rulebook));
        assert!(rules.catalog().kind("goat").is_none());
    }

    #[test]
    fn a_bad_file_at_the_start_is_one_sentence_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("goat.yaml"), "name: goat\nplural: 5\nwhat: is this\n");
        let files = RuleFiles { catalog_dir: Some(dir.path().into()), ..RuleFiles::default() };
        let error = format!("{:#}", load(&files).err().unwrap());
        assert!(error.starts_with("--catalog-dir: ") && error.contains("goat.yaml:"), "{error}");
    }
}
