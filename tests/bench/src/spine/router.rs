//! The router on the simulated card: packets beside an oracle, while its table is replaced.
//!
//! Three tables have other prefixes and other next hops, so the words of one are none of another's.
//! The host writes one after the other, a few words at a time, while packets arrive. Each packet
//! must go where one of the tables that are in use meanwhile sends it, and nowhere else: no packet
//! sees half a table.

use super::card::{Kit, SpineCard};
use super::frames::PEER;
use super::window::{CardError, Window};
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use spine_linker::guard::Guard;
use spine_linker::load::Card;
use spine_linker::routes::{NextHop, Route, replace, table};
use std::collections::BTreeMap;
use testbed::interrupt;
use tigon2_model::is_flow_control;
use tigon2_sim::Machine;

/// The extension.
pub const FOLDER: &str = "firmware/spine/extensions/router";
/// The microseconds that a run may take.
const WATCHDOG: u32 = 20;
/// Tables that are written one right behind the other.
const BATCH: u32 = 8;
/// Words that the host writes at once, cycles between two times on average, and times between two packets:
/// somewhat fewer packets than the router carries.
const WORDS: usize = 16;
const CYCLES: u32 = 400;
const PIECES: u32 = 4;
/// Cycles between two looks at the wire, and looks for the last packets.
const LOOK: u64 = 4000;
const LOOKS: u32 = 200;
/// Tables that take turns.
pub const TABLES: usize = 3;
/// A millisecond, in cycles, and packets that arrive in it.
const MILLISECOND: u64 = 88_000;
const PER_MILLISECOND: u32 = 40;
/// Bytes of a packet.
const SHORTEST: usize = 60;
/// EtherType of IPv4.
pub(super) const IPV4: u16 = 0x0800;

/// What came of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Routed {
    /// Routes of a table, and its bytes.
    pub routes: usize,
    /// Bytes of a table.
    pub bytes: usize,
    /// Packets in all.
    pub packets: u32,
    /// Packets that went on by each table.
    pub forwarded: [u32; TABLES],
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

/// So many routes, with one to the addresses of the testbench; the next hops carry `version`, and
/// each version has other prefixes.
///
/// # Errors
/// Never: all are prefixes.
pub fn routes(count: usize, version: u8) -> Result<Vec<Route>> {
    let mut random = Random(0x5350_494E_4521 ^ u64::from(version) << 40);
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
pub fn packet_to(station: [u8; 6], destination: u32, bytes: usize, number: u16) -> Vec<u8> {
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
pub fn oracle(routes: &[Route], address: u32) -> NextHop {
    let fits = routes.iter().filter(|route| route.fits(address));
    let longest = fits.max_by_key(|route| route.length());
    longest.map_or(NextHop::Host, Route::hop)
}

/// A card that goes on, and gets packets, while the host writes.
struct Busy<'a> {
    window: Window,
    stream: &'a mut Stream,
    pieces: u32,
}

impl Card for Busy<'_> {
    type Error = CardError;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), Self::Error> {
        self.window.read(address, out)
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), Self::Error> {
        for (at, piece) in (address..).step_by(4 * WORDS).zip(words.chunks(WORDS)) {
            self.window.write(at, piece)?;
            let mut machine = self.window.machine.lock();
            self.pieces += 1;
            if self.pieces.is_multiple_of(PIECES) {
                self.stream.send(&mut machine, 1);
            }
            // Now and then the host is quicker than a run.
            if self.stream.random.below(8) == 0 {
                machine.run(u64::from(self.stream.random.below(16 * CYCLES)));
            }
        }
        Ok(())
    }

    fn ring(&mut self, mailbox: u32) -> Result<(), Self::Error> {
        self.window.ring(mailbox)
    }

    fn post(&mut self, mailbox: u32, high: u32, low: u32) -> Result<(), Self::Error> {
        self.window.post(mailbox, high, low)
    }

    fn wait(&mut self, turns: u32) -> bool {
        self.window.wait(turns)
    }

    fn lease_window(&mut self, address: u32) -> Result<(), Self::Error> {
        self.window.lease_window(address)
    }

    fn take_back_window(&mut self) {
        self.window.take_back_window();
    }
}

