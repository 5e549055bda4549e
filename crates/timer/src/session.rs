//! The loop that owns a guest, its clocks and its timers.
//!
//! The order in which a stop must be treated is this file's, not its users': first the clock is
//! disarmed and read, then the timer takes note, then the tool is called, and the timer's order is
//! carried out exactly when the thread is resumed. A tool can't resume a thread by itself.

use crate::plan::{Cause, Order, Plan, Verdict};
use crate::tool::{Disposition, Subscriptions, Syscall, Thread, Tool};
use crate::{Clock, Engine, Error};
use hairspring_model::{Addr, Ticks, Tid};
use hairspring_trace::{Ended, Guest, Held, Instruction, Next, StepCause, Stop};
use std::collections::BTreeMap;

/// The trap flag of RFLAGS (Intel SDM vol. 1, 3.4.3).
const TRAP_FLAG: u64 = 1 << 8;

/// A guest with a clock and a timer for each of its threads.
#[derive(Debug)]
pub struct Session {
    guest: Guest,
    engine: Box<dyn Engine>,
    threads: BTreeMap<Tid, Timed>,
}

/// A thread with its clock and timer.
#[derive(Debug)]
struct Timed {
    plan: Plan,
    clock: Box<dyn Clock>,
    armed: bool,
    /// What a single step is about to run.
    next: Instruction,
    /// A system-call instruction is being run as a step.
    in_syscall_step: bool,
}

impl Session {
    /// A session for a guest none of whose stops has been waited for.
    pub fn new(guest: Guest, engine: Box<dyn Engine>) -> Self {
        Self { guest, engine, threads: BTreeMap::new() }
    }

    /// The guest.
    pub fn guest(&self) -> &Guest {
        &self.guest
    }

    /// The guest, to change its policy or take its pipes.
    pub fn guest_mut(&mut self) -> &mut Guest {
        &mut self.guest
    }

    /// The engine.
    pub fn engine(&self) -> &dyn Engine {
        self.engine.as_ref()
    }

