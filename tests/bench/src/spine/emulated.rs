//! `cargo xtask extension cut --qemu`: runs cut off at random on the emulated card.
//!
//! In QEMU both CPUs run at the computer's mercy, so where the watchdog cuts a run off is chance:
//!
//! | handlers | cut off |
//! | --- | --- |
//! | that never return | in their own text, in the runtime, while they keep frames |
//! | that last about as long as they may | there, on their way out, or not at all |
//!
//! After each burst of frames: a run that was cut off has done nothing and its frame is the
//! host's; the others have done all; the host's own frames have arrived both ways, in order. At the
//! end all slots of the pool and all memory are free.

use super::card::Kit;
use super::frames::{Kind, PEER, PLAIN, WANTED, plain};
use crate::simulated::tables::framed;
use anyhow::{Context, Result, bail, ensure};
use comfy_table::Table;
use host_driver::nic::ExtensionCard;
use host_driver::peer::DatagramWire;
use host_driver::transport::vfio_user::VfioUser;
use host_driver::{Config, Nic};
use host_interface::extension::Extension;
use host_interface::spine::{BlockWord, DomainCount, HandlerCount};
use serde::Serialize;
use spine_linker::load::{Card as _, Guard, Loader};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::time::{Duration, Instant};
use testbed::card::{Card, CardOptions};
use testbed::interrupt;
use testbed::tools::Tools;
use tigon_firmware::memory::layout::POOL_SLOTS;
use tigon2_model::is_flow_control;

/// Microseconds that a run may take on the chip; and those that each has here, as the computer may
/// hold an emulated CPU up.
const WATCHDOG: u32 = 10;
const FLOOR: u32 = 20_000;
const LINK: Duration = Duration::from_secs(10);
/// How long all frames of a burst may take: the computer may have other things to do.
const PATIENCE: Duration = Duration::from_secs(20);
/// Frames for a handler in a burst.
const BURST: u32 = 4;
/// Turns of a run that lasts, to begin with.
const TURNS: u32 = 20_000;
/// Where frames for handlers have their number, and where the turns of the run.
const NUMBER: usize = 16;
const TURNS_AT: usize = 20;

/// A handler whose runs are cut off.
#[derive(Clone, Copy, Debug)]
struct Subject {
    folder: &'static str,
    handler: u8,
    /// Some of its runs return.
    returns: bool,
}

const SUBJECTS: [Subject; 4] = {
    const fn subject(folder: &'static str, handler: u8, returns: bool) -> Subject {
        Subject {
            folder,
            handler,
            returns,
        }
    }
    [
        subject("tests/extensions/infinite", 7, false),
        subject("tests/extensions/importing", 0, false),
        subject("tests/extensions/keeping", 7, false),
        subject("tests/extensions/lasting", 0, true),
    ]
};

/// What became of a handler's runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The extension and the handler's number.
    pub handler: String,
    /// Runs.
    pub runs: u64,
    /// Runs that were cut off.
    pub cuts: u64,
    /// Frames of the host's that went past, in both directions.
    pub plain: u64,
}

/// The table of some rows.
pub fn table(rows: &[Row]) -> Table {
    let mut table = framed(&["handler", "runs", "cuts", "frames beside"]);
    for row in rows {
        let cells = [row.runs, row.cuts, row.plain].map(|number| number.to_string());
        table.add_row(std::iter::once(row.handler.clone()).chain(cells));
    }
    table
}

/// Cuts runs off until there were `wanted` cuts, as many of each handler.
///
/// # Errors
/// What does not hold.
pub fn run(tools: &Tools, kit: &Kit, wanted: u64, mut told: impl FnMut(u64)) -> Result<Vec<Row>> {
    let each = wanted.div_ceil(SUBJECTS.len() as u64);
    let mut bench = Bench::start(tools, kit)?;
    let mut rows: Vec<Row> = Vec::new();
    for subject in SUBJECTS {
        let name = subject.folder.rsplit('/').next().unwrap_or_default();
        let mut row = Row {
            handler: format!("{name} {}", subject.handler),
            ..Row::default()
        };
        let domain = bench.load(kit, &subject)?;
        while row.cuts < each {
            interrupt::check()?;
            let burst = bench.burst(&subject, domain, &mut row);
            burst.with_context(|| format!("{row:?}: {}", bench.card.testimony()))?;
            let before: u64 = rows.iter().map(|row| row.cuts).sum();
            told(before + row.cuts);
        }
        bench.unload(domain)?;
        rows.push(row);
    }
    Ok(rows)
}

