//! From what a person said to addresses of the target.

use crate::conditions::{Condition, Conditions, Holds};
use crate::error::{Error, Operation};
use crate::memory::Memory;
use crate::place::{Base, MOST_BYTES, Place};
use crate::request::Request;
use crate::roles::{self, Wanted};
use crate::route::Route;
use crate::target::Target;
use hairspring_model::{Access, Addr, Span};
use hairspring_symbols::{Query, Symbolizer};
use hairspring_sys::memory;

/// Bytes of a watch whose symbol does not say.
const USUAL_BYTES: u64 = 8;

/// What a request means in this target.
#[derive(Debug)]
pub(crate) struct Resolution {
    pub(crate) watches: Vec<Resolved>,
    pub(crate) conditions: Conditions,
}

/// One watch.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) name: String,
    pub(crate) access: Access,
    /// `None` while its library is not loaded.
    pub(crate) route: Option<Route>,
    place: Place,
    len: Option<u64>,
}

impl Resolved {
    /// What the slots are to be planned for.
    pub(crate) fn wanted(&self, memory: &mut Memory) -> Wanted {
        let now = self.route.as_ref().and_then(|route| route.walk(memory).leaf.ok());
        let len = self.route.as_ref().map(|route| route.len).or(self.len).unwrap_or(USUAL_BYTES);
        let pointers = self.place.hops.len();
        let place = match now {
            Some(span) if pointers == 0 => roles::Place::Fixed(span),
            now => roles::Place::Moving { pointers, len, now },
        };
        Wanted { name: self.name.clone(), access: self.access, place }
    }

    /// Looks for the place again, for a library that was not loaded; `None` while it is not.
    pub(crate) fn find(&self, symbolizer: &mut Symbolizer) -> Option<Route> {
        route(&self.place, self.len, &self.name, symbolizer).ok()
    }
}

/// Finds everything that a request names. A held command is taken to its entry point first where a
/// place is in a library that the loader has still to map.
pub(crate) fn resolve(
    target: &mut Target,
    request: &Request,
    symbolizer: &mut Symbolizer,
) -> Result<Resolution, Error> {
    if request.watches.is_empty() {
        return Err(Error::fact(Operation::Plan, "there are none", "name at least one place"));
    }
    match resolve_now(target, request, symbolizer, false) {
        Err(e) if target.held.is_some() && e.is_about_symbols() => {
            target.load_libraries()?;
            symbolizer
                .refresh()
                .map_err(|e| Error::symbol(Operation::ReadModules(target.pid()), e))?;
            resolve_now(target, request, symbolizer, true)
        }
        other => other,
    }
}

fn resolve_now(
    target: &Target,
    request: &Request,
    symbolizer: &mut Symbolizer,
    loaded: bool,
) -> Result<Resolution, Error> {
    let mut watches = Vec::new();
    for what in &request.watches {
        let name = what.to_string();
        let route = match route(&what.place, what.len, &name, symbolizer) {
            Ok(route) => Some(route),
            // A library that is still to be loaded by dlopen: waited for.
            Err(e) if e.is_module_not_mapped() && (loaded || target.held.is_none()) => None,
            Err(e) => return Err(e),
        };
        if let Some(route) = &route {
            check_mapped(target, &name, route)?;
            check_readable(target, route)?;
        }
        let (place, len, access) = (what.place.clone(), what.len, what.access);
        watches.push(Resolved { name, access, route, place, len });
    }
    let mut conditions = Vec::new();
    for bound in &request.bounds {
        let name = format!("{}>={}", bound.place, bound.least);
        let route = route(&bound.place, bound.len, &name, symbolizer)?;
        conditions.push(number(name, route, Holds::AtLeast(bound.least))?);
    }
    for guard in &request.guards {
        let name = format!("{}=={}", guard.place, guard.value);
        let route = route(&guard.place, guard.len, &name, symbolizer)?;
        conditions.push(number(name, route, Holds::Equal(guard.value))?);
    }
    if !conditions.is_empty() && !request.watches.iter().any(|what| what.place.is_chain()) {
        let fact = "a bound or guard says when a chain is followed, and no watch is a chain";
        let remedy =
            "write the watch as a chain, such as `[POINTER]+8`, or leave the condition out";
        return Err(Error::fact(Operation::Plan, fact, remedy));
    }
    Ok(Resolution { watches, conditions: Conditions(conditions) })
}

