//! Names and addresses of real processes: our own, and small C and C++ programs that say where
//! their things are. They are compiled here; without a compiler those tests are skipped in words,
//! or fail if HAIRSPRING_REQUIRE contains `cc`.

use hairspring_model::{Addr, Pid};
use hairspring_symbols::{Error, FileState, Query, Resolved, SymbolKind, Symbolizer};
use std::collections::HashMap;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

/// A program that prints `name address` lines, then `ready`, and then answers each line of input
/// with more of the same. It is killed when dropped.
struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    said: HashMap<String, u64>,
}

impl Program {
    fn start(path: &Path, args: &[&Path]) -> Self {
        let mut child = Command::new(path)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut program = Self { child, input, output, said: HashMap::new() };
        program.listen();
        program
    }

    fn listen(&mut self) {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("output"), 0, "it ended early");
            let line = line.trim_end();
            if line == "ready" {
                return;
            }
            let (name, addr) = line.split_once(" 0x").expect("name and address");
            let addr = u64::from_str_radix(addr, 16).expect("an address");
            self.said.insert(name.to_owned(), addr);
        }
    }

    fn go_on(&mut self) {
        writeln!(self.input, "go").expect("it reads");
        self.listen();
    }

    fn symbolizer(&self) -> Symbolizer {
        Symbolizer::open(Pid(self.child.id())).expect("a live process")
    }

    fn addr(&self, name: &str) -> Addr {
        Addr(self.said[name])
    }

    fn end(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory to compile into; `None`, and a word about it, without a compiler.
fn workshop(compiler: &str) -> Option<TempDir> {
    let found = Command::new(compiler).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        let required = std::env::var("HAIRSPRING_REQUIRE").unwrap_or_default();
        assert!(!required.split([',', ' ']).any(|word| word == "cc"), "there is no {compiler}");
        eprintln!("SKIPPED: there is no {compiler}");
        return None;
    }
    Some(tempfile::tempdir().expect("a temporary directory"))
}

fn compile(directory: &TempDir, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let is_cpp = options.first() == Some(&"g++");
    let file = directory.path().join(name).with_extension(if is_cpp { "cc" } else { "c" });
    std::fs::write(&file, source).expect("the source is written");
    let path = directory.path().join(name);
    let output = Command::new(options[0])
        .args(&options[1..])
        .arg("-o")
        .arg(&path)
        .arg(&file)
        .arg("-ldl")
        .output()
        .expect("the compiler runs");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    path
}

fn run(program: &str, args: &[&Path]) {
    let status = Command::new(program).args(args).status().expect("it runs");
    assert!(status.success(), "{program} {args:?}");
}

fn resolve(symbolizer: &mut Symbolizer, query: &str) -> Result<Resolved, Error> {
    symbolizer.resolve(&query.parse::<Query>().expect("a query"))
}

/// `query` names `addr`, and `MODULE@0xLINK` of the answer does, too.
#[track_caller]
fn check(symbolizer: &mut Symbolizer, query: &str, addr: Addr, size: u64) -> Resolved {
    let found = resolve(symbolizer, query).unwrap_or_else(|error| panic!("{query}: {error}"));
    assert_eq!((found.addr, found.size), (addr, size), "{query}: {found}");
    let link: Query = format!("{}@{:#x}", found.module, found.link_addr).parse().expect("a query");
    assert_eq!(symbolizer.resolve(&link).expect("the same place").addr, addr, "{query}");
    found
}

#[track_caller]
fn refused(symbolizer: &mut Symbolizer, query: &str, is: fn(&Error) -> bool) -> Error {
    match resolve(symbolizer, query) {
        Ok(found) => panic!("{query} is {found}"),
        Err(error) => {
            assert!(is(&error), "{query}: {error}");
            error
        }
    }
}

static COUNTER: AtomicU64 = AtomicU64::new(7);

