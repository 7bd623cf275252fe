//! A smoltcp device that holds one received packet for the stack and collects the packets that it
//! sends.
//!
//! The stack uses IP; this device adds and removes the Ethernet headers, since every host knows
//! the station addresses of all others. (ARP is not part of these experiments.)

use smoltcp::iface::{Config, Interface};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr, Ipv4Address, Ipv4Cidr};

/// Bytes of an Ethernet header.
pub const ETHERNET_HEADER: usize = 14;
/// Where the destination address lies in a frame with an IPv4 packet.
const DESTINATION: std::ops::Range<usize> = 30..34;
/// EtherType of IPv4.
const IPV4: [u8; 2] = [8, 0];
/// All hosts are in one network.
const PREFIX: u8 = 16;

/// The server.
pub const SERVER: Ipv4Address = Ipv4Address::new(10, 77, 0, 1);

/// Client machine `machine`. The first has an address that a power-of-two number of queues
/// divides, so that consecutive machines belong to consecutive queues.
pub fn client_address(machine: usize) -> Ipv4Address {
    Ipv4Address::new(10, 77, 1, machine as u8)
}

/// Its station address.
pub fn client_station(address: Ipv4Address) -> [u8; 6] {
    let [.., network, host] = address.octets();
    [0x02, 0x54, 0x47, 0, network, host]
}

/// smoltcp's time.
pub fn instant(nanoseconds: u64) -> Instant {
    Instant::from_micros((nanoseconds / 1000) as i64)
}

/// The device.
#[derive(Debug)]
pub struct Packets {
    mtu: u16,
    station: [u8; 6],
    /// Where all frames go; none: to the client whose packet it is.
    gateway: Option<[u8; 6]>,
    received: Option<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

impl Packets {
    /// The device of the server.
    pub fn of_server(mtu: u16, station: [u8; 6]) -> Packets {
        Packets {
            mtu,
            station,
            gateway: None,
            received: None,
            sent: Vec::new(),
        }
    }

    /// The device of a client of the server with a station address.
    pub fn of_client(mtu: u16, address: Ipv4Address, server: [u8; 6]) -> Packets {
        Packets {
            gateway: Some(server),
            ..Packets::of_server(mtu, client_station(address))
        }
    }

    /// An interface with an address over this device, random by a seed.
    pub fn interface(&mut self, address: Ipv4Address, seed: u64) -> Interface {
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, self, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            // The list is empty and holds at least one.
            let _ = addresses.push(IpCidr::Ipv4(Ipv4Cidr::new(address, PREFIX)));
        });
        interface
    }

    /// The stack's next packet.
    pub fn receive_frame(&mut self, frame: Vec<u8>) {
        self.received = Some(frame);
    }

    /// The frames that the stack has sent since this was last asked.
    pub fn take_sent(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.sent)
    }
}

/// A packet for the stack.
pub struct Incoming(Vec<u8>);

impl RxToken for Incoming {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0.get(ETHERNET_HEADER..).unwrap_or_default())
    }
}

/// Room for a packet of the stack.
pub struct Outgoing<'a>(&'a mut Packets);

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let packets = self.0;
        let mut frame = vec![0; ETHERNET_HEADER + len];
        let result = f(&mut frame[ETHERNET_HEADER..]);
        let to = packets.gateway.unwrap_or_else(|| {
            let mut address = [0; 4];
            if let Some(bytes) = frame.get(DESTINATION) {
                address.copy_from_slice(bytes);
            }
            client_station(Ipv4Address::from(address))
        });
        frame[..6].copy_from_slice(&to);
        frame[6..12].copy_from_slice(&packets.station);
        frame[12..ETHERNET_HEADER].copy_from_slice(&IPV4);
        packets.sent.push(frame);
        result
    }
}

impl Device for Packets {
    type RxToken<'a> = Incoming;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Incoming, Outgoing<'_>)> {
        let frame = self.received.take()?;
        Some((Incoming(frame), Outgoing(self)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Outgoing<'_>> {
        Some(Outgoing(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu.into();
        capabilities
    }
}
