//! Copies the sources of the glue for the checker, with seeded faults that can be enabled.
//!
//! The sources themselves contain nothing of this. Changes of their `use` lines replace threads,
//! locks and atomics by the checker's; a fault is an edit of the text. The build fails if an edit
//! does not match exactly once, so a change of the text requires a change of the fault.

use std::path::Path;
use std::{env, fs};

#[allow(dead_code, reason = "only the edits are wanted here")]
#[path = "src/seeds.rs"]
mod seeds;

use seeds::SEEDS;

/// A module, where its text is, and edits that make it part of the checker.
type Source = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const NO_TESTS: (&str, &str) = ("#[cfg(test)]\nmod tests {", "#[cfg(any())]\nmod tests {");

const SOURCES: [Source; 17] = [
    ("counts", "../src/counts.rs", &[]),
    ("stalls", "../src/stalls.rs", &[]),
    ("limit", "../src/limit.rs", &[NO_TESTS]),
    ("ports", "../src/ports.rs", &[]),
    ("bell", "../src/bell.rs", &[]),
    ("waiting", "../src/waiting.rs", &[NO_TESTS]),
    ("outbox", "../src/outbox.rs", &[NO_TESTS]),
    (
        "parking",
        "../src/parking.rs",
        &[
            NO_TESTS,
            // Sooner asleep, so that a run has fewer steps. Not after one turn: that a CPU
            // which was roused looks for orders before it sleeps rests on a second one.
            ("PATIENCE: u32 = 32", "PATIENCE: u32 = 2"),
            ("RELAPSE: u32 = 4", "RELAPSE: u32 = 1"),
        ],
    ),
    ("effects", "../src/machine/effects.rs", &[]),
    ("errands", "../src/machine/errands.rs", &[]),
    ("idle", "../src/machine/idle.rs", &[]),
    ("locks", "../src/machine/locks.rs", &[]),
    ("transfers", "../src/machine/transfers.rs", &[]),
    ("wire", "../src/machine/wire.rs", &[]),
    (
        "machine",
        "../src/machine.rs",
        &[
            ("#[cfg(test)]\nmod tests;", ""),
            ("mod effects;\n", "#[path = \"effects.rs\"]\nmod effects;\n"),
            ("mod errands;\n", "#[path = \"errands.rs\"]\nmod errands;\n"),
            ("mod idle;\n", "#[path = \"idle.rs\"]\nmod idle;\n"),
            ("mod locks;\n", "#[path = \"locks.rs\"]\nmod locks;\n"),
            (
                "mod transfers;\n",
                "#[path = \"transfers.rs\"]\nmod transfers;\n",
            ),
            ("mod wire;\n", "#[path = \"wire.rs\"]\nmod wire;\n"),
            (
                "use vfio_user_nic::{DmaTable, Interrupts};",
                "use crate::glue::interrupt::Interrupts;\nuse vfio_user_nic::DmaTable;",
            ),
        ],
    ),
    ("entrance", "../src/entrance.rs", &[NO_TESTS]),
    (
        "interrupt",
        "../vfio-user/src/interrupt.rs",
        &[("use crate::message::", "use vfio_user_nic::message::")],
    ),
];

/// Modules that are this crate's own; all others of the sources are the glue's.
const OURS: [&str; 3] = ["glue", "seeds", "server"];

/// Modules of the sources inside of `machine`.
const NESTED: [&str; 6] = ["effects", "errands", "idle", "locks", "transfers", "wire"];

fn read(path: &str) -> String {
    println!("cargo::rerun-if-changed={path}");
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Changes the only place where `from` stands.
fn edit(text: &mut String, path: &str, from: &str, to: &str) {
    let found = text.matches(from).count();
    assert_eq!(found, 1, "{path}: {from:?} stands there {found} times");
    *text = text.replace(from, to);
}

/// `crate::x` becomes `crate::glue::x`, and what is of `std` the checker's.
fn moved(text: &str) -> String {
    let mut text = text
        .replace("crate::", "crate::glue::")
        .replace("std::sync", "shuttle::sync")
        .replace("std::thread", "shuttle::thread");
    for ours in OURS {
        let twice = format!("crate::glue::{ours}");
        text = text.replace(&twice, &format!("crate::{ours}"));
    }
    text
}

/// QEMU behind a trait: the trait only.
fn host() -> String {
    let text = read("../src/host.rs");
    let (host, _) = text
        .split_once("/// The machine in QEMU.")
        .expect("host.rs: the trait stands before the machine");
    host.replace("use crate::ffi::{HostOps, NEVER};\n", "")
}

fn main() {
    println!("cargo::rerun-if-changed=src/seeds.rs");
    let out = env::var("OUT_DIR").expect("cargo names it");
    let write = |module: &str, text: &str| {
        let path = Path::new(&out).join(format!("{module}.rs"));
        fs::write(path, text).expect("cargo's folder can be written");
    };
    let mut glue = String::from("#[path = \"host.rs\"]\npub mod host;\n");
    write("host", &moved(&host()));
    for (module, path, edits) in SOURCES {
        let mut text = read(path);
        let seeded = SEEDS.iter().flat_map(|seed| seed.edits);
        for (_, from, to) in seeded.filter(|(place, ..)| *place == module) {
            edit(&mut text, path, from, to);
        }
        for (from, to) in edits {
            edit(&mut text, path, from, to);
        }
        write(module, &moved(&text));
        if !NESTED.contains(&module) {
            glue += &format!("#[path = \"{module}.rs\"]\npub mod {module};\n");
        }
    }
    write("glue", &glue);
}
