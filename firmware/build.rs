//! Hands the linker script of the variant to the linker.

mod linking;

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=linking.rs");
    // A variant of somebody's own has the linker script of the one that it is made from.
    let parallel = std::env::var_os("CARGO_FEATURE_PARALLEL").is_some();
    let script = if parallel {
        "parallel.x"
    } else {
        "uniprocessor.x"
    };
    // With endpoints the tables lie higher, see src/memory/layout.rs.
    let longer: &[&str] = match std::env::var_os("CARGO_FEATURE_EUDP") {
        Some(_) => &["_image_bytes=0x1AE00"],
        None => &[],
    };
    linking::link(Path::new("../linker"), script, longer);
}
