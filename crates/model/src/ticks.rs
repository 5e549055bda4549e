//! When: ticks, and positions between them.

use crate::Addr;
use std::fmt;

/// A number of ticks: of a thread since it started, or between two stops, as the context says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticks(pub u64);

/// A place in the run of one thread: the ticks since the thread started, and the single steps
/// since the last of them. Totally ordered within a thread; meaningless between threads.
///
/// One step is one single-step stop: an instruction, or one iteration of a repeated string
/// instruction. The instruction that ticks is not a step of the new tick: right after it, `steps`
/// is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Ticks since the thread started.
    pub ticks: Ticks,
    /// Steps since that tick.
    pub steps: u64,
}

/// What one tick is. Whoever stores ticks stores this with them: counts of different kinds can't
/// be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TickKind {
    /// A retired conditional branch in user mode, taken or not: `Jcc`, `LOOP`, `LOOPE`, `LOOPNE`,
    /// `JCXZ`, `JECXZ`, `JRCXZ`.
    ConditionalBranch,
    /// An execution of the instruction at this address, counted when it is about to begin.
    Execution(Addr),
}

impl Ticks {
    /// None.
    pub const ZERO: Self = Self(0);

    /// The sum, or the largest number there is.
    #[must_use]
    pub const fn saturating_add(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }

    /// How many ticks `self` is past `earlier`; none if it is not.
    #[must_use]
    pub const fn past(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Position {
    /// The place right after the tick.
    pub const fn at_tick(ticks: Ticks) -> Self {
        Self { ticks, steps: 0 }
    }
}

impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `TICKS` or `TICKS+STEPS`, as the command line takes it.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.steps {
            0 => self.ticks.fmt(f),
            steps => write!(f, "{}+{steps}", self.ticks),
        }
    }
}

impl fmt::Display for TickKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConditionalBranch => f.write_str("retired conditional branches"),
            Self::Execution(at) => write!(f, "executions of {at}"),
        }
    }
}

/// Text that is not a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsePositionError;

impl std::str::FromStr for Position {
    type Err = ParsePositionError;

    fn from_str(text: &str) -> Result<Self, ParsePositionError> {
        // `u64` reads a sign too, which a count does not have.
        let number = |digits: &str| match digits.parse::<u64>() {
            Ok(number) if !digits.starts_with('+') => Ok(number),
            _ => Err(ParsePositionError),
        };
        let (ticks, steps) = text.split_once('+').map_or((text, None), |(t, s)| (t, Some(s)));
        Ok(Self { ticks: Ticks(number(ticks)?), steps: steps.map_or(Ok(0), number)? })
    }
}

impl fmt::Display for ParsePositionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a position is TICKS or TICKS+STEPS, both decimal")
    }
}

impl std::error::Error for ParsePositionError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_ordered_by_tick_first() {
        let at = |ticks, steps| Position { ticks: Ticks(ticks), steps };
        assert!(at(1, 900) < at(2, 0));
        assert!(at(2, 0) < at(2, 1));
        assert_eq!(Position::at_tick(Ticks(2)), at(2, 0));
    }

    #[test]
    fn text_goes_both_ways() {
        for (text, ticks, steps) in
            [("0", 0, 0), ("17+3", 17, 3), ("18446744073709551615", u64::MAX, 0)]
        {
            let position = Position { ticks: Ticks(ticks), steps };
            assert_eq!(text.parse(), Ok(position));
            assert_eq!(position.to_string(), text);
        }
        for text in ["", "+", "1+", "+1", "-1", "1+2+3", "0x10", "18446744073709551616", "1 +2"] {
            assert_eq!(text.parse::<Position>(), Err(ParsePositionError), "{text:?}");
        }
    }
}
