//! Tables of routes for the extension `router`: LC-tries, made on the host.
//!
//! "IP-address lookup using LC-tries" (Nilsson and Karlsson, 1999). Routes are sorted; those that
//! are a prefix of no other are the trie's leaves, in its *base*, and the others are *shorter*
//! routes to which leaves refer. A node with `branch` bits has 2^branch children one behind the
//! other, and says which bits of an address tell them apart. A node gets as many bits as leave at
//! least five of eight children in use.
//!
//! The extension's page has the layout of the words. [`replace`] writes a table beside the one in
//! use, and then the word that says which is in use. Before it writes it has the firmware answer
//! ([`Loader::synchronize`]): a run that began before the last replacement may still read the words
//! that are about to be written.

mod text;
mod trie;

pub use text::parse;

use self::trie::Trie;
use crate::load::{Card, LoadError, Loader};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use thiserror::Error;

/// Name of the extension that routes by these tables.
pub const ROUTER: &str = "spine-router";

/// Next hops of a table; number 0 is the host.
const HOPS: usize = 1 << 10;
/// Shorter routes, which are numbered from 1 on; and the last word at which one may lie.
const SHORTER: usize = (1 << 16) - 1;
/// Nodes, and leaves.
const NODES: usize = 1 << 22;
/// Where packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextHop {
    /// To the host's stack.
    Host,
    /// To this Ethernet address, out of the port that they came from.
    Wire([u8; 6]),
    /// To this Ethernet address, out of the port of the peer card.
    Peer([u8; 6]),
}

/// The addresses that begin with some bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    bits: u32,
    length: u32,
}

/// Addresses with a common prefix, and where their packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    prefix: Prefix,
    hop: NextHop,
}

/// Why there is no table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RouteError {
    /// A line is no route.
    #[error(
        "line {line}: {text:?} is no route: ADDRESS/LENGTH and an Ethernet address, peer and one, \
         or host"
    )]
    Text {
        /// Which line, from 1 on.
        line: usize,
        /// What it says.
        text: String,
    },
    /// A prefix with bits behind its length, or a length above 32.
    #[error("{0} is no prefix")]
    Prefix(String),
    /// A next hop of another form.
    #[error("{0:?} is no next hop: give an Ethernet address, `peer` and one, or `host`")]
    Hop(String),
    /// More than a table can name.
    #[error("{count} {what} do not fit: at most {most} do")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// How many fit.
        most: usize,
    },
}

impl Prefix {
    /// The addresses that begin with so many bits of `address`.
    ///
    /// # Errors
    /// [`RouteError::Prefix`].
    pub fn new(address: Ipv4Addr, length: u32) -> Result<Prefix, RouteError> {
        let bits = address.to_bits();
        if length > 32 || bits & !mask(length) != 0 {
            return Err(RouteError::Prefix(format!("{address}/{length}")));
        }
        Ok(Prefix { bits, length })
    }
}

impl Route {
    /// A route to the addresses that begin with so many bits of `prefix`.
    ///
    /// # Errors
    /// [`RouteError::Prefix`].
    pub fn new(prefix: Ipv4Addr, length: u32, hop: NextHop) -> Result<Route, RouteError> {
        Ok(Route::to(Prefix::new(prefix, length)?, hop))
    }

    /// A route to these addresses.
    pub const fn to(prefix: Prefix, hop: NextHop) -> Route {
        Route { prefix, hop }
    }

    /// Whether it is about an address.
    pub const fn fits(&self, address: u32) -> bool {
        (address ^ self.prefix.bits) & mask(self.prefix.length) == 0
    }

    /// Its addresses.
    pub const fn addresses(&self) -> Prefix {
        self.prefix
    }

    /// The first of its addresses.
    pub const fn prefix(&self) -> u32 {
        self.prefix.bits
    }

    /// Bits that its addresses have in common.
    pub const fn length(&self) -> u32 {
        self.prefix.length
    }

    /// Where its packets go.
    pub const fn hop(&self) -> NextHop {
        self.hop
    }
}

/// The upper bits, so many.
const fn mask(length: u32) -> u32 {
    if length == 0 {
        0
    } else {
        u32::MAX << (32 - length)
    }
}

