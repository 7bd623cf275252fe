//! A simulated card with an endpoint, beside its driver.

mod beside;
mod measures;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use eudp::{
    AddressHandle, Card, Checksum, Completion, CutThrough, Destination, Endpoint, EndpointConfig,
    Eudp, Refusals, Region, Segment, Status,
};
use host_driver::nic::{Coalescing, EndpointCard};
use host_driver::{Config, DmaMemory, Nic};
use smoltcp::wire::{IpAddress, Ipv4Packet, UdpPacket};
use std::net::Ipv4Addr;
use std::time::Duration;
use testbed::firmware::{self, FirmwareArtifacts, FirmwareOptions, Placement, Variant};
use testbed::setup::{self, Need};
use tigon2_model::Board;
use tigon2_sim::timing::Parameters;
use tigon2_sim::transport::SharedMachine;
use tigon2_sim::{Machine, SimTransport};

const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PEER_STATION: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub(super) const PORT: u16 = 4711;
const PEER_PORT: u16 = 9;
/// Bytes of the headers of a frame with a datagram.
pub(super) const HEADERS: usize = 42;
/// Where the IP header is.
const IP: usize = 14;
/// Where the UDP header is.
const UDP: usize = 34;
/// Nanoseconds between two looks of the host.
const LOOK: u64 = 200;
/// Nanoseconds within which anything happens.
const PATIENCE: u64 = 50_000_000;
/// Bytes of the memory, and of a buffer to receive.
const MEMORY: usize = 1 << 20;
const BUFFER: u32 = 0x1_0000;
/// Buffers that are lent in turn.
const LENT: u32 = 16;
/// The plain path reports each frame at once.
const AT_ONCE: Coalescing = Coalescing {
    receive_ticks: 170,
    transmit_ticks: 2000,
    statistics_ticks: 1_000_000,
    max_transmit_bds: 1,
    max_receive_bds: 1,
};

/// The variant with endpoints.
fn built() -> Result<FirmwareArtifacts> {
    setup::ensure(&[Need::Firmware])?;
    firmware::build(options()?)
}

fn options() -> Result<FirmwareOptions> {
    Ok(FirmwareOptions {
        variant: Variant::from_str("eudp", false).map_err(anyhow::Error::msg)?,
        placement: Placement::Scratch,
        quiet: true,
    })
}

/// The image of the variant with endpoints.
///
/// # Errors
/// If it does not build.
pub fn image() -> Result<Vec<u8>> {
    built()?.image()
}

/// The same whose CPU A records the transitions of its machines, too.
///
/// # Errors
/// If it does not build.
pub fn image_with_transitions() -> Result<Vec<u8>> {
    setup::ensure(&[Need::Firmware])?;
    firmware::build_with_transitions(options()?)?.image()
}

/// Its ELF file.
///
/// # Errors
/// As [`image`].
pub fn elf() -> Result<Vec<u8>> {
    Ok(std::fs::read(&built()?.elf)?)
}

/// The card, its driver, an endpoint.
pub struct Bench {
    machine: SharedMachine,
    nic: Nic<SimTransport>,
    eudp: Eudp,
    endpoint: Endpoint<DmaMemory>,
    memory: DmaMemory,
    region: Region,
    peer: AddressHandle,
    cookie: u32,
}

/// Microseconds.
pub(super) fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1000.0
}

impl Bench {
    /// Powers one up.
    ///
    /// # Errors
    /// If the firmware does not start or refuses.
    pub fn start(image: &[u8], cut: CutThrough, checksum: Checksum, mtu: u32) -> Result<Bench> {
        let timed = (Board::default(), Parameters::default());
        Bench::of(timed, image, (cut, checksum, mtu))
    }

