//! Passes the linker script to the linker, for the chip only. The script is a copy in Cargo's
//! build folder, whose path Cargo updates when a clone was copied or moved.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("mips") {
        return;
    }
    // From the package's folder, in which Cargo runs this.
    let source = "../../../linker/classify-cycles.x";
    println!("cargo::rerun-if-changed={source}");
    let out = std::env::var_os("OUT_DIR").map_or_else(PathBuf::new, PathBuf::from);
    let script = out.join("classify-cycles.x");
    if let Err(error) = std::fs::copy(source, &script) {
        panic!("cannot copy {source}: {error}");
    }
    let argument = "cargo::rustc-link-arg-bin=classify-cycles=";
    println!("{argument}-T{}", script.display());
    println!("{argument}--gc-sections");
}
