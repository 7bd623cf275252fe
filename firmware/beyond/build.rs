//! Passes the linker script of two CPUs to the linker: further CPUs run the same code.

#[path = "../linking.rs"]
mod linking;

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../linking.rs");
    // CPU B and its workers have the same pad as CPU A.
    let symbols = ["_scratch_b_bytes=0x4000", "_has_workers=1"];
    linking::link(Path::new("../../linker"), "parallel.x", &symbols);
}
