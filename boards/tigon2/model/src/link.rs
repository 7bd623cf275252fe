//! The fibre and what is at its other end.
//!
//! Hardware reference, section 11 ("minimal emulator model") and 10.4. With the transmitter
//! disabled the MAC sends 1000BASE-X configuration words from `R[204]`; an ideal partner that
//! negotiates answers with its own ability, acknowledged, as soon as it hears one:
//!
//! ```text
//! R[200].1 = 0   R[204] = 0       partner sends 0          R[220].19 = 1
//! R[200].1 = 0   R[204] = ability partner sends 0xA040     R[220].19 = 1
//! R[200].1 = 1                    partner sends data       R[220].19 = 0, R[224] frozen
//! ```

use tigon2_chip::mac::{config_word, phy_interface};

/// What is at the other end of the fibre.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partner {
    /// It takes part in auto-negotiation.
    pub negotiates: bool,
    /// The configuration word that it answers with, in the byte order of `R[224]`.
    pub ability: u32,
}

impl Default for Partner {
    /// Gigabit, full duplex, pause, acknowledged: 0xA040 (11).
    fn default() -> Self {
        Partner {
            negotiates: true,
            ability: config_word::FULL_DUPLEX | config_word::PAUSE | config_word::ACKNOWLEDGE,
        }
    }
}

/// State of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    cable: bool,
    partner: Partner,
    /// `R[204]`.
    tx_word: u32,
    /// `R[224]` while no code words arrive.
    rx_word: u32,
    /// `R[238]`.
    phy_interface: u32,
    /// Pin 0 of `R[44]` loops the external SERDES back.
    pin_loopback: bool,
    /// `R[200]` bit 1.
    tx_enabled: bool,
}

impl Default for Link {
    fn default() -> Self {
        Link {
            cable: true,
            partner: Partner::default(),
            tx_word: 0,
            rx_word: 0,
            phy_interface: 0,
            pin_loopback: false,
            tx_enabled: false,
        }
    }
}

impl Link {
    /// Chip reset: registers go to 0, the cable stays.
    pub fn reset(&mut self) {
        *self = Link {
            cable: self.cable,
            partner: self.partner,
            ..Link::default()
        };
    }

    /// Whether a cable is in; a signal is there, `R[220]` bit 18 (11).
    pub fn cable(&self) -> bool {
        self.cable
    }

    /// Plugs or unplugs; returns whether that is a change.
    pub fn set_cable(&mut self, plugged: bool) -> bool {
        std::mem::replace(&mut self.cable, plugged) != plugged
    }

    /// Puts another partner at the end of the fibre.
    pub fn set_partner(&mut self, partner: Partner) {
        self.partner = partner;
    }

    /// `R[220]` bit 19: negotiation code words arrive (11).
    pub fn code_words(&self) -> bool {
        self.cable && self.partner.negotiates && !self.tx_enabled
    }

    /// Whether the SERDES test loop is closed: `R[238]` or pin 0 of `R[44]` (11, C).
    pub fn loopback(&self) -> bool {
        self.pin_loopback || self.phy_interface == phy_interface::SERDES_LOOPBACK
    }

    /// Whether frames pass between the card and the wire.
    pub fn carries_frames(&self) -> bool {
        self.cable && self.tx_enabled && !self.loopback()
    }

    /// `R[204]`.
    pub fn tx_word(&self) -> u32 {
        self.tx_word
    }

    /// A write to `R[204]`.
    pub fn set_tx_word(&mut self, word: u32) {
        self.tx_word = word;
    }

    /// `R[224]`.
    pub fn rx_word(&self) -> u32 {
        if self.loopback() {
            self.tx_word
        } else if self.code_words() {
            self.answer()
        } else {
            self.rx_word
        }
    }

    /// A write to `R[224]` (firmware clears it, 10.4, C).
    pub fn set_rx_word(&mut self, word: u32) {
        self.rx_word = word;
    }

    /// `R[238]`.
    pub fn phy_interface(&self) -> u32 {
        self.phy_interface
    }

    /// A write to `R[238]`.
    pub fn set_phy_interface(&mut self, value: u32) {
        self.phy_interface = value;
    }

    /// Pin 0 of `R[44]` changed.
    pub fn set_pin_loopback(&mut self, closed: bool) {
        self.pin_loopback = closed;
    }

    /// `R[200]` bit 1 changed. From then on `R[224]` keeps the last word heard (11, C).
    pub fn set_tx_enabled(&mut self, enabled: bool) {
        if enabled && self.code_words() {
            self.rx_word = self.answer();
        }
        self.tx_enabled = enabled;
    }

