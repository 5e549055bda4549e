//! What a user asks for by name, and what is found.

use crate::table::SymbolKind;
use hairspring_model::Addr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A place by name.
///
/// - `SYMBOL` or `MODULE!SYMBOL`. A symbol is written raw, or demangled: Rust with or without the
///   hash, a C++ function with or without its parameters. A module is written as its path, its
///   file name or its soname, with or without the version behind `.so` or all of `.so…`.
/// - `MODULE@0xADDR`: a link-time address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Query {
    /// A symbol, of the given module or of any.
    Symbol {
        /// The module; without it the main executable comes first, then all modules.
        module: Option<String>,
        /// The symbol.
        name: String,
    },
    /// A link-time address of a module.
    Link {
        /// The module.
        module: String,
        /// The address.
        addr: u64,
    },
}

/// Text that is not a [`Query`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a place is SYMBOL, MODULE!SYMBOL or MODULE@0xADDRESS")]
pub struct ParseQueryError;

impl FromStr for Query {
    type Err = ParseQueryError;

    fn from_str(text: &str) -> Result<Self, ParseQueryError> {
        if let Some((module, digits)) = text.rsplit_once("@0x") {
            let Addr(addr) = format!("0x{digits}").parse().map_err(|_| ParseQueryError)?;
            if module.is_empty() {
                return Err(ParseQueryError);
            }
            return Ok(Self::Link { module: module.to_owned(), addr });
        }
        let (module, name) = match text.split_once('!') {
            // C++'s `operator!` and `operator!=` are no modules.
            Some((module, name)) if !module.ends_with("operator") => {
                if module.is_empty() {
                    return Err(ParseQueryError);
                }
                (Some(module.to_owned()), name)
            }
            _ => (None, text),
        };
        if name.is_empty() {
            return Err(ParseQueryError);
        }
        Ok(Self::Symbol { module, name: name.to_owned() })
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symbol { module: Some(module), name } => write!(f, "{module}!{name}"),
            Self::Symbol { module: None, name } => f.write_str(name),
            Self::Link { module, addr } => write!(f, "{module}@{addr:#x}"),
        }
    }
}

/// A place that was found in the process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved {
    /// The run-time address.
    pub addr: Addr,
    /// The address in the module's file.
    pub link_addr: u64,
    /// How many bytes the symbol names; 0 where that is unknown.
    pub size: u64,
    /// The module's name.
    pub module: String,
    /// The module's path; `None` for the vdso.
    pub path: Option<PathBuf>,
    /// The demangled symbol; `None` for a plain link-time address.
    pub symbol: Option<String>,
    /// What it names; `None` for a plain link-time address.
    pub kind: Option<SymbolKind>,
    /// For a local symbol, the source file that the compiler put into the table.
    pub source_file: Option<String>,
    /// For the program's copy of a library's data, the name of that library: the loader makes
    /// everybody use the copy (a copy relocation), so that the library's own address, which
    /// `MODULE@0xADDR` still names, is never touched.
    pub copied_from: Option<String>,
}

impl fmt::Display for Resolved {
    /// `MODULE@0xLINK`, which is a query for exactly this place, and what is known about it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{:#x}", self.module, self.link_addr)?;
        let Some(symbol) = &self.symbol else { return Ok(()) };
        write!(f, " ({symbol}")?;
        if self.size != 0 {
            write!(f, ", {} bytes", self.size)?;
        }
        if let Some(file) = &self.source_file {
            write!(f, ", from {file}")?;
        }
        if let Some(library) = &self.copied_from {
            write!(f, ", the program's copy of what {library} defines")?;
        }
        f.write_str(")")
    }
}

/// Whether `wanted` is a way to write a module with this path and soname.
pub(crate) fn is_module(wanted: &str, path: Option<&Path>, soname: Option<&str>) -> bool {
    let Some(path) = path else {
        return matches!(wanted, "[vdso]" | "vdso") || soname == Some(wanted);
    };
    if path.as_os_str() == wanted {
        return true;
    }
    let file_name = path.file_name().map(|name| name.to_string_lossy());
    [file_name.as_deref(), soname].into_iter().flatten().any(|name| is_name(wanted, name))
}

fn is_name(wanted: &str, name: &str) -> bool {
    if name == wanted {
        return true;
    }
    // `libc.so.6`, `libc-2.31.so`: the stem is what comes before `.so`.
    let Some((stem, version)) = name.split_once(".so") else { return false };
    let is_library = version.is_empty() || version.starts_with('.');
    let Some(rest) = name.strip_prefix(wanted) else { return false };
    is_library
        && !wanted.is_empty()
        && (wanted == stem || (rest.starts_with('.') && wanted.len() > stem.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_goes_both_ways() {
        for (text, module, name) in [
            ("counter", None, "counter"),
            ("libc.so.6!environ", Some("libc.so.6"), "environ"),
            ("/usr/lib/a b!x", Some("/usr/lib/a b"), "x"),
            ("ns::add(int, int)", None, "ns::add(int, int)"),
            ("A::operator!=", None, "A::operator!="),
            ("lib.so!A::operator!", Some("lib.so"), "A::operator!"),
            ("environ@GLIBC_2.2.5", None, "environ@GLIBC_2.2.5"),
        ] {
            let query: Query = text.parse().expect("a query");
            let module = module.map(str::to_owned);
            assert_eq!(query, Query::Symbol { module, name: name.to_owned() });
            assert_eq!(query.to_string(), text);
        }
        let query: Query = "libc@0x1f0".parse().expect("a query");
        assert_eq!(query, Query::Link { module: "libc".to_owned(), addr: 0x1f0 });
        assert_eq!(query.to_string(), "libc@0x1f0");
    }

    #[test]
    fn what_is_not_a_query() {
        for text in ["", "!x", "lib!", "@0x12", "lib@0x", "lib@0xg"] {
            assert_eq!(text.parse::<Query>(), Err(ParseQueryError), "{text}");
        }
    }

    #[test]
    fn how_a_module_is_written() {
        let path = Path::new("/usr/lib/libfoo-2.31.so");
        for (wanted, yes) in [
            ("/usr/lib/libfoo-2.31.so", true),
            ("libfoo-2.31.so", true),
            ("libfoo-2.31", true),
            ("libfoo.so.6", true),
            ("libfoo.so", true),
            ("libfoo", true),
            ("libfoo.s", false),
            ("lib", false),
            ("libfoo.", false),
            ("foo", false),
            ("", false),
        ] {
            assert_eq!(is_module(wanted, Some(path), Some("libfoo.so.6")), yes, "{wanted}");
        }
        assert!(is_module("[vdso]", None, None));
        assert!(!is_module("server", Some(Path::new("/bin/server.socket")), None));
    }

    proptest! {
        #[test]
        fn any_text_is_an_answer(wanted in ".{0,12}", name in ".{0,12}") {
            if let Ok(query) = wanted.parse::<Query>() {
                prop_assert!(!query.to_string().is_empty());
            }
            is_module(&wanted, Some(Path::new(&name)), Some(&name));
        }
    }
}
