//! A simulated card with firmware that has endpoints, and a peer on its wire.

use etherparse::{
    EtherType, Ethernet2Header, IpFragOffset, IpNumber, Ipv4Header, NetSlice, PacketBuilder,
    SlicedPacket, TransportSlice, UdpHeader,
};
use eudp::{
    Access, AddressHandle, Checksum, Completion, CutThrough, Destination, Endpoint, EndpointConfig,
    Eudp, Received, Refusals, Region, Status,
};
use frame_pipeline::trace::{Checker, Entry};
use host_driver::nic::EndpointCard;
use host_driver::{Config, DmaMemory};
use integration_tests::{Engine, Sim, Stage};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use testbed::firmware::{FirmwareOptions, Placement, Variant, build, build_with_transitions};
use tigon2_sim::SimTransport;

/// The local port.
pub const PORT: u16 = 4711;
/// The peer's.
pub const PEER_PORT: u16 = 9;
const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PEER_STATION: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// The peer.
pub const PEER_AT: Destination = Destination {
    station: PEER_STATION,
    address: PEER,
    lifetime: 64,
    dont_fragment: false,
};
/// Of the card's time.
const PATIENCE: Duration = Duration::from_millis(20);

/// The variant with endpoints.
pub fn image() -> Vec<u8> {
    std::fs::read(built()).expect("the image")
}

/// The file that has it.
pub fn built() -> PathBuf {
    build(options()).expect("the firmware builds").tg2
}

/// The same whose CPU A records the transitions of its machines, too.
pub fn recording_image() -> Vec<u8> {
    let built = build_with_transitions(options());
    built
        .and_then(|it| it.image())
        .expect("the firmware builds")
}

fn options() -> FirmwareOptions {
    use clap::ValueEnum;
    FirmwareOptions {
        variant: Variant::from_str("eudp", false).expect("a variant"),
        placement: Placement::Scratch,
        quiet: true,
    }
}

/// A frame on the wire, and when it ended, in nanoseconds.
pub struct Seen {
    pub bytes: Vec<u8>,
    pub at: u64,
}

/// A card with one endpoint.
pub struct Card {
    pub stage: Stage<Sim>,
    pub eudp: Eudp,
    pub endpoint: Endpoint<DmaMemory>,
    pub memory: DmaMemory,
    pub region: Region,
    pub peer: AddressHandle,
    /// Transitions of the firmware that were followed.
    steps: u32,
    checker: Checker,
}

impl Card {
    /// One that keeps the chip's time.
    pub fn timed(cut: CutThrough, checksum: Checksum, mtu: u32) -> Card {
        Card::on(Sim::timed("default"), cut, checksum, mtu)
    }

    /// The same on a card that was powered up.
    pub fn on(powered: (Sim, SimTransport), cut: CutThrough, checksum: Checksum, mtu: u32) -> Card {
        Card::with_config(
            powered,
            cut,
            EndpointConfig {
                checksum,
                mtu,
                ..EndpointConfig::default()
            },
        )
    }

    /// One whose endpoint is connected to the peer.
    pub fn connected(mtu: u32) -> Card {
        let connected = Some(PEER);
        let config = EndpointConfig {
            connected,
            mtu,
            ..EndpointConfig::default()
        };
        Card::with_config(Sim::timed("default"), CutThrough::OfBus, config)
    }

    /// One with an endpoint of its own kind.
    pub fn with_config(
        (engine, transport): (Sim, SimTransport),
        cut: CutThrough,
        config: EndpointConfig,
    ) -> Card {
        let endpoint_config = config;
        let mtu = endpoint_config.mtu;
        let config = Config {
            mtu: if mtu > 1500 { 9000 } else { 1500 },
            ..Config::default()
        };
        let mut stage = Stage::on(engine, transport, config);
        stage.nic.load(&image()).expect("it starts");
        stage.nic.open().expect("it opens");
        let link = stage.nic.wait_link(Duration::from_secs(5));
        link.expect("a link");
        let station = stage.nic.station();
        let mut card = EndpointCard(&mut stage.nic);
        let mut eudp = Eudp::find(&mut card).expect("firmware with endpoints");
        eudp.set_cut_through(&mut card, cut).expect("the card");
        let config = EndpointConfig {
            station,
            address: HERE,
            port: PORT,
            ..endpoint_config
        };
        let mut endpoint = eudp.open(&mut card, config).expect("an endpoint");
        let memory = eudp::Card::allocate(&mut card, 1 << 18).expect("memory");
        let region = eudp.register(&mut card, &mut endpoint, &memory);
        let region = region.expect("a region");
        let peer = eudp.address(&mut card, &mut endpoint, &PEER_AT);
        let peer = peer.expect("room");
        // What the start has left on the wire.
        stage.engine.pass(Duration::from_micros(100));
        while stage.engine.receive_now().is_some() {}
        Card {
            stage,
            eudp,
            endpoint,
            memory,
            region,
            peer,
            steps: 0,
            checker: Checker::default(),
        }
    }

