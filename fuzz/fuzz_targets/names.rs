//! A mangled name of any bytes: shown within bounds. And a place as a user writes it.
#![no_main]

use hairspring_symbols::{Query, demangle};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    assert!(demangle(text).len() <= text.len().max(64 << 10));
    if let Ok(query) = text.parse::<Query>() {
        let again: Query = query.to_string().parse().expect("what it prints is a query");
        assert_eq!(again, query);
    }
});
