//! `cargo xtask bench --eudp`: datagrams of endpoints in the card's own time.
//!
//! | table | what |
//! | --- | --- |
//! | latency | one datagram at a time: stored and forwarded, cut through, and by the driver |
//! | bandwidth | datagrams one behind the other, out and in, with each checksum |
//! | [`shares`] | where the time of one datagram goes |
//! | [`boards`] | the same under other timing profiles, and on slower buses |
//! | [`stalls`] | a stream on a bus that stalls within transactions |
//! | [`beside`] | an endpoint and the driver, both without a pause |
//!
//! There is one card. Latency is from the process's call to the end on the wire, and from the end
//! on the wire to the completion: added up, what two cards would take one way.

pub mod beside;
pub mod boards;
pub mod burst;
mod card;
pub mod curves;
pub mod damage;
pub mod flow;
mod pair;
pub mod shares;
pub mod stalls;
pub mod way;

pub use card::{Bench, image, image_with_transitions};
pub use pair::Pair;

use crate::simulated::page::Page;
use crate::simulated::tables::framed;
use anyhow::Result;
use comfy_table::Table;
use eudp::{Checksum, CutThrough};
use serde::Serialize;
use testbed::conditions::Conditions;

/// Bytes of a datagram, and of the packets of its wire.
const SIZES: [(usize, u32); 9] = [
    (1, 1500),
    (64, 1500),
    (400, 1500),
    (800, 1500),
    (1472, 1500),
    (2500, 9000),
    (4000, 9000),
    (6000, 9000),
    (8972, 9000),
];
const QUICK_SIZES: [(usize, u32); 3] = [(1, 1500), (1472, 1500), (8972, 9000)];
/// Those that are streamed.
pub const STREAMS: [(usize, u32); 7] = [
    (18, 1500),
    (64, 1500),
    (400, 1500),
    (1472, 1500),
    (4000, 1500),
    (8972, 9000),
    (32_768, 1500),
];

/// Those whose time is shared out.
pub const WAYS: [(usize, u32); 3] = [(1, 1500), (32_768, 1500), (32_768, 9000)];

/// A size, one datagram at a time; microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Bytes of data.
    pub bytes: usize,
    /// To the wire: through the driver, stored and forwarded, cut through.
    pub out: [f64; 3],
    /// From the wire: through the driver, stored and forwarded, cut through.
    pub into: [f64; 3],
    /// Frames that were cut through, and cut off.
    pub cuts: [u32; 2],
}

impl Latency {
    /// One way, as two cards would take: through the driver, stored and forwarded, cut through.
    pub fn one_way(&self) -> [f64; 3] {
        let [plain, coarse, fine] = self.out;
        let [plain_in, coarse_in, fine_in] = self.into;
        [plain + plain_in, coarse + coarse_in, fine + fine_in]
    }
}

/// A size, datagrams one behind the other; Mb/s of data.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bandwidth {
    /// Bytes of data.
    pub bytes: usize,
    /// Bytes of a packet on the wire.
    pub mtu: u32,
    /// Out: without a checksum and cut through, `Full`, `Leading`.
    pub out: [f64; 3],
    /// In: without a checksum and with one.
    pub into: [f64; 2],
    /// The share of those that is completed.
    pub completed: f64,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// One at a time.
    pub latency: Vec<Latency>,
    /// In streams.
    pub bandwidth: Vec<Bandwidth>,
    /// Where the time of one goes.
    pub shares: Vec<shares::Way>,
    /// Under other timing profiles, and on slower buses.
    pub boards: Vec<boards::Row>,
    /// On a bus that stalls.
    pub stalls: Vec<stalls::Row>,
    /// Beside the driver.
    pub beside: Vec<beside::Row>,
}

/// Measures, prints the tables and writes `target/reports/bench-eudp.json`, with its [`curves`]. `quick`:
/// fewer sizes.
///
/// # Errors
/// If the firmware cannot be built or a measurement fails.
pub fn run(quick: bool) -> Result<()> {
    let image = image()?;
    let sizes: &[_] = if quick { &QUICK_SIZES } else { &SIZES };
    let streams: &[_] = if quick { &STREAMS[..4] } else { &STREAMS };
    let figures = Figures {
        latency: latencies(&image, sizes)?,
        bandwidth: bandwidths(&image, streams, if quick { 100 } else { 400 })?,
        shares: WAYS
            .iter()
            .map(|(bytes, mtu)| shares::measure(&image, *bytes, *mtu))
            .collect::<Result<_>>()?,
        boards: boards::worlds()?
            .iter()
            .map(|world| world.measure(&image, if quick { 60 } else { 400 }))
            .collect::<Result<_>>()?,
        stalls: stalls::Posted::ALL
            .iter()
            .map(|posted| stalls::measure(&image, *posted, if quick { 300 } else { stalls::COUNT }))
            .collect::<Result<_>>()?,
        beside: beside::all(&image)?,
    };
    let mut page = Page::new(Conditions::default());
    page.title("E-UDP: datagrams of endpoints, in the card's time");
    page.table("one datagram at a time, us", &figures.latency_table());
    page.table(
        "one behind the other, Mb/s of data",
        &figures.bandwidth_table(),
    );
    page.table("two cards on one wire", &pairs(&image, sizes)?);
    page.table(
        "where the time of one goes, us",
        &shares::table(&figures.shares),
    );
    page.table(
        "other profiles, and slower buses: us, and Mb/s of data",
        &boards::table(&figures.boards),
    );
    page.table(
        "8972 bytes, a stall in one frame of ten: Mb/s of data",
        &stalls::table(&figures.stalls),
    );
    page.table(
        "endpoint and driver, each alone and both at once: Mb/s of data",
        &beside::table(&figures.beside),
    );
    page.table("a burst of 10 000 descriptors", &bursts(&image)?);
    page.write("bench-eudp", std::slice::from_ref(&figures))?;
    curves::write(&figures)
}

