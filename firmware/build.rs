//! Hands the linker script of the variant to the linker, and says whether it has receive queues.

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
    // Extensions and endpoints leave receive queues no room, see src/memory/layout.rs.
    println!("cargo::rustc-check-cfg=cfg(receive_queues)");
    let without = ["CARGO_FEATURE_SPINE", "CARGO_FEATURE_EUDP"];
    if parallel && without.iter().all(|name| std::env::var_os(name).is_none()) {
        println!("cargo::rustc-cfg=receive_queues");
    }
    // With endpoints the tables lie higher, see src/memory/layout.rs.
    let longer: &[&str] = match std::env::var_os("CARGO_FEATURE_EUDP") {
        Some(_) => &["_image_bytes=0x1AE00"],
        None => &[],
    };
    linking::link(Path::new("../linker"), script, longer);
}
