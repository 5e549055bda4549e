//! The text of a memory map of any bytes: an answer, which accounts for every mapping once.
#![no_main]

use hairspring_symbols::{Mapping, Modules};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (Ok(mappings), Ok(modules)) = (Mapping::parse_all(bytes), Modules::parse(bytes)) else {
        assert_eq!(Mapping::parse_all(bytes).is_err(), Modules::parse(bytes).is_err());
        return;
    };
    let of_files: usize = modules.iter().map(|module| module.mappings().len()).sum();
    assert_eq!(of_files + modules.anonymous().len(), mappings.len());
    for mapping in &mappings {
        let _ = modules.at(mapping.span.start());
    }
});
