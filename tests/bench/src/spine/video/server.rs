//! The server of some streams: sends each line when it is due.

use super::Stage;

/// Nanoseconds of frames that are on their way to the card, at most.
const AHEAD: u64 = 200_000;

/// Streams of pictures in windows of one size.
pub struct Server {
    size: (u32, u32),
    start: u64,
    /// Nanoseconds from line to line of a stream; 0: as soon as the wire is free.
    line_ns: f64,
    /// Lines of each stream that were sent.
    lines: Vec<u64>,
    /// Pieces that were sent.
    pub pieces: u64,
    /// Bytes of pixels in them.
    pub pixels: u64,
}

impl Server {
    /// Begins now with so many streams, each of `rate` megabits of pixels a second; with 0 they share
    /// the wire.
    pub fn new(stage: &Stage, streams: usize, rate: f64, size: (u32, u32)) -> Server {
        let line = f64::from(size.0 << stage.screen.depth);
        Server {
            size,
            start: stage.now(),
            line_ns: if rate == 0.0 { 0.0 } else { line * 8e3 / rate },
            lines: vec![0; streams],
            pieces: 0,
            pixels: 0,
        }
    }

    /// When the next line is due, and whose it is.
    fn next(&self) -> Option<(u64, usize)> {
        let due = |(stream, line): (usize, &u64)| {
            let at = self.start + (*line as f64 * self.line_ns) as u64;
            (at, *line, stream)
        };
        let first = self.lines.iter().enumerate().map(due).min();
        first.map(|(at, _, stream)| (at, stream))
    }

    /// Sends what is due in the next while, and before `end`; lets that while pass.
    pub fn go_on(&mut self, stage: &mut Stage, end: u64, nanoseconds: u64) {
        let now = stage.now();
        while let Some((at, stream)) = self.next() {
            let at = at.max(stage.due);
            if at >= end || at > now + nanoseconds + AHEAD {
                break;
            }
            self.line(stage, at, stream);
        }
        stage.pass(nanoseconds);
    }

    fn line(&mut self, stage: &mut Stage, at: u64, stream: usize) {
        let (picture, row) = self.position(stream);
        for piece in stage.pieces(stream as u8, picture, row, self.size) {
            stage.send(at, piece);
            self.pieces += 1;
        }
        self.pixels += u64::from(self.size.0) << stage.screen.depth;
        if let Some(lines) = self.lines.get_mut(stream) {
            *lines += 1;
        }
    }

    /// The picture of a stream's next line, and the line.
    pub fn position(&self, stream: usize) -> (u32, u32) {
        let lines = self.lines.get(stream).copied().unwrap_or_default();
        let height = u64::from(self.size.1);
        ((lines / height) as u32, (lines % height) as u32)
    }

    /// Sends what is left of the pictures under way, and a whole one more of each stream, when it is
    /// due; returns their numbers.
    pub fn finish(&mut self, stage: &mut Stage) -> Vec<u32> {
        let streams = 0..self.lines.len();
        let last: Vec<u32> = streams.map(|stream| self.position(stream).0 + 1).collect();
        while let Some((at, stream)) = self.next() {
            let is_behind = last
                .get(stream)
                .is_some_and(|last| self.position(stream).0 > *last);
            if is_behind {
                break;
            }
            self.line(stage, at, stream);
            let now = stage.now();
            stage.pass(at.saturating_sub(now));
        }
        stage.settle();
        last
    }
}
