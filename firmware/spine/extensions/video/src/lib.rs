//! Puts the scan lines of videos into windows of a frame buffer, without the host.
//!
//! SPINE paper, section 5.1. A server sends each scan line, or a piece of one, in a frame of its own.
//! The handler has its pixels written from where they lie in the receive buffer into the frame buffer
//! on the bus, by one transfer, clipped to what is seen of the window. So a pixel is on the bus once,
//! and neither the host's CPU nor its memory has to do with it.
//!
//! ```text
//! frame +12  EtherType 0x88B5, 0 (16)
//!       +16  version 1 (8), window (8), 1 for the last piece of a picture (16)
//!       +20  number of the picture
//!       +24  line (16), first column (16)
//!       +28  columns (16), 0 (16)
//!       +32  pixels as the frame buffer has them, 1, 2 or 4 bytes each
//! ```
//!
//! A window is placed by a message, which names what is seen of it in its own lines and columns; who
//! sends it has clipped the window to the screen, and the runtime lets nothing be written outside of
//! the domain's lease.
//!
//! ```text
//! message  window, flags (bit 0: at once), PLACE_WORDS of the placement
//! place    serial, byte of the window's first pixel in the lease (modulo 2^32), bytes from line to
//!          line, first line that is seen, how many are, first column that is seen, column behind
//!          the last one, binary logarithm of a pixel's bytes
//! answer   window, serial
//! ```
//!
//! A placement takes effect between pictures: behind the last piece of one, or with the first piece
//! of the next, and is answered then. The channel works in order, so no byte lands by the old one
//! behind the answer. A placement with the serial of the one in effect is answered again: a run that
//! was cut off has not answered.
#![no_std]

use spine::{
    Argument, Callers, Context, Durable, Endpoint, Ephemeral, HandlerNumber, Message, Verdict,
    Words, accept, add_handler,
};

/// The number of the handler of frames.
pub const LINE: HandlerNumber = HandlerNumber(0);
/// That of the handler of placements.
pub const PLACE: HandlerNumber = HandlerNumber(1);
/// Counter of the domain's: pieces of which nothing is seen.
pub const UNSEEN: u32 = 0;
/// Pieces that are none, or that do not lie in the lease.
pub const REFUSED: u32 = 1;
/// The EtherType: the first of those for local experiments (IEEE 802).
pub const ETHER_TYPE: u16 = 0x88B5;
/// Version of the frame's header.
pub const VERSION: u32 = 1;
/// Windows.
pub const WINDOWS: usize = 8;
/// Byte of the frame where the pixels begin.
pub const PIXELS: u32 = 32;
/// Words of a placement.
pub const PLACE_WORDS: usize = 8;
/// A placement takes effect at once.
pub const AT_ONCE: u32 = 1;

/// No line: none is this one, nor the one in front of another.
const NONE: u32 = 0x8000_0000;

/// The state of all windows, a row of 32 words for each: the word of the placement in effect
/// (0: the first, 8: the second), that of the one that is to be next, the number of the picture and
/// whether one is under way, the line of the last piece and its first byte, and who placed it;
/// then the two placements.
static STATE: Words<{ WINDOWS * 32 }> = Words::new();
const NOW: usize = 0;
const NEXT: usize = 1;
const PICTURE: usize = 2;
const UNDER_WAY: usize = 3;
const ROW: usize = 4;
const AT: usize = 5;
const OWNER: usize = 6;
const PLACES: usize = 8;

/// Words of a placement.
const SERIAL: usize = 0;
const ORIGIN: usize = 1;
const PITCH: usize = 2;
const FIRST_LINE: usize = 3;
const LINES: usize = 4;
const FIRST_COLUMN: usize = 5;
const END_COLUMN: usize = 6;
const DEPTH: usize = 7;

/// Installs the handlers.
pub fn init(durable: &mut Durable) {
    add_handler(durable, line, LINE, Argument::NIL);
    add_handler(durable, place, PLACE, Argument::NIL);
    accept(durable, PLACE, Callers::DRIVER | Callers::APPLICATIONS);
}

#[inline(always)]
fn word(index: usize) -> u32 {
    STATE.at(index % (WINDOWS * 32)).map_or(0, spine::Word::get)
}

/// Stores in the order of the calls, wherever the handler is cut off.
#[inline(always)]
fn set(index: usize, value: u32) {
    if let Some(word) = STATE.at(index % (WINDOWS * 32)) {
        word.report(value);
    }
}