/// An emulated card with its driver, and the other end of its wire.
struct Bench {
    card: Card,
    wire: DatagramWire,
    nic: Nic<VfioUser>,
    loader: Loader,
    /// Bytes of the arena.
    arena: u32,
    /// Turns by which about half of the runs that last are cut off.
    turns: u32,
    random: u32,
    number: u32,
}

/// Frames on their way in a burst.
#[derive(Default)]
struct Burst {
    /// What the host may get, in this order: its own, and those of handlers with their numbers.
    inbound: VecDeque<(Vec<u8>, Option<u16>)>,
    /// What the host has sent.
    outbound: VecDeque<Vec<u8>>,
    /// Numbers of frames that a handler has transmitted.
    answered: Vec<u16>,
    /// Numbers of frames of handlers that the host got.
    left: Vec<u16>,
}

/// What a domain has counted.
#[derive(Clone, Copy, Debug)]
struct Counts {
    runs: u32,
    cuts: u32,
    consumed: u32,
    transmitted: u32,
}

impl Bench {
    fn start(tools: &Tools, kit: &Kit) -> Result<Bench> {
        let options = CardOptions {
            monitor: true,
            ..CardOptions::default()
        };
        let card = Card::start(tools, &options)?;
        let wire = DatagramWire::bind(&card.wire_peer(), &card.wire_card())?;
        let mut nic = Nic::probe(VfioUser::connect(&card.socket())?, Config::default())?;
        nic.load(&kit.image)?;
        nic.open()?;
        nic.wait_link(LINK)?;
        let loader = Loader::find(&mut ExtensionCard(&mut nic))?;
        let mut bench = Bench {
            card,
            wire,
            nic,
            loader,
            arena: 0,
            turns: TURNS,
            random: 0x5350_494E,
            number: 0,
        };
        bench.arena = bench.block_word(BlockWord::ArenaBytes as u32)?;
        Ok(bench)
    }

    fn block_word(&mut self, word: u32) -> Result<u32> {
        let mut card = ExtensionCard(&mut self.nic);
        let mut out = [0];
        card.read(Extension::Spine.nic_address(), &mut out)?;
        let at = out[0] + word;
        card.read(at, &mut out)?;
        Ok(out[0])
    }

