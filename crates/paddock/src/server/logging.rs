//! Log output of the server and of `paddock agent`.

use std::io::IsTerminal as _;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::settings::LogFormat;

/// Starts logging to standard error.
pub(crate) fn start_logging(log: &str, format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(log)
        .with_context(|| format!("--log: {log:?} is not a log filter, such as info"))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => {
            let is_terminal = std::io::stderr().is_terminal();
            logs.with_target(false).with_ansi(is_terminal).try_init()
        }
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))
}
