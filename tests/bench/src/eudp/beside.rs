//! An endpoint and the driver on one card, both without a pause: what each has of the wire.
//!
//! | way | what the endpoint and the driver have |
//! | --- | --- |
//! | out | always a frame to send, of the same size |
//! | in | in turn a frame from the wire, which is always busy |
//!
//! The driver alone is measured beside an endpoint that is open and rests.

use super::card::Bench;
use crate::simulated::tables::framed;
use anyhow::Result;
use comfy_table::Table;
use eudp::{Checksum, CutThrough};
use serde::Serialize;

/// Bytes of a frame around a datagram's data, without its CRC: none of these is padded.
const HEADERS: usize = 42;
/// Bytes of data: frames of 1514 bytes and of 60.
pub const SIZES: [usize; 2] = [1472, 18];

/// Whose frames there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The endpoint's.
    Endpoint,
    /// The driver's.
    Driver,
    /// Both's.
    Both,
}

impl Who {
    /// Whether there are the endpoint's.
    pub const fn has_endpoint(self) -> bool {
        !matches!(self, Who::Driver)
    }

    /// Whether there are the driver's.
    pub const fn has_driver(self) -> bool {
        !matches!(self, Who::Endpoint)
    }

    /// Where [`Passed`] counts them.
    pub const fn kinds(self) -> &'static [usize] {
        match self {
            Who::Endpoint => &[0],
            Who::Driver => &[1],
            Who::Both => &[0, 1],
        }
    }
}

/// Which way the frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Way {
    /// To the wire.
    Out,
    /// From the wire.
    In,
}

impl Way {
    /// Both.
    pub const ALL: [Way; 2] = [Way::Out, Way::In];

    /// What the table says of it.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Out => "out",
            Way::In => "in",
        }
    }
}

/// Frames a second, the endpoint's and the driver's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Passed {
    /// Those that have left, or arrived in the host.
    pub frames: [f64; 2],
    /// Those that were there to pass.
    pub offered: [f64; 2],
    /// Of those that left, the most of one kind with none of the other between them.
    pub longest: [u32; 2],
}

impl Passed {
    /// Of counts in so many nanoseconds.
    pub fn new(frames: [u64; 2], offered: [u64; 2], nanoseconds: u64) -> Passed {
        let second = |counts: [u64; 2]| counts.map(|count| count as f64 * 1e9 / nanoseconds as f64);
        Passed {
            frames: second(frames),
            offered: second(offered),
            longest: [0; 2],
        }
    }
}

/// A size, one way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which way.
    pub way: Way,
    /// Bytes of data.
    pub bytes: usize,
    /// The endpoint alone, and the driver alone.
    pub alone: [Passed; 2],
    /// Both at once.
    pub both: Passed,
}

impl Row {
    /// What the endpoint and the driver have of all frames that pass, and of their bytes.
    pub fn shares(&self) -> [f64; 2] {
        let frames = self.both.frames;
        frames.map(|part| part / frames.iter().sum::<f64>())
    }

    /// What the host gets of the frames that come, of each kind.
    pub fn delivered(&self) -> [f64; 2] {
        let Passed {
            frames, offered, ..
        } = self.both;
        [frames[0] / offered[0], frames[1] / offered[1]]
    }

    /// Mb/s of data: the endpoint and the driver alone, both at once, and their sum.
    pub fn rates(&self) -> [f64; 5] {
        let rate = |frames: f64| frames * self.bytes as f64 * 8.0 / 1e6;
        let [one, other] = self.both.frames;
        let alone = [self.alone[0].frames[0], self.alone[1].frames[1]];
        [alone[0], alone[1], one, other, one + other].map(rate)
    }
}

/// Measures a size.
///
/// # Errors
/// If the firmware does not start, or a frame passes badly.
pub fn measure(image: &[u8], way: Way, bytes: usize) -> Result<Row> {
    let passed = |who| {
        let mut bench = Bench::start(image, CutThrough::OfBus, Checksum::None, 1500)?;
        match way {
            Way::Out => bench.leaving(who, bytes),
            Way::In => bench.arriving(who, bytes),
        }
    };
    Ok(Row {
        way,
        bytes,
        alone: [passed(Who::Endpoint)?, passed(Who::Driver)?],
        both: passed(Who::Both)?,
    })
}

/// All of them.
///
/// # Errors
/// As [`measure`].
pub fn all(image: &[u8]) -> Result<Vec<Row>> {
    let each = |way| SIZES.map(|bytes| measure(image, way, bytes));
    Way::ALL.into_iter().flat_map(each).collect()
}

/// The table of all.
pub fn table(rows: &[Row]) -> Table {
    let mut table = framed(&[
        "way",
        "frame",
        "endpoint alone",
        "driver alone",
        "endpoint",
        "driver",
        "sum",
        "shares",
        "delivered",
    ]);
    let parts = |[one, other]: [f64; 2]| format!("{:.0} %, {:.0} %", one * 100.0, other * 100.0);
    for row in rows {
        let mut cells = vec![row.way.name().to_owned(), (row.bytes + HEADERS).to_string()];
        cells.extend(row.rates().map(|rate| format!("{rate:.1}")));
        cells.push(parts(row.shares()));
        cells.push(match row.way {
            Way::Out => "-".to_owned(),
            Way::In => parts(row.delivered()),
        });
        table.add_row(cells);
    }
    table
}