    fn answer(&self) -> u32 {
        if self.tx_word == 0 {
            0
        } else {
            self.partner.ability
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use tigon2_chip::Register;
    use tigon2_chip::bits::MacRxState;
    use tigon2_chip::events::EventBit;

    const SYNC: u32 = 1 << 18;
    const CODE_WORDS: u32 = 1 << 19;
    const ATTENTION_24_OR_25: u32 = 3 << 24;

    /// Reference 11, step 1: with R[238] = 0xC801F6 each of the 16 one-bit patterns written
    /// to R[204] reads back in R[224]; the same with R[44] = 0xF080 (C, both).
    #[test]
    fn the_serdes_loopback_test_passes_both_ways() {
        let mut bench = Bench::default();
        let patterns = |bench: &mut Bench| {
            (0..16).all(|bit| {
                bench.write(Register::TxConfigWord, 1 << bit);
                bench.read(Register::RxConfigWord) == 1 << bit
            })
        };
        assert!(!patterns(&mut bench), "the loop is open");
        bench.write(Register::PhyInterface, 0xC8_01F6);
        assert!(patterns(&mut bench));
        bench.write(Register::PhyInterface, 0xC8_01FE);
        assert!(!patterns(&mut bench));
        bench.write(Register::MiscLocalControl, 0xF080);
        assert!(patterns(&mut bench));
        bench.write(Register::MiscLocalControl, 0xA080);
        assert!(!patterns(&mut bench));
    }

    /// Reference 10.4: after firmware clears the attentions and then bit 1 while a signal is
    /// present, bit 24 or 25 is set on the next read (C!); without a signal it is not.
    #[test]
    fn disabling_the_receiver_with_a_signal_raises_an_attention() {
        for cable in [true, false] {
            let mut bench = Bench::default();
            bench.with(|card, env| card.set_cable(env, cable));
            bench.write(Register::MacRxState, 2);
            bench.write(Register::MacRxState, MacRxState::ATTENTION | 2);
            assert_eq!(bench.read(Register::MacRxState) & MacRxState::ATTENTION, 0);
            bench.write(Register::MacRxState, 0);
            let state = bench.read(Register::MacRxState);
            assert_eq!(state & ATTENTION_24_OR_25 != 0, cable);
            assert_eq!(state & SYNC != 0, cable);
            let event = bench.read(Register::EventA) & EventBit::MacRxAttention.mask();
            assert_eq!(event != 0, cable);
        }
    }

    /// Reference 11, step 3: the negotiation of the vendor firmware with a partner (C).
    #[test]
    fn a_negotiating_partner_acknowledges_and_then_sends_data() {
        let mut bench = Bench::default();
        bench.write(Register::MacTxState, 0xE0);
        bench.write(Register::MacRxState, 2);
        bench.write(Register::TxConfigWord, 0);
        bench.write(Register::RxConfigWord, 0);
        assert_eq!(bench.read(Register::RxConfigWord), 0);
        bench.write(Register::TxConfigWord, 0xA000);
        assert_eq!(
            bench.read(Register::MacRxState) & (SYNC | CODE_WORDS),
            SYNC | CODE_WORDS
        );
        assert_ne!(
            bench.read(Register::RxConfigWord) & config_word::FULL_DUPLEX,
            0
        );
        bench.write(Register::TxConfigWord, 0xA040);
        assert_eq!(bench.read(Register::RxConfigWord), 0xA040);
        bench.write(Register::MacTxState, 0xE2);
        assert_eq!(bench.read(Register::MacRxState) & (SYNC | CODE_WORDS), SYNC);
        bench.write(Register::TxConfigWord, 0);
        assert_eq!(
            bench.read(Register::RxConfigWord),
            0xA040,
            "constant while the link is up"
        );
    }

    /// Reference 10.4: `R[224]` is writable, firmware clears it (C); words are those of
    /// 1000BASE-X with their bytes swapped (C).
    #[test]
    fn firmware_clears_the_received_word() {
        let mut bench = Bench::default();
        bench.write(Register::TxConfigWord, 0xA000);
        bench.write(Register::MacTxState, 0xE2);
        let heard = bench.read(Register::RxConfigWord);
        // Base page of 1000BASE-X: bit 5 full duplex, bit 7 pause, bit 14 acknowledge.
        assert_eq!((heard as u16).swap_bytes(), 1 << 5 | 1 << 7 | 1 << 14);
        bench.write(Register::RxConfigWord, 0);
        assert_eq!(bench.read(Register::RxConfigWord), 0);
    }

    /// Reference 11: a partner that does not negotiate sends no code words (C); a change of
    /// the cable sets attention 25.
    #[test]
    fn a_silent_partner_and_a_pulled_cable() {
        let mut bench = Bench::default();
        bench.card.set_partner(Partner {
            negotiates: false,
            ..Partner::default()
        });
        bench.write(Register::TxConfigWord, 0xA000);
        assert_eq!(bench.read(Register::MacRxState) & (SYNC | CODE_WORDS), SYNC);
        assert_eq!(bench.read(Register::RxConfigWord), 0);
        bench.with(|card, env| card.set_cable(env, false));
        let state = MacRxState::from_bits(bench.read(Register::MacRxState));
        assert!(state.sync_attention() && !state.synchronised());
        bench.write(Register::MacRxState, MacRxState::ATTENTION);
        bench.with(|card, env| card.set_cable(env, false));
        assert!(!MacRxState::from_bits(bench.read(Register::MacRxState)).sync_attention());
    }
}
