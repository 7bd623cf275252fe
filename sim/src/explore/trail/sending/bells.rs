//! Doorbells: the card's mailboxes, and the register in which CPU B sees and clears them.

use super::{Followed, World};
use host_interface::eudp::MAILBOX;
use tigon2_chip::memory::MAILBOXES;
use tigon2_chip::{Register, mailbox};
use tigon2_model::Cpu;

/// The bit of `R[74]` that an endpoint's mailbox sets.
const fn bit(endpoint: usize) -> u32 {
    1 << MAILBOX << endpoint
}

/// Bytes from the first mailbox to an endpoint's.
const fn offset(endpoint: usize) -> u32 {
    mailbox::BYTES * (MAILBOX + endpoint as u32)
}

impl World {
    /// From now on CPU B knows only of what it has looked at.
    pub(super) fn listen(&mut self) {
        self.looked = Some([0; 2]);
    }

    /// The host says in an endpoint's mailbox how many descriptors there are.
    pub(super) fn ring(&mut self, endpoint: usize) {
        let posted = self.frames.len() as u32;
        // A host sees the words of each pair exchanged.
        let at = mailbox::BAR_BASE + offset(endpoint);
        self.chip.machine.bar_write(at, posted << 16);
    }

    pub(super) fn is_rung(&mut self, endpoint: usize) -> bool {
        let machine = &mut self.chip.machine;
        machine.register_read(Cpu::B, Register::MailboxEventB) & bit(endpoint) != 0
    }

    pub(super) fn clear_bell(&mut self, endpoint: usize) -> Followed {
        if !self.is_rung(endpoint) {
            return Err("nobody has rung");
        }
        let machine = &mut self.chip.machine;
        machine.register_write(Cpu::B, Register::MailboxEventB, bit(endpoint));
        Ok(())
    }

    pub(super) fn look(&mut self, endpoint: usize) -> Followed {
        let posted = self.chip.machine.word(MAILBOXES + offset(endpoint) + 4) >> 16;
        let looked = self.looked.as_mut().ok_or("the run has no doorbells")?;
        looked[endpoint] = posted as usize;
        Ok(())
    }

    /// CPU B answers a doorbell, if one was rung: clears it, then looks.
    pub(super) fn answer(&mut self) -> bool {
        let rung = (0..2).find(|endpoint| self.looked.is_some() && self.is_rung(*endpoint));
        rung.is_some_and(|endpoint| {
            self.clear_bell(endpoint).is_ok() && self.look(endpoint).is_ok()
        })
    }

    /// Whether CPU B knows of the next descriptor, which is of this endpoint.
    pub(super) fn knows_next(&self, endpoint: usize) -> bool {
        self.looked
            .is_none_or(|looked| self.next < looked[endpoint])
    }
}
