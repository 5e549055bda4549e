//! Names of one process to addresses.

use crate::error::Kind;
use crate::image::{Image, ImageSymbol};
use crate::nearest::nearest;
use crate::query::{Query, Resolved, is_module};
use crate::symbolizer::{LoadedModule, Symbolizer};
use crate::table::{SymbolKind, Table};
use crate::{Error, FileState, Result};
use std::borrow::Cow;

impl Symbolizer {
    /// Finds a place by name. The memory map is read again first, since a library may have come or
    /// gone.
    ///
    /// # Errors
    /// - The module is not mapped, perhaps not yet ([`Error::is_module_not_mapped`]).
    /// - Nothing has the name ([`Error::is_not_found`], with similar names), or several places
    ///   have it ([`Error::is_ambiguous`], with candidates). Names of one place are not ambiguous.
    /// - The name is that of thread-local data ([`Error::is_thread_local`]), or of a number.
    /// - The module's file is not at hand ([`Error::is_file_unusable`]), the process is gone and
    ///   nothing is known of it, or the link-time address is outside of the module.
    pub fn resolve(&mut self, query: &Query) -> Result<Resolved> {
        match self.refresh() {
            Err(error) if self.modules().is_empty() => return Err(error),
            // What was loaded before the process went stays known.
            _ => {}
        }
        match query {
            Query::Link { module, addr } => self.link(module, *addr),
            Query::Symbol { module: Some(module), name } => {
                let modules = self.called(module)?;
                find(name, Some(module), &modules, self.main())
            }
            Query::Symbol { module: None, name } => {
                let main: Vec<_> = self.live().filter(|module| module.is_main()).collect();
                let others: Vec<_> = self.live().filter(|module| !module.is_main()).collect();
                // Not to know the program's own names, and to answer with a library's, is wrong.
                if let Some(module) = main.iter().find(|module| !module.state().is_usable()) {
                    return Err(no_file(module));
                }
                match find(name, None, &main, None) {
                    Err(error) if error.is_not_found() => {
                        match find(name, None, &others, self.main()) {
                            Err(error) if error.is_not_found() => {
                                let all: Vec<_> = main.into_iter().chain(others).collect();
                                Err(not_found(name, None, &all))
                            }
                            found => found,
                        }
                    }
                    found => found,
                }
            }
        }
    }

    /// The modules that count: mapped now, or, if the process is gone, all.
    fn live(&self) -> impl Iterator<Item = &LoadedModule> {
        let counts =
            |module: &&LoadedModule| module.is_mapped() && module.state() != FileState::Data;
        self.modules().iter().filter(counts)
    }

    fn main(&self) -> Option<&LoadedModule> {
        self.live().find(|module| module.is_main())
    }

    fn called(&self, wanted: &str) -> Result<Vec<&LoadedModule>> {
        let is_called = |m: &&LoadedModule| is_module(wanted, m.module().path(), m.soname());
        let found: Vec<_> = self.live().filter(is_called).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let mapped = nearest(wanted, self.live().map(|m| Cow::Owned(m.module().name())));
        Err(Error::new(Kind::ModuleNotMapped { module: wanted.to_owned(), mapped }))
    }

    fn link(&self, wanted: &str, link_addr: u64) -> Result<Resolved> {
        let mut places = Vec::new();
        for module in self.called(wanted)? {
            let image = module.image().ok_or_else(|| no_file(module))?;
            if let Some(place) = resolved(module, link_addr, None) {
                let symbol = image.data_at(link_addr).or_else(|| image.function_at(link_addr));
                let symbol = symbol.filter(|symbol| symbol.addr == link_addr);
                places.push(
                    symbol.and_then(|s| resolved(module, link_addr, Some(s))).unwrap_or(place),
                );
            }
        }
        match places.len() {
            0 => Err(Error::new(Kind::Outside { module: wanted.to_owned(), addr: link_addr })),
            1 => Ok(places.remove(0)),
            _ => {
                let name = format!("{wanted}@{link_addr:#x}");
                Err(Error::new(Kind::Ambiguous { name, candidates: places }))
            }
        }
    }
}

