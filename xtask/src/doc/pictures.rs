//! Pictures of a firmware: who runs what and what lies where, from its ELF, and what happens
//! when, from a run.

use crate::bench::simulated::board_file;
use crate::trace::files;
use anyhow::{Context, Result};
use object::{Object, ObjectSection, SectionFlags};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::{SCRATCH_A_BYTES, SCRATCH_B_BYTES, SCRATCH_BASE};
use tigon2_chip::{Cpu, memory};
use tigon2_model::Board;
use tigon2_sim::timeline::capture::{self, Subject, Window};
use tigon2_sim::timeline::packets;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::experiment::Experiment;
use tigon2_sim::workload::rig::Setup;

/// Points of a row, of a column.
const ROW: usize = 22;
const COLUMN: usize = 250;
/// Points of the picture of a memory, and its least part.
const HEIGHT: f64 = 420.0;
const LEAST: f64 = 14.0;
/// End of what a driver loads and the firmware's variables take.
const SRAM_SHOWN: u32 = 0x1_B000;

const BEGIN: &str = "<style>text{font:13px sans-serif;fill:#222}.h{font-weight:bold}\
    rect{stroke:#666;stroke-width:.6}</style><rect width=\"100%\" height=\"100%\" \
    fill=\"#fff\" stroke=\"none\"/>";

fn svg(width: usize, height: usize, inside: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\">\
         {BEGIN}{inside}</svg>\n"
    )
}

/// The jump tables: event bits from the most urgent on, and the handler of each CPU.
pub fn dispatch(handlers: &BTreeMap<(usize, u8), String>) -> String {
    let mut rows = String::new();
    let mut line = |row: usize, column: usize, class: &str, words: &str| {
        let (x, y) = (10 + column * COLUMN, 20 + row * ROW);
        // Writing to a string does not fail.
        let _ = write!(
            rows,
            "<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{words}</text>"
        );
    };
    for (column, words) in ["event", "CPU A", "CPU B"].into_iter().enumerate() {
        line(0, column, "h", words);
    }
    let mut row = 0;
    for bit in (0..32u8).rev() {
        let of = |cpu: Cpu| handlers.get(&(cpu.index(), bit));
        if Cpu::ALL.iter().all(|cpu| of(*cpu).is_none()) {
            continue;
        }
        row += 1;
        let event = EventBit::ALL
            .iter()
            .find(|event| event.number() == u32::from(bit));
        let name = event.map_or("", |event| event.name());
        line(row, 0, "", &format!("{bit} {name}"));
        for cpu in Cpu::ALL {
            let handler = of(cpu).map_or("", String::as_str);
            line(row, 1 + cpu.index(), "", handler);
        }
    }
    svg(3 * COLUMN, (row + 2) * ROW, &rows)
}

/// The sections of an ELF in SRAM and in the scratch pads.
///
/// # Errors
/// When the bytes are no ELF.
pub fn memories(elf: &[u8]) -> Result<String> {
    let file = object::File::parse(elf).context("not an ELF")?;
    let mut columns = [
        ("SRAM", memory::FIRMWARE_BASE, SRAM_SHOWN, Vec::new()),
        (
            "scratch pad A",
            SCRATCH_BASE,
            SCRATCH_BASE + SCRATCH_A_BYTES,
            Vec::new(),
        ),
        (
            "scratch pad B",
            SCRATCH_BASE,
            SCRATCH_BASE + SCRATCH_B_BYTES,
            Vec::new(),
        ),
    ];
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
            continue;
        };
        let name = section.name().unwrap_or_default();
        if !sh_flags.contains(object::elf::SHF_ALLOC) || section.size() == 0 {
            continue;
        }
        let Ok(address) = u32::try_from(section.address()) else {
            continue;
        };
        let which = match (address, name) {
            (SCRATCH_BASE.., name) if name.starts_with(".scratch_b") => 2,
            (SCRATCH_BASE.., _) => 1,
            (memory::FIRMWARE_BASE.., _) => 0,
            _ => continue,
        };
        columns[which]
            .3
            .push((address, section.size() as u32, name));
    }
    let mut inside = String::new();
    for (column, (title, from, to, sections)) in columns.iter_mut().enumerate() {
        sections.sort_unstable();
        let x = 10 + column * COLUMN;
        write!(
            inside,
            "<text x=\"{x}\" y=\"20\" class=\"h\">{title}, {} bytes</text>",
            *to - *from
        )?;
        let mut y = 30.0;
        let scale = (HEIGHT - 40.0) / f64::from(*to - *from);
        let mut at = *from;
        for (address, size, name) in sections.iter() {
            y += f64::from(address.saturating_sub(at)) * scale;
            let height = (f64::from(*size) * scale).max(LEAST);
            let fill = if name.contains("text") {
                "#cfe3f7"
            } else {
                "#f6e7c8"
            };
            write!(
                inside,
                "<rect x=\"{x}\" y=\"{y:.1}\" width=\"{}\" height=\"{height:.1}\" fill=\"{fill}\"/>\
                 <text x=\"{}\" y=\"{:.1}\">{address:#x} {name} {size}</text>",
                COLUMN - 20,
                x + 4,
                y + height / 2.0 + 4.0,
            )?;
            y += height;
            at = address + size;
        }
    }
    Ok(svg(3 * COLUMN, HEIGHT as usize + 60, &inside))
}

/// The name of the files of [`ping`].
pub const PING: &str = "ping-1472";

/// Behind the start of the load, in nanoseconds: a request and its answer.
const SHOWN: Window = Window {
    from: 4_000_000,
    to: 4_070_000,
};

/// Writes what happens in the card while it is pinged, as a picture and as a page: the
/// simulator runs the image.
///
/// # Errors
/// If the image does not run, or a file cannot be written.
pub fn ping(image: &[u8], handlers: BTreeMap<(usize, u8), String>, folder: &Path) -> Result<()> {
    let board = board_file()?;
    let parameters = Parameters::from_toml(&board, "default")?;
    let setup = Setup::new(Board::from_toml(&board)?, parameters, image);
    let subject = Subject::new(Experiment::Ping, 1472);
    let mut timeline = capture::capture(&setup, subject, SHOWN)?;
    timeline.handlers = handlers;
    let packets = packets::on_wire_in(packets::follow(&timeline), timeline.shown);
    files::write(folder, PING, "A ping of 1472 bytes", &timeline, &packets)?;
    Ok(())
}
