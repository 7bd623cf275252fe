//! Endpoints under other timing profiles, and on slower buses: that of the paper, of 32 bits and 33
//! MHz, is slower than the wire.
//!
//! The bound of a stream is what the bus has time for, or the wire: a datagram's data, its completion,
//! and its descriptor, which comes with others in one transfer.

use super::Bench;
use super::card::HEADERS;
use crate::simulated::tables::framed;
use anyhow::Result;
use comfy_table::Table;
use eudp::{Checksum, CutThrough};
use host_interface::eudp::{COMPLETION_BYTES, DESCRIPTOR_BYTES, HALF};
use serde::Serialize;
use testbed::paths::board_file;
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::workload::predict::Model;

/// The datagrams that are streamed, and the packets of their wire.
const STREAMS: [(usize, u32); 2] = [(1472, 1500), (8972, 9000)];
/// Those that go one way alone: a frame of more than 4096 bytes may be cut through.
const ALONE: [(usize, u32); 3] = [(1, 1500), (1472, 1500), (8972, 9000)];
/// Bits and MHz of slower buses, the paper's the last.
const SLOW: [(u32, u32); 3] = [(64, 33), (32, 66), (32, 33)];

/// A board, and the profile of its timing.
#[derive(Clone, Debug)]
pub struct World {
    /// The profile, or what else is not the board's own.
    pub name: String,
    /// The board.
    pub board: Board,
    /// What takes time on it.
    pub parameters: Parameters,
}

/// The board under each profile, then with the slow buses.
///
/// # Errors
/// If the board file is wrong.
pub fn worlds() -> Result<Vec<World>> {
    let text = board_file()?;
    let mut worlds = Vec::new();
    for name in Parameters::profiles(&text)? {
        worlds.push(World {
            parameters: Parameters::from_toml(&text, &name)?,
            board: Board::default(),
            name,
        });
    }
    worlds.extend(SLOW.map(|(bits, mhz)| World {
        name: format!("{bits} bits, {mhz} MHz"),
        board: Board::with_bus(bits, mhz),
        parameters: Parameters::default(),
    }));
    Ok(worlds)
}

/// A stream in one of them; Mb/s of data.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Stream {
    /// Bytes of a datagram.
    pub bytes: usize,
    /// Out with `None` and with `Full`, and the bound.
    pub out: [f64; 3],
    /// In, and the bound.
    pub into: [f64; 2],
}

/// The bounds of datagrams of `bytes` out and in.
fn bounds(model: &Model, bytes: usize) -> [f64; 2] {
    let descriptor = model.read_on_bus((HALF * DESCRIPTOR_BYTES) as usize) / f64::from(HALF);
    let around = descriptor + model.written_on_bus(COMPLETION_BYTES as usize);
    let moved = [model.read_on_bus(bytes), model.written_on_bus(bytes)];
    moved.map(|data| bytes as f64 * 8000.0 / (data + around).max(model.slot(bytes + HEADERS)))
}

/// One of them.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub world: String,
    /// Microseconds one way of a datagram alone, which may be cut through.
    pub one_way: [f64; ALONE.len()],
    /// Datagrams one behind the other.
    pub streams: [Stream; STREAMS.len()],
}

impl World {
    /// Powers a card up in it.
    ///
    /// # Errors
    /// If the firmware does not start or refuses.
    pub fn start(&self, image: &[u8], endpoint: (CutThrough, Checksum, u32)) -> Result<Bench> {
        Bench::of(
            (self.board.clone(), self.parameters.clone()),
            image,
            endpoint,
        )
    }

    /// Measures streams of `count` datagrams, and the time of one as the median of as many.
    ///
    /// # Errors
    /// If the firmware does not start, or a datagram is lost.
    pub fn measure(&self, image: &[u8], count: u32) -> Result<Row> {
        let model = Model::new(&self.board, &self.parameters);
        let start = |checksum, mtu| self.start(image, (CutThrough::OfBus, checksum, mtu));
        let mut one_way = [0.0; ALONE.len()];
        for (time, (bytes, mtu)) in one_way.iter_mut().zip(ALONE) {
            let mut bench = start(Checksum::None, mtu)?;
            *time = bench.out(bytes, count)? + bench.arrival(bytes, count)?;
        }
        let stream = |(bytes, mtu): (usize, u32)| {
            let out = |checksum| {
                let mut bench = start(checksum, mtu)?;
                bench.stream_out(bytes, mtu as usize, count as usize)
            };
            let [bound_out, bound_in] = bounds(&model, bytes);
            let out = [out(Checksum::None)?, out(Checksum::Full)?, bound_out];
            let mut bench = start(Checksum::None, mtu)?;
            let (into, _) = bench.stream_in(bytes, mtu as usize, count)?;
            anyhow::Ok(Stream {
                bytes,
                out,
                into: [into, bound_in],
            })
        };
        let [short, long] = STREAMS;
        Ok(Row {
            world: self.name.clone(),
            one_way,
            streams: [stream(short)?, stream(long)?],
        })
    }
}

/// The table of all.
pub fn table(rows: &[Row]) -> Table {
    let mut header = vec!["".to_owned()];
    header.extend(ALONE.map(|(bytes, _)| format!("{bytes}: us")));
    for (bytes, _) in STREAMS {
        let columns = ["out", "Full", "bound", "in", "bound"];
        header.extend(columns.map(|column| format!("{bytes}: {column}")));
    }
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = framed(&header);
    for row in rows {
        let mut cells = vec![row.world.clone()];
        cells.extend(row.one_way.map(|time| format!("{time:.1}")));
        for stream in &row.streams {
            let rates = stream.out.iter().chain(&stream.into);
            cells.extend(rates.map(|rate| format!("{rate:.0}")));
        }
        table.add_row(cells);
    }
    table
}
