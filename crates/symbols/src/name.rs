//! Symbol names as people write them: Rust and C++ demangled, within bounds.
//!
//! Mangled names come from files that nobody vouches for: both grammars can say much in few
//! bytes, so that input, depth and output are all limited, and what exceeds a limit stays mangled.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// A longer name stays as it is.
const MAX_MANGLED: usize = 16 << 10;
const MAX_DEMANGLED: usize = 64 << 10;

/// Demangles a Rust name (without the hash) or a C++ name (with its parameters, without the
/// return type); other names are returned as they are.
pub fn demangle(raw: &str) -> Cow<'_, str> {
    let Some(mangled) = mangled(raw) else { return Cow::Borrowed(raw) };
    if let Some(rust) = rust(mangled) {
        return bounded(format_args!("{rust:#}")).map_or(Cow::Borrowed(raw), Cow::Owned);
    }
    cpp(mangled, false).map_or(Cow::Borrowed(raw), Cow::Owned)
}

/// Whether `wanted` is a way to write the symbol `raw`, which is not the raw name itself: the
/// demangled name, of a Rust symbol with or without the hash, of a C++ function with or without
/// the parameters. Spaces don't matter.
pub(crate) fn is_written(raw: &str, wanted: &str) -> bool {
    let Some(mangled) = mangled(raw) else { return false };
    if let Some(rust) = rust(mangled) {
        return [bounded(format_args!("{rust:#}")), bounded(format_args!("{rust}"))]
            .into_iter()
            .flatten()
            .any(|name| same(&name, wanted));
    }
    [true, false].into_iter().any(|bare| cpp(mangled, bare).is_some_and(|n| same(&n, wanted)))
}

/// The raw name without a version that the linker appended, `name@VERSION` or `name@@VERSION`.
pub(crate) fn without_version(raw: &str) -> &str {
    match raw.find('@') {
        Some(at) if at != 0 => &raw[..at],
        _ => raw,
    }
}

/// A piece that every mangled form of `wanted` contains: its last identifier. `None` where that is
/// not certain.
pub(crate) fn last_identifier(wanted: &str) -> Option<&str> {
    // `operator int` is encoded by letters, and so are some classes of the standard library, of
    // which constructors have the name (Itanium C++ ABI, 5.1.3 and 5.1.10).
    const LETTERS: [&str; 6] =
        ["allocator", "basic_string", "string", "istream", "ostream", "iostream"];
    let name = wanted.trim_start_matches("(anonymous namespace)::");
    let name = &name[..name.find(['(', '<']).unwrap_or(name.len())];
    let last = name.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    let certain = last.is_ascii() && !name.contains("operator") && !LETTERS.contains(&last);
    (!last.is_empty() && certain).then_some(last)
}

fn mangled(raw: &str) -> Option<&str> {
    let raw = without_version(raw);
    let is_mangled = raw.len() <= MAX_MANGLED && (raw.starts_with("_Z") || raw.starts_with("_R"));
    is_mangled.then_some(raw)
}

/// Old Rust names look like C++ ones, but for the hash at the end, which all have.
fn rust(mangled: &str) -> Option<rustc_demangle::Demangle<'_>> {
    let has_hash = || {
        let (_, hash) = mangled.rsplit_once("17h")?;
        let digits = hash.get(..16)?;
        Some(digits.bytes().all(|b| b.is_ascii_hexdigit()) && hash[16..].starts_with('E'))
    };
    (mangled.starts_with("_R") || has_hash() == Some(true))
        .then(|| rustc_demangle::try_demangle(mangled).ok())
        .flatten()
}

fn cpp(mangled: &str, bare: bool) -> Option<String> {
    let symbol = cpp_demangle::BorrowedSymbol::new(mangled.as_bytes()).ok()?;
    let options = cpp_demangle::DemangleOptions::new().no_return_type();
    let options = if bare { options.no_params() } else { options };
    let mut out = Bounded(String::new());
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

fn bounded(text: fmt::Arguments<'_>) -> Option<String> {
    let mut out = Bounded(String::new());
    out.write_fmt(text).ok()?;
    Some(out.0)
}

fn same(a: &str, b: &str) -> bool {
    fn letters(text: &str) -> impl Iterator<Item = u8> {
        text.bytes().filter(|byte| *byte != b' ')
    }
    letters(a).eq(letters(b))
}

/// Text that refuses to become too long.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_DEMANGLED {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_shown_and_what_may_be_written() {
        for (raw, shown, written) in [
            ("plain", "plain", &[][..]),
            (
                "_ZN4core3fmt5write17h0123456789abcdefE",
                "core::fmt::write",
                &["core::fmt::write::h0123456789abcdef"],
            ),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo", &["mycrate::foo"]),
            ("_ZN2ns3addEii", "ns::add(int, int)", &["ns::add", "ns::add(int,int)"]),
            ("_ZN2ns7counterE", "ns::counter", &["ns::counter"]),
            ("_ZN12_GLOBAL__N_11xE", "(anonymous namespace)::x", &["(anonymous namespace)::x"]),
            ("_Z3maxIiET_S0_S0_", "max<int>(int, int)", &["max<int>"]),
            ("_ZNSsC1Ev", "std::string::string()", &["std::string::string"]),
            ("_ZN2ns3addEii@@V1", "ns::add(int, int)", &["ns::add"]),
            ("_Znonsense", "_Znonsense", &[]),
        ] {
            assert_eq!(demangle(raw), shown);
            for wanted in written {
                assert!(is_written(raw, wanted), "{raw} as {wanted}");
            }
            assert!(!is_written(raw, "other"));
        }
    }

    #[test]
    fn the_last_identifier() {
        for (wanted, last) in [
            ("a::b::c", Some("c")),
            ("ns::add(int, int)", Some("add")),
            ("max<int>", Some("max")),
            ("Foo::~Foo", Some("Foo")),
            ("ns::operator+", None),
            ("A::operator int", None),
            ("std::string::string()", None),
            ("(anonymous namespace)::x", Some("x")),
            ("a::{closure#0}", None),
            ("größe", None),
            ("é", None),
            ("", None),
        ] {
            assert_eq!(last_identifier(wanted), last, "{wanted}");
        }
    }

    #[test]
    fn a_name_that_explodes_stays_mangled() {
        // Each template argument repeats all before it: the output doubles with each.
        let mut raw = "_Z1fI1aS_".to_owned();
        for i in 0..36_u32 {
            let digit = char::from_digit(i, 36).expect("a digit").to_ascii_uppercase();
            write!(raw, "1bIS{digit}_S{digit}_E").expect("text");
        }
        raw.push_str("EvT_");
        assert!(demangle(&raw).len() <= MAX_DEMANGLED);
        let long = format!("_Z{}", "1a".repeat(MAX_MANGLED));
        assert_eq!(demangle(&long), long);
    }

    proptest! {
        #[test]
        fn any_text_is_an_answer(tail in "[A-Z0-9a-z_.$@<>:~ é]{0,80}", wanted in ".{0,20}") {
            for prefix in ["_Z", "_ZN", "_R", "_RNv", ""] {
                let raw = format!("{prefix}{tail}");
                prop_assert!(demangle(&raw).len() <= MAX_DEMANGLED);
                is_written(&raw, &wanted);
                without_version(&raw);
            }
            last_identifier(&wanted);
        }
    }
}
