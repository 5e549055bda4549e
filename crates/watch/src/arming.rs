//! From a target and a request to a session: resolve, plan, arm, prove, let go.

use crate::armament::{Armament, Manner};
use crate::error::{Error, Operation};
use crate::evidence::Evidence;
use crate::identity::Still;
use crate::memory::{Initial, Memory};
use crate::merge::Merge;
use crate::news::News;
use crate::request::Request;
use crate::resolve::{Resolved, resolve};
use crate::roles::{Place, Roles, Wanted};
use crate::session::{Session, Setting, SlotState, Watched};
use crate::sites::Sites;
use crate::target::{Target, release};
use hairspring_model::{Access, Cpu, Pid, Register, Span};
use hairspring_perf::{Inherit, Layout, Probe, RegisterSet, SelfTest};
use hairspring_symbols::Symbolizer;
use hairspring_sys::cpu::monotonic_ns;
use std::process::Child;
use std::time::{Duration, Instant};

/// A session that watches, from now on.
#[derive(Debug)]
pub struct Armed {
    /// The session.
    pub session: Session,
    /// What was armed.
    pub ready: Ready,
    /// The launched command, which runs now; the caller waits for it.
    pub child: Option<Child>,
}

/// What was armed.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The target.
    pub pid: Pid,
    /// When it was ready, `CLOCK_MONOTONIC`, nanoseconds: from then on nothing is missed.
    pub since_ns: u64,
    /// How many threads it has now.
    pub threads: usize,
    /// The watches, by index.
    pub watches: Vec<ReadyWatch>,
    /// How many of the four debug registers of each thread are used.
    pub slots: usize,
    /// How many events are open for it: one a thread, slot and processor, and one a thread and
    /// processor for births and exits.
    pub events: usize,
    /// Whether accesses by the kernel are seen.
    pub kernel_visible: bool,
    /// Bytes of the smallest ring.
    pub ring_bytes: usize,
    /// Whether the memory lock limits made the rings smaller than asked.
    pub ring_limited: bool,
}

/// One armed watch.
#[derive(Clone, Debug)]
pub struct ReadyWatch {
    /// As it was asked for.
    pub name: String,
    /// The bytes; `None` where a chain leads nowhere yet or the library is not loaded.
    pub span: Option<Span>,
    /// The accesses.
    pub access: Access,
    /// How many slots it uses, those that it shares among them.
    pub slots: usize,
    /// How many pointers are followed.
    pub pointers: usize,
    /// Whether it waits for a library to be loaded.
    pub waits: bool,
}

impl Target {
    /// Arms the watches on every thread, and lets a held command go. All or nothing: where an error
    /// is returned, nothing is left armed, and a held command is killed.
    ///
    /// The probe is owed first, since a breakpoint that is accepted may still never fire.
    ///
    /// # Errors
    /// With the watch, the thread, the layer that refused, and the remedy.
    pub fn arm(mut self, request: &Request, probe: Probe) -> Result<Armed, Error> {
        let self_tests = believe(&probe)?;
        let pid = self.pid();
        let modules = |e| Error::symbol(Operation::ReadModules(pid), e);
        let mut symbolizer = Symbolizer::open(pid).map_err(modules)?;
        let resolved = resolve(&mut self, request, &mut symbolizer)?;
        let mut memory = Memory(pid);
        let wanted: Vec<Wanted> = resolved.watches.iter().map(|r| r.wanted(&mut memory)).collect();
        let roles = Roles::new(&wanted).map_err(Error::plan)?;
        let manner = manner(request, &probe);
        let layout = manner.layout;
        let host = probe.host;
        let mut armament = Armament::new(pid, roles.aims, manner, &host)?;
        let fixpoint = armament.open_all(&host)?;
        let known = armament.known().clone();
        let threads = known.len();
        let mut session = Session {
            setting: Setting {
                layout,
                limits: request.limits,
                report: request.report,
                self_tests,
                kernel_visible: probe.kernel,
                found: threads as u64,
                fixpoint,
                host,
            },
            slots: roles
                .of_slots
                .into_iter()
                .map(|role| SlotState::new(role, &roles.chains))
                .collect(),
            watches: wanted.iter().map(Watched::new).collect(),
            chains: roles.chains,
            conditions: resolved.conditions,
            resolved: resolved.watches.clone(),
            news: News::new(pid, known),
            coalescers: armament
                .hits
                .iter()
                .map(|_| crate::coalesce::Coalescer::default())
                .collect(),
            armament,
            pinned: self.pinned,
            sites: Sites::new(pid, symbolizer),
            memory,
            merge: Merge::default(),
            evidence: Evidence::new(request.blind_limit),
            ready_ns: 0,
            reported: 0,
            names_known: false,
            buffer: Vec::new(),
        };
        session.start(&resolved.watches)?;
        let ready = session.ready(&resolved.watches, &wanted, request);
        let child = release(self.held, pid)?;
        Ok(Armed { session, ready, child })
    }
}

impl Session {
    /// Aims the chains, and makes sure that the target is still the same.
    fn start(&mut self, resolved: &[Resolved]) -> Result<(), Error> {
        self.aim_chains(resolved);
        self.await_births()?;
        let pid = self.pid();
        let changed = match self.pinned.still() {
            Still::Same if !self.news.exec => None,
            Still::Gone => Some("it has exited while it was being armed"),
            _ => Some("it has exec'ed another program while it was being armed"),
        };
        if let Some(fact) = changed {
            return Err(Error::fact(Operation::FindProcess(pid), fact, "try again"));
        }
        // Births before this moment are no news, nor are windows before anything was promised.
        (self.news.born, self.news.gone) = (0, 0);
        self.evidence.begin();
        self.merge = Merge::default();
        self.ready_ns = monotonic_ns();
        for watched in &mut self.watches {
            watched.initial = watched.span.and_then(|span| Initial::read(self.memory, span));
        }
        Ok(())
    }

