//! A stream from one card to another while the sender's bus stalls within transactions.
//!
//! | what | where it is counted |
//! | --- | --- |
//! | frames that were cut off | the firmware (`BlockWord::Aborted`) |
//! | frames that ended within | the sender's MAC, at 0xCC |
//! | frames with a wrong CRC | the other card's MAC, at 0xC8 |
//! | frames that were sent again | frames that the other card's wire has brought, less the datagrams |
//!
//! The data of each datagram is another one than that of those before, so an old byte is a wrong one.

use super::Pair;
use super::card::PORT;
use crate::simulated::tables::framed;
use anyhow::{Result, ensure};
use comfy_table::Table;
use eudp::{Checksum, Completion, CutThrough, Status};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Serialize;
use tigon2_chip::mac::MacStatistic;
use tigon2_sim::timing::{BusStalls, Parameters};

/// Bytes of a datagram, and of the packets of its wire.
const BYTES: usize = 8972;
const MTU: u32 = 9000;
/// A frame of these bytes is on the bus in 18 transactions: one frame in ten stalls.
pub const STALLS: BusStalls = BusStalls {
    every: 180,
    least: 5,
    most: 50_000,
};
/// Buses of [`soak`]: most frames meet a stall that is about as long as they have time for.
const SOAKED: [BusStalls; 5] = [
    within(20, 5, 500),
    within(20, 100, 2000),
    within(10, 1000, 3000),
    within(20, 5, 5000),
    within(60, 5, 50_000),
];

const fn within(every: u32, least: u64, most: u64) -> BusStalls {
    BusStalls { every, least, most }
}

/// Datagrams of a stream.
pub const COUNT: u32 = 1000;
/// Buffers of the receiver, and the data of as many datagrams.
const BUFFERS: u32 = 16;
/// Bytes from one to the next.
const APART: u32 = 0x1_0000;
/// Nanoseconds in which a datagram arrives.
const PATIENCE: u64 = 100_000_000;

/// How many datagrams are on their way at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Posted {
    /// One: the next is posted when it has arrived, so it may be cut through.
    Single,
    /// Twelve: most are whole before the wire is free for them.
    Ahead,
}

impl Posted {
    /// Both.
    pub const ALL: [Posted; 2] = [Posted::Single, Posted::Ahead];

    /// What the table says of it.
    pub const fn name(self) -> &'static str {
        match self {
            Posted::Single => "one at a time",
            Posted::Ahead => "twelve at a time",
        }
    }

    const fn waiting(self) -> u32 {
        match self {
            Posted::Single => 1,
            Posted::Ahead => 12,
        }
    }
}

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stream {
    /// Mb/s of data.
    pub rate: f64,
    /// BusStalls of the sender's bus for each datagram.
    pub stalls: f64,
    /// Frames that left early.
    pub through: u32,
    /// Frames that the firmware has cut off.
    pub aborted: u32,
    /// The same as the sender's MAC has counted, as the receiver's has, and frames sent again.
    pub seen: [u32; 3],
}

/// The stream stored and cut through.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    /// How it is posted.
    pub posted: Posted,
    /// Stored.
    pub stored: Stream,
    /// Cut through.
    pub through: Stream,
}

impl Row {
    /// What cutting through leaves of the rate.
    pub fn part(&self) -> f64 {
        self.through.rate / self.stored.rate
    }
}

/// Measures both streams of `count` datagrams.
///
/// # Errors
/// As [`stream`].
pub fn measure(image: &[u8], posted: Posted, count: u32) -> Result<Row> {
    let stream = |cut| stream(image, (cut, STALLS), posted, count);
    Ok(Row {
        posted,
        stored: stream(CutThrough::Off)?,
        through: stream(CutThrough::OfBus)?,
    })
}

/// Sends about `count` datagrams, one at a time and cut through, on several buses. Returns how many were
/// cut off.
///
/// # Errors
/// As [`stream`], and if a frame is counted in one place and not in another.
pub fn soak(image: &[u8], count: u32) -> Result<u32> {
    let mut aborted = 0;
    for stalls in SOAKED {
        let each = count.div_ceil(SOAKED.len() as u32).max(2);
        let how = (CutThrough::OfBus, stalls);
        let stream = stream(image, how, Posted::Single, each)?;
        let is_same = stream.seen == [stream.aborted; 3];
        ensure!(is_same, "{stalls:?}: {stream:?}");
        aborted += stream.aborted;
    }
    Ok(aborted)
}

