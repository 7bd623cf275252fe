//! Messages and endpoints of a card, for the process that drives it; and the ledger of what
//! domains keep.

use super::Extensions;
use crate::load::{Card, EndpointConfig, EndpointCounts, LoadError};
use host_interface::spine::rings::DRIVER;
use serde::{Deserialize, Serialize};

/// What an endpoint did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointReport {
    /// Its number, as handlers know it.
    pub endpoint: u32,
    /// Messages of it that were fetched.
    pub fetched: u32,
    /// Those that ran a handler to its end.
    pub delivered: u32,
    /// Messages to it.
    pub sent: u32,
    /// Messages of it that were dropped: header, no handler, not allowed, beyond its credit, cut
    /// off.
    pub dropped: Vec<u32>,
}

/// The frames that domains keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// How many each domain keeps, by its number.
    pub kept: Vec<u32>,
    /// Slots of the pool that nothing referred to when one was last kept or given back.
    pub free: u32,
}

impl Extensions {
    /// How often the firmware was found to be another one than before: it has forgotten all
    /// domains and endpoints each time.
    ///
    /// # Errors
    /// If the firmware loads no extensions, or the card is gone.
    pub fn starts<C: Card>(&mut self, card: &mut C) -> Result<u64, LoadError<C::Error>> {
        self.loader(card)?;
        Ok(self.starts)
    }

    /// Opens an endpoint, by its number from 0 on.
    ///
    /// # Errors
    /// What the firmware says.
    pub fn open_endpoint<C: Card>(
        &mut self,
        card: &mut C,
        endpoint: u32,
        config: &EndpointConfig,
    ) -> Result<(), LoadError<C::Error>> {
        self.loader(card)?.open_endpoint(card, endpoint, config)
    }

    /// Closes an endpoint.
    ///
    /// # Errors
    /// What the firmware says.
    pub fn close_endpoint<C: Card>(
        &mut self,
        card: &mut C,
        endpoint: u32,
    ) -> Result<(), LoadError<C::Error>> {
        self.loader(card)?.close_endpoint(card, endpoint)
    }

    /// Rings the doorbell of an endpoint.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn ring_endpoint<C: Card>(
        &mut self,
        card: &mut C,
        endpoint: u32,
        halfword: u16,
    ) -> Result<(), LoadError<C::Error>> {
        let loader = self.loader.as_mut().ok_or(LoadError::NoSpine)?;
        loader.ring_endpoint(card, endpoint, halfword)
    }

    /// Says which handlers an endpoint may call from now on.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn grant<C: Card>(
        &mut self,
        card: &mut C,
        endpoint: u32,
        handlers: u32,
    ) -> Result<(), LoadError<C::Error>> {
        self.loader(card)?.grant(card, endpoint, handlers)
    }

    /// Hands a message of the driver's to a handler.
    ///
    /// # Errors
    /// What the firmware says.
    pub fn send<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
        handler: u8,
        arguments: &[u32],
    ) -> Result<(), LoadError<C::Error>> {
        self.loader(card)?.send(card, domain, handler, arguments)
    }

    /// What endpoints did, by their numbers from 0 on.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn endpoints<C: Card>(
        &mut self,
        card: &mut C,
        numbers: &[u32],
    ) -> Result<Vec<EndpointReport>, LoadError<C::Error>> {
        let loader = self.loader(card)?;
        let report = |number: &u32| {
            let EndpointCounts {
                fetched,
                delivered,
                sent,
                dropped,
            } = loader.endpoint_counts(card, *number)?;
            Ok(EndpointReport {
                endpoint: number + DRIVER,
                fetched,
                delivered,
                sent,
                dropped: dropped.to_vec(),
            })
        };
        numbers.iter().map(report).collect()
    }

    /// The frames that domains keep.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn ledger<C: Card>(&mut self, card: &mut C) -> Result<Ledger, LoadError<C::Error>> {
        let (kept, free) = self.loader(card)?.ledger(card)?;
        Ok(Ledger {
            kept: kept.map(u32::count_ones).to_vec(),
            free,
        })
    }
}