    /// A number below a limit; xorshift32.
    fn below(&mut self, limit: u32) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random % limit
    }

    fn load(&mut self, kit: &Kit, subject: &Subject) -> Result<u32> {
        let container = kit.container(subject.folder.as_ref())?;
        let policy = kit.policy_with_floor(WATCHDOG, 0, FLOOR)?;
        let mut card = ExtensionCard(&mut self.nic);
        let loaded = self.loader.load(&mut card, &container, &policy, &kit.build);
        let (domain, _) = loaded?;
        let guard = Guard::ether_type(domain, subject.handler, WANTED);
        self.loader.set_guards(&mut card, &[guard])?;
        Ok(domain)
    }

    fn unload(&mut self, domain: u32) -> Result<()> {
        let mut card = ExtensionCard(&mut self.nic);
        self.loader.unload(&mut card, domain)?;
        let kept = self.block_word(BlockWord::Kept as u32 + 4 * domain)?;
        let free = self.block_word(BlockWord::FreeSlots as u32)?;
        ensure!(kept == 0 && free == POOL_SLOTS, "a kept frame is lost");
        ensure!(self.loader.free() == self.arena, "memory is lost");
        Ok(())
    }

    fn counts(&mut self, domain: u32) -> Result<Counts> {
        let mut card = ExtensionCard(&mut self.nic);
        let counts = self.loader.counts(&mut card, domain)?;
        Ok(Counts {
            runs: counts.of(HandlerCount::Runs),
            cuts: counts.of(HandlerCount::Overruns),
            consumed: counts.of(DomainCount::Consumed),
            transmitted: counts.of(DomainCount::Transmitted),
        })
    }

    fn plain(&mut self, destination: [u8; 6], source: [u8; 6]) -> Vec<u8> {
        self.number = self.number.wrapping_add(1);
        let length = 60 + self.below(1455) as usize;
        plain(destination, source, PLAIN, self.number, length)
    }

    fn wanted(&mut self, station: [u8; 6]) -> (Vec<u8>, u16) {
        self.number = self.number.wrapping_add(1);
        let number = self.number as u16;
        let length = 60 + self.below(200) as usize;
        let mut frame = Kind::Typed(0).frame(station, number, length);
        let turns = u64::from(self.turns) * u64::from(50 + self.below(100)) / 100;
        frame[NUMBER..NUMBER + 2].copy_from_slice(&number.to_be_bytes());
        frame[TURNS_AT..TURNS_AT + 4].copy_from_slice(&(turns as u32).to_be_bytes());
        (frame, number)
    }

    fn send(&mut self, frame: &[u8]) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while !self.wire.send_frame(frame)? {
            ensure!(Instant::now() < end, "the card takes no frames");
            self.nic.service()?;
        }
        Ok(())
    }

    /// Frames for the handler among some of the host's; their runs are cut off.
    fn burst(&mut self, subject: &Subject, domain: u32, row: &mut Row) -> Result<()> {
        let before = self.counts(domain)?;
        let station = self.nic.station();
        let mut burst = Burst::default();
        for _ in 0..BURST {
            if self.below(2) == 0 {
                let frame = self.plain(PEER, station);
                ensure!(self.nic.queue(&[IoSlice::new(&frame)])?, "no room");
                burst.outbound.push_back(frame);
                let frame = self.plain(station, PEER);
                self.send(&frame)?;
                burst.inbound.push_back((frame, None));
                row.plain += 2;
            }
            let (frame, number) = self.wanted(station);
            self.send(&frame)?;
            burst.inbound.push_back((frame, Some(number)));
        }
        self.nic.submit()?;
        self.settle(subject, &mut burst)?;
        let after = self.counts(domain)?;
        let runs = after.runs.wrapping_sub(before.runs);
        let cuts = after.cuts.wrapping_sub(before.cuts);
        let consumed = after.consumed.wrapping_sub(before.consumed);
        let transmitted = after.transmitted.wrapping_sub(before.transmitted);
        let (left, answered) = (burst.left.len() as u32, burst.answered.len() as u32);
        ensure!(
            runs == BURST && cuts == left && consumed + cuts == BURST,
            "{before:?}, {after:?}: {left} frames of {BURST} are the host's"
        );
        ensure!(
            transmitted == consumed && answered == consumed,
            "{before:?}, {after:?}: {answered} frames were sent back"
        );
        ensure!(subject.returns || cuts == BURST, "it never returns");
        row.runs += u64::from(runs);
        row.cuts += u64::from(cuts);
        if cuts == 0 {
            self.turns = self.turns.saturating_mul(2).min(1 << 24);
        } else if cuts == BURST && subject.returns {
            self.turns -= self.turns / 4;
        }
        Ok(())
    }

    /// Takes all that arrives until the burst is over.
    fn settle(&mut self, subject: &Subject, burst: &mut Burst) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            self.collect(subject, burst)?;
            let own = burst.inbound.iter().filter(|(_, number)| number.is_none());
            let own = own.count();
            let of_handlers = (burst.left.len() + burst.answered.len()) as u32;
            if own == 0 && burst.outbound.is_empty() && of_handlers >= BURST {
                break;
            }
            if Instant::now() > end {
                bail!(
                    "{own} frames to the host, {} of its own, {of_handlers} of a handler's \
                     {BURST} by now",
                    burst.outbound.len()
                );
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        let rest = burst.inbound.iter().filter_map(|(_, number)| *number);
        let all = burst.left.iter().chain(&burst.answered).copied();
        let mut all: Vec<u16> = all.collect();
        all.sort_unstable();
        all.dedup();
        ensure!(
            all.len() as u32 == BURST,
            "a frame came back twice: {all:?}"
        );
        let lost: Vec<u16> = rest.filter(|number| !all.contains(number)).collect();
        ensure!(lost.is_empty(), "frames {lost:?} are lost");
        Ok(())
    }

    fn collect(&mut self, subject: &Subject, burst: &mut Burst) -> Result<()> {
        while let Some(frame) = self.wire.receive_frame()? {
            if is_flow_control(&frame) {
                continue;
            }
            if burst.outbound.front() == Some(&frame) {
                burst.outbound.pop_front();
                continue;
            }
            let number = frame.get(NUMBER..NUMBER + 2).context("a short frame")?;
            let number = u16::from_be_bytes([number[0], number[1]]);
            ensure!(subject.returns, "it never returns, and has sent {frame:x?}");
            burst.answered.push(number);
        }
        self.nic.service()?;
        for frame in self.nic.receive_batch(64)? {
            // Those in front of it were consumed, and are on the wire or on their way there.
            loop {
                let next = burst.inbound.pop_front();
                let (expected, number) = next.context("a frame out of turn, or twice")?;
                if expected == frame {
                    burst.left.extend(number);
                    break;
                }
                ensure!(number.is_some(), "a frame of the host's is lost or changed");
                ensure!(subject.returns, "a frame is lost whose run was cut off");
            }
        }
        Ok(())
    }
}
