//! Colors of statuses.

/// The severity of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// The desired state is reached.
    Good,
    /// In progress.
    Busy,
    /// Failed or degraded.
    Bad,
    /// The node has no status.
    Plain,
}

impl Tone {
    pub(super) fn from_status(status: Option<&str>) -> Self {
        match status {
            None => Tone::Plain,
            Some("ready" | "running" | "completed" | "deployed" | "applied" | "published") => {
                Tone::Good
            }
            Some(
                "failed" | "unreachable" | "drifted" | "preempted" | "suspended" | "deprecated",
            ) => Tone::Bad,
            Some(_) => Tone::Busy,
        }
    }

    /// The CSS class.
    pub(super) fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Busy => "busy",
            Tone::Bad => "bad",
            Tone::Plain => "plain",
        }
    }

    /// A color that is visible on light and dark backgrounds.
    pub(super) fn color(self) -> &'static str {
        match self {
            Tone::Good => "#2f9e5b",
            Tone::Busy => "#c98a1b",
            Tone::Bad => "#d64545",
            Tone::Plain => "#7a869a",
        }
    }
}
