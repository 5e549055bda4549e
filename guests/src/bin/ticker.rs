//! `ticker`: runs instructions of which every one is known, and exits with status 7.
//!
//! Each argument is an operation; together they are assembled into one straight piece of code, so
//! that nothing else runs in between:
//!
//! | operation | instructions | ticks | steps |
//! | --- | --- | --- | --- |
//! | `bN` | `mov ecx, N; call 0` | N | 2N + 3 |
//! | `sN`, `sN:A`, `sN:A:B` | `mov eax, N; mov edi, A; mov esi, B; syscall` | 0 | 4 |
//! | `nN` | N times `nop` | 0 | N |
//! | `c` | `mov eax, 0; cpuid` | 0 | 2 |
//! | `t` | `rdtsc` | 0 | 1 |
//! | `T` | `rdtscp` | 0 | 1 |
//! | `i` | `int3` | 0 | 0 |
//! | `p` | `pushfq; popfq` | 0 | 2 |
//! | `mN` | `mov rdi, buffer; mov rsi, buffer; mov ecx, N; rep movsb` | 0 | 3 + N |
//!
//! At 0, which is `0x1000_0000_0000` in every run, stands `0: dec ecx; jnz 0; ret`: the only place
//! that branches. rbx, rbp, r12 to r15 and rsp are kept; the buffer holds 4,096 bytes.
//!
//! `--block` blocks every signal but SIGTRAP first, `--ignore` ignores SIGSTKFLT, and `--trap` takes SIGTRAP by
//! a handler that does nothing.

fn main() {
    // 0: dec ecx; 2: jnz 0; 4: ret; 5: push rbx
    let mut code: Vec<u8> = vec![0xff, 0xc9, 0x75, 0xfc, 0xc3, 0x53];
    let page = map();
    let buffer = page as u64 + (SIZE - 4096) as u64;
    for argument in std::env::args().skip(1) {
        let (name, rest) = argument.split_at(1);
        let mut numbers =
            rest.split(':').map(|text| text.parse::<u32>().unwrap_or(0).to_le_bytes());
        let mut number = || numbers.next().unwrap_or_default();
        match name {
            "-" => match rest {
                "-block" => block(),
                "-ignore" => ignore(),
                "-trap" => trap(),
                other => panic!("unknown flag {other:?}"),
            },
            "b" => {
                code.push(0xb9);
                code.extend(number());
                let back = -(i32::try_from(code.len()).expect("it is short") + 5);
                code.push(0xe8);
                code.extend(back.to_le_bytes());
            }
            "s" => {
                for opcode in [0xb8, 0xbf, 0xbe] {
                    code.push(opcode);
                    code.extend(number());
                }
                code.extend([0x0f, 0x05]);
            }
            "n" => code.extend(vec![0x90; u32::from_le_bytes(number()) as usize]),
            "c" => code.extend([0xb8, 0, 0, 0, 0, 0x0f, 0xa2]),
            "t" => code.extend([0x0f, 0x31]),
            "T" => code.extend([0x0f, 0x01, 0xf9]),
            "i" => code.push(0xcc),
            "p" => code.extend([0x9c, 0x9d]),
            "m" => {
                for opcode in [0xbf, 0xbe] {
                    code.extend([0x48, opcode]);
                    code.extend(buffer.to_le_bytes());
                }
                code.push(0xb9);
                code.extend(number());
                code.extend([0xf3, 0xa4]);
            }
            other => panic!("unknown operation {other:?}"),
        }
    }
    code.extend([0x5b, 0xc3]); // pop rbx; ret
    assert!(code.len() <= SIZE - 4096, "too many operations");
    // SAFETY: the page is large enough, and nobody else knows it.
    unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), page, code.len()) };
    let entry = page.wrapping_add(5);
    // SAFETY: the code from there on keeps to the C calling convention.
    let run: extern "C" fn() = unsafe { std::mem::transmute(entry) };
    run();
    std::process::exit(7);
}

const SIZE: usize = 4 << 20;

fn map() -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // Far from everything else.
    let at = 0x1000_0000_0000_usize as *mut libc::c_void;
    // SAFETY: a new mapping, which replaces nothing.
    let page = unsafe { libc::mmap(at, SIZE, protection, flags, -1, 0) };
    assert_eq!(page, at, "the address is free");
    page.cast()
}

fn block() {
    // SAFETY: a signal set is plain data.
    let mut set = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours.
    unsafe { libc::sigfillset(&raw mut set) };
    // SAFETY: the set is ours. An `int3` whose signal is blocked would be the end.
    unsafe { libc::sigdelset(&raw mut set, libc::SIGTRAP) };
    // SAFETY: as above.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

fn ignore() {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGSTKFLT, libc::SIG_IGN) };
}

fn trap() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGTRAP, nothing as *const () as libc::sighandler_t) };
}
