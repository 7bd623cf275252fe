//! `R[200]`, the state of the MAC's transmitter.
//!
//! Hardware reference, section 10.4. Both CPUs want to write it in the variant with endpoints: CPU A
//! for the link, CPU B to cut a frame off. Each reads the register and writes it back with its own bits
//! changed, so a write of one between these two accesses of the other would be lost. There CPU B alone
//! writes the register once it runs. CPU A lays down the state that it wants:
//!
//! ```text
//!   CPU A   state = value, asked += 1                 done == asked: it is set
//!   CPU B                             value + its own stop ─► R[200], done = asked
//! ```
//!
//! CPU B looks in each turn of its housekeeping, but not while it watches a frame. So the register
//! follows within some 1 ms; the link waits 10 ms from one state to the next.

use super::{IoA, IoB};
use crate::memory::layout::EUDP;
use crate::memory::shared::{EUDP_TRANSMIT_ASKED, EUDP_TRANSMIT_DONE, EUDP_TRANSMIT_STATE};
use tigon2_chip::Register;
use tigon2_chip::bits::MacTxState;
use tigon2_hal::events::Dispatch;

impl<B: Dispatch> IoA<B> {
    /// Sets the transmitter's state, or asks CPU B for it.
    #[inline(always)]
    pub fn set_transmitter(&mut self, state: u32) {
        if EUDP == 0 {
            return self.bus.write(Register::MacTxState, state);
        }
        self.ask_for_state(state);
    }

    /// Clears the transmitter's attentions. While CPU B has a state to set, it leaves them: then they
    /// are raised again.
    #[inline(always)]
    pub fn clear_transmitter_attention(&mut self) {
        let bus = &mut self.bus;
        if EUDP != 0 && EUDP_TRANSMIT_DONE.get(bus) != EUDP_TRANSMIT_ASKED.get(bus) {
            return;
        }
        // Writing back what was read clears them (write 1 to clear).
        let state = bus.read(Register::MacTxState);
        self.set_transmitter(state);
    }

    #[inline(never)]
    fn ask_for_state(&mut self, state: u32) {
        let bus = &mut self.bus;
        EUDP_TRANSMIT_STATE.set(&self.me, bus, state);
        let asked = EUDP_TRANSMIT_ASKED.get(bus).wrapping_add(1);
        EUDP_TRANSMIT_ASKED.set(&self.me, bus, asked);
    }
}

impl<B: Dispatch> IoB<B> {
    /// Sets the state that CPU A has asked for, if any. Whether the transmitter is stopped stays: that
    /// is CPU B's.
    #[inline(never)]
    pub fn follow_transmitter(&mut self) {
        let bus = &mut self.bus;
        let asked = EUDP_TRANSMIT_ASKED.get(bus);
        if asked == EUDP_TRANSMIT_DONE.get(bus) {
            return;
        }
        // If CPU A asks again meanwhile, the number differs again.
        let state = MacTxState::from_bits(EUDP_TRANSMIT_STATE.get(bus));
        let stop = MacTxState::from_bits(bus.read(Register::MacTxState)).stop();
        bus.write(Register::MacTxState, state.with_stop(stop).into_bits());
        EUDP_TRANSMIT_DONE.set(&self.me, bus, asked);
    }
}
