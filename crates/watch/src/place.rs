//! How a person says what to watch.
//!
//! ```text
//!   WHAT   = PLACE [":" LEN] [":" ACCESS]       LEN 1 to 32 bytes, ACCESS w or rw
//!   PLACE  = BASE [OFFSET]                      these bytes
//!          | "[" PLACE "]" [OFFSET]             the bytes that the pointer at PLACE points to now
//!   BASE   = SYMBOL                             of the executable, else of any module
//!          | MODULE "!" SYMBOL                  of that module
//!          | "0x" HEX                           a run-time address
//!          | MODULE "@0x" HEX                   an address in the module's file
//!   OFFSET = ("+" | "-") NUMBER                 decimal, or 0x and hexadecimal
//!   BOUND  = PLACE [":" LEN] ">=" NUMBER        GUARD = PLACE [":" LEN] "==" NUMBER
//! ```
//! Symbols are taken as they are, C++ and Rust paths among them: a colon that belongs to a `::`
//! separates nothing, and a sign is an offset's only if nothing but a number follows. The grammar
//! is all there is here; whether a symbol exists is found out when the session is armed.

use hairspring_model::{Access, Addr};
use std::fmt;
use std::str::FromStr;

/// The most bytes that one watch can have: four debug registers of eight.
pub const MOST_BYTES: u64 = 32;

/// How many pointers a chain may follow: each takes a debug register, and the end needs one.
const MOST_HOPS: usize = 3;

/// Something to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct What {
    /// Where it is.
    pub place: Place,
    /// How many bytes, 1 to [`MOST_BYTES`]; `None`: the symbol's size, or else 8.
    pub len: Option<u64>,
    /// Which accesses.
    pub access: Access,
}

/// Where something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where the way begins.
    pub base: Base,
    /// What is added to it.
    pub offset: i64,
    /// A pointer is followed for each of these, which is added to it, in order.
    pub hops: Vec<i64>,
}

/// Where the way to a place begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// A run-time address.
    Address(Addr),
    /// A symbol.
    Symbol {
        /// The module that has it; `None`: the executable, else any.
        module: Option<String>,
        /// Its name, mangled or not.
        name: String,
    },
    /// An address in a module's file.
    Link {
        /// The module.
        module: String,
        /// The address.
        address: Addr,
    },
}

/// A number in the target that must be at least so large for a chain to be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Where the number is.
    pub place: Place,
    /// How many bytes it has, 1 to 8; `None`: the symbol's size, or else 8.
    pub len: Option<u64>,
    /// The least that it may be.
    pub least: u64,
}

/// A number in the target that must be there for a chain to be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Where the number is.
    pub place: Place,
    /// How many bytes it has, 1 to 8; `None`: the symbol's size, or else 8.
    pub len: Option<u64>,
    /// What it must be.
    pub value: u64,
}

/// Text that says no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceError {
    text: String,
    /// The byte where it went wrong.
    at: usize,
    why: &'static str,
}

impl FromStr for What {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let (rest, access) = match split_colon(text) {
            Some((rest, "w")) => (rest, Access::Write),
            Some((rest, "rw")) => (rest, Access::ReadWrite),
            Some((rest, "r")) => {
                let why = "x86 has no watch for reads alone: use rw, which reports writes too";
                return Err(PlaceError::new(text, rest.len() + 1, why));
            }
            _ => (text, Access::Write),
        };
        let (place, len) = sized(text, rest, MOST_BYTES)?;
        Ok(Self { place, len, access })
    }
}

impl FromStr for Bound {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let (place, len, least) = condition(text, ">=")?;
        Ok(Self { place, len, least })
    }
}

impl FromStr for Guard {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let (place, len, value) = condition(text, "==")?;
        Ok(Self { place, len, value })
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        place(text, text)
    }
}

/// `PLACE OPERATOR NUMBER`.
fn condition(text: &str, operator: &str) -> Result<(Place, Option<u64>, u64), PlaceError> {
    let missing = "expected PLACE>=NUMBER for a bound, PLACE==NUMBER for a guard";
    let at = text.rfind(operator).ok_or_else(|| PlaceError::new(text, text.len(), missing))?;
    let value_at = at + operator.len();
    let value = number(text[value_at..].trim());
    let value = value.ok_or_else(|| PlaceError::new(text, value_at, "expected a number"))?;
    let (place, len) = sized(text, text[..at].trim_end(), 8)?;
    Ok((place, len, value))
}