/// One-way times of two cards: stored, cut through, and cut through with each checksum.
fn pairs(image: &[u8], sizes: &[(usize, u32)]) -> Result<Table> {
    const MODES: [(CutThrough, Checksum); 4] = [
        (CutThrough::Off, Checksum::None),
        (CutThrough::OfBus, Checksum::None),
        (CutThrough::OfBus, Checksum::Full),
        (CutThrough::OfBus, Checksum::Leading),
    ];
    let header = ["bytes", "stored, us", "cut through, us", "Full", "Leading"];
    let mut table = framed(&header);
    for (bytes, mtu) in sizes.iter().copied() {
        let mut cells = vec![bytes.to_string()];
        for (cut, checksum) in MODES {
            let one_way = Pair::start(image, cut, checksum, mtu)?.one_way(bytes, 30)?;
            cells.push(format!("{one_way:.1}"));
        }
        table.add_row(cells);
    }
    Ok(table)
}

/// How long the first datagram of a burst is fetched.
fn bursts(image: &[u8]) -> Result<Table> {
    use burst::Posted;
    let mut table = framed(&["posted", "first datagram fetched in, us"]);
    for posted in [
        Posted::Alone,
        Posted::OneLevel,
        Posted::DoorbellEach,
        Posted::DoorbellForSome,
    ] {
        let time = burst::first_fetch(image, posted, 10_000)?;
        table.add_row([format!("{posted:?}"), format!("{:.1}", time / 1000.0)]);
    }
    Ok(table)
}

/// Latencies of some sizes.
///
/// # Errors
/// As [`run`].
pub fn latencies(image: &[u8], sizes: &[(usize, u32)]) -> Result<Vec<Latency>> {
    const COUNT: u32 = 60;
    let one = |(bytes, mtu)| {
        let mut coarse = Bench::start(image, CutThrough::Off, Checksum::None, mtu)?;
        let mut fine = Bench::start(image, CutThrough::OfBus, Checksum::None, mtu)?;
        Ok(Latency {
            bytes,
            out: [
                coarse.plain_out(bytes, COUNT)?,
                coarse.out(bytes, COUNT)?,
                fine.out(bytes, COUNT)?,
            ],
            into: [
                coarse.plain_arrival(bytes, COUNT)?,
                coarse.arrival(bytes, COUNT)?,
                fine.arrival(bytes, COUNT)?,
            ],
            cuts: fine.cuts()?,
        })
    };
    sizes.iter().copied().map(one).collect()
}

/// Streams of some sizes, of `count` datagrams or of fewer long ones.
///
/// # Errors
/// As [`run`].
pub fn bandwidths(image: &[u8], sizes: &[(usize, u32)], count: usize) -> Result<Vec<Bandwidth>> {
    let one = |(bytes, mtu): (usize, u32)| {
        let count = count.min(40_000_000 / 8 / bytes.max(1)).max(20);
        let out = |checksum| {
            let mut bench = Bench::start(image, CutThrough::OfBus, checksum, mtu)?;
            bench.stream_out(bytes, mtu as usize, count)
        };
        let out = [
            out(Checksum::None)?,
            out(Checksum::Full)?,
            out(Checksum::Leading)?,
        ];
        let into = |checksum| {
            let mut bench = Bench::start(image, CutThrough::Off, checksum, mtu)?;
            bench.stream_in(bytes, mtu as usize, count as u32)
        };
        let (unsummed, all) = into(Checksum::None)?;
        let (summed, all_summed) = into(Checksum::Full)?;
        Ok(Bandwidth {
            bytes,
            mtu,
            out,
            into: [unsummed, summed],
            completed: all.min(all_summed),
        })
    };
    sizes.iter().copied().map(one).collect()
}

impl Figures {
    fn latency_table(&self) -> Table {
        let mut table = framed(&[
            "bytes",
            "out: driver",
            "stored",
            "cut through",
            "in: driver",
            "stored",
            "cut through",
            "one way: driver",
            "stored",
            "cut through",
        ]);
        for row in &self.latency {
            let mut cells = vec![row.bytes.to_string()];
            let all = row.out.iter().chain(&row.into);
            cells.extend(all.map(|time| format!("{time:.1}")));
            cells.extend(row.one_way().map(|time| format!("{time:.1}")));
            table.add_row(cells);
        }
        table
    }

    fn bandwidth_table(&self) -> Table {
        let header = [
            "bytes",
            "MTU",
            "out, None",
            "Full",
            "Leading",
            "in, None",
            "Full",
            "completed",
        ];
        let mut table = framed(&header);
        for row in &self.bandwidth {
            let mut cells = vec![row.bytes.to_string(), row.mtu.to_string()];
            let rates = row.out.iter().chain(&row.into);
            cells.extend(rates.map(|rate| format!("{rate:.0}")));
            cells.push(format!("{:.0} %", row.completed * 100.0));
            table.add_row(cells);
        }
        table
    }
}
