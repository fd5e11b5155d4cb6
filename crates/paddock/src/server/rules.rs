//! Loads rules from files (catalog, quota, denied owners, pools) and reloads them on change.
//!
//! Files are polled every second. An invalid file is logged with its line, and its previous content
//! stays in force.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use engine::rules::{ActiveRules, RulesReader, RulesWriter};
use model::event::Actor;
use model::kind::{self, Catalog, Kind};
use model::{quota, scaling};
use store::Db;

use crate::settings::external::RuleFiles;

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Modification time and size of a file.
type Stamp = (Option<SystemTime>, u64);

/// Stamps of the files and the last valid kinds.
pub(super) struct FileState {
    files: RuleFiles,
    stamps: BTreeMap<PathBuf, Stamp>,
    kinds: BTreeMap<PathBuf, Kind>,
}

/// Loads all files. An error names the setting, the file and the line.
pub(super) fn load(files: &RuleFiles) -> anyhow::Result<(FileState, RulesWriter, RulesReader)> {
    let (files, stamps, kinds) = (files.clone(), BTreeMap::new(), BTreeMap::new());
    let mut state = FileState { files, stamps, kinds };
    state.stamps = state.read_stamps();
    for path in state.kind_files()? {
        let kind = read(&path, kind::parse).context("--catalog-dir")?;
        state.kinds.insert(path, kind);
    }
    let (files, catalog) = (&state.files, state.catalog().context("--catalog-dir")?);
    let granted = |name: &str, text: &str| quota::parse_for(name, text, &catalog);
    let quota = files.quota.as_deref().map(|path| read(path, granted).context("--quota-file"));
    let quota = quota.transpose()?.map(Arc::new);
    let denied = files.denied.as_deref();
    let denied =
        denied.map(|path| read(path, quota::parse_deny_list).context("--denied-owners-file"));
    let pooled = |name: &str, text: &str| scaling::parse_for(name, text, &catalog);
    let pools = files.scaling.as_deref().map(|path| read(path, pooled).context("--scaling-file"));
    let pools = pools.transpose()?.unwrap_or_default();
    let (rules_writer, rules) = RulesWriter::new(ActiveRules {
        catalog: Arc::new(catalog),
        quota,
        denied: Arc::new(denied.transpose()?.unwrap_or_default()),
        pools: Arc::new(pools),
    });
    Ok((state, rules_writer, rules))
}

fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str, &str) -> Result<T, kind::FileError>,
) -> anyhow::Result<T> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    Ok(parse(&name, &text)?)
}

impl FileState {
    fn kind_files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let Some(dir) = &self.files.catalog_dir else { return Ok(Vec::new()) };
        let entries = std::fs::read_dir(dir)
            .with_context(|| format!("--catalog-dir: cannot read {}", dir.display()))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_yaml = |path: &PathBuf| {
            path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml")
        };
        let mut paths: Vec<PathBuf> = paths.filter(is_yaml).collect();
        paths.sort();
        Ok(paths)
    }

    /// Built-in kinds and kinds of the files, which override built-in ones of the same name.
    fn catalog(&self) -> Result<Catalog, kind::FileError> {
        Catalog::built_in().with(self.kinds.values().cloned().collect())
    }

    fn read_stamps(&self) -> BTreeMap<PathBuf, Stamp> {
        let mut files = self.kind_files().unwrap_or_default();
        files.extend(self.files.quota.clone());
        files.extend(self.files.denied.clone());
        files.extend(self.files.scaling.clone());
        let stamp = |path: PathBuf| {
            let metadata = std::fs::metadata(&path).ok()?;
            Some((path, (metadata.modified().ok(), metadata.len())))
        };
        files.into_iter().filter_map(stamp).collect()
    }

    /// Applies changed files and returns whether any file has changed.
    fn reload(&mut self, rules_writer: &RulesWriter) -> bool {
        let now = self.read_stamps();
        if now == self.stamps {
            return false;
        }
        let changed = |path: &PathBuf| now.get(path) != self.stamps.get(path);
        let is_new = |path: &Option<PathBuf>| path.as_ref().is_some_and(&changed);
        let (quota, denied) = (is_new(&self.files.quota), is_new(&self.files.denied));
        let scaling = is_new(&self.files.scaling);
        let kinds: Vec<PathBuf> =
            self.kind_files().unwrap_or_default().into_iter().filter(changed).collect();
        self.kinds.retain(|path, _| now.contains_key(path));
        for path in kinds {
            if let Some(kind) = valid(read(&path, kind::parse)) {
                self.kinds.insert(path, kind);
            }
        }
        let catalog = valid(self.catalog().map_err(Into::into));
        let quota = self.files.quota.as_deref().filter(|_| quota);
        let granted = |name: &str, text: &str| match &catalog {
            Some(catalog) => quota::parse_for(name, text, catalog),
            None => quota::parse(name, text),
        };
        let quota = quota.and_then(|path| valid(read(path, granted)));
        let denied = self.files.denied.as_deref().filter(|_| denied);
        let denied = denied.and_then(|path| valid(read(path, quota::parse_deny_list)));
        let scaling = self.files.scaling.as_deref().filter(|_| scaling);
        let pools = scaling.zip(catalog.as_ref()).and_then(|(path, catalog)| {
            valid(read(path, |name, text| scaling::parse_for(name, text, catalog)))
        });
        rules_writer.change(|force| {
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
        self.stamps = now;
        true
    }
}

/// Logs an error and maps it to `None`.
fn valid<T>(read: anyhow::Result<T>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::error!("rule file rejected, keeping the previous rules: {error:#}");
            None
        }
    }
}

