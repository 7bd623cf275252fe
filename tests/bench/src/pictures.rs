//! Pictures of a firmware: its handlers and memory layout, from its ELF, and its timeline, from a
//! run.

use crate::trace::files;
use anyhow::{Context, Result};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use testbed::paths::board_file;
use tigon2_chip::events::EventBit;
use tigon2_chip::memory::{SCRATCH_A_BYTES, SCRATCH_B_BYTES, SCRATCH_BASE};
use tigon2_chip::{Cpu, memory};
use tigon2_model::Board;
use tigon2_sim::theme::{self, escaped};
use tigon2_sim::timeline::capture::{self, Subject, Window};
use tigon2_sim::timeline::packets;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::experiment::Experiment;
use tigon2_sim::workload::testbench::Setup;

/// Points: of a row, round the whole, between columns; the title's line and the heads of the
/// columns.
const ROW: usize = 22;
const EDGE: usize = 10;
const BETWEEN: usize = 28;
const TITLE: usize = 26;
const HEADS: usize = 56;
/// Points of a column of a memory, of its picture, and its least part.
const COLUMN: usize = 260;
const HEIGHT: f64 = 420.0;
const FOOT: usize = HEIGHT as usize + 110;
const LEAST: f64 = 16.0;
/// End of what a driver loads and the firmware's variables take.
const SRAM_SHOWN: u32 = 0x1_B000;

fn svg(title: &str, width: usize, height: usize, inside: &str) -> String {
    let least = 2 * EDGE + theme::width(title, TITLE_SIZE) as usize;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" \
         font-family=\"{}\" font-size=\"{}\" fill=\"{}\">\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/><title>{title}</title>\
         <text x=\"{EDGE}\" y=\"{TITLE}\" font-size=\"{TITLE_SIZE}\">{title}</text>{inside}</svg>\n",
        width.max(least),
        theme::FONT,
        theme::SMALL,
        theme::INK,
        theme::PAPER,
        title = escaped(title),
    )
}

const TITLE_SIZE: u32 = theme::TEXT + 2;

/// The jump tables: event bits from the most urgent on, and the handler of each CPU.
pub fn dispatch(handlers: &BTreeMap<(usize, u8), String>) -> String {
    let mut columns = ["event", "CPU A", "CPU B"].map(|head| vec![head.to_owned()]);
    for bit in (0..32u8).rev() {
        let of = |cpu: Cpu| handlers.get(&(cpu.index(), bit)).cloned();
        if Cpu::ALL.iter().all(|cpu| of(*cpu).is_none()) {
            continue;
        }
        let event = EventBit::ALL
            .iter()
            .find(|event| event.number() == u32::from(bit));
        let name = event.map_or("", |event| event.name());
        columns[0].push(format!("{bit} {name}"));
        for cpu in Cpu::ALL {
            columns[1 + cpu.index()].push(of(cpu).unwrap_or_default());
        }
    }
    let (mut inside, mut x) = (String::new(), EDGE);
    for column in &columns {
        for (row, words) in column.iter().enumerate() {
            let weight = if row == 0 { "bold" } else { "normal" };
            // Writing to a string does not fail.
            let _ = write!(
                inside,
                "<text x=\"{x}\" y=\"{}\" font-weight=\"{weight}\">{}</text>",
                HEADS + row * ROW,
                escaped(words)
            );
        }
        let widths = column.iter().map(|words| theme::width(words, theme::SMALL));
        x += widths.fold(0.0, f64::max) as usize + BETWEEN;
    }
    let title = "Who runs what: handlers by event, the most urgent first";
    svg(title, x, HEADS + columns[0].len() * ROW, &inside)
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
        let name = section.name().unwrap_or_default();
        // What is for debuggers only has no address.
        if section.address() == 0 || section.size() == 0 {
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
        let x = EDGE + column * COLUMN;
        write!(
            inside,
            "<text x=\"{x}\" y=\"{HEADS}\" font-weight=\"bold\">{title}, {} bytes</text>",
            *to - *from
        )?;
        let mut y = (HEADS + EDGE) as f64;
        let scale = HEIGHT / f64::from(*to - *from);
        let mut at = *from;
        for (address, size, name) in sections.iter() {
            y += f64::from(address.saturating_sub(at)) * scale;
            let height = (f64::from(*size) * scale).max(LEAST);
            let fill = if name.contains("text") {
                theme::CODE
            } else {
                theme::DATA
            };
            write!(
                inside,
                "<rect x=\"{x}\" y=\"{y:.1}\" width=\"{}\" height=\"{height:.1}\" fill=\"{fill}\" \
                 stroke=\"{}\"/><text x=\"{}\" y=\"{:.1}\" fill=\"{}\">{address:#x} {name} {size}</text>",
                COLUMN - BETWEEN,
                theme::PAPER,
                x + 4,
                y + height / 2.0 + 4.0,
                fill.words(),
            )?;
            y += height;
            at = address + size;
        }
    }
    let mut x = EDGE;
    for (words, colour) in [("code", theme::CODE), ("data and stacks", theme::DATA)] {
        write!(
            inside,
            "<rect x=\"{x}\" y=\"{}\" width=\"22\" height=\"12\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\">{words}</text>",
            FOOT - 11,
            x + BETWEEN,
            FOOT
        )?;
        x += 2 * BETWEEN + theme::width(words, theme::SMALL) as usize;
    }
    let title = "What lies where: address, section and bytes; small ones are drawn larger";
    Ok(svg(title, 3 * COLUMN, FOOT + EDGE, &inside))
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
    let title = "A ping of 1472 bytes, there and back, as it passes through the card";
    files::write(folder, PING, title, &timeline, &packets)?;
    Ok(())
}
