//! Server settings. Precedence: flags, `PADDOCK_*` environment variables, the file, defaults.
//!
//! An invalid setting aborts startup with a one-line error that names the setting.

mod args;
mod containers;
pub(crate) mod edge;
pub(crate) mod external;

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use ::runtime::{Registries, Userns};
use agent::RuntimeChoice;
use anyhow::{Context, bail};
use engine::placement;
use model::cluster::HeartbeatTimeouts;
use model::deployment::{DEFAULT_MAX_PRIORITY, MAX_PRIORITY};
use model::organization::quota::{DefaultQuotas, Subject};
use model::{Quantity, address};
use store::Durability;
use store::deployment::Limits;

use crate::runtime;
use crate::server::machine;

pub(crate) use args::Args;
pub(crate) use containers::ContainerArgs;

/// Validated settings.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    pub(crate) data_dir: PathBuf,
    pub(crate) database: Database,
    pub(crate) runtime: runtime::Settings,
    pub(crate) admin_password: Option<String>,
    /// Whether to start although keys of stored secrets are lost.
    pub(crate) accept_lost_keys: bool,
    pub(crate) local_agent: bool,
    /// What containers may request in total, in thousandths of this machine's capacity.
    pub(crate) overcommit_permille: i64,
    pub(crate) limits: Limits,
    pub(crate) quotas: DefaultQuotas,
    pub(crate) placement: placement::Settings,
    pub(crate) heartbeat_timeouts: HeartbeatTimeouts,
    pub(crate) password_min: usize,
    pub(crate) token_life: Duration,
    pub(crate) token_max_life: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) log_format: LogFormat,
    pub(crate) log: String,
    pub(crate) edge: edge::Settings,
    pub(crate) external: external::Settings,
}

/// Selected database.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Database {
    /// A SQLite file.
    Sqlite(PathBuf, Durability),
    /// A PostgreSQL URL.
    Postgres(String),
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Human-readable text.
    Text,
    /// One JSON object per line.
    Json,
}

impl Args {
    /// Merges the settings file, if one is named, and validates all settings.
    pub(crate) fn resolve(self) -> anyhow::Result<Settings> {
        let file = self.config.as_deref().map(|path| read_file(path.as_ref()));
        let file = file.transpose()?.unwrap_or_default();
        self.or(file).validate()
    }

    fn validate(self) -> anyhow::Result<Settings> {
        let listen = self.listen.as_deref().unwrap_or("127.0.0.1:8001");
        let listen: SocketAddr = listen.parse().with_context(|| {
            format!("--listen: {listen:?} is not an ADDRESS:PORT, such as 127.0.0.1:8001")
        })?;
        let data_dir: PathBuf = self.data_dir.as_deref().unwrap_or("./paddock-data").into();
        if self.admin_password.as_deref() == Some("") {
            bail!("--admin-password: must not be empty");
        }
        let (quotas, mut limits, mut edge) = (self.quotas()?, self.limits()?, self.edge(listen)?);
        override_limits(self.default_quota.as_deref(), &quotas, &mut limits, &mut edge);
        Ok(Settings {
            listen,
            edge,
            external: self.external()?,
            database: self.database(&data_dir)?,
            runtime: self.runtime(&data_dir)?,
            data_dir,
            local_agent: boolean("--local-agent", self.local_agent.as_deref(), true)?,
            accept_lost_keys: boolean(
                "--accept-lost-keys",
                self.accept_lost_keys.as_deref(),
                false,
            )?,
            overcommit_permille: self.overcommit_permille()?,
            limits,
            quotas,
            placement: self.placement()?,
            heartbeat_timeouts: self.heartbeat_timeouts()?,
            password_min: self.password_min()?,
            token_life: self.token_life()?,
            token_max_life: self.token_max_life()?,
            request_timeout: self.request_timeout()?,
            log_format: log_format(self.log_format.as_deref())?,
            log: self.log.unwrap_or_else(|| "info".into()),
            admin_password: self.admin_password,
        })
    }

