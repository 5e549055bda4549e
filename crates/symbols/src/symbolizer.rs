//! Addresses of one process to sites, functions, code and data.

use crate::file_state::{self, FileState};
use crate::image::Image;
use crate::modules::{Module, Modules};
use crate::process::Process;
use crate::regions::{Region, Regions};
use crate::site::{Site, SiteModule};
use crate::{Error, Result};
use hairspring_model::{Addr, Pid, Span};
use std::collections::HashSet;

/// Addresses and names of one live process, which is never stopped.
///
/// [`open`](Self::open) opens the file of every loaded module at once, which is cheap, and reads
/// symbols of a module when an address of it is first asked for. So lookups go on after a file is
/// deleted, a library unmapped, or the process gone: what was mapped at an address last, counts.
///
/// An address where no mapping is known makes the memory map be read again, once a page.
/// Code that takes the place of other code is noticed only when told: the caller owes a
/// [`maps_changed`](Self::maps_changed) when the kernel reports a new mapping.
#[derive(Debug)]
pub struct Symbolizer {
    process: Process,
    text: Vec<u8>,
    modules: Vec<LoadedModule>,
    regions: Regions,
    /// Pages that were in no mapping when the map was last read.
    nowhere: HashSet<u64>,
    stale: bool,
}

/// A module, its file and where it is loaded.
#[derive(Debug)]
pub struct LoadedModule {
    module: Module,
    state: FileState,
    image: Option<Image>,
    soname: Option<String>,
    bias: u64,
    mapped: bool,
    main: bool,
}

/// A piece of named data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataSymbol {
    /// The demangled name.
    pub name: String,
    /// How far into the data the address is.
    pub offset: u64,
    /// The size of the data in bytes; 0 where it is unknown.
    pub size: u64,
    /// The module's name.
    pub module: String,
}

/// More pages than a program jumps to without mapping a file there; then forget and begin again.
const MAX_NOWHERE: usize = 1 << 16;
const PAGE_BITS: u32 = 12;

impl LoadedModule {
    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Whether the module's own file is at hand.
    pub fn state(&self) -> FileState {
        self.state
    }

    /// The module's file, if it is at hand.
    pub fn image(&self) -> Option<&Image> {
        self.image.as_ref()
    }

    /// The name that the library was linked to be loaded by.
    pub fn soname(&self) -> Option<&str> {
        self.soname.as_deref()
    }

    /// What to add (wrapping) to a link-time address to get the run-time address; `None` where the
    /// file is not at hand.
    pub fn bias(&self) -> Option<u64> {
        self.image.as_ref().map(|_| self.bias)
    }

    /// Whether it was mapped when the memory map was last read.
    pub fn is_mapped(&self) -> bool {
        self.mapped
    }

    /// Whether it is the program that was executed.
    pub fn is_main(&self) -> bool {
        self.main
    }

    /// The run-time address of a link-time one, if it is in a segment of the file.
    pub fn run_time(&self, link_addr: u64) -> Option<Addr> {
        self.image.as_ref()?.layout().segment_at(link_addr)?;
        Some(Addr(link_addr.wrapping_add(self.bias)))
    }

    /// The link-time address of a run-time one.
    fn link_time(&self, addr: Addr) -> u64 {
        addr.0.wrapping_sub(self.bias)
    }
}

impl Symbolizer {
    /// Reads the memory map of a process and opens the files of its modules.
    ///
    /// # Errors
    /// The process does not exist ([`Error::is_gone`]), or may not be inspected
    /// ([`Error::is_denied`]). A module whose file is not at hand is no error here, but a
    /// [`FileState`].
    pub fn open(pid: Pid) -> Result<Self> {
        let mut symbolizer = Self {
            process: Process::open(pid)?,
            text: Vec::new(),
            modules: Vec::new(),
            regions: Regions::default(),
            nowhere: HashSet::new(),
            stale: false,
        };
        symbolizer.refresh()?;
        Ok(symbolizer)
    }

    /// The modules that are or were mapped, in the order in which they were found.
    pub fn modules(&self) -> &[LoadedModule] {
        &self.modules
    }

    /// Says that mappings changed, so that the next lookup reads the memory map again.
    pub fn maps_changed(&mut self) {
        self.stale = true;
    }

    /// Reads the memory map again, opens the files of new modules, and says whether anything
    /// changed. Modules that are gone stay known.
    ///
    /// # Errors
    /// The process is gone ([`Error::is_gone`]): what is known stays known.
    pub fn refresh(&mut self) -> Result<bool> {
        self.stale = false;
        let text = self.process.maps()?;
        if text == self.text {
            return Ok(false);
        }
        let maps = Modules::parse(&text).map_err(|e| Error::maps(self.process.pid(), e))?;
        self.text = text;
        self.nowhere.clear();
        self.regions.forget_anonymous();
        for known in &mut self.modules {
            known.mapped = false;
        }
        let main = self.process.executable();
        let (modules, anonymous) = maps.into_parts();
        for module in modules {
            let is_main = main.as_ref().is_some_and(|(id, path)| {
                module.file_id() == Some((id.device, id.inode)) || module.path() == Some(path)
            });
            self.take(module, is_main);
        }
        for span in anonymous {
            self.regions.set(span, Region::Anonymous);
        }
        Ok(true)
    }

