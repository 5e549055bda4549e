//! `dlopener`: a library that is loaded, used and unloaded while the program runs.
//!
//! Flags: `--library=PATH` (of `libhairspring_late.so`) `--writes=10`. Commands:
//!
//! - `open` loads the library; answer `opened` with `field` and `site`;
//! - `go` makes the library write its own static `LATE_FIELD`; answer `done` with `final`;
//! - `close` unloads it; answer `closed` with `loaded=true|false` (whether it is still mapped);
//! - `all` does all three without a pause; answer `done` with `field`.

use std::ffi::{CStr, CString, c_void};

use hairspring_guests::{Flags, Line, next_command};

struct Library {
    handle: *mut c_void,
    field: *mut u64,
    write: extern "C" fn(u64) -> usize,
}

impl Library {
    fn open(path: &CStr) -> Self {
        // SAFETY: the library has no constructors that do anything.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "dlopen of {path:?} failed");
        let symbol = |name: &CStr| {
            // SAFETY: the handle is open.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            assert!(!address.is_null(), "no symbol {name:?}");
            address
        };
        let write = symbol(c"late_write");
        Self {
            handle,
            field: symbol(c"LATE_FIELD").cast(),
            // SAFETY: the library defines this function with this type.
            write: unsafe {
                std::mem::transmute::<*mut c_void, extern "C" fn(u64) -> usize>(write)
            },
        }
    }

    fn done(&self, writes: u64) -> Line {
        (self.write)(writes);
        // SAFETY: the library is open, so its static is there.
        let value = unsafe { self.field.read_volatile() };
        Line::done(writes, 1).hex("final", value)
    }

    fn close(self) {
        // SAFETY: the handle is open, and nothing of the library is used after this.
        let result = unsafe { libc::dlclose(self.handle) };
        assert_eq!(result, 0, "dlclose");
    }
}

fn main() {
    let mut flags = Flags::from_args();
    let path = flags.get("library", String::new());
    let writes: u64 = flags.get("writes", 10);
    flags.finish();
    let path = CString::new(path).expect("a path has no zero bytes");

    let mut library = None;
    Line::ready().print();
    while let Some(command) = next_command() {
        match (&*command, &library) {
            ("open", None) => {
                let opened = Library::open(&path);
                Line::new("opened")
                    .address("field", opened.field)
                    .hex("site", (opened.write)(0) as u64)
                    .print();
                library = Some(opened);
            }
            ("go", Some(opened)) => opened.done(writes).print(),
            ("close", Some(_)) => {
                if let Some(opened) = library.take() {
                    opened.close();
                }
                let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc is mounted");
                let loaded = maps.contains(&*path.to_string_lossy());
                Line::new("closed").value("loaded", loaded).print();
            }
            ("all", None) => {
                let opened = Library::open(&path);
                let done = opened.done(writes).address("field", opened.field);
                opened.close();
                done.print();
            }
            _ => Line::new("refused").value("command", command).print(),
        }
    }
}