/// The words of a table; of several routes to the same prefix the last one counts.
///
/// # Errors
/// [`RouteError::TooMany`].
pub fn table(routes: &[Route]) -> Result<Vec<u32>, RouteError> {
    let too_many = |what, count, most| Err(RouteError::TooMany { what, count, most });
    let mut sorted = BTreeMap::new();
    for route in routes {
        sorted.insert((route.prefix(), route.length()), route.hop);
    }
    let mut hops: Vec<NextHop> = sorted.values().copied().collect();
    hops.push(NextHop::Host);
    hops.sort();
    hops.dedup();
    if hops.len() > HOPS {
        return too_many("next hops", hops.len(), HOPS);
    }
    let mut trie = Trie::default();
    // The routes that are prefixes of the one that comes next, shortest first: its number.
    let mut above: Vec<(u32, u32, u32)> = Vec::new();
    let all: Vec<_> = sorted.into_iter().collect();
    for (index, ((prefix, length), hop)) in all.iter().enumerate() {
        let hop = hops.binary_search(hop).unwrap_or_default() as u32;
        while above
            .last()
            .is_some_and(|(over, bits, _)| (over ^ prefix) & mask(*bits) != 0)
        {
            above.pop();
        }
        let shorter = above.last().map_or(0, |(_, _, number)| *number);
        let word = length << 26 | shorter << 10 | hop;
        let next = all.get(index + 1);
        let is_prefix = next
            .is_some_and(|((next, bits), _)| bits > length && (next ^ prefix) & mask(*length) == 0);
        if is_prefix {
            trie.shorter.push(word);
            above.push((*prefix, *length, trie.shorter.len() as u32));
        } else {
            trie.base.push((*prefix, *length, word));
        }
    }
    if trie.shorter.len() > SHORTER {
        return too_many("shorter routes", trie.shorter.len(), SHORTER);
    }
    if trie.base.len() > NODES {
        return too_many("routes", trie.base.len(), NODES);
    }
    if trie.base.is_empty() {
        // Of length 0: it fits all, and its next hop is the host.
        trie.base.push((0, 0, 0));
    }
    trie.nodes.push(0);
    trie.build(0, trie.base.len(), 0);
    if trie.nodes.len() > NODES {
        return too_many("nodes", trie.nodes.len(), NODES);
    }
    let has_shorter = !trie.shorter.is_empty();
    let words = trie.words(&hops);
    if has_shorter && words.len() > SHORTER {
        return too_many(
            "words of a table with routes within others",
            words.len(),
            SHORTER,
        );
    }
    Ok(words)
}

/// Why a card has no new table.
#[derive(Debug, Error)]
pub enum ReplaceError<E: std::error::Error> {
    /// The table is larger than the extension's region has room for.
    #[error("the table has {words} words, the router has room for {room}")]
    TooLarge {
        /// Words of the table.
        words: usize,
        /// Words of room.
        room: usize,
    },
    /// The card.
    #[error(transparent)]
    Load(#[from] LoadError<E>),
}

/// Has a router, which is loaded as `domain`, use another table: from one packet to the next.
///
/// # Errors
/// [`ReplaceError`]; the router goes on with the table that it has.
pub fn replace<C: Card>(
    loader: &mut Loader,
    card: &mut C,
    domain: u32,
    table: &[u32],
) -> Result<(), ReplaceError<C::Error>> {
    let room = room(loader, domain)?;
    if table.len() > room {
        let words = table.len();
        return Err(ReplaceError::TooLarge { words, room });
    }
    loader.synchronize(card)?;
    let mut in_use = [0];
    loader.read_region(card, domain, 0, &mut in_use)?;
    let start = if in_use == [1] { 1 + room } else { 1 };
    loader.write_region(card, domain, start, table)?;
    loader.write_region(card, domain, 0, &[start as u32])?;
    Ok(())
}

/// Words that a table of a router may have.
///
/// # Errors
/// [`LoadError::NotLoaded`].
pub fn room<E: std::error::Error>(loader: &Loader, domain: u32) -> Result<usize, LoadError<E>> {
    let region = loader.region_words(domain)?;
    Ok(region.saturating_sub(1) / 2)
}