    fn quotas(&self) -> anyhow::Result<DefaultQuotas> {
        let mut quotas = DefaultQuotas::default();
        let text = self.default_quota.as_deref().unwrap_or_default();
        quotas.set_all(text).map_err(|invalid| anyhow::anyhow!("--default-quota: {invalid}"))?;
        Ok(quotas)
    }

    fn overcommit_permille(&self) -> anyhow::Result<i64> {
        let Some(text) = &self.machine_overcommit else { return Ok(1000) };
        let factor = text.parse::<Quantity>().ok().map(Quantity::milli);
        factor.filter(|permille| (100..=100_000).contains(permille)).with_context(|| {
            format!("--machine-overcommit: must be a number from 0.1 to 100, not {text:?}")
        })
    }

    fn limits(&self) -> anyhow::Result<Limits> {
        let organization = self.max_deployments_per_organization.as_deref();
        let cluster = self.max_deployments_per_cluster.as_deref();
        let max = 1_000_000_000;
        Ok(Limits {
            per_organization: number(
                "--max-deployments-per-organization",
                organization,
                1000,
                0..=max,
            )?,
            per_cluster: number("--max-deployments-per-cluster", cluster, 10_000, 0..=max)?,
            max_priority: number(
                "--max-priority",
                self.max_priority.as_deref(),
                DEFAULT_MAX_PRIORITY,
                -MAX_PRIORITY..=MAX_PRIORITY,
            )?,
        })
    }

    fn placement(&self) -> anyhow::Result<placement::Settings> {
        let (name, text) = ("--preemptions-per-hour", self.preemptions_per_hour.as_deref());
        let preemptions_per_hour = Some(number(name, text, 1000, 0..=u32::MAX)?);
        Ok(placement::Settings { preemptions_per_hour, ..placement::Settings::default() })
    }

    fn heartbeat_timeouts(&self) -> anyhow::Result<HeartbeatTimeouts> {
        let (silence, grace) =
            (self.agent_silence_secs.as_deref(), self.agent_grace_secs.as_deref());
        let day = 24 * 60 * 60;
        let silence = number("--agent-silence-secs", silence, 30, 1..=day)?;
        let grace = number("--agent-grace-secs", grace, 300, 0..=365 * day)?;
        let grace = (grace > 0).then(|| Duration::from_secs(grace));
        Ok(HeartbeatTimeouts {
            unreachable_after: Duration::from_secs(silence),
            evict_after: grace,
        })
    }

    fn password_min(&self) -> anyhow::Result<usize> {
        number("--password-min-length", self.password_min_length.as_deref(), 1, 1..=256)
    }

    fn token_life(&self) -> anyhow::Result<Duration> {
        let ten_years = 10 * 365 * 24 * 60 * 60;
        let secs = self.token_life_secs.as_deref();
        number("--token-life-secs", secs, 24 * 60 * 60, 1..=ten_years).map(Duration::from_secs)
    }

    fn token_max_life(&self) -> anyhow::Result<Duration> {
        let secs = self.token_max_life_secs.as_deref();
        let max = model::token::MAX_LIFETIME.as_secs();
        number("--token-max-life-secs", secs, 365 * 24 * 60 * 60, 1..=max).map(Duration::from_secs)
    }

    fn request_timeout(&self) -> anyhow::Result<Duration> {
        let secs = self.request_timeout_secs.as_deref();
        number("--request-timeout-secs", secs, 30, 1..=3600).map(Duration::from_secs)
    }

