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
//! table +0   first word of the routes, from the table's start
//!       +1   first word of the shorter routes
//!       +2   first word of the next hops
//!       +3   nodes: branch (5 bits), skip (5), what follows (22)
//! route      prefix; length (6 bits), shorter route (16; 0 for none), next hop (10)
//! shorter    length, shorter route, next hop, as above
//! next hop   Ethernet address: 4 bytes; 2 bytes in the upper half. Number 0 is the host.
//! ```
//!
//! What is not plain is the host's, untouched: options, a lifetime that ends here, a wrong
//! checksum, addresses that are not forwarded (RFC 1812, sections 5.2.1, 5.3.7), and what has no
//! route.
#![no_std]

use spine::headers::{IPV4, Ipv4};
use spine::{
    Argument, Context, Durable, Ephemeral, Full, HandlerNumber, Message, Table, Verdict,
    add_handler,
};

/// The handler's number.
pub const ROUTE: HandlerNumber = HandlerNumber(0);
/// Counter of the domain's: packets that were forwarded.
pub const FORWARDED: u32 = 0;
/// Counter of the domain's: plain packets without a route, or whose route is the host.
pub const UNROUTED: u32 = 1;
/// Words of a table.
pub const TABLE_WORDS: usize = 2700;
/// Words of the region.
pub const REGION_WORDS: usize = 1 + 2 * TABLE_WORDS;

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

fn forward(message: &Message, context: &Context) -> Option<Result<(), Full>> {
    let frame = message.buffer();
    let ip: Ipv4<'_> = frame.view(14)?;
    let words = frame.words().first_chunk::<9>()?;
    let length = u32::from(ip.total_length());
    let plain = words[3] >> 16 == u32::from(IPV4)
        && ip.version_and_length() == 0x45
        && ip.time_to_live() > 1
        && length >= 20
        && length <= frame.len() - 14
        && sum(words) == 0xFFFF
        && is_forwarded(ip.source())
        && is_forwarded(ip.destination());
    if !plain {
        return None;
    }
    let Some((high, low)) = next_hop(ip.destination()) else {
        return Some(context.count(UNROUTED).and(Err(Full)));
    };
    Some(send(context, words, high, low))
}

/// The sum of the header's halfwords, folded: 0xFFFF if its checksum is right. It begins in the
/// middle of a word.
fn sum(words: &[u32; 9]) -> u32 {
    let mut sum = (words[3] & 0xFFFF) + (words[8] >> 16);
    for word in &words[4..8] {
        sum += (word >> 16) + (word & 0xFFFF);
    }
    sum = (sum >> 16) + (sum & 0xFFFF);
    (sum >> 16) + (sum & 0xFFFF)
}

/// Whether packets from or to an address go past a router: not those of this network (0/8) and
/// this host (127/8), of groups and beyond (224/3).
fn is_forwarded(address: u32) -> bool {
    let first = address >> 24;
    first != 0 && first != 127 && first < 224
}

/// Sends the frame on: to the next hop, from the address that it came to, with one hop less.
fn send(context: &Context, words: &[u32; 9], high: u32, low: u32) -> Result<(), Full> {
    context.patch(0, high)?;
    context.patch(1, low & 0xFFFF_0000 | words[0] >> 16)?;
    context.patch(2, words[0] << 16 | words[1] >> 16)?;
    context.patch(5, words[5] - 0x100)?;
    // The lifetime is the high byte of a halfword of the sum (RFC 1624).
    let sum = (words[6] >> 16) + 0x100;
    let sum = (sum + (sum >> 16)) & 0xFFFF;
    context.patch(6, sum << 16 | words[6] & 0xFFFF)?;
    context.transmit()?;
    context.count(FORWARDED)
}

fn word(index: u32) -> Option<u32> {
    REGION.get(index as usize)
}

/// The bits of a word from `at` on, so many: at least one.
const fn bits(word: u32, at: u32, count: u32) -> u32 {
    word << (at & 31) >> ((32 - count) & 31)
}

/// The Ethernet address of the next hop, in the form of the table; none for the host, or without
/// a route.
pub fn next_hop(address: u32) -> Option<(u32, u32)> {
    let table = word(0)?;
    if table == 0 {
        return None;
    }
    let hop = lookup(table, address)? & 0x3FF;
    if hop == 0 {
        return None;
    }
    let at = table + word(table + 2)? + 2 * hop;
    Some((word(at)?, word(at + 1)?))
}

/// The second word of the longest route that fits.
fn lookup(table: u32, address: u32) -> Option<u32> {
    let nodes = table + 3;
    let mut node = word(nodes)?;
    let mut position = node >> 22 & 31;
    while node >> 27 != 0 {
        let branch = node >> 27;
        let child = bits(address, position, branch);
        node = word(nodes + (node & 0x3F_FFFF) + child)?;
        position += branch + (node >> 22 & 31);
    }
    let at = table + word(table)? + 2 * (node & 0x3F_FFFF);
    let differs = word(at)? ^ address;
    let mut found = word(at + 1)?;
    loop {
        let length = found >> 26;
        if length == 0 || bits(differs, 0, length) == 0 {
            return Some(found);
        }
        let shorter = found >> 10 & 0xFFFF;
        if shorter == 0 {
            return None;
        }
        found = word(table + word(table + 1)? + shorter)?;
    }
}
