//! Where: a virtual address.

use std::fmt;
use std::str::FromStr;

/// A virtual address in the target or guest; printed as `0x…` in lower-case hexadecimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addr(pub u64);

/// Text that is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseAddrError;

impl Addr {
    /// The first address that user space can't have with four-level page tables
    /// (Linux `Documentation/arch/x86/x86_64/mm.rst`).
    pub const USER_END: Self = Self(0x0000_8000_0000_0000);

    /// The address `offset` bytes away, or `None` where that leaves the address space.
    pub const fn offset(self, offset: i64) -> Option<Self> {
        match self.0.checked_add_signed(offset) {
            Some(addr) => Some(Self(addr)),
            None => None,
        }
    }

    /// Whether `align` (a power of two) divides the address.
    pub const fn is_aligned(self, align: u64) -> bool {
        self.0 & (align - 1) == 0
    }

    /// Whether the address belongs to the kernel's half of the address space.
    pub const fn is_kernel(self) -> bool {
        self.0 >> 63 == 1
    }
}

impl FromStr for Addr {
    type Err = ParseAddrError;

    /// Reads `0x…`; the prefix is required, so that a symbol can't be taken for a number.
    fn from_str(text: &str) -> Result<Self, ParseAddrError> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let digits = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        u64::from_str_radix(digits.ok_or(ParseAddrError)?, 16).map(Self).map_err(|_| ParseAddrError)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for ParseAddrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address is 0x followed by up to 16 hexadecimal digits")
    }
}

impl std::error::Error for ParseAddrError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_both_ways() {
        for (text, addr) in
            [("0x0", 0), ("0x7fff_f000", u64::MAX), ("0xffffffffffffffff", u64::MAX)]
        {
            match text.parse::<Addr>() {
                Ok(parsed) => {
                    assert_eq!(parsed, Addr(addr));
                    assert_eq!(parsed.to_string(), text);
                }
                Err(ParseAddrError) => assert!(text.contains('_')),
            }
        }
    }

    #[test]
    fn what_is_not_an_address() {
        for text in ["", "0x", "12", "0x1g", "0x10000000000000000", "0x+1", "-0x1"] {
            assert_eq!(text.parse::<Addr>(), Err(ParseAddrError), "{text:?}");
        }
    }

    #[test]
    fn offsets_stay_inside_the_address_space() {
        assert_eq!(Addr(8).offset(-8), Some(Addr(0)));
        assert_eq!(Addr(8).offset(-9), None);
        assert_eq!(Addr(u64::MAX).offset(1), None);
    }
}
