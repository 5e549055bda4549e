//! How a thread ended.

use std::fmt;

/// How a thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this status (0 to 255).
    Exited(u8),
    /// By a signal.
    Killed {
        /// Its number.
        signal: i32,
        /// Whether memory was dumped.
        core: bool,
    },
    /// Its process exec'd from another thread, which has taken its place.
    Replaced,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exited with status {status}"),
            Self::Killed { signal, core: false } => write!(f, "killed by signal {signal}"),
            Self::Killed { signal, core: true } => {
                write!(f, "killed by signal {signal}, core dumped")
            }
            Self::Replaced => f.write_str("replaced at an exec"),
        }
    }
}
