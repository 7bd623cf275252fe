//! The router on the simulated card: packets beside an oracle, while its table is replaced.
//!
//! Two tables have the same prefixes and other next hops. The host writes one after the other, a
//! few words at a time, while packets arrive. Each packet must go where one of the two tables
//! sends it, and nowhere else: no packet sees half a table.

use super::card::{Kit, SpineCard, Window};
use super::frames::PEER;
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use spine_linker::guard::Guard;
use spine_linker::load::Card;
use spine_linker::routes::{NextHop, Route, replace, table};
use std::collections::BTreeMap;
use std::convert::Infallible;
use testbed::interrupt;
use tigon2_model::is_flow_control;

/// The extension.
pub const FOLDER: &str = "firmware/spine/extensions/router";
/// The microseconds that a run may take.
const WATCHDOG: u32 = 20;
/// Packets that are on their way while a table is written.
const BATCH: u32 = 8;
/// Words that the host writes at once, and cycles between two times.
const WORDS: usize = 16;
const CYCLES: u64 = 400;
/// Cycles between two looks at the wire, and looks for the last packets.
const LOOK: u64 = 4000;
const LOOKS: u32 = 200;
/// Bytes of a packet.
const SHORTEST: usize = 60;
/// EtherType of IPv4.
const IPV4: u16 = 0x0800;

/// What came of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Routed {
    /// Routes of a table, and its bytes.
    pub routes: usize,
    /// Bytes of a table.
    pub bytes: usize,
    /// Packets in all.
    pub packets: u32,
    /// Packets that went on by the first table, and by the second.
    pub forwarded: [u32; 2],
    /// Packets that the host got.
    pub of_host: u32,
    /// Times that the table was replaced.
    pub updates: u32,
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }
}

/// So many routes, with one to the addresses of the testbench; the next hops carry `version`.
///
/// # Errors
/// Never: all are prefixes.
pub fn routes(count: usize, version: u8) -> Result<Vec<Route>> {
    let mut random = Random(0x5350_494E_4521);
    let hop = |number: u32| match number {
        0 => NextHop::Host,
        n => NextHop::Wire([2, 0, 0, version, 0, n as u8]),
    };
    let mut all = vec![Route::new([10, 77, 0, 0].into(), 24, hop(1))?];
    while all.len() < count {
        let length = match random.below(10) {
            0 => 9 + random.below(7),
            1 => 25 + random.below(8),
            n if n < 4 => 16 + random.below(8),
            _ => 24,
        };
        let address = 0x0100_0000 | random.below(0xC000_0000);
        let prefix = address >> (32 - length) << (32 - length);
        all.push(Route::new(prefix.into(), length, hop(random.below(40)))?);
    }
    Ok(all)
}

/// A packet of so many bytes to the addresses of the testbench, with a number.
pub fn packet(station: [u8; 6], bytes: usize, number: u16) -> Vec<u8> {
    packet_to(station, 0x0A4D_0005, bytes, number)
}

/// A packet of `bytes` bytes that the card is to forward, with a number in its identification.
fn packet_to(station: [u8; 6], destination: u32, bytes: usize, number: u16) -> Vec<u8> {
    let mut frame = station.to_vec();
    frame.extend(PEER);
    frame.extend(IPV4.to_be_bytes());
    let mut header = [
        0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 0, 0, 0, 0,
    ];
    let length = bytes.saturating_sub(14) as u16;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[4..6].copy_from_slice(&number.to_be_bytes());
    header[16..].copy_from_slice(&destination.to_be_bytes());
    let sum: u32 = header
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
        .sum();
    let sum = (sum >> 16) + (sum & 0xFFFF);
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    frame.extend(header);
    frame.resize(bytes, number as u8);
    frame
}

/// The next hop of the longest route that fits, by a search of all.
fn oracle(routes: &[Route], address: u32) -> NextHop {
    let fits = routes.iter().filter(|route| route.fits(address));
    let longest = fits.max_by_key(|route| route.length());
    longest.map_or(NextHop::Host, Route::hop)
}

/// A card that goes on while the host writes.
struct Busy(Window);

