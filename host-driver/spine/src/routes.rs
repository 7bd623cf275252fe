//! Tables of routes for the extension `router`: LC-tries, made on the host.
//!
//! "IP-address lookup using LC-tries" (Nilsson and Karlsson, 1999). Routes are sorted; those that
//! are a prefix of no other are the trie's leaves, in its *base*, and the others are *shorter*
//! routes to which leaves refer. A node with `branch` bits has 2^branch children one behind the
//! other, and says which bits of an address tell them apart. A node gets as many bits as leave at
//! least five of eight children in use.
//!
//! The extension's page has the layout of the words. [`replace`] writes a table beside the one in
//! use, and then the word that says which is in use.

mod trie;

use self::trie::Trie;
use crate::load::{Card, LoadError, Loader};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::str::FromStr;
use thiserror::Error;

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

/// Addresses with a common prefix, and where their packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    prefix: u32,
    length: u32,
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
    /// More than a table can name.
    #[error("{count} {what}, at most {most} fit")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// How many fit.
        most: usize,
    },
}

impl Route {
    /// A route to the addresses that begin with so many bits of `prefix`.
    ///
    /// # Errors
    /// [`RouteError::Prefix`].
    pub fn new(prefix: Ipv4Addr, length: u32, hop: NextHop) -> Result<Route, RouteError> {
        let bits = prefix.to_bits();
        if length > 32 || bits & !mask(length) != 0 {
            return Err(RouteError::Prefix(format!("{prefix}/{length}")));
        }
        Ok(Route {
            prefix: bits,
            length,
            hop,
        })
    }

    /// Whether it is about an address.
    pub const fn fits(&self, address: u32) -> bool {
        (address ^ self.prefix) & mask(self.length) == 0
    }

    /// The first of its addresses.
    pub const fn prefix(&self) -> u32 {
        self.prefix
    }

    /// Bits that its addresses have in common.
    pub const fn length(&self) -> u32 {
        self.length
    }

    /// Where its packets go.
    pub const fn hop(&self) -> NextHop {
        self.hop
    }
}

impl FromStr for Route {
    type Err = RouteError;

    /// From `10.0.0.0/8 02:00:00:00:00:05`, `10.0.0.0/8 peer 02:00:00:00:00:05`, or
    /// `10.0.0.1/32 host`.
    fn from_str(text: &str) -> Result<Route, RouteError> {
        let parsed = || {
            let (prefix, hop) = text.split_once(char::is_whitespace)?;
            let (address, length) = prefix.split_once('/')?;
            Some((
                address.parse().ok()?,
                length.parse().ok()?,
                next_hop(hop.trim())?,
            ))
        };
        let (address, length, hop) = parsed().ok_or_else(|| RouteError::Text {
            line: 1,
            text: text.to_owned(),
        })?;
        Route::new(address, length, hop)
    }
}

fn next_hop(text: &str) -> Option<NextHop> {
    if text == "host" {
        return Some(NextHop::Host);
    }
    let (to, text): (fn([u8; 6]) -> NextHop, &str) = match text.strip_prefix("peer ") {
        Some(text) => (NextHop::Peer, text.trim()),
        None => (NextHop::Wire, text),
    };
    let mut address = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut address {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(to(address))
}

/// The routes of a text: one in a line, `#` begins a remark.
///
/// # Errors
/// [`RouteError::Text`], [`RouteError::Prefix`].
pub fn parse(text: &str) -> Result<Vec<Route>, RouteError> {
    let mut routes = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let route = line.parse().map_err(|error| match error {
            RouteError::Text { text, .. } => RouteError::Text {
                line: number + 1,
                text,
            },
            other => other,
        })?;
        routes.push(route);
    }
    Ok(routes)
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
        sorted.insert((route.prefix, route.length), route.hop);
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
    loader: &Loader,
    card: &mut C,
    domain: u32,
    table: &[u32],
) -> Result<(), ReplaceError<C::Error>> {
    let region = loader.region_words(domain)?;
    let room = region.saturating_sub(1) / 2;
    if table.len() > room {
        let words = table.len();
        return Err(ReplaceError::TooLarge { words, room });
    }
    let mut in_use = [0];
    loader.read_region(card, domain, 0, &mut in_use)?;
    let start = if in_use == [1] { 1 + room } else { 1 };
    loader.write_region(card, domain, start, table)?;
    loader.write_region(card, domain, 0, &[start as u32])?;
    Ok(())
}