mod inner {
    #[inline(never)]
    pub(crate) fn work(value: u64) -> u64 {
        std::hint::black_box(value) + 1
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the test is about inlining")]
    pub(crate) fn inlined() -> u32 {
        std::hint::black_box(line!())
    }
}

#[inline(never)]
fn outer() -> u32 {
    inner::inlined()
}

#[test]
fn rust_names_of_our_own() {
    let mut symbolizer = Symbolizer::open(Pid(std::process::id())).expect("ourselves");
    let work = Addr(inner::work as fn(u64) -> u64 as usize as u64);
    assert_eq!(black_box(inner::work as fn(u64) -> u64)(1), 2);
    assert_eq!(COUNTER.load(Ordering::Relaxed), 7);

    let counter = Addr(&raw const COUNTER as u64);
    let found = check(&mut symbolizer, "live::COUNTER", counter, 8);
    assert_eq!(found.kind, Some(SymbolKind::Data));
    let function = resolve(&mut symbolizer, "live::inner::work").expect("a function");
    assert_eq!((function.addr, function.kind), (work, Some(SymbolKind::Function)));
    assert_eq!(function.symbol.as_deref(), Some("live::inner::work"));

    let data = symbolizer.data_symbol_at(Addr(counter.0 + 3)).expect("named data");
    assert_eq!((data.name.as_str(), data.offset, data.size), ("live::COUNTER", 3, 8));

    let site = symbolizer.site(Addr(work.0 + 1));
    assert_eq!(site.function.as_deref(), Some("live::inner::work"));
    assert_eq!(site.offset, Some(1));
    assert!(site.file().is_some_and(|file| file.ends_with("live.rs")), "{site:?}");
    assert_eq!(site.to_string(), "live::inner::work+0x1");
    let range = symbolizer.function_range(work).expect("a range");
    assert_eq!((range.start(), range.len()), (work, function.size));

    let error = refused(&mut symbolizer, "live::inner::wrok", Error::is_not_found);
    assert!(error.nearest().contains(&"live::inner::work".to_owned()), "{error}");
}

#[test]
fn inlined_functions_are_frames() {
    let line = outer();
    let start = Addr(outer as fn() -> u32 as usize as u64);
    let mut symbolizer = Symbolizer::open(Pid(std::process::id())).expect("ourselves");
    let range = symbolizer.function_range(start).expect("a range");
    let sites = (0..range.len()).map(|offset| symbolizer.site(Addr(start.0 + offset)));
    let inlined: Vec<_> = sites.filter(|site| site.frames.len() >= 2).collect();
    assert!(!inlined.is_empty());
    for site in inlined {
        // Line tables alone keep an inlined function's name without its scope.
        let name = site.frames[1].function.as_deref().unwrap_or_default();
        assert!(["inlined", "live::inner::inlined"].contains(&name), "{site:?}");
        assert_eq!(site.frames[1].line, Some(line));
        assert_eq!(site.frames[0].function.as_deref(), Some("live::outer"));
        assert_eq!(site.function.as_deref(), Some("live::outer"));
    }
}

#[test]
fn code_is_what_we_execute() {
    let mut symbolizer = Symbolizer::open(Pid(std::process::id())).expect("ourselves");
    let start = Addr(outer as fn() -> u32 as usize as u64);
    let range = symbolizer.function_range(start).expect("a range");
    let code = symbolizer.code(start, range.len()).expect("code");
    let mut memory = vec![0; code.len()];
    let file = std::fs::File::open("/proc/self/mem").expect("our memory");
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut memory, start.0).expect("our code");
    assert_eq!(code, memory);
    assert_eq!(code.len() as u64, range.len());
}

#[test]
fn the_vdso_is_a_module() {
    let mut symbolizer = Symbolizer::open(Pid(std::process::id())).expect("ourselves");
    let clock = resolve(&mut symbolizer, "[vdso]!__vdso_clock_gettime").expect("vdso(7)");
    let site = symbolizer.site(clock.addr);
    let module = site.module.as_ref().expect("a module");
    assert_eq!((module.name.as_str(), module.state), ("[vdso]", FileState::Kernel));
    assert!(site.function.as_deref().is_some_and(|name| name.ends_with("clock_gettime")));
    assert!(symbolizer.function_range(Addr(clock.addr.0 + 1)).is_some());
    assert!(symbolizer.code(clock.addr, 16).is_some_and(|code| code.len() == 16));
}