/// Watches the files until dropped, and wakes all instances on change.
pub(super) async fn watch(mut state: FileState, rules_writer: RulesWriter, db: Db) {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        if !state.reload(&rules_writer) {
            continue;
        }
        tracing::info!("rule files reloaded");
        let woken = async {
            let mut tx = db.begin(Actor::Server).await?;
            store::resync::<model::instance::Instance>(&mut tx).await?;
            store::instance::wake_owner(&mut tx, None, None).await?;
            tx.commit().await
        };
        if let Err(error) = woken.await {
            let error: store::Error = error;
            tracing::warn!(
                %error,
                "requeueing instances failed; the next resync applies the new rules"
            );
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
    fn invalid_file_keeps_previous_rules() {
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
        let (mut state, rules_writer, rules) = load(&files).unwrap();
        assert!(rules.catalog().kind("goat").is_some());
        assert!(rules.catalog().kind("kafka").is_some(), "built-in kinds remain");
        assert!(!state.reload(&rules_writer), "nothing has changed");

        write(&kind, &text.replace("max_trials: 1", "max_trials: none"));
        write(&quota, "nonsense: true\n");
        write(&denied, "ann\n");
        write(&scaling, &pools.replace("at_most: 3", "at_most: none"));
        assert!(state.reload(&rules_writer));
        let now = rules.changes().borrow().clone();
        assert!(now.catalog.kind("goat").is_some());
        assert!(now.quota.is_some() && now.denied.contains("ann"));
        assert_eq!(now.pools[0].at_most, 3);

        write(&kind, &text.replace("display_name: Dinosaur", "display_name: A goat"));
        write(&denied, "- ben\n");
        write(&scaling, &pools.replace("at_most: 3", "at_most: 5"));
        assert!(state.reload(&rules_writer));
        let now = rules.changes().borrow().clone();
        assert_eq!(now.catalog.kind("goat").unwrap().display_name, "A goat");
        assert_eq!(now.pools[0].at_most, 5);
        assert!(now.denied.contains("ben") && !now.denied.contains("ann"));

        std::fs::remove_file(&kind).unwrap();
        assert!(state.reload(&rules_writer));
        assert!(rules.catalog().kind("goat").is_none());
    }

    #[test]
    fn invalid_file_at_startup_is_reported_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("goat.yaml"), "name: goat\nplural: 5\nwhat: is this\n");
        let files = RuleFiles { catalog_dir: Some(dir.path().into()), ..RuleFiles::default() };
        let error = format!("{:#}", load(&files).err().unwrap());
        assert!(error.starts_with("--catalog-dir: ") && error.contains("goat.yaml:"), "{error}");
    }
}
