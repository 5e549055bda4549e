//! From a wait status to what happened: pure.
//!
//! ```text
//!   bits  0..7   7f: stopped      otherwise: ended (waitpid(2))
//!         8..15  the signal; SIGTRAP|80 at a system call (PTRACE_O_TRACESYSGOOD)
//!        16..23  the event of a ptrace event stop, else 0
//! ```

use crate::End;

const SIGTRAP: i32 = 5;
/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU (signal(7)).
const STOPPING: [i32; 4] = [19, 20, 21, 22];

/// What a wait status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The thread is gone.
    Ended(End),
    /// At the entry to or exit from a system call.
    Syscall,
    /// SIGTRAP: a single step, or a signal; the signal's information tells.
    Trap,
    /// About to receive this signal.
    Signal(i32),
    /// Stopped by job control with this signal.
    Group(i32),
    /// Stopped on request, at birth, or because job control let it go on.
    Stopped,
    /// `PTRACE_EVENT_FORK`.
    Fork,
    /// `PTRACE_EVENT_VFORK`.
    Vfork,
    /// `PTRACE_EVENT_CLONE`.
    Clone,
    /// `PTRACE_EVENT_EXEC`.
    Exec,
    /// `PTRACE_EVENT_VFORK_DONE`.
    VforkDone,
    /// `PTRACE_EVENT_EXIT`.
    Exiting,
    /// Something that no option of ours asks for.
    Unknown(i32),
}

impl Change {
    /// Decodes a status of `waitpid(2)`.
    pub fn of(status: i32) -> Self {
        let signal = status >> 8 & 0xff;
        match (status & 0x7f, status >> 16 & 0xff) {
            (0x7f, 0) => match signal {
                SIGTRAP => Self::Trap,
                0x85 => Self::Syscall,
                signal => Self::Signal(signal),
            },
            // The events of linux/ptrace.h.
            (0x7f, 1) => Self::Fork,
            (0x7f, 2) => Self::Vfork,
            (0x7f, 3) => Self::Clone,
            (0x7f, 4) => Self::Exec,
            (0x7f, 5) => Self::VforkDone,
            (0x7f, 6) => Self::Exiting,
            (0x7f, 128) if STOPPING.contains(&signal) => Self::Group(signal),
            (0x7f, 128) => Self::Stopped,
            (0, 0) => Self::Ended(End::Exited(signal as u8)),
            (killer, 0) => Self::Ended(End::Killed { signal: killer, core: status & 0x80 != 0 }),
            _ => Self::Unknown(status),
        }
    }
}

/// Why a single step stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepCause {
    /// One instruction, or one iteration of a string instruction, has run.
    Executed,
    /// The thread has left the kernel; no instruction has run.
    LeftKernel,
    /// The thread is at the first instruction of a signal handler; no instruction has run.
    InHandler,
}

impl StepCause {
    /// Tells the stops of a stepping thread from SIGTRAP signals by `si_code`; `None` for a signal:
    /// the guest's own `int3` (`SI_KERNEL`), its own breakpoints, a `kill`.
    ///
    /// The codes are those of Linux `arch/x86/kernel/traps.c` (`get_si_code`),
    /// `arch/x86/include/asm/ptrace.h` and `kernel/signal.c` (`signal_setup_done`).
    pub const fn of_code(code: i32) -> Option<Self> {
        match code {
            1 => Some(Self::LeftKernel), // TRAP_BRKPT, from user_single_step_report
            2 => Some(Self::Executed),   // TRAP_TRACE
            SIGTRAP => Some(Self::InHandler), // ptrace_notify(SIGTRAP)
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status() {
        for (status, change) in [
            (0x0000, Change::Ended(End::Exited(0))),
            (0xff00, Change::Ended(End::Exited(255))),
            (0x0009, Change::Ended(End::Killed { signal: 9, core: false })),
            (0x008b, Change::Ended(End::Killed { signal: 11, core: true })),
            (0x0022, Change::Ended(End::Killed { signal: 34, core: false })),
            (0x057f, Change::Trap),
            (0x857f, Change::Syscall),
            (0x0b7f, Change::Signal(11)),
            (0x407f, Change::Signal(64)),
            (0x137f, Change::Signal(19)),
            (0x1_057f, Change::Fork),
            (0x2_057f, Change::Vfork),
            (0x3_057f, Change::Clone),
            (0x4_057f, Change::Exec),
            (0x5_057f, Change::VforkDone),
            (0x6_057f, Change::Exiting),
            (0x80_057f, Change::Stopped),
            (0x80_137f, Change::Group(19)),
            (0x80_147f, Change::Group(20)),
            (0x7_057f, Change::Unknown(0x7_057f)),
        ] {
            assert_eq!(Change::of(status), change, "{status:#x}");
        }
    }

    #[test]
    fn a_step_is_told_from_a_signal() {
        for (code, cause) in [
            (1, Some(StepCause::LeftKernel)),
            (2, Some(StepCause::Executed)),
            (5, Some(StepCause::InHandler)),
            (0x80, None), // int3
            (4, None),    // a debug register
            (0, None),    // kill(2)
            (-6, None),   // tgkill(2)
        ] {
            assert_eq!(StepCause::of_code(code), cause, "{code}");
        }
    }
}
