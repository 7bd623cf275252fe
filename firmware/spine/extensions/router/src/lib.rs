//! Forwards IPv4 packets from the card, by a table that the host makes.
//!
//! SPINE paper, section 5.2. The table is an LC-trie ("IP-address lookup using LC-tries", Nilsson
//! and Karlsson, 1999) in this extension's region. The host writes a new one into the half that is
//! not in use and then, in one store, the word that says which half is: a packet sees the old
//! table or the new one.
//!
//! ```text
//! word 0     first word of the table in use, 0 for none
//!
//! table +0   the first node: 32 less the bits that it branches by (5 bits; 0 for a leaf), the
//!            first of these bits (5), what follows (22): its children, or its route
//!       +1   next hop 1: Ethernet address, 4 bytes; 2 bytes in the upper half, bit 0: by the peer
//!            card's port. Next hop 2 ... Number 0 is the host.
//! node       as the first one
//! route      prefix; length (6 bits), shorter route (16; 0 for none), next hop (10)
//! shorter    length, shorter route, next hop, as above
//! ```
//!
//! Nodes, routes and shorter routes are named by their words from the table's start. A node says
//! which bits it branches by, where Nilsson's and Karlsson's says how many it skips: a step of the
//! way down needs nothing from the one before. What is above an index in a word is taken off as
//! above a power of two; if the region has that many words, no index into it needs a check.
//!
//! What is not plain is the host's, untouched: options, a lifetime that ends here, a wrong
//! checksum, addresses that are not forwarded (RFC 1812, sections 5.2.1, 5.3.7), and what has no
//! route.
#![no_std]

use spine::headers::IPV4;
use spine::{
    Argument, Context, Durable, Ephemeral, Full, HandlerNumber, Message, Table, Verdict,
    add_handler, table_words,
};

/// The handler's number.
pub const ROUTE: HandlerNumber = HandlerNumber(0);
/// Counter of the domain's: plain packets without a route, or whose route is the host. Those that
/// were forwarded the runtime counts.
pub const UNROUTED: u32 = 1;
/// Words of the region: for 1000 routes and some more, or as many as the builder has chosen.
pub const REGION_WORDS: usize = table_words(1 << 13);
/// Words of a table.
pub const TABLE_WORDS: usize = (REGION_WORDS - 1) / 2;

/// The packet leaves by the peer card.
const BY_PEER: u32 = 1;

/// The region.
pub static REGION: Table<REGION_WORDS> = Table::new();

/// Installs the handler.
pub fn init(durable: &mut Durable) {
    add_handler(durable, route, ROUTE, Argument::NIL);
}

fn route(_: Ephemeral<'_>, message: &Message, context: &Context) -> Verdict {
    match forward(message, context) {
        Some(Ok(())) => Verdict::Consume,
        _ => Verdict::Host,
    }
}

/// Words of a frame that has an IPv4 header: one more than those of that header without options, which
/// ends within the ninth. No frame on the wire is shorter.
pub const HEADERS: usize = 10;

#[inline(always)]
fn forward(message: &Message, context: &Context) -> Option<Result<(), Full>> {
    let frame = message.buffer();
    let words = frame.words().first_chunk::<HEADERS>()?;
    if !is_plain(words, frame.len()) {
        return None;
    }
    let Some(hop) = next_hop(words[7] << 16 | words[8] >> 16) else {
        return Some(context.count(UNROUTED).and(Err(Full)));
    };
    Some(send(context, words, hop))
}

/// Whether a frame of `bytes` bytes that begins with these words is a packet to forward. All is
/// looked at before anything is decided: most packets are, and a branch costs more than a
/// comparison.
#[inline(always)]
pub fn is_plain(words: &[u32; HEADERS], bytes: u32) -> bool {
    let [first, _, _, third, fourth, fifth, sixth, seventh, eighth, _] = *words;
    // To this station alone (RFC 1812, 5.3.4), as the packet leaves from the address that it came to;
    // EtherType, version and length of the header.
    let to_all = first & 0x0100_0000;
    let kind = third >> 8 | to_all == u32::from(IPV4) << 8 | 0x45;
    // From 20 bytes up to what the frame has behind its header.
    let length = fourth >> 16;
    let lengths = length.wrapping_sub(20) <= bytes.wrapping_sub(34);
    // Lifetime: two or more.
    let lives = fifth & 0xFE00 != 0;
    let halves = |word: u32| (word >> 16) + (word & 0xFFFF);
    let sum = (third & 0xFFFF)
        .wrapping_add(eighth >> 16)
        .wrapping_add(halves(fourth))
        .wrapping_add(halves(fifth))
        .wrapping_add(halves(sixth))
        .wrapping_add(halves(seventh));
    let right = halves(halves(sum)) == 0xFFFF;
    let source = is_forwarded(sixth >> 8 & 0xFF);
    let destination = is_forwarded(seventh >> 8 & 0xFF);
    kind & lengths & lives & right & source & destination
}

