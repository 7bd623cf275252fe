//! Rows of boxes over time: who works on which item when, and what leads to what.

mod picture;

pub use picture::Picture;

/// A box: its start and its end in nanoseconds, and the item that it belongs to, if to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// From when.
    pub from: u64,
    /// To when.
    pub to: u64,
    /// The datagram or packet.
    pub item: Option<u32>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Who works.
    pub name: String,
    /// At what.
    pub of: String,
    /// When.
    pub boxes: Vec<Busy>,
}

impl Row {
    /// Of these boxes.
    pub fn new(name: &str, of: &str, boxes: Vec<Busy>) -> Row {
        Row {
            name: name.to_owned(),
            of: of.to_owned(),
            boxes,
        }
    }

    /// The part of the time from its first box to its last one for which it works.
    pub fn share(&self) -> f64 {
        let busy: u64 = self.boxes.iter().map(|busy| busy.to - busy.from).sum();
        let from = self.boxes.first().map_or(0, |first| first.from);
        let to = self.boxes.last().map_or(0, |last| last.to);
        busy as f64 / (to - from).max(1) as f64
    }
}

/// From a time in a row to a time in another one: rows by their numbers, times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// Where it begins.
    pub from: (usize, u64),
    /// Where it ends.
    pub to: (usize, u64),
}

/// From the first box to the last one's end, in nanoseconds.
pub fn nanoseconds(rows: &[Row]) -> u64 {
    let (from, to) = span(rows);
    to - from
}

fn span(rows: &[Row]) -> (u64, u64) {
    let boxes = || rows.iter().flat_map(|row| &row.boxes);
    let from = boxes().map(|busy| busy.from).min();
    let to = boxes().map(|busy| busy.to).max();
    (from.unwrap_or(0), to.unwrap_or(0))
}
