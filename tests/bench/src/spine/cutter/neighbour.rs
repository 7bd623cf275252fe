//! The other card on the bus, for handlers that send to it or that it has run.

use super::super::card::{Kit, SpineCard};
use super::super::cuts::PeerCause;
use super::super::exchange::{ETHER_TYPE, PEERING, handler, order, send_order};
use super::super::peers::{join, routing_table, separate, two_cards};
use super::super::traffic::LOOK;
use super::WATCHDOG;
use anyhow::{Result, bail, ensure};
use host_driver::DmaMemory;

use host_interface::spine::peer::{EXCHANGES, GRANTS, PeerWord, SENDS};
use spine_linker::endpoint::{Endpoint, RingSizes};
use spine_linker::load::Guard;
use spine_linker::routes;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tigon2_model::is_flow_control;
use tigon2_sim::fabric::Fabric;
use tigon2_sim::timing::Parameters;

/// The number of the endpoint beside the tested card, and its rings.
const ENDPOINT: u32 = 5;
const SIZES: RingSizes = RingSizes { slots: 8, bulk: 0 };
/// Routes of the router's table.
const ROUTES: usize = 50;
/// Looks within which all that is under way has arrived.
const LOOKS: u32 = 1000;
/// The counter of messages that were kept.
const KEPT: usize = 0;

/// What is to be seen of a run beside the other card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// What its domain's handlers counted.
    counted: [u32; 8],
    /// The arguments that they kept.
    kept: Vec<u32>,
    /// Frames that it transmitted.
    frames: Vec<Vec<u8>>,
    /// Messages to the application beside the tested card.
    told: Vec<Vec<u32>>,
}

/// The other card.
pub(super) struct Neighbour {
    fabric: Arc<Fabric>,
    card: SpineCard,
    cause: PeerCause,
    /// The domain of the extension that both have.
    domain: u32,
    region: Range<u32>,
    endpoint: Option<Endpoint<DmaMemory>>,
    /// Its counters, and the messages that ran no handler at the tested card, at the last look.
    counted: [u32; 8],
    dropped: u32,
}

impl Neighbour {
    /// Powers up two cards on one bus: the one to be tested, and this one.
    pub fn start(kit: &Kit, cause: PeerCause) -> Result<(SpineCard, Neighbour)> {
        let (fabric, [tested, card]) = two_cards(kit, &Parameters::default())?;
        let neighbour = Neighbour {
            fabric,
            card,
            cause,
            domain: 0,
            region: 0..0,
            endpoint: None,
            counted: [0; 8],
            dropped: 0,
        };
        Ok((tested, neighbour))
    }

    /// Makes both peers, once the tested card has loaded its domain.
    pub fn open(&mut self, kit: &Kit, tested: &mut SpineCard, domain: u32) -> Result<()> {
        let roles = if self.cause == PeerCause::ForwardsPacket {
            let SpineCard { loader, window, .. } = tested;
            routes::replace(loader, window, domain, &routing_table(ROUTES)?)?;
            [SENDS, GRANTS]
        } else {
            let container = kit.container(Path::new(PEERING))?;
            (self.domain, _) = self.card.load(kit, &container, &kit.policy(WATCHDOG, 0)?)?;
            self.region = self.card.region(self.domain, &container)?;
            self.card
                .guards(&[Guard::ether_type(self.domain, 0, ETHER_TYPE)])?;
            self.endpoint = Some(tested.open_endpoint(ENDPOINT, SIZES, domain)?);
            [EXCHANGES; 2]
        };
        join(&self.fabric, [tested, &mut self.card], roles)?;
        // The first rooms are granted.
        tested.machine.pass(LOOK * 10);
        Ok(())
    }

    /// A frame that has the tested card's handler send a message.
    pub fn order(&self, station: [u8; 6], number: u16) -> Vec<u8> {
        let to = self.domain << 8 | u32::from(handler::KEEPS);
        order(station, to, &arguments(number))
    }

    /// Has this card send a message to a handler of the tested one.
    pub fn call(&mut self, domain: u32, handler: u8, number: u16) {
        let to = domain << 8 | u32::from(handler);
        send_order(&self.card, to, &arguments(number));
    }

    /// What is to be seen of a run, when nothing is under way any more; `was_cut` says whether a
    /// message ran no handler to its end.
    pub fn look(&mut self, tested: &mut SpineCard, was_cut: bool) -> Result<Beside> {
        self.settle(tested)?;
        let dropped = tested.peer_word(PeerWord::MessagesDropped);
        let expected = u32::from(was_cut && self.cause == PeerCause::GetsMessage);
        ensure!(
            dropped - self.dropped == expected,
            "{} messages ran no handler to their end, not {expected}",
            dropped - self.dropped
        );
        self.dropped = dropped;
        let mut beside = Beside::default();
        if self.cause != PeerCause::ForwardsPacket {
            let counters = self.card.counts(self.domain).counters();
            for (number, before) in self.counted.iter_mut().enumerate() {
                beside.counted[number] = counters[number].wrapping_sub(*before);
            }
            self.counted = counters;
        }
        if beside.counted[KEPT] != 0 {
            let machine = self.card.machine.lock();
            let words = self.region.clone().step_by(4).take(arguments(0).len());
            beside.kept = words.map(|at| machine.word(at)).collect();
        }
        if let Some(endpoint) = &mut self.endpoint {
            while let Some(message) = endpoint.take()? {
                beside.told.push(message.arguments);
            }
            tested.ring_endpoint(ENDPOINT, endpoint)?;
        }
        while let Some(frame) = self.card.machine.lock().take_frame() {
            if !is_flow_control(&frame.bytes) {
                beside.frames.push(frame.bytes);
            }
        }
        Ok(beside)
    }

    /// Lets time pass until each message is acknowledged, and each frame has left.
    fn settle(&mut self, tested: &SpineCard) -> Result<()> {
        for _ in 0..LOOKS {
            tested.machine.pass(LOOK);
            self.card.nic.service()?;
            let acknowledged = |card: &SpineCard| {
                let [sent, acknowledged] = [PeerWord::MessagesSent, PeerWord::MessagesAcknowledged];
                card.peer_word(sent) == card.peer_word(acknowledged)
            };
            let taken = self.card.peer_word(PeerWord::Taken);
            if acknowledged(tested)
                && acknowledged(&self.card)
                && tested.peer_word(PeerWord::Sent) == taken
            {
                // What was taken leaves.
                tested.machine.pass(LOOK);
                return Ok(());
            }
        }
        bail!("between the cards: a message or a room is lost")
    }

    /// Closes the way between them.
    pub fn close(mut self, tested: &mut SpineCard) -> Result<()> {
        separate([tested, &mut self.card])?;
        if self.endpoint.is_some() {
            let SpineCard { loader, window, .. } = tested;
            loader.close_endpoint(window, ENDPOINT)?;
        }
        Ok(())
    }
}

/// The arguments of a message: the first one names the application, endpoint n by n + 1.
const fn arguments(number: u16) -> [u32; 4] {
    [ENDPOINT + 1, number as u32, 0x5050_5050, !(number as u32)]
}
