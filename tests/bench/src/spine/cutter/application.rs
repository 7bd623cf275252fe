//! An application that sends messages to the handler, and takes what it answers.

use super::super::card::SpineCard;
use super::super::cuts::Call;
use super::super::traffic::LOOK;
use anyhow::{Context, Result};
use host_driver::DmaMemory;
use spine_linker::endpoint::{Endpoint, HandlerOf, RingSizes};

/// The number of its endpoint, and its rings.
pub(in super::super) const ENDPOINT: u32 = 6;
const SIZES: RingSizes = RingSizes {
    slots: 8,
    bulk: 1536,
};
/// Bytes of a message's data.
const BULK: usize = 200;

/// The application.
pub(super) struct Application {
    endpoint: Endpoint<DmaMemory>,
}

impl Application {
    /// Opens its endpoint, which may call the handlers of a domain.
    pub fn open(card: &mut SpineCard, domain: u32) -> Result<Application> {
        let endpoint = card.open_endpoint(ENDPOINT, SIZES, domain)?;
        Ok(Application { endpoint })
    }

    /// Sends a message to a handler.
    pub fn send(&mut self, card: &mut SpineCard, to: HandlerOf, call: Call) -> Result<()> {
        let station = card.nic.station();
        let word = |at: usize| u32::from(station[at]) << 8 | u32::from(station[at + 1]);
        match call {
            Call::Words(words) => self.endpoint.put(to, words),
            // To the next handler of the domain, by the wire.
            Call::ToWire => {
                let address = [word(0), word(2) << 16 | word(4), to.domain, 3];
                self.endpoint.put(to, &address)
            }
            Call::Bulk => self.endpoint.put_bulk(to, &[], 0, &[7; BULK]),
        }
        .context("the ring")?;
        card.ring_endpoint(ENDPOINT, &self.endpoint)
    }

    /// The words of each message that has come since the last look. What they are is not looked at:
    /// it may be a time.
    pub fn look(&mut self, card: &mut SpineCard) -> Result<Vec<usize>> {
        // An answer that a run has asked for is written soon behind it.
        card.machine.pass(LOOK);
        let mut lengths = Vec::new();
        while let Some(answer) = self.endpoint.take()? {
            lengths.push(answer.arguments.len());
            card.ring_endpoint(ENDPOINT, &self.endpoint)?;
        }
        Ok(lengths)
    }
}
