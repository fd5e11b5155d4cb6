//! The colour of a status.

/// How things are with a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// As it should be.
    Good,
    /// On its way.
    Busy,
    /// Not as it should be.
    Bad,
    /// It has no status.
    Plain,
}

impl Tone {
    pub(super) fn of(status: Option<&str>) -> Self {
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

    /// Its name where drawings are styled.
    pub(super) fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Busy => "busy",
            Tone::Bad => "bad",
            Tone::Plain => "plain",
        }
    }

    /// A colour that can be seen on light and on dark ground.
    pub(super) fn colour(self) -> &'static str {
        match self {
            Tone::Good => "#2f9e5b",
            Tone::Busy => "#c98a1b",
            Tone::Bad => "#d64545",
            Tone::Plain => "#7a869a",
        }
    }
}
