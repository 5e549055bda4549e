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
    BUILT.get_or_init(|| build(&["hairspring-cli"]));
    existing(profile_directory().join("hairspring"))
}

fn build_guests() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| build(&["hairspring-guests", "hairspring-late"]));
}

fn existing(path: PathBuf) -> PathBuf {
    assert!(path.is_file(), "cargo did not build {}", path.display());
    path
}

/// Builds packages with the cargo that runs the test, into the directory that the test is in.
fn build(packages: &[&str]) {
    let profile = match profile_directory().file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(other) => other,
        None => panic!("no profile in {}", profile_directory().display()),
    };
    let target = profile_directory().parent().expect("the profile is inside of the target");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
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
