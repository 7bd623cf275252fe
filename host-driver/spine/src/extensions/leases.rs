//! Leases of the bus and screens, for the process that drives the card.

use super::Extensions;
use crate::load::lease::Lease;
use crate::load::{Card, LoadError, Loader};
use host_interface::spine::Outcome;

/// How a loader leases what it may.
type Put<C> = fn(&mut Loader, &mut C, u32, Lease) -> Result<(), LoadError<<C as Card>::Error>>;

impl Extensions {
    /// Leases a domain a range of the bus in place of what it had; [`Lease::NONE`] withdraws that.
    ///
    /// # Errors
    /// As of [`Loader::set_lease`].
    pub fn set_lease<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
        lease: Lease,
    ) -> Result<(), LoadError<C::Error>> {
        self.put_lease(card, domain, lease, Loader::set_lease)
    }

    /// The same for memory of the driver's, which is to be a screen.
    ///
    /// # Errors
    /// As of [`Loader::set_screen`].
    pub fn set_screen<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
        screen: Lease,
    ) -> Result<(), LoadError<C::Error>> {
        self.put_lease(card, domain, screen, Loader::set_screen)
    }

    fn put_lease<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
        lease: Lease,
        put: Put<C>,
    ) -> Result<(), LoadError<C::Error>> {
        let done = put(self.loader(card)?, card, domain, lease);
        let row = self.loaded.get_mut(domain as usize);
        if let Some(row) = row.and_then(Option::as_mut) {
            match &done {
                Ok(()) => row.lease = lease,
                // The old one is withdrawn, but its transfers do not end.
                Err(LoadError::Refused(Outcome::Busy)) => row.lease = Lease::NONE,
                Err(_) => {}
            }
        }
        done
    }

    /// The lease of a domain; none if it is not loaded.
    ///
    /// # Errors
    /// If the firmware loads no extensions, or the card is gone.
    pub fn lease<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
    ) -> Result<Lease, LoadError<C::Error>> {
        self.loader(card)?;
        let row = self.loaded.get(domain as usize).and_then(Option::as_ref);
        Ok(row.map_or(Lease::NONE, |row| row.lease))
    }
}
