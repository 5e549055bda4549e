//! An ELF file of any bytes: every lookup is an answer, within bounds.
#![no_main]

use hairspring_symbols::Image;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(image) = Image::from_bytes(bytes.to_vec()) else { return };
    let _ = (image.build_id(), image.soname(), image.symbol_count());
    let named = image.named("main").unwrap_or_default();
    let _ = image.named("ns::add");
    let places = named.iter().map(|symbol| symbol.addr).take(4);
    for addr in places.chain([0, 1, 0x1000, 0x1139, 0x40_1000, u64::MAX]) {
        let _ = (image.function_at(addr), image.data_at(addr));
        if let Some((start, len)) = image.function_range(addr) {
            assert!(len != 0 && addr.wrapping_sub(start) < len);
        }
        assert!(image.code(addr, u64::MAX).is_none_or(|code| code.len() <= bytes.len()));
        assert!(image.frames_at(addr).len() <= 256);
    }
});
