//! Message endpoints of a card, opened and closed by the process that drives it.

use super::{Card, LoadError, Loader};
use crate::endpoint::RingSizes;
use host_interface::spine::rings::{
    Dropped, ENDPOINTS, EndpointWord, FIRST_MAILBOX, PER_MAILBOX, doorbell,
};
use host_interface::spine::{BlockWord, Command, DOMAINS, HANDLERS, Outcome, endpoint_word};

/// What an endpoint is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointConfig {
    /// The card's address of its memory, of [`RingSizes::bytes`] bytes.
    pub address: u64,
    /// How large its rings are.
    pub sizes: RingSizes,
    /// Handlers that it may call, see [`handlers_of`].
    pub handlers: u32,
    /// Whether an interrupt follows a message from the card.
    pub interrupts: bool,
}

/// All handlers of a domain, for [`EndpointConfig::handlers`].
pub const fn handlers_of(domain: u32) -> u32 {
    ((1 << HANDLERS) - 1) << (domain * HANDLERS)
}

/// What an endpoint did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounts {
    /// Messages that were fetched.
    pub fetched: u32,
    /// Messages that ran a handler to its end.
    pub delivered: u32,
    /// Messages to it.
    pub sent: u32,
    /// Messages that were dropped, by [`Dropped`].
    pub dropped: [u32; Dropped::ALL.len()],
}

impl Loader {
    /// Opens an endpoint, by its number from 0 on; 0 is the driver's own. Messages of it have the
    /// source `endpoint + 1`.
    ///
    /// # Errors
    /// What the firmware says: [`Outcome::NoEndpoint`] if it is open, or cannot be as it is asked
    /// for.
    pub fn open_endpoint<C: Card>(
        &mut self,
        card: &mut C,
        endpoint: u32,
        config: &EndpointConfig,
    ) -> Result<(), LoadError<C::Error>> {
        if endpoint >= ENDPOINTS || !config.sizes.are_possible() {
            return Err(LoadError::Refused(Outcome::NoEndpoint));
        }
        let row = [
            (config.address >> 32) as u32,
            config.address as u32,
            config.sizes.slots,
            config.handlers,
            config.sizes.bulk,
            config.interrupts.into(),
        ];
        const { assert!(EndpointWord::Interrupts as u32 == 4 * 5) };
        let at = self.block + endpoint_word(endpoint, EndpointWord::High);
        self.ring_endpoint(card, endpoint, 0)?;
        card.write(at, &row).map_err(LoadError::Card)?;
        self.ask(card, Command::Open, endpoint)
    }

    /// Closes an endpoint: the card touches none of its memory any more.
    ///
    /// # Errors
    /// What the firmware says.
    pub fn close_endpoint<C: Card>(
        &mut self,
        card: &mut C,
        endpoint: u32,
    ) -> Result<(), LoadError<C::Error>> {
        let mut turns = 0;
        loop {
            match self.ask(card, Command::Close, endpoint) {
                Err(LoadError::Refused(Outcome::Busy)) if card.wait(turns) => turns += 1,
                other => return other,
            }
        }
    }

    /// Says which handlers an endpoint may call from now on.
    ///
    /// # Errors
    /// [`LoadError::Card`].
    pub fn grant<C: Card>(
        &mut self,
        card: &mut C,
        endpoint: u32,
        handlers: u32,
    ) -> Result<(), LoadError<C::Error>> {
        let at = self.block + endpoint_word(endpoint, EndpointWord::Handlers);
        card.write(at, &[handlers]).map_err(LoadError::Card)
    }

    /// Rings the doorbell of an endpoint with its halfword, see [`crate::endpoint::doorbell`].
    ///
    /// # Errors
    /// [`LoadError::Card`].
    pub fn ring_endpoint<C: Card>(
        &mut self,
        card: &mut C,
        endpoint: u32,
        halfword: u16,
    ) -> Result<(), LoadError<C::Error>> {
        let Some(place) = self.doorbells.get_mut(endpoint as usize) else {
            return Err(LoadError::Refused(Outcome::NoEndpoint));
        };
        *place = halfword;
        let (mailbox, _, _) = doorbell(endpoint);
        let first = ((mailbox - FIRST_MAILBOX) * PER_MAILBOX) as usize;
        let mut words = [0; 2];
        for (number, value) in (first as u32..).zip(self.doorbells.iter().skip(first).take(4)) {
            let (_, is_low, shift) = doorbell(number);
            words[usize::from(is_low)] |= u32::from(*value) << shift;
        }
        let [high, low] = words;
        card.post(mailbox, high, low).map_err(LoadError::Card)
    }

    /// The ledger: the slots of the pool that each domain keeps, a bit for each, and how many
    /// nothing referred to.
    ///
    /// # Errors
    /// [`LoadError::Card`].
    pub fn ledger<C: Card>(
        &self,
        card: &mut C,
    ) -> Result<([u32; DOMAINS as usize], u32), LoadError<C::Error>> {
        let mut kept = [0; DOMAINS as usize];
        let mut free = [0];
        let at = |word: BlockWord| self.block + word as u32;
        card.read(at(BlockWord::Kept), &mut kept)
            .map_err(LoadError::Card)?;
        card.read(at(BlockWord::FreeSlots), &mut free)
            .map_err(LoadError::Card)?;
        let [free] = free;
        Ok((kept, free))
    }

    /// What an endpoint did.
    ///
    /// # Errors
    /// [`LoadError::Card`].
    pub fn endpoint_counts<C: Card>(
        &self,
        card: &mut C,
        endpoint: u32,
    ) -> Result<EndpointCounts, LoadError<C::Error>> {
        let mut words = [0; 3 + Dropped::ALL.len()];
        const { assert!(EndpointWord::Fetched as u32 + 12 == EndpointWord::Dropped as u32) };
        let at = self.block + endpoint_word(endpoint, EndpointWord::Fetched);
        card.read(at, &mut words).map_err(LoadError::Card)?;
        let [fetched, delivered, sent, dropped @ ..] = words;
        Ok(EndpointCounts {
            fetched,
            delivered,
            sent,
            dropped,
        })
    }
}
