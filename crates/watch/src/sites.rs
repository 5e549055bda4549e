//! From a hit to the place in the program, each worked out once.

use crate::access::{self, Code, Explained, Written};
use crate::coalesce::{KernelSite, RawAccess};
use crate::event::Accessed;
use crate::kernel_symbols::KernelSymbols;
use crate::site::{Certainty, Frame, Site, SystemCall};
use hairspring_model::{Access, Addr, Pid, Span, Value};
use hairspring_symbols::{FileState, Symbolizer};
use hairspring_sys::memory;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Functions longer than this are decoded from the last boundary that is known in them, if any; a
/// compiler makes none so long.
const LONGEST_FUNCTION: u64 = 1 << 20;

/// The sites of a session.
#[derive(Debug)]
pub(crate) struct Sites {
    pid: Pid,
    symbolizer: Symbolizer,
    kernel: Option<KernelSymbols>,
    code: HashMap<Addr, Code>,
    described: HashMap<Key, Arc<Site>>,
    /// Every site that was ever described, so that the same one is the same `Arc` for ever.
    all: HashSet<Arc<Site>>,
}

/// What tells one site from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    place: access::Place,
    system_call: Option<SystemCall>,
    unknown_at: Option<Addr>,
}

/// A hit with its site.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub(crate) site: Arc<Site>,
    pub(crate) access: Accessed,
    pub(crate) old: Option<Written>,
    pub(crate) new: Option<Written>,
}

impl Sites {
    pub(crate) fn new(pid: Pid, symbolizer: Symbolizer) -> Self {
        let (kernel, code, described, all) = (None, HashMap::new(), HashMap::new(), HashSet::new());
        Self { pid, symbolizer, kernel, code, described, all }
    }

    pub(crate) fn symbolizer(&mut self) -> &mut Symbolizer {
        &mut self.symbolizer
    }

    /// Code was mapped: what is known of addresses may be wrong now.
    pub(crate) fn modules_changed(&mut self) {
        self.symbolizer.maps_changed();
        self.code.clear();
        self.described.clear();
    }

    /// Where an access to the watched bytes was made, and what it did.
    pub(crate) fn locate(
        &mut self,
        access: &RawAccess,
        span: Option<Span>,
        watched: Access,
    ) -> Located {
        if let Some(kernel) = &access.kernel {
            return self.locate_kernel(access.ip, kernel, watched);
        }
        let ip = access.ip;
        if !self.code.contains_key(&ip) {
            let code = self.code_before(ip);
            self.code.insert(ip, code);
        }
        let registers = access.registers.as_ref();
        let top = access.top.map(Addr).or_else(|| self.top_of_stack(access, span?));
        let explained = self.code[&ip].explain(registers, span, watched, top);
        let Explained { place, accessed, old, new } = explained;
        Located { site: self.site(ip, place, None), access: accessed, old, new }
    }

    /// The word at the top of the stack, some time later, if it is being watched.
    fn top_of_stack(&self, access: &RawAccess, span: Span) -> Option<Addr> {
        let top = Span::new(Addr(access.registers?.rsp), 8)?;
        if !top.overlaps(span) {
            return None;
        }
        memory::read_array(self.pid, top.start()).ok().map(u64::from_le_bytes).map(Addr)
    }

    /// An access that the kernel made: the site is the system call instruction, if it was one.
    fn locate_kernel(&mut self, ip: Addr, kernel: &KernelSite, watched: Access) -> Located {
        let symbols = self.kernel.get_or_insert_with(KernelSymbols::read);
        let call = symbols.system_call(&kernel.chain);
        let before = ip.offset(-2).and_then(|at| {
            let code = self.symbolizer.code(at, 2).and_then(|bytes| bytes.try_into().ok());
            code.or_else(|| memory::read_array(self.pid, at).ok())
        });
        let instruction = before.and_then(|bytes| access::system_call_before(ip, bytes));
        let (place, call) = match (instruction, call) {
            (Some(at), SystemCall::Other) => (access::Place::At(at), SystemCall::Unnamed),
            (Some(at), call) => (access::Place::At(at), call),
            (None, call) => (access::Place::Unknown("the kernel made it of its own accord"), call),
        };
        let access = if watched == Access::Write { Accessed::Write } else { Accessed::Unknown };
        Located { site: self.site(ip, place, Some(call)), access, old: None, new: None }
    }

