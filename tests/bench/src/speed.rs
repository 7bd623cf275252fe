//! Measures how fast the engines run the same firmware under the same loads, by this computer's
//! clock.
//!
//! ```text
//!   driver, in this process ── the timed simulator, in this process ── wire, in this process
//!   driver, in this process ── vfio-user ── QEMU ── datagram socket ── wire, in this process
//! ```
//!
//! The simulator's loads have the card's own rate; QEMU has no such rate, so there both sides
//! offer as much as the card takes. Every datagram is checked in both. QEMU counts no
//! instructions, so frames per second are compared.

use crate::report::write_json;
use anyhow::{Context, Result, anyhow, bail};
use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use host_driver::Nic;
use host_driver::peer::DatagramWire;
use host_driver::transport::vfio_user::VfioUser;
use serde::Serialize;
use std::io::IoSlice;
use std::time::{Duration, Instant};
use testbed::card::{Card, CardOptions};
use testbed::conditions::DmaChannels;
use testbed::hosts::open_nic;
use testbed::qemu_build::{self, Target};
use testbed::setup::{self, Need};
use testbed::tools::Tools;
use tigon2_model::is_flow_control;
use tigon2_sim::workload::datagram::{Flow, HEADERS, PEER, Sink};
use tigon2_sim::workload::speed::{self, LOADS, SpeedLoad};

/// Simulated time of a load.
const SIMULATED_NS: u64 = 200_000_000;
/// Send BDs that stay free.
const KEPT_FREE: u32 = 8;
/// Frames towards the card that may be on their way in it.
const WINDOW: u64 = 256;
/// How long the driver waits where neither side has anything to do.
const NAP: Duration = Duration::from_micros(200);
/// Time without a frame after which the card counts as stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// One load: frames both ways in a second of this computer's.
#[derive(Debug, Serialize)]
struct Row {
    load: &'static str,
    sim_instructions_per_s: f64,
    /// The card's time by this computer's.
    sim_of_real_time: f64,
    sim_frames_per_s: f64,
    /// None for a card that carries nothing.
    qemu_frames_per_s: Option<f64>,
}

/// `target/reports/bench-speed.json`.
#[derive(Debug, Serialize)]
struct Report {
    firmware: String,
    dma_channels: DmaChannels,
    simulated_ms: u64,
    qemu_seconds: u32,
    rows: Vec<Row>,
}

/// Measures and reports, QEMU for so many seconds a load.
///
/// # Errors
/// When a card does not start or carries nothing.
pub fn run(seconds: u32) -> Result<()> {
    setup::ensure(&[Need::Firmware, Need::Qemu])?;
    qemu_build::ensure(&[Target::Mips])?;
    let tools = Tools::build()?;
    let image = tools.firmware.image()?;
    let mut rows = Vec::new();
    for load in &LOADS {
        println!("bench: {}, simulator", load.name);
        let origin = Instant::now();
        let clock = || origin.elapsed().as_secs_f64();
        let sim = speed::measure(&image, load, SIMULATED_NS, clock)?;
        let carries = load.send || load.arrivals > 0.0;
        let qemu = carries.then(|| {
            println!("bench: {}, QEMU", load.name);
            through_qemu(&tools, load, seconds)
        });
        rows.push(Row {
            load: load.name,
            sim_instructions_per_s: sim.instructions_per_second(),
            sim_of_real_time: sim.of_real_time(),
            sim_frames_per_s: sim.frames_per_second(),
            qemu_frames_per_s: qemu.transpose()?,
        });
    }
    let report = Report {
        firmware: testbed::firmware::FirmwareOptions::default()
            .variant
            .name()
            .to_owned(),
        dma_channels: DmaChannels::default(),
        simulated_ms: SIMULATED_NS / 1_000_000,
        qemu_seconds: seconds,
        rows,
    };
    println!("bench: with {}\n{}", report.dma_channels, table(&report));
    println!("report: {}", write_json("bench-speed", &report)?.display());
    Ok(())
}

