//! Every exit status of the command, in one place.
//!
//! | status | `watch`, `demo` | `doctor` | others |
//! | --- | --- | --- | --- |
//! | 0 | at least one hit, coverage complete; or nobody reads the output any more | `watch` works here | done |
//! | 1 | proved quiet: no hit, coverage complete | `watch` does not work here | |
//! | 2 | wrong usage, or nothing could be armed | | wrong usage, or a failure |
//! | 3 | coverage incomplete, whatever was seen | | |
//! | 130 | interrupted twice | | |

use hairspring::watch::{Summary, Verdict};
use std::process::ExitCode;

/// How a verb ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Hits,
    Quiet,
    Works,
    DoesNotWork,
    Failed,
    Incomplete,
}

impl Exit {
    /// The status of a finished session. A session that may have missed something is never a
    /// success, whatever it saw.
    pub(crate) fn of(summary: &Summary) -> Self {
        match (summary.coverage.verdict(), summary.hits()) {
            (Verdict::Incomplete, _) => Self::Incomplete,
            (Verdict::Complete, 0) => Self::Quiet,
            (Verdict::Complete, _) => Self::Hits,
        }
    }

    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Done | Self::Hits | Self::Works => 0,
            Self::Quiet | Self::DoesNotWork => 1,
            Self::Failed => 2,
            Self::Incomplete => 3,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.status())
    }
}
