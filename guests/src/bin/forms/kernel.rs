//! Writes that are not made by an instruction of the program: by the kernel on its behalf, by the
//! vDSO, and those that no debug register can see.

use std::arch::global_asm;

/// What one execution did to the field's eight bytes.
#[derive(Clone, Copy)]
pub enum Effect {
    /// The kernel copied so many bytes into the field.
    Kernel {
        /// Bytes of the field that were written.
        bytes: u64,
    },
    /// The vDSO stored eight bytes.
    Vdso,
    /// The bytes changed, and the hardware can't know.
    Invisible,
}

/// A write by other means than an instruction of this program.
#[derive(Clone, Copy)]
pub struct Call {
    /// What `--form` selects.
    pub name: &'static str,
    /// What one execution does.
    pub effect: Effect,
    /// Where the field is.
    pub home: Home,
    /// Executes once; returns the field afterwards (0 by the vDSO, where it is not known).
    run: fn(&Place, u64) -> u64,
}

/// What kind of memory holds the field.
#[derive(Clone, Copy)]
pub enum Home {
    /// The program's data.
    Data,
    /// A private anonymous page, which `MADV_DONTNEED` zeroes.
    Anonymous,
    /// A page of shared memory that is mapped twice.
    MappedTwice,
}

/// The field's addresses.
pub struct Place {
    /// The watched address.
    pub field: *mut u64,
    /// The same bytes at another address, where the field is mapped twice.
    pub alias: *mut u64,
}

/// Every form of this kind.
pub static CALLS: &[Call] = &[
    Call { name: "read", effect: Effect::Kernel { bytes: 8 }, home: Home::Data, run: read },
    Call { name: "pread3", effect: Effect::Kernel { bytes: 3 }, home: Home::Data, run: pread3 },
    Call { name: "recvmsg", effect: Effect::Kernel { bytes: 8 }, home: Home::Data, run: recvmsg },
    Call { name: "clock_gettime", effect: Effect::Vdso, home: Home::Data, run: clock },
    Call { name: "madvise", effect: Effect::Invisible, home: Home::Anonymous, run: madvise },
    Call { name: "process_vm_writev", effect: Effect::Invisible, home: Home::Data, run: writev },
    Call { name: "alias", effect: Effect::Invisible, home: Home::MappedTwice, run: alias },
];

impl Call {
    /// Executes once; returns the field afterwards (0 by the vDSO, where it is not known).
    pub fn execute(self, place: &Place, execution: u64) -> u64 {
        (self.run)(place, execution)
    }

    /// The address of the system call instruction, and the one behind it.
    pub fn site(self) -> [usize; 2] {
        match self.effect {
            Effect::Kernel { .. } => form_syscall_site,
            Effect::Vdso | Effect::Invisible => [0, 0],
        }
    }
}

// `syscall` is the only site of all system calls that touch the field.
global_asm!(
    ".pushsection .text.syscall,\"ax\",@progbits",
    ".globl form_syscall",
    ".hidden form_syscall",
    ".type form_syscall, @function",
    "form_syscall:",
    ".cfi_startproc",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "77:",
    "syscall",
    "78:",
    "ret",
    ".cfi_endproc",
    ".size form_syscall, .-form_syscall",
    ".popsection",
    ".pushsection .data.rel.ro.sites,\"aw\",@progbits",
    ".p2align 3",
    ".globl form_syscall_site",
    ".hidden form_syscall_site",
    "form_syscall_site: .quad 77b, 78b",
    ".popsection",
);

unsafe extern "C" {
    fn form_syscall(number: i64, first: usize, second: usize, third: usize, fourth: usize)
    -> isize;
    safe static form_syscall_site: [usize; 2];
}

/// Makes a system call that must return `expected`.
fn call(number: i64, arguments: [usize; 4], expected: isize) {
    let [first, second, third, fourth] = arguments;
    // SAFETY: every caller passes a place of this program that is valid for the call.
    let result = unsafe { form_syscall(number, first, second, third, fourth) };
    assert_eq!(result, expected, "system call {number}");
}

fn check(what: &str, result: libc::c_int) -> libc::c_int {
    assert!(result >= 0, "{what}: {}", std::io::Error::last_os_error());
    result
}