    /// The card as the library has it.
    pub fn with<R>(
        &mut self,
        what: impl FnOnce(&mut Endpoint<DmaMemory>, &mut EndpointCard<'_, SimTransport>) -> R,
    ) -> R {
        let mut card = EndpointCard(&mut self.stage.nic);
        what(&mut self.endpoint, &mut card)
    }

    /// Sends `data` as one datagram from the region, from `offset` on.
    pub fn send(&mut self, offset: usize, data: &[u8], cookie: u32) {
        self.memory.write_bytes(offset, data).expect("it fits");
        let to = (self.peer, PEER_PORT);
        let piece = self.region.segment(offset as u32, data.len() as u32);
        self.with(|endpoint, card| endpoint.send(card, to, &[piece], cookie))
            .expect("it is posted");
    }

    /// The card's time in nanoseconds.
    pub fn now(&self) -> u64 {
        self.stage.engine.machine().lock().now()
    }

    /// The next frame on the wire.
    pub fn wire(&mut self) -> Seen {
        let end = self.now() + PATIENCE.as_nanos() as u64;
        while self.now() < end {
            let machine = self.stage.engine.machine().clone();
            let frame = machine.lock().take_frame();
            if let Some(frame) = frame {
                return Seen {
                    bytes: frame.bytes,
                    at: frame.at,
                };
            }
            self.stage.engine.pass(Duration::from_micros(1));
        }
        panic!("no frame (emulator: {})", self.stage.engine.counts());
    }

    /// The next completion.
    pub fn completion(&mut self) -> Completion {
        self.completion_in_steps(Duration::from_micros(1))
    }

    /// The same if the process looks for it once in each of these steps.
    pub fn completion_in_steps(&mut self, step: Duration) -> Completion {
        let end = self.now() + PATIENCE.as_nanos() as u64;
        while self.now() < end {
            let polled = self.with(|endpoint, card| endpoint.poll(card));
            if let Some(completion) = polled.expect("the card is there") {
                return completion;
            }
            self.stage.engine.pass(step);
        }
        panic!("no completion (emulator: {})", self.stage.engine.counts());
    }

    /// Waits until a good datagram of `bytes` bytes with a checksum is completed; returns its
    /// descriptor's cookie.
    pub fn completed(&mut self, bytes: usize) -> u32 {
        let completion = self.completion();
        let Completion::Received { cookie, .. } = completion else {
            panic!("{completion:?}")
        };
        assert_eq!(completion, Card::received(cookie, bytes, true));
        cookie
    }

    /// Follows what the firmware's machines have done: only rows of the tables.
    pub fn follow(&mut self) -> &Checker {
        let mut card = EndpointCard(&mut self.stage.nic);
        let [_, _, faults] = self.eudp.cuts(&mut card).expect("the card is there");
        assert_eq!(faults, 0, "transitions that no table has");
        let trace = self.eudp.trace(&mut card, self.steps);
        for byte in trace.expect("the card is there") {
            let entry = Entry::from_byte(byte);
            self.checker.follow(entry).expect("a row of the table");
            self.steps += 1;
        }
        &self.checker
    }

    /// Frames that left early, and that were cut off.
    pub fn cuts(&mut self) -> [u32; 2] {
        let mut card = EndpointCard(&mut self.stage.nic);
        let [through, aborted, _] = self.eudp.cuts(&mut card).expect("the card is there");
        [through, aborted]
    }
}

impl Card {
    /// A frame with a datagram from the peer to a port of this card.
    pub fn inbound(&self, port: u16, data: &[u8]) -> Vec<u8> {
        let station = self.stage.nic.station();
        let builder = PacketBuilder::ethernet2(PEER_STATION, station)
            .ipv4(PEER.octets(), HERE.octets(), 64)
            .udp(PEER_PORT, port);
        let mut frame = Vec::new();
        builder.write(&mut frame, data).expect("a frame");
        // As a MAC pads it.
        frame.resize(frame.len().max(60), 0x55);
        frame
    }

    /// The same without a checksum.
    pub fn inbound_unsummed(&self, port: u16, data: &[u8]) -> Vec<u8> {
        let mut frame = self.inbound(port, data);
        frame[40..42].fill(0);
        frame
    }

    /// Frames with the fragments of a datagram from the peer, the first one first. Each fragment but
    /// the last brings `most` bytes of the IP payload, a multiple of 8.
    pub fn fragments(
        &self,
        (identification, port): (u16, u16),
        data: &[u8],
        most: usize,
    ) -> Vec<Vec<u8>> {
        let udp = UdpHeader::with_ipv4_checksum(
            PEER_PORT,
            port,
            &Ipv4Header::new(0, 64, IpNumber::UDP, PEER.octets(), HERE.octets()).expect("a header"),
            data,
        );
        let payload = [&udp.expect("it fits").to_bytes()[..], data].concat();
        let mut at = 0;
        let mut frames = Vec::new();
        while at < payload.len() {
            let end = (at + most).min(payload.len());
            frames.push(self.fragment(identification, at, &payload[at..end], end < payload.len()));
            at = end;
        }
        frames
    }

