//! The process to watch, before anything is armed.

use crate::error::{Error, Operation};
use crate::identity::Pinned;
use hairspring_model::{Addr, Pid};
use hairspring_sys::held::{HeldChild, HoldError};
use std::fs;
use std::io::Read;
use std::process::{Child, Command};

/// A process that can be watched: 64-bit, pinned by descriptor.
#[derive(Debug)]
pub struct Target {
    pub(crate) pinned: Pinned,
    pub(crate) held: Option<HeldChild>,
}

impl Target {
    /// A process that runs already. It is not touched.
    ///
    /// # Errors
    /// [`Error::is_no_such_process`]; or a process that runs 32-bit code.
    pub fn attach(pid: Pid) -> Result<Self, Error> {
        let pinned = Pinned::new(pid)?;
        refuse_32_bit(pid)?;
        Ok(Self { pinned, held: None })
    }

    /// A command of our own, held before its first instruction until it is armed.
    ///
    /// # Errors
    /// Where it can't be started.
    pub fn launch(command: &mut Command) -> Result<Self, Error> {
        let name = command.get_program().to_string_lossy().into_owned();
        let held = HeldChild::spawn(command).map_err(|e| not_held(&name, e))?;
        let pinned = Pinned::new(held.pid())?;
        refuse_32_bit(held.pid())?;
        Ok(Self { pinned, held: Some(held) })
    }

    /// The process.
    pub fn pid(&self) -> Pid {
        self.pinned.identity().pid
    }

    /// Lets a held command's loader map the libraries that it is linked with; the command's own
    /// code has not run then. Nothing is done to a process that runs.
    ///
    /// # Errors
    /// Where the loader ends the process.
    pub fn load_libraries(&mut self) -> Result<(), Error> {
        let pid = self.pid();
        let Some(held) = &mut self.held else { return Ok(()) };
        let name = format!("process {pid}");
        let auxv = fs::read(format!("/proc/{pid}/auxv"));
        let auxv = auxv.map_err(|e| Error::system(Operation::Launch(name.clone()), e))?;
        let Some(entry) = entry_point(&auxv) else {
            return Err(Error::fact(Operation::Launch(name), "its entry point is not known", ""));
        };
        held.run_to(entry).map_err(|e| not_held(&name, e))
    }
}

/// Lets a held command go.
pub(crate) fn release(held: Option<HeldChild>, pid: Pid) -> Result<Option<Child>, Error> {
    let child = held.map(HeldChild::release).transpose();
    child.map_err(|e| not_held(&format!("process {pid}"), e))
}

fn not_held(name: &str, error: HoldError) -> Error {
    let operation = Operation::Launch(name.into());
    match error {
        HoldError::Call(call, source) if source.kind() == std::io::ErrorKind::NotFound => {
            let remedy = "the command was not found: give its path, or add its folder to PATH";
            Error::fact(operation, format!("{call}: {source}"), remedy)
        }
        HoldError::Call(call, source) => Error::fact(operation, format!("{call}: {source}"), ""),
        HoldError::Died => {
            let remedy = "run it without hairspring to see why (a missing library, say)";
            Error::fact(operation, "it ended before its own code ran", remedy)
        }
    }
}

/// The class byte of an ELF file (elf(5), `EI_CLASS`).
fn refuse_32_bit(pid: Pid) -> Result<(), Error> {
    const CLASS_32: u8 = 1;
    let mut head = [0; 5];
    let file = fs::File::open(format!("/proc/{pid}/exe"));
    // Where we may not look, arming will say so with the remedy.
    if file.and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == *b"\x7fELF\x01" {
        debug_assert_eq!(head[4], CLASS_32);
        let fact = "it is a 32-bit program, whose registers hairspring does not decode";
        let remedy = "watch a 64-bit build of it, or use gdb";
        return Err(Error::fact(Operation::FindProcess(pid), fact, remedy));
    }
    Ok(())
}

/// `AT_ENTRY` of an auxiliary vector (getauxval(3)).
fn entry_point(auxv: &[u8]) -> Option<Addr> {
    const AT_ENTRY: u64 = 9;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let mut pairs = auxv.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..])));
    pairs.find(|(key, _)| *key == AT_ENTRY).map(|(_, entry)| Addr(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points() {
        let pair = |key: u64, value: u64| [key.to_le_bytes(), value.to_le_bytes()].concat();
        let auxv = [pair(3, 7), pair(9, 0x40_1000), pair(0, 0)].concat();
        assert_eq!(entry_point(&auxv), Some(Addr(0x40_1000)));
        assert_eq!(entry_point(&auxv[..16]), None);
        assert_eq!(entry_point(&auxv[..31]), None);
    }

    #[test]
    fn a_command_can_be_taken_to_its_entry_and_let_go() {
        let mut target = Target::launch(Command::new("sh").args(["-c", "exit 3"])).expect("starts");
        target.load_libraries().expect("the loader runs");
        let maps = fs::read_to_string(format!("/proc/{}/maps", target.pid())).expect("alive");
        assert!(maps.contains("libc"), "{maps}");
        let mut child =
            release(target.held.take(), target.pid()).expect("let go").expect("it was held");
        assert_eq!(child.wait().expect("reaped").code(), Some(3));
    }

    #[test]
    fn what_is_not_there_says_so() {
        let error = Target::launch(&mut Command::new("/nonexistent")).expect_err("no such file");
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("PATH")), "{error}");
        assert!(Target::attach(Pid(u32::MAX)).expect_err("nobody").is_no_such_process());
    }
}