/// `PLACE [":" LEN]`, which begins `text`.
fn sized(text: &str, part: &str, most: u64) -> Result<(Place, Option<u64>), PlaceError> {
    let Some((rest, digits)) = split_colon(part) else { return Ok((place(text, part)?, None)) };
    let at = rest.len() + 1;
    let len = number(digits).ok_or_else(|| {
        PlaceError::new(text, at, "expected a length in bytes, or an access: w or rw")
    })?;
    if len == 0 || len > most {
        let why = if most == 8 {
            "a number has 1 to 8 bytes"
        } else {
            "a watch has 1 to 32 bytes: there are four debug registers of eight"
        };
        return Err(PlaceError::new(text, at, why));
    }
    // No name has a single colon, so that one would only be a name that is not found.
    if let Some((place, part)) = split_colon(rest)
        && (matches!(part, "w" | "rw" | "r") || number(part).is_some())
    {
        let why = "the length comes once, and the access behind it: PLACE:LEN:rw";
        return Err(PlaceError::new(text, place.len() + 1, why));
    }
    Ok((place(text, rest)?, Some(len)))
}

/// A place, which begins `text`.
fn place(text: &str, part: &str) -> Result<Place, PlaceError> {
    let (mut start, mut end) = (0, part.len());
    let mut hops = Vec::new();
    while part[start..end].starts_with('[') {
        let Some(close) = part[start..end].rfind(']').map(|close| start + close) else {
            return Err(PlaceError::new(text, start, "this bracket is not closed"));
        };
        let behind = &part[close + 1..end];
        let Some(hop) = (if behind.is_empty() { Some(0) } else { signed(behind) }) else {
            let why = "expected an offset behind the bracket, such as +16 or -0x8";
            return Err(PlaceError::new(text, close + 1, why));
        };
        if hops.len() == MOST_HOPS {
            let why = "a chain follows at most three pointers: each takes a debug register";
            return Err(PlaceError::new(text, start, why));
        }
        hops.push(hop);
        (start, end) = (start + 1, close);
    }
    hops.reverse();
    let (base, offset) = match part[start..end].rfind(['+', '-']) {
        Some(sign) => match signed(&part[start + sign..end]) {
            Some(offset) if sign > 0 => (&part[start..start + sign], offset),
            _ => (&part[start..end], 0),
        },
        None => (&part[start..end], 0),
    };
    Ok(Place { base: base_of(text, start, base)?, offset, hops })
}

fn base_of(text: &str, at: usize, part: &str) -> Result<Base, PlaceError> {
    let address = |at, digits: &str| {
        let why = "expected an address: 0x and up to 16 hexadecimal digits";
        let address: Addr = digits.parse().map_err(|_| PlaceError::new(text, at, why))?;
        if address.0 >= Addr::USER_END.0 {
            let why = "a kernel address: only a process's own memory can be watched";
            return Err(PlaceError::new(text, at, why));
        }
        Ok(address)
    };
    if part.is_empty() || part != part.trim() {
        let why = "expected a symbol, MODULE!SYMBOL, 0xADDRESS or MODULE@0xADDRESS";
        return Err(PlaceError::new(text, at, why));
    }
    if part.starts_with("0x") || part.starts_with("0X") {
        return Ok(Base::Address(address(at, part)?));
    }
    if part.starts_with(|first: char| first.is_ascii_digit()) {
        let why = "a number is no place: an address begins with 0x";
        return Err(PlaceError::new(text, at, why));
    }
    // Symbol versions have an `@` too (`stdout@GLIBC_2.2.5`): only `@0x` is an address.
    if let Some(split) = part.find("@0x") {
        let address = address(at + split + 1, &part[split + 1..])?;
        return match &part[..split] {
            "" => Err(PlaceError::new(text, at, "expected a module before the @")),
            module => Ok(Base::Link { module: module.into(), address }),
        };
    }
    match part.split_once('!') {
        Some((module, name)) if module.is_empty() || name.is_empty() => {
            Err(PlaceError::new(text, at, "expected MODULE!SYMBOL"))
        }
        Some((module, name)) => Ok(Base::Symbol { module: Some(module.into()), name: name.into() }),
        None => Ok(Base::Symbol { module: None, name: part.into() }),
    }
}

