//! A simulated card with an endpoint, beside its driver, and what is measured of both.

use crate::rounds::median;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use eudp::{
    AddressHandle, Card, Checksum, Completion, CutThrough, Destination, Endpoint, EndpointConfig,
    Eudp, Refusals, Region, Segment, Status,
};
use host_driver::nic::{Coalescing, EndpointCard};
use host_driver::{Config, DmaMemory, Nic};
use smoltcp::wire::{IpAddress, UdpPacket};
use std::io::IoSlice;
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
/// Where the UDP header is.
const UDP: usize = 34;
/// Nanoseconds of a byte on the wire, and bytes around a frame on it: preamble, CRC.
const BYTE: u64 = 8;
const AROUND: usize = 8 + 4;
/// Nanoseconds by which each frame comes later than the one before: the card looks now and then.
const PHASE: u64 = 67;
/// Nanoseconds between two looks of the host.
const LOOK: u64 = 200;
/// Nanoseconds within which anything happens.
const PATIENCE: u64 = 50_000_000;
/// Bytes of the memory, and of a buffer to receive.
const MEMORY: usize = 1 << 20;
const BUFFER: u32 = 0x1_0000;
/// Buffers that are lent in turn.
const LENT: u32 = 16;
/// Of how many buffers that are lent again the card is told at a time.
const TOLD: u32 = LENT / 2;
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
    let variant = Variant::from_str("eudp", false).map_err(anyhow::Error::msg)?;
    firmware::build(FirmwareOptions {
        variant,
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

    /// Microseconds from the call to the end on the wire, the median of `count` datagrams.
    ///
    /// # Errors
    /// If one does not leave.
    pub fn out(&mut self, bytes: usize, count: u32) -> Result<f64> {
        let mut times = Vec::new();
        for _ in 0..count {
            let begun = self.now();
            self.post(bytes)?;
            times.push(microseconds(self.sent()? - begun));
            self.settle()?;
        }
        Ok(median(&times))
    }

    /// The same through the driver, with headers that the host makes.
    ///
    /// # Errors
    /// If one does not leave.
    pub fn plain_out(&mut self, bytes: usize, count: u32) -> Result<f64> {
        let frame = self.frame(PORT + 1, bytes);
        let mut times = Vec::new();
        for _ in 0..count {
            let begun = self.now();
            ensure!(self.nic.queue(&[IoSlice::new(&frame)])?, "no room");
            self.nic.submit()?;
            times.push(microseconds(self.sent()? - begun));
            self.nic.service()?;
            self.settle()?;
        }
        Ok(median(&times))
    }

    /// Mb/s of data in a stream, from the end of the first datagram to that of the last.
    ///
    /// # Errors
    /// If one does not leave.
    pub fn stream_out(&mut self, bytes: usize, mtu: usize, count: usize) -> Result<f64> {
        for _ in 0..count {
            self.post(bytes)?;
        }
        let frames = if bytes + 28 <= mtu {
            1
        } else {
            (bytes + 8).div_ceil((mtu - 20) & !7)
        };
        let mut ends = Vec::new();
        for number in 0..count * frames {
            let at = self.sent()?;
            if (number + 1) % frames == 0 {
                ends.push(at);
            }
        }
        self.settle()?;
        let time = ends
            .last()
            .zip(ends.first())
            .map(|(last, first)| last - first);
        let time = time.context("no datagrams")?.max(1);
        Ok((count - 1) as f64 * bytes as f64 * 8000.0 / time as f64)
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
        let pairs = frame[14..34].chunks_exact(2);
        let sum: u32 = pairs
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            .sum();
        let sum = (sum & 0xFFFF) + (sum >> 16);
        let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame.resize(frame.len().max(60), 0);
        frame
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

    /// Microseconds from a datagram's end on the wire to its completion, the median of `count`.
    ///
    /// # Errors
    /// If one does not arrive.
    pub fn arrival(&mut self, bytes: usize, count: u32) -> Result<f64> {
        let frame = self.frame(PORT, bytes);
        let mut times = Vec::new();
        for number in 0..count {
            self.lend(number)?;
            self.settle()?;
            let ends = self.put_on_wire(&frame, number);
            self.arrived()?;
            times.push(microseconds(self.now().saturating_sub(ends)));
        }
        Ok(median(&times))
    }

    /// Sends the card a frame, [`PHASE`] later for each number. Returns when it ends on the wire.
    fn put_on_wire(&self, frame: &[u8], number: u32) -> u64 {
        let begins = self.now() + u64::from(number) * PHASE;
        self.machine.lock().send_frame(begins, frame.to_vec());
        begins + (frame.len() + AROUND) as u64 * BYTE
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

    /// The same through the driver, which polls.
    ///
    /// # Errors
    /// If one does not arrive.
    pub fn plain_arrival(&mut self, bytes: usize, count: u32) -> Result<f64> {
        let frame = self.frame(PORT + 1, bytes);
        let mut times = Vec::new();
        for number in 0..count {
            self.settle()?;
            let patient = self.now() + PATIENCE;
            let ends = self.put_on_wire(&frame, number);
            while self.nic.receive_batch(1)?.is_empty() {
                ensure!(self.now() < patient, "a frame does not arrive");
                self.pass();
                self.nic.service()?;
            }
            times.push(microseconds(self.now().saturating_sub(ends)));
        }
        Ok(median(&times))
    }

    /// Mb/s of data of datagrams that arrive one behind the other, and the share of them that is
    /// completed.
    ///
    /// # Errors
    /// If the card is gone.
    pub fn stream_in(&mut self, bytes: usize, count: u32) -> Result<(f64, f64)> {
        let frame = self.frame(PORT, bytes);
        for number in 0..LENT {
            self.lend(number)?;
        }
        self.settle()?;
        let mut at = self.now();
        for _ in 0..count {
            at = self.machine.lock().send_frame(at, frame.clone());
        }
        let (mut first, mut last, mut taken) = (0, 0, 0u32);
        let mut quiet = 0;
        while quiet < 1000 {
            quiet += 1;
            while let Some(completion) = self.poll()? {
                if let Completion::Received { cookie, .. } = completion {
                    quiet = 0;
                    taken += 1;
                    last = self.now();
                    if taken == 1 {
                        first = last;
                    }
                    let piece = self.buffer(cookie);
                    let card = &mut EndpointCard(&mut self.nic);
                    self.endpoint.lend(card, &[piece], cookie)?;
                    if taken.is_multiple_of(TOLD) {
                        self.endpoint.submit(card)?;
                    }
                }
            }
            self.pass();
        }
        let time = last.saturating_sub(first).max(1);
        let rate = f64::from(taken.saturating_sub(1)) * bytes as f64 * 8000.0 / time as f64;
        Ok((rate, f64::from(taken) / f64::from(count)))
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