/// A piece of a scan line.
fn line(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let frame = message.buffer();
    let Some([.., header, picture, at, columns]) = frame.words().first_chunk::<8>() else {
        return refuse(context);
    };
    let window = (header >> 16 & 0xFF) as usize;
    if header >> 24 != VERSION || window >= WINDOWS {
        return refuse(context);
    }
    let window = window * 32;
    if word(window + UNDER_WAY) == 0 || word(window + PICTURE) != *picture {
        between(context, window);
        set(window + PICTURE, *picture);
        set(window + UNDER_WAY, 1);
    }
    let verdict = put(context, window, *at, columns >> 16);
    if header & 1 != 0 {
        set(window + UNDER_WAY, 0);
        between(context, window);
    }
    verdict
}

#[inline(never)]
fn unseen(context: &Context) -> Verdict {
    let _ = context.count(UNSEEN);
    Verdict::Consume
}

#[inline(never)]
fn refuse(context: &Context) -> Verdict {
    let _ = context.count(REFUSED);
    Verdict::Drop
}

/// Has what is seen of a piece written.
#[inline(always)]
fn put(context: &Context, window: usize, at: u32, columns: u32) -> Verdict {
    let place = window + PLACES + (word(window + NOW) as usize & 8);
    let (row, column) = (at >> 16, at & 0xFFFF);
    if row.wrapping_sub(word(place + FIRST_LINE)) >= word(place + LINES) {
        return unseen(context);
    }
    let first = column.max(word(place + FIRST_COLUMN));
    let end = column.wrapping_add(columns).min(word(place + END_COLUMN));
    if first >= end {
        return unseen(context);
    }
    let depth = word(place + DEPTH);
    let from = PIXELS.wrapping_add(first.wrapping_sub(column).wrapping_shl(depth));
    let bytes = end.wrapping_sub(first).wrapping_shl(depth);
    let to = start_of(window, place, row).wrapping_add(first.wrapping_shl(depth));
    match context.transfer(from, bytes, to) {
        Ok(()) => Verdict::Consume,
        Err(_) => refuse(context),
    }
}

/// Where a line begins: mostly behind the one before, or it is the same.
#[inline(always)]
fn start_of(window: usize, place: usize, row: u32) -> u32 {
    let (last, at) = (word(window + ROW), word(window + AT));
    let at = if last == row {
        return at;
    } else if last.wrapping_add(1) == row {
        at.wrapping_add(word(place + PITCH))
    } else {
        word(place + ORIGIN).wrapping_add(product(row, word(place + PITCH)))
    };
    // A cut between the stores leaves no line that begins elsewhere.
    set(window + ROW, NONE);
    set(window + AT, at);
    set(window + ROW, row);
    at
}

/// The CPU does not multiply; `times` has 16 bits.
#[inline(never)]
fn product(times: u32, pitch: u32) -> u32 {
    let (mut times, mut pitch, mut sum) = (times, pitch, 0u32);
    while times != 0 {
        if times & 1 != 0 {
            sum = sum.wrapping_add(pitch);
        }
        times >>= 1;
        pitch = pitch.wrapping_shl(1);
    }
    sum
}

/// Between two pictures: the next placement takes effect.
#[inline(always)]
fn between(context: &Context, window: usize) {
    if word(window + NEXT) != word(window + NOW) {
        take_effect(context, window);
    }
}

#[inline(never)]
fn take_effect(context: &Context, window: usize) {
    set(window + ROW, NONE);
    set(window + NOW, word(window + NEXT));
    answer(context, window);
}

/// Says which placement is in effect.
fn answer(context: &Context, window: usize) {
    let place = window + PLACES + (word(window + NOW) as usize & 8);
    let words = [(window / 32) as u32, word(place + SERIAL)];
    // Who has no room does not want to know, and may ask again.
    let _ = context.send(Endpoint(word(window + OWNER)), &words);
}

/// A placement.
fn place(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    let Some([window, flags, new @ ..]) = message.arguments().first_chunk::<{ 2 + PLACE_WORDS }>()
    else {
        return refuse(context);
    };
    let window = *window as usize;
    if window >= WINDOWS || new[DEPTH] > 2 {
        return refuse(context);
    }
    let window = window * 32;
    let now = word(window + NOW) as usize & 8;
    set(window + OWNER, message.source());
    if word(window + PLACES + now + SERIAL) == new[SERIAL] {
        answer(context, window);
        return Verdict::Consume;
    }
    // None is next while its words are stored.
    set(window + NEXT, now as u32);
    let place = window + PLACES + (now ^ 8);
    for (index, value) in new.iter().enumerate() {
        set(place + index, *value);
    }
    set(window + NEXT, now as u32 ^ 8);
    if flags & AT_ONCE != 0 || word(window + UNDER_WAY) == 0 {
        take_effect(context, window);
    }
    Verdict::Consume
}