fn no_file(module: &LoadedModule) -> Error {
    Error::new(Kind::NoFile { module: module.module().name(), state: module.state() })
}

fn resolved(
    module: &LoadedModule,
    link_addr: u64,
    symbol: Option<ImageSymbol>,
) -> Option<Resolved> {
    let addr = module.run_time(link_addr)?;
    let (size, kind) = symbol.as_ref().map_or((0, None), |s| (s.size, Some(s.kind)));
    let (symbol, source_file) = symbol.map_or((None, None), |s| (Some(s.name), s.source_file));
    Some(Resolved {
        addr,
        link_addr,
        size,
        module: module.module().name(),
        path: module.module().path().map(Into::into),
        symbol,
        kind,
        source_file,
        copied_from: None,
    })
}

/// The one place in these modules that has the name; of data that the main program holds a copy
/// of, the copy.
fn find(
    name: &str,
    wanted: Option<&str>,
    modules: &[&LoadedModule],
    main: Option<&LoadedModule>,
) -> Result<Resolved> {
    let mut places: Vec<Resolved> = Vec::new();
    let mut refused = None;
    for module in modules {
        let Some(image) = module.image() else {
            if wanted.is_some() {
                return Err(no_file(module));
            }
            continue;
        };
        let found = match image.named(name) {
            Ok(found) => found,
            Err(_) if wanted.is_none() => continue,
            Err(source) => {
                let module = module.module().name();
                return Err(Error::new(Kind::BadTable { module, source }));
            }
        };
        for symbol in found {
            let (name, module_name) = (name.to_owned(), module.module().name());
            match symbol.kind {
                SymbolKind::ThreadLocal => {
                    refused = Some(Kind::ThreadLocal { name, module: module_name });
                }
                SymbolKind::Absolute => {
                    refused.get_or_insert(Kind::Absolute { name, module: module_name });
                }
                _ => {
                    let place = copied(module, &symbol, main)
                        .or_else(|| resolved(module, symbol.addr, Some(symbol)));
                    if let Some(place) = place {
                        add(&mut places, place);
                    }
                }
            }
        }
    }
    match (places.len(), refused) {
        (1, _) => Ok(places.remove(0)),
        (0, Some(refused)) => Err(Error::new(refused)),
        (0, None) => Err(not_found(name, wanted, modules)),
        _ => Err(Error::new(Kind::Ambiguous { name: name.to_owned(), candidates: places })),
    }
}

/// The main program's copy of a library's symbol, where there is one.
fn copied(
    module: &LoadedModule,
    symbol: &ImageSymbol,
    main: Option<&LoadedModule>,
) -> Option<Resolved> {
    let main = main.filter(|_| !module.is_main())?;
    if symbol.kind != SymbolKind::Data || !symbol.exported {
        return None;
    }
    let copy = main.image()?.copy_of(&symbol.raw_name)?;
    let place = resolved(main, copy.addr, Some(copy))?;
    Some(Resolved { copied_from: Some(module.module().name()), ..place })
}

/// Adds a place, or, if it has another name already, what this one knows more about it.
fn add(places: &mut Vec<Resolved>, place: Resolved) {
    match places.iter_mut().find(|known| known.addr == place.addr) {
        Some(known) => {
            known.size = known.size.max(place.size);
            known.source_file = known.source_file.take().or(place.source_file);
        }
        None => places.push(place),
    }
}

fn not_found(name: &str, wanted: Option<&str>, modules: &[&LoadedModule]) -> Error {
    let tables = modules.iter().filter_map(|module| module.image()?.table().ok());
    let is_unsearched =
        |module: &&&LoadedModule| module.image().is_none_or(|image: &Image| image.table().is_err());
    Error::new(Kind::NotFound {
        name: name.to_owned(),
        module: wanted.map(str::to_owned),
        nearest: nearest(name, tables.flat_map(Table::names)),
        unsearched: modules.iter().filter(is_unsearched).map(|m| m.module().name()).collect(),
    })
}
