//! What each slot of a session is for: pure.
//!
//! Fixed watches come first, sharing slots where they can ([`Plan`]). Each chain has a slot for
//! every pointer on its way and a bank for its leaf. If slots are left over, the first chain whose
//! leaf fits into them gets a second bank, so that its next leaf is armed before the old one is
//! released.

use crate::armament::Aim;
use crate::chain::Chain;
use crate::plan::{Plan, PlanError, SLOTS};
use hairspring_model::{Access, Addr, Span};
use hairspring_perf::Piece;

/// A watch as far as slots are concerned.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// What to call it in an error.
    pub(crate) name: String,
    pub(crate) access: Access,
    pub(crate) place: Place,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// These bytes, for the whole session.
    Fixed(Span),
    /// So many bytes, whose place changes, behind so many pointers: none where only the library
    /// is not loaded yet. `now` is where they are at the moment.
    Moving { pointers: usize, len: u64, now: Option<Span> },
}

/// What a slot is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// These watches, by index.
    Fixed(Vec<usize>),
    /// A pointer of this chain.
    Pointer(usize),
    /// The leaf of this chain.
    Leaf(usize),
}

/// The slots of a session.
#[derive(Debug)]
pub(crate) struct Roles {
    pub(crate) aims: Vec<Aim>,
    pub(crate) of_slots: Vec<Role>,
    pub(crate) chains: Vec<Chain>,
}

impl Roles {
    /// Gives every watch its slots.
    ///
    /// # Errors
    /// Where they don't fit.
    pub(crate) fn new(watches: &[Wanted]) -> Result<Self, PlanError> {
        let moving: Vec<usize> = watches.iter().map(moving_slots).collect();
        let fixed = |wanted: &Wanted| match wanted.place {
            Place::Fixed(span) => Some((span, wanted.access)),
            Place::Moving { .. } => None,
        };
        let (index, spans): (Vec<usize>, Vec<_>) =
            watches.iter().enumerate().filter_map(|(i, w)| Some((i, fixed(w)?))).unzip();
        let reserved = moving.iter().sum();
        let plan = Plan::new(&spans, reserved).map_err(|e| in_full(e, &index, &moving))?;
        let mut laid = Self { aims: Vec::new(), of_slots: Vec::new(), chains: Vec::new() };
        for slot in plan.slots {
            let watches_of: Vec<usize> = slot.watches.iter().map(|w| index[*w]).collect();
            let name = watches_of.first().map_or("", |w| &watches[*w].name);
            laid.push(slot.piece, slot.access, true, name, Role::Fixed(watches_of.clone()));
        }
        for (watch, wanted) in watches.iter().enumerate() {
            if let Place::Moving { pointers, .. } = wanted.place {
                laid.add_chain(watch, wanted, pointers, moving[watch] - pointers);
            }
        }
        laid.add_spare_bank(watches);
        Ok(laid)
    }

    fn add_chain(&mut self, watch: usize, wanted: &Wanted, pointers: usize, leaf: usize) {
        let chain = self.chains.len();
        let off = |laid: &mut Self, access, role| {
            laid.push(Piece::LOWEST, access, false, &wanted.name, role)
        };
        let pointers =
            (0..pointers).map(|_| off(self, Access::Write, Role::Pointer(chain))).collect();
        let bank = (0..leaf).map(|_| off(self, wanted.access, Role::Leaf(chain))).collect();
        self.chains.push(Chain::new(watch, pointers, vec![bank]));
    }

    fn add_spare_bank(&mut self, watches: &[Wanted]) {
        let left = SLOTS - self.aims.len();
        let size = |chain: &Chain| chain.banks.first().map_or(0, Vec::len);
        let fits = |chain: &&Chain| !chain.pointers.is_empty() && size(chain) <= left;
        let Some(chain) = self.chains.iter().position(|chain| fits(&chain)) else { return };
        let wanted = &watches[self.chains[chain].watch];
        let bank = (0..size(&self.chains[chain]))
            .map(|_| {
                self.push(Piece::LOWEST, wanted.access, false, &wanted.name, Role::Leaf(chain))
            })
            .collect();
        self.chains[chain].banks.push(bank);
    }

    fn push(&mut self, piece: Piece, access: Access, on: bool, name: &str, role: Role) -> usize {
        let urgent = matches!(role, Role::Pointer(_));
        self.aims.push(Aim { piece, access, on, urgent, name: name.into() });
        self.of_slots.push(role);
        self.aims.len() - 1
    }
}

/// How many slots a moving watch needs: its pointers, and its bytes where they are now; where they
/// are nowhere yet, as if aligned.
fn moving_slots(wanted: &Wanted) -> usize {
    let Place::Moving { pointers, len, now } = wanted.place else { return 0 };
    let aligned = Span::new(Addr(0), len);
    let leaf = now.or(aligned).and_then(|span| crate::plan::pieces(span).ok());
    pointers + leaf.map_or(1, |pieces| pieces.len())
}

/// The error with every watch's need, not only those of the fixed ones.
fn in_full(error: PlanError, index: &[usize], moving: &[usize]) -> PlanError {
    match error {
        PlanError::TooManySlots { each, together } => {
            let mut all = moving.to_vec();
            for (watch, slots) in index.iter().zip(each) {
                all[*watch] = slots;
            }
            PlanError::TooManySlots { each: all, together }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(place: Place) -> Wanted {
        Wanted { name: "x".into(), access: Access::Write, place }
    }

    fn fixed(at: u64, len: u64) -> Wanted {
        wanted(Place::Fixed(Span::new(Addr(at), len).expect("a span")))
    }

    fn chain(pointers: usize, len: u64) -> Wanted {
        wanted(Place::Moving { pointers, len, now: None })
    }

    #[test]
    fn chains_behind_fixed_watches_with_a_spare_bank() {
        let laid = Roles::new(&[chain(1, 8), fixed(0x1000, 8)]).expect("fits");
        let fixed = Role::Fixed(vec![1]);
        assert_eq!(laid.of_slots, [fixed, Role::Pointer(0), Role::Leaf(0), Role::Leaf(0)]);
        assert_eq!(laid.chains[0].banks, [vec![2], vec![3]]);
        let on: Vec<bool> = laid.aims.iter().map(|aim| aim.on).collect();
        assert_eq!(on, [true, false, false, false]);
        assert!(laid.aims[1].urgent && !laid.aims[2].urgent);
    }

    #[test]
    fn without_room_there_is_one_bank() {
        let laid = Roles::new(&[chain(1, 8), fixed(0x1000, 16)]).expect("fits");
        assert_eq!(laid.chains[0].banks.len(), 1);
        let laid = Roles::new(&[chain(1, 16)]).expect("fits");
        assert_eq!(laid.chains[0].banks.len(), 1, "one slot is left, the leaf needs two");
    }

    #[test]
    fn what_does_not_fit_names_all_watches() {
        let error = Roles::new(&[chain(2, 16), fixed(0x1000, 8)]).expect_err("five slots");
        let each = vec![4, 1];
        assert_eq!(error, PlanError::TooManySlots { each, together: 5 });
    }
}
