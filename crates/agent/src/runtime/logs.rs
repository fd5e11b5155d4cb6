//! What containers said, as it comes.

pub(in crate::runtime) mod timed;

use futures_util::stream::BoxStream;
pub use model::log::{Cursor, LogLine, LogsFrom, Source};

/// Lines of a log, as they come.
pub type LogStream = BoxStream<'static, LogLine>;