    /// The code from the start of the function up to behind the ip.
    fn code_before(&mut self, ip: Addr) -> Code {
        self.function_code(ip)
            .map_or_else(Code::unknown, |(start, bytes)| Code::new(start, &bytes, ip))
    }

    /// The start of the function that `ip` is in or just behind, and its code from there on.
    fn function_code(&mut self, ip: Addr) -> Option<(Addr, Vec<u8>)> {
        // Behind the last instruction of a function that does not return, ip is in the next one:
        // the byte before it is in the function of the instruction that ends at ip.
        let function = self.symbolizer.function_range(ip.offset(-1)?);
        let function = function.or_else(|| self.symbolizer.function_range(ip))?;
        let start = function.start();
        let len = ip.0.checked_sub(start.0).filter(|len| *len < LONGEST_FUNCTION)?;
        let bytes = self.symbolizer.code(start, len + access::LONGEST)?;
        Some((start, bytes))
    }

    fn site(
        &mut self,
        ip: Addr,
        place: access::Place,
        system_call: Option<SystemCall>,
    ) -> Arc<Site> {
        // The ip of a site that is not known is all that there is to tell it from others; of a known
        // one it may differ, inside and behind a repeated instruction.
        let unknown = matches!(place, access::Place::Unknown(_));
        let key = Key { place, system_call, unknown_at: unknown.then_some(ip) };
        if let Some(site) = self.described.get(&key) {
            return Arc::clone(site);
        }
        let site = self.describe(ip, &key);
        let known = self.all.get(&site).map(Arc::clone);
        let site = known.unwrap_or_else(|| Arc::new(site));
        self.all.insert(Arc::clone(&site));
        self.described.insert(key, Arc::clone(&site));
        site
    }

    fn describe(&mut self, ip: Addr, key: &Key) -> Site {
        let text = |at| self.code.get(&ip).and_then(|code| code.text(at));
        let (address, certainty, instruction) = match key.place {
            access::Place::At(at) => (at, Certainty::Exact, text(at)),
            access::Place::Either(first, second) => {
                (first, Certainty::Ambiguous { candidates: vec![first, second] }, text(first))
            }
            access::Place::CallReturningTo(to) => match self.call_before(to, ip) {
                Some((at, text)) => (at, Certainty::Exact, Some(text)),
                None => (
                    ip,
                    Certainty::Unknown { why: "a call to here, from where is not known" },
                    None,
                ),
            },
            access::Place::Unknown(why) => (ip, Certainty::Unknown { why }, None),
        };
        let instruction =
            instruction.or_else(|| key.system_call.as_ref().map(|_| "syscall".into()));
        let known = self.symbolizer.site(address);
        let frame = |frame: &hairspring_symbols::Frame| Frame {
            function: frame.function.clone(),
            file: frame.file.clone(),
            line: frame.line,
        };
        Site {
            address,
            certainty,
            instruction,
            module: known.module.as_ref().map(|module| module.name.clone()),
            file_state: known.module.as_ref().and_then(|module| match module.state {
                FileState::Mapped | FileState::Kernel => None,
                state => Some(state.to_string()),
            }),
            link_address: known.module.as_ref().and_then(|module| module.link_addr).map(Addr),
            offset: known.offset.unwrap_or(0),
            frames: known.frames.iter().rev().map(frame).collect(),
            function: known.function,
            system_call: key.system_call.clone(),
        }
    }

    /// The call that returns to `to` and goes, as far as can be told, to `target`.
    fn call_before(&mut self, to: Addr, target: Addr) -> Option<(Addr, String)> {
        let (start, bytes) = self.function_code(to)?;
        access::call_before(start, &bytes, to, target)
    }
}

impl Written {
    /// The value of a watch of `len` bytes, if all of it was touched.
    pub(crate) fn whole(&self, len: u64) -> Option<Value> {
        let all = self.offset == 0 && self.bytes().len() as u64 == len;
        if all { Value::new(self.bytes()) } else { None }
    }
}