#[test]
fn memory_without_a_file_has_no_module() {
    let mut symbolizer = Symbolizer::open(Pid(std::process::id())).expect("ourselves");
    let heap = Box::new(5_u64);
    for addr in [Addr(&raw const *heap as u64), Addr(0), Addr(u64::MAX), Addr(16)] {
        let site = symbolizer.site(addr);
        assert_eq!((site.module.as_ref(), site.function.as_ref()), (None, None));
        assert_eq!(site.to_string(), addr.to_string());
        assert_eq!(symbolizer.function_range(addr), None);
        assert_eq!(symbolizer.code(addr, 8), None);
        assert_eq!(symbolizer.data_symbol_at(addr), None);
    }
}

/// Reports a local and a global counter, data in .bss, and a function.
const MAIN: &str = r#"
#include <stdio.h>
#include <dlfcn.h>
static long counter = 5;
long shared = 6;
long zeroed[100];
__thread long mine = 3;
extern __typeof(shared) alias __attribute__((alias("shared")));
__attribute__((noinline)) static long bump(long by) { counter += by; zeroed[1]++; return mine; }
int main(int argc, char **argv) {
    printf("counter %p\nshared %p\nzeroed %p\nbump %p\nmain %p\n",
        (void *)&counter, (void *)&shared, (void *)zeroed, (void *)bump, (void *)main);
    puts("ready"); fflush(stdout);
    for (int i = 1; getchar() == 'g'; i++) {
        while (getchar() != '\n') {}
        bump(1);
        if (i < argc) {
            void *library = dlopen(argv[i], RTLD_NOW);
            if (!library) { puts(dlerror()); return 1; }
            void *(*where)(void) = (void *(*)(void))dlsym(library, "where");
            printf("where %p\nlibrary_counter %p\n", (void *)where, where());
        }
        puts("ready"); fflush(stdout);
    }
    return 0;
}
"#;

const LIBRARY: &str = "
static long counter = 9;
static long only_here = 1;
void *where(void) { only_here++; return &counter; }
";

#[test]
fn a_c_program_linked_in_every_way() {
    let Some(directory) = workshop("gcc") else { return };
    for (name, options) in [
        ("pie", &["gcc", "-g", "-O1", "-fPIE", "-pie"][..]),
        ("fixed", &["gcc", "-g", "-O1", "-fno-PIE", "-no-pie"]),
        ("static", &["gcc", "-g", "-O1", "-static"]),
        ("static_pie", &["gcc", "-g", "-O1", "-static-pie"]),
        ("compressed", &["gcc", "-g", "-gz", "-O1"]),
    ] {
        let path = compile(&directory, name, MAIN, options);
        let program = Program::start(&path, &[]);
        let mut symbolizer = program.symbolizer();
        let counter = check(&mut symbolizer, "counter", program.addr("counter"), 8);
        assert_eq!(counter.source_file.as_deref(), Some(format!("{name}.c").as_str()));
        let shared = check(&mut symbolizer, &format!("{name}!shared"), program.addr("shared"), 8);
        assert_eq!(shared.path.as_deref(), Some(path.as_path()));
        check(&mut symbolizer, "alias", program.addr("shared"), 8);
        check(&mut symbolizer, "zeroed", program.addr("zeroed"), 800);
        let in_bss = Addr(program.addr("zeroed").0 + 408);
        let data = symbolizer.data_symbol_at(in_bss).expect("named data");
        assert_eq!((data.name.as_str(), data.offset), ("zeroed", 408), "{name}");
        refused(&mut symbolizer, "mine", Error::is_thread_local);
        refused(&mut symbolizer, "no_such_name", Error::is_not_found);
        let site = symbolizer.site(program.addr("bump"));
        assert_eq!((site.function.as_deref(), site.offset), (Some("bump"), Some(0)), "{name}");
        assert_eq!(site.line(), Some(9), "{name}: {site:?}");
        let main = symbolizer.modules().iter().find(|module| module.is_main()).expect("main");
        assert_eq!(main.state(), FileState::Mapped);
        assert_eq!(main.bias() == Some(0), matches!(name, "fixed" | "static"));
    }
}