/// Cuts at the last colon, unless it belongs to a `::` or a bracket closes behind it.
fn split_colon(text: &str) -> Option<(&str, &str)> {
    let (rest, behind) = text.rsplit_once(':')?;
    let path = rest.ends_with(':') || behind.contains(['[', ']', '(', ')', '<', '>']);
    (!path).then_some((rest, behind))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        // `from_str_radix` would take a sign.
        Some(hex) if hex.starts_with('+') => None,
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    }
}

fn signed(text: &str) -> Option<i64> {
    let magnitude = |digits| number(digits).and_then(|n| i64::try_from(n).ok());
    match text.split_at_checked(1)? {
        ("+", digits) => magnitude(digits),
        ("-", digits) => magnitude(digits).map(|n| -n),
        _ => None,
    }
}

impl Place {
    /// Whether it is behind a pointer.
    pub fn is_chain(&self) -> bool {
        !self.hops.is_empty()
    }
}

impl PlaceError {
    fn new(text: &str, at: usize, why: &'static str) -> Self {
        Self { text: text.into(), at, why }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)?;
        if let Some(len) = self.len {
            write!(f, ":{len}")?;
        }
        match self.access {
            Access::Write => Ok(()),
            Access::ReadWrite => f.write_str(":rw"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = |f: &mut fmt::Formatter<'_>, offset: i64| match offset {
            0 => Ok(()),
            offset => write!(f, "{offset:+}"),
        };
        self.hops.iter().try_for_each(|_| f.write_str("["))?;
        self.base.fmt(f)?;
        offset(f, self.offset)?;
        for hop in &self.hops {
            f.write_str("]")?;
            offset(f, *hop)?;
        }
        Ok(())
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Symbol { module: Some(module), name } => write!(f, "{module}!{name}"),
            Self::Symbol { module: None, name } => f.write_str(name),
            Self::Link { module, address } => write!(f, "{module}@{address}"),
        }
    }
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.text.get(..self.at).map_or(0, |before| before.chars().count());
        write!(f, "{}\n  {}\n  {:column$}^", self.why, self.text, "")
    }
}

