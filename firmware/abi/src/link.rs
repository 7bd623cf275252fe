//! The link words of gencom: the requested link and its state.
//!
//! Host/NIC software interface, "Link bits".

use bitfield_struct::bitfield;

/// The request or the state of a link, BAR 0x648, 0x64C, 0x668 and 0x66C.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LinkWord {
    #[bits(13)]
    __: u16,
    /// bit 13: do not sense the beginning of negotiation.
    pub no_sense: bool,
    /// bit 14: loop frames back.
    pub loopback: bool,
    /// bit 15: prefer this link to the other one.
    pub preferred: bool,
    /// bit 16: 10 Mb/s.
    pub speed_10: bool,
    /// bit 17: 100 Mb/s.
    pub speed_100: bool,
    /// bit 18: 1000 Mb/s.
    pub speed_1000: bool,
    /// bit 19: full duplex.
    pub full_duplex: bool,
    /// bit 20: half duplex.
    pub half_duplex: bool,
    /// bit 21: send pause frames.
    pub transmit_flow_control: bool,
    __: bool,
    /// bit 23: obey pause frames.
    pub receive_flow_control: bool,
    #[bits(4)]
    __: u8,
    /// bit 28: negotiate flow control.
    pub negotiate_flow_control: bool,
    /// bit 29: negotiate the link.
    pub autonegotiate: bool,
    /// bit 30: enable the link.
    pub enable: bool,
    /// bit 31: the link is up (state only).
    pub up: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hardware reference, "Linux settings": both link words 0x70AF0000.
    #[test]
    fn the_linux_link_word() {
        let linux = LinkWord::new()
            .with_enable(true)
            .with_autonegotiate(true)
            .with_negotiate_flow_control(true)
            .with_receive_flow_control(true)
            .with_transmit_flow_control(true)
            .with_full_duplex(true)
            .with_speed_1000(true)
            .with_speed_100(true)
            .with_speed_10(true);
        assert_eq!(linux.into_bits(), 0x70AF_0000);
        assert_eq!(LinkWord::new().with_up(true).into_bits(), 0x8000_0000);
        assert_eq!(LinkWord::new().with_loopback(true).into_bits(), 0x4000);
        assert_eq!(LinkWord::new().with_preferred(true).into_bits(), 0x8000);
        assert_eq!(
            LinkWord::new().with_half_duplex(true).into_bits(),
            0x10_0000
        );
    }
}