#[test]
fn a_stripped_program_has_function_ranges() {
    let Some(directory) = workshop("gcc") else { return };
    let path = compile(&directory, "whole", MAIN, &["gcc", "-g", "-O1"]);
    let whole = Program::start(&path, &[]);
    let range = whole.symbolizer().function_range(whole.addr("bump")).expect("a range");
    for (name, options) in [("bare", &["--strip-all"][..]), ("plain", &["--strip-debug"])] {
        let copy = directory.path().join(name);
        std::fs::copy(&path, &copy).expect("a copy");
        let options: Vec<_> = options.iter().map(Path::new).chain([copy.as_path()]).collect();
        run("strip", &options);
        let program = Program::start(&copy, &[]);
        let mut symbolizer = program.symbolizer();
        let bump = program.addr("bump");
        let found = symbolizer.function_range(Addr(bump.0 + 2)).expect("a range");
        assert_eq!((found.start(), found.len()), (bump, range.len()), "{name}");
        let site = symbolizer.site(bump);
        let expected = if name == "bare" { None } else { Some("bump") };
        assert_eq!(site.function.as_deref(), expected);
        let link_addr = site.module.as_ref().and_then(|module| module.link_addr);
        assert!(link_addr.is_some());
        assert_eq!(site.file(), None);
    }
}

#[test]
fn a_debug_file_is_found() {
    let Some(directory) = workshop("gcc") else { return };
    for (name, id) in [("linked", "none"), ("identified", "sha1")] {
        let id = format!("-Wl,--build-id={id}");
        let path = compile(&directory, name, MAIN, &["gcc", "-g", "-O1", &id]);
        let debug = path.with_extension("debug");
        run("objcopy", &[Path::new("--only-keep-debug"), &path, &debug]);
        run("strip", &[Path::new("--strip-all"), &path]);
        let link = format!("--add-gnu-debuglink={}", debug.display());
        run("objcopy", &[Path::new(&link), &path]);
        let program = Program::start(&path, &[]);
        let mut symbolizer = program.symbolizer();
        check(&mut symbolizer, "counter", program.addr("counter"), 8);
        assert_eq!(symbolizer.site(program.addr("bump")).line(), Some(9), "{name}");

        // A debug file of another build is not believed.
        let other = MAIN.replace("return 0", "return 1");
        let other = compile(&directory, "other", &other, &["gcc", "-g", "-O2", &id]);
        std::fs::copy(other, &debug).expect("replaced");
        refused(&mut program.symbolizer(), "counter", Error::is_not_found);
    }
}

#[test]
fn two_modules_with_the_same_local_name() {
    let Some(directory) = workshop("gcc") else { return };
    let options = &["gcc", "-g", "-O1", "-shared", "-fPIC", "-Wl,-soname,libcount.so.3"][..];
    let path = compile(&directory, "main", MAIN, &["gcc", "-g", "-O1"]);
    let library = compile(&directory, "libcount-3.1.so", LIBRARY, options);
    let second = compile(&directory, "libsecond.so", LIBRARY, &options[..5]);
    let mut program = Program::start(&path, &[&library, &second]);
    let mut symbolizer = program.symbolizer();
    refused(&mut symbolizer, "libcount!counter", Error::is_module_not_mapped);
    refused(&mut symbolizer, "libcount@0x1000", Error::is_module_not_mapped);
    refused(&mut symbolizer, "only_here", Error::is_not_found);

    program.go_on();
    let counter = program.addr("library_counter");
    // An address that was in no mapping before is looked up again without being told.
    let site = symbolizer.site(program.addr("where"));
    assert_eq!(site.function.as_deref(), Some("where"));
    for module in ["libcount", "libcount.so", "libcount.so.3", "libcount-3.1.so"] {
        check(&mut symbolizer, &format!("{module}!counter"), counter, 8);
    }
    check(&mut symbolizer, "counter", program.addr("counter"), 8);
    let only = resolve(&mut symbolizer, "only_here").expect("in one library");
    assert_eq!(only.module, "libcount-3.1.so");

    program.go_on();
    let error = refused(&mut symbolizer, "only_here", Error::is_ambiguous);
    let modules: Vec<_> = error.candidates().iter().map(|place| place.module.as_str()).collect();
    assert_eq!(modules, ["libcount-3.1.so", "libsecond.so"]);
    refused(&mut symbolizer, "main@0x7fffffff0000", |error| error.to_string().contains("segment"));

    // What is known stays known.
    let bump = program.addr("bump");
    program.end();
    assert!(symbolizer.refresh().expect_err("it is gone").is_gone());
    assert_eq!(symbolizer.site(bump).line(), Some(9));
    check(&mut symbolizer, "libsecond!counter", program.addr("library_counter"), 8);
}