impl std::error::Error for PlaceError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn symbol(name: &str) -> Base {
        Base::Symbol { module: None, name: name.into() }
    }

    fn check(text: &str, base: Base, offset: i64, hops: &[i64], len: Option<u64>, access: Access) {
        let what: What = text.parse().unwrap_or_else(|e| panic!("{e}"));
        let place = Place { base, offset, hops: hops.to_vec() };
        assert_eq!(what, What { place, len, access }, "{text}");
    }

    #[test]
    fn whats() {
        use Access::{ReadWrite, Write};
        let module = |m: &str, n: &str| Base::Symbol { module: Some(m.into()), name: n.into() };
        let link = |m: &str, a| Base::Link { module: m.into(), address: Addr(a) };
        check("counter", symbol("counter"), 0, &[], None, Write);
        check("counter:4", symbol("counter"), 0, &[], Some(4), Write);
        check("counter:rw", symbol("counter"), 0, &[], None, ReadWrite);
        check("counter:0x10:w", symbol("counter"), 0, &[], Some(16), Write);
        check("my::ledger::TOTAL:8:rw", symbol("my::ledger::TOTAL"), 0, &[], Some(8), ReadWrite);
        check("a::w", symbol("a::w"), 0, &[], None, Write);
        check("a::b(int, c::d)", symbol("a::b(int, c::d)"), 0, &[], None, Write);
        check("<a::B as c::D>::E:2", symbol("<a::B as c::D>::E"), 0, &[], Some(2), Write);
        check("x+8:4", symbol("x"), 8, &[], Some(4), Write);
        check("x-0x10", symbol("x"), -16, &[], None, Write);
        check("operator+", symbol("operator+"), 0, &[], None, Write);
        check("libc.so.6!environ", module("libc.so.6", "environ"), 0, &[], None, Write);
        check("libstdc++.so.6!x", module("libstdc++.so.6", "x"), 0, &[], None, Write);
        check("0x7ffe1000:8", Base::Address(Addr(0x7ffe_1000)), 0, &[], Some(8), Write);
        check("libx.so@0x4010+4", link("libx.so", 0x4010), 4, &[], None, Write);
        check("stdout@GLIBC_2.2.5", symbol("stdout@GLIBC_2.2.5"), 0, &[], None, Write);
        check("[head]", symbol("head"), 0, &[0], None, Write);
        check("[head+8]+0x18:4:rw", symbol("head"), 8, &[24], Some(4), ReadWrite);
        check("[[0x1000]+8]-4", Base::Address(Addr(0x1000)), 0, &[8, -4], None, Write);
    }

    fn refuse(text: &str, at: usize, why: &str) {
        let error = text.parse::<What>().expect_err(text);
        assert!(error.why.contains(why), "{text}: {error}");
        assert_eq!(error.at, at, "{text}");
        assert!(error.to_string().ends_with('^'));
    }

    #[test]
    fn what_is_no_place() {
        refuse("", 0, "expected a symbol");
        refuse("x:r", 2, "no watch for reads alone");
        refuse("x:0", 2, "1 to 32");
        refuse("x:33", 2, "1 to 32");
        refuse("x:q", 2, "expected a length");
        refuse("x:", 2, "expected a length");
        refuse("x:rw:8", 2, "the access behind it");
        refuse("a::x:4:8", 5, "the length comes once");
        refuse("[x", 0, "not closed");
        refuse("[x]y", 3, "expected an offset");
        refuse("[[[[x]]]]", 3, "at most three");
        refuse("[]", 1, "expected a symbol");
        refuse("0xzz", 0, "expected an address");
        refuse("0xffffffff81000000:8", 0, "kernel address");
        refuse("123", 0, "begins with 0x");
        refuse("!x", 0, "MODULE!SYMBOL");
        refuse("lib!", 0, "MODULE!SYMBOL");
        refuse("@0x10", 0, "module before");
        refuse("lib@0x10000000000000000", 4, "expected an address");
    }

    #[test]
    fn conditions() {
        let bound: Bound = "[table+8]:4>=16".parse().expect("a bound");
        let place = Place { base: symbol("table"), offset: 8, hops: vec![0] };
        assert_eq!(bound, Bound { place, len: Some(4), least: 16 });
        let guard: Guard = "magic==0xfeed".parse().expect("a guard");
        let place = Place { base: symbol("magic"), offset: 0, hops: vec![] };
        assert_eq!(guard, Guard { place, len: None, value: 0xfeed });
        assert!("x:9>=1".parse::<Bound>().is_err());
        assert!("x>=".parse::<Bound>().is_err());
        assert!("x".parse::<Guard>().is_err());
    }

    #[test]
    fn the_caret_is_under_the_fault() {
        let error = "größe:99".parse::<What>().expect_err("too long");
        assert!(error.to_string().ends_with("\n  größe:99\n        ^"), "{error}");
    }

    fn places() -> impl Strategy<Value = Place> {
        let name = "[a-zA-Z_][a-zA-Z0-9_]{0,8}(::[a-z][a-z0-9]{0,4}){0,2}";
        let module = "[a-z]{1,6}\\.so(\\.[0-9])?";
        let base = prop_oneof![
            (0..Addr::USER_END.0).prop_map(|a| Base::Address(Addr(a))),
            (prop::option::of(module), name)
                .prop_map(|(module, name)| Base::Symbol { module, name }),
            (module, 0..Addr::USER_END.0)
                .prop_map(|(module, a)| Base::Link { module, address: Addr(a) }),
        ];
        (base, any::<i32>(), prop::collection::vec(any::<i32>(), 0..=MOST_HOPS)).prop_map(
            |(base, offset, hops)| Place {
                base,
                offset: offset.into(),
                hops: hops.into_iter().map(Into::into).collect(),
            },
        )
    }

    proptest! {
        #[test]
        fn text_goes_both_ways(
            place in places(),
            len in prop::option::of(1..=MOST_BYTES),
            reads in any::<bool>(),
        ) {
            let access = if reads { Access::ReadWrite } else { Access::Write };
            let what = What { place, len, access };
            prop_assert_eq!(what.to_string().parse::<What>(), Ok(what));
        }

        #[test]
        fn no_text_is_too_odd(text in "\\PC{0,40}|[\\[\\]:+x0-9@!a-]{0,40}") {
            if let Err(error) = text.parse::<What>() {
                prop_assert!(error.at <= text.len());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
