//! Leases of the bus to domains: [`host_interface::spine::lease`].
//!
//! The policy names the ranges of the PCI bus that a signer's extensions may be leased. A lease ends
//! when it is withdrawn, replaced or its domain unloaded: then the card has written all that it will.

use super::{Card, LoadError, Loader};
use crate::policy::{Grant, PolicyError};
use host_interface::spine::lease::{LEASE_BYTES, LONGEST, LeaseWord, asked};
use host_interface::spine::{Command, Outcome};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Bytes of the bus at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Address on the bus.
    pub address: u64,
    /// Bytes; 0 for no lease.
    pub bytes: u32,
}

impl Lease {
    /// None.
    pub const NONE: Lease = Lease {
        address: 0,
        bytes: 0,
    };
}

/// What a domain may be leased.
#[derive(Clone, Debug, Default)]
pub(super) struct Granted {
    bus: Vec<Range<u64>>,
    screen: u32,
}

impl Granted {
    pub(super) fn by(grant: &Grant) -> Granted {
        Granted {
            bus: grant.leases.clone(),
            screen: grant.screen,
        }
    }
}

impl Loader {
    /// Leases a domain a range of the bus in place of the one that it had; [`Lease::NONE`] withdraws
    /// that. When this returns, nothing is written by the old one any more.
    ///
    /// # Errors
    /// [`LoadError::NotLoaded`], [`PolicyError::Lease`] for what the signer may not have, or what
    /// the firmware says.
    pub fn set_lease<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
        lease: Lease,
    ) -> Result<(), LoadError<C::Error>> {
        let granted = self.granted(domain)?;
        if lease.bytes != 0 && !covers(&granted.bus, lease) {
            return Err(PolicyError::Lease(lease.address, lease.bytes).into());
        }
        self.put_lease(card, domain, lease)
    }

    /// The same for memory of the driver's, which is to be a screen.
    ///
    /// # Errors
    /// [`LoadError::NotLoaded`], [`PolicyError::Screen`] for more than the signer may have, or what
    /// the firmware says.
    pub fn set_screen<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
        screen: Lease,
    ) -> Result<(), LoadError<C::Error>> {
        let granted = self.granted(domain)?;
        if screen.bytes > granted.screen.min(LONGEST) {
            return Err(PolicyError::Screen(screen.bytes).into());
        }
        self.put_lease(card, domain, screen)
    }

    fn granted<E: std::error::Error>(&self, domain: u32) -> Result<&Granted, LoadError<E>> {
        let place = self.pieces.get(domain as usize).copied().flatten();
        let granted = self.leases.get(domain as usize);
        let granted = place.and(granted);
        granted.ok_or(LoadError::NotLoaded(domain))
    }

    fn put_lease<C: Card>(
        &mut self,
        card: &mut C,
        domain: u32,
        lease: Lease,
    ) -> Result<(), LoadError<C::Error>> {
        let words = [
            (lease.address >> 32) as u32,
            lease.address as u32,
            lease.bytes,
        ];
        const { assert!(LeaseWord::Bytes as u32 == 8 && LEASE_BYTES >= 12) };
        let at = self.peer_page() + asked(domain);
        card.write(at, &words).map_err(LoadError::Card)?;
        self.ask_until_done(card, Command::Lease, domain)
    }

    /// Asks again while transfers are under way.
    pub(super) fn ask_until_done<C: Card>(
        &mut self,
        card: &mut C,
        command: Command,
        domain: u32,
    ) -> Result<(), LoadError<C::Error>> {
        let mut turns = 0;
        loop {
            match self.ask(card, command, domain) {
                Err(LoadError::Refused(Outcome::Busy)) if card.wait(turns) => turns += 1,
                done => return done,
            }
        }
    }
}

/// Whether one of the ranges holds the whole lease.
fn covers(granted: &[Range<u64>], lease: Lease) -> bool {
    let end = lease.address.checked_add(u64::from(lease.bytes));
    let holds = |range: &Range<u64>| range.start <= lease.address && end <= Some(range.end);
    end.is_some() && lease.bytes <= LONGEST && granted.iter().any(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_lies_in_one_granted_range() {
        let granted = [0x1000..0x2000, 0x2000..0x3000, 0..u64::MAX];
        let covers =
            |count: usize, address, bytes| covers(&granted[..count], Lease { address, bytes });
        assert!(covers(2, 0x1000, 0x1000) && covers(2, 0x2FFC, 4));
        assert!(!covers(2, 0x1800, 0x1000), "across two ranges");
        assert!(!covers(2, 0xFFF, 2) && !covers(2, 0x3000, 1) && !covers(0, 0x1000, 4));
        assert!(!covers(3, u64::MAX, 4), "beyond the end of the bus");
        assert!(!covers(3, 0, LONGEST + 1));
    }
}