    /// Threads that were in the middle of their birth are looked at before anything is promised:
    /// those that their parents announce within a short time. The others are looked at later.
    fn await_births(&mut self) -> Result<(), Error> {
        const PATIENCE: Duration = Duration::from_millis(150);
        const PAUSE: Duration = Duration::from_millis(1);
        let since = Instant::now();
        loop {
            let seen = self.armament.parents.look(self.pid());
            self.take_news(&seen, u64::MAX)?;
            if self.armament.parents.all_proved() || since.elapsed() >= PATIENCE {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Aims chains and their pointers, and looks again once they are armed.
    fn aim_chains(&mut self, resolved: &[Resolved]) {
        for index in 0..self.chains.len() {
            let watch = self.chains[index].watch;
            let Some(route) = resolved[watch].route.clone() else { continue };
            let mut walk = route.walk(&mut self.memory);
            if let Err(reason) = self.conditions.check(&mut self.memory) {
                walk.leaf = walk.leaf.and(Err(reason));
            }
            self.chains[index].route = Some(route);
            let moves = self.chains[index].start(&walk).moves;
            self.aim(index, &moves);
            self.follow(index, monotonic_ns());
        }
    }

    fn ready(&self, resolved: &[Resolved], wanted: &[Wanted], request: &Request) -> Ready {
        let leaf = |watch: usize| {
            let chain = self.chains.iter().find(|chain| chain.watch == watch);
            self.watches[watch].span.or(chain.and_then(crate::chain::Chain::leaf))
        };
        let watch = |(index, (resolved, wanted)): (usize, (&Resolved, &Wanted))| ReadyWatch {
            name: resolved.name.clone(),
            span: leaf(index),
            access: wanted.access,
            slots: self.slots.iter().filter(|slot| slot.watches.contains(&index)).count(),
            pointers: match wanted.place {
                Place::Fixed(_) => 0,
                Place::Moving { pointers, .. } => pointers,
            },
            waits: resolved.route.is_none(),
        };
        let ring_bytes =
            self.armament.hits.iter().map(hairspring_perf::Ring::size).min().unwrap_or(0);
        Ready {
            pid: self.pid(),
            since_ns: self.ready_ns,
            threads: self.armament.known().len(),
            watches: resolved.iter().zip(wanted).enumerate().map(watch).collect(),
            slots: self.armament.slots(),
            events: self.armament.events(),
            kernel_visible: self.setting.kernel_visible,
            ring_bytes,
            // A ring is a power of two of pages, so up to half of what is asked is rounding.
            ring_limited: ring_bytes <= request.ring_bytes / 2,
        }
    }
}

/// Whether breakpoints fire, by processor, if that can be believed.
fn believe(probe: &Probe) -> Result<Vec<(Cpu, Option<bool>)>, Error> {
    let mut tests = Vec::new();
    for (cpu, test) in &probe.self_tests {
        tests.push((
            *cpu,
            match test {
                SelfTest::Fires => Some(true),
                SelfTest::Silent { .. } => Some(false),
                SelfTest::Untested(_) => None,
            },
        ));
    }
    let silent: Vec<String> =
        tests.iter().filter(|(_, f)| *f == Some(false)).map(|(cpu, _)| cpu.to_string()).collect();
    if !silent.is_empty() {
        let fact = format!(
            "a breakpoint was accepted on CPU {} but did not fire when hairspring wrote to it",
            silent.join(", ")
        );
        let remedy = "this (virtual) machine has no working debug registers: silence would prove \
                      nothing; run where `hairspring doctor` says that breakpoints fire";
        return Err(Error::fact(Operation::SelfTest, fact, remedy));
    }
    if !probe.fires() {
        let first = probe.self_tests.iter().find_map(|(_, test)| match test {
            SelfTest::Untested(e) => Some((e.to_string(), e.refusal(&probe.host).remedy)),
            _ => None,
        });
        let (fact, remedy) = first.unwrap_or(("no processor to try it on".into(), String::new()));
        return Err(Error::fact(Operation::SelfTest, fact, &remedy));
    }
    Ok(tests)
}

/// How everything is opened.
fn manner(request: &Request, probe: &Probe) -> Manner {
    // A copy by the kernel is told from the next one by its destination.
    let interrupt = RegisterSet::of(&[Register::Rdi]);
    let kernel = probe.kernel;
    let reads = request.watches.iter().any(|what| what.access == Access::ReadWrite);
    Manner {
        inherit: if request.children { Inherit::ThreadsAndChildren } else { Inherit::Threads },
        kernel,
        layout: Layout {
            identifier: true,
            ip: true,
            tid: true,
            time: true,
            addr: true,
            cpu: true,
            kernel_chain: kernel,
            user_registers: RegisterSet::GENERAL,
            // A call leaves where it came from at the top of the stack. The kernel reads it for us,
            // which a watch for reads would see.
            user_stack: if reads { 0 } else { 8 },
            interrupt_registers: if kernel && probe.interrupt_registers {
                interrupt
            } else {
                RegisterSet::NONE
            },
        },
        count_lost: probe.counts_lost,
        // Mappings are rare, and sites are worked out anew when one comes.
        mappings: true,
        ring_bytes: request.ring_bytes,
    }
}