#[test]
fn the_copy_of_a_library_s_data() {
    let Some(directory) = workshop("gcc") else { return };
    let library =
        "long shared_value = 4; long *where(void) { shared_value++; return &shared_value; }";
    let library = compile(&directory, "libvalue.so", library, &["gcc", "-shared", "-fPIC"]);
    let source = "#include <stdio.h>\nextern long shared_value; long *where(void);\n\
         int main(void) { shared_value++; printf(\"value %p\\nwhere %p\\nready\\n\", \
         (void *)&shared_value, (void *)where()); fflush(stdout); return getchar(); }";
    let options = ["gcc", "-fno-PIE", "-no-pie", "-Wl,-rpath,$ORIGIN"];
    let library = format!("-Wl,--no-as-needed,{}", library.display());
    let path = compile(&directory, "user", source, &[&options[..], &[library.as_str()]].concat());
    let program = Program::start(&path, &[]);
    assert_eq!(program.addr("value"), program.addr("where"), "the library uses the copy");
    let mut symbolizer = program.symbolizer();
    check(&mut symbolizer, "shared_value", program.addr("value"), 8);
    let copy = check(&mut symbolizer, "libvalue!shared_value", program.addr("value"), 8);
    assert_eq!((copy.module.as_str(), copy.copied_from.as_deref()), ("user", Some("libvalue.so")));
}