/// Sends `count` datagrams, and looks at each byte where they arrive.
///
/// # Errors
/// If one is lost, comes twice, late, in another order or with a wrong byte.
pub fn stream(
    image: &[u8],
    (cut, stalls): (CutThrough, BusStalls),
    posted: Posted,
    count: u32,
) -> Result<Stream> {
    let parameters = Parameters {
        stalls,
        ..Parameters::default()
    };
    let parameters = [parameters, Parameters::default()];
    let mut pair = Pair::of(parameters, image, cut, Checksum::None, MTU)?;
    let [sender, receiver] = pair.hosts();
    let mut random = SplitMix64::seed_from_u64(1);
    let mut data = vec![vec![0; BYTES]; BUFFERS as usize];
    for (number, bytes) in (0..BUFFERS).zip(&mut data) {
        random.fill_bytes(bytes);
        sender
            .memory()
            .write_bytes((number * APART) as usize, bytes)?;
        receiver.lend(number)?;
    }
    receiver.settle()?;
    let machines = [sender.machine().clone(), receiver.machine().clone()];
    let stalled = || {
        let machine = machines[0].lock();
        machine.timing().map_or(0, |timed| timed.dma.stalls().0)
    };
    let came = || {
        let received = machines[1].lock().received();
        received.accepted + received.dropped
    };
    let (stalls, frames) = (stalled(), came());
    let (mut sent, mut done, mut arrived) = (0, 0, 0);
    let (mut first, mut last) = (0, sender.now());
    while arrived < count {
        while sent < count && sent - arrived < posted.waiting() {
            sender.post_from((sent % BUFFERS) * APART, PORT, BYTES, sent)?;
            sent += 1;
        }
        while let Some(completion) = sender.poll()? {
            let expected = Completion::Sent {
                cookie: done,
                status: Status::Done,
            };
            ensure!(completion == expected, "{completion:?}, not {expected:?}");
            done += 1;
        }
        while let Some(completion) = receiver.poll()? {
            let Completion::Received { cookie, status, .. } = completion else {
                anyhow::bail!("{completion:?}");
            };
            ensure!((cookie, status) == (arrived % BUFFERS, Status::Done));
            let right = receiver.received(cookie, BYTES)? == data[cookie as usize];
            ensure!(right, "datagram {arrived} has a wrong byte");
            receiver.lend(cookie)?;
            last = sender.now();
            first = if arrived == 0 { last } else { first };
            arrived += 1;
        }
        let waits = sender.now().saturating_sub(last);
        ensure!(waits < PATIENCE, "datagram {arrived} does not arrive");
        sender.pass();
    }
    sender.settle()?;
    let [through, aborted] = sender.cuts()?;
    receiver.cuts()?;
    let counted = |machine: usize, statistic: MacStatistic| {
        machines[machine].lock().word(statistic.nic_address())
    };
    Ok(Stream {
        rate: f64::from(count - 1) * BYTES as f64 * 8000.0 / (last - first).max(1) as f64,
        stalls: (stalled() - stalls) as f64 / f64::from(count),
        through,
        aborted,
        seen: [
            counted(0, MacStatistic::Underruns),
            counted(1, MacStatistic::CrcErrors),
            (came() - frames) as u32 - count,
        ],
    })
}

/// The table of all.
pub fn table(rows: &[Row]) -> Table {
    let mut table = framed(&[
        "posted",
        "stored",
        "cut through",
        "part",
        "left early",
        "cut off",
    ]);
    for row in rows {
        table.add_row([
            row.posted.name().to_owned(),
            format!("{:.0}", row.stored.rate),
            format!("{:.0}", row.through.rate),
            format!("{:.2}", row.part()),
            row.through.through.to_string(),
            row.through.aborted.to_string(),
        ]);
    }
    table
}