    /// The same of another board or timing profile.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn of(
        (board, parameters): (Board, Parameters),
        image: &[u8],
        (cut, checksum, mtu): (CutThrough, Checksum, u32),
    ) -> Result<Bench> {
        let machine = Machine::timed(board, parameters, 1);
        let ends = (HERE, PEER, PEER_STATION);
        Bench::on(
            SimTransport::new(machine),
            image,
            (cut, checksum, mtu),
            ends,
        )
    }

    /// The same on a card that was powered up, between an address of its own and a peer's.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn on(
        transport: SimTransport,
        image: &[u8],
        (cut, checksum, mtu): (CutThrough, Checksum, u32),
        (here, there, peer_station): (Ipv4Addr, Ipv4Addr, [u8; 6]),
    ) -> Result<Bench> {
        let machine = transport.machine();
        let config = Config {
            mtu: if mtu > 1500 { 9000 } else { 1500 },
            coalescing: AT_ONCE,
            ..Config::default()
        };
        let mut nic = Nic::probe(transport, config)?;
        nic.load(image)?;
        nic.open()?;
        nic.wait_link(Duration::from_secs(10))?;
        let station = nic.station();
        let card = &mut EndpointCard(&mut nic);
        let mut eudp = Eudp::find(card)?;
        eudp.set_cut_through(card, cut)?;
        let config = EndpointConfig {
            station,
            address: here,
            port: PORT,
            vlan: None,
            mtu,
            checksum,
            descriptors: eudp::DESCRIPTORS_MAX,
            pushed: eudp::PUSHED,
            // Whoever sends the header first needs no trial.
            connected: (checksum != Checksum::Leading).then_some(there),
        };
        let mut endpoint = eudp.open(card, config)?;
        let memory = card.allocate(MEMORY)?;
        let region = eudp.register(card, &mut endpoint, &memory)?;
        let to = Destination {
            station: peer_station,
            address: there,
            lifetime: 64,
            dont_fragment: false,
        };
        let peer = eudp.address(card, &mut endpoint, &to)?;
        machine.pass(1_000_000);
        while machine.lock().take_frame().is_some() {}
        Ok(Bench {
            machine,
            nic,
            eudp,
            endpoint,
            memory,
            region,
            peer,
            cookie: 0,
        })
    }

    pub(super) fn now(&self) -> u64 {
        self.machine.lock().now()
    }

    /// Lets the card work until the host looks again.
    pub(super) fn pass(&self) {
        self.machine.pass(LOOK);
    }

    /// Frames of `data` bytes that left early, and that were cut off.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn cuts(&mut self) -> Result<[u32; 2]> {
        let [through, aborted, faults] = self.eudp.cuts(&mut EndpointCard(&mut self.nic))?;
        ensure!(faults == 0, "{faults} transitions that no table has");
        Ok([through, aborted])
    }

    pub(super) fn post(&mut self, bytes: usize) -> Result<()> {
        self.post_to(PEER_PORT, bytes)
    }

    /// The same to a port of the peer's.
    pub(super) fn post_to(&mut self, port: u16, bytes: usize) -> Result<()> {
        let card = &mut EndpointCard(&mut self.nic);
        let to = (self.peer, port);
        self.cookie += 1;
        if bytes <= eudp::INLINE_BYTES as usize {
            let data = [0x5A; eudp::INLINE_BYTES as usize];
            self.endpoint
                .send_inline(card, to, &data[..bytes], self.cookie)?;
        } else {
            let piece = self.region.segment(0, bytes as u32);
            self.endpoint.send(card, to, &[piece], self.cookie)?;
        }
        Ok(())
    }

    /// Writes `data` into the buffer of this number.
    pub(super) fn fill(&self, number: u32, data: &[u8]) -> Result<()> {
        let at = (number % LENT * BUFFER) as usize;
        Ok(self.memory.write_bytes(at, data)?)
    }

    /// Posts a datagram of what the buffer of this number was [filled](Self::fill) with.
    pub(super) fn post_filled(&mut self, port: u16, number: u32, data: &[u8]) -> Result<()> {
        self.cookie += 1;
        if data.len() > eudp::INLINE_BYTES as usize {
            let at = number % LENT * BUFFER;
            return self.post_from(at, port, data.len(), self.cookie);
        }
        let card = &mut EndpointCard(&mut self.nic);
        let to = (self.peer, port);
        Ok(self.endpoint.send_inline(card, to, data, self.cookie)?)
    }

    /// Posts a datagram of the memory's bytes from `at` on to a port of the peer's.
    pub(super) fn post_from(
        &mut self,
        at: u32,
        port: u16,
        bytes: usize,
        cookie: u32,
    ) -> Result<()> {
        let card = &mut EndpointCard(&mut self.nic);
        let piece = self.region.segment(at, bytes as u32);
        let to = (self.peer, port);
        Ok(self.endpoint.send(card, to, &[piece], cookie)?)
    }

    pub(super) fn poll(&mut self) -> Result<Option<Completion>> {
        let card = &mut EndpointCard(&mut self.nic);
        Ok(self.endpoint.poll(card)?)
    }

    /// The end of the next frame on the wire, polling meanwhile.
    fn sent(&mut self) -> Result<u64> {
        let end = self.now() + PATIENCE;
        while self.now() < end {
            if let Some(frame) = self.machine.lock().take_frame() {
                return Ok(frame.at);
            }
            if let Some(Completion::Sent { status, .. }) = self.poll()? {
                ensure!(status == Status::Done, "{status:?}");
            }
            self.pass();
        }
        anyhow::bail!("a frame does not leave")
    }

    pub(super) fn settle(&mut self) -> Result<()> {
        for _ in 0..200 {
            self.poll()?;
            self.pass();
        }
        Ok(())
    }

    /// A frame with a datagram from the peer, or of its like.
    fn frame(&self, port: u16, bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; HEADERS + bytes];
        frame[..6].copy_from_slice(&self.nic.station());
        frame[6..12].copy_from_slice(&PEER_STATION);
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        frame[16..18].copy_from_slice(&((bytes + 28) as u16).to_be_bytes());
        frame[22..24].copy_from_slice(&[64, 17]);
        frame[26..30].copy_from_slice(&PEER.octets());
        frame[30..34].copy_from_slice(&HERE.octets());
        frame[34..36].copy_from_slice(&PEER_PORT.to_be_bytes());
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        frame[38..40].copy_from_slice(&((bytes + 8) as u16).to_be_bytes());
        Ipv4Packet::new_unchecked(&mut frame[IP..]).fill_checksum();
        frame.resize(frame.len().max(60), 0);
        frame
    }

    /// The frames of a datagram: fragments if it is longer than the MTU, of that identification. It has
    /// a checksum if those of the endpoint have one.
    fn frames(&self, bytes: usize, mtu: usize, identification: u16) -> Vec<Vec<u8>> {
        let whole = match self.endpoint.config().checksum {
            Checksum::None => self.frame(PORT, bytes),
            Checksum::Full | Checksum::Leading => self.inbound(&vec![0; bytes]),
        };
        let (headers, payload) = whole[..HEADERS + bytes].split_at(UDP);
        let room = mtu - (UDP - IP);
        if payload.len() <= room {
            return vec![whole];
        }
        let most = room & !7;
        let parts = payload.chunks(most).enumerate();
        let fragment = |(number, part): (usize, &[u8])| {
            let mut frame = [headers, part].concat();
            let length = frame.len() - IP;
            let mut packet = Ipv4Packet::new_unchecked(&mut frame[IP..]);
            packet.set_total_len(length as u16);
            packet.set_ident(identification);
            packet.set_more_frags((number + 1) * most < payload.len());
            packet.set_frag_offset((number * most) as u16);
            packet.fill_checksum();
            frame.resize(frame.len().max(60), 0);
            frame
        };
        parts.map(fragment).collect()
    }

    pub(super) fn lend(&mut self, number: u32) -> Result<()> {
        let piece = self.buffer(number);
        let card = &mut EndpointCard(&mut self.nic);
        Ok(self.endpoint.post(card, &[piece], number)?)
    }

    /// The buffer that is lent by this number.
    fn buffer(&self, number: u32) -> Segment {
        self.region.segment(number % LENT * BUFFER, 0xFFFF)
    }

    pub(super) fn arrived(&mut self) -> Result<()> {
        let end = self.now() + PATIENCE;
        while self.now() < end {
            if let Some(Completion::Received { status, .. }) = self.poll()? {
                ensure!(status == Status::Done, "{status:?}");
                return Ok(());
            }
            self.pass();
        }
        anyhow::bail!("a datagram does not arrive")
    }

    /// A frame with these bytes from the peer for the endpoint, with a UDP checksum.
    pub(super) fn inbound(&self, data: &[u8]) -> Vec<u8> {
        let mut frame = self.frame(PORT, data.len());
        frame[HEADERS..HEADERS + data.len()].copy_from_slice(data);
        let mut udp = UdpPacket::new_unchecked(&mut frame[UDP..HEADERS + data.len()]);
        udp.fill_checksum(&IpAddress::Ipv4(PEER), &IpAddress::Ipv4(HERE));
        frame
    }

    /// The first bytes of the buffer that was lent by this number.
    pub(super) fn received(&self, number: u32, bytes: usize) -> Result<Vec<u8>> {
        let mut data = vec![0; bytes];
        let at = (number % LENT * BUFFER) as usize;
        self.memory.read_bytes(at, &mut data)?;
        Ok(data)
    }

    /// Frames for the endpoint that were not delivered.
    pub(super) fn refusals(&mut self) -> Result<Refusals> {
        Ok(self.eudp.refusals(&mut EndpointCard(&mut self.nic))?)
    }

    /// The machine.
    pub(super) fn machine(&self) -> &SharedMachine {
        &self.machine
    }

    /// The machine, and the card as the library has it.
    pub(super) fn parts(
        &mut self,
    ) -> (
        &SharedMachine,
        EndpointCard<'_, SimTransport>,
        &mut Endpoint<DmaMemory>,
        (AddressHandle, Region),
    ) {
        let Bench {
            machine,
            nic,
            endpoint,
            peer,
            region,
            ..
        } = self;
        (machine, EndpointCard(nic), endpoint, (*peer, *region))
    }

    /// The host's addresses of the memory that datagrams are in.
    pub(super) fn addresses(&self) -> Result<std::ops::Range<u64>> {
        let from = self.memory.address(0, MEMORY)?;
        Ok(from..from + MEMORY as u64)
    }

    /// The memory that datagrams are sent from.
    pub fn memory(&self) -> &DmaMemory {
        &self.memory
    }
}
