// SPDX-License-Identifier: Apache-2.0
// For build scripts of adapters: `include!("../rust/build_script.rs");`

/// Hides all symbols that crates export except ours, and passes the `package` version from Cargo.lock to the
/// crate being built, as `env!("LAGOMETER_MIDDLEWARE_VERSION")`.
#[allow(clippy::print_stdout)] // cargo reads it
fn prepare(package: &str) {
    println!("cargo:rustc-link-arg-cdylib=-Wl,--exclude-libs,ALL");
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");
    println!("cargo:rerun-if-changed={lock}");
    let text = std::fs::read_to_string(lock).expect("the workspace has a Cargo.lock");
    let entry = format!("\nname = \"{package}\"\nversion = \"");
    let rest = text.split(&entry).nth(1).expect("Cargo.lock names the package");
    let version = rest.split('"').next().expect("a version is quoted");
    println!("cargo:rustc-env=LAGOMETER_MIDDLEWARE_VERSION={version}{}", remark());
}

/// What the version says if the build is not the one to measure; lagometer/study/adapters.py checks how it
/// ends.
fn remark() -> String {
    match std::env::var("OPT_LEVEL").as_deref() {
        Ok("3") => String::new(),
        level => format!(" (opt-level {}: not for measuring)", level.unwrap_or("unknown")),
    }
}
