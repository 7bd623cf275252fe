//! Hands a linker script to the linker, for the chip only, and the placement: in which memory
//! hot code and the handlers' state go. A part of the build scripts of the firmware's crates.
//!
//! The linker gets a copy of the script in Cargo's folder of this build: that is the only one
//! whose path Cargo mends when a clone was copied or moved with what it has built.

use std::path::{Path, PathBuf};

/// Links all binaries in `src/bin` by a script of the folder `linker`. Paths are from the
/// package's folder, in which Cargo runs this. `symbols` are defined for the script, as
/// `_scratch_b_bytes`, `_image_bytes`, or `_has_workers` where more than two CPUs copy the pads' images.
pub fn link(linker: &Path, script: &str, symbols: &[&str]) {
    if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("mips") {
        return;
    }
    println!("cargo::rerun-if-env-changed=TIGON_PLACEMENT");
    let placement = std::env::var("TIGON_PLACEMENT").unwrap_or_default();
    let out = std::env::var_os("OUT_DIR").map_or_else(PathBuf::new, PathBuf::from);
    for (name, text) in [
        ("placement.x", regions(&placement)),
        ("overlay.x", overlay(&placement).to_owned()),
    ] {
        if let Err(error) = std::fs::write(out.join(name), text) {
            panic!("cannot write {name}: {error}");
        }
    }
    let source = linker.join(script);
    println!("cargo::rerun-if-changed={}", source.display());
    let script = out.join(script);
    if let Err(error) = std::fs::copy(&source, &script) {
        panic!("cannot copy {}: {error}", source.display());
    }
    for variant in binaries(Path::new("src/bin")) {
        let argument = format!("cargo::rustc-link-arg-bin={variant}=");
        println!("{argument}-T{}", script.display());
        println!("{argument}-L{}", out.display());
        for symbol in symbols {
            println!("{argument}--defsym={symbol}");
        }
        println!("{argument}--gc-sections");
        // By which the log decoder knows the ELF file of a card's firmware.
        println!("{argument}--build-id=sha1");
        // The symbols of the log messages.
        println!("{argument}-Tdefmt.x");
        // Debug information of what is not in the image must not stand at address 0, where a
        // CPU that was never started is: gdb would take it for code.
        println!("{argument}-zdead-reloc-in-nonalloc=.debug_info=0xffffffff");
        // The scratch pads have the same addresses, as each CPU sees its own.
        println!("{argument}--no-check-sections");
        // By which the build tells whose code an address in debug information is.
        println!("{argument}--emit-relocs");
    }
}

/// The names of the binaries.
fn binaries(folder: &Path) -> Vec<String> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = files.map(|file| file.path());
    paths
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect()
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
    format!(
        "{regions}_code_in_pads = {};\n_state_in_pads = {};\n",
        u32::from(code),
        u32::from(state)
    )
}

/// Names for the memory of code that takes the place of other code of a CPU's, for the scripts
/// that have such.
fn overlay(placement: &str) -> &'static str {
    match placement {
        "sram-code" | "sram-both" => {
            "REGION_ALIAS(\"AHEAD_A\", SRAM)\nREGION_ALIAS(\"BESIDE_A\", SRAM)\n\
             REGION_ALIAS(\"ENDPOINTS_B\", SRAM)\n"
        }
        _ => {
            "REGION_ALIAS(\"AHEAD_A\", OVERLAY_A)\nREGION_ALIAS(\"BESIDE_A\", SYSTEM_A)\n\
             REGION_ALIAS(\"ENDPOINTS_B\", OVERLAY_B)\n"
        }
    }
}