    fn take(&mut self, module: Module, main: bool) {
        let same = |known: &LoadedModule| {
            known.module.origin == module.origin
                && known.module.mappings()[0].span.start() == module.mappings()[0].span.start()
                // The loader maps a library piece by piece: once it is code, look again.
                && (known.state != FileState::Data || !module.is_loaded())
        };
        let index = self.modules.iter().position(same).unwrap_or(self.modules.len());
        if let Some(known) = self.modules.get_mut(index) {
            known.mapped = true;
            known.module = module;
        } else {
            let (state, found) = file_state::open(&self.process, &module);
            let (image, bias) = found.map_or((None, 0), |(image, bias)| (Some(image), bias));
            let soname = image.as_ref().and_then(Image::soname);
            let mapped = true;
            self.modules.push(LoadedModule { module, state, image, soname, bias, mapped, main });
        }
        for mapping in self.modules[index].module.mappings() {
            self.regions.set(mapping.span, Region::Module(index));
        }
    }

    /// The module at an address, after reading the map again if that may help.
    fn module_at(&mut self, addr: Addr) -> Option<&LoadedModule> {
        if self.stale {
            // A process that is gone has no newer map: what is known counts.
            let _ = self.refresh();
        }
        let page = addr.0 >> PAGE_BITS;
        if self.regions.at(addr).is_none() && !self.nowhere.contains(&page) {
            let _ = self.refresh();
            if self.regions.at(addr).is_none() {
                if self.nowhere.len() == MAX_NOWHERE {
                    self.nowhere.clear();
                }
                self.nowhere.insert(page);
            }
        }
        if let Some(Region::Module(index)) = self.regions.at(addr) {
            return self.modules.get(index);
        }
        // Zero-initialised data has no file behind it, but belongs to a segment.
        let holds = |module: &&LoadedModule| {
            let image = module.image.as_ref();
            image.is_some_and(|i| i.layout().segment_at(module.link_time(addr)).is_some())
        };
        let mapped = self.modules.iter().filter(|module| module.mapped).find(holds);
        mapped.or_else(|| self.modules.iter().rev().find(holds))
    }

    fn image_at(&mut self, addr: Addr) -> Option<(&LoadedModule, &Image, u64)> {
        let module = self.module_at(addr)?;
        let image = module.image.as_ref()?;
        Some((module, image, module.link_time(addr)))
    }

    /// What is known about an address. Reads the symbols and debug information of its module when
    /// first asked for.
    pub fn site(&mut self, addr: Addr) -> Site {
        let mut site =
            Site { addr, module: None, function: None, offset: None, frames: Vec::new() };
        let Some(module) = self.module_at(addr) else { return site };
        let link_addr = module.image.as_ref().map(|_| module.link_time(addr));
        site.module = Some(SiteModule {
            name: module.module.name(),
            path: module.module.path().map(Into::into),
            state: module.state,
            link_addr,
        });
        let (Some(image), Some(link_addr)) = (&module.image, link_addr) else { return site };
        site.frames = image.frames_at(link_addr);
        if let Some(function) = image.function_at(link_addr) {
            site.offset = Some(link_addr - function.addr);
            // Line tables without full debug information name a function without its scope.
            if let Some(frame) = site.frames.first_mut() {
                frame.function = Some(function.name.clone());
            }
            site.function = Some(function.name);
        } else if let Some(name) = site.frames.first().and_then(|frame| frame.function.clone()) {
            site.offset = image.function_range(link_addr).map(|(start, _)| link_addr - start);
            site.function = Some(name);
        }
        site
    }

    /// The function that holds an address: where to begin decoding instructions. Known for most
    /// code even of stripped modules ([`Image::function_range`]).
    pub fn function_range(&mut self, addr: Addr) -> Option<Span> {
        let (module, image, link_addr) = self.image_at(addr)?;
        let (start, len) = image.function_range(link_addr)?;
        Span::new(Addr(start.wrapping_add(module.bias)), len)
    }

    /// The code at an address as its file holds it, at most 1 MiB: fewer bytes than asked for at
    /// the end of a segment. The process may have changed its copy; this is the original.
    pub fn code(&mut self, addr: Addr, len: u64) -> Option<Vec<u8>> {
        let (_, image, link_addr) = self.image_at(addr)?;
        image.code(link_addr, len)
    }

    /// The named data that holds an address.
    pub fn data_symbol_at(&mut self, addr: Addr) -> Option<DataSymbol> {
        let (module, image, link_addr) = self.image_at(addr)?;
        let symbol = image.data_at(link_addr)?;
        Some(DataSymbol {
            name: symbol.name,
            offset: link_addr - symbol.addr,
            size: symbol.size,
            module: module.module.name(),
        })
    }
}
