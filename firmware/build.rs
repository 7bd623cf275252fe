//! Hands the linker script of the variant to the linker, for the chip only, and the
//! placement: in which memory hot code and the handlers' state go.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("mips") {
        return;
    }
    println!("cargo::rerun-if-env-changed=TIGON_PLACEMENT");
    let placement = std::env::var("TIGON_PLACEMENT").unwrap_or_default();
    let out = std::env::var_os("OUT_DIR").map_or_else(PathBuf::new, PathBuf::from);
    if let Err(error) = std::fs::write(out.join("placement.x"), regions(&placement)) {
        panic!("cannot write placement.x: {error}");
    }
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from);
    let linker = manifest.join("../linker");
    for variant in ["uniprocessor", "parallel"] {
        let script = linker.join(format!("{variant}.x"));
        println!("cargo::rerun-if-changed={}", script.display());
        let argument = format!("cargo::rustc-link-arg-bin={variant}=");
        println!("{argument}-T{}", script.display());
        println!("{argument}-L{}", out.display());
        println!("{argument}--gc-sections");
        // By which the log decoder knows the ELF file of a card's firmware.
        println!("{argument}--build-id=sha1");
        // The symbols of the log messages.
        println!("{argument}-Tdefmt.x");
        // The scratch pads have the same addresses, as each CPU sees its own.
        println!("{argument}--no-check-sections");
    }
}

/// Names for the memories of each CPU's code and state.
fn regions(placement: &str) -> String {
    let (code, state) = match placement {
        "" | "scratch" => (true, true),
        "sram-code" => (false, true),
        "sram-data" => (true, false),
        "sram-both" => (false, false),
        other => panic!("TIGON_PLACEMENT is {other}"),
    };
    let regions: String = ["A", "B"]
        .into_iter()
        .flat_map(|cpu| [("CODE", code, cpu), ("STATE", state, cpu)])
        .map(|(what, in_scratch, cpu)| {
            let cpu_pad = if in_scratch {
                format!("SCRATCH_{cpu}")
            } else {
                "SRAM".into()
            };
            format!("REGION_ALIAS(\"{what}_{cpu}\", {cpu_pad})\n")
        })
        .collect();
    format!("{regions}_code_in_pads = {};\n", u32::from(code))
}
