//! Which frames go to which handler, as the firmware compares them and as users write it.
//!
//! ```text
//! any              all frames
//! ether:0x88b5     an EtherType
//! ip:1             a protocol, in IPv4 packets without options
//! udp:7            a UDP port, in IPv4 packets without options
//! udp:7=2          the same, to handler 2; else to handler 0
//! message          messages of the wire for the domain, which name their handler
//! ```
//!
//! A policy says which of them a signer's extensions may have ([`GuardGrant`]).

use host_interface::spine::GUARDS_MESSAGES;
use host_interface::spine::rings::ETHER_TYPE;
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

    /// Messages of the wire for a domain, see [`host_interface::spine::rings`].
    pub fn messages(domain: u32) -> Guard {
        let mut guard = Guard::ether_type(domain, GUARDS_MESSAGES as u8, ETHER_TYPE);
        guard.terms.push(Term {
            offset: 16,
            mask: 0xFF00,
            value: domain << 8,
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
#[error(
    "{0} is no guard: message, any, ether:TYPE, ip:PROTOCOL or udp:PORT, and =HANDLER behind it"
)]
pub struct NoGuard(String);

/// What a guard looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Any,
    Ether,
    Ip,
    Udp,
    Message,
}

impl Kind {
    fn of(text: &str) -> Option<Kind> {
        match text {
            "any" => Some(Kind::Any),
            "ether" => Some(Kind::Ether),
            "ip" => Some(Kind::Ip),
            "udp" => Some(Kind::Udp),
            "message" => Some(Kind::Message),
            _ => None,
        }
    }

    /// Whether a value belongs to it, and the largest one.
    const fn most(self) -> Option<u16> {
        match self {
            Kind::Any | Kind::Message => None,
            Kind::Ip => Some(0xFF),
            Kind::Ether | Kind::Udp => Some(u16::MAX),
        }
    }
}

/// A guard without a domain, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardText {
    kind: Kind,
    value: u16,
    handler: u8,
}

impl GuardText {
    /// The guard, for a domain.
    pub fn of_domain(&self, domain: u32) -> Guard {
        let GuardText {
            kind,
            value,
            handler,
        } = *self;
        match kind {
            Kind::Any => Guard::any(domain, handler),
            Kind::Ether => Guard::ether_type(domain, handler, value),
            Kind::Ip => Guard::ip_protocol(domain, handler, value as u8),
            Kind::Udp => Guard::udp_port(domain, handler, value),
            Kind::Message => Guard::messages(domain),
        }
    }
}

impl std::fmt::Display for GuardText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.value;
        match self.kind {
            Kind::Any => write!(f, "any")?,
            Kind::Ether => write!(f, "ether:{value:#x}")?,
            Kind::Ip => write!(f, "ip:{value}")?,
            Kind::Udp => write!(f, "udp:{value}")?,
            Kind::Message => return write!(f, "message"),
        }
        write!(f, "={}", self.handler)
    }
}

/// Which guards a signer's extensions may have.
///
/// ```text
/// any                all guards
/// udp                all of a kind: ether, ip, udp, message
/// udp:4711           this one
/// udp:4000-4999      these
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardGrant {
    kind: Kind,
    from: u16,
    to: u16,
}

impl GuardGrant {
    /// Whether a guard is among them.
    pub fn covers(&self, guard: &GuardText) -> bool {
        let among = (self.from..=self.to).contains(&guard.value);
        self.kind == Kind::Any || self.kind == guard.kind && among
    }
}

impl FromStr for GuardGrant {
    type Err = NoGuard;

    fn from_str(text: &str) -> Result<Self, NoGuard> {
        granted(text).ok_or_else(|| NoGuard(text.to_owned()))
    }
}

fn granted(text: &str) -> Option<GuardGrant> {
    let (kind, values) = match text.split_once(':') {
        Some((kind, values)) => (Kind::of(kind)?, Some(values)),
        None => (Kind::of(text)?, None),
    };
    let Some(values) = values else {
        return Some(GuardGrant {
            kind,
            from: 0,
            to: u16::MAX,
        });
    };
    let most = kind.most()?;
    let (from, to) = values.split_once('-').unwrap_or((values, values));
    let (from, to) = (number(from)?, number(to)?);
    (from <= to && to <= most).then_some(GuardGrant { kind, from, to })
}

impl FromStr for GuardText {
    type Err = NoGuard;

    fn from_str(text: &str) -> Result<Self, NoGuard> {
        parsed(text).ok_or_else(|| NoGuard(text.to_owned()))
    }
}

fn parsed(text: &str) -> Option<GuardText> {
    let (frames, handler) = match text.split_once('=') {
        // Messages name their handlers themselves.
        Some(("message", _)) => return None,
        Some((frames, handler)) => (frames, handler.parse().ok()?),
        None => (text, 0),
    };
    let (kind, value) = match frames.split_once(':') {
        Some((kind, value)) => (Kind::of(kind)?, Some(number(value)?)),
        None => (Kind::of(frames)?, None),
    };
    let fits = match (kind.most(), value) {
        (Some(most), Some(value)) => value <= most,
        (None, None) => true,
        _ => false,
    };
    fits.then_some(GuardText {
        kind,
        value: value.unwrap_or_default(),
        handler,
    })
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
            "any:7",
            "message=1",
            "message:1",
            "ether",
        ] {
            assert_eq!(of(wrong), Err(NoGuard(wrong.to_owned())));
        }
        for text in [
            "any=0",
            "ether:0x88b5=2",
            "ip:1=0",
            "udp:4711=255",
            "message",
        ] {
            let parsed: GuardText = text.parse().expect(text);
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn a_grant_covers_the_guards_that_it_names() {
        let covers = |grant: &str, guard: &str| {
            let grant: GuardGrant = grant.parse().expect(grant);
            grant.covers(&guard.parse().expect(guard))
        };
        for guard in ["any", "ether:1", "ip:1", "udp:1", "message"] {
            assert!(covers("any", guard));
            let kind = guard.split(':').next().expect("a kind");
            assert!(covers(kind, guard));
            assert_eq!(covers("udp", guard), kind == "udp");
        }
        assert!(covers("udp:4000-4999", "udp:4711=3") && covers("ether:0x88b5", "ether:0x88b5"));
        assert!(!covers("udp:4000-4999", "udp:5000") && !covers("ip:17", "udp:17"));
        for wrong in [
            "",
            "tcp",
            "udp:9-8",
            "udp:1-",
            "ip:256",
            "any:1",
            "message:1-2",
        ] {
            let parsed = wrong.parse::<GuardGrant>();
            assert_eq!(parsed, Err(NoGuard(wrong.to_owned())));
        }
    }
}