    fn database(&self, data_dir: &Path) -> anyhow::Result<Database> {
        let durability = match self.sqlite_durability.as_deref() {
            None | Some("full") => Durability::Full,
            Some("normal") => Durability::Normal,
            Some(other) => bail!("--sqlite-durability: must be full or normal, not {other:?}"),
        };
        let in_data_dir = || data_dir.join("paddock.db");
        match self.database_url.as_deref() {
            None | Some("sqlite:") => Ok(Database::Sqlite(in_data_dir(), durability)),
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Ok(Database::Postgres(url.to_owned()))
            }
            Some(url) => match url.strip_prefix("sqlite:") {
                Some(path) => Ok(Database::Sqlite(path.into(), durability)),
                // The value is omitted: it may contain a password.
                None => bail!("--database-url: must begin with postgres:// or sqlite:"),
            },
        }
    }

    fn runtime(&self, data_dir: &Path) -> anyhow::Result<runtime::Settings> {
        // Absolute: child processes of the runtime have another working directory.
        let dir = std::path::absolute(data_dir.join("runtime")).context("--data-dir")?;
        Ok(runtime::Settings {
            choice: self.runtime_choice()?,
            dir,
            registries: self.registries()?,
            max_image_bytes: self.max_image_size()?,
            egress: boolean("--egress", self.egress.as_deref(), true)?,
            egress_allow: list("--egress-allow", self.egress_allow.as_deref())?,
            userns: match self.userns.as_deref() {
                None | Some("auto") => Userns::Auto,
                Some("off") => Userns::Off,
                Some(other) => bail!("--userns: must be auto or off, not {other:?}"),
            },
            capacity: machine::usable(&machine::capacity(data_dir), self.overcommit_permille()?),
        })
    }

    fn registries(&self) -> anyhow::Result<Registries> {
        let credentials =
            self.registry_auth_file.as_deref().map(|path| runtime::registries(path.as_ref()));
        let repositories = self.registry_repositories.as_deref();
        let realms = self.registry_realm.as_deref();
        Ok(Registries {
            credentials: credentials.transpose()?.unwrap_or_default(),
            repositories: list("--registry-repositories", repositories)?,
            realms: list("--registry-realm", realms)?,
            addresses: self.addresses()?,
        })
    }

    /// Addresses to which the server connects on behalf of users.
    fn addresses(&self) -> anyhow::Result<address::Policy> {
        let allows_private = match self.private_addresses.as_deref() {
            None | Some("refuse") => false,
            Some("allow") => true,
            Some(other) => bail!("--private-addresses: must be refuse or allow, not {other:?}"),
        };
        let allowed = list("--allow-address", self.allow_address.as_deref())?;
        Ok(address::Policy { allows_private, allowed })
    }

    fn max_image_size(&self) -> anyhow::Result<u64> {
        let Some(text) = &self.max_image_size else { return Ok(8 << 30) };
        let size = text.parse::<Quantity>().ok().map(|size| size.milli() / 1000);
        size.filter(|bytes| *bytes > 0).and_then(|bytes| u64::try_from(bytes).ok()).with_context(
            || format!("--max-image-size: {text:?} is not a size, such as 512Mi or 8Gi"),
        )
    }

    fn runtime_choice(&self) -> anyhow::Result<RuntimeChoice> {
        match self.runtime.as_deref() {
            None | Some("auto") => Ok(RuntimeChoice::Auto),
            Some("embedded") => Ok(RuntimeChoice::Embedded),
            Some("docker") => Ok(RuntimeChoice::Docker),
            Some("simulated") => {
                let ms = self.simulated_delay_ms.as_deref();
                let ms = number("--simulated-delay-ms", ms, 0, 0..=3_600_000)?;
                let delay = Duration::from_millis(ms);
                Ok(RuntimeChoice::Simulated(agent::simulated::Options {
                    start_delay: delay,
                    stop_delay: delay,
                    fail: self.simulated_fail.clone(),
                    complete: self.simulated_complete.clone(),
                    run_for: delay,
                }))
            }
            Some(other) => {
                bail!("--runtime: must be auto, embedded, docker or simulated, not {other:?}")
            }
        }
    }
}

