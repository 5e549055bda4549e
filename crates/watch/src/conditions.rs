//! What must hold for a chain to be followed to its end.

use crate::event::RebindReason;
use crate::memory::Memory;
use crate::route::Route;

/// One condition, on every chain of the session.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) route: Route,
    pub(crate) holds: Holds,
}

/// What a value is compared with: unsigned, of the width that its place has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    AtLeast(u64),
    Equal(u64),
}

/// The conditions of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions(pub(crate) Vec<Condition>);

impl Conditions {
    /// Whether all hold now.
    ///
    /// # Errors
    /// The first that does not; one whose value can't be read does not.
    pub(crate) fn check(&self, memory: &mut Memory) -> Result<(), RebindReason> {
        for Condition { route, holds } in &self.0 {
            let leaf = route.walk(memory).leaf;
            let value = leaf.ok().and_then(|span| memory.number(span));
            match (holds, value) {
                (Holds::AtLeast(least), Some(value)) if value >= *least => {}
                (Holds::Equal(expected), Some(value)) if value == *expected => {}
                (Holds::AtLeast(_), _) => return Err(RebindReason::Bound),
                (Holds::Equal(_), _) => return Err(RebindReason::Guard),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hairspring_model::{Addr, Pid};

    #[test]
    fn values_of_our_own() {
        let value = 5_u32;
        let here = Addr(&raw const value as u64);
        for (at, len, holds, expected) in [
            (here, 4, Holds::AtLeast(5), Ok(())),
            (here, 4, Holds::AtLeast(6), Err(RebindReason::Bound)),
            (here, 1, Holds::Equal(5), Ok(())),
            (here, 4, Holds::Equal(4), Err(RebindReason::Guard)),
            (Addr(8), 4, Holds::Equal(0), Err(RebindReason::Guard)),
        ] {
            let route = Route { base: at, hops: Vec::new(), len };
            let conditions = Conditions(vec![Condition { route, holds }]);
            let mut memory = Memory(Pid(std::process::id()));
            assert_eq!(conditions.check(&mut memory), expected, "{len} {holds:?}");
        }
    }
}
