//! What went wrong, told once.

use crate::exit::Exit;
use crate::text::style;
use std::io;

/// A verb that could not do its work.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The session could not be had.
    Watch(hairspring::watch::Error),
    /// Arguments that are each right, but not together.
    Usage(String),
    /// Reading or writing failed.
    Io { what: String, source: io::Error },
}

impl Problem {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Whether nobody reads our output any more.
    fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The text, and what to do about it.
    pub(crate) fn told(&self) -> (String, Option<String>) {
        match self {
            Self::Watch(e) => {
                let layer =
                    e.layer().map_or_else(String::new, |layer| format!(" (refused by {layer})"));
                (format!("{e}{layer}"), e.remedy().map(Into::into))
            }
            Self::Usage(text) => {
                (text.clone(), Some("`hairspring help watch` has examples".into()))
            }
            Self::Io { what, source } => (format!("{what}: {source}"), None),
        }
    }

    /// Tells it on stderr.
    pub(crate) fn report(self) -> Exit {
        if self.is_broken_pipe() {
            return Exit::Done;
        }
        let (text, remedy) = self.told();
        let (error, dim) = (style::ERROR, style::DIM);
        anstream::eprintln!("{error}hairspring:{error:#} {text}");
        if let Some(remedy) = remedy {
            anstream::eprintln!("  {dim}what to do:{dim:#} {remedy}");
        }
        Exit::Failed
    }
}

impl From<hairspring::watch::Error> for Problem {
    fn from(error: hairspring::watch::Error) -> Self {
        Self::Watch(error)
    }
}
