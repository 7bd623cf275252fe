//! The interrupt to the host: pending state and the level of INTA#.
//!
//! Hardware reference, section 8 "Interrupt to the host" and `R[40]`.
//!
//! ```text
//! R[44] bit 2 ──set──►┌─────────┐      R[40] bit 6   PCI INTx disable
//! mailbox 0  ──clear─►│ pending │──────────&!────────────&!──────────► INTA#
//! R[40] bit 1 ─clear─►└────┬────┘
//!                          └─► R[40] bit 0, PCI status bit 3
//! ```

/// The interrupt state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    pending: bool,
    level: bool,
}

impl Interrupt {
    /// The NIC raises the interrupt: `R[44]` bit 2 (8, C).
    pub fn raise(&mut self) {
        self.pending = true;
    }

    /// The host clears it: mailbox 0 (8, C!) or `R[40]` bit 1 (8, I).
    pub fn clear(&mut self) {
        self.pending = false;
    }

    /// `R[40]` bit 0: visible also while masked (8).
    pub fn pending(&self) -> bool {
        self.pending
    }

    /// The pin.
    pub fn level(&self) -> bool {
        self.level
    }

    /// Updates the pin from the state; returns the new level if it changed.
    pub fn settle(&mut self, masked: bool) -> Option<bool> {
        let level = self.pending && !masked;
        (level != self.level).then(|| {
            self.level = level;
            level
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference 8 and 19: pending shows while masked; unmasking asserts the line, clearing
    /// drops it (C!).
    #[test]
    fn the_level_follows_pending_and_mask() {
        let mut interrupt = Interrupt::default();
        interrupt.raise();
        assert_eq!(interrupt.settle(true), None);
        assert!(interrupt.pending() && !interrupt.level());
        assert_eq!(interrupt.settle(false), Some(true));
        assert_eq!(interrupt.settle(false), None, "only changes are reported");
        interrupt.clear();
        assert_eq!(interrupt.settle(false), Some(false));
        assert!(!interrupt.pending());
    }
}
