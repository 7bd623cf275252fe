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
    let receive_queues = parallel && without.iter().all(|name| std::env::var_os(name).is_none());
    if receive_queues {
        println!("cargo::rustc-cfg=receive_queues");
    }
    // With extensions and endpoints the tables lie higher, and verdicts lie in front of them with
    // receive queues, see src/memory/layout.rs.
    let image_bytes: &[&str] = if std::env::var_os("CARGO_FEATURE_EUDP").is_some() {
        &["_image_bytes=0x1D800"]
    } else if std::env::var_os("CARGO_FEATURE_SPINE").is_some() {
        &["_image_bytes=0x17600"]
    } else if receive_queues {
        &["_image_bytes=0x16580"]
    } else {
        &[]
    };
    linking::link(Path::new("../linker"), script, image_bytes);
}