/// Puts `bytes` into a fresh socket pair; returns the end to read from and the end to close.
fn socket_with(bytes: [u8; 8]) -> [libc::c_int; 2] {
    let mut ends = [0; 2];
    // SAFETY: the array has room for the two descriptors.
    check("socketpair", unsafe {
        libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr())
    });
    // SAFETY: the buffer is a local array of eight bytes.
    let sent = unsafe { libc::write(ends[1], bytes.as_ptr().cast(), bytes.len()) };
    assert_eq!(sent, 8, "writing to a socket");
    ends
}

fn close(descriptors: [libc::c_int; 2]) {
    for descriptor in descriptors {
        // SAFETY: the descriptor was opened by this module and is not used again.
        check("close", unsafe { libc::close(descriptor) });
    }
}

fn unsigned(number: libc::c_int) -> usize {
    usize::try_from(number).expect("descriptors and advice are not negative")
}

fn read(place: &Place, execution: u64) -> u64 {
    let ends = socket_with(execution.to_le_bytes());
    call(libc::SYS_read, [unsigned(ends[0]), place.field.addr(), 8, 0], 8);
    close(ends);
    execution
}

fn pread3(place: &Place, _: u64) -> u64 {
    // The first bytes of our own executable are known: 0x7f E L F.
    // SAFETY: the path is a literal that ends in a zero byte.
    let file = check("open", unsafe {
        libc::open(c"/proc/self/exe".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC)
    });
    call(libc::SYS_pread64, [unsigned(file), place.field.addr(), 3, 0], 3);
    // SAFETY: the descriptor was opened above and is not used again.
    check("close", unsafe { libc::close(file) });
    u64::from_le_bytes([0x7f, b'E', b'L', 0, 0, 0, 0, 0])
}

fn recvmsg(place: &Place, execution: u64) -> u64 {
    let ends = socket_with(execution.to_le_bytes());
    let mut parts = libc::iovec { iov_base: place.field.cast(), iov_len: 8 };
    // SAFETY: all bytes zero is a valid, empty header.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut parts;
    header.msg_iovlen = 1;
    call(libc::SYS_recvmsg, [unsigned(ends[0]), (&raw mut header).addr(), 0, 0], 8);
    close(ends);
    execution
}

fn clock(place: &Place, _: u64) -> u64 {
    // SAFETY: sixteen bytes from the field on belong to this program.
    check("clock_gettime", unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, place.field.cast())
    });
    // Nobody knows what time it was.
    0
}

fn madvise(place: &Place, execution: u64) -> u64 {
    // There must be something to zero; the hardware can't see how it comes there either.
    writev(place, execution);
    let page = place.field.addr() & !0xfff;
    call(libc::SYS_madvise, [page, 4096, unsigned(libc::MADV_DONTNEED), 0], 0);
    0
}

fn writev(place: &Place, execution: u64) -> u64 {
    let bytes = execution.to_le_bytes();
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: 8 };
    let remote = libc::iovec { iov_base: place.field.cast(), iov_len: 8 };
    // SAFETY: both vectors describe eight bytes of this program.
    let written = unsafe {
        libc::process_vm_writev(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    assert_eq!(written, 8, "process_vm_writev: {}", std::io::Error::last_os_error());
    execution
}

fn alias(place: &Place, execution: u64) -> u64 {
    // SAFETY: the alias is a mapping of this program with room for eight bytes.
    unsafe { place.alias.write_volatile(execution) };
    execution
}

/// The start of a page that is mapped anew: `file`, or private memory.
fn map(file: Option<libc::c_int>) -> *mut u64 {
    let flags = if file.is_some() {
        libc::MAP_SHARED | libc::MAP_POPULATE
    } else {
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS
    };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, file.unwrap_or(-1), 0) };
    assert_ne!(start, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    start.cast()
}

impl Home {
    /// The addresses of a field at home here; `data` is the one in the program's data.
    pub fn place(self, data: *mut u64) -> Place {
        match self {
            Self::Data => Place { field: data, alias: data },
            Self::Anonymous => {
                let field = map(None).wrapping_add(8);
                Place { field, alias: field }
            }
            Self::MappedTwice => {
                // SAFETY: the name is a literal that ends in a zero byte.
                let file = check("memfd_create", unsafe {
                    libc::memfd_create(c"field".as_ptr(), libc::MFD_CLOEXEC)
                });
                // SAFETY: the descriptor was made above.
                check("ftruncate", unsafe { libc::ftruncate(file, 4096) });
                let [field, alias] = [map(Some(file)), map(Some(file))];
                Place { field: field.wrapping_add(8), alias: alias.wrapping_add(8) }
            }
        }
    }
}
