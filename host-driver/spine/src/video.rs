//! Videos in windows of a frame buffer: what the extension `spine-video` gets.
//!
//! SPINE paper, section 5.1. A server sends the lines of its pictures in [pieces](line); who owns the
//! screen [places](placement) windows on it. `firmware/spine/extensions/video` has the layouts.

pub mod test_card;
mod text;

pub use text::GeometryError;

/// The extension's name.
pub const VIDEO: &str = "spine-video";
/// EtherType of pieces: the first of those for local experiments.
pub const ETHER_TYPE: u16 = 0x88B5;
/// Windows of a domain.
pub const WINDOWS: u32 = 8;
/// Byte of a frame where the pixels begin.
pub const PIXELS: usize = 32;
/// Bytes of pixels in a frame of 1514 bytes.
pub const PIXEL_BYTES: usize = 1514 - PIXELS;
/// The handler of pieces, and that of placements.
pub const LINE: u8 = 0;
/// See [`LINE`].
pub const PLACE: u8 = 1;
/// A placement's flag: it takes effect at once, not between two pictures.
pub const AT_ONCE: u32 = 1;
const VERSION: u8 = 1;

/// A frame buffer that shows pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Columns.
    pub width: u32,
    /// Lines.
    pub height: u32,
    /// Bytes from line to line.
    pub pitch: u32,
    /// Binary logarithm of a pixel's bytes: 0, 1 or 2.
    pub depth: u32,
}

impl Screen {
    /// Bytes of all of it.
    pub const fn bytes(&self) -> u32 {
        self.pitch * self.height
    }
}

/// Where a window's first pixel is on the screen, and its size; it may reach beyond any edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Column of the screen.
    pub left: i32,
    /// Line of the screen.
    pub top: i32,
    /// Columns.
    pub width: u32,
    /// Lines.
    pub height: u32,
}

/// The arguments of the message that places a window: clipped to the screen.
pub fn placement(
    screen: &Screen,
    number: u32,
    flags: u32,
    serial: u32,
    window: &Window,
) -> [u32; 10] {
    let Window {
        left,
        top,
        width,
        height,
    } = *window;
    let seen = |at: i32, size: u32, most: u32| -> (u32, u32) {
        let (at, most) = (i64::from(at), i64::from(most));
        let first = (-at).max(0);
        let end = (most - at).min(size.into()).max(first);
        (first as u32, end as u32)
    };
    let (first_line, end_line) = seen(top, height, screen.height);
    let (first, end) = seen(left, width, screen.width);
    let origin = i64::from(top) * i64::from(screen.pitch) + (i64::from(left) << screen.depth);
    [
        number,
        flags,
        serial,
        origin as u32,
        screen.pitch,
        first_line,
        end_line - first_line,
        first,
        end,
        screen.depth,
    ]
}

/// A piece of a scan line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The window.
    pub window: u8,
    /// The picture's number.
    pub picture: u32,
    /// The line.
    pub line: u16,
    /// The first column.
    pub column: u16,
    /// Columns.
    pub columns: u16,
    /// It is the last one of its picture.
    pub is_last: bool,
}

/// The frame of a piece without CRC, to a card: its pixels as the frame buffer has them.
pub fn line(to: [u8; 6], from: [u8; 6], piece: &Piece, pixels: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(PIXELS + pixels.len());
    frame.extend(to);
    frame.extend(from);
    frame.extend(ETHER_TYPE.to_be_bytes());
    frame.extend([0, 0, VERSION, piece.window, 0, u8::from(piece.is_last)]);
    frame.extend(piece.picture.to_be_bytes());
    frame.extend(piece.line.to_be_bytes());
    frame.extend(piece.column.to_be_bytes());
    frame.extend(piece.columns.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(pixels);
    frame.resize(frame.len().max(60), 0);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_of_a_window_lies_on_the_screen() {
        let screen = Screen {
            width: 100,
            height: 50,
            pitch: 512,
            depth: 2,
        };
        let place = |left, top| {
            let window = Window {
                left,
                top,
                width: 30,
                height: 20,
            };
            placement(&screen, 3, 0, 9, &window)
        };
        assert_eq!(place(10, 5), [3, 0, 9, 5 * 512 + 40, 512, 0, 20, 0, 30, 2]);
        assert_eq!(place(-8, 45)[5..9], [0, 5, 8, 30]);
        assert_eq!(place(90, -19)[5..9], [19, 1, 0, 10]);
        assert_eq!(place(100, 50)[5..9], [0, 0, 0, 0]);
        assert_eq!(place(-100, -100)[6], 0, "no line is seen");
        assert_eq!(place(-1, 0)[3], 4u32.wrapping_neg());
    }
}