/// Runtime settings of `paddock agent`.
pub(crate) fn agent_runtime(
    mut args: ContainerArgs,
    kubernetes: agent::kubernetes::Options,
    data_dir: &Path,
) -> anyhow::Result<runtime::Settings> {
    let is_kubernetes = args.runtime.as_deref() == Some("kubernetes");
    args.runtime = args.runtime.filter(|_| !is_kubernetes);
    let settings = Args::from(args).runtime(data_dir)?;
    if is_kubernetes {
        return Ok(runtime::Settings { choice: RuntimeChoice::Kubernetes(kubernetes), ..settings });
    }
    Ok(settings)
}

/// Parses a log format.
pub(crate) fn log_format(name: Option<&str>) -> anyhow::Result<LogFormat> {
    match name {
        None | Some("text") => Ok(LogFormat::Text),
        Some("json") => Ok(LogFormat::Json),
        Some(other) => bail!("--log-format: must be text or json, not {other:?}"),
    }
}

/// Parses a whole number, or returns its default.
/// A default quota of deployments or streams overrides the setting for it.
fn override_limits(
    text: Option<&str>,
    quotas: &DefaultQuotas,
    limits: &mut Limits,
    edge: &mut edge::Settings,
) {
    let is_named = |subject: Subject| {
        let mut parts = text.unwrap_or_default().split(',');
        parts.any(|part| part.split('=').next().is_some_and(|name| name.trim() == subject.as_str()))
    };
    let count = |subject: Subject| {
        let limit = quotas.get(&subject.into()).amount();
        limit.map(|amount| amount.milli() / 1000)
    };
    if is_named(Subject::Deployments) {
        limits.per_organization = count(Subject::Deployments).unwrap_or(i64::MAX);
    }
    if is_named(Subject::Streams) {
        let max = count(Subject::Streams).unwrap_or(0);
        edge.http.max_streams.organization = usize::try_from(max).unwrap_or(0);
    }
}

fn number<T: FromStr + PartialOrd + Display>(
    name: &str,
    text: Option<&str>,
    default: T,
    allowed: RangeInclusive<T>,
) -> anyhow::Result<T> {
    let Some(text) = text else { return Ok(default) };
    let number = text.trim().parse().ok().filter(|number| allowed.contains(number));
    let (min, max) = (allowed.start(), allowed.end());
    number.with_context(|| {
        format!("{name}: must be a whole number from {min} to {max}, not {text:?}")
    })
}

fn boolean(name: &str, text: Option<&str>, default: bool) -> anyhow::Result<bool> {
    match text {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => bail!("{name}: must be true or false, not {other:?}"),
    }
}

/// Parses a list of values, separated by commas.
fn list<T: FromStr<Err = String>>(name: &str, text: Option<&str>) -> anyhow::Result<Vec<T>> {
    let parts = text.unwrap_or_default().split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().map_err(|error| anyhow::anyhow!("{name}: {error}"))).collect()
}

fn read_file(path: &Path) -> anyhow::Result<Args> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("--config: cannot read {}", path.display()))?;
    parse(&text).map_err(|error| anyhow::anyhow!("--config: {}: {error}", path.display()))
}

