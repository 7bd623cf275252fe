//! The router between two cards on one PCI bus: packets come to one and leave by the other.
//!
//! SPINE paper, section 5.2. Neither the host's CPU nor its memory is in the way; the bus counts
//! what both are asked for meanwhile.

mod forwarded;

pub(super) use self::forwarded::table;
pub use self::forwarded::{Forwarded, Stream};
use super::card::{Kit, SpineCard, ensure_fresh};
use super::guarded::ROUTES;
use super::router;
use super::window::Window;
use anyhow::{Context, Result, ensure};
use host_driver::Config;
use host_driver::nic::{ExtensionCard, SendConsumer};
use host_interface::spine::peer::{GRANTS, PeerWord, SENDS};
use spine_linker::load::Card;
use spine_linker::load::peer::{
    LoadedCard, Peer, close_peers, open_peers, reach, reach_of_ring, ring_consumer,
};
use spine_linker::routes::{self, NextHop, Route};
use std::sync::Arc;
use testbed::interrupt;
use tigon2_model::{Board, is_flow_control};
use tigon2_sim::Machine;
use tigon2_sim::fabric::{Bus, Fabric, Target};
use tigon2_sim::timing::Parameters;

/// The packets' next hop.
pub(super) const HOP: [u8; 6] = [2, 0, 0, 0, 0, 9];
/// Bytes on the wire beside a frame: preamble, CRC, gap; and ns of a byte.
const BESIDE: u64 = 24;
const BYTE_NS: u64 = 8;
/// For how long nothing must come before all that came is through, in nanoseconds.
const QUIET_NS: u64 = 500_000;
/// How long before it is due a packet is given to the simulator, in nanoseconds.
const AHEAD_NS: u64 = 100_000;
/// What the simulator adds to the time of a frame that has left: the gap.
const GAP_NS: u64 = 96;

/// Two cards with extensions, the first of which routes to the second.
pub struct Pair {
    /// Both.
    pub fabric: Arc<Fabric>,
    /// Card 0 routes, card 1 is its peer.
    pub cards: [SpineCard; 2],
    /// The router's domain.
    pub domain: u32,
}

/// Packets a second that are offered, at their bytes, and for how many nanoseconds.
const OFFERED: [(usize, f64); 4] = [(60, 1e3), (60, 50e3), (60, 200e3), (1514, 100e3)];
const LOOK_NS: u64 = 4_000_000;

/// Lets some packets through, some a second, and more than go through.
///
/// # Errors
/// As of [`Pair::run`].
pub fn measure(kit: &Kit, parameters: &Parameters) -> Result<Vec<Forwarded>> {
    offer(&mut Pair::start(kit, ROUTES, parameters)?)
}

/// The same by a ring in host memory, to compare.
///
/// # Errors
/// As of [`Pair::run`].
pub fn measure_by_ring(kit: &Kit, parameters: &Parameters) -> Result<Vec<Forwarded>> {
    offer(&mut Pair::start_by_ring(kit, ROUTES, parameters)?)
}

fn offer(pair: &mut Pair) -> Result<Vec<Forwarded>> {
    let mut rows = Vec::new();
    for (bytes, rate) in OFFERED {
        interrupt::check()?;
        rows.push(pair.run(bytes, rate, LOOK_NS)?);
    }
    Ok(rows)
}

impl Pair {
    /// Powers both up, loads the router with so many routes, and makes them peers.
    ///
    /// # Errors
    /// What the driver or a wall says.
    pub fn start(kit: &Kit, count: usize, parameters: &Parameters) -> Result<Pair> {
        let (fabric, mut cards) = two_cards(kit, parameters)?;
        let domain = load_router(kit, &mut cards[0], count)?;
        join(&fabric, cards.each_mut(), [SENDS, GRANTS])?;
        // The first rooms are granted.
        fabric.card(0).pass(100_000);
        Ok(Pair {
            fabric,
            cards,
            domain,
        })
    }

