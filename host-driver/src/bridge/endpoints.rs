//! Endpoints of a process beside the kernel's share of the card.
//!
//! ```text
//!              ┌── datagrams to an endpoint's port ──► endpoint
//!   wire ─ card┤
//!              └── all else: ARP, ICMP, other ports ──► TAP device ──► kernel
//!                  its datagrams whose first fragment is not first ───► its socket, reserved here
//! ```
//!
//! One thread does both, and polls: what an endpoint is given raises no interrupt. A socket of the
//! kernel's has the endpoint's port, so that nobody else gets it there; datagrams that the card
//! leaves to the kernel, as another fragment came before the first, arrive at it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use super::{BridgeReport, turn};
use crate::nic::{EndpointCard, Nic, NicError};
use crate::tap::Tap;
use crate::transport::Transport;

/// Between two questions for a neighbour.
const ASK: Duration = Duration::from_millis(200);
/// The port to which they go: what comes there is thrown away.
const DISCARD: u16 = 9;
/// The kernel's neighbours.
const NEIGHBOURS: &str = "/proc/net/arp";

/// A card with endpoints, and the kernel's share of it.
pub struct Beside<T: Transport> {
    nic: Nic<T>,
    tap: Tap,
    vlan: Option<u16>,
    reserved: UdpSocket,
    scratch: Vec<u8>,
    report: BridgeReport,
}

impl<T: Transport> Beside<T> {
    /// An open card under a TAP device that has the address; reserves the port.
    ///
    /// # Errors
    /// If the port is in use, or the address is not the device's.
    pub fn new(nic: Nic<T>, tap: Tap, vlan: Option<u16>, local: SocketAddrV4) -> io::Result<Self> {
        let reserved = UdpSocket::bind(local)?;
        reserved.set_nonblocking(true)?;
        Ok(Self {
            nic,
            tap,
            vlan,
            reserved,
            scratch: Vec::new(),
            report: BridgeReport::default(),
        })
    }

    /// The card, for its endpoints.
    pub fn card(&mut self) -> EndpointCard<'_, T> {
        EndpointCard(&mut self.nic)
    }

    /// Moves a batch of the kernel's frames each way; true if there were any.
    ///
    /// # Errors
    /// [`NicError`] if the card fails or the TAP device is gone.
    pub fn turn(&mut self) -> Result<bool, NicError> {
        let Self {
            nic,
            tap,
            vlan,
            scratch,
            report,
            ..
        } = self;
        turn(nic, tap, *vlan, scratch, report)
    }

    /// The station that has an address, or leads there, as the kernel finds it out; `None` if
    /// nobody answers in time.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn neighbour(
        &mut self,
        address: Ipv4Addr,
        patience: Duration,
    ) -> Result<Option<[u8; 6]>, NicError> {
        let end = Instant::now() + patience;
        let mut ask = Instant::now();
        while Instant::now() < end {
            if Instant::now() >= ask {
                ask += ASK;
                // Without a route there is no neighbour either.
                let _ = self.reserved.send_to(&[], (address, DISCARD));
            }
            if !self.turn()? {
                std::thread::sleep(Duration::from_millis(1));
            }
            let table = std::fs::read_to_string(NEIGHBOURS)?;
            if let Some(station) = station_of(&table, address, self.tap.name()) {
                return Ok(Some(station));
            }
        }
        Ok(None)
    }

    /// A datagram to the endpoint's port that came in fragments: its bytes, and who sent it.
    pub fn in_fragments(&mut self, out: &mut [u8]) -> Option<(usize, SocketAddrV4)> {
        match self.reserved.recv_from(out) {
            Ok((bytes, SocketAddr::V4(from))) => Some((bytes, from)),
            // Nothing is there, or a neighbour has no such port.
            Ok(_) | Err(_) => None,
        }
    }

    /// What of the kernel's was moved.
    pub fn report(&self) -> BridgeReport {
        self.report
    }

    /// The card alone; the TAP device is removed.
    pub fn into_nic(self) -> Nic<T> {
        self.nic
    }
}

/// The station of a complete entry.
fn station_of(table: &str, address: Ipv4Addr, device: &str) -> Option<[u8; 6]> {
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [of, _, flags, station, _, on] = words[..] else {
            return None;
        };
        let complete = flags != "0x0" && on == device && of.parse() == Ok(address);
        let mut bytes = station.split(':').map(|byte| u8::from_str_radix(byte, 16));
        let mut all = [0; 6];
        for byte in &mut all {
            *byte = bytes.next()?.ok()?;
        }
        (complete && bytes.next().is_none()).then_some(all)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read() {
        let table = "IP address       HW type     Flags       HW address            Mask     Device\n\
             10.77.0.2        0x1         0x2         02:00:00:00:00:07     *        tigon0\n\
             10.77.0.3        0x1         0x0         00:00:00:00:00:00     *        tigon0\n\
             10.77.0.4        0x1         0x2         02:00:00:00:00:09     *        eth0\n";
        let of = |last| station_of(table, Ipv4Addr::new(10, 77, 0, last), "tigon0");
        assert_eq!(of(2), Some([2, 0, 0, 0, 0, 7]));
        assert_eq!([of(3), of(4), of(5)], [None; 3]);
        assert_eq!(station_of("", Ipv4Addr::LOCALHOST, "lo"), None);
    }
}
