//! Hands the linker script of the variant to the linker, for the chip only.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("mips") {
        return;
    }
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from);
    let linker = manifest.join("../linker");
    for variant in ["uniprocessor", "parallel"] {
        let script = linker.join(format!("{variant}.x"));
        println!("cargo::rerun-if-changed={}", script.display());
        let argument = format!("cargo::rustc-link-arg-bin={variant}=");
        println!("{argument}-T{}", script.display());
        println!("{argument}--gc-sections");
        // The symbols of the log messages.
        println!("{argument}-Tdefmt.x");
        // The scratch pads have the same addresses, as each CPU sees its own.
        println!("{argument}--no-check-sections");
    }
}
