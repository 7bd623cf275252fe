//! Hands the linker script of the variant to the linker, for the chip only.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("mips") {
        return;
    }
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from);
    let linker = manifest.join("../linker");
    let script = linker.join("uniprocessor.x");
    println!("cargo::rerun-if-changed={}", script.display());
    println!(
        "cargo::rustc-link-arg-bin=uniprocessor=-T{}",
        script.display()
    );
    println!("cargo::rustc-link-arg-bin=uniprocessor=--gc-sections");
    // The symbols of the log messages.
    println!("cargo::rustc-link-arg-bin=uniprocessor=-Tdefmt.x");
}