impl Card for Busy {
    type Error = Infallible;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), Infallible> {
        self.0.read(address, out)
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), Infallible> {
        for (at, piece) in (address..).step_by(4 * WORDS).zip(words.chunks(WORDS)) {
            self.0.write(at, piece)?;
            self.0.0.lock().run(CYCLES);
        }
        Ok(())
    }

    fn ring(&mut self, mailbox: u32) -> Result<(), Infallible> {
        self.0.ring(mailbox)
    }

    fn post(&mut self, mailbox: u32, high: u32, low: u32) -> Result<(), Infallible> {
        self.0.post(mailbox, high, low)
    }

    fn wait(&mut self, turns: u32) -> bool {
        self.0.wait(turns)
    }
}

/// Loads the router with a table, so that all IPv4 packets go to it; returns its domain.
///
/// # Errors
/// If a wall refuses it, or the table is too large.
pub fn load(kit: &Kit, card: &mut SpineCard, table: &[u32]) -> Result<u32> {
    let container = kit.container(FOLDER.as_ref())?;
    let (domain, _) = card.load(kit, &container, &kit.policy(WATCHDOG, 0)?)?;
    replace(&card.loader, &mut card.window, domain, table)?;
    card.guards(&[Guard::ether_type(domain, 0, IPV4)])?;
    Ok(domain)
}

/// Sends so many packets through a router with so many routes, while its table is replaced.
///
/// # Errors
/// A packet that goes elsewhere, is lost or comes twice.
pub fn run(kit: &Kit, count: usize, packets: u32) -> Result<Routed> {
    let both = [routes(count, 0)?, routes(count, 1)?];
    let tables = [table(&both[0])?, table(&both[1])?];
    let mut card = SpineCard::start(kit, None)?;
    let domain = load(kit, &mut card, &tables[0])?;
    let mut random = Random(77);
    let mut routed = Routed {
        routes: count,
        bytes: 4 * tables[0].len(),
        ..Routed::default()
    };
    while routed.packets < packets {
        interrupt::check()?;
        let mut sent = BTreeMap::new();
        for number in 0..BATCH as u16 {
            let route = &both[0][random.below(count as u32) as usize];
            let inside = random.next() & u32::MAX.checked_shr(route.length()).unwrap_or(0);
            let destination = route.prefix() | inside;
            let frame = packet_to(card.nic.station(), destination, SHORTEST, number);
            card.machine.lock().send_frame(0, frame.clone());
            sent.insert(number, (destination, frame));
        }
        routed.packets += BATCH;
        routed.updates += 1;
        let next = &tables[routed.updates as usize % 2];
        replace(&card.loader, &mut Busy(card.window.clone()), domain, next)?;
        for _ in 0..LOOKS {
            if sent.is_empty() {
                break;
            }
            collect(&mut card, &both, &mut sent, &mut routed)?;
            card.machine.lock().run(LOOK);
        }
        ensure!(sent.is_empty(), "packets are lost: {sent:x?}");
    }
    let mut none = BTreeMap::new();
    collect(&mut card, &both, &mut none, &mut routed)?;
    Ok(routed)
}

/// Takes what has arrived at either end, and judges it.
fn collect(
    card: &mut SpineCard,
    both: &[Vec<Route>; 2],
    sent: &mut BTreeMap<u16, (u32, Vec<u8>)>,
    routed: &mut Routed,
) -> Result<()> {
    let mut taken = |frame: &[u8]| {
        let number = frame.get(18..20).context("a frame without a number")?;
        let number = u16::from_be_bytes([number[0], number[1]]);
        sent.remove(&number).context("a packet came twice")
    };
    card.nic.service()?;
    for frame in card.nic.receive_batch(64)? {
        let (destination, before) = taken(&frame)?;
        let hop = oracle(&both[0], destination);
        ensure!(
            frame == before && hop == NextHop::Host,
            "{destination:#010x} came to the host; its next hop is {hop:?}"
        );
        routed.of_host += 1;
    }
    while let Some(frame) = card.machine.lock().take_frame() {
        if is_flow_control(&frame.bytes) {
            continue;
        }
        let (destination, before) = taken(&frame.bytes)?;
        let to = frame
            .bytes
            .first_chunk()
            .map(|address| NextHop::Wire(*address));
        let by = both
            .iter()
            .position(|routes| Some(oracle(routes, destination)) == to);
        let Some(by) = by else {
            bail!("{destination:#010x} went to {to:x?}");
        };
        ensure!(
            frame.bytes[6..12] == before[..6] && frame.bytes[22] == 63,
            "a packet that was not forwarded well: {:x?}",
            frame.bytes
        );
        ensure!(frame.bytes[26..] == before[26..], "its data have changed");
        routed.forwarded[by] += 1;
    }
    Ok(())
}
