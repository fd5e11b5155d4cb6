//! The limit of open files (`RLIMIT_NOFILE`): raised at start, and shared with connections.

use api::EdgeSettings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are no connections: database, images, logs, calls of external systems.
const OTHER_FILES: u64 = 256;
/// Limit beyond which more has no use; programs that close all files at start would take long.
const ENOUGH: u64 = 1 << 20;

/// Raises the soft limit to the hard one. Returns the limit in force.
pub(super) fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current.unwrap_or(ENOUGH);
    let wanted = maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if wanted <= current {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        Ok(()) => wanted,
        Err(error) => {
            tracing::warn!(%error, limit = current, "limit of open files not raised");
            current
        }
    }
}

/// Bounds connections so that the server never runs out of files because of them.
pub(super) fn fit(settings: EdgeSettings, limit: u64) -> EdgeSettings {
    let free = limit.saturating_sub(OTHER_FILES.max(limit / 4)).max(16);
    let free = usize::try_from(free).unwrap_or(usize::MAX);
    if free < settings.max_connections {
        tracing::warn!(
            limit,
            connections = free,
            "limit of open files is below --max-connections; raise it (ulimit -Hn)"
        );
    }
    EdgeSettings { max_connections: settings.max_connections.min(free), ..settings }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_everything_else() {
        for (limit, connections) in [(64, 16), (1024, 768), (4096, 3072), (1 << 20, 10_000)] {
            let fitted = fit(EdgeSettings::default(), limit);
            assert_eq!(fitted.max_connections, connections, "{limit}");
        }
    }
}
