//! Damaged ELF files: every lookup in them is an answer, within bounds. The short, deterministic
//! form of the fuzz target `elf`.

use hairspring_symbols::{Image, Modules};
use std::os::unix::fs::FileExt;
use std::process::Command;

/// Numbers that only look random (xorshift64; Marsaglia, Journal of Statistical Software 8/14).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).expect("fewer than sides")
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        const NUMBERS: [u64; 8] =
            [0, 1, 0x7f, 0xffff, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, u64::MAX];
        if self.roll(8) == 0 {
            bytes.truncate(self.roll(bytes.len()));
        }
        for _ in 0..=self.roll(12) {
            // Headers are small, but what they say decides: half of the damage is done there.
            let limit = if self.roll(2) == 0 { 1024 } else { usize::MAX };
            let (len, width) = (bytes.len().min(limit), 1 << self.roll(4));
            if len < 8 {
                return;
            }
            let at = self.roll(len - width + 1);
            let number = match self.roll(3) {
                0 => NUMBERS[self.roll(NUMBERS.len())],
                1 => self.roll(bytes.len()) as u64,
                _ => self.roll(usize::MAX) as u64,
            };
            bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
        }
    }
}

/// Looks up what can be looked up, and says how much was found.
fn look(bytes: &[u8], name: &str) -> usize {
    let Ok(image) = Image::from_bytes(bytes.to_vec()) else { return 0 };
    assert!(image.build_id().is_none_or(|id| id.len() <= 64));
    assert!(image.soname().is_none_or(|name| name.len() <= 3 * 256));
    assert!(image.symbol_count().unwrap_or(0) <= bytes.len() / 24);
    let named = image.named(name).unwrap_or_default();
    let mut found = named.len();
    let places = named.iter().map(|symbol| symbol.addr).take(4);
    for addr in places.chain([0, 1, 0x1000, 0x1010, 0x40_1000, u64::MAX]) {
        found += usize::from(image.function_at(addr).is_some());
        found += usize::from(image.data_at(addr).is_some());
        if let Some((start, len)) = image.function_range(addr) {
            assert!(addr.wrapping_sub(start) < len);
            found += 1;
        }
        assert!(image.code(addr, u64::MAX).is_none_or(|code| code.len() <= bytes.len()));
        let frames = image.frames_at(addr);
        assert!(frames.len() <= 256);
        found += frames.len();
    }
    found
}

#[track_caller]
fn check(bytes: &[u8], name: &str, rounds: u64) {
    let whole = look(bytes, name);
    assert!(whole > 3, "{name} is in the undamaged file: {whole}");
    let mut less = 0;
    for seed in 1..=rounds {
        let mut damaged = bytes.to_vec();
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).damage(&mut damaged);
        less += u64::from(look(&damaged, name) != whole);
    }
    assert!(less > rounds / 10, "most damage has effects: {less} of {rounds}");
}

#[test]
fn a_damaged_vdso() {
    let text = std::fs::read("/proc/self/maps").expect("our own map");
    let modules = Modules::parse(&text).expect("well-formed");
    let Some(vdso) = modules.iter().find(|module| module.path().is_none()) else {
        eprintln!("SKIPPED: this kernel has no vdso");
        return;
    };
    let span = vdso.mappings()[0].span;
    let mut bytes = vec![0; usize::try_from(span.len()).expect("some pages")];
    let memory = std::fs::File::open("/proc/self/mem").expect("our own memory");
    memory.read_exact_at(&mut bytes, span.start().0).expect("mapped");
    check(&bytes, "__vdso_clock_gettime", 3000);
}

#[test]
fn a_damaged_program() {
    let source = "static int calls;\n\
        static inline __attribute__((always_inline)) int more(int by) { return calls += by; }\n\
        int work(int by) { return more(by) + 1; }\n\
        void _start(void) { work(2); for (;;) {} }\n";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("work.c");
    std::fs::write(&file, source).expect("written");
    let program = directory.path().join("work");
    for options in [&["-g", "-O1"][..], &["-g", "-gz", "-O1"], &["-gdwarf-4", "-O1", "-no-pie"]] {
        let mut gcc = Command::new("gcc");
        gcc.args(options).arg("-nostdlib").arg("-o").arg(&program).arg(&file);
        if !gcc.status().is_ok_and(|status| status.success()) {
            let required = std::env::var("HAIRSPRING_REQUIRE").unwrap_or_default();
            assert!(!required.split([',', ' ']).any(|word| word == "cc"), "there is no gcc");
            eprintln!("SKIPPED: there is no gcc");
            return;
        }
        check(&std::fs::read(&program).expect("compiled"), "work", 2000);
    }
}
