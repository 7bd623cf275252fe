//! Hands the linker script of two CPUs to the linker: the further ones run the code of these.

#[path = "../linking.rs"]
mod linking;

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../linking.rs");
    // CPU B and its workers have a pad as CPU A's.
    let symbols = ["_scratch_b_bytes=0x4000"];
    linking::link(Path::new("../../linker"), "parallel.x", &symbols);
}