    /// A frame with one fragment: `bytes` of an IP payload from `at` on.
    pub fn fragment(&self, identification: u16, at: usize, bytes: &[u8], more: bool) -> Vec<u8> {
        let length = bytes.len() as u16;
        let ip = Ipv4Header::new(length, 64, IpNumber::UDP, PEER.octets(), HERE.octets());
        let mut ip = ip.expect("it fits");
        ip.identification = identification;
        ip.dont_fragment = false;
        ip.more_fragments = more;
        ip.fragment_offset = IpFragOffset::try_new(at as u16 / 8).expect("an offset");
        ip.header_checksum = ip.calc_header_checksum();
        let ethernet = Ethernet2Header {
            source: PEER_STATION,
            destination: self.stage.nic.station(),
            ether_type: EtherType::IPV4,
        };
        let mut frame = [&ethernet.to_bytes()[..], &ip.to_bytes(), bytes].concat();
        frame.resize(frame.len().max(60), 0x55);
        frame
    }

    /// Lends `bytes` of the region from `offset` on for a datagram.
    pub fn post(&mut self, offset: u32, bytes: u32, cookie: u32) {
        let piece = self.region.segment(offset, bytes);
        self.with(|endpoint, card| endpoint.post(card, &[piece], cookie))
            .expect("it is posted");
        // A frame that is on the wire already may be faster than the mailbox.
        self.stage.engine.pass(Duration::from_micros(10));
    }

    /// What stands in the region.
    pub fn memory(&self, offset: usize, bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes];
        self.memory.read_bytes(offset, &mut out).expect("it fits");
        out
    }

    /// Whether nothing is completed for a while.
    pub fn rests(&mut self) -> bool {
        self.stage.engine.pass(Duration::from_micros(200));
        let polled = self.with(|endpoint, card| endpoint.poll(card));
        polled.expect("the card is there").is_none()
    }

    /// Frames for the endpoint that were not delivered.
    pub fn refusals(&mut self) -> Refusals {
        let mut card = EndpointCard(&mut self.stage.nic);
        self.eudp.refusals(&mut card).expect("the card is there")
    }

    /// A datagram that has arrived from the peer.
    pub fn received(cookie: u32, bytes: usize, summed: bool) -> Completion {
        Completion::Received {
            cookie,
            status: Status::Done,
            datagram: Received {
                bytes: bytes as u32,
                from: SocketAddrV4::new(PEER, PEER_PORT),
                summed,
            },
        }
    }
}

/// A card whose NIC memory is written where a function says so.
pub struct Overseen<'a, C, F>(pub &'a mut C, pub F);

impl<C: eudp::Card, F: FnMut(u32, &[u32]) -> bool> eudp::Card for Overseen<'_, C, F> {
    type Error = C::Error;
    type Memory = C::Memory;

    fn read(&mut self, address: u32, out: &mut [u32]) -> Result<(), C::Error> {
        self.0.read(address, out)
    }

    fn write(&mut self, address: u32, words: &[u32]) -> Result<(), C::Error> {
        if (self.1)(address, words) {
            self.0.write(address, words)?;
        }
        Ok(())
    }

    fn ring(&mut self, mailbox: u32, word: u32) -> Result<(), C::Error> {
        self.0.ring(mailbox, word)
    }

    fn allocate(&mut self, bytes: usize) -> Result<C::Memory, C::Error> {
        self.0.allocate(bytes)
    }

    fn map(&mut self, file: OwnedFd, access: Access) -> Result<C::Memory, C::Error> {
        self.0.map(file, access)
    }

    fn unmap(&mut self, memory: &C::Memory) -> Result<(), C::Error> {
        self.0.unmap(memory)
    }

    fn wait(&mut self, turns: u32) -> bool {
        self.0.wait(turns)
    }
}

/// Bytes that differ from one datagram to the next.
pub fn bytes(number: u32, length: usize) -> Vec<u8> {
    let byte = |at: usize| (at * 7 + at / 256) as u8 ^ (number as u8).wrapping_mul(37);
    (0..length).map(byte).collect()
}

/// The data of a frame with a whole datagram, as the peer's kernel would take it.
///
/// # Panics
/// If it would not.
pub fn data(frame: &[u8]) -> Vec<u8> {
    let packet = SlicedPacket::from_ethernet(frame).expect("a packet");
    let Some(NetSlice::Ipv4(ip)) = packet.net else {
        panic!("no IPv4 packet");
    };
    let header = ip.header().to_header();
    assert_eq!(header.calc_header_checksum(), header.header_checksum);
    assert_eq!(header.source, HERE.octets());
    assert_eq!(header.destination, PEER.octets());
    let Some(TransportSlice::Udp(udp)) = packet.transport else {
        panic!("no UDP datagram");
    };
    let header = udp.to_header();
    assert_eq!(header.source_port, PORT);
    assert_eq!(header.destination_port, PEER_PORT);
    if header.checksum != 0 {
        let sum = header.calc_checksum_ipv4_raw(HERE.octets(), PEER.octets(), udp.payload());
        assert_eq!(sum, Ok(header.checksum), "the UDP checksum");
    }
    udp.payload().to_vec()
}