    /// The same, but frames go by a ring in host memory: the send ring of the second card.
    ///
    /// # Errors
    /// What the driver or a wall says.
    pub fn start_by_ring(kit: &Kit, count: usize, parameters: &Parameters) -> Result<Pair> {
        let fabric = bus_of_two(parameters);
        let mut one = SpineCard::start_on(kit, &fabric.card(0))?;
        let domain = load_router(kit, &mut one, count)?;
        one.lease_window()?;
        let [.., window] = reach();
        fabric.allow(1, 0, window);
        let config = Config {
            send_consumer: SendConsumer::At(Fabric::bar(0) + u64::from(ring_consumer())),
            ..Config::default()
        };
        let mut other = SpineCard::start_with(kit, &fabric.card(1), config)?;
        fabric.allow(0, 1, reach_of_ring());
        let ring = one.nic.map_ring(&other.nic.lend_ring()?)?;
        let peer = Peer {
            bar: Fabric::bar(1),
            page: other.loader.peer_page(),
            roles: SENDS,
            ring: Some(ring),
        };
        one.loader.set_peer(&mut one.window, &peer)?;
        fabric.card(0).pass(100_000);
        Ok(Pair {
            fabric,
            cards: [one, other],
            domain,
        })
    }

    /// Makes them peers again.
    ///
    /// # Errors
    /// What the firmware says.
    pub fn open(&mut self) -> Result<()> {
        join(&self.fabric, self.cards.each_mut(), [SENDS, GRANTS])
    }

    /// Closes the way from one to the other; their windows are the host's again.
    ///
    /// # Errors
    /// What the firmware says.
    pub fn close(&mut self) -> Result<()> {
        separate(self.cards.each_mut())
    }

    /// A word of a card's peer page.
    pub fn word(&self, card: usize, word: PeerWord) -> u32 {
        self.cards[card].peer_word(word)
    }

    /// Lets packets of so many bytes come for a while, so many a second; each is checked.
    ///
    /// # Errors
    /// A packet that is not what it should be.
    pub fn run(&mut self, bytes: usize, rate: f64, nanoseconds: u64) -> Result<Forwarded> {
        let before = asked(&self.fabric);
        let written = self.fabric.traffic(0, Target::Card(1)).bytes;
        let mut stream = self.stream(bytes, rate, nanoseconds);
        let mut quiet = stream.end + QUIET_NS;
        while self.feed(&mut stream) < quiet {
            self.fabric.card(0).pass(20_000);
            if let Some(last) = self.collect(&mut stream)? {
                // What was not handed on at once waits in the card, and on the wire.
                quiet = quiet.max(last + QUIET_NS);
            }
        }
        for card in &self.cards {
            ensure_fresh(&card.machine)?;
        }
        let after = asked(&self.fabric);
        let written = self.fabric.traffic(0, Target::Card(1)).bytes - written;
        Ok(Forwarded {
            host: [after[0] - before[0], after[1] - before[1]],
            bus_bytes: written as f64 / stream.left.len().max(1) as f64,
            ..stream.summary()
        })
    }

