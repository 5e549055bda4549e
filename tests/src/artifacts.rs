//! Where the programs are that the tests run, and that they are built.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The directory of the programs that belong to the running test: `target/debug` or the like.
pub fn profile_directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows its own path");
        // A test binary is in `deps` of the profile's directory, an example in `examples`; a
        // documentation test is elsewhere, and runs nothing.
        test.ancestors()
            .find(|directory| directory.join("deps").is_dir())
            .expect("a test binary is built by cargo")
            .to_owned()
    })
}

/// How a guest is linked, where that is not the usual way: to shared libraries, and so that it can
/// be loaded anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    /// No shared libraries, loaded anywhere.
    StaticPie,
    /// No shared libraries, loaded at the addresses of the file.
    Static,
}

/// The path of the guest called `name`, built and linked in a way of its own. The C library must
/// be installed for static linking, as it is with its development files.
pub fn guest_program_linked(name: &str, linkage: Linkage) -> PathBuf {
    static BUILT: [OnceLock<()>; 2] = [OnceLock::new(), OnceLock::new()];
    let (built, directory, flags) = match linkage {
        Linkage::StaticPie => (&BUILT[0], "static-pie", "-Ctarget-feature=+crt-static"),
        Linkage::Static => {
            (&BUILT[1], "static", "-Ctarget-feature=+crt-static -Crelocation-model=static")
        }
    };
    let target = target_directory().join(directory);
    built.get_or_init(|| build(&["hairspring-guests"], &target, Some(flags)));
    let profile = profile_directory().file_name().expect("a profile has a name");
    existing(target.join(profile).join(name))
}

/// The path of the guest called `name`, built.
pub fn guest_program(name: &str) -> PathBuf {
    build_guests();
    existing(profile_directory().join(name))
}

/// The path of the library for the guest `dlopener`, built.
pub fn late_library() -> PathBuf {
    build_guests();
    existing(profile_directory().join("libhairspring_late.so"))
}

/// The path of the hairspring command, built.
pub fn hairspring_program() -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| build(&["hairspring-cli"], target_directory(), None));
    existing(profile_directory().join("hairspring"))
}

fn build_guests() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT
        .get_or_init(|| build(&["hairspring-guests", "hairspring-late"], target_directory(), None));
}

fn existing(path: PathBuf) -> PathBuf {
    assert!(path.is_file(), "cargo did not build {}", path.display());
    path
}

/// The directory that holds the profile's directory.
pub(crate) fn target_directory() -> &'static Path {
    profile_directory().parent().expect("the profile is inside of the target")
}

/// Builds packages with the cargo that runs the test, in the test's profile.
fn build(packages: &[&str], target: &Path, flags: Option<&str>) {
    let profile = match profile_directory().file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(other) => other,
        None => panic!("no profile in {}", profile_directory().display()),
    };
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    if let Some(flags) = flags {
        // The encoded form would win over this one.
        command.env("RUSTFLAGS", flags).env_remove("CARGO_ENCODED_RUSTFLAGS");
    }
    let output = command
        .args(["build", "--quiet", "--profile", profile])
        .arg("--manifest-path")
        .arg(manifest)
        .arg("--target-dir")
        .arg(target)
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .output()
        .expect("cargo can be run");
    assert!(
        output.status.success(),
        "building {packages:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