/// Frames both ways in a second through a card under QEMU.
///
/// # Errors
/// A card that does not start or carries nothing, a datagram that is not what was sent.
pub fn through_qemu(tools: &Tools, load: &SpeedLoad, seconds: u32) -> Result<f64> {
    let card = Card::start(tools, &CardOptions::default())?;
    let wire = DatagramWire::bind(&card.wire_peer(), &card.wire_card())?;
    let nic = open_nic(tools, &card)?;
    let mut ends = Ends::new(nic, wire, load.datagram);
    let limit = Duration::from_secs(seconds.into());
    let start = Instant::now();
    while start.elapsed() < limit {
        ends.turn(load)
            .with_context(|| format!("QEMU: {}", card.log().trim().to_owned()))?;
    }
    Ok(ends.carried() as f64 / start.elapsed().as_secs_f64())
}

/// Both ends of a card under QEMU.
struct Ends {
    nic: Nic<VfioUser>,
    wire: DatagramWire,
    out: (Flow, Sink),
    inward: (Flow, Sink),
    /// A frame that the wire did not take.
    held: Option<Vec<u8>>,
    /// Frames that the wire took.
    offered: u64,
    moved: Instant,
}

impl Ends {
    fn new(nic: Nic<VfioUser>, wire: DatagramWire, datagram: usize) -> Ends {
        let out = Flow::new(nic.station(), PEER, datagram);
        let inward = Flow::new(PEER, nic.station(), datagram);
        Ends {
            nic,
            wire,
            out: (out.clone(), Sink::new(out)),
            inward: (inward.clone(), Sink::new(inward)),
            held: None,
            offered: 0,
            moved: Instant::now(),
        }
    }

    fn carried(&self) -> u64 {
        self.out.1.received() + self.inward.1.received()
    }

    /// Offers what the card takes, and takes what it gives.
    fn turn(&mut self, load: &SpeedLoad) -> Result<()> {
        let before = self.carried();
        if load.send {
            self.send()?;
        }
        if load.arrivals > 0.0 {
            self.offer()?;
        }
        while let Some(frame) = self.wire.receive_frame()? {
            if !is_flow_control(&frame) {
                self.out.1.take(&frame).context("sent")?;
            }
        }
        if self.nic.wait(NAP)? {
            self.serve()?;
        }
        if self.carried() != before {
            self.moved = Instant::now();
        } else if self.moved.elapsed() > PATIENCE {
            bail!("no frame for {} s", PATIENCE.as_secs());
        }
        Ok(())
    }

    /// Fills the send ring: two BDs a frame, as the simulator's host does.
    fn send(&mut self) -> Result<()> {
        while self.nic.send_room() > KEPT_FREE {
            let frame = self.out.0.frame();
            let (headers, payload) = frame.split_at(HEADERS);
            self.nic
                .queue(&[IoSlice::new(headers), IoSlice::new(payload)])?;
        }
        self.nic.submit()?;
        Ok(())
    }

    /// Puts frames on the wire until it is full or enough are on their way.
    fn offer(&mut self) -> Result<()> {
        while self.offered < self.inward.1.received() + WINDOW {
            let frame = match self.held.take() {
                Some(frame) => frame,
                None => self.inward.0.frame(),
            };
            if !self.wire.send_frame(&frame)? {
                self.held = Some(frame);
                break;
            }
            self.offered += 1;
        }
        Ok(())
    }

    fn serve(&mut self) -> Result<()> {
        let sink = &mut self.inward.1;
        let mut wrong = None;
        self.nic.receive(u32::MAX, |frame| {
            if let Err(mismatch) = sink.take(&frame.to_vec()?) {
                wrong.get_or_insert(mismatch);
            }
            Ok(())
        })?;
        if let Some(mismatch) = wrong {
            return Err(anyhow!(mismatch).context("received"));
        }
        self.nic.service()?;
        Ok(())
    }
}

fn table(report: &Report) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header([
        "load",
        "simulator, M instr/s",
        "of real time",
        "frames/s",
        "QEMU, frames/s",
    ]);
    for row in &report.rows {
        table.add_row([
            row.load.to_owned(),
            format!("{:.1}", row.sim_instructions_per_s / 1e6),
            format!("{:.2}", row.sim_of_real_time),
            format!("{:.0}", row.sim_frames_per_s),
            row.qemu_frames_per_s
                .map_or_else(String::new, |frames| format!("{frames:.0}")),
        ]);
    }
    table
}