fn number(name: String, route: Route, holds: Holds) -> Result<Condition, Error> {
    if route.len > 8 {
        let fact = format!("it has {} bytes, and a number has at most 8", route.len);
        return Err(Error::fact(
            Operation::Resolve(name),
            fact,
            "give a length, such as `PLACE:4`",
        ));
    }
    Ok(Condition { route, holds })
}

fn route(
    place: &Place,
    len: Option<u64>,
    name: &str,
    symbolizer: &mut Symbolizer,
) -> Result<Route, Error> {
    let not_found = |e| Error::symbol(Operation::Resolve(name.into()), e);
    let (base, size) = match &place.base {
        Base::Address(address) => (*address, 0),
        Base::Symbol { module, name: symbol } => {
            let query = Query::Symbol { module: module.clone(), name: symbol.clone() };
            let found = symbolizer.resolve(&query).map_err(not_found)?;
            (found.addr, found.size)
        }
        Base::Link { module, address } => {
            let query = Query::Link { module: module.clone(), addr: address.0 };
            let found = symbolizer.resolve(&query).map_err(not_found)?;
            (found.addr, 0)
        }
    };
    let wraps =
        || Error::fact(Operation::Resolve(name.into()), "the offset leaves the address space", "");
    let base = base.offset(place.offset).ok_or_else(wraps)?;
    // The symbol's size is that of the pointer in a chain, and says nothing behind an offset.
    let own_size = (place.offset == 0 && !place.is_chain()).then_some(size);
    let size = own_size.filter(|size| (1..=MOST_BYTES).contains(size));
    let len = len.or(size).unwrap_or(USUAL_BYTES);
    Ok(Route { base, hops: place.hops.clone(), len })
}

/// Refuses fixed bytes that are not mapped: nothing would ever hit them. Bytes behind a pointer may
/// come to be.
fn check_mapped(target: &Target, name: &str, route: &Route) -> Result<(), Error> {
    let bytes = Span::new(route.base, if route.hops.is_empty() { route.len } else { 8 });
    let operation = || Operation::Resolve(name.into());
    let Some(bytes) = bytes.filter(|bytes| bytes.last().0 < Addr::USER_END.0) else {
        return Err(Error::fact(
            operation(),
            "it is not in the user half of the address space",
            "",
        ));
    };
    let pid = target.pid();
    let maps = std::fs::read(format!("/proc/{pid}/maps"));
    // Where we may not look, arming will say so with the remedy.
    let Ok(maps) = maps else { return Ok(()) };
    let Ok(mappings) = hairspring_symbols::Mapping::parse_all(&maps) else { return Ok(()) };
    let mapped = |at: Addr| mappings.iter().any(|mapping| mapping.span.contains(at));
    if mapped(bytes.start()) && mapped(bytes.last()) {
        return Ok(());
    }
    let fact = format!("{} is not mapped in process {pid}", bytes.start());
    let remedy = "a run-time address changes with every start: use a symbol, or MODULE@0xADDRESS \
                  for an address from the file (`/proc/PID/maps` lists what is mapped)";
    Err(Error::fact(operation(), fact, remedy))
}

/// Refuses chains whose pointers we have no right to read.
fn check_readable(target: &Target, route: &Route) -> Result<(), Error> {
    if route.hops.is_empty() {
        return Ok(());
    }
    let (pid, at) = (target.pid(), route.base);
    match memory::read_array::<8>(pid, at) {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(Error::system(Operation::ReadPointer { pid, at }, e))
        }
        _ => Ok(()),
    }
}
