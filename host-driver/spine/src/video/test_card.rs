//! The test card: pictures that a server without a camera sends.
//!
//! ```text
//! +----------------------+  a border, white; first colour of the bars: by the window's number
//! | eight bars   |       |
//! |              | line  |  white, from left to right by the picture's number
//! |----------------------|
//! | black to white       |
//! +----------------------+
//! ```

use super::{PIXEL_BYTES, Piece};

/// White, yellow, cyan, green, magenta, red, blue, black: which of red, green, blue they have.
const BARS: [[bool; 3]; 8] = [
    [true, true, true],
    [true, true, false],
    [false, true, true],
    [false, true, false],
    [true, false, true],
    [true, false, false],
    [false, false, true],
    [false, false, false],
];
/// Columns by which the line moves from picture to picture.
const STEP: u32 = 4;
const WHITE: [u8; 3] = [0xFF; 3];

/// A picture of the test card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestCard {
    /// The window's number.
    pub window: u8,
    /// The picture's number.
    pub picture: u32,
    /// Columns.
    pub width: u32,
    /// Lines.
    pub height: u32,
}

impl TestCard {
    /// Red, green and blue of a pixel.
    pub fn colour(&self, line: u32, column: u32) -> [u8; 3] {
        let (width, height) = (self.width.max(1), self.height.max(1));
        let is_border = line == 0 || column == 0 || line + 1 >= height || column + 1 >= width;
        let moved = self.picture.wrapping_mul(STEP) % width;
        if is_border || column == moved {
            return WHITE;
        }
        if line >= height - height / 4 {
            return [(column * 0x100 / width) as u8; 3];
        }
        let bar = (column * BARS.len() as u32 / width + u32::from(self.window)) as usize;
        let bar = BARS.get(bar % BARS.len()).copied().unwrap_or_default();
        bar.map(|is_lit| if is_lit { 0xC0 } else { 0 })
    }

    /// The pieces of a line, each with its pixels as a frame buffer of this depth has them.
    pub fn pieces(&self, line: u32, depth: u32) -> impl Iterator<Item = (Piece, Vec<u8>)> + use<> {
        let card = *self;
        let most = (PIXEL_BYTES >> depth) as u32;
        (0..card.width).step_by(most as usize).map(move |first| {
            let end = (first + most).min(card.width);
            let piece = Piece {
                window: card.window,
                picture: card.picture,
                line: line as u16,
                column: first as u16,
                columns: (end - first) as u16,
                is_last: line + 1 == card.height && end == card.width,
            };
            let pixels = (first..end).flat_map(|column| pixel(card.colour(line, column), depth));
            (piece, pixels.collect())
        })
    }
}

/// A pixel as a frame buffer has it, the low byte first: 3, 3 and 2 bits of red, green and blue; 5, 6
/// and 5; or 8 each.
pub fn pixel([red, green, blue]: [u8; 3], depth: u32) -> impl Iterator<Item = u8> + use<> {
    let [r, g, b] = [red, green, blue].map(u32::from);
    let word = match depth {
        0 => r >> 5 << 5 | g >> 5 << 2 | b >> 6,
        1 => r >> 3 << 11 | g >> 2 << 5 | b >> 3,
        _ => r << 16 | g << 8 | b,
    };
    word.to_le_bytes().into_iter().take(1 << depth)
}

/// The colour of a pixel of a frame buffer.
pub fn colour(bytes: &[u8]) -> [u8; 3] {
    let word = bytes
        .iter()
        .rev()
        .fold(0u32, |word, byte| word << 8 | u32::from(*byte));
    // All bits set are the brightest there is.
    let part = |shift: u32, bits: u32| {
        let most = (1 << bits) - 1;
        ((word >> shift & most) * 0xFF / most) as u8
    };
    match bytes.len() {
        1 => [part(5, 3), part(2, 3), part(0, 2)],
        2 => [part(11, 5), part(5, 6), part(0, 5)],
        _ => [part(16, 8), part(8, 8), part(0, 8)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: TestCard = TestCard {
        window: 1,
        picture: 30,
        width: 800,
        height: 40,
    };

    #[test]
    fn a_picture_has_border_bars_grey_and_a_line_that_moves() {
        assert_eq!(CARD.colour(0, 300), WHITE);
        assert_eq!(CARD.colour(39, 300), WHITE);
        assert_eq!(CARD.colour(10, 799), WHITE);
        assert_eq!(CARD.colour(10, 120), WHITE, "the line");
        assert_eq!(CARD.colour(10, 50), [0xC0, 0xC0, 0], "the second bar");
        assert_eq!(CARD.colour(35, 400), [0x80; 3], "half-way to white");
    }

    #[test]
    fn a_line_comes_in_pieces_that_join() {
        for depth in 0..3 {
            let mut next = 0;
            for (piece, pixels) in CARD.pieces(39, depth) {
                assert_eq!(u32::from(piece.column), next);
                assert_eq!(pixels.len(), usize::from(piece.columns) << depth);
                next += u32::from(piece.columns);
                assert_eq!(piece.is_last, next == CARD.width);
            }
            assert_eq!(next, CARD.width);
        }
    }

    #[test]
    fn white_and_black_stay_so_at_any_depth() {
        for depth in 0..3 {
            for wanted in [WHITE, [0; 3], [0xFF, 0, 0], [0, 0xFF, 0], [0, 0, 0xFF]] {
                let bytes: Vec<u8> = pixel(wanted, depth).collect();
                assert_eq!(colour(&bytes), wanted, "depth {depth}");
            }
        }
    }
}
