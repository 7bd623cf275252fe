//! Hands the boot code's linker script to the linker, for the chip only.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("mips") {
        return;
    }
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from);
    let script = manifest.join("../../linker/boot.x");
    println!("cargo::rerun-if-changed={}", script.display());
    println!("cargo::rustc-link-arg-bin=boot=-T{}", script.display());
    println!("cargo::rustc-link-arg-bin=boot=--gc-sections");
}
