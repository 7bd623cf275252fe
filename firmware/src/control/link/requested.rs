//! The modes that the link words request, and what a partner agrees to.
//!
//! Host/NIC software interface, "Link bits". IEEE 802.3, annex 28B, defines which duplex and which
//! pause frames two partners agree on.

use host_interface::LinkWord;

/// Whether a word requests a gigabit link. A word without any speed requests all of them.
pub const fn gigabit(word: LinkWord) -> bool {
    word.enable() && (word.speed_1000() || !(word.speed_100() || word.speed_10()))
}

/// Whether a word requests a 10 or 100 Mb/s link.
pub const fn fast(word: LinkWord) -> bool {
    word.enable() && (word.speed_100() || word.speed_10() || !word.speed_1000())
}

/// Whether a word accepts full duplex. A word without any duplex accepts both.
pub const fn full_duplex(word: LinkWord) -> bool {
    word.full_duplex() || !word.half_duplex()
}

/// Whether a word accepts half duplex.
pub const fn half_duplex(word: LinkWord) -> bool {
    word.half_duplex() || !word.full_duplex()
}

/// Whether the words request loopback.
pub const fn loopback(gigabit: LinkWord, fast: LinkWord) -> bool {
    gigabit.enable() && gigabit.loopback() || fast.enable() && fast.loopback()
}

/// Which pause frames are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The MAC sends them: `R[200]` bit 8.
    pub send: bool,
    /// The MAC obeys them: `R[220]` bit 16.
    pub obey: bool,
}

/// What a side advertises about pause frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseAbility {
    /// It supports both directions together.
    pub symmetric: bool,
    /// It supports one direction alone.
    pub asymmetric: bool,
}

impl Pause {
    /// No pause frames.
    pub const NONE: Pause = Pause {
        send: false,
        obey: false,
    };

    /// The pause frames that a word requests.
    pub const fn wanted(word: LinkWord) -> Pause {
        Pause {
            send: word.transmit_flow_control(),
            obey: word.receive_flow_control(),
        }
    }

    /// What to advertise to the partner.
    pub const fn ability(self) -> PauseAbility {
        PauseAbility {
            symmetric: self.obey,
            asymmetric: self.send != self.obey,
        }
    }

    /// What this side and the partner agree on. A word that does not request negotiation gets what
    /// it requests.
    pub const fn agreed(word: LinkWord, partner: PauseAbility) -> Pause {
        let wanted = Pause::wanted(word);
        if !word.negotiate_flow_control() {
            return wanted;
        }
        let mine = wanted.ability();
        let one_way = mine.asymmetric && partner.asymmetric;
        let both = mine.symmetric && partner.symmetric;
        Pause {
            send: wanted.send && (both || one_way && !mine.symmetric && partner.symmetric),
            obey: wanted.obey && (both || one_way && mine.symmetric && !partner.symmetric),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(send: bool, obey: bool) -> LinkWord {
        LinkWord::new()
            .with_negotiate_flow_control(true)
            .with_transmit_flow_control(send)
            .with_receive_flow_control(obey)
    }

    /// IEEE 802.3, table 28B-3, with what this side wants on top of it: whoever wants to
    /// send nothing sends nothing.
    #[test]
    fn both_sides_agree_on_pause_frames() {
        let cases = [
            // wanted send, obey; partner symmetric, asymmetric; agreed send, obey
            ((false, false), (true, true), (false, false)),
            ((true, true), (true, false), (true, true)),
            ((true, true), (true, true), (true, true)),
            ((true, true), (false, true), (false, false)),
            ((true, true), (false, false), (false, false)),
            ((true, false), (true, true), (true, false)),
            ((true, false), (true, false), (false, false)),
            ((false, true), (true, false), (false, true)),
            ((false, true), (false, true), (false, true)),
            ((false, true), (false, false), (false, false)),
        ];
        for ((send, obey), (symmetric, asymmetric), agreed) in cases {
            let partner = PauseAbility {
                symmetric,
                asymmetric,
            };
            let pause = Pause::agreed(word(send, obey), partner);
            assert_eq!(
                (pause.send, pause.obey),
                agreed,
                "{send} {obey} {partner:?}"
            );
        }
        let forced = word(true, false).with_negotiate_flow_control(false);
        let nothing = PauseAbility {
            symmetric: false,
            asymmetric: false,
        };
        assert_eq!(Pause::agreed(forced, nothing), Pause::wanted(forced));
    }

    /// The words of the drivers: reference 12 and, second section, 19.
    #[test]
    fn a_word_without_speeds_or_duplexes_means_all() {
        let linux = LinkWord::from_bits(0x70AF_0000);
        assert!(gigabit(linux) && fast(linux) && full_duplex(linux) && !half_duplex(linux));
        let bsd = LinkWord::from_bits(0x608C_8000);
        assert!(gigabit(bsd) && !fast(bsd));
        let plain = LinkWord::new().with_enable(true);
        assert!(gigabit(plain) && fast(plain) && full_duplex(plain) && half_duplex(plain));
        let hundred = plain.with_speed_100(true).with_half_duplex(true);
        assert!(!gigabit(hundred) && fast(hundred) && !full_duplex(hundred));
        assert!(!gigabit(LinkWord::new()) && !fast(LinkWord::new()));
    }
}