    /// Runs the guest until its last thread has ended or the tool ends the session.
    ///
    /// # Errors
    /// What the tool returns, and what fails on the guest, but for threads that are killed.
    pub fn run(&mut self, tool: &mut dyn Tool) -> Result<(), Error> {
        let sees = tool.subscriptions();
        while let Some(stop) = self.guest.wait()? {
            match self.treat(stop, tool, sees) {
                Ok(false) => {}
                Ok(true) => return Ok(()),
                Err(error) if error.is_dead() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether the session is over.
    fn treat(
        &mut self,
        stop: Stop,
        tool: &mut dyn Tool,
        sees: Subscriptions,
    ) -> Result<bool, Error> {
        if let Stop::Ended(Ended { tid, pid, end }) = stop {
            let ticks = match self.threads.remove(&tid) {
                // A counter outlives its thread.
                Some(timed) => timed.clock.now().unwrap_or(Ticks::ZERO),
                None => Ticks::ZERO,
            };
            tool.on_exit(tid, pid, ticks, end)?;
            return Ok(false);
        }
        let tid = stop.tid();
        let new = !self.threads.contains_key(&tid);
        if new {
            self.threads.insert(tid, Timed::start(self.engine.as_mut(), tid)?);
        }
        if let Stop::Exec(thread) = &stop {
            self.exec(tid, thread.kind().former)?;
        }
        let Some(timed) = self.threads.get_mut(&tid) else { return Ok(false) };
        let over = timed.observe(&stop, new, tool, sees)?;
        if over.ends {
            // Left stopped: the guest's policy says what becomes of it.
            return Ok(true);
        }
        timed.resume(stop, over.suppress, sees)?;
        Ok(false)
    }

    /// The thread that execs takes its clock along, and the leader's id.
    fn exec(&mut self, tid: Tid, former: Tid) -> Result<(), Error> {
        if former != tid
            && let Some(timed) = self.threads.remove(&former)
        {
            self.threads.insert(tid, timed);
        }
        if let Some(timed) = self.threads.get_mut(&tid) {
            timed.in_syscall_step = false;
            timed.clock.exec(tid)?;
        }
        Ok(())
    }
}

/// What was decided at a stop.
struct Decision {
    ends: bool,
    suppress: bool,
}

impl Timed {
    fn start(engine: &mut dyn Engine, tid: Tid) -> Result<Self, Error> {
        Ok(Self {
            plan: Plan::new(engine.arrival()),
            clock: engine.start(tid)?,
            armed: false,
            next: Instruction::Other,
            in_syscall_step: false,
        })
    }

    /// Clock first, then the timer, then the tool.
    fn observe(
        &mut self,
        stop: &Stop,
        new: bool,
        tool: &mut dyn Tool,
        sees: Subscriptions,
    ) -> Result<Decision, Error> {
        let mut decision = Decision { ends: false, suppress: false };
        let Some(held) = stop.held() else { return Ok(decision) };
        if self.armed {
            self.armed = false;
            self.clock.disarm()?;
        }
        let cause = self.cause(stop, held, sees)?;
        decision.suppress = cause == Cause::Interrupt;
        let now = self.clock.now()?;
        let noted = self.plan.stopped(now, cause);
        let mut verdict = noted.map_err(|e| Error::backwards(held.tid(), e))?;
        // The way out of a stepped system call is a step, and then what the tool sees.
        let seen_too = matches!(stop, Stop::SyscallExit(_)) && sees.syscalls;
        if cause == Cause::Step && verdict == Verdict::Nothing && seen_too {
            let noted = self.plan.stopped(now, Cause::Observed);
            verdict = noted.map_err(|e| Error::backwards(held.tid(), e))?;
        }
        let Self { plan, clock, .. } = self;
        let mut thread = Thread { held, plan, clock: clock.as_ref(), stop: &mut decision.ends };
        if let Verdict::Fired(fired) = verdict {
            tool.on_timer(&mut thread, fired)?;
        }
        if new {
            tool.on_start(&mut thread)?;
        }
        match stop {
            Stop::SyscallEntry(entry) if sees.syscalls => {
                let &hairspring_trace::SyscallEntry { number, arguments } = entry.kind();
                tool.on_syscall(&mut thread, Syscall::Entry { number, arguments })?;
            }
            Stop::SyscallExit(exit) if sees.syscalls => {
                tool.on_syscall(&mut thread, Syscall::Exit(exit.kind().value))?;
            }
            Stop::Signal(signal) if sees.signals && cause != Cause::Interrupt => {
                let disposition = tool.on_signal(&mut thread, &signal.kind().info)?;
                decision.suppress = disposition == Disposition::Suppress;
            }
            Stop::Exec(_) => tool.on_exec(&mut thread)?,
            _ => {}
        }
        Ok(decision)
    }

    /// What the stop is for the timer; tells the clock what has run.
    fn cause(&mut self, stop: &Stop, held: &Held, sees: Subscriptions) -> Result<Cause, Error> {
        let seen = |seen| if seen { Cause::Observed } else { Cause::Unobserved };
        let in_syscall_step = self.in_syscall_step;
        Ok(match stop {
            Stop::Step(step) if step.kind().cause == StepCause::Executed => {
                self.clock.stepped(self.next);
                if self.next == Instruction::PushFlags {
                    hide_trap_flag(held)?;
                }
                Cause::Step
            }
            Stop::Step(_) => Cause::EmptyStep,
            Stop::SyscallExit(_) if in_syscall_step => {
                self.in_syscall_step = false;
                Cause::Step
            }
            Stop::SyscallEntry(_) | Stop::SyscallExit(_) => seen(sees.syscalls),
            Stop::Signal(signal) if self.clock.owns(&signal.kind().info) => Cause::Interrupt,
            Stop::Signal(_) => seen(sees.signals),
            Stop::Exec(_) => Cause::Observed,
            _ => Cause::Unobserved,
        })
    }

    /// Carries out the timer's order by resuming the thread.
    fn resume(&mut self, stop: Stop, suppress: bool, sees: Subscriptions) -> Result<(), Error> {
        let Some(held) = stop.held() else { return Ok(()) };
        let order = self.plan.resume(self.clock.now()?);
        let next = if order == Order::Step || self.clock.needs_steps() {
            self.step(&stop, held)?
        } else {
            match order {
                Order::Arm(ticks) => {
                    self.clock.arm(ticks)?;
                    self.armed = true;
                    self.unblock(held)?;
                    // A handler may block the clock's signal: stop at its first instruction, and a
                    // system call may too.
                    match &stop {
                        Stop::Signal(_) if !suppress => self.step(&stop, held)?,
                        _ => Next::Syscall,
                    }
                }
                Order::Run | Order::Step if sees.syscalls => Next::Syscall,
                Order::Run | Order::Step => Next::Event,
            }
        };
        if suppress {
            stop.resume_without_signal(next)?;
        } else {
            stop.resume(next)?;
        }
        Ok(())
    }

    /// How to run exactly one instruction. A system call is run between its two stops, so that the
    /// guest's flags are not seen to be traced: the kernel copies them to r11.
    fn step(&mut self, stop: &Stop, held: &Held) -> Result<Next, Error> {
        if held.is_in_syscall() {
            return Ok(Next::Syscall);
        }
        self.next = held.instruction(Addr(held.registers()?.rip))?;
        let delivers = matches!(stop, Stop::Signal(_));
        self.in_syscall_step = self.next == Instruction::SystemCall && !delivers;
        Ok(if self.in_syscall_step { Next::Syscall } else { Next::Step })
    }

    /// The clock's signal must reach the thread; a guest that blocks it would not be stopped.
    fn unblock(&self, held: &Held) -> Result<(), Error> {
        let Some(signal) = self.clock.signal() else { return Ok(()) };
        let mask = held.blocked_signals()?;
        let bit = 1 << (signal - 1);
        if mask & bit != 0 {
            held.block_signals(mask & !bit)?;
        }
        Ok(())
    }
}

/// `pushf` in a step pushes the trap flag, which is ours.
fn hide_trap_flag(held: &Held) -> Result<(), Error> {
    let at = Addr(held.registers()?.rsp);
    let mut word = [0; 2];
    held.read_memory(at, &mut word)?;
    let flags = u64::from(u16::from_le_bytes(word)) & !TRAP_FLAG;
    held.write_memory(at, &flags.to_le_bytes()[..2])?;
    Ok(())
}