/// Loads the router with a table, so that all IPv4 packets go to it; returns its domain.
///
/// # Errors
/// If a wall refuses it, or the table is too large.
pub fn load(kit: &Kit, card: &mut SpineCard, table: &[u32]) -> Result<u32> {
    let container = kit.container(FOLDER.as_ref())?;
    let (domain, _) = card.load(kit, &container, &kit.policy(WATCHDOG, 0)?)?;
    replace(&mut card.loader, &mut card.window, domain, table)?;
    card.guards(&[Guard::ether_type(domain, 0, IPV4)])?;
    Ok(domain)
}

/// When the host replaces the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// One table right behind the other.
    AtOnce,
    /// Once in a millisecond.
    EachMillisecond,
}

/// A router on a card, and the tables that take turns.
struct Story {
    card: SpineCard,
    domain: u32,
    tables: [Vec<u32>; TABLES],
    updates: u32,
    stream: Stream,
    forwarded: [u32; TABLES],
    of_host: u32,
}

/// Packets to a router, and those that are on their way.
struct Stream {
    station: [u8; 6],
    all: [Vec<Route>; TABLES],
    /// Tables that are in use, or may be by the time that a packet is routed.
    in_use: [bool; TABLES],
    sent: BTreeMap<u16, Packet>,
    random: Random,
    packets: u32,
}

/// A packet on its way.
#[derive(Debug)]
struct Packet {
    destination: u32,
    frame: Vec<u8>,
    /// Tables that were in use since it was sent, by their numbers.
    tables: [bool; TABLES],
}

/// Sends so many packets through a router with so many routes, while its table is replaced.
///
/// # Errors
/// A packet that goes elsewhere, is lost or comes twice.
pub fn run(kit: &Kit, count: usize, packets: u32, pace: Pace) -> Result<Routed> {
    let all = [routes(count, 0)?, routes(count, 1)?, routes(count, 2)?];
    let mut tables = [const { Vec::new() }; TABLES];
    for (table_of, routes) in tables.iter_mut().zip(&all) {
        *table_of = table(routes)?;
    }
    let mut card = SpineCard::start(kit, None)?;
    let domain = load(kit, &mut card, &tables[0])?;
    let bytes = 4 * tables.iter().map(Vec::len).max().unwrap_or_default();
    let mut story = Story {
        stream: Stream {
            station: card.nic.station(),
            all,
            in_use: [true, false, false],
            sent: BTreeMap::new(),
            random: Random(77),
            packets: 0,
        },
        card,
        domain,
        tables,
        updates: 0,
        forwarded: [0; TABLES],
        of_host: 0,
    };
    while story.stream.packets < packets {
        interrupt::check()?;
        match pace {
            Pace::AtOnce => {
                for _ in 0..BATCH {
                    story.replace()?;
                }
            }
            Pace::EachMillisecond => story.millisecond()?,
        }
        story.finish()?;
    }
    Ok(Routed {
        routes: count,
        bytes,
        packets: story.stream.packets,
        forwarded: story.forwarded,
        of_host: story.of_host,
        updates: story.updates,
    })
}

impl Stream {
    /// Has packets arrive, one behind the other.
    fn send(&mut self, machine: &mut Machine, count: u32) {
        for _ in 0..count {
            let number = self.packets as u16;
            let destination = self.destination();
            let frame = packet_to(self.station, destination, SHORTEST, number);
            machine.send_frame(0, frame.clone());
            let packet = Packet {
                destination,
                frame,
                tables: self.in_use,
            };
            self.sent.insert(number, packet);
            self.packets += 1;
        }
    }