#[test]
fn local_names_of_two_files() {
    let Some(directory) = workshop("gcc") else { return };
    let first = directory.path().join("first.c");
    let text = "static long twin = 1; long *first_twin(void) { twin++; return &twin; }";
    std::fs::write(&first, text).expect("written");
    let source = "#include <stdio.h>\nstatic long twin = 2; long *first_twin(void);\n\
         int main(void) { twin++; printf(\"a %p\\nb %p\\nready\\n\", (void *)first_twin(), \
         (void *)&twin); fflush(stdout); return getchar(); }";
    let first = first.to_str().expect("text");
    let path = compile(&directory, "twins", source, &["gcc", "-g", first]);
    let program = Program::start(&path, &[]);
    let mut symbolizer = program.symbolizer();
    let error = refused(&mut symbolizer, "twin", Error::is_ambiguous);
    let mut found: Vec<_> = error
        .candidates()
        .iter()
        .map(|place| (place.addr, place.size, place.source_file.as_deref().unwrap_or_default()))
        .collect();
    found.sort_unstable();
    let mut expected = [(program.addr("a"), 8, "first.c"), (program.addr("b"), 8, "twins.c")];
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn cpp_names() {
    let Some(directory) = workshop("g++") else { return };
    let source = r#"
#include <cstdio>
namespace ns {
    long total = 1;
    struct Box { static long made; __attribute__((noinline)) long add(int a, char b); };
    long Box::made = 2;
    long Box::add(int a, char b) { made += a + b; return made; }
    template <class T> __attribute__((noinline)) T twice(T value) { total += 1; return value + value; }
    template long twice<long>(long);
}
namespace { long hidden = 3; }
static void over(int) { ns::total++; }
static void over(char) { ns::total++; }
int main() {
    hidden++;
    void (*one)(int) = over; void (*two)(char) = over; one(1); two('a');
    long (ns::Box::*add)(int, char) = &ns::Box::add;
    printf("total %p\nmade %p\nadd 0x%lx\ntwice %p\nhidden %p\nover %p\n", (void *)&ns::total, (void *)&ns::Box::made,
        *(long *)&add, (void *)ns::twice<long>, (void *)&hidden, (void *)one);
    puts("ready"); fflush(stdout);
    return getchar();
}
"#;
    let path = compile(&directory, "names", source, &["g++", "-g", "-O0"]);
    let program = Program::start(&path, &[]);
    let mut symbolizer = program.symbolizer();
    for (query, name) in [
        ("ns::total", "total"),
        ("_ZN2ns5totalE", "total"),
        ("ns::Box::made", "made"),
        ("ns::Box::add", "add"),
        ("ns::Box::add(int, char)", "add"),
        ("ns::Box::add(int,char)", "add"),
        ("names!ns::twice<long>", "twice"),
        ("(anonymous namespace)::hidden", "hidden"),
        ("over(int)", "over"),
    ] {
        let found = resolve(&mut symbolizer, query).unwrap_or_else(|e| panic!("{query}: {e}"));
        assert_eq!(found.addr, program.addr(name), "{query}");
    }
    let error = refused(&mut symbolizer, "over", Error::is_ambiguous);
    assert_eq!(error.candidates().len(), 2);
    let site = symbolizer.site(program.addr("add"));
    assert_eq!(site.function.as_deref(), Some("ns::Box::add(int, char)"));
}

/// What a deleted or replaced file is called depends on whether the kernel lets us reach the
/// mapped file; both answers are honest, and neither uses the wrong file.
#[test]
fn a_deleted_and_a_replaced_library() {
    let Some(directory) = workshop("gcc") else { return };
    let path = compile(&directory, "main", MAIN, &["gcc", "-g", "-O1"]);
    let options = &["gcc", "-g", "-O1", "-shared", "-fPIC"][..];
    let library = compile(&directory, "libgone.so", LIBRARY, options);
    let mut program = Program::start(&path, &[&library]);
    program.go_on();
    let counter = program.addr("library_counter");

    std::fs::remove_file(&library).expect("deleted");
    std::fs::remove_file(&path).expect("deleted");
    let mut symbolizer = program.symbolizer();
    let state = |symbolizer: &Symbolizer, name: &str| {
        let module = symbolizer.modules().iter().find(|module| module.module().name() == name);
        module.map(hairspring_symbols::LoadedModule::state)
    };
    // The main executable is always in reach.
    assert_eq!(state(&symbolizer, "main"), Some(FileState::Deleted));
    check(&mut symbolizer, "counter", program.addr("counter"), 8);
    let reached = match state(&symbolizer, "libgone.so") {
        Some(FileState::Deleted) => true,
        Some(FileState::Unreadable(std::io::ErrorKind::NotFound)) => false,
        other => panic!("{other:?}"),
    };

    let other = format!("long before[50] = {{1}};\n{LIBRARY}");
    compile(&directory, "libgone.so", &other, options);
    let mut symbolizer = program.symbolizer();
    if reached {
        assert_eq!(state(&symbolizer, "libgone.so"), Some(FileState::Deleted));
        check(&mut symbolizer, "libgone!counter", counter, 8);
    } else {
        eprintln!(
            "without CAP_CHECKPOINT_RESTORE: the refusal is tested, reaching the file is SKIPPED"
        );
        assert_eq!(state(&symbolizer, "libgone.so"), Some(FileState::Replaced));
        refused(&mut symbolizer, "libgone!counter", Error::is_file_unusable);
    }
    let site = symbolizer.site(program.addr("where"));
    assert_eq!(site.function.is_some(), reached);
    assert_eq!(site.module.expect("a module").name, "libgone.so");
}

#[test]
fn programs_of_the_system() {
    for (program, args) in
        [("cat", &[][..]), ("python3", &["-c", "print(input(), flush=True); input()"])]
    {
        let piped =
            Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = piped else {
            eprintln!("SKIPPED: there is no {program}");
            continue;
        };
        // It answers, so that the loader is done.
        let mut input = child.stdin.take().expect("piped");
        let mut answer = String::new();
        writeln!(input, "hello").expect("it reads");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        output.read_line(&mut answer).expect("it writes");
        assert_eq!(answer, "hello\n");

        let mut symbolizer = Symbolizer::open(Pid(child.id())).expect("a live process");
        let main = symbolizer.modules().iter().find(|module| module.is_main()).expect("main");
        assert_eq!(main.state(), FileState::Mapped);
        let code = main.module().mappings().iter().find(|m| m.executable).expect("code").span;
        let places: Vec<_> = (0..code.len()).step_by(4096).map(|at| code.start().0 + at).collect();
        let known = places.iter().filter(|at| symbolizer.function_range(Addr(**at)).is_some());
        let known = known.count();
        assert!(known * 2 > places.len(), "{program}: {known} of {}", places.len());
        let write = resolve(&mut symbolizer, "libc!write").expect("every libc has it");
        let site = symbolizer.site(Addr(write.addr.0 + 4));
        assert_eq!((site.function.as_deref(), site.offset), (Some("write"), Some(4)));
        refused(&mut symbolizer, "libc!wriet", |error| {
            error.nearest().contains(&"write".to_owned())
        });
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }
}