    /// Packets of so many bytes that come for a while from now on, so many a second.
    pub fn stream(&self, bytes: usize, rate: f64, nanoseconds: u64) -> Stream {
        let start = self.cards[0].machine.lock().now();
        let shortest = (bytes as u64 + BESIDE) * BYTE_NS;
        Stream {
            bytes,
            period: ((1e9 / rate) as u64).max(shortest),
            due: start,
            end: start + nanoseconds,
            arrivals: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Sends what is due soon; returns the time.
    pub fn feed(&self, stream: &mut Stream) -> u64 {
        let mut machine = self.cards[0].machine.lock();
        let now = machine.now();
        while stream.due < stream.end && stream.due < now + AHEAD_NS {
            let station = self.cards[0].nic.station();
            let frame = router::packet(station, stream.bytes, stream.arrivals.len() as u16);
            stream.arrivals.push(machine.send_frame(stream.due, frame));
            stream.due += stream.period;
        }
        now
    }

    /// Takes what has left, and says when the last of it has.
    pub(super) fn collect(&self, stream: &mut Stream) -> Result<Option<u64>> {
        let mut last = None;
        let mut machine = self.cards[1].machine.lock();
        while let Some(frame) = machine.take_frame() {
            if !is_flow_control(&frame.bytes) {
                last = Some(frame.at);
                let number = self.number(&frame.bytes, stream.bytes)?;
                stream.left.push((frame.at - GAP_NS, number));
            }
        }
        Ok(last)
    }

    /// The number of a packet that has left, which must be whole and forwarded well.
    fn number(&self, frame: &[u8], bytes: usize) -> Result<u16> {
        let number = frame.get(18..20).context("a frame without a number")?;
        let number = u16::from_be_bytes([number[0], number[1]]);
        let station = self.cards[0].nic.station();
        let sent = router::packet(station, bytes, number);
        ensure!(
            frame.len() == sent.len()
                && frame[..6] == HOP
                && frame[6..12] == station
                && frame[22] == sent[22] - 1
                && frame[26..] == sent[26..],
            "a packet that was not forwarded well: {frame:x?}"
        );
        Ok(number)
    }
}

/// Two cards on one bus, without power.
fn bus_of_two(parameters: &Parameters) -> Arc<Fabric> {
    let machines = (0..2).map(|number| {
        let mut machine = Machine::timed(Board::default(), parameters.clone(), 1 + number);
        machine.set_mac_address([2, 0x54, 0x47, 0, 1, number as u8]);
        machine
    });
    Fabric::with_bus(machines, &[], Some(Bus::default()))
}

/// A table of so many routes, the last of which is the one that packets take.
///
/// # Errors
/// If there is no room for so many.
pub fn routing_table(count: usize) -> Result<Vec<u32>> {
    let mut all = router::routes(count.max(1), 0)?;
    // The last of several routes to the same prefix counts.
    all.push(Route::new([10, 77, 0, 0].into(), 24, NextHop::Peer(HOP))?);
    Ok(routes::table(&all)?)
}

/// Loads the router with a table of so many routes.
fn load_router(kit: &Kit, card: &mut SpineCard, count: usize) -> Result<u32> {
    router::load(kit, card, &routing_table(count)?)
}

/// Powers up two cards on one bus.
///
/// # Errors
/// If the firmware does not start.
pub(super) fn two_cards(
    kit: &Kit,
    parameters: &Parameters,
) -> Result<(Arc<Fabric>, [SpineCard; 2])> {
    let fabric = bus_of_two(parameters);
    let one = SpineCard::start_on(kit, &fabric.card(0))?;
    let other = SpineCard::start_on(kit, &fabric.card(1))?;
    Ok((fabric, [one, other]))
}

/// What knows of both cards' extensions.
fn loaders<'a>(cards: [&'a mut SpineCard; 2]) -> [LoadedCard<'a, Window>; 2] {
    cards.map(|card| (&mut card.loader, &mut card.window))
}

/// Makes two cards peers with these roles; the host's windows are theirs from then on.
///
/// # Errors
/// What the firmware says.
pub(super) fn join(fabric: &Fabric, mut cards: [&mut SpineCard; 2], roles: [u32; 2]) -> Result<()> {
    for range in reach() {
        fabric.allow(0, 1, range.clone());
        fabric.allow(1, 0, range);
    }
    for card in &mut cards {
        card.lease_window()?;
    }
    let pages = cards.each_ref().map(|card| card.loader.peer_page());
    let peers = [0, 1].map(|number| Peer {
        bar: Fabric::bar(1 - number),
        page: pages[1 - number],
        roles: roles[number],
        ring: None,
    });
    open_peers(&mut loaders(cards), &peers)?;
    Ok(())
}

/// Closes both; their windows are the host's again.
///
/// # Errors
/// What the firmware says.
pub(super) fn separate(mut cards: [&mut SpineCard; 2]) -> Result<()> {
    close_peers(&mut loaders(cards.each_mut().map(|card| &mut **card)))?;
    for card in cards {
        ExtensionCard(&mut card.nic).take_back_window();
    }
    Ok(())
}

/// The host's accesses to both cards, and bytes of its memory that they have touched.
pub(super) fn asked(fabric: &Fabric) -> [u64; 2] {
    let mut asked = [0; 2];
    for card in 0..2 {
        let accesses = fabric.host_accesses(card);
        asked[0] += accesses.reads + accesses.writes;
        asked[1] += fabric.traffic(card, Target::Memory).bytes;
    }
    asked
}