/// Whether packets from or to an address with this first byte go past a router: not those of this
/// network (0/8) and this host (127/8), of groups and beyond (224/3).
#[inline(always)]
const fn is_forwarded(first: u32) -> bool {
    (first.wrapping_sub(1) < 223) & (first != 127)
}

/// The words of a frame that go on changed: the first three, and three from the sixth on. It goes to the
/// next hop, from the address that it came to, with one hop less.
#[inline(always)]
pub const fn changed(words: &[u32; HEADERS], (high, low): (u32, u32)) -> [[u32; 3]; 2] {
    let stations = [
        high,
        low & 0xFFFF_0000 | words[0] >> 16,
        words[0] << 16 | words[1] >> 16,
    ];
    // The lifetime is the high byte of a halfword of the sum (RFC 1624).
    let sum = (words[6] >> 16) + 0x100;
    let sum = (sum + (sum >> 16)) << 16;
    let header = [
        words[5].wrapping_sub(0x100),
        sum | words[6] & 0xFFFF,
        words[7],
    ];
    [stations, header]
}

/// Sends the frame on.
#[inline(always)]
fn send(context: &Context, words: &[u32; HEADERS], hop: (u32, u32)) -> Result<(), Full> {
    let [stations, header] = changed(words, hop);
    context.patch_three(0, stations)?;
    context.patch_three(5, header)?;
    let (_, low) = hop;
    if low & BY_PEER == 0 {
        context.transmit()
    } else {
        context.forward()
    }
}

/// A word of the region.
#[inline(always)]
fn word(index: u32) -> u32 {
    let index = index as usize % REGION_WORDS.next_power_of_two();
    REGION.get(index).unwrap_or_default()
}

/// The Ethernet address of the next hop, in the form of the table; none for the host, or without
/// a route.
#[inline(always)]
pub fn next_hop(address: u32) -> Option<(u32, u32)> {
    next_hop_in(address, word)
}

/// The same, with the region's words from elsewhere.
#[inline(always)]
pub fn next_hop_in(address: u32, mut word: impl FnMut(u32) -> u32) -> Option<(u32, u32)> {
    let table = word(0);
    if table == 0 {
        return None;
    }
    let hop = lookup(table, address, &mut word) & 0x3FF;
    if hop == 0 {
        return None;
    }
    let at = table.wrapping_add(2 * hop);
    Some((word(at.wrapping_sub(1)), word(at)))
}

/// The second word of the longest route that fits; 0 for none.
#[inline(always)]
fn lookup(table: u32, address: u32, word: &mut impl FnMut(u32) -> u32) -> u32 {
    let mut node = word(table);
    loop {
        let follows = table.wrapping_add(node);
        let shift = node >> 27;
        if shift == 0 {
            return fits(table, follows, address, word);
        }
        let child = address.wrapping_shl(node >> 22).wrapping_shr(shift);
        node = word(follows.wrapping_add(child));
    }
}

/// The same of the route at `at` and those that are shorter.
#[inline(always)]
fn fits(table: u32, at: u32, address: u32, word: &mut impl FnMut(u32) -> u32) -> u32 {
    let differs = word(at) ^ address;
    let mut found = word(at.wrapping_add(1));
    loop {
        let length = found >> 26;
        // So many upper bits; all 32 by a shift of 0.
        if length == 0 || differs.wrapping_shr(0u32.wrapping_sub(length)) == 0 {
            return found;
        }
        let shorter = found >> 10 & 0xFFFF;
        if shorter == 0 {
            return 0;
        }
        found = word(table.wrapping_add(shorter));
    }
}
