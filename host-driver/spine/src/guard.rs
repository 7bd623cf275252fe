//! Which frames go to which handler, as the firmware compares them and as users write it.
//!
//! ```text
//! any              all frames
//! ether:0x88b5     an EtherType
//! ip:1             a protocol, in IPv4 packets without options
//! udp:7            a UDP port, in IPv4 packets without options
//! udp:7=2          the same, to handler 2; else to handler 0
//! ```

use std::str::FromStr;
use thiserror::Error;

/// Which frames a guard wants: a comparison of a word of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Offset of the word, a multiple of 4.
    pub offset: u32,
    /// Bits that count.
    pub mask: u32,
    /// What they are.
    pub value: u32,
}

/// Which frames go to a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Whose.
    pub domain: u32,
    /// The handler's number.
    pub handler: u8,
    /// All of them hold.
    pub terms: Vec<Term>,
}

impl Guard {
    /// All frames.
    pub fn any(domain: u32, handler: u8) -> Guard {
        Guard {
            domain,
            handler,
            terms: Vec::new(),
        }
    }

    /// Frames of an EtherType.
    pub fn ether_type(domain: u32, handler: u8, kind: u16) -> Guard {
        let mut guard = Guard::any(domain, handler);
        guard.terms.push(Term {
            offset: 12,
            mask: 0xFFFF_0000,
            value: u32::from(kind) << 16,
        });
        guard
    }

    /// IPv4 packets without options that carry a protocol.
    pub fn ip_protocol(domain: u32, handler: u8, protocol: u8) -> Guard {
        let mut guard = Guard::any(domain, handler);
        guard.terms = vec![
            Term {
                offset: 12,
                mask: 0xFFFF_FF00,
                value: 0x0800_4500,
            },
            Term {
                offset: 20,
                mask: 0xFF,
                value: protocol.into(),
            },
        ];
        guard
    }

    /// UDP datagrams to a port, in IPv4 packets without options.
    pub fn udp_port(domain: u32, handler: u8, port: u16) -> Guard {
        let mut guard = Guard::ip_protocol(domain, handler, 17);
        guard.terms.push(Term {
            offset: 36,
            mask: 0xFFFF_0000,
            value: u32::from(port) << 16,
        });
        guard
    }
}

/// Text that is no guard.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0} is no guard: any, ether:TYPE, ip:PROTOCOL or udp:PORT, and =HANDLER behind it")]
pub struct NoGuard(String);

/// A guard without a domain, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardText(Guard);

impl GuardText {
    /// The guard, for a domain.
    pub fn of_domain(&self, domain: u32) -> Guard {
        Guard {
            domain,
            ..self.0.clone()
        }
    }
}

impl FromStr for GuardText {
    type Err = NoGuard;

    fn from_str(text: &str) -> Result<Self, NoGuard> {
        parsed(text)
            .map(GuardText)
            .ok_or_else(|| NoGuard(text.to_owned()))
    }
}

fn parsed(text: &str) -> Option<Guard> {
    let (frames, handler) = text.split_once('=').unwrap_or((text, "0"));
    let handler = handler.parse().ok()?;
    if frames == "any" {
        return Some(Guard::any(0, handler));
    }
    let (kind, value) = frames.split_once(':')?;
    let value = number(value)?;
    match kind {
        "ether" => Some(Guard::ether_type(0, handler, value)),
        "ip" => Some(Guard::ip_protocol(0, handler, value.try_into().ok()?)),
        "udp" => Some(Guard::udp_port(0, handler, value)),
        _ => None,
    }
}

fn number(text: &str) -> Option<u16> {
    match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_becomes_a_guard() {
        let of = |text: &str| text.parse::<GuardText>().map(|text| text.of_domain(3));
        assert_eq!(of("any"), Ok(Guard::any(3, 0)));
        assert_eq!(of("ether:0x88b5=2"), Ok(Guard::ether_type(3, 2, 0x88B5)));
        assert_eq!(of("ip:1"), Ok(Guard::ip_protocol(3, 0, 1)));
        assert_eq!(of("udp:4711=255"), Ok(Guard::udp_port(3, 255, 4711)));
        for wrong in [
            "",
            "all",
            "ip:256",
            "udp:65536",
            "udp:",
            "udp:7=",
            "udp:7=256",
            "tcp:7",
        ] {
            assert_eq!(of(wrong), Err(NoGuard(wrong.to_owned())));
        }
    }
}
