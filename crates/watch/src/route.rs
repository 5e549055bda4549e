//! From a fixed address along pointers to the watched bytes: pure but for the reader it is given.
//!
//! ```text
//!   base          hop 0               hop 1
//!   [ptr] ------> [.. +off0: ptr] --> [.. +off1: leaf, len bytes]
//!     pointer 0            pointer 1              leaf
//! ```
//! A route without hops is a fixed address. Each pointer is read twice until both reads agree,
//! since the target runs on.

use crate::event::RebindReason;
use hairspring_model::{Addr, Span};

/// How often a pointer is read before it counts as unsteady.
const TRIES: usize = 3;

/// The way to the watched bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) base: Addr,
    /// What is added to each pointer, in order.
    pub(crate) hops: Vec<i64>,
    /// Bytes at the end.
    pub(crate) len: u64,
}

/// Where a route leads at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Where the pointers are, as far as they can be followed; the first is always there.
    pub(crate) pointers: Vec<Addr>,
    /// The watched bytes, or why there are none.
    pub(crate) leaf: Result<Span, RebindReason>,
}

/// Reads one pointer of the target; `None` where it can't be read.
pub(crate) trait Pointers {
    fn pointer(&mut self, at: Addr) -> Option<u64>;
}

impl Route {
    /// Follows the pointers.
    pub(crate) fn walk(&self, memory: &mut impl Pointers) -> Walk {
        let mut at = self.base;
        let mut pointers = Vec::with_capacity(self.hops.len());
        for hop in &self.hops {
            pointers.push(at);
            match follow(at, *hop, memory) {
                Ok(next) => at = next,
                Err(reason) => return Walk { pointers, leaf: Err(reason) },
            }
        }
        let last = Span::new(at, self.len).filter(|span| span.last().0 < Addr::USER_END.0);
        Walk { pointers, leaf: last.ok_or(RebindReason::Unreadable) }
    }
}

fn follow(at: Addr, hop: i64, memory: &mut impl Pointers) -> Result<Addr, RebindReason> {
    let mut last = memory.pointer(at).ok_or(RebindReason::Unreadable)?;
    for _ in 1..TRIES {
        let again = memory.pointer(at).ok_or(RebindReason::Unreadable)?;
        if again == last {
            return match last {
                0 => Err(RebindReason::Null),
                pointer => Addr(pointer).offset(hop).ok_or(RebindReason::Unreadable),
            };
        }
        last = again;
    }
    Err(RebindReason::Unsteady)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Memory of pointers; each read of a pointer takes the next of its values, the last for ever.
    struct Scripted(HashMap<u64, Vec<u64>>);

    impl Pointers for Scripted {
        fn pointer(&mut self, at: Addr) -> Option<u64> {
            let values = self.0.get_mut(&at.0)?;
            Some(if values.len() > 1 { values.remove(0) } else { values[0] })
        }
    }

    fn check(
        memory: &[(u64, &[u64])],
        hops: &[i64],
        pointers: &[u64],
        leaf: Result<u64, RebindReason>,
    ) {
        let route = Route { base: Addr(0x100), hops: hops.to_vec(), len: 8 };
        let mut memory = Scripted(memory.iter().map(|(at, v)| (*at, v.to_vec())).collect());
        let walk = route.walk(&mut memory);
        assert_eq!(walk.pointers, pointers.iter().map(|at| Addr(*at)).collect::<Vec<_>>());
        assert_eq!(walk.leaf.map(|span| span.start().0), leaf);
    }

    #[test]
    fn routes() {
        check(&[], &[], &[], Ok(0x100));
        check(&[(0x100, &[0x200])], &[8], &[0x100], Ok(0x208));
        check(&[(0x100, &[0x200]), (0x1f8, &[0x300])], &[-8, 4], &[0x100, 0x1f8], Ok(0x304));
    }

    #[test]
    fn routes_that_lead_nowhere() {
        use RebindReason::{Null, Unreadable, Unsteady};
        check(&[], &[8], &[0x100], Err(Unreadable));
        check(&[(0x100, &[0])], &[8], &[0x100], Err(Null));
        check(&[(0x100, &[0x200])], &[8, 0], &[0x100, 0x208], Err(Unreadable));
        check(&[(0x100, &[u64::MAX])], &[8], &[0x100], Err(Unreadable));
        check(&[(0x100, &[Addr::USER_END.0])], &[-4], &[0x100], Err(Unreadable));
        check(&[(0x100, &[1, 2, 3, 4])], &[8], &[0x100], Err(Unsteady));
    }

    #[test]
    fn a_pointer_that_settles_is_followed() {
        check(&[(0x100, &[0x200, 0x300])], &[0], &[0x100], Ok(0x300));
    }
}