    /// An address that a route of a table is about, and that a router forwards to.
    fn destination(&mut self) -> u32 {
        loop {
            let routes = &self.all[self.random.below(TABLES as u32) as usize];
            let route = &routes[self.random.below(routes.len() as u32) as usize];
            let inside = self.random.next() & u32::MAX.checked_shr(route.length()).unwrap_or(0);
            let destination = route.prefix() | inside;
            if destination >> 24 != 127 {
                return destination;
            }
        }
    }

    /// A table may be in use from now on.
    fn begin(&mut self, table: usize) {
        self.in_use[table] = true;
        for packet in self.sent.values_mut() {
            packet.tables[table] = true;
        }
    }

    /// No other table is in use any more.
    const fn end(&mut self, table: usize) {
        self.in_use = [false; TABLES];
        self.in_use[table] = true;
    }
}

impl Story {
    /// Replaces the table by the next one, while the card works.
    fn replace(&mut self) -> Result<()> {
        self.updates += 1;
        let next = self.updates as usize % TABLES;
        self.stream.begin(next);
        let mut busy = Busy {
            window: self.card.window.clone(),
            stream: &mut self.stream,
            pieces: 0,
        };
        let table = &self.tables[next];
        replace(&mut self.card.loader, &mut busy, self.domain, table)?;
        self.stream.end(next);
        Ok(())
    }

    /// A millisecond with packets all along, and a new table in it.
    fn millisecond(&mut self) -> Result<()> {
        const PIECES: u32 = 10;
        let end = self.card.machine.lock().cycle() + MILLISECOND;
        let update = self.stream.random.below(PIECES);
        for piece in 0..PIECES {
            let shared = self.card.machine.clone();
            let mut machine = shared.lock();
            self.stream.send(&mut machine, PER_MILLISECOND / PIECES);
            drop(machine);
            if piece == update {
                self.replace()?;
            }
            let mut machine = shared.lock();
            let now = machine.cycle();
            let left = end.saturating_sub(now) / u64::from(PIECES - piece);
            machine.run(left);
            drop(machine);
            self.collect()?;
        }
        Ok(())
    }

    /// Waits for the packets that are on their way.
    fn finish(&mut self) -> Result<()> {
        for _ in 0..LOOKS {
            self.collect()?;
            if self.stream.sent.is_empty() {
                return Ok(());
            }
            self.card.machine.lock().run(LOOK);
        }
        bail!("packets are lost: {:x?}", self.stream.sent);
    }

    /// Takes what has arrived at either end, and judges it.
    fn collect(&mut self) -> Result<()> {
        let Story { card, stream, .. } = self;
        let Stream { all, sent, .. } = stream;
        let mut taken = |frame: &[u8]| {
            let number = frame.get(18..20).context("a frame without a number")?;
            let number = u16::from_be_bytes([number[0], number[1]]);
            sent.remove(&number).context("a packet came twice")
        };
        // The first table in use that sends it there.
        let by = |packet: &Packet, to: NextHop| {
            let mut numbers = (0..TABLES).filter(|number| packet.tables[*number]);
            let found = numbers.find(|number| oracle(&all[*number], packet.destination) == to);
            found.with_context(|| format!("went to {to:x?}: {packet:x?}"))
        };
        card.nic.service()?;
        for frame in card.nic.receive_batch(64)? {
            let packet = taken(&frame)?;
            by(&packet, NextHop::Host)?;
            ensure!(frame == packet.frame, "the host's was changed: {packet:x?}");
            self.of_host += 1;
        }
        while let Some(frame) = card.machine.lock().take_frame() {
            if is_flow_control(&frame.bytes) {
                continue;
            }
            let packet = taken(&frame.bytes)?;
            let to = frame.bytes.first_chunk().context("a short frame")?;
            let by = by(&packet, NextHop::Wire(*to))?;
            ensure!(
                frame.bytes[6..12] == packet.frame[..6] && frame.bytes[22] == 63,
                "a packet that was not forwarded well: {:x?}",
                frame.bytes
            );
            let same = frame.bytes[26..] == packet.frame[26..];
            ensure!(same, "its data have changed");
            self.forwarded[by] += 1;
        }
        Ok(())
    }
}