fn parse(text: &str) -> Result<Args, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        format!("line {}: {}", before.matches('\n').count() + 1, error.message())
    })?;
    let to_string = |value| match value {
        toml::Value::String(text) => toml::Value::String(text),
        other => toml::Value::String(other.to_string()),
    };
    let strings: toml::Table =
        table.into_iter().map(|(key, value)| (key, to_string(value))).collect();
    strings.try_into().map_err(|error: toml::de::Error| error.message().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_cgroup_is_scaled_down_by_overcommit_but_not_up() {
        let dir = Path::new("/missing/directory");
        let capacity = |factor: Option<&str>| {
            let machine_overcommit = factor.map(str::to_owned);
            let args = Args { machine_overcommit, ..Args::default() };
            let capacity = args.runtime(dir).unwrap().capacity;
            ["cpu", "ram"].map(|kind| capacity.get(kind).milli())
        };
        let whole = capacity(None);
        assert_eq!(capacity(Some("2.0")), whole);
        assert_eq!(capacity(Some("0.5")), whole.map(|milli| milli / 2));
    }

    #[test]
    fn invalid_setting_is_reported_by_name() {
        let bad = vec![
            (Args { listen: Some("here".into()), ..Args::default() }, "--listen"),
            (Args { runtime: Some("magic".into()), ..Args::default() }, "--runtime"),
            (Args { max_image_size: Some("big".into()), ..Args::default() }, "--max-image-size"),
            (Args { egress: Some("some".into()), ..Args::default() }, "--egress"),
            (Args { egress_allow: Some("here".into()), ..Args::default() }, "--egress-allow"),
            (Args { userns: Some("on".into()), ..Args::default() }, "--userns"),
            (
                Args { allow_address: Some("10.0.0.0/33".into()), ..Args::default() },
                "--allow-address",
            ),
            (
                Args { registry_repositories: Some("a/*/b".into()), ..Args::default() },
                "--registry-repositories",
            ),
            (
                Args { registry_realm: Some("https://x".into()), ..Args::default() },
                "--registry-realm",
            ),
            (
                Args { registry_auth_file: Some("/does/not/exist".into()), ..Args::default() },
                "--registry-auth-file",
            ),
            (
                Args { database_url: Some("mysql://u:secret@h".into()), ..Args::default() },
                "--database-url",
            ),
            (
                Args { sqlite_durability: Some("maybe".into()), ..Args::default() },
                "--sqlite-durability",
            ),
            (
                Args { machine_overcommit: Some("0".into()), ..Args::default() },
                "--machine-overcommit",
            ),
            (Args { max_priority: Some("high".into()), ..Args::default() }, "--max-priority"),
            (Args { log_format: Some("xml".into()), ..Args::default() }, "--log-format"),
            (Args { token_life_secs: Some("0".into()), ..Args::default() }, "--token-life-secs"),
            (Args { local_agent: Some("maybe".into()), ..Args::default() }, "--local-agent"),
            (
                Args { agent_silence_secs: Some("0".into()), ..Args::default() },
                "--agent-silence-secs",
            ),
            (Args { agent_grace_secs: Some("-1".into()), ..Args::default() }, "--agent-grace-secs"),
            (Args { admin_password: Some(String::new()), ..Args::default() }, "--admin-password"),
            (Args { config: Some("/does/not/exist".into()), ..Args::default() }, "--config"),
        ];
        for (args, name) in bad {
            let error = format!("{:#}", args.resolve().unwrap_err());
            assert!(error.starts_with(name), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn flags_take_precedence_over_the_file() {
        let file = parse(
            "listen = \"127.0.0.1:1\"\nruntime = \"simulated\"\nlocal_agent = false\ntoken_life_secs = 60",
        )
        .unwrap();
        let flags = Args { listen: Some("127.0.0.1:2".into()), ..Args::default() };
        let settings = flags.or(file).validate().unwrap();
        assert_eq!(settings.listen.port(), 2);
        assert!(matches!(settings.runtime.choice, RuntimeChoice::Simulated(_)));
        assert!(!settings.local_agent);
        assert_eq!(settings.token_life, Duration::from_mins(1));
    }

    #[test]
    fn invalid_settings_file_is_rejected() {
        for (text, part) in [
            ("lisen = \"127.0.0.1:1\"", "lisen"),
            ("log = \"info\"\nlisten 5", "line 2: "),
            ("log = \"a\"\nlog = \"b\"", "line 2: "),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn default_database_is_sqlite_in_the_data_directory() {
        let settings = Args::default().validate().unwrap();
        let file = PathBuf::from("./paddock-data/paddock.db");
        assert_eq!(settings.database, Database::Sqlite(file, Durability::Full));
    }
}
